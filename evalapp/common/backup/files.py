"""What lies beside the database: the roots, names that are safe to write, holding files so that they stay while a
backup is written, and putting those of a backup in place by rename."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from evalapp.ops import disk

from ..hooks import BackupFile

#: Name in a backup -> the setting with the folder.
ROOTS = {"uploads": "UPLOADS_DIR", "exports": "EXPORTS_DIR", "artefacts": "ARTEFACTS_DIR", "corpora": "CORPORA_DIR"}
CHUNK = 1 << 20
#: No backup takes this long.
STALE_SECONDS = 2 * 86400


def root_of(name: str) -> Path:
    return Path(getattr(settings, ROOTS[name]))


def is_safe(path: str) -> bool:
    """Whether a relative path stays below its folder on every system and hides nothing."""
    parts = path.split("/")
    return len(path) <= 1000 and all(
        part not in ("", ".", "..") and len(part.encode()) <= 255 and part.isprintable() and "\\" not in part
        for part in parts
    )


# ---- for a backup -------------------------------------------------------------------------------------------


@dataclass
class Held:
    """The files of one moment: their names in the backup, where they can be read, and what was not there."""

    found: list[tuple[str, Path]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@contextlib.contextmanager
def holding(wanted: Iterable[BackupFile]) -> Iterator[Held]:
    """Each file gets a second name for as long as the block lasts, so that deleting it meanwhile does no harm. Where
    the file system has no second names it is read where it lies."""
    held = Held()
    with contextlib.ExitStack() as stack:
        folders: dict[str, Path] = {}
        for kept in wanted:
            if not is_safe(kept.path):
                held.missing.append(f"{kept.root}/{kept.path[:200]!r}")
                continue
            place = root_of(kept.root)
            if kept.root not in folders and place.is_dir():
                _remove_stale(place)
                made = stack.enter_context(tempfile.TemporaryDirectory(prefix=".backup-", dir=place))
                folders[kept.root] = Path(made)
            paths = list(_walk(place / kept.path, kept.follow))
            if kept.needed and not paths:
                held.missing.append(f"{kept.root}/{kept.path}")
            for path in paths:
                name = f"{kept.root}/{path.relative_to(place).as_posix()}"
                if not is_safe(name):
                    held.missing.append(repr(name[:200]))
                    continue
                second = folders[kept.root] / str(len(held.found))
                try:
                    os.link(path.resolve() if kept.follow else path, second)
                except FileNotFoundError:
                    held.missing.append(name)
                    continue
                except OSError:
                    second = path
                held.found.append((name, second))
        yield held


def _remove_stale(place: Path) -> None:
    """Second names that a killed backup left: they keep room from being given back."""
    for path in place.glob(".backup-*"):
        # Another backup may be removing its own.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _walk(path: Path, follow: bool) -> Iterator[Path]:
    """Regular files, in the order of their names. A folder that goes meanwhile had none."""
    if path.is_symlink() and not follow:
        return
    if path.is_file():
        yield path
    elif path.is_dir() and not path.is_symlink():
        try:
            inside = sorted(path.iterdir())
        except FileNotFoundError:
            return
        for inner in inside:
            yield from _walk(inner, follow)


# ---- for a restore ------------------------------------------------------------------------------------------


def staged(root: str, token: str) -> Path:
    """Where the files of a restore wait."""
    place = root_of(root)
    return place.with_name(f".{place.name}-restore-{token}")


def before(root: str, token: str) -> Path:
    """Where the files that were there wait."""
    place = root_of(root)
    return place.with_name(f".{place.name}-before-{token}")


def write_new(name: str, token: str, chunks: Iterable[bytes]) -> None:
    """A file of a backup into its waiting folder; `name` has been found safe."""
    root, _, path = name.partition("/")
    target = staged(root, token) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def make_waiting(token: str) -> None:
    """The waiting folders, of roots without files, too: `take_back` knows by a missing one that it was moved."""
    for root in ROOTS:
        staged(root, token).mkdir(parents=True)


def place_all(token: str) -> None:
    """The waiting folders take the place of those that are there."""
    for root in ROOTS:
        place = root_of(root)
        if place.exists():
            place.rename(before(root, token))
        staged(root, token).rename(place)
        disk.sync(place.parent)


def take_back(token: str) -> None:
    """Undo `place_all`, however far it came."""
    for root in ROOTS:
        place = root_of(root)
        if not staged(root, token).exists() and place.exists():
            place.rename(staged(root, token))
        if before(root, token).exists():
            before(root, token).rename(place)
        disk.sync(place.parent)


def forget(token: str) -> None:
    """Remove what waited."""
    for root in ROOTS:
        for path in (staged(root, token), before(root, token)):
            if path.exists():
                shutil.rmtree(path)


def filled_roots() -> list[str]:
    """The roots that hold anything but leftovers of a killed backup."""
    return [
        name
        for name in ROOTS
        if root_of(name).is_dir() and any(not path.name.startswith(".backup-") for path in root_of(name).iterdir())
    ]
