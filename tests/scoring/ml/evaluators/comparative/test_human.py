"""Pairs from human judgements: merged verdicts, rating differences, tau, scope."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scoring.ml.evaluators.comparative.human import HumanSettings, estimate_tau, human_pairs
from scoring.ml.evaluators.comparative.material import Material
from scoring.ml.training.fit import make_job
from scoring.ml.types import Aspect, Comparison, Dataset, Item, Output, Rating

BASE = HumanSettings("raw", "context", None, 1000, True)


def dataset(**more) -> Dataset:
    items = tuple(Item(f"i{n}", ("hello",)) for n in range(3))
    outputs = tuple(Output(f"i{n}", s, f"text {n} {s}") for n in range(3) for s in "abc")
    return Dataset("d", aspects=(Aspect("good", 1, 5),), items=items, outputs=outputs, **more)


def verdict(a: str, b: str, said: str, rater: str = "r", item: str = "i0") -> Comparison:
    return Comparison(item, a, b, rater, "good", said)


def found(data: Dataset, **options):
    return human_pairs(data, "good", replace(BASE, **options), np.random.default_rng(1))


def as_dict(pairs) -> dict[tuple[str, str, str], tuple[float, float, float]]:
    return {(p.a.item, p.a.system, p.b.system): p.target for p in pairs.pairs}


def test_verdicts_on_one_pair_become_shares():
    rows = (verdict("a", "b", "a", "r1"), verdict("b", "a", "a", "r2"), verdict("a", "b", "tie", "r3"),
            verdict("a", "b", "both_bad", "r4"), verdict("a", "b", "cannot_decide", "r5"))  # fmt: skip
    pairs = found(dataset(comparisons=rows))
    assert as_dict(pairs) == {("i0", "a", "b"): (0.25, 0.5, 0.25)}
    assert as_dict(found(dataset(comparisons=rows), tie=False)) == {("i0", "a", "b"): (0.5, 0.0, 0.5)}
    only_tied = dataset(comparisons=(verdict("a", "b", "tie"),))
    assert found(only_tied).decided == 0
    assert found(only_tied, tie=False).pairs == ()
    assert found(only_tied, tie=False).tied == 1


def test_blank_text_is_in_no_pair():
    """It is the worst text by definition, so it teaches nothing."""
    values = {("i0", "a"): [4], ("i0", "b"): [1], ("i0", "c"): [3]}
    whole = dataset(ratings=ratings(values), comparisons=(verdict("a", "b", "a"), verdict("a", "c", "a")))
    texts = {("i0", "b"): " \n", ("i1", "c"): ""}
    outputs = tuple(replace(row, text=texts.get((row.item, row.system), row.text)) for row in whole.outputs)
    for how in ("context", "rater", "all", "both"):
        pairs = found(replace(whole, outputs=outputs), rating_pairs=how)
        assert {(p.a.system, p.b.system) for p in pairs.pairs} == {("a", "c")}, how
        # The other blank text was not judged.
        assert pairs.empty == 1
    assert found(whole).empty == 0


def ratings(values: dict[tuple[str, str], list[float]]) -> tuple[Rating, ...]:
    return tuple(
        Rating(f"r{k}", "good", value, item, system, simulated=True)
        for (item, system), row in values.items()
        for k, value in enumerate(row)
    )


def test_means_must_differ_by_more_than_half_a_point_of_five():
    """Tau = 0.5 for means on a scale of 1 to 5, 0 for one rater."""
    rows = ratings({("i0", "a"): [3, 4], ("i0", "b"): [3, 3], ("i0", "c"): [1, 2]})
    pairs = found(dataset(ratings=rows))
    assert as_dict(pairs) == {("i0", "a", "b"): (0, 1, 0), ("i0", "a", "c"): (0, 0, 1), ("i0", "b", "c"): (0, 0, 1)}
    assert (pairs.rated, pairs.compared, pairs.simulated) == (3, 0, 6)
    assert as_dict(found(dataset(ratings=rows), tau=0.4))[("i0", "a", "b")] == (0, 0, 1)
    one = ratings({("i0", "a"): [4], ("i0", "b"): [3]})
    assert as_dict(found(dataset(ratings=one)))[("i0", "a", "b")] == (0, 0, 1)
    data = dataset(ratings=rows)
    assert [estimate_tau(data, "good", how, True) for how in ("raw", "z", "rank")] == [0.5, 0.5, 0.125]
    assert estimate_tau(data, "good", "raw", False) == 0.0


@pytest.mark.parametrize("pairing", ["context", "all"])
def test_one_text_rated_twice_does_not_make_means_of_others(pairing):
    """Once, a single repeat in a campaign with single ratings turned every pair into a tie."""
    wide = (Aspect("good", 0, 100),)
    values = {("i0", "a"): [50], ("i0", "b"): [44], ("i0", "c"): [40]}
    said = as_dict(found(replace(dataset(ratings=ratings(values)), aspects=wide), rating_pairs=pairing))
    assert set(said.values()) == {(0, 0, 1)}
    values["i0", "c"] = [40, 40]
    said = as_dict(found(replace(dataset(ratings=ratings(values)), aspects=wide), rating_pairs=pairing))
    assert said == {("i0", "a", "b"): (0, 0, 1), ("i0", "a", "c"): (0, 1, 0), ("i0", "b", "c"): (0, 1, 0)}


def test_held_out_part_has_the_tau_of_the_training_data(tmp_path):
    """Without a declared scale, the range of ratings is used; once, each part had its own."""
    wide = replace(dataset(ratings=ratings({("i0", "a"): [1, 1], ("i0", "b"): [9, 9]})), aspects=())
    narrow = replace(dataset(ratings=ratings({("i1", "a"): [5, 5], ("i1", "b"): [5.5, 5.5]})), aspects=())
    job = make_job("comparative", wide, {"rating_pairs": "context"}, dev=narrow, folder=tmp_path)
    material = Material.__new__(Material)
    material.job, material.tie, material.train = job, True, wide
    # An eighth of 1 to 9 is 1; of 5 to 5.5 it would be 0.0625.
    assert as_dict(material.judged_pairs(narrow, "good")) == {("i1", "a", "b"): (0, 1, 0)}


def test_means_given_as_one_rating_are_means():
    """Tau = 0 is for a single integer rater; 4.8 was a mean (dailydialog_multiref: rater "mean")."""
    rows = ratings({("i0", "a"): [3.4], ("i0", "b"): [3.2], ("i0", "c"): [4.8], ("i1", "a"): [3.0]})
    said = as_dict(found(dataset(ratings=rows), rating_pairs="rater"))
    assert said[("i0", "a", "b")] == (0, 1, 0)
    assert said[("i0", "a", "c")] == (1, 0, 0)
    assert as_dict(found(dataset(ratings=rows)))[("i0", "a", "b")] == (0, 1, 0)


def test_means_that_differ_by_tau_are_tied_despite_rounding():
    """7/3 - 11/6 is 0.5, in floating point 0.5000000000000002."""
    rows = ratings({("i0", "a"): [2, 2, 3], ("i0", "b"): [1, 2, 2, 2, 2, 2]})
    assert as_dict(found(dataset(ratings=rows)))[("i0", "a", "b")] == (0, 1, 0)


def test_verdicts_against_references_are_training_data():
    """Zhou and Xu 2020: pairwise judgements are used directly; a reference is also a text."""
    data = dataset(comparisons=(
        Comparison("i0", "a", None, "r1", "good", "b", reference_b=1),
        Comparison("i0", "a", None, "r2", "good", "tie", reference_b=1),
        Comparison("i0", "a", None, "r1", "good", "a", reference_b=0),
        Comparison("i0", "a", None, "r1", "good", "a", reference_b=7),
    ))  # fmt: skip
    data = replace(data, items=(replace(data.items[0], references=("one", "two")), *data.items[1:]))
    said = {(p.a.text, p.b.text): p.target for p in found(data).pairs}
    assert said == {("text 0 a", "two"): (0.5, 0.5, 0), ("text 0 a", "one"): (0, 0, 1)}


def test_rater_of_two_campaigns_is_one_person():
    """`r` rated i0, `r@12` rated i1 and i0 again: one person's 4 and 2, and no pair of a text with itself."""
    said = (("r", "i0", 4), ("r@12", "i1", 2), ("r@12", "i0", 1))
    rows = tuple(Rating(rater, "good", value, item=item, system="a") for rater, item, value in said)
    pairs = found(dataset(ratings=rows), rating_pairs="rater").pairs
    assert [(p.a.item, p.b.item, p.target) for p in pairs] == [("i0", "i1", (0.0, 0.0, 1.0))]


