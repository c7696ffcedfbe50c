"""Trainings as runs: dry check, folds, published result, cancel and retry, recorded points of the curve."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from annotation.models import Item, Rating
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.hooks import PROJECT_CLEANERS
from evalapp.common.jobs import get_job
from evalapp.common.models import Run, RunLog
from evalapp.common.queue import cancel_run, retry_run
from evalapp.common.runner import RunCancelled, RunContext, execute_run
from scoring import urls
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.ml import InvalidOption, load
from scoring.ml.training import finetune
from scoring.models import CurvePoint, Evaluator, Score, ScoreSet
from scoring.pipelines import train as pipeline
from scoring.pipelines.training_report import describe_checkpoints
from scoring.selectors.training import (
    artefact_folder,
    default_folds,
    find_training_data,
    list_files,
    read_card,
    read_curve,
)
from scoring.services.evaluators import delete_evaluator
from scoring.services.leaderboards import compute_leaderboard
from scoring.services.scores import apply_evaluator
from scoring.services.training import TrainingOptions, check_name, start_checked, start_training
from tests.cast import make_cast
from tests.factories import make_items
from tests.scoring.ml.evaluators.comparative.data import make
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.training import fill, put_toy_into_catalogue, train

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> Path:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"
    return settings.ARTEFACTS_DIR


def score(project, slug: str, **rest) -> Run:
    run = execute_run(apply_evaluator(project=project, evaluator=slug, send=False, **rest).pk)
    assert run is not None
    assert run.state == Run.State.SUCCEEDED, run.error
    return run


def test_single_model_trains_on_some_groups_and_its_scores_are_marked(toy, artefacts):
    evaluator = train(toy.project, folds=1, name="first-one")
    assert (evaluator.slug, evaluator.name, evaluator.kind, evaluator.state) == ("first-one", "toy", "trained", "ready")
    record = evaluator.record
    assert record["folds"] == 0
    # 12 groups in 80/10/10: 10 for training, 1 for selection, 1 unused (cuts at 9.6 and 10.8, rounded).
    assert (record["models"][0]["n_groups"], record["models"][0]["n_dev_groups"]) == (10, 1)
    assert evaluator.signature.startswith("toy|profile:recommended|aspect:quality|")
    assert not (artefacts / "work" / str(evaluator.run_id)).exists()
    names = {file.name for file in list_files(evaluator)}
    assert {"model.safetensors", "evaluator.json", "card.md", "fixtures.jsonl"} <= names
    assert "# toy" in read_card(evaluator)
    run = score(toy.project, "first-one")
    assert (run.queue, run.result["scored"], run.result["in_training"]) == ("gpu", 24, 22)
    split = json.loads((artefact_folder(evaluator) / "split.json").read_text())
    marked = set(Score.objects.filter(in_training=True).values_list("output__item__group", flat=True))
    assert marked == set(split["train"]) | set(split["dev"])
    assert ScoreSet.objects.get(evaluator=evaluator).n_in_training == 22
    assert score(toy.project, "first-one").result["scored"] == 0
    # A training item is moved into the one unseen group: its content now counts as seen.
    (unseen,) = set(Item.objects.values_list("group", flat=True)) - marked
    Item.objects.filter(group=split["train"][0]).update(group=unseen)
    assert score(toy.project, "first-one").result["in_training"] == 24
    # An imported evaluator recognises items by content, whatever their names.
    Evaluator.objects.update(record={**record, "choice": {}})
    assert score(toy.project, "first-one").result["in_training"] == 24
    Item.objects.update(context=["Something else?"])
    assert score(toy.project, "first-one").result["in_training"] == 0


def test_folds_score_every_group_by_the_model_that_did_not_see_it(toy):
    assert default_folds(toy.project) == 5
    evaluator = train(toy.project)
    assert evaluator.slug == "toy-1"
    assert evaluator.record["folds"] == 5
    assert len(evaluator.record["models"]) == 5
    run = score(toy.project, "toy-1")
    assert run.result["in_training"] == 0
    data = pipeline.read_data(toy.project, "toy", {})
    members = load(artefact_folder(evaluator)).members
    for record in data.outputs_with_context():
        unseen = [member for member in members if record.group not in member.trained_on]
        assert len(unseen) == 1
        stored = Score.objects.get(output__item__key=record.item, output__system__name=record.system)
        assert stored.value == pytest.approx(unseen[0].score([record])[0], abs=1e-6)
    assert train(toy.project, folds=2).slug == "toy-2"


def test_folds_hold_nothing_out_where_it_chooses_nothing(toy, tmp_path):
    encoder = str(tiny_encoder("bert", tmp_path / "encoder"))
    asked = TrainingOptions("ridge", encoder=encoder, aspect="quality", folds=3)
    run = execute_run(start_training(project=toy.project, options=asked, send=False, any_encoder=True).pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    models = Evaluator.objects.get(run=run).record["models"]
    assert [(model["n_groups"], model["n_dev_groups"]) for model in models] == [(8, 0)] * 3


def test_curve_and_log_are_stored(toy):
    evaluator = train(toy.project, folds=2, options={"epochs": 3})
    curve = read_curve(evaluator.run)
    assert list(curve) == ["fold 1 of 2, training", "fold 2 of 2, training"]
    # Three batches per epoch, three epochs: a point for every step.
    assert [step for step, _ in curve["fold 1 of 2, training"]] == list(range(1, 10))
    text = "\n".join(RunLog.objects.filter(run=evaluator.run).values_list("text", flat=True))
    assert "2 models, each of" in text
    assert "fold 2 of 2, training …" in text
    assert f"Signature: {evaluator.signature}" in text


def test_check_gives_a_range_or_says_that_none_is_known(toy):
    """The toy evaluator gives no estimate."""
    from scoring.pipelines.training_report import sum_ranges

    run = train(toy.project, folds=2).run
    assert "steps; time: unknown before the start." in "\n".join(
        RunLog.objects.filter(run=run).values_list("text", flat=True)
    )
    assert sum_ranges([(30.0, 120.0), (15.0, 60.0)]) == {"seconds_range": [45.0, 180.0], "time": "45 s to 3 min"}
    assert sum_ranges([(30.0, 120.0), None])["seconds_range"] is None


def test_equal_notes_of_several_models_appear_once():
    notes = [
        "About 1,200 s encode every text once.", "It stops early.", "About 900 s encode every text once.",
        "It stops early.", "1 of 12 repeats.", "About 1,000.5 s encode every text once.", "1 of 9 repeats.",
    ]  # fmt: skip
    assert pipeline.merge_notes(notes) == [
        "About 900 to 1,200 s encode every text once.", "It stops early.", "1 of 9 to 12 repeats.",
    ]  # fmt: skip


def test_bar_covers_the_run_and_the_phase_shows_its_own_progress(toy, monkeypatch):
    """The toy gives no estimate, so another dry check does: 600 s, with 100 s after the steps."""
    seen = []
    checked = pipeline.Training.plan
    monkeypatch.setattr(
        pipeline.Training, "plan", lambda *given: {**checked(*given), "seconds": 600.0, "afterwards": 100.0}
    )
    monkeypatch.setattr(
        RunContext, "progress", lambda context, *given, **more: seen.append((*given, more.get("left"))) or None
    )
    train(toy.project, folds=2)
    told = [row for row in seen if row[2] == "%"]
    assert told[0][3] == "fold 1 of 2, training: 1 of 6 steps"
    assert told[0][4] == pytest.approx(600, abs=1)
    shares = [row[0] for row in told]
    assert shares == sorted(shares)
    assert {row[1] for row in told} == {100}
    halves = {row[3]: row[0] for row in told}
    assert halves["fold 2 of 2, training: 1 of 6 steps"] >= 45


def test_without_an_estimate_the_bar_covers_the_phase_and_says_so(toy, monkeypatch):
    seen = []
    monkeypatch.setattr(RunContext, "progress", lambda context, *given, **more: seen.append(given))
    train(toy.project, folds=2)
    assert (1, 6, "steps of this phase", "fold 1 of 2, training") in seen


def test_diverging_training_suggests_a_remedy(toy):
    """Once, the run said "Unexpected error ... retry, and report it"."""
    asked = TrainingOptions("toy", options={"frozen": True, "epochs": 2, "learning_rate": 1e30}, folds=1)
    run = execute_run(start_training(project=toy.project, options=asked, send=False).pk)
    assert run.state == Run.State.FAILED
    assert "the training diverged" in run.error
    assert "smaller learning_rate" in run.error


def test_cancelled_training_continues_where_it_stopped(toy, monkeypatch):
    asked = TrainingOptions("toy", options={"frozen": True, "epochs": 6}, folds=1)
    whole = train(toy.project, options={"epochs": 6}, folds=1, name="whole")
    seen: list[int] = []
    original = pipeline.Reporter.__call__

    def stop_at_ten(self, progress):
        seen.append(progress.done)
        original(self, progress)
        if len(seen) == 10:
            raise RunCancelled

    monkeypatch.setattr(pipeline.Reporter, "__call__", stop_at_ten)
    run = execute_run(start_training(project=toy.project, options=asked, send=False).pk)
    assert run.state == Run.State.CANCELLED
    assert not Evaluator.objects.filter(run=run).exists()
    assert pipeline.work_folder(run).is_dir()
    retry_run(run=run)
    run = execute_run(run.pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert seen[10] == 10  # epochs of three steps: the fourth was in progress
    assert told(run, "Continues") == ["Continues at step 9 of 18 (training)."]
    assert told(run, "No checkpoint") == []
    again = Evaluator.objects.get(run=run)
    assert weights(again) == weights(whole)
    steps = list(CurvePoint.objects.filter(run=run).order_by("step").values_list("step", flat=True))
    assert steps == list(range(1, 19))
    # Executed again (a second delivery), it finds its published result.
    assert pipeline.run(_Context(run), **run.params)["evaluator"] == again.slug
    assert Evaluator.objects.filter(name="toy").count() == 2


def told(run: Run, begin: str) -> list[str]:
    """The lines of the log with this beginning."""
    return list(RunLog.objects.filter(run=run, text__startswith=begin).order_by("pk").values_list("text", flat=True))


@pytest.mark.parametrize(
    ("folds", "stops_at", "expected"),
    [
        (1, 2, ["No checkpoint was saved yet: it starts from the beginning."]),
        (2, 2, ["No checkpoint was saved yet: it starts from the beginning."]),
        # Six steps per fold: two cover the first fold and the first epoch of the second.
        (2, 11, ["Fold 1 of 2 is done.", "Continues at step 3 of 6 (fold 2 of 2, training)."]),
        (2, 8, ["Fold 1 of 2 is done.", "No checkpoint was saved yet: fold 2 of 2 starts from the beginning."]),
    ],
)
def test_second_attempt_reports_where_it_continues(toy, monkeypatch, folds, stops_at, expected):
    """Otherwise, after cancelling hours of training, it would be unclear whether it started again."""
    asked = TrainingOptions("toy", options={"frozen": True, "epochs": 2}, folds=folds)
    original = pipeline.Reporter.__call__
    steps: list[int] = []

    def stop(self, progress):
        original(self, progress)
        steps.append(progress.done)
        if progress.loss is not None and len(steps) == stops_at:
            raise RunCancelled

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.Reporter, "__call__", stop)
        run = execute_run(start_training(project=toy.project, options=asked, send=False).pk)
    assert run.state == Run.State.CANCELLED
    first = RunLog.objects.filter(run=run).latest("pk").pk
    assert not RunLog.objects.filter(run=run, text__in=expected).exists()
    retry_run(run=run)
    run = execute_run(run.pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    rows = RunLog.objects.filter(run=run, pk__gt=first).order_by("pk")
    assert list(rows.values_list("text", flat=True)[: len(expected)]) == expected


def test_cancelled_fine_tuning_reports_where_it_continues(toy, monkeypatch, tmp_path):
    monkeypatch.setattr(finetune, "CHECKPOINT_SECONDS", 0.0)
    asked = TrainingOptions(
        "toy", encoder=str(tiny_encoder("bert", tmp_path / "encoder")), options={"epochs": 3}, folds=1
    )
    original = pipeline.Reporter.__call__

    def stop(self, progress):
        original(self, progress)
        if progress.loss is not None and progress.done == 8:
            raise RunCancelled

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.Reporter, "__call__", stop)
        run = start_training(project=toy.project, options=asked, send=False, any_encoder=True)
        run = execute_run(run.pk)
    assert run.state == Run.State.CANCELLED, run.error
    retry_run(run=run)
    assert execute_run(run.pk).state == Run.State.SUCCEEDED
    # Five steps per epoch; the eighth was cancelled before its checkpoint.
    assert told(run, "Continues") == ["Continues at step 7 of 15 (training)."]


def test_fine_tuning_checkpoints_are_recognised_in_their_folders(tmp_path):
    """As transformers' Trainer and our marker leave them; incomplete ones do not count."""
    for step, files in ((40, ("trainer_state.json", "complete")), (60, ("trainer_state.json",)), (9, ("complete",))):
        place = tmp_path / "fine" / f"checkpoint-{step}"
        place.mkdir(parents=True)
        for name in files:
            (place / name).write_text(json.dumps({"global_step": step, "max_steps": 1200}))
    assert describe_checkpoints(tmp_path, 1) == ["Continues at step 40 of 1,200 (fine)."]
    (tmp_path / "coarse").mkdir()
    (tmp_path / "coarse" / "done.json").write_text(json.dumps({"steps": 1000}))
    os.utime(tmp_path / "coarse" / "done.json", (1, 1))
    (tmp_path / "texts").mkdir()
    assert describe_checkpoints(tmp_path, 1) == [
        "All 1,000 steps are done (coarse).", "Continues at step 40 of 1,200 (fine).",
    ]  # fmt: skip


