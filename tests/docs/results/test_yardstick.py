"""The studies of ridge as the yardstick: held-out groups, cosines, differences, and starts from other sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scoring.ml import Dataset, Item, Output, Rating

WIDTH = 4


@pytest.fixture(scope="module")
def yardstick(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.yardstick")


@pytest.fixture(scope="module")
def transfer(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.transfer")


def make_data(prefix: str = "g", *, context: bool = True, shift: float = 0.0) -> Dataset:
    """Twenty items in ten groups with two systems' outputs, a reference, and one rating of each output."""
    items = tuple(
        Item(str(n), context=(f"question {n}",) if context else (), references=(f"reference {n}",),
             group=f"{prefix}{n // 2}")
        for n in range(20)
    )  # fmt: skip
    outputs = tuple(
        Output(item.id, name, f"{name} says {'much ' * n}") for n, item in enumerate(items) for name in "ab"
    )
    ratings = tuple(
        Rating("r", "overall", float(n % 5) + shift, item=one.item, system=one.system) for n, one in enumerate(outputs)
    )
    return Dataset("d", items=items, outputs=outputs, ratings=ratings)


def make_set(run: Any, kind: type, data: Dataset, **entry: Any) -> Any:
    """A rated set with random vectors in place of an encoder's."""
    rated = kind(run, "d", {"aspects": ["overall"], "aspect": "overall", **entry})
    rated.__dict__["data"] = data
    rated.__dict__["vectors"] = np.random.default_rng(1).normal(size=(len(rated.rows.table.texts), WIDTH))
    return rated


def cosine(rated: Any, row: int, side: str) -> float:
    y, other = rated.vectors[rated.rows.outputs[row]], rated.vectors[rated.rows.sides[side][row][0]]
    return float(y @ other / np.linalg.norm(y) / np.linalg.norm(other))


def test_scores_of_a_group_do_not_depend_on_its_ratings(yardstick: ModuleType, make_run: Any) -> None:
    run, data = make_run("yardstick"), make_data()
    scores = yardstick.Judged(make_set(run, yardstick.RatedSet, data), "overall").predict(13)
    changed = replace(data, ratings=tuple(
        replace(one, value=100.0) if one.item in ("0", "1") else one for one in data.ratings
    ))  # fmt: skip
    others = yardstick.Judged(make_set(run, yardstick.RatedSet, changed), "overall").predict(13)
    fold = make_set(run, yardstick.RatedSet, data).number_folds(13)
    same = [fold[one.item] == fold["0"] for one in data.outputs]
    assert fold["0"] == fold["1"]
    assert others[same] == pytest.approx(scores[same], abs=1e-9)
    assert not np.allclose(others[np.logical_not(same)], scores[np.logical_not(same)])


@pytest.mark.parametrize("context", [True, False])
def test_cosines_are_those_of_their_side(
    yardstick: ModuleType, transfer: ModuleType, make_run: Any, context: bool
) -> None:
    """A set without context has columns for it where sets share their columns."""
    run, data = make_run("yardstick"), make_data(context=context)
    for kind in (yardstick.RatedSet, transfer.SidedSet):
        rated = make_set(run, kind, data)
        sides = ["context", "references"] if context else ["references"]
        assert sorted(rated.cosines) == [f"cosine with {side}" for side in sides]
        for side in sides:
            found = rated.cosines[f"cosine with {side}"]
            assert found == pytest.approx([cosine(rated, row, side) for row in range(40)])


def test_the_difference_from_ridge_is_paired(yardstick: ModuleType, make_run: Any) -> None:
    judged = yardstick.Judged(make_set(make_run("yardstick"), yardstick.RatedSet, make_data()), "overall")
    scores = np.random.default_rng(0).normal(size=len(judged.rows))
    found = judged.measure([scores], [2 * scores + 1])
    for measure in yardstick.MEASURES:
        gap = found[f"{measure} above ridge"]
        assert (gap["value"], gap["low"], gap["high"], gap["p"]) == pytest.approx((0.0, 0.0, 0.0, 1.0), abs=1e-9)
    assert (found["n"], found["groups"], found["seeds"]) == (40, 10, 1)


def test_p_is_twice_the_share_of_resamples_on_the_other_side(yardstick: ModuleType) -> None:
    draws = np.arange(-3.0, 96.0)  # 99 draws, the first four at most 0
    assert yardstick.with_draws(46.0, draws, test=True)["p"] == pytest.approx(2 * 5 / 100)
    assert "p" not in yardstick.with_draws(46.0, draws)


def test_p_of_a_normal_interval(yardstick: ModuleType) -> None:
    """One and a half times the half-width from 0: z = 2.94."""
    assert yardstick.compute_p({"value": -0.3, "low": -0.5, "high": -0.1}) == pytest.approx(0.00328, rel=1e-2)
    assert yardstick.compute_p({"value": 0.2, "low": 0.0, "high": 0.4}) == pytest.approx(0.05)
    assert yardstick.compute_p({"value": 0.0, "low": 0.0, "high": 0.0}) == 1.0


def test_a_start_knows_no_group_of_its_set(transfer: ModuleType, make_run: Any, monkeypatch: Any) -> None:
    """The third set shares two of its ten groups, four items and eight outputs, with the first."""
    first, second, third = make_data("g"), make_data("h"), make_data("i")
    items = tuple(replace(one, group=f"g{int(one.id) // 2}") if int(one.id) < 4 else one for one in third.items)
    known = {"one": first, "two": second, "three": replace(third, items=items)}
    sets = {name: {"aspect": "overall"} for name in known}
    run = make_run("transfer")
    run = replace(run, study=replace(run.study, settings={**run.settings, "sets": sets}))
    monkeypatch.setattr(transfer, "SidedSet", lambda run, name, entry: make_set(run, SidedSet, known[name]))
    SidedSet = type("SidedSet", (transfer.RatedSet,), {"sides": ("context", "references", "source")})
    assert transfer.Transfer(run, "one").n_others == 40 + 32
    assert transfer.Transfer(run, "two").n_others == 80


def test_with_ratings_of_nothing_new_the_start_stays(transfer: ModuleType) -> None:
    """The multiple of the start is that of least squares, at least 0."""
    one = transfer.Transfer.__new__(transfer.Transfer)
    one.start = np.array([1.0, 2.0, 3.0, 4.0])
    one.target = type("Target", (), {"means": np.array([2.0, 4.0, 6.0, 0.0])})
    learned = np.array([True, True, True, False])
    assert one.fit_offset(learned) == pytest.approx([2.0, 4.0, 6.0, 8.0])
    one.target.means = -one.target.means
    assert one.fit_offset(learned) == pytest.approx([0.0] * 4)
