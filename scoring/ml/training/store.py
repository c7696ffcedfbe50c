"""Files that are complete or absent: written to a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalapp.ops import disk

if TYPE_CHECKING:
    import torch

_MARK = re.compile(r"[0-9a-f]{32}(\.old)?")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file at `path` in one step; `write` fills a temporary file in the same folder, which then replaces it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        write(draft)
        disk.sync(draft)
        draft.replace(path)
        disk.sync(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def write_folder(path: Path, write: Callable[[Path], object]) -> None:
    """Write a folder at `path`, complete or not at all; `write` fills it under a temporary name.

    An existing folder is replaced, and remains of a killed writer are removed. Two writers must not use the same folder
    at the same time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.iterdir():
        if left.name.startswith(f".{path.name}.") and _MARK.fullmatch(left.name[len(path.name) + 2 :]):
            shutil.rmtree(left, ignore_errors=True)
    mark = uuid.uuid4().hex
    draft, old = path.with_name(f".{path.name}.{mark}"), path.with_name(f".{path.name}.{mark}.old")
    try:
        draft.mkdir()
        write(draft)
        for file in sorted(draft.rglob("*")):
            disk.sync(file)
        if path.exists():
            path.rename(old)
        draft.rename(path)
        disk.sync(path.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def write_json(path: Path, content: Any) -> None:
    """Write `content` as JSON to `path`, complete or not at all."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, lambda draft: draft.write_text(text, encoding="utf-8"))


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write `tensors` by name as a safetensors file at `path`, complete or not at all; every tensor gets its own
    memory."""
    from safetensors.torch import save_file

    owned = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_whole(path, lambda draft: save_file(owned, str(draft)))


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of the safetensors file at `path`, on the CPU."""
    from safetensors.torch import load_file

    return load_file(str(path))