def test_retry_whose_name_is_taken_says_so_before_training(toy, monkeypatch, django_capture_on_commit_callbacks):
    asked = TrainingOptions("toy", name="judge", options={"frozen": True, "epochs": 2}, folds=1)
    run = start_training(project=toy.project, options=asked, send=False)
    cancel_run(run=run)
    other = train(toy.project, folds=1, name="judge", seed=14)
    retry_run(run=run)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "_train", lambda *rest: pytest.fail("it trained"))
        run = execute_run(run.pk)
    assert (run.state, "“judge” is now taken" in run.error) == (Run.State.FAILED, True)
    with django_capture_on_commit_callbacks(execute=True):
        delete_evaluator(evaluator=other)
    retry_run(run=run)
    run = execute_run(run.pk)
    assert run.state == Run.State.SUCCEEDED, run.error


class _Context:
    """The required part of a run's context."""

    def __init__(self, run: Run) -> None:
        self.run, self.project = run, run.project

    def log(self, text: str) -> None:
        assert text


def weights(evaluator: Evaluator) -> str:
    found = re.search(r"\|w:(\w+)", evaluator.signature)
    assert found
    return found[1]


def test_other_data_restart_the_training(toy, monkeypatch):
    asked = TrainingOptions("toy", options={"frozen": True, "epochs": 4}, folds=1)
    original = pipeline.Reporter.__call__

    def stop(self, progress):
        original(self, progress)
        if progress.done == 7:
            raise RunCancelled

    monkeypatch.setattr(pipeline.Reporter, "__call__", stop)
    run = execute_run(start_training(project=toy.project, options=asked, send=False).pk)
    monkeypatch.setattr(pipeline.Reporter, "__call__", original)
    Rating.objects.update(value=3)
    retry_run(run=run)
    run = execute_run(run.pk)
    assert run.state == Run.State.SUCCEEDED
    assert RunLog.objects.filter(run=run, text__contains="from the beginning").exists()
    fresh = train(toy.project, options={"epochs": 4}, folds=1)
    assert weights(fresh) == weights(Evaluator.objects.get(run=run))


