"""The parameters of a run in an API request: every field shape, and all errors at once."""

from __future__ import annotations

import pytest

from evalapp.common.errors import BadInput
from evalapp.common.params import read_params
from scoring.models import Evaluator, ScoreSet
from scoring.services.combining import CombineOptions, start_combination
from scoring.services.reference_selection import ReferenceSelection, start_reference_selection
from scoring.services.reports import (
    CurveOptions,
    GamesOptions,
    RobustnessOptions,
    SelectionOptions,
    start_curves,
    start_games,
    start_robustness,
    start_selection,
)
from scoring.services.training import TrainingOptions, start_check, start_training
from tests.scoring.training import make_trained


def said(kind, params):
    with pytest.raises(BadInput) as refused:
        read_params(kind, params)
    return [(fault.field, fault.message) for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("kind", "name", "wrong", "noun"),
    [
        (GamesOptions, "evaluator", (5, ["x"]), "a text"),
        (GamesOptions, "items", ("5", 5.0, True), "a whole number"),
        (GamesOptions, "items", (0, 5001), "a whole number from 1 to 5000"),
        (GamesOptions, "options", ([], "x"), "an object of names and values"),
        (CombineOptions, "share", ("x", True), "a number"),
        (CombineOptions, "share", (0, 0.95), "a number from 0.1 to 0.9"),
        (CombineOptions, "parts", ("x", ["x", 5], {}), "a list of names"),
        (CombineOptions, "parts", (["a"], ["a", "a"]), "a list of different names, from 2 to 50"),
        (TrainingOptions, "apply", (1, "yes"), "true or false"),
        (TrainingOptions, "options", ([],), "an object of names and values"),
        (SelectionOptions, "evaluators", ("x", [5]), "a list of names"),
        (SelectionOptions, "variants", ([], {"a": "x"}, {"a": [5]}), "an object of lists of names"),
        (ReferenceSelection, "turns", (0,), "a whole number of at least 1"),
    ],
)
def test_invalid_value_is_named(kind, name, wrong, noun):
    needed = {
        CombineOptions: {"parts": ["a", "b"]},
        TrainingOptions: {"evaluator": "toy"},
        ReferenceSelection: {"evaluator": "x"},
    }
    for value in wrong:
        assert said(kind, {**needed.get(kind, {}), name: value}) == [(name, f"{name} must be {noun}.")]


def test_unknown_choice_is_named_with_the_known_ones():
    [fault] = said(GamesOptions, {"systems": "human"})
    assert fault[0] == "systems"
    assert all(name in fault[1] for name in ("all, no-reference, machine", "“human”"))


def test_all_errors_are_named_at_once_and_valid_values_accepted():
    assert said(RobustnessOptions, {"pace": 5, "seed": "x", "evaluator": ""}) == [
        ("pace", "pace is unknown. Known: evaluator, options, sample, seed."),
        ("seed", "seed must be a whole number."),
        ("evaluator", "Name the evaluator."),
    ]
    found = read_params(CombineOptions, {"parts": ["a", "b"], "share": 0.7})
    assert (found.parts, found.share) == (("a", "b"), 0.7)


def test_null_is_accepted_only_where_allowed():
    assert said(TrainingOptions, {"evaluator": "toy", "pace": None})[0][0] == "pace"
    assert said(TrainingOptions, {"evaluator": "toy", "seed": None}) == [("seed", "seed must be a whole number.")]
    assert said(TrainingOptions, {}) == [("evaluator", "Name the evaluator to train.")]
    assert read_params(TrainingOptions, {"evaluator": "toy", "folds": None}) == TrainingOptions("toy")


@pytest.mark.parametrize("seed", [-1, 2**31, 10**400])
@pytest.mark.parametrize(
    "start", [start_reference_selection, start_combination, start_games, start_curves, start_robustness,
              start_selection, start_training, start_check],
)  # fmt: skip
def test_seed_is_valid_for_every_library(toy, start, seed, settings, tmp_path):
    """The limits of the pages; numpy and torch each refuse other values in the middle of a run."""
    settings.ARTEFACTS_DIR = tmp_path
    row = make_trained(toy.project, "rater", "ream")
    make_trained(toy.project, "judge", "comparative")
    for name in ("length", "random"):
        evaluator = Evaluator.objects.create(project=toy.project, slug=name, name=name, kind="sentinel")
        ScoreSet.objects.create(project=toy.project, evaluator=evaluator, signature=name, scored_at=row.created_at)
    options = {
        start_reference_selection: lambda: ReferenceSelection(
            evaluator="rater", candidates="outputs", into="more", seed=seed
        ),
        start_combination: lambda: CombineOptions(("length", "random"), seed=seed),
        start_games: lambda: GamesOptions(seed=seed),
        start_curves: lambda: CurveOptions("rater", seed=seed),
        start_robustness: lambda: RobustnessOptions("length", seed=seed),
        start_selection: lambda: SelectionOptions(seed=seed),
    }.get(start, lambda: TrainingOptions("toy", seed=seed))()
    with pytest.raises(BadInput, match=r"seed .*0 to 2147483647\.") as refused:
        start(project=toy.project, options=options)
    assert [fault.field for fault in refused.value.faults] == ["seed"]
