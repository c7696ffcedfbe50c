"""The parameters of a run in an API request: every field shape, and all errors at once."""

from __future__ import annotations

import pytest

from evalapp.common.errors import BadInput
from evalapp.common.params import read_params
from scoring.models import Evaluator, ScoreSet
from scoring.services.annotating import AnnotateWishes, start_annotation
from scoring.services.combining import CombineWishes, start_combination
from scoring.services.games import GamesWishes, start_games
from scoring.services.reliability_curves import CurveWishes, start_curves
from scoring.services.robustness import RobustnessWishes, start_robustness
from scoring.services.selecting import SelectionWishes, start_selection
from scoring.services.training import TrainingOptions, start_check, start_training
from tests.scoring.training import make_trained


def said(kind, params):
    with pytest.raises(BadInput) as refused:
        read_params(kind, params)
    return [(fault.field, fault.message) for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("kind", "name", "wrong", "noun"),
    [
        (GamesWishes, "evaluator", (5, ["x"]), "a text"),
        (GamesWishes, "items", ("5", 5.0, True), "a whole number"),
        (GamesWishes, "items", (0, 5001), "a whole number from 1 to 5000"),
        (GamesWishes, "options", ([], "x"), "an object of names and values"),
        (CombineWishes, "share", ("x", True), "a number"),
        (CombineWishes, "share", (0, 0.95), "a number from 0.1 to 0.9"),
        (CombineWishes, "parts", ("x", ["x", 5], {}), "a list of names"),
        (CombineWishes, "parts", (["a"], ["a", "a"]), "a list of different names, from 2 to 50"),
        (TrainingOptions, "apply", (1, "yes"), "true or false"),
        (TrainingOptions, "options", ([],), "an object of names and values"),
        (SelectionWishes, "evaluators", ("x", [5]), "a list of names"),
        (SelectionWishes, "variants", ([], {"a": "x"}, {"a": [5]}), "an object of lists of names"),
        (AnnotateWishes, "turns", (0,), "a whole number of at least 1"),
    ],
)
def test_invalid_value_is_named(kind, name, wrong, noun):
    needed = {
        CombineWishes: {"parts": ["a", "b"]},
        TrainingOptions: {"evaluator": "toy"},
        AnnotateWishes: {"evaluator": "x"},
    }
    for value in wrong:
        assert said(kind, {**needed.get(kind, {}), name: value}) == [(name, f"{name} must be {noun}.")]


def test_unknown_choice_is_named_with_the_known_ones():
    [fault] = said(GamesWishes, {"systems": "human"})
    assert fault == ("systems", "systems must be one of all, no-reference, machine, not “human”.")


def test_all_errors_are_named_at_once_and_valid_values_accepted():
    assert said(RobustnessWishes, {"pace": 5, "seed": "x", "evaluator": ""}) == [
        ("pace", "pace is unknown. Known: evaluator, options, sample, seed."),
        ("seed", "seed must be a whole number."),
        ("evaluator", "Name the evaluator that is looked at."),
    ]
    found = read_params(CombineWishes, {"parts": ["a", "b"], "share": 0.7})
    assert (found.parts, found.share) == (("a", "b"), 0.7)


def test_null_is_accepted_only_where_allowed():
    assert said(TrainingOptions, {"evaluator": "toy", "pace": None})[0][0] == "pace"
    assert said(TrainingOptions, {"evaluator": "toy", "seed": None}) == [("seed", "seed must be a whole number.")]
    assert said(TrainingOptions, {}) == [("evaluator", "Name the evaluator to be trained.")]
    assert read_params(TrainingOptions, {"evaluator": "toy", "folds": None}) == TrainingOptions("toy")


@pytest.mark.parametrize("seed", [-1, 2**31, 10**400])
@pytest.mark.parametrize(
    "start", [start_annotation, start_combination, start_games, start_curves, start_robustness, start_selection,
              start_training, start_check],
)  # fmt: skip
def test_seed_is_valid_for_every_library(toy, start, seed, settings, tmp_path):
    """The limits of the pages; numpy and torch each refuse other values in the middle of a run."""
    settings.ARTEFACTS_DIR = tmp_path
    row = make_trained(toy.project, "rater", "ream")
    make_trained(toy.project, "judge", "comparative")
    for name in ("length", "random"):
        evaluator = Evaluator.objects.create(project=toy.project, slug=name, name=name, kind="sentinel")
        ScoreSet.objects.create(project=toy.project, evaluator=evaluator, signature=name, scored_at=row.created_at)
    wishes = {
        start_annotation: lambda: AnnotateWishes(evaluator="rater", candidates="outputs", into="more", seed=seed),
        start_combination: lambda: CombineWishes(("length", "random"), seed=seed),
        start_games: lambda: GamesWishes(seed=seed),
        start_curves: lambda: CurveWishes("rater", seed=seed),
        start_robustness: lambda: RobustnessWishes("length", seed=seed),
        start_selection: lambda: SelectionWishes(seed=seed),
    }.get(start, lambda: TrainingOptions("toy", seed=seed))()
    with pytest.raises(BadInput, match=r"seed must be a (whole )?number from 0 to 2147483647\.") as refused:
        start(project=toy.project, wishes=wishes)
    assert [fault.field for fault in refused.value.faults] == ["seed"]