def test_dry_check_counts_match_the_training(toy):
    params = {"evaluator": "toy", "options": {"frozen": True, "epochs": 2}, "folds": 2, "name": "checked"}
    check = execute_run(get_job("plan").ask(project=toy.project, user=None, params=params).pk)
    assert check.state == Run.State.SUCCEEDED, check.error
    assert check.result["models"] == 2
    # Half of the 12 groups, minus an eighth for selection (rounded): 5 groups of two outputs each.
    assert check.result["examples"] == {"rated outputs": 10}
    assert check.result["steps"] == 2 * 2 * 3  # models x epochs x batches of four
    assert (check.result["items"], check.result["outputs"], check.result["ratings"]) == (12, 24, 48)
    run = start_checked(project=toy.project, user=toy.researcher, check=check)
    assert run.params["slug"] == "checked"
    assert run.params["folds"] == 2
    with pytest.raises(Conflict, match="This check did not succeed"):
        start_checked(project=toy.project, user=None, check=run)


def test_missing_input_is_reported_before_queueing(toy):
    def ask(**params):
        return get_job("train").ask(project=toy.project, user=None, params={"evaluator": "toy", **params})

    with pytest.raises(BadInput, match="needs no training"):
        ask(evaluator="chrf")
    with pytest.raises(BadInput, match="no aspect “taste”"):
        ask(aspect="taste")
    with pytest.raises(BadInput, match="“nobody”"):
        ask(raters=["nobody"])
    with pytest.raises(BadInput, match="recommended") as caught:
        ask(profile="paper")
    assert caught.value.faults[0].field == "profile"
    with pytest.raises(BadInput, match="at least 1") as caught:
        ask(options={"epochs": 0})
    assert caught.value.faults[0].field == "options.epochs"
    with pytest.raises(BadInput, match="setting ENCODERS"):
        ask(encoder="/somewhere")
    with pytest.raises(BadInput, match=r"folds .*0 to 20"):
        ask(folds=21)
    with pytest.raises(BadInput, match="folds "):
        ask(folds="two")
    with pytest.raises(BadInput, match="pace is unknown"):
        ask(pace=2)
    with pytest.raises(Conflict, match="reserved"):
        ask(name="chrf")
    with pytest.raises(BadInput, match="lower-case letters"):
        ask(name="Über")
    with pytest.raises(NotThere, match="no reference set"):
        ask(references="other")
    make_items(toy.foreign, 2)
    with pytest.raises(BadInput, match="No ratings"):
        get_job("train").ask(project=toy.foreign, user=None, params={"evaluator": "toy"})
    assert not Run.objects.filter(kind="train").exists()


