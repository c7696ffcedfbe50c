"""Undo restores the earlier state of the project; it is refused with a list while anything depends on the upload."""

from __future__ import annotations

import pytest

from annotation.models import (
    Aspect,
    Campaign,
    Item,
    Output,
    Rating,
    Reference,
    ReferenceSet,
    System,
    Unit,
    Upload,
)
from annotation.selectors.imported_campaigns import list_imported_campaigns
from annotation.services import hooks
from annotation.services.undo import take_back_upload, undo_upload
from annotation.services.uploads import Incoming, receive_upload
from evalapp.common.errors import Conflict
from evalapp.common.models import AuditEvent
from tests.taking import COMPARISONS, DATASET, ITEMS, OUTPUTS, RATINGS, WHOLE, row_counts, take_in, written

pytestmark = pytest.mark.django_db

BASE = {name: WHOLE[name] for name in ("dataset.json", "items.jsonl", "outputs.jsonl")}


@pytest.fixture
def project(cast):
    return cast.project


def listed(upload) -> list[str]:
    with pytest.raises(Conflict) as refused:
        undo_upload(upload=upload, user=None)
    upload.refresh_from_db()
    assert upload.state == Upload.State.DONE
    return [fault.message for fault in refused.value.faults]


def test_undo_removes_every_row_and_the_description(project, cast, tmp_path):
    before = written(project, tmp_path / "a")
    upload = take_in(project, WHOLE)
    undo_upload(upload=upload, user=cast.owner)
    assert row_counts(project) == {}
    assert not System.objects.exists()
    assert not Aspect.objects.exists()
    assert not Reference.objects.exists()
    project.refresh_from_db()
    assert written(project, tmp_path / "b") == before
    assert AuditEvent.objects.get(verb="upload.undone").detail["removed"]["outputs"] == 3
    with pytest.raises(Conflict):
        undo_upload(upload=upload, user=cast.owner)


def test_undo_restores_replaced_rows(project, tmp_path):
    take_in(project, BASE)
    before = written(project, tmp_path / "a")
    changed = {
        "items.jsonl": [{**ITEMS[0], "references": ["New."], "meta": {}}],
        "outputs.jsonl": [{**OUTPUTS[0], "text": "New.", "meta": {"x": 1}}, {**OUTPUTS[0], "step": 9}],
        "systems.jsonl": [{"id": "s", "kind": "human"}],
        "dataset.json": {**DATASET, "notes": "more", "aspects": [{"name": "quality", "min": 0, "max": 9}]},
    }
    upload = take_in(project, changed, replace=True)
    assert written(project, tmp_path / "b") != before
    undo_upload(upload=upload, user=None)
    project.refresh_from_db()
    assert written(project, tmp_path / "c") == before


def test_refused_once_judgements_depend_on_it(project):
    upload = take_in(project, BASE)
    take_in(project, {"ratings.jsonl": RATINGS})
    assert listed(upload) == ["2 ratings of its outputs", "2 ratings of its aspects"]


def test_refused_once_later_outputs_or_references_depend_on_it(project):
    upload = take_in(project, {"items.jsonl": ITEMS})
    later = take_in(project, {"outputs.jsonl": OUTPUTS})
    written_set = ReferenceSet.objects.create(project=project, name="written")
    Reference.objects.create(set=written_set, item=Item.objects.get(key="i1"), position=0, text="x")
    assert listed(upload) == ["3 outputs for its items", "1 references written for its items"]
    Reference.objects.filter(set=written_set).delete()
    undo_upload(upload=later, user=None)
    undo_upload(upload=upload, user=None)
    assert not Item.objects.exists()


def test_refused_once_downstream_apps_object(project, monkeypatch):
    monkeypatch.setattr(hooks, "_DEPENDANTS", {})
    upload = take_in(project, BASE)
    hooks.register_dependant("scores", lambda *, upload: 12)
    assert listed(upload) == ["12 scores"]


def test_refused_once_a_later_upload_changed_its_rows(project):
    first = take_in(project, BASE)
    second = take_in(project, {"outputs.jsonl": [{**OUTPUTS[0], "text": "New."}]}, replace=True)
    assert listed(first) == ["1 later changes of its rows"]
    third = take_in(project, {"outputs.jsonl": [{**OUTPUTS[0], "text": "Newer."}]}, replace=True)
    assert listed(second) == ["1 later changes of its rows"]
    for upload in (third, second, first):
        undo_upload(upload=upload, user=None)
    assert not Output.objects.exists()


def test_replaced_output_judged_since_stays(project):
    take_in(project, BASE)
    second = take_in(project, {"outputs.jsonl": [{**OUTPUTS[0], "text": "New."}]}, replace=True)
    take_in(project, {"ratings.jsonl": RATINGS[:1]})
    assert listed(second) == ["1 ratings of its outputs"]


