"""A program with a token, on three real sets: upload the folder's files, follow the run, score, read the leaderboards,
undo the upload. Only addresses of the API; the worker is simulated by executing the queued runs."""

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

# set, aspect, rows (the set's README), Pearson of length and of token-f1 (its table of baselines) to within .002
SETS = [
    ("grade_dailydialog", "coherence", {"outputs": 300}, -0.222, 0.091),
    ("union_roc", "reasonable", {"outputs": 400}, -0.116, 0.012),
    ("grade_convai2", "coherence", {"outputs": 600}, -0.043, 0.127),
]


def worker() -> None:
    while (number := Run.objects.filter(state=Run.State.QUEUED).values_list("pk", flat=True).first()) is not None:
        execute_run(number)


class Program:
    def __init__(self, secret: str) -> None:
        self.client = Client(headers={"authorization": f"Bearer {secret}"})

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == status, answer.content
        return answer.json()

    def post(self, path: str, data: Any, status: int = 202) -> Any:
        answer = self.client.post(path, data, content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json()

    def upload(self, path: str, folder: Path) -> Any:
        files = [file for file in sorted(folder.iterdir()) if file.name.partition(".")[2].startswith("json")]
        answer = self.client.post(path, {"file": [SimpleUploadedFile(file.name, file.read_bytes()) for file in files]})
        assert answer.status_code == 202, answer.content
        return answer.json()


@pytest.mark.parametrize(("name", "aspect", "rows", "length", "f1"), SETS, ids=[row[0] for row in SETS])
def test_upload_score_rank(cast, shared_data, name, aspect, rows, length, f1):
    slug = cast.project.slug
    Project.objects.filter(pk=cast.project.pk).update(name="Real")
    secret = create_token(user=cast.researcher, name="flow", scopes=["read", "write"], days=1)[1]
    program, here = Program(secret), f"/api/v1/projects/{slug}/"

    made = program.upload(here + "uploads/", shared_data / name)
    assert made["state"] == "received"
    worker()
    upload = program.get(f"/api/v1/uploads/{made['id']}/")
    assert upload["state"] == "done", upload["faults"]
    assert {kind: upload["counts"][kind]["added"] for kind in rows} == rows
    assert len(program.get(here + "outputs/?limit=500")["results"]) == min(500, rows["outputs"])

    for evaluator in ("length", "token-f1"):
        run = program.post(here + "runs/", {"kind": "score", "evaluator": evaluator})
        worker()
        done = program.get(f"/api/v1/runs/{run['id']}/")
        assert (done["state"], done["result"]["scored"]) == ("succeeded", rows["outputs"])

    systems = program.get(here + f"leaderboards/systems/?aspect={aspect}")["rows"]
    assert [row["value"] for row in systems] == sorted((row["value"] for row in systems), reverse=True)
    table = program.get(here + f"leaderboards/evaluators/?aspect={aspect}")
    found = {row["evaluator"]: row["pearson"] for row in table["rows"]}
    assert found["length"]["value"] == pytest.approx(length, abs=0.002)
    assert found["token-f1"]["value"] == pytest.approx(f1, abs=0.002)
    assert all(found[k]["low"] < found[k]["value"] < found[k]["high"] for k in ("length", "token-f1"))

    # An upload with scores cannot be undone; a stranger's token sees nothing.
    assert program.client.delete(f"/api/v1/uploads/{made['id']}/").status_code == 409
    other = Program(create_token(user=cast.stranger, name="other", scopes=["read"], days=1)[1])
    for path in (here + "outputs/", f"/api/v1/uploads/{made['id']}/", here + "leaderboards/systems/"):
        assert other.client.get(path).status_code == 404