@pytest.mark.parametrize(
    ("folds", "told"),
    [
        (1, "Of 3 items, 1 are for training, 1 for validation and 1 for tests."),
        (2, "Of 6 items, 2 are for training, 1 for validation and 3 for scoring."),
    ],
)
def test_too_few_items_are_reported_with_the_split(tmp_path, folds, told):
    """For three items it once said "1 items are too few", as if two had been lost."""
    items = make(3 * folds, ratings=False, comparisons=False)
    alone = replace(items, items=tuple(replace(item, group="") for item in items.items))
    options = {"encoder": tiny_encoder("bert", tmp_path / "encoder")}
    with pytest.raises(BadInput, match=" 4: ") as refused:
        pipeline.Training("comparative", "recommended", options, 13, None, folds).plan(alone)
    assert told in refused.value.detail


def test_insufficient_data_fail_with_a_remedy(toy):
    Rating.objects.exclude(output__item__key="i000").delete()
    run = execute_run(start_training(project=toy.project, options=TrainingOptions("toy"), send=False).pk)
    assert run.state == Run.State.FAILED
    assert "cannot be trained" in run.error


def test_same_request_joins_and_names_are_numbered(toy):
    first = start_training(project=toy.project, options=TrainingOptions("toy"), send=False)
    assert start_training(project=toy.project, options=TrainingOptions("toy"), send=False).pk == first.pk
    other = start_training(project=toy.project, options=TrainingOptions("toy", seed=2), send=False)
    assert (first.params["slug"], other.params["slug"]) == ("toy-1", "toy-2")
    with pytest.raises(Conflict, match=f"Run {first.pk} is creating an evaluator named “toy-1”"):
        start_training(project=toy.project, options=TrainingOptions("toy", seed=3, name="toy-1"), send=False)
    # A run being cancelled may still finish under its name; an explicit request for that name gets it.
    Run.objects.filter(pk=other.pk).update(state=Run.State.RUNNING, cancel_requested=True)
    third = start_training(project=toy.project, options=TrainingOptions("toy", seed=2), send=False)
    assert third.params["slug"] == "toy-3"
    fourth = start_training(project=toy.project, options=TrainingOptions("toy", seed=4, name="toy-2"), send=False)
    assert fourth.params["slug"] == "toy-2"


