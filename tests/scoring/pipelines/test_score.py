"""Applying an evaluator: scored outputs, unchanged scores, counts. Expected values are worked by hand."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from django.db import connection, transaction
from django.utils import timezone

from annotation.models import Item, Output, Reference, ReferenceSet
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.models import Run
from evalapp.common.queue import cancel_run, finish_run, retry_run
from evalapp.common.runner import RunContext, execute_run
from scoring.models import Evaluator, Score, ScoreSet
from scoring.selectors.inputs import iterate_inputs
from scoring.selectors.score_sets import list_states
from scoring.services.scores import NewScore, apply_evaluator, make_slug, open_score_set, store_scores
from tests.cast import make_cast
from tests.factories import make_items, make_outputs
from tests.scoring.training import make_trained

pytestmark = pytest.mark.django_db


def apply(project, name, **rest):
    run = execute_run(apply_evaluator(project=project, evaluator=name, send=False, **rest).pk)
    assert run is not None
    assert run.state == "succeeded", run.error
    return run


def test_length_is_computed_for_every_output(cast):
    outputs = make_outputs(cast.project, make_items(cast.project, 3))
    run = apply(cast.project, "length")
    assert run.result["scored"] == len(outputs) == 6
    # "sys-a says something to i000." has the word tokens sys, a, says, something, to, i000.
    assert set(Score.objects.values_list("value", flat=True)) == {6.0}
    score_set = ScoreSet.objects.get()
    assert score_set.references == ""
    assert score_set.n_scores == 6
    assert score_set.n_duplicate == 0
    assert score_set.full_signature.startswith("length|tok:words|v:")
    assert f"|data:{score_set.data_hash}" in score_set.full_signature
    assert Evaluator.objects.get().kind == "sentinel"


def test_second_run_scores_nothing(cast):
    make_outputs(cast.project, make_items(cast.project, 3))
    first = apply(cast.project, "token-f1")
    second = apply(cast.project, "token-f1")
    assert (first.result["scored"], first.result["kept"]) == (6, 0)
    assert (second.result["scored"], second.result["kept"]) == (0, 6)
    assert first.result["signature"] == second.result["signature"]
    assert ScoreSet.objects.count() == 1


def test_only_changed_inputs_are_scored_again(cast):
    items = make_items(cast.project, 3)
    make_outputs(cast.project, items)
    apply(cast.project, "token-f1")
    before = ScoreSet.objects.get().data_hash
    Output.objects.filter(item=items[0], system__name="sys-a").update(text="Answer 0 to i000.")
    Reference.objects.filter(item=items[1]).first().delete()
    run = apply(cast.project, "token-f1")
    assert run.result["scored"] == 1 + 2  # one text, and both systems of the item that lost a reference
    assert ScoreSet.objects.get().data_hash != before
    changed = Score.objects.get(output__item=items[0], output__system__name="sys-a")
    assert changed.value == pytest.approx(1.0)  # equal to its reference


def test_context_does_not_matter_to_metrics_that_ignore_it(cast):
    items = make_items(cast.project, 2)
    make_outputs(cast.project, items)
    apply(cast.project, "length")
    Item.objects.filter(pk=items[0].pk).update(context=["Something else entirely?"])
    assert apply(cast.project, "length").result["scored"] == 0
    apply(cast.project, "overlap")
    Item.objects.filter(pk=items[0].pk).update(context=["And again"])
    assert apply(cast.project, "overlap").result["scored"] == 2


def test_other_options_are_another_evaluator_with_its_own_set(cast):
    make_outputs(cast.project, make_items(cast.project, 2))
    apply(cast.project, "random")
    apply(cast.project, "random", options={"seed": "7"})
    assert list(Evaluator.objects.values_list("slug", flat=True)) == ["random", "random-seed-7"]
    assert ScoreSet.objects.count() == 2


def test_undefined_is_null_with_a_reason(cast):
    items = make_items(cast.project, 2)
    make_outputs(cast.project, items)
    Reference.objects.filter(item=items[0]).delete()
    Output.objects.filter(item=items[1], system__name="sys-b").update(text="   ")
    run = apply(cast.project, "token-f1")
    assert run.result["undefined"] == 2
    assert run.result["empty"] == 1
    row = Score.objects.filter(output__item=items[0]).first()
    assert row.value is None
    assert row.note == "no references"
    assert run.result["why_undefined"] == {"no references": 2}
    assert "2 of 4 outputs have no score: no references." in [line.text for line in run.log.all()]
    (state,) = list_states(cast.project, 4)
    assert state.why_undefined == [("no references", 2)]
    assert Score.objects.get(is_empty=True).value == 0.0


def test_corpus_measure_stores_a_value_per_system(cast):
    make_outputs(cast.project, make_items(cast.project, 3))
    apply(cast.project, "bleu-corpus")
    rows = ScoreSet.objects.get().systems
    assert [row["system"] for row in rows] == ["sys-a", "sys-b"]
    assert all(row["n"] == 3 and row["value"] is not None for row in rows)


def test_named_reference_set_must_exist(cast):
    make_outputs(cast.project, make_items(cast.project, 2))
    with pytest.raises(NotThere, match="“better”"):
        apply_evaluator(project=cast.project, evaluator="token-f1", references="better", send=False)


def test_set_without_a_reference_for_any_output_is_refused_before_the_run(cast, client):
    *items, more = make_items(cast.project, 3)
    make_outputs(cast.project, items)
    empty = ReferenceSet.objects.create(project=cast.project, name="mine")
    Reference.objects.create(set=empty, item=more, position=0, text="Of an item without outputs.")
    with pytest.raises(BadInput) as refused:
        apply_evaluator(project=cast.project, evaluator="bleu-1", references="mine", send=False)
    said = refused.value.detail
    assert all(name in said for name in ("reference set mine ", ": original."))
    assert not Run.objects.exists()
    client.force_login(cast.researcher)
    page = client.post("/projects/alpha/evaluators/apply/bleu-1/", {"references": "mine"})
    assert (page.status_code, said in page.content.decode()) == (422, True)
    wanted = {"kind": "score", "evaluator": "bleu-1", "references": "mine"}
    answer = client.post("/api/v1/projects/alpha/runs/", wanted, content_type="application/json")
    assert (answer.status_code, said in answer.json()["detail"]) == (400, True)
    Reference.objects.all().delete()
    with pytest.raises(BadInput, match="Upload references"):
        apply_evaluator(project=cast.project, evaluator="bleu-1", send=False)
    apply(cast.project, "length")


def test_errors_suggest_a_remedy(cast):
    with pytest.raises(BadInput, match="no outputs yet"):
        apply_evaluator(project=cast.project, evaluator="length", send=False)
    with pytest.raises(NotThere, match="Did you mean"):
        apply_evaluator(project=cast.project, evaluator="lenght", send=False)
    make_outputs(cast.project, make_items(cast.project, 1))
    with pytest.raises(BadInput, match="nonsense") as caught:
        apply_evaluator(project=cast.project, evaluator="random", options={"nonsense": 1}, send=False)
    assert caught.value.faults[0].field == "options.nonsense"


def test_same_request_joins_the_waiting_run(cast):
    make_outputs(cast.project, make_items(cast.project, 1))
    first = apply_evaluator(project=cast.project, evaluator="random", send=False)
    again = apply_evaluator(project=cast.project, evaluator="random", options={"seed": 13}, send=False)
    assert first.pk == again.pk


def test_interrupted_run_continues_where_it_stopped(cast, monkeypatch):
    from scoring.pipelines import score
    from scoring.selectors import inputs

    make_outputs(cast.project, make_items(cast.project, 4))
    monkeypatch.setattr(inputs, "iterate_inputs", partial(inputs.iterate_inputs, items=1))
    stored = score.store_scores

    def stop_after_two(**arguments: object) -> None:
        stored(**arguments)
        if Score.objects.count() == 4:
            raise MemoryError

    monkeypatch.setattr(score, "store_scores", stop_after_two)
    run = apply_evaluator(project=cast.project, evaluator="length", send=False)
    assert execute_run(run.pk).state == Run.State.FAILED
    left = ScoreSet.objects.get()
    assert (left.scored_at, left.n_scores, left.run_id) == (None, 4, run.pk), "what is there is counted and kept"
    monkeypatch.setattr(score, "store_scores", stored)
    again = apply(cast.project, "length")
    assert (again.result["scored"], again.result["kept"]) == (4, 4)
    assert ScoreSet.objects.get().scored_at is not None


def test_run_without_a_score_leaves_no_evaluator(cast, monkeypatch):
    from scoring.pipelines import score

    make_outputs(cast.project, make_items(cast.project, 2))

    def fail(**_: object) -> None:
        raise MemoryError

    stored = score.store_scores
    monkeypatch.setattr(score, "store_scores", fail)
    run = apply_evaluator(project=cast.project, evaluator="random", options={"seed": "7"}, send=False)
    assert execute_run(run.pk).state == Run.State.FAILED
    assert not ScoreSet.objects.exists()
    assert not Evaluator.objects.exists()
    # No trace of the request remains: a retry creates both again, and an evaluator that was complete keeps its scores.
    monkeypatch.setattr(score, "store_scores", stored)
    retry_run(run=run)
    assert execute_run(run.pk).state == Run.State.SUCCEEDED
    assert (Evaluator.objects.get().slug, ScoreSet.objects.get().n_scores) == ("random-seed-7", 4)
    monkeypatch.setattr(score, "store_scores", fail)
    Output.objects.update(text="Another.")
    again = apply_evaluator(project=cast.project, evaluator="random", options={"seed": "7"}, send=False)
    assert execute_run(again.pk).state == Run.State.FAILED
    assert (Score.objects.count(), ScoreSet.objects.get().scored_at is None) == (4, False)


def test_trained_evaluator_stays_after_a_failed_scoring_run(cast, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    trained = make_trained(cast.project, "mine")
    run = Run.objects.create(project=cast.project, kind="score", title="Score with mine", state="running")
    open_score_set(
        project=cast.project, name="maude", options={}, references="", signature="mine", short="mine", trained=trained,
        run=run,
    )  # fmt: skip
    cancel_run(run=run)
    finish_run(run, "cancelled")
    assert not ScoreSet.objects.exists()
    assert Evaluator.objects.get() == trained


def test_sets_removed_by_another_run_are_recreated(cast, monkeypatch):
    from scoring.pipelines import score

    make_outputs(cast.project, make_items(cast.project, 2))
    apply(cast.project, "length")
    other = Run.objects.create(project=cast.project, kind="score", title="The same", state="running", worker="far:1")
    Score.objects.all().delete()
    ScoreSet.objects.update(scored_at=None, run=other)
    before, taken = ScoreSet.objects.get().pk, score.take_score_sets

    def take_late(**arguments: object) -> Run | None:
        finish_run(other, "failed")  # the other ends just after this one opened its set
        return taken(**arguments)

    monkeypatch.setattr(score, "take_score_sets", take_late)
    assert apply(cast.project, "length").result["scored"] == 4
    assert ScoreSet.objects.get().pk != before


def test_cancelled_run_does_nothing(cast):
    make_outputs(cast.project, make_items(cast.project, 1))
    run = apply_evaluator(project=cast.project, evaluator="length", send=False)
    cancel_run(run=run)
    assert execute_run(run.pk) is None
    assert not Score.objects.exists()


def test_two_runs_never_fill_one_set_at_once(cast, monkeypatch):
    from scoring.pipelines import score

    make_outputs(cast.project, make_items(cast.project, 2))
    apply(cast.project, "length")
    Output.objects.update(text="one")
    other = Run.objects.create(project=cast.project, kind="score", title="The same", state="running", worker="far:1")
    ScoreSet.objects.update(run=other)
    monkeypatch.setattr(score, "PATIENCE", 0.0)
    run = execute_run(apply_evaluator(project=cast.project, evaluator="length", send=False).pk)
    assert (run.state, ScoreSet.objects.get().run_id) == ("failed", other.pk)
    assert run.error.startswith(f"Run {other.pk} ")
    assert "(length)" in run.error
    assert set(Score.objects.values_list("value", flat=True)) == {6.0}
    # It also waits for a moment.
    monkeypatch.setattr(score, "PATIENCE", 60.0)
    monkeypatch.setattr(score.time, "sleep", lambda _: Run.objects.filter(pk=other.pk).update(state="cancelled"))
    assert apply(cast.project, "length").result["scored"] == 4
    assert set(Score.objects.values_list("value", flat=True)) == {1.0}


@pytest.mark.server("postgres")
def test_worker_presumed_lost_may_store_next_to_its_successor(postgres_db):
    """Both replace the existing rows by the same ones."""
    cast = make_cast()
    outputs = make_outputs(cast.project, make_items(cast.project, 2))
    apply(cast.project, "length")
    score_set = ScoreSet.objects.get()
    Score.objects.all().delete()
    scores = [NewScore(output.pk, 1.0, "", output.pk, False, False) for output in outputs]
    stored = threading.Event()

    def beside() -> None:
        stored.wait(10)
        try:
            store_scores(score_set=score_set, scores=scores)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(beside)
        with transaction.atomic():
            store_scores(score_set=score_set, scores=scores)
            stored.set()
            time.sleep(0.5)
        second.result(10)
    assert Score.objects.count() == len(outputs)


def test_interdependent_scores_are_computed_together_or_not_at_all(cast, monkeypatch):
    from scoring.ml.baselines.token_f1 import TokenF1

    items = make_items(cast.project, 3)
    make_outputs(cast.project, items)
    monkeypatch.setattr(TokenF1, "depends_on_batch", True)
    assert apply(cast.project, "token-f1").result["scored"] == 6
    assert apply(cast.project, "token-f1").result["scored"] == 0
    Output.objects.filter(item=items[0], system__name="sys-a").update(text="Something else.")
    assert apply(cast.project, "token-f1").result["scored"] == 6


def test_language_comes_from_the_project(cast):
    make_outputs(cast.project, make_items(cast.project, 1))
    cast.project.lang = "zh"
    cast.project.save()
    run = apply(cast.project, "bleu-4")
    assert run.params["options"]["lang"] == "zh"
    assert run.result["evaluator"] == "bleu-4"
    assert "|tok:zh|" in run.result["signature"]
    other = apply(cast.project, "bleu-4", options={"lang": "en"})
    assert other.result["evaluator"] == "bleu-4-lang-en"


def test_undo_of_a_scored_upload_is_refused(cast):
    from annotation.models import Upload
    from annotation.services.hooks import count_dependants

    outputs = make_outputs(cast.project, make_items(cast.project, 2))
    upload = Upload.objects.create(project=cast.project, title="u", state="done")
    Output.objects.filter(pk__in=[row.pk for row in outputs]).update(upload=upload)
    apply(cast.project, "length")
    assert ("scores", 4) in count_dependants(upload)


def test_slug_names_what_is_not_default():
    assert make_slug("bleu-4", {"smooth": "exp", "lowercase": True}, {"smooth": "exp", "lowercase": False}) == (
        "bleu-4-lowercase-true"
    )
    long = make_slug("x", {"encoder": "a" * 200}, {"encoder": None})
    assert len(long) <= 80


def test_stored_hashes_match_the_set_and_need_one_query_per_chunk(cast, django_assert_num_queries):
    make_outputs(cast.project, make_items(cast.project, 5))
    apply(cast.project, "length")
    apply(cast.project, "random")
    other, ours = ScoreSet.objects.order_by("pk")
    Score.objects.filter(score_set=ours, output=Output.objects.first()).delete()
    # Whether any score exists, names of systems; then items and outputs of each of three chunks, and the end.
    with django_assert_num_queries(2 + 3 * 2 + 1):
        chunks = list(iterate_inputs(cast.project, references=None, known=ours, items=2))
    assert [len(chunk) for chunk in chunks] == [4, 4, 2]
    found = {row.output: row.known for chunk in chunks for row in chunk}
    stored = dict(Score.objects.filter(score_set=ours).values_list("output", "input_hash"))
    assert found == {pk: stored.get(pk) for pk in Output.objects.values_list("pk", flat=True)}
    assert sum(value is None for value in found.values()) == 1
    assert Score.objects.filter(score_set=other).count() == 10


def test_system_scores_are_recomputed_only_after_a_change(cast, monkeypatch):
    from scoring.ml import load

    items = make_items(cast.project, 3)
    make_outputs(cast.project, items)
    apply(cast.project, "bleu-corpus")
    before = ScoreSet.objects.get()
    assert [(row["system"], row["n"]) for row in before.systems] == [("sys-a", 3), ("sys-b", 3)]

    def forbidden(self, records):
        raise AssertionError("nothing has changed")

    with monkeypatch.context() as patch:
        patch.setattr(type(load("bleu-corpus")), "system_score", forbidden)
        apply(cast.project, "bleu-corpus")
    again = ScoreSet.objects.get()
    assert (again.systems, again.summary, again.data_hash) == (before.systems, before.summary, before.data_hash)
    Output.objects.filter(item=items[0], system__name="sys-a").delete()
    apply(cast.project, "bleu-corpus")
    after = ScoreSet.objects.get()
    assert [(row["system"], row["n"]) for row in after.systems] == [("sys-a", 2), ("sys-b", 3)]
    assert [row["n"] for row in after.summary] == [2, 3]


def test_perplexity_learns_from_references_of_other_items(cast):
    items = make_items(cast.project, 3)
    make_outputs(cast.project, items)
    apply(cast.project, "perplexity")
    notes = set(Score.objects.values_list("value", "note"))
    assert all(value is not None and value < 0 and not note for value, note in notes)
    score_set = ScoreSet.objects.get()
    assert score_set.references == "original"
    # No two texts are equal, and every system has its own corpus value.
    assert {row["n"] for row in score_set.systems} == {3}
    # With fewer than two items there is nothing to learn from.
    Item.objects.filter(pk__in=[item.pk for item in items[1:]]).delete()
    apply(cast.project, "perplexity")
    assert set(Score.objects.values_list("value", "note")) == {(None, "no references of other items to learn from")}


def test_machine_notes_of_an_evaluator_are_logged(cast, monkeypatch):
    from scoring.ml.baselines import meteor

    monkeypatch.setattr(meteor, "find_wordnet", lambda: None)
    make_outputs(cast.project, make_items(cast.project, 1))
    run = apply(cast.project, "meteor")
    lines = list(run.log.values_list("text", flat=True))
    assert any(line.startswith("Note: without synonyms, because no WordNet was found") for line in lines)


class _TwoAspects:
    """Learned two aspects: the letters of a text, and twice as many."""

    depends_on_batch = False
    trained_on: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()
    entry = SimpleNamespace(system_score="mean")

    def identity(self, record):
        return record.text

    def evaluate(self, records, *, progress):
        letters = np.array([float(len(record.text)) for record in records])
        columns = {"tone": letters, "wit": 2 * letters}
        reasons = [""] * len(records)
        return SimpleNamespace(
            values=letters, components=columns, truncated=None, unknown=None, remarks=(), reasons=reasons
        )


def test_separately_scored_aspect_takes_no_row_from_the_others(cast, monkeypatch, settings, tmp_path):
    from scoring.pipelines import score

    settings.ARTEFACTS_DIR = tmp_path
    make_outputs(cast.project, make_items(cast.project, 3))
    trained = make_trained(cast.project, "two")

    def run(*aspects):
        row = Run.objects.create(project=cast.project, kind="score", title="Score with two", input_hash=str(aspects))
        targets = [
            score.Target(
                open_score_set(
                    project=cast.project, name="maude", options={}, references="", trained=trained,
                    signature=f"two|of:{aspect}", short="two", aspect=aspect,
                ),
                aspect,
            )
            for aspect in aspects
        ]  # fmt: skip
        monkeypatch.setattr(score, "_open", lambda *_: (_TwoAspects(), targets))
        found = score.run(RunContext(row), evaluator="two", options={}, references="")
        row.delete()
        return found["scored"], found["kept"]

    assert run("tone") == (6, 0)
    assert run("tone", "wit") == (6, 0)
    assert run("tone", "wit") == (0, 6)
    counts = {found.aspect: (found.n_scores, found.scores.count()) for found in ScoreSet.objects.all()}
    assert counts == {"tone": (6, 6), "wit": (6, 6)}
    for output in Output.objects.all():
        values = dict(Score.objects.filter(output=output).values_list("score_set__aspect", "value"))
        assert values == {"tone": len(output.text), "wit": 2 * len(output.text)}


def test_name_of_a_trained_evaluator_is_never_a_baseline(cast, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    make_outputs(cast.project, make_items(cast.project, 1))
    make_trained(cast.project, "random-seed-7")
    with pytest.raises(Conflict, match=r"random-seed-7, .*maude"):
        apply_evaluator(project=cast.project, evaluator="random", options={"seed": 7}, send=False)
    assert not ScoreSet.objects.exists()
    apply(cast.project, "random")


def test_upload_during_scoring_makes_the_scores_stale(cast, monkeypatch):
    from annotation.models import Upload
    from scoring.pipelines import score

    make_outputs(cast.project, make_items(cast.project, 2))
    stored = score.store_scores

    def upload_meanwhile(**arguments: object) -> None:
        stored(**arguments)
        counts = {"outputs": {"replaced": 1}}
        Upload.objects.create(project=cast.project, title="u", state="done", finished_at=timezone.now(), counts=counts)

    with monkeypatch.context() as patch:
        patch.setattr(score, "store_scores", upload_meanwhile)
        apply(cast.project, "length")
    assert "changed items, outputs or references later" in list_states(cast.project, 4)[0].stale
    apply(cast.project, "length")
    assert list_states(cast.project, 4)[0].stale == ""
