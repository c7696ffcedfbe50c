"""What a program asks of a run: every shape a field can have, and all faults at once."""

from __future__ import annotations

import pytest

from evalapp.common.errors import BadInput
from scoring.models import Evaluator, ScoreSet
from scoring.services.annotating import AnnotateWishes, start_annotation
from scoring.services.combining import CombineWishes, start_combination
from scoring.services.games import GamesWishes, start_games
from scoring.services.reliability_curves import CurveWishes, start_curves
from scoring.services.robustness import RobustnessWishes, start_robustness
from scoring.services.selecting import SelectionWishes, start_selection
from scoring.services.training import Wishes, start_check, start_training
from scoring.services.wishes import _SHAPES, read_wishes
from tests.scoring.training import make_trained

KINDS = (AnnotateWishes, CombineWishes, CurveWishes, GamesWishes, RobustnessWishes, SelectionWishes, Wishes)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_of_every_kind_has_a_shape(kind):
    for field in kind.__dataclass_fields__.values():
        assert field.type.removesuffix(" | None") in _SHAPES, field.name


def said(kind, params, **more):
    with pytest.raises(BadInput) as refused:
        read_wishes(kind, params, need={}, **more)
    return [(fault.field, fault.message) for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("kind", "name", "wrong", "noun"),
    [
        (GamesWishes, "evaluator", (5, None, ["x"]), "a text"),
        (GamesWishes, "items", ("5", 5.0, True, None), "a whole number"),
        (GamesWishes, "options", ([], "x"), "an object of names and values"),
        (CombineWishes, "share", ("x", True), "a number"),
        (CombineWishes, "parts", ("x", ["x", 5], {}), "a list of names"),
        (Wishes, "apply", (1, "yes"), "true or false"),
        (Wishes, "options", ([],), "an object of names and values"),
        (SelectionWishes, "evaluators", ("x", [5]), "a list of names"),
        (SelectionWishes, "variants", ([], {"a": "x"}, {"a": [5]}), "an object of lists of names"),
    ],
)
def test_what_does_not_fit_is_named(kind, name, wrong, noun):
    for value in wrong:
        assert said(kind, {name: value}) == [(name, f"{name} is {noun}.")]


def test_all_faults_are_told_at_once_and_what_fits_is_taken():
    need = {"evaluator": "Name one."}
    with pytest.raises(BadInput, match=r"pace is not known here\. seed is a whole number\. Name one\."):
        read_wishes(RobustnessWishes, {"pace": 5, "seed": "x", "evaluator": ""}, need=need)
    found = read_wishes(CombineWishes, {"parts": ["a", "b"], "share": 1}, need={"parts": "Name them."})
    assert (found.parts, found.share) == (("a", "b"), 1)
    # Null is no such member where that is said, but for a name that is not known.
    assert said(Wishes, {"pace": None}, null=True) == [("pace", "pace is not known here.")]
    assert read_wishes(Wishes, {"evaluator": "toy", "folds": None, "seed": None}, need=need, null=True) == Wishes("toy")


@pytest.mark.parametrize("seed", [-1, 2**31, 10**400])
@pytest.mark.parametrize(
    "start", [start_annotation, start_combination, start_games, start_curves, start_robustness, start_selection,
              start_training, start_check],
)  # fmt: skip
def test_a_seed_is_one_that_every_library_takes(toy, start, seed, settings, tmp_path):
    """The bounds of the pages; numpy and torch each refuse others, in the midst of a run."""
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
    }.get(start, lambda: Wishes("toy", seed=seed))()
    with pytest.raises(BadInput, match=r"seed is a (whole )?number from 0 to 2147483647\.") as refused:
        start(project=toy.project, wishes=wishes)
    assert [fault.field for fault in refused.value.faults] == ["seed"]