def test_learned_evaluator_cannot_be_applied_by_its_catalogue_name(toy):
    with pytest.raises(BadInput, match=r"evalapp train toy --project alpha"):
        apply_evaluator(project=toy.project, evaluator="toy", send=False)
    train(toy.project, folds=1)
    with pytest.raises(BadInput, match=": toy-1"):
        apply_evaluator(project=toy.project, evaluator="toy", send=False)


def test_damaged_folder_is_reported_and_shown(toy):
    evaluator = train(toy.project, folds=1)
    path = artefact_folder(evaluator) / "card.md"
    text = path.read_text()
    path.unlink()
    run = execute_run(apply_evaluator(project=toy.project, evaluator="toy-1", send=False).pk)
    assert run.state == Run.State.FAILED
    assert "card.md missing" in run.error
    evaluator.refresh_from_db()
    assert evaluator.state == Evaluator.State.DAMAGED
    path.write_text(text)
    score(toy.project, "toy-1")
    evaluator.refresh_from_db()
    assert (evaluator.state, evaluator.damage) == (Evaluator.State.READY, "")


def test_missing_folder_counts_as_damage_and_its_path_is_hidden(toy, artefacts):
    """Once, it was taken for a name of the catalogue: the error revealed the server path, and the page said ready."""
    evaluator = train(toy.project, folds=1)
    folder = artefact_folder(evaluator)
    folder.rename(folder.with_name("elsewhere"))
    for missing in ("", "model.safetensors"):
        run = execute_run(apply_evaluator(project=toy.project, evaluator="toy-1", send=False).pk)
        assert run.state == Run.State.FAILED
        evaluator.refresh_from_db()
        assert (evaluator.state, evaluator.damage) == (Evaluator.State.DAMAGED, run.error)
        assert f"toy-1: {missing or 'evaluator.json'}" in run.error
        assert "missing" in run.error
        assert str(artefacts) not in run.error
        if not missing:
            folder.with_name("elsewhere").rename(folder)
            (folder / "model.safetensors").unlink()


