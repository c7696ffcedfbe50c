"""Selecting references as a run: which are chosen, by which model, from which candidates; all or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.models import Reference, ReferenceSet
from annotation.services.hooks import Candidate, Candidates
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent, Run
from evalapp.common.queue import retry_run
from evalapp.common.runner import RunCancelled, execute_run
from scoring.models import SelectionTrace
from scoring.pipelines import reference_selection as pipeline
from scoring.pipelines.shared import work_folder
from scoring.services.reference_selection import ReferenceSelection, start_reference_selection
from tests.factories import make_outputs
from tests.scoring.reference_selection import (
    SeeThrough,
    fill_references,
    list_texts,
    preview,
    see_through,
    select_references,
    worth,
)
from tests.writing import replace_hooks

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(cast, monkeypatch, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    fill_references(cast.project)
    see_through(
        monkeypatch, cast.project, judge=[SeeThrough("judge")], second=[SeeThrough("second", skip="de")],
        folds=[SeeThrough("one", frozenset({"g0", "g1"})), SeeThrough("two", frozenset({"g2"}))],
    )  # fmt: skip
    return cast.project


def test_helpful_withheld_references_are_taken_and_reported(project) -> None:
    run = select_references(project, controls=True)
    assert run.state == Run.State.SUCCEEDED, run.error
    for item in project.items.all():
        texts = list_texts(project, "chosen", item)
        assert worth(texts) == 0.5  # all five available letters
        assert texts[0] == list_texts(project, "chosen-raw", item)[0]
        assert len(list_texts(project, "chosen-random", item)) == len(texts)
        trace = SelectionTrace.objects.get(set__name="chosen", item=item)
        assert trace.after == 0.5
        assert trace.before == worth(texts[:1])
        assert [step["candidate"] for step in trace.steps if step["accepted"]] == texts[1:]
    reference = Reference.objects.filter(set__name="chosen", position=1).first()
    assert reference.meta["evaluator"] == "judge"
    assert reference.meta["gain"] > 0
    assert reference.meta["source"] == {"kind": "withheld"}
    made = ReferenceSet.objects.get(project=project, name="chosen")
    assert made.meta["counts"]["items"] == 4
    assert made.meta["metrics"] == ["bleu-star"]
    assert run.result["sets"] == ["chosen", "chosen-raw", "chosen-random"]
    assert AuditEvent.objects.filter(verb="references.stored").count() == 3


def test_selection_options(project) -> None:
    select_references(project, max=2)
    select_references(project, into="greedy", max=2, greedy=True)
    select_references(project, into="proud", min_gain=0.15)
    select_references(project, into="few", items=("k1",))
    select_references(project, into="sampled", sample=3)
    item = project.items.get(key="k0")
    assert len(list_texts(project, "chosen", item)) == 2
    assert list_texts(project, "greedy", item)[1] in ("d e", "a b")
    assert all(step["after"] - step["before"] > 0.15 for t in SelectionTrace.objects.filter(set__name="proud")
               for step in t.steps if step["accepted"])  # fmt: skip
    assert Reference.objects.filter(set__name="few").values("item").distinct().count() == 1
    assert Reference.objects.filter(set__name="sampled").values("item").distinct().count() == 3


def test_each_item_is_judged_by_a_model_that_did_not_see_its_group(project) -> None:
    run = select_references(project, evaluator="folds")
    seen = {t.item.key: t.in_training for t in SelectionTrace.objects.select_related("item")}
    assert not any(seen.values())
    assert run.result["in_training"] == 0
    judge = pipeline.Selector(project.evaluators.get(slug="folds"))
    assert judge.members[1].asked == ["k0", "k1"]
    assert judge.members[0].asked == ["k2", "k3"]


def test_training_items_are_reported(project, monkeypatch) -> None:
    everything = frozenset({"g0", "g1", "g2", "g3"})
    monkeypatch.setattr(pipeline, "list_members", lambda _found: [SeeThrough("judge", everything)])
    run = select_references(project)
    assert run.result["in_training"] == 4
    assert "trained on" in ReferenceSet.objects.get(name="chosen").meta["notes"][0]


def test_mix_is_the_union_of_two(project) -> None:
    select_references(project, evaluator="second", into="alone")
    run = select_references(project, evaluator="second", mix="judge")
    item = project.items.get(key="k0")
    assert set(list_texts(project, "alone", item)) < set(list_texts(project, "chosen", item))
    assert {step["evaluator"] for step in SelectionTrace.objects.get(set__name="chosen", item=item).steps} == {
        "second", "judge",
    }  # fmt: skip
    assert run.state == Run.State.SUCCEEDED


def test_reliability_of_a_mix_is_that_of_the_whole_set(project) -> None:
    """As rated by the first of the two, including the second one's additions."""
    run = select_references(project, evaluator="judge", mix="second", max=2)
    whole = {item.pk: list_texts(project, "chosen", item) for item in project.items.all()}
    assert max(len(texts) for texts in whole.values()) > 2
    told = dict(SelectionTrace.objects.filter(set__name="chosen").values_list("item", "after"))
    assert told == {pk: worth(texts) for pk, texts in whole.items()}
    assert run.result["mean_after"] == pytest.approx(sum(told.values()) / len(told))


