"""Check the disk space for uploads."""

import shutil
import tempfile
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from .errors import NoRoom


def check_room(size: int = 0) -> None:
    """Raise `NoRoom` if an upload of `size` bytes would leave less than MIN_FREE_MB in the data folder. An upload is
    first received into the folder for temporary files, so that there are two copies for a moment."""
    temporary = Path(settings.FILE_UPLOAD_TEMP_DIR or tempfile.gettempdir())
    shared = temporary.stat().st_dev == settings.DATA_DIR.stat().st_dev
    needed = 2 * size if shared else size
    left = shutil.disk_usage(settings.DATA_DIR).free - needed
    if left < settings.MIN_FREE_BYTES or (not shared and shutil.disk_usage(temporary).free < size):
        raise NoRoom(
            _(
                "The disk of the server is nearly full, so uploads are refused. Nothing was stored. Ask the operators "
                "of this installation to free some space: %(free)s MB must stay free (MIN_FREE_MB)."
            )
            % {"free": f"{settings.MIN_FREE_BYTES // 1_000_000:,}"}
        )
