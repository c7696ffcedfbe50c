"""Imports small files in tests, in this process, through the service and the pipeline as a worker would."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from django.conf import settings

from annotation.exporters import canonical
from annotation.models import Upload
from annotation.pipelines.exports import write_folder
from annotation.services.uploads import Incoming, receive_upload
from evalapp.accounts.models import Project
from evalapp.common.runner import execute_run

DATASET = {"name": "Alpha", "task": "dialogue", "lang": "en", "aspects": [{"name": "quality", "min": 1, "max": 5}]}
ITEMS = [
    {
        "id": "i1",
        "context": ["Hello?"],
        "source": None,
        "references": ["Hi.", "Hey."],
        "group": "g",
        "meta": {"d": "x"},
    },
    {"id": "i2", "context": ["Bye."], "source": "fact", "references": [], "group": "g", "meta": {}},
]
OUTPUTS = [
    {"item": "i1", "system": "s", "text": "Hello.", "step": None, "meta": {}},
    {"item": "i1", "system": "t", "text": "Good day.", "step": None, "meta": {}},
    {"item": "i2", "system": "s", "text": "So long.", "step": None, "meta": {"n": 1}},
]
RATINGS = [
    {"item": "i1", "system": "s", "rater": "r", "aspect": "quality", "value": 4},
    {"item": "i2", "system": "s", "rater": "r", "aspect": "quality", "value": 2.5},
]
#: In every error about a row that is stored with other content and needs `replace`.
STORED_OTHERWISE = "stored with other content"
COMPARISONS = [{"item": "i1", "system_a": "s", "system_b": "t", "rater": "r", "aspect": "quality", "verdict": "tie"}]
#: A minimal table of `leaderboard.json`.
TABLE: dict[str, Any] = {
    "kind": "systems", "aspect": "quality", "method": "mean", "scale": [1, 5], "extras": {}, "signature": "method:mean",
    "note": "", "n_simulated": 0, "rows": [],
}  # fmt: skip
WHOLE: dict[str, Any] = {
    "dataset.json": DATASET, "items.jsonl": ITEMS, "outputs.jsonl": OUTPUTS, "ratings.jsonl": RATINGS,
    "comparisons.jsonl": COMPARISONS,
}  # fmt: skip


def as_bytes(content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, dict):
        return json.dumps(content).encode()
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content).encode()


def take_in(project: Project, files: dict[str, Any], *, user: Any = None, **options: Any) -> Upload:
    """Imports bytes, rows or an object per file name; returns the finished upload."""
    incoming = [Incoming(name, [as_bytes(content)]) for name, content in files.items()]
    upload = receive_upload(project=project, user=user, files=incoming, send=False, **options)
    assert upload.run is not None
    execute_run(upload.run.pk)
    upload.refresh_from_db()
    staged = settings.STAGING_DIR / f"upload-{upload.pk}.sqlite3"
    assert not staged.exists()
    project.refresh_from_db()
    return upload


def list_errors(upload: Upload) -> list[str]:
    return [str(fault) for fault in upload.faults.all()]


def list_named(upload: Upload) -> list[tuple[str, str, set[str]]]:
    """File and line of each error, its field, and what its message names: quoted names, places in files, numbers."""
    pattern = r"“([^”]*)”|([\w.-]+\.\w+:\d+)|(\d+(?:[.,]\d+)*)"
    return [
        (
            f"{fault.file}:{fault.line}" if fault.line else fault.file,
            fault.field,
            {"".join(found) for found in re.findall(pattern, fault.message)},
        )
        for fault in upload.faults.all()
    ]


def written(project: Project, folder: Path, format: str = "jsonl") -> dict[str, bytes]:
    """The project's dump as {file name: bytes}."""
    folder.mkdir(parents=True, exist_ok=True)
    files = write_folder(project, folder, format, lambda done: None)
    return {file["name"]: (folder / file["name"]).read_bytes() for file in files}


def row_counts(project: Project) -> dict[str, int]:
    counts: dict[str, int] = {}
    for table, _ in canonical.rows(project):
        counts[table] = counts.get(table, 0) + 1
    return counts
