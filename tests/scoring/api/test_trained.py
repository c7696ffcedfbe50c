"""Training, artefacts and online scores through the API."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from evalapp.accounts.services import create_token
from evalapp.common.errors import Busy, TooMany, Unavailable
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.models import Evaluator
from scoring.selectors.training import artefact_folder, list_files
from scoring.services import online
from scoring.services.scores import apply_evaluator
from tests.cast import join
from tests.scoring.training import train

pytestmark = pytest.mark.django_db
BASE = "/api/v1/projects/alpha/"


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> None:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"


def client(user) -> APIClient:
    found = APIClient()
    found.force_login(user)  # a real session: bodies above 64 KB need one
    return found


def test_training_is_requested_followed_and_shown(toy):
    api = client(toy.researcher)
    options = {"evaluator": "toy", "options": {"frozen": True, "epochs": 2}, "folds": 2, "name": "mine"}
    checked = api.post(f"{BASE}runs/", {"kind": "plan", **options}, format="json")
    assert checked.status_code == 202, checked.content
    assert execute_run(checked.json()["id"]).result["models"] == 2
    asked = api.post(f"{BASE}runs/", {"kind": "train", **options}, format="json")
    assert (asked.status_code, asked.json()["queue"]) == (202, "train")
    execute_run(asked.json()["id"])
    run = api.get(f"/api/v1/runs/{asked.json()['id']}/").json()
    assert (run["state"], run["result"]["evaluator"]) == ("succeeded", "mine")
    rows = api.get(f"{BASE}evaluators/trained/").json()["results"]
    assert [(row["slug"], row["name"], row["folds"], row["aspects"]) for row in rows] == [
        ("mine", "toy", 2, ["quality"])
    ]
    one = api.get(f"{BASE}evaluators/trained/mine/").json()
    assert one["models"][0]["examples"] == {"rated outputs": 10}
    assert "# toy" in one["card"]
    url = next(file["url"] for file in one["files"] if file["name"] == "fold-1/config.json")
    content = b"".join(api.get(url).streaming_content)
    assert content == (artefact_folder(Evaluator.objects.get()) / "fold-1" / "config.json").read_bytes()
    assert api.get(f"{BASE}evaluators/trained/mine/files/../../../evalapp.sqlite3").status_code == 404
    scored = api.post(f"{BASE}runs/", {"kind": "score", "evaluator": "mine"}, format="json")
    execute_run(scored.json()["id"])
    first = api.get(f"{BASE}scores/?evaluator=mine").json()["results"][0]
    assert first["in_training"] is False
    assert first["signature"].startswith("toy|")
    assert api.delete(f"{BASE}evaluators/trained/mine/").status_code == 204
    assert api.get(f"{BASE}evaluators/trained/mine/").status_code == 404


def test_invalid_options_are_problems_with_their_fields(toy):
    api = client(toy.researcher)
    answer = api.post(f"{BASE}runs/", {"kind": "train", "evaluator": "toy", "folds": "x", "pace": 1}, format="json")
    assert answer.status_code == 400
    assert {row["field"] for row in answer.json()["errors"]} == {"folds", "pace"}
    unknown = api.post(f"{BASE}runs/", {"kind": "train", "evaluator": "tay"}, format="json")
    assert unknown.status_code == 404
    assert re.search(r"\btoy\b", unknown.json()["detail"])
    assert client(toy.viewer).post(f"{BASE}runs/", {"kind": "train", "evaluator": "toy"}).status_code == 403


def test_catalogue_names_learned_evaluators(toy):
    rows = {row["name"]: row for row in client(toy.viewer).get("/api/v1/evaluators/").json()["results"]}
    assert rows["toy"]["learns"] is True
    assert rows["toy"]["train_needs"] == ["ratings"]
    assert "epochs" in {option["name"] for option in rows["toy"]["train_options"]}
    assert rows["toy"]["profile_defaults"]["recommended"]["frozen"] is False
    assert rows["chrf"]["learns"] is False


def test_evaluator_is_imported(toy):
    evaluator = train(toy.project, folds=1)
    folder = artefact_folder(evaluator)
    files = [SimpleUploadedFile(file.name, (folder / file.name).read_bytes()) for file in list_files(evaluator)]
    api = client(toy.researcher)
    answer = api.post(f"{BASE}evaluators/trained/", {"name": "copy", "files": files}, format="multipart")
    assert answer.status_code == 202, answer.content
    assert execute_run(answer.json()["id"]).state == Run.State.SUCCEEDED
    assert Evaluator.objects.get(slug="copy").signature == evaluator.signature
    wrong = api.post(f"{BASE}evaluators/trained/", {"files": SimpleUploadedFile("a.zip", b"PK")}, format="multipart")
    assert wrong.status_code == 400
    assert [row["field"] for row in wrong.json()["errors"]][:1] == ["files"]
    assert "a.zip" in wrong.json()["errors"][0]["message"]
    misspelt = api.post(f"{BASE}evaluators/trained/", {"nmae": "copy", "files": files}, format="multipart")
    assert (misspelt.status_code, misspelt.json()["errors"][0]["field"]) == (400, "nmae")


def test_online_scores_come_from_the_live_worker(toy, monkeypatch):
    evaluator = train(toy.project, folds=1, name="mine")
    asked: list[dict] = []
    askers: list[str] = []

    def answer(request, asker):
        askers.append(asker)
        asked.append(dict(request))
        return {"signature": "s", "scores": [0.5, None], "reasons": ["", "no references"], "notes": []}

    monkeypatch.setattr(online, "ask_live", answer)
    pairs = [{"text": "a", "context": ["b"]}, {"text": "", "references": []}]
    api = client(toy.viewer)
    found = api.post("/api/v1/evaluators/mine/score/", {"pairs": pairs}, format="json")
    assert (found.status_code, found.json()["scores"]) == (200, [0.5, None])
    assert asked[0]["source"] == {"folder": evaluator.folder, "slug": "mine"}
    assert asked[0]["pairs"] == pairs
    assert askers == [str(toy.viewer.pk)]
    assert api.post("/api/v1/evaluators/chrf/score/", {"pairs": pairs}, format="json").status_code == 200
    assert asked[1]["source"] == {"name": "chrf"}
    compared = {"pairs": [{"a": "one", "b": "two", "context": ["c"]}], "options": {}}
    verdict = {
        "signature": "s", "verdicts": [1], "probabilities": [{"better": 0.5, "tie": 0.25, "worse": 0.25}],
        "swap_consistency": 1.0, "notes": [],
    }  # fmt: skip
    monkeypatch.setattr(online, "ask_live", lambda request, asker: asked.append(dict(request)) or verdict)
    found = api.post("/api/v1/evaluators/mine/compare/", compared, format="json")
    assert (found.status_code, found.json()) == (200, verdict)
    assert (asked[-1]["kind"], asked[-1]["pairs"]) == ("compare", compared["pairs"])
    many = {"pairs": compared["pairs"] * 65}
    assert api.post("/api/v1/evaluators/mine/compare/", many, format="json").status_code == 400
    reliability = {"context": ["a"], "references": ["b"]}
    monkeypatch.setattr(online, "ask_live", lambda request, asker: {"signature": "s", "reliability": 0.25})
    found = api.post("/api/v1/evaluators/mine/reliability/", reliability, format="json")
    assert found.json() == {"signature": "s", "reliability": 0.25}


@pytest.mark.parametrize(
    ("what", "body", "fields"),
    [
        ("score", {"pairs": [{"text": "x"}], "aspect": "beauty"}, {"aspect"}),
        (
            "score",
            {"pairs": [{"text": 5, "reference": ["5"]}], "opts": {}},
            {"opts", "pairs.0.reference", "pairs.0.text"},
        ),
        ("score", {"pairs": [{"text": "x", "references": [5]}]}, {"pairs.0.references.0"}),
        ("compare", {"pairs": [{"a": "x", "b": "y", "text": "x"}], "option": {}}, {"option", "pairs.0.text"}),
        ("reliability", {"context": [], "references": ["x"], "aspect": "beauty", "pairs": []}, {"aspect", "pairs"}),
    ],
)
def test_unknown_members_of_online_scores_are_refused_with_their_path(cast, monkeypatch, what, body, fields):
    monkeypatch.setattr(online, "ask_live", lambda request, asker: pytest.fail("it was asked"))
    refused = client(cast.viewer).post(f"/api/v1/evaluators/chrf/{what}/", body, format="json")
    assert refused.status_code == 400
    errors = {row["field"]: row["message"] for row in refused.json()["errors"]}
    assert set(errors) == fields
    if "aspect" in errors:
        assert '"options": {"aspect"' in errors["aspect"]


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("reference-sets/", {"name": "both", "merge": ["a", "b"], "into": "c"}),
        ("rater-filters/", {"name": "slow", "raters": ["r"], "reason": "x", "into": "c"}),
        ("snapshots/", {"board": "systems", "into": "c"}),
    ],
)
def test_other_bodies_name_unknown_members(cast, address, body):
    refused = client(cast.researcher).post(f"{BASE}{address}", body, format="json")
    assert (refused.status_code, [row["field"] for row in refused.json()["errors"]]) == (400, ["into"])


def test_busy_worker_does_not_count_as_down(cast, monkeypatch):
    def busy(request, asker):
        raise Busy("The worker is loading sbr. Try again in 10 s.", wait=10)

    monkeypatch.setattr(online, "ask_live", busy)
    found = client(cast.viewer).post("/api/v1/evaluators/chrf/score/", {"pairs": [{"text": "a"}]}, format="json")
    assert (found.status_code, found.headers["Retry-After"]) == (503, "10")
    assert found.json()["title"] == str(Busy.title)
    assert found.json()["type"].endswith("#busy")


def test_permission_to_request_online_scores(toy, monkeypatch):
    train(toy.project, folds=1, name="mine")
    monkeypatch.setattr(
        online, "ask_live", lambda request, asker: {"signature": "", "scores": [1.0], "reasons": [""], "notes": []}
    )
    body = {"pairs": [{"text": "a"}]}

    def status(user, name: str, query: str = "") -> int:
        return client(user).post(f"/api/v1/evaluators/{name}/score/{query}", body, format="json").status_code

    assert APIClient().post("/api/v1/evaluators/chrf/score/", body, format="json").status_code == 401
    assert (status(toy.stranger, "chrf"), status(toy.stranger, "mine")) == (200, 404)
    assert status(toy.annotator, "mine") == 404
    assert status(toy.viewer, "nothing") == 404
    assert (status(toy.viewer, "mine", "?project=alpha"), status(toy.viewer, "toy")) == (200, 400)
    join(toy.foreign, toy.viewer, "viewer")
    original = Evaluator.objects.get(slug="mine")
    Evaluator.objects.create(project=toy.foreign, slug="mine", name="toy", kind="trained", folder=original.folder)
    assert (status(toy.viewer, "mine"), status(toy.viewer, "mine", "?project=alpha-foreign")) == (404, 200)
    _, secret = create_token(user=toy.annotator, name="t", scopes=["annotate"])
    judging = APIClient(headers={"Authorization": f"Bearer {secret}"})
    assert judging.post("/api/v1/evaluators/chrf/score/", body, format="json").status_code == 403


def test_impossible_requests_are_explained(toy, monkeypatch):
    api = client(toy.viewer)

    def post(body: dict, name: str = "chrf"):
        return api.post(f"/api/v1/evaluators/{name}/score/", body, format="json")

    assert post({}).status_code == 400
    assert post({"pairs": []}).status_code == 400
    assert post({"pairs": [{"text": "a"}] * 65}).status_code == 400
    assert post({"pairs": [{"context": ["a"]}]}).json()["errors"]
    assert post({"pairs": [{"text": "a"}], "options": {"pace": 1}}).status_code == 400
    assert (
        "setting ENCODERS"
        in post({"pairs": [{"text": "a"}], "options": {"encoder": "/x"}}, "bertscore").json()["detail"]
    )

    # One text with a thousand references, and many long texts.
    costly = post({"pairs": [{"text": "a" * 300, "references": ["b"] * 1000}]})
    assert (costly.status_code, costly.json()["errors"][0]["field"]) == (400, "pairs")
    assert "301,000" in costly.json()["errors"][0]["message"]
    costly = post({"pairs": [{"text": "a" * 40_000}] * 64})
    assert "2,560,000" in costly.json()["errors"][0]["message"]
    many = api.post(
        "/api/v1/evaluators/mine/compare/", {"pairs": [{"a": "a", "b": "b", "context": ["c" * 150_000]}]}, format="json"
    )
    assert "300,002" in many.json()["errors"][0]["message"]
    many = api.post(
        "/api/v1/evaluators/mine/reliability/", {"context": ["c" * 300], "references": ["r"] * 1000}, format="json"
    )
    assert "301,000" in str(many.json()["errors"])

    def busy(request, asker):
        raise TooMany("8 of your requests wait.", wait=1)

    monkeypatch.setattr(online, "ask_live", busy)
    answer = post({"pairs": [{"text": "a"}]})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")

    def down(request, asker):
        raise Unavailable("No worker serves the queue live.")

    monkeypatch.setattr(online, "ask_live", down)
    answer = post({"pairs": [{"text": "a"}]})
    assert answer.status_code == 503
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert answer.headers["Retry-After"] == "5"
    assert apply_evaluator(project=toy.project, evaluator="length", send=False).state == "queued"


def test_evaluator_without_its_folder_is_listed(cast):
    """As after an import of scores: a row, no record."""
    kind, state = Evaluator.Kind.TRAINED, Evaluator.State.DAMAGED
    Evaluator.objects.create(project=cast.project, slug="ream-1", name="ream", kind=kind, state=state, damage="away")
    api = client(cast.viewer)
    (row,) = api.get(f"{BASE}evaluators/trained/").json()["results"]
    assert (row["slug"], row["state"], row["folds"], row["aspects"]) == ("ream-1", "damaged", 0, [])
    one = api.get(f"{BASE}evaluators/trained/ream-1/").json()
    assert (one["models"], one["encoder"], one["files"], one["damage"]) == ([], None, [], "away")
