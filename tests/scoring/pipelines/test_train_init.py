"""Trainings of a project that begin with one of its trained evaluators."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.forms.train import TrainForm, describe_params, initial_from
from scoring.ml import load
from scoring.ml.registry import get_entry
from scoring.models import Evaluator
from scoring.pipelines.train import Training
from scoring.selectors.training import artefact_folder
from scoring.services.evaluators import delete_evaluator
from scoring.services.training import TrainingOptions, plan_params, start_training
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.training import make_trained

pytestmark = pytest.mark.django_db
QUICK = {"stages": "head", "max_length": 16}


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> Path:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"
    return settings.ARTEFACTS_DIR


def start(project, *, encoder: str = "", **given) -> Evaluator:
    options = TrainingOptions("adversarial", folds=1, encoder=encoder, options=QUICK, **given)
    run = execute_run(start_training(project=project, options=options, send=False, any_encoder=True).pk)
    assert run is not None
    assert run.state == Run.State.SUCCEEDED, run.error
    return Evaluator.objects.get(run=run)


def test_training_begins_with_an_evaluator_of_the_project(toy, tmp_path):
    encoder = tiny_encoder("bert", tmp_path / "encoder")
    first = start(toy.project, encoder=encoder, name="first")
    second = start(toy.project, init="first", name="second", seed=14)
    weights = load(artefact_folder(first)).weights[:8]
    assert f"|init:{weights}|" in second.signature
    header = json.loads((artefact_folder(second) / "evaluator.json").read_text(encoding="utf-8"))
    assert header["record"]["init"]["evaluator"] == "adversarial"
    # What either has seen counts as seen.
    assert load(artefact_folder(second)).trained_on >= load(artefact_folder(first)).trained_on


@pytest.mark.parametrize(
    ("init", "given", "field", "text"),
    [
        ("none", {}, "init", "“none” is no trained adversarial with a single model in"),
        ("other", {}, "init", "There are: mine."),
        ("folds", {}, "init", "There are: mine."),
        ("mine", {"encoder": "x"}, "encoder", "Leave out the encoder"),
    ],
)
def test_unsuitable_starts_are_refused(toy, init, given, field, text):
    make_trained(toy.project, "mine", "adversarial")
    make_trained(toy.project, "other", "perception")
    folds = make_trained(toy.project, "folds", "adversarial")
    folds.record["folds"] = 5
    folds.save()
    with pytest.raises(BadInput, match=text) as refused:
        plan_params(toy.project, TrainingOptions("adversarial", init=init, **given), any_encoder=True)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_method_with_frozen_encoder_has_no_start(toy):
    make_trained(toy.project, "mine", "ridge")
    with pytest.raises(BadInput, match="There are: none yet"):
        plan_params(toy.project, TrainingOptions("ridge", init="mine"), any_encoder=True)


def test_evaluator_that_a_training_begins_with_cannot_be_deleted_before_its_end(toy):
    row = make_trained(toy.project, "mine", "adversarial")
    start_training(project=toy.project, options=TrainingOptions("adversarial", init="mine", folds=1), send=False)
    with pytest.raises(Conflict, match="uses mine"):
        delete_evaluator(evaluator=row)


def test_start_deleted_meanwhile_is_named(toy):
    make_trained(toy.project, "mine", "adversarial")
    params = plan_params(toy.project, TrainingOptions("adversarial", init="mine", folds=1))
    Evaluator.objects.filter(slug="mine").delete()
    with pytest.raises(NotThere, match="“mine”"):
        Training.from_params(params, toy.project)


def test_page_offers_evaluators_of_the_method(toy):
    entry = get_entry("adversarial")
    assert "init" not in TrainForm(project=toy.project, entry=entry).fields
    make_trained(toy.project, "mine", "adversarial")
    form = TrainForm(project=toy.project, entry=entry)
    assert [value for value, _label in form.fields["init"].choices] == ["", "mine"]
    params = plan_params(toy.project, TrainingOptions("adversarial", init="mine", folds=1))
    assert initial_from(entry, params)["init"] == "mine"
    assert ("Begin with", "mine") in describe_params(entry, params)