def test_outputs_as_candidates_are_marked(project) -> None:
    make_outputs(project, list(project.items.all()), ("sys-a", "sys-b"))
    run = select_references(project, candidates="outputs", systems=("sys-a",))
    made = ReferenceSet.objects.get(name="chosen")
    assert made.meta["holds_judged_outputs"]
    assert "evaluated themselves" in made.meta["notes"][0]
    sources = {
        meta["source"].get("system") for meta in Reference.objects.filter(set=made).values_list("meta", flat=True)
    }
    assert sources == {None, "sys-a"}
    assert run.result["added"] == 4


def test_corpus_is_searched_without_outputs_and_present_references(project, monkeypatch) -> None:
    make_outputs(project, list(project.items.all()), ("sys-a",))
    asked: list[dict[str, Any]] = []

    def candidates(**given: Any) -> Candidates:
        asked.append(given)
        return Candidates((Candidate("f g", "Hello you?", 0.5, {"corpus": "talk", "row": 3, "licence": "CC0"}),))

    replace_hooks(monkeypatch, find_candidates=candidates, list_corpora=lambda *, project: [("talk", "Talk")])
    select_references(project, candidates="corpus:talk", turns=1)
    assert asked[0]["exclude"] == {"a b", "c", "a", "d e", "sys-a says something to k0."}
    assert (asked[0]["k"], asked[0]["turns"]) == (100, 1)
    reference = Reference.objects.get(set__name="chosen", item__key="k0", position=1)
    assert reference.text == "f g"
    assert reference.meta["source"] == {
        "kind": "corpus", "corpus": "talk", "row": 3, "licence": "CC0", "query": "Hello you?", "jaccard": 0.5,
    }  # fmt: skip


def test_unresponsive_corpus_fails_the_run(project, monkeypatch) -> None:
    note = Candidates(note="The index is being rebuilt.")
    replace_hooks(monkeypatch, find_candidates=lambda **_: note, list_corpora=lambda *, project: [("talk", "Talk")])
    run = select_references(project, candidates="corpus:talk")
    assert run.state == Run.State.FAILED
    assert "being rebuilt" in run.error
    assert not ReferenceSet.objects.filter(name="chosen").exists()


def test_unmatched_last_item_does_not_fail_the_run(project, monkeypatch) -> None:
    def candidates(*, item: Any, **_: Any) -> Candidates:
        if item.key == "k3":
            return Candidates(note="No query of “talk” shares a word with the context.")
        return Candidates((Candidate("f g", "Hello you?", 0.5, {"corpus": "talk"}),))

    replace_hooks(monkeypatch, find_candidates=candidates, list_corpora=lambda *, project: [("talk", "Talk")])
    monkeypatch.setattr("retrieval.selectors.corpora.find_corpus", lambda project, name: name)
    monkeypatch.setattr("retrieval.services.candidates.find_like", lambda corpus, context, k: ([], ""))
    monkeypatch.setattr(pipeline, "CHUNK", 3)  # the fourth item is processed alone
    run = select_references(project, candidates="corpus:talk")
    assert run.state == Run.State.SUCCEEDED, run.error
    assert (run.result["items"], run.result["without_candidates"]) == (4, 1)
    assert "1 item had no candidate" in " ".join(ReferenceSet.objects.get(name="chosen").meta["notes"])


