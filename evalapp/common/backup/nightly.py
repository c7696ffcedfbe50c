"""The backup that beat requests every day, if BACKUP_FOLDER is set: one file per day, the oldest removed."""

import logging
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from evalapp.common.errors import EvalappError
from evalapp.ops.checks import MISSING, OK, Check

from .writing import make_backup

PREFIX, SUFFIX = "evalapp-", ".backup"
#: A day, and as long as a large backup may take.
LATE = timedelta(hours=30)
log = logging.getLogger(__name__)


def make_nightly_backup() -> None:
    """Write today's backup to BACKUP_FOLDER, then remove the oldest until BACKUP_KEEP remain. A failure is logged, and
    `evalapp doctor` reports a backup that is too old; no older one is removed then."""
    folder = Path(settings.BACKUP_FOLDER)
    target = folder / f"{PREFIX}{timezone.now():%Y-%m-%d}{SUFFIX}"
    try:
        report = make_backup(target=target, overwrite=True)
    except EvalappError as error:
        log.error("No backup was made: %s", error.detail)
        return
    log.info("Backup %s: %s bytes, fingerprint %s", report.file, report.bytes, report.fingerprint)
    for path in _list_backups(folder)[: -settings.BACKUP_KEEP]:
        path.unlink(missing_ok=True)


def check_nightly_backup() -> list[Check]:
    """Return a line of `evalapp doctor` about the newest nightly backup; none without BACKUP_FOLDER."""
    if not settings.BACKUP_FOLDER:
        return []
    newest = next(reversed(_list_backups(Path(settings.BACKUP_FOLDER))), None)
    way_out = "The log of the worker has the reason. Make one now: `evalapp backup FILE`."
    if newest is None:
        return [Check("backup", MISSING, f"none in {settings.BACKUP_FOLDER}", way_out)]
    age = timezone.now().timestamp() - newest.stat().st_mtime
    found = f"{newest} of {age / 3600:.0f} hours ago"
    late = age > LATE.total_seconds()
    return [Check("backup", MISSING if late else OK, found, way_out if late else "")]


def _list_backups(folder: Path) -> list[Path]:
    """The nightly backups, the oldest first. Files with other names are not touched."""
    day = "[0-9]" * 4 + "-" + "[0-9]" * 2 + "-" + "[0-9]" * 2
    return sorted(folder.glob(f"{PREFIX}{day}{SUFFIX}"))
