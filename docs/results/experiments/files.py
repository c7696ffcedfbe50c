"""Rows of a data set's files, for experiments that work on columns."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

SWAPPED = {"a": "b", "b": "a"}


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of `NAME.jsonl` or `NAME.jsonl.gz`; none if there is no such file."""
    path = next(folder.glob(f"{name}.jsonl*"), None)
    if path is None:
        return []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def in_order(row: dict[str, Any]) -> tuple[str, str, str]:
    """The two systems of a comparison in alphabetical order, with the verdict turned accordingly."""
    a, b, verdict = row["system_a"], row["system_b"], row["verdict"]
    return (a, b, verdict) if a <= b else (b, a, SWAPPED.get(verdict, verdict))