def test_unknown_options_are_not_damage(toy, monkeypatch):
    evaluator = train(toy.project, folds=1)

    reason = InvalidOption("toy", "aspect", "must be one of quality")

    def refuse(*_: object, **__: object) -> None:
        raise reason

    monkeypatch.setattr("scoring.ml.load", refuse)
    run = execute_run(apply_evaluator(project=toy.project, evaluator="toy-1", send=False).pk)
    assert (run.state, run.error) == (Run.State.FAILED, str(reason))
    evaluator.refresh_from_db()
    assert evaluator.state == Evaluator.State.READY


def test_deleting_removes_scores_and_files(toy, django_capture_on_commit_callbacks):
    evaluator = train(toy.project, folds=1)
    score(toy.project, "toy-1")
    folder = artefact_folder(evaluator)
    with django_capture_on_commit_callbacks(execute=True):
        delete_evaluator(evaluator=evaluator, user=toy.owner)
    assert not folder.exists()
    assert not Score.objects.exists()
    assert not Evaluator.objects.exists()


def test_files_are_deleted_with_their_project(toy, artefacts):
    evaluator = train(toy.project, folds=1)
    left = pipeline.work_folder(evaluator.run)
    left.mkdir(parents=True)
    other = artefacts / str(toy.foreign.pk)
    other.mkdir()
    sent = [artefacts / "incoming" / name for name in ("mine", "of-others")]
    for folder in sent:
        folder.mkdir(parents=True)
    for project, folder in zip((toy.project, toy.foreign), sent, strict=True):
        params = {"incoming": folder.name, "slug": "uploaded-1"}
        Run.objects.create(project=project, kind="artefact", title="Take in", params=params, input_hash=folder.name)
    PROJECT_CLEANERS.call(project=toy.project)
    assert [folder.exists() for folder in sent] == [False, True]
    assert not artefact_folder(evaluator).exists()
    assert not left.exists()
    assert other.exists()


