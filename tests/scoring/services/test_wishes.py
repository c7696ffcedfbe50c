"""What a program asks of a run: every shape a field can have, and all faults at once."""

from __future__ import annotations

import pytest

from evalapp.common.errors import BadInput
from scoring.services.annotating import AnnotateWishes
from scoring.services.combining import CombineWishes
from scoring.services.games import GamesWishes
from scoring.services.reliability_curves import CurveWishes
from scoring.services.robustness import RobustnessWishes
from scoring.services.selecting import SelectionWishes
from scoring.services.training import Wishes
from scoring.services.wishes import _SHAPES, read_wishes

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
