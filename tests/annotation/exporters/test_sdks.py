"""Exported tasks and records pass the checks of the programs' own SDKs, in environments that the tests install."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path

import pytest

from tests.annotation.exporters.test_layouts import export, project  # noqa: F401 - a fixture
from tests.evalapp.test_installed import run_uv

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

#: The SDK checks tasks and annotations against the labelling configuration, as its server does.
LABEL_STUDIO = """
import copy, json, sys
from pathlib import Path
from label_studio_sdk.label_interface import LabelInterface

folder, counts = Path(sys.argv[1]), {}
for kind in ("rating", "comparison"):
    interface = LabelInterface((folder / f"{kind}.xml").read_text(encoding="utf-8"))
    interface.validate()
    tasks = json.loads((folder / f"{kind}.json").read_text(encoding="utf-8"))
    annotations = [one for task in tasks for one in task["annotations"]]
    right = [interface.validate_task({"data": task["data"]}) for task in tasks]
    right += [interface.validate_annotation(one) for one in annotations]
    wrong = copy.deepcopy(annotations[0])
    wrong["result"][0]["from_name"] = "other"
    counts[kind] = [len(tasks), len(annotations), all(right), interface.validate_annotation(wrong)]
print(json.dumps(counts))
"""
#: The SDK asks a server for a client, and checks settings and records before it sends them.
ARGILLA = """
import json, sys
from pathlib import Path
from unittest import mock
import argilla
from argilla.records._io import JsonIO

argilla.Argilla._default_client = mock.MagicMock()
folder, counts = Path(sys.argv[1]), {}
for kind in ("rating", "comparison"):
    settings = argilla.Settings.from_json(folder / f"{kind}.settings.json")
    settings.validate()
    dataset = argilla.Dataset(name=kind, settings=settings)
    records = JsonIO._records_from_json(folder / f"{kind}.records.json")
    models = dataset.records._ingest_records(records)
    questions = {one.name for one in settings.questions}
    suggestions = [one for model in models for one in model.suggestions]
    fields = {one.name for one in settings.fields}
    is_known = all(model.fields.keys() <= fields for model in models)
    is_asked = all(one.question_name in questions for one in suggestions)
    counts[kind] = [len(models), len(suggestions), is_known, is_asked]
print(json.dumps(counts))
"""


def run_check(tmp_path: Path, packages: list[str], code: str, folder: Path) -> dict[str, list[object]]:
    """The result of a check in a new environment with the packages."""
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    run_uv("pip", "install", "--quiet", "--python", python, *packages)
    done = subprocess.run([python, "-c", code, folder], capture_output=True, text=True, timeout=120, env={})
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[object]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_label_studio_accepts_tasks_and_annotations(project, tmp_path):  # noqa: F811
    folder = export(project, tmp_path / "out", "label-studio")
    found = run_check(tmp_path, ["label-studio-sdk==2.1.2"], LABEL_STUDIO, folder)
    # Tasks, annotations, whether all are right, and whether one for another control is.
    assert found == {"rating": [6, 7, True, False], "comparison": [3, 5, True, False]}


def test_argilla_accepts_settings_and_records(project, tmp_path):  # noqa: F811
    folder = export(project, tmp_path / "out", "argilla")
    # Argilla 2.8 imports requests without requiring it.
    found = run_check(tmp_path, ["argilla==2.8.0", "requests==2.32.5"], ARGILLA, folder)
    assert found == {"rating": [6, 5, True, True], "comparison": [3, 3, True, True]}