def test_pairing_of_texts():
    rows = ratings({(f"i{n}", s): [n + 1, 5 - n] for n in range(3) for s in "ab"})
    data = dataset(ratings=rows)
    items = {(p.a.item, p.b.item) for p in found(data, rating_pairs="context").pairs}
    assert items == {("i0", "i0"), ("i1", "i1"), ("i2", "i2")}
    # All texts rated by one person, in one context or in two: 15 pairs for each of two people.
    own = found(data, rating_pairs="rater").pairs
    assert len(own) == 30
    assert sum(p.a.item == p.b.item for p in own) == 6
    apart = [p for p in own if p.a.item != p.b.item]
    # One person's 1 for i0 is below that person's 2 for i1; the other gives 5 and 4.
    said = {p.target for p in apart if (p.a.item, p.b.item) == ("i0", "i1")}
    assert said == {(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)}
    assert len(found(data, rating_pairs="all").pairs) == 15
    assert len(found(data, rating_pairs="all", most=7).pairs) == 7
    both = found(data, rating_pairs="both", same_context=0.5).pairs
    assert sum(p.a.item == p.b.item for p in both) == sum(p.a.item != p.b.item for p in both) == 3


def test_identical_texts_teach_nothing():
    data = dataset(comparisons=(verdict("a", "b", "a"),))
    same = replace(data, outputs=tuple(replace(o, text="the same") for o in data.outputs))
    assert (found(same).pairs, found(same).identical) == ((), 1)


def test_same_seed_gives_the_same_draws():
    rows = ratings({(f"i{n}", s): [n + 1.0] for n in range(3) for s in "abc"})
    one, two = (found(dataset(ratings=rows), rating_pairs="all", most=10) for _ in range(2))
    assert one.pairs == two.pairs
    assert len(one.pairs) == pytest.approx(10)
