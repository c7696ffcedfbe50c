"""Files that people keep are whole or absent: they are written under another name and renamed at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `folder` when all went well and is removed when anything did not. `folder` may be
    there and empty (a volume that is mounted): then the files move into it at the end."""
    is_there = folder.is_dir()
    mark = f".{uuid4().hex}.part"
    draft = folder / mark if is_there else folder.with_name(folder.name + mark)
    draft.mkdir(parents=True)
    try:
        yield draft
        if is_there:
            for path in sorted(draft.iterdir()):
                path.rename(folder / path.name)
            draft.rmdir()
        else:
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