def test_preview_stores_nothing_and_shows_every_step(project) -> None:
    run = preview(project)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert [row["key"] for row in run.result["items"]] == ["k0", "k1", "k2", "k3"]
    assert run.result["items"][0]["steps"]
    assert list(ReferenceSet.objects.values_list("name", flat=True)) == ["original"]


def test_attempt_after_a_lost_one_gives_the_same_set(project, monkeypatch) -> None:
    select_references(project, into="whole")
    whole = list_texts(project, "whole")
    keep = pipeline.Selection._append
    lines = 0

    def stops(self: Any, chosen: Any) -> None:
        nonlocal lines
        lines += 1
        if lines == 3:
            raise RunCancelled
        keep(self, chosen)

    monkeypatch.setattr(pipeline.Selection, "_append", stops)
    run = select_references(project)
    assert run.state == Run.State.CANCELLED
    assert not ReferenceSet.objects.filter(name="chosen").exists()
    monkeypatch.setattr(pipeline.Selection, "_append", keep)
    file = work_folder(run) / "selected.jsonl"
    with file.open("ab") as half:
        half.write(b'{"pk": 3, "ha')  # the state after kill -9
    run = execute_run(retry_run(run=run).pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert lines == 3
    assert list_texts(project, "chosen") == whole
    assert not file.parent.exists()
    again = execute_run(_requeue(run).pk)
    assert again.result["references"] == "chosen"


def _requeue(run: Run) -> Run:
    """The state of a worker that was lost between storing and reporting."""
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED, result=None)
    return run


def test_nothing_is_stored_if_the_second_set_cannot_be(project, monkeypatch) -> None:
    choose = pipeline.Selection.select

    def meanwhile(self: Any) -> None:
        choose(self)
        ReferenceSet.objects.create(project=project, name="chosen-random")

    monkeypatch.setattr(pipeline.Selection, "select", meanwhile)
    run = start_reference_selection(
        project=project, options=ReferenceSelection("judge", "chosen", controls=True), send=False
    )
    run = execute_run(run.pk)
    assert run.state == Run.State.FAILED
    assert "chosen-random" in run.error
    assert not ReferenceSet.objects.filter(name__in=["chosen", "chosen-raw"]).exists()


def test_name_taken_meanwhile_is_reported_before_selection(project, monkeypatch) -> None:
    monkeypatch.setattr(pipeline.Selection, "select", lambda self: pytest.fail("it chose"))
    run = start_reference_selection(
        project=project, options=ReferenceSelection("judge", "chosen", controls=True), send=False
    )
    ReferenceSet.objects.create(project=project, name="chosen-random")
    run = execute_run(run.pk)
    assert (run.state, "“chosen-random”" in run.error) == (Run.State.FAILED, True)


def test_name_is_never_overwritten(project) -> None:
    select_references(project)
    for name in ("chosen", "original"):
        with pytest.raises(Conflict, match="none is overwritten"):
            select_references(project, into=name, seed=14)


def test_unknown_names_are_reported(project) -> None:
    make_outputs(project, list(project.items.all()), ("sys-a", "sys-b"))
    with pytest.raises(BadInput) as refused:
        select_references(project, candidates="outputs", systems=("sys-a", "sys-typo"), items=("k1", "kx"))
    faults = {fault.field: fault.message for fault in refused.value.faults}
    assert set(faults) == {"items", "systems"}
    assert "kx" in faults["items"]
    assert "k1" not in faults["items"]
    assert "sys-typo" in faults["systems"]
    with pytest.raises(BadInput) as refused:
        select_references(project, systems=("sys-a",))
    assert [fault.field for fault in refused.value.faults] == ["systems"]


def test_file_supports_unusual_texts(project) -> None:
    Reference.objects.filter(item__key="k0", position=1).update(text="c \u2028 \\N \U0001f600 \t")
    Reference.objects.filter(item__key="k0", position=3).update(text=json.dumps({"d": "e"}))
    select_references(project)
    assert "c \u2028 \\N \U0001f600 \t" in list_texts(project, "chosen")
