"""Files outside the database: their folders, safe names, second names that keep them during a backup, and putting the
files of a backup in place by rename."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.conf import settings

from evalapp.ops import disk

from ..hooks import BackupFile

#: Name in a backup -> setting with the folder.
ROOTS = {"uploads": "UPLOADS_DIR", "exports": "EXPORTS_DIR", "artefacts": "ARTEFACTS_DIR", "corpora": "CORPORA_DIR"}
CHUNK = 1 << 20
#: Longer than any backup takes.
STALE_SECONDS = 2 * 86400


def find_root(name: str) -> Path:
    return Path(getattr(settings, ROOTS[name]))


def is_safe(path: str) -> bool:
    """Return whether a relative path stays below its folder on every system and has no hidden characters."""
    return len(path) <= 1000 and all(
        part not in ("", ".", "..") and len(part.encode()) <= 255 and part.isprintable() and "\\" not in part
        for part in path.split("/")
    )


@contextlib.contextmanager
def hold_files(requested: Iterable[BackupFile]) -> Iterator[tuple[list[tuple[str, Path]], list[str]]]:
    """Yield the existing files as (name in the backup, path to read from) and the names of missing ones. During the
    block each file has a second name, so that it can be deleted meanwhile; file systems without hard links are read
    directly."""
    files: list[tuple[str, Path]] = []
    missing: list[str] = []
    with contextlib.ExitStack() as stack:
        links: dict[str, Path] = {}
        for entry in requested:
            if not is_safe(entry.path):
                missing.append(f"{entry.root}/{entry.path[:200]!r}")
                continue
            root = find_root(entry.root)
            if entry.root not in links and root.is_dir():
                _remove_stale(root)
                links[entry.root] = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".backup-", dir=root)))
            paths = list(_walk(root / entry.path, entry.follow))
            if entry.needed and not paths:
                missing.append(f"{entry.root}/{entry.path}")
            for path in paths:
                name = f"{entry.root}/{path.relative_to(root).as_posix()}"
                if not is_safe(name):
                    missing.append(repr(name[:200]))
                    continue
                second = links[entry.root] / str(len(files))
                try:
                    os.link(path.resolve() if entry.follow else path, second)
                except FileNotFoundError:
                    missing.append(name)
                    continue
                except OSError:
                    second = path
                files.append((name, second))
        yield files, missing


def _remove_stale(root: Path) -> None:
    """Remove the second names that a killed backup left; they keep the space of deleted files."""
    for path in root.glob(".backup-*"):
        # Another backup may remove its own at the same time.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _walk(path: Path, follow: bool) -> Iterator[Path]:
    """Yield regular files in the order of their names. A folder that is removed meanwhile has none."""
    if path.is_symlink() and not follow:
        return
    if path.is_file():
        yield path
    elif path.is_dir() and not path.is_symlink():
        try:
            children = sorted(path.iterdir())
        except FileNotFoundError:
            return
        for child in children:
            yield from _walk(child, follow)


# ---- restore ------------------------------------------------------------------------------------------------


def _staged(root: str, token: str) -> Path:
    """The folder in which the files of a restore wait."""
    place = find_root(root)
    return place.with_name(f".{place.name}-restore-{token}")


def _previous(root: str, token: str) -> Path:
    """The folder to which a restore moves the existing files."""
    place = find_root(root)
    return place.with_name(f".{place.name}-before-{token}")


def write_staged(name: str, token: str, chunks: Iterable[bytes]) -> None:
    """Write a file of a backup to its staging folder. `name` has been checked by `is_safe`."""
    root, _, path = name.partition("/")
    target = _staged(root, token) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def make_staging(token: str) -> None:
    """Create all staging folders, also empty ones: `take_back` concludes from a missing one that it was moved."""
    for root in ROOTS:
        _staged(root, token).mkdir(parents=True)


def place_all(token: str) -> None:
    """Replace the existing folders by the staged ones."""
    for root in ROOTS:
        place = find_root(root)
        if place.exists():
            place.rename(_previous(root, token))
        _staged(root, token).rename(place)
        disk.sync(place.parent)


def take_back(token: str) -> None:
    """Undo `place_all`, even if it was interrupted."""
    for root in ROOTS:
        place = find_root(root)
        if not _staged(root, token).exists() and place.exists():
            place.rename(_staged(root, token))
        if _previous(root, token).exists():
            _previous(root, token).rename(place)
        disk.sync(place.parent)


def forget(token: str) -> None:
    """Remove the staging folders and the previous files."""
    for root in ROOTS:
        for path in (_staged(root, token), _previous(root, token)):
            if path.exists():
                shutil.rmtree(path)


def list_filled_roots() -> list[Path]:
    """Return the folders that contain anything except leftovers of a killed backup."""
    return [
        root
        for root in map(find_root, ROOTS)
        if root.is_dir() and any(not path.name.startswith(".backup-") for path in root.iterdir())
    ]
