"""A program with a token, on three real sets: upload the folder's files, follow the run, score, read the leaderboards,
and undo the upload, using only the API. The worker is simulated by executing the queued runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from evalapp.accounts.models import Project
from evalapp.accounts.services import create_token
from evalapp.common.models import Run
from evalapp.common.runner import execute_run

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

# Data set, aspect, numbers of rows (from its README), Pearson of length and of token-f1 (from its table of baselines).
SETS = [
    ("grade_dailydialog", "coherence", {"outputs": 300}, -0.222, 0.091),
    ("union_roc", "reasonable", {"outputs": 400}, -0.116, 0.012),
    ("grade_convai2", "coherence", {"outputs": 600}, -0.043, 0.127),
]


def run_worker() -> None:
    while (number := Run.objects.filter(state=Run.State.QUEUED).values_list("pk", flat=True).first()) is not None:
        execute_run(number)


class Program:
    def __init__(self, secret: str) -> None:
        self.client = Client(headers={"authorization": f"Bearer {secret}"})

    def get(self, path: str, status: int = 200) -> Any:
        response = self.client.get(path)
        assert response.status_code == status, response.content
        return response.json()

    def post(self, path: str, data: Any, status: int = 202) -> Any:
        response = self.client.post(path, data, content_type="application/json")
        assert response.status_code == status, response.content
        return response.json()

    def upload(self, path: str, folder: Path) -> Any:
        files = [file for file in sorted(folder.iterdir()) if file.name.partition(".")[2].startswith("json")]
        response = self.client.post(
            path, {"file": [SimpleUploadedFile(file.name, file.read_bytes()) for file in files]}
        )
        assert response.status_code == 202, response.content
        return response.json()


@pytest.mark.parametrize(("name", "aspect", "rows", "length", "f1"), SETS, ids=[row[0] for row in SETS])
def test_upload_score_rank(cast, shared_data, name, aspect, rows, length, f1):
    slug = cast.project.slug
    Project.objects.filter(pk=cast.project.pk).update(name="Real")
    secret = create_token(user=cast.researcher, name="flow", scopes=["read", "write"], days=1)[1]
    program, base = Program(secret), f"/api/v1/projects/{slug}/"

    created = program.upload(base + "uploads/", shared_data / name)
    assert created["state"] == "received"
    run_worker()
    upload = program.get(f"/api/v1/uploads/{created['id']}/")
    assert upload["state"] == "done", upload["faults"]
    assert {kind: upload["counts"][kind]["added"] for kind in rows} == rows
    assert len(program.get(base + "outputs/?limit=500")["results"]) == min(500, rows["outputs"])

    for evaluator in ("length", "token-f1"):
        run = program.post(base + "runs/", {"kind": "score", "evaluator": evaluator})
        run_worker()
        done = program.get(f"/api/v1/runs/{run['id']}/")
        assert (done["state"], done["result"]["scored"]) == ("succeeded", rows["outputs"])

    systems = program.get(base + f"leaderboards/systems/?aspect={aspect}")["rows"]
    assert [row["value"] for row in systems] == sorted((row["value"] for row in systems), reverse=True)
    table = program.get(base + f"leaderboards/evaluators/?aspect={aspect}")
    pearson = {row["evaluator"]: row["pearson"] for row in table["rows"]}
    assert pearson["length"]["value"] == pytest.approx(length, abs=0.002)
    assert pearson["token-f1"]["value"] == pytest.approx(f1, abs=0.002)
    for name in ("length", "token-f1"):
        assert pearson[name]["low"] < pearson[name]["value"] < pearson[name]["high"]

    # An upload with scores cannot be undone; a stranger's token sees nothing.
    assert program.client.delete(f"/api/v1/uploads/{created['id']}/").status_code == 409
    other = Program(create_token(user=cast.stranger, name="other", scopes=["read"], days=1)[1])
    for path in (base + "outputs/", f"/api/v1/uploads/{created['id']}/", base + "leaderboards/systems/"):
        assert other.client.get(path).status_code == 404
