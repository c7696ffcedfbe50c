"""Sets merged, compared, deleted; dependents are reported and never lost without confirmation."""

from __future__ import annotations

import pytest

from annotation.models import ReferenceSet
from annotation.services.campaigns import close_campaign
from annotation.services.undo import list_dependents
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.models import AuditEvent
from scoring.models import ScoreSet, SelectionTrace
from scoring.selectors.reference_sets import (
    compare_sets,
    difference_page,
    get_set,
    item_page,
    list_sets,
    reference_rows,
)
from scoring.services.reference_sets import delete_set, merge_sets
from scoring.services.scores import apply_evaluator
from tests.factories import make_outputs
from tests.scoring.reference_selection import SeeThrough, fill_references, list_texts, see_through, select_references
from tests.writing import fill_ports, open_task_view, start_constraint, start_writing

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(cast, monkeypatch, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    items = fill_references(cast.project)
    make_outputs(cast.project, items)
    see_through(monkeypatch, cast.project, judge=[SeeThrough("judge")])
    select_references(cast.project, controls=True)
    return cast.project


def test_written_set_names_its_campaign(cast, monkeypatch) -> None:
    fill_ports(monkeypatch)
    campaign = start_constraint(cast, "free")
    (written,) = (row for row in list_sets(cast.project) if not row.is_original)
    assert written.origin == f"written in the campaign {campaign.slug}"


def test_common_start_of_rounds_stays_until_the_campaign_is_closed(cast, monkeypatch) -> None:
    fill_ports(monkeypatch)
    campaign = start_writing(cast, items=1, options={"mode": "rounds", "group_size": 2})
    start = f"{campaign.slug}-start"
    open_task_view(cast.annotator, campaign)
    with pytest.raises(Conflict, match=r"“More replies” .*more-replies-start"):
        delete_set(project=cast.project, name=start)
    close_campaign(user=cast.researcher, campaign=campaign)
    delete_set(project=cast.project, name=start)
    assert not ReferenceSet.objects.filter(name=start).exists()


def test_list_shows_counts_origin_and_users(project, score) -> None:
    score(project, "token-f1", references="chosen")
    rows = {row.name: row for row in list_sets(project)}
    assert list(rows) == ["original", "chosen-random", "chosen-raw", "chosen"]
    assert (rows["original"].n_references, rows["original"].n_items, rows["original"].origin) == (16, 4, "as uploaded")
    assert rows["chosen"].origin == "selected by judge for bleu-star from further references of the items"
    assert rows["chosen-raw"].origin == "initial references of chosen"
    assert rows["chosen-raw"].per_item == 1
    assert [s.evaluator.slug for s in rows["chosen"].score_sets] == ["token-f1"]
    assert set(rows["original"].derived) == {"chosen", "chosen-raw", "chosen-random"}
    assert set(rows["chosen"].derived) == {"chosen-raw", "chosen-random"}


def test_number_of_queries_does_not_grow_with_the_sets(project, django_assert_max_num_queries) -> None:
    for k in range(8):
        merge_sets(project=project, names=["chosen", "chosen-raw"], into=f"more-{k}")
    with django_assert_max_num_queries(6):
        assert len(list_sets(project)) == 12


def test_item_view_with_the_selection_steps(project) -> None:
    found, rows = item_page(get_set(project, "chosen").set, key="k1")
    assert [row.item.key for row in rows] == ["k1"]
    assert found.next is None
    assert rows[0].trace.steps
    assert [r.text for r in rows[0].references] == list_texts(project, "chosen", rows[0].item)
    lines = list(reference_rows(get_set(project, "chosen").set))
    assert lines[0].keys() == {"set", "item", "position", "text", "meta"}
    assert [line["text"] for line in lines] == list_texts(project, "chosen")


def test_two_sets_side_by_side(project) -> None:
    found = compare_sets(project, "chosen-raw", "chosen")
    assert (found.items_both, found.only_first, found.shared) == (4, 0, 4)
    assert found.only_second == found.second.n_references - 4
    assert found.overlap == 4 / found.second.n_references
    _, rows = difference_page(found)
    assert [row.item.key for row in rows] == ["k0", "k1", "k2", "k3"]
    assert rows[0].shared == list_texts(project, "chosen-raw", rows[0].item)
    assert rows[0].only_second == list_texts(project, "chosen", rows[0].item)[1:]
    assert difference_page(compare_sets(project, "chosen", "chosen"))[1] == []
    with pytest.raises(NotThere, match="There are: chosen"):
        compare_sets(project, "chosen", "none")


def test_merging_keeps_each_text_once(project) -> None:
    merge_sets(project=project, names=["chosen-raw", "chosen", "chosen-random"], into="both")
    for item in project.items.all():
        texts = list_texts(project, "both", item)
        assert texts[: len(list_texts(project, "chosen", item))] == list_texts(project, "chosen", item)
        assert len(texts) == len(set(texts))
    assert get_set(project, "both").origin == "merged from chosen-raw, chosen, chosen-random"
    with pytest.raises(Conflict, match="none is overwritten"):
        merge_sets(project=project, names=["chosen", "original"], into="both")
    with pytest.raises(BadInput, match="at least two"):
        merge_sets(project=project, names=["chosen", "chosen"], into="other")


def test_deletion_reports_dependents(project, score) -> None:
    score(project, "token-f1", references="chosen")
    with pytest.raises(Conflict, match=r"8 scores .*token-f1 .*chosen"):
        delete_set(project=project, name="chosen")
    with pytest.raises(Conflict, match="Undo the upload"):
        delete_set(project=project, name="original")
    run = apply_evaluator(project=project, evaluator="chrf", references="chosen", send=False)
    with pytest.raises(Conflict, match=f"Run {run.pk}"):
        delete_set(project=project, name="chosen", with_scores=True)
    run.delete()
    delete_set(project=project, name="chosen", with_scores=True)
    assert not ScoreSet.objects.exists()
    assert not SelectionTrace.objects.exists()
    assert not ReferenceSet.objects.filter(name="chosen").exists()
    assert AuditEvent.objects.get(verb="references.deleted").detail["n_scores"] == 8


def test_undo_of_an_upload_with_selected_references_needs_confirmation(project) -> None:
    from annotation.models import Upload

    upload = Upload.objects.create(project=project, title="items.jsonl", files=[])
    project.items.filter(key="k0").update(upload=upload)
    item = project.items.get(key="k0")
    expected = sum(len(list_texts(project, name, item)) for name in ("chosen", "chosen-raw", "chosen-random"))
    found = [str(fault) for fault in list_dependents(upload)]
    assert f"{expected} references written for its items" in found