def test_system_used_elsewhere_stays(project):
    first = take_in(project, {"items.jsonl": ITEMS})
    second = take_in(project, {"outputs.jsonl": OUTPUTS[:1]})
    take_in(project, {"outputs.jsonl": OUTPUTS[2:]})
    undo_upload(upload=second, user=None)
    assert System.objects.get().upload is None
    assert first.state == Upload.State.DONE


def test_simulated_ratings_count_as_judgements(project):
    upload = take_in(project, BASE)
    take_in(project, {"ratings.jsonl": [{**RATINGS[0], "simulated": True}]})
    assert Rating.objects.get().simulated
    assert listed(upload)[0] == "1 ratings of its outputs"


def test_undo_of_waiting_checked_and_finished_uploads(project, cast):
    waiting = receive_upload(
        project=project, user=None, files=[Incoming("items.jsonl", [b'{"id": "x"}\n'])], send=False
    )
    assert take_back_upload(upload=waiting, user=cast.owner).state == Upload.State.CANCELLED
    checked = take_in(project, BASE, dry_run=True)
    assert take_back_upload(upload=checked, user=cast.owner).state == Upload.State.CANCELLED
    faulty = take_in(project, {"items.jsonl": b""})
    with pytest.raises(Conflict, match="nothing to undo"):
        take_back_upload(upload=faulty, user=cast.owner)


def test_replaced_contexts_and_dialogues_stay_once_judged(project):
    talk = [{"id": "d", "turns": ["Old."]}]
    take_in(project, {**BASE, "dialogues.jsonl": talk})
    changed = {
        "items.jsonl": [{**ITEMS[0], "context": ["Other?"], "references": ["New."]}],
        "dialogues.jsonl": [{"id": "d", "turns": ["New."]}],
    }
    second = take_in(project, changed, replace=True)
    whole = {"dialogue": "d", "rater": "r", "aspect": "quality", "value": 3}
    turing = {**COMPARISONS[0], "system_b": {"reference": 0}}
    take_in(project, {"ratings.jsonl": [RATINGS[0], whole], "comparisons.jsonl": [turing]})
    assert listed(second) == [
        "1 ratings of its dialogues",
        "1 ratings of items that it changed",
        "1 comparisons of items that it changed",
        "1 comparisons with references that it changed",
    ]
    # People do not see an item's group.
    third = take_in(project, {"items.jsonl": [{**changed["items.jsonl"][0], "group": "h"}]}, replace=True)
    undo_upload(upload=third, user=None)
    assert Item.objects.get(key="i1").group == "g"


def test_replaced_output_shown_in_a_campaign_stays(project):
    take_in(project, BASE)
    second = take_in(project, {"outputs.jsonl": [{**OUTPUTS[0], "text": "New."}]}, replace=True)
    output = Output.objects.get(text="New.")
    campaign = Campaign.objects.create(project=project, slug="c", name="C", kind="likert")
    Unit.objects.create(campaign=campaign, item=output.item, output_a=output)
    assert listed(second) == ["1 texts that campaigns show"]


def test_widened_range_stays_while_ratings_need_it(project):
    take_in(project, {"items.jsonl": ITEMS, "outputs.jsonl": OUTPUTS, "ratings.jsonl": RATINGS})
    second = take_in(project, {"ratings.jsonl": [{**RATINGS[0], "rater": "q", "value": 9}]})
    third = take_in(project, {"ratings.jsonl": [{**RATINGS[1], "rater": "q", "value": 8}]})
    assert listed(second) == ["1 ratings outside the former range of its aspects"]
    undo_upload(upload=third, user=None)
    undo_upload(upload=second, user=None)
    assert (Aspect.objects.get().low, Aspect.objects.get().high) == (2.5, 4)


def test_campaign_descriptions_of_the_upload_are_removed(project):
    told = {"campaign": "c", "kind": "likert", "told": {"units": 3}}
    first = take_in(project, {**BASE, "campaigns.jsonl": [told]})
    other = take_in(project, {"campaigns.jsonl": [{**told, "campaign": "d"}]})
    changed = take_in(project, {"campaigns.jsonl": [{**told, "campaign": "d", "told": {"units": 4}}]}, replace=True)
    undo_upload(upload=first, user=None)
    project.refresh_from_db()
    assert list(list_imported_campaigns(project)) == ["d"]
    assert "dataset" not in project.meta
    undo_upload(upload=changed, user=None)
    project.refresh_from_db()
    assert list_imported_campaigns(project)["d"]["told"] == {"units": 3}
    undo_upload(upload=other, user=None)
    project.refresh_from_db()
    assert project.meta == {}
