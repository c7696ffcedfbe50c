"""The API of corpora and candidates."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from annotation.models import Dialogue, Item
from retrieval.models import Corpus
from tests.retrieval.corpora import PAIRS, as_jsonl, execute, make_corpus

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("corpora_dir")]
ROOT = "/api/v1/projects/alpha/"


@pytest.fixture
def api(cast) -> APIClient:
    client = APIClient()
    client.force_authenticate(cast.researcher)
    return client


def test_corpus_from_a_file(api):
    file = SimpleUploadedFile("corpus.jsonl", as_jsonl(PAIRS))
    made = api.post(f"{ROOT}corpora/", {"name": "talk", "licence": "CC0", "file": file}, format="multipart")
    assert made.status_code == 202, made.json()
    assert made.json()["state"] == "building"
    assert made.json()["run"].startswith("http://testserver/api/v1/runs/")
    execute(Corpus.objects.get())
    found = api.get(made.headers["Location"]).json()
    assert (found["state"], found["count"], found["condition"], found["licence"]) == ("ready", 5, "ready", "CC0")
    assert [row["name"] for row in api.get(f"{ROOT}corpora/").json()["results"]] == ["talk"]
    more = SimpleUploadedFile("more.jsonl", b"{}\n")
    assert api.post(f"{ROOT}corpora/talk/parts/", {"file": more}, format="multipart").status_code == 202
    execute(Corpus.objects.get())
    parts = api.get(f"{ROOT}corpora/talk/parts/").json()["results"]
    assert [(part["state"], part["fault_count"]) for part in parts] == [("refused", 2), ("stored", 0)]
    assert parts[0]["faults"][0] == {
        "message": "query is missing.", "field": "query", "file": "more.jsonl", "line": 1,
    }  # fmt: skip
    assert api.post(f"{ROOT}runs/", {"kind": "index", "corpus": "talk"}, format="json").status_code == 202
    assert api.delete(f"{ROOT}corpora/talk/").status_code == 204
    assert api.get(f"{ROOT}corpora/talk/").status_code == 404


def test_corpus_from_rows(api, cast):
    nothing = api.post(f"{ROOT}corpora/", {"name": "own", "derive": "dialogues"}, format="json")
    assert nothing.status_code == 400
    assert not Corpus.objects.exists()
    Dialogue.objects.create(project=cast.project, key="d", turns=["Hi!", "Hello."])
    assert api.post(f"{ROOT}corpora/", {"name": "own", "derive": "dialogues"}, format="json").status_code == 202
    assert execute(Corpus.objects.get()).result["pairs"] == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "talk"}, 400),
        ({"name": "talk", "derive": "everything"}, 400),
        ({"name": "talk", "derive": "dialogues", "language": 3}, 400),
        ({"name": "talk", "derive": "dialogues", "shared": "maybe"}, 400),
        ({"name": "talk", "derive": "dialogues", "shared": 0}, 400),
        ({"name": "talk", "derive": "dialogues", "shared": True}, 403),
        ({"name": "talk", "derive": "dialogues", "license": "CC0"}, 400),
        (["talk"], 400),
    ],
)
def test_invalid_requests(api, body, status):
    assert api.post(f"{ROOT}corpora/", body, format="json").status_code == status
    assert not Corpus.objects.exists()


def test_candidates(api, cast):
    make_corpus(cast.project, source="talk of tests")
    found = api.get(f"{ROOT}candidates/", {"corpus": "talk", "q": "Where are you going?", "k": 2}).json()
    assert found["note"] == ""
    assert found["results"][0] == {
        "text": "To the lake.",
        "query": "Where are you going?",
        "jaccard": 1.0,
        "source": {"corpus": "talk", "row": 0, "licence": "", "origin": "talk of tests"},
    }
    assert len(found["results"]) == 2
    words = api.get(f"{ROOT}candidates/", {"corpus": "talk", "q": "weather", "by": "words"}).json()
    assert [row["text"] for row in words["results"]] == ["Indeed."]
    Item.objects.create(project=cast.project, key="i", group="i", context=["Nice weather!", "Are they late?"])
    last = api.get(f"{ROOT}candidates/", {"corpus": "talk", "item": "i", "turns": 1}).json()
    assert last["results"][0]["text"] == "They always are."


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"corpus": "none", "q": "a"}, 404),
        ({"corpus": "talk"}, 400),
        ({"corpus": "talk", "q": "a", "k": "0"}, 400),
        ({"corpus": "talk", "q": "a", "by": "magic"}, 400),
        ({"corpus": "talk", "item": "nothing"}, 404),
        ({"corpus": "talk\0", "q": "x"}, 400),
        ({"corpus": "talk", "item": "i\0"}, 400),
    ],
)
def test_invalid_queries(api, cast, query, status):
    make_corpus(cast.project)
    assert api.get(f"{ROOT}candidates/", query).status_code == status
