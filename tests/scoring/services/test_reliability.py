"""The hook through which a submitted text gets its score; the worker is simulated."""

from __future__ import annotations

import pytest

from annotation.models import Item, Upload, UploadChange
from annotation.services import hooks
from evalapp.common.errors import BadInput, Unavailable
from scoring.models import Evaluator
from scoring.services import reliability
from scoring.services.reliability import list_evaluators, predict_reliability
from tests.factories import make_items
from tests.scoring.training import make_trained

SETS = [("one",), ("one", "two")]


@pytest.fixture
def asked(monkeypatch):
    """The requests sent to the worker, which answers .25 and .5."""
    found: list = []

    def answer(request, **rest):
        found.append((request, rest))
        return {"signature": "ream|x", "values": [0.25, 0.5]}

    monkeypatch.setattr(reliability, "ask_live", answer)
    return found


@pytest.fixture
def project(cast, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    make_trained(cast.project, "rater", "ream")
    return cast.project


def test_set_is_rated_in_the_form_used_in_training(project, asked):
    item = make_items(project, 1)[0]
    item.group = "g7"
    found = hooks.predict_reliability(project=project, evaluator="rater", item=item, sets=SETS, timeout=0.4)
    assert found == hooks.Reliability((0.25, 0.5), "ream|x")
    request, rest = asked[0]
    assert rest == {"timeout": 0.4}
    told = {"context": item.context, "source": item.source, "key": item.key, "group": "g7"}
    assert request["item"] == {**told, "is_own": False, "beside": []}
    assert request["sets"] == [["one"], ["one", "two"]]
    assert request["source"]["slug"] == "rater"


def test_locally_trained_evaluator_is_warned_of_known_items(project, asked):
    row = Evaluator.objects.get(slug="rater")
    row.record = {**row.record, "choice": {"references": "original"}}
    row.save()
    item, moved, replaced, elsewhere = make_items(project, 4)
    Item.objects.exclude(pk=elsewhere.pk).update(group="together")
    item.refresh_from_db()
    hooks.predict_reliability(project=project, evaluator="rater", item=item, sets=SETS)
    assert (asked[0][0]["item"]["is_own"], asked[0][0]["item"]["beside"]) == (True, [])
    # Only an upload moves items; the worker knows which of the changed ones were training data.
    upload = Upload.objects.create(project=project)
    for row in (item, moved, elsewhere):
        UploadChange.objects.create(upload=upload, table="items", row=row.pk, before={"group": "before"})
    UploadChange.objects.create(upload=upload, table="outputs", row=replaced.pk, before={})
    hooks.predict_reliability(project=project, evaluator="rater", item=item, sets=SETS)
    assert asked[1][0]["item"]["beside"] == [moved.key]


def test_only_complete_set_rating_evaluators_can_be_chosen(project):
    make_trained(project, "other", "maude")
    damaged = make_trained(project, "broken", "ream")
    damaged.state, damaged.damage = "damaged", "its weights changed"
    damaged.save()
    found = hooks.list_reliability_evaluators(project=project)
    assert [slug for slug, _ in found] == ["rater"]
    assert list_evaluators(project=project) == found


@pytest.mark.parametrize(
    ("slug", "note"),
    [
        ("none", "there is no evaluator “none”. Available: rater."),
        ("", "no evaluator is selected. Available: rater."),
        ("other", "other was trained as maude; only ream"),
    ],
)
def test_without_such_an_evaluator_there_is_a_note(project, asked, slug, note):
    make_trained(project, "other", "maude")
    item = make_items(project, 1)[0]
    found = predict_reliability(project=project, evaluator=slug, item=item, sets=SETS)
    assert found.values == (None, None)
    assert found.note.startswith(f"Score not available: {note}")
    assert asked == []


@pytest.mark.parametrize("error", [Unavailable("No worker is there."), BadInput("No worker is there.")])
def test_unavailable_worker_gives_a_note(project, monkeypatch, error):
    def down(request, **rest):
        raise error

    monkeypatch.setattr(reliability, "ask_live", down)
    item = make_items(project, 1)[0]
    found = predict_reliability(project=project, evaluator="rater", item=item, sets=SETS)
    assert found == hooks.Reliability((None, None), "", "Score not available: no worker is there.")