@pytest.mark.server("postgres")
def test_same_on_postgresql(postgres_db, monkeypatch):
    from scoring.ml import registry

    cast = make_cast()
    put_toy_into_catalogue(monkeypatch)
    try:
        fill(cast.project)
        evaluator = train(cast.project, folds=1)
        run = score(cast.project, evaluator.slug)
        assert (run.result["scored"], run.result["in_training"]) == (24, 22)
        assert Score.objects.filter(in_training=True).count() == 22
        table = compute_leaderboard(project=cast.project, query=EvaluatorsQuery(aspect="quality")).table
        assert (table["n_outputs"], table["n_excluded"]) == (2, 22)
        assert find_training_data(cast.project)["ratings"] is True
    finally:
        registry.catalogue.cache_clear()


def test_trained_evaluator_can_be_applied_at_once(toy):
    options = {"frozen": True, "epochs": 2}
    asked = TrainingOptions(evaluator="toy", options=options, aspect="quality", folds=1, apply=True, name="soon")
    run = execute_run(start_training(project=toy.project, options=asked, send=False).pk)
    assert run is not None
    assert run.state == Run.State.SUCCEEDED, run.error
    scoring = Run.objects.get(pk=run.result["score_run"])
    assert (scoring.kind, scoring.params["evaluator"], scoring.state) == ("score", "soon", "queued")
    done = execute_run(scoring.pk)
    assert done is not None
    assert done.result["scored"] == 24
    with pytest.raises(BadInput, match=r"apply .*true .*false"):
        get_job("train").ask(project=toy.project, user=toy.owner, params={"evaluator": "toy", "apply": "yes"})


def test_training_finishes_even_if_its_result_cannot_be_applied(toy, monkeypatch):
    def refuse(**_):
        raise BadInput("alpha has no outputs yet.")

    monkeypatch.setattr(pipeline, "apply_evaluator", refuse)
    asked = TrainingOptions(evaluator="toy", options={"frozen": True, "epochs": 1}, folds=1, apply=True, name="alone")
    run = execute_run(start_training(project=toy.project, options=asked, send=False).pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert (run.result["evaluator"], "score_run" in run.result) == ("alone", False)
    assert RunLog.objects.filter(run=run, text__endswith="could not be applied. alpha has no outputs yet.").exists()


def test_no_evaluator_has_the_name_of_a_page(toy):
    """Any word that may follow in an address in place of an evaluator's name."""
    tail = "evaluators/"
    places = {str(row.pattern).removeprefix(tail) for row in urls.PROJECT if str(row.pattern).startswith(tail)}
    words = {place.split("/")[0] for place in places if place and not place.startswith("<")}
    assert {"robustness", "combine"} <= words
    for word in words:
        with pytest.raises(Conflict, match="reserved"):
            check_name(toy.project, word)
