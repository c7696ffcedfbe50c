"""Folders that are complete or absent: written under another name and renamed at the end."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder that becomes `folder` if the block succeeds and is removed otherwise. If `folder` exists (a
    mounted volume), the files are moved into it."""
    exists = folder.is_dir()
    suffix = f".{uuid4().hex}.part"
    draft = folder / suffix if exists else folder.with_name(folder.name + suffix)
    draft.mkdir(parents=True)
    try:
        yield draft
        if exists:
            for path in sorted(draft.iterdir()):
                path.rename(folder / path.name)
            draft.rmdir()
        else:
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
