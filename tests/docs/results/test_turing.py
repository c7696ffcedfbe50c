"""The study of perception against Turing M1."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scoring.ml import Dataset, Item, Output, Rating

SHARES = {"good": 20, "fair": 12, "poor": 4}


@pytest.fixture(scope="module")
def turing(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.turing")


@pytest.fixture
def rated(turing: ModuleType, make_run: Any) -> Any:
    """Twenty items whose reference has 3 points; each system reaches them on its share of the items."""
    items = tuple(Item(str(n), references=("reference",), group=f"g{n}") for n in range(20))
    names = ["reference", *SHARES]
    outputs = tuple(Output(item.id, name, f"{name} text") for item in items for name in names)
    ratings = [Rating("r", "overall", 3.0, item=item.id, system="reference") for item in items]
    for name, most in SHARES.items():
        ratings += [
            Rating("r", "overall", 3.0 if int(item.id) < most else 1.0, item=item.id, system=name) for item in items
        ]
    one = turing.M1Set(make_run("turing"), "d", "reference", ("overall",))
    one.__dict__["whole"] = Dataset("d", items=items, outputs=outputs, ratings=tuple(ratings))
    return one


def test_m1_of_each_system_without_the_reference(turing: ModuleType, rated: Any) -> None:
    assert rated.systems == ["fair", "good", "poor"]
    assert not rated.data.ratings
    rows = {one["system"]: one for one in turing.tabulate_m1(rated)}
    assert {name: rows[f"d, overall: {name}"]["m1"]["value"] for name in SHARES} == {
        name: n / 20 for name, n in SHARES.items()
    }


def test_the_order_is_that_of_weighted_means(turing: ModuleType, rated: Any) -> None:
    """In the order of M1, and against it: by the scores, and by weights that leave out all but one item."""
    p = np.array([[0.5] * 20, [0.9] * 20, [0.1] * 20])
    ones = np.ones_like(p)
    found = turing.order_systems(rated, [{"p": p, "weight": ones}], "overall")
    assert found["value"] == pytest.approx(1.0)
    assert found["low"] <= 1.0
    assert turing.order_systems(rated, [{"p": -p, "weight": ones}], "overall")["value"] == pytest.approx(-1.0)
    p[:, 0] = [0.5, 0.1, 0.9]
    only = np.zeros_like(p)
    only[:, 0] = 1.0
    assert turing.order_systems(rated, [{"p": p, "weight": only}], "overall")["value"] == pytest.approx(-1.0)


def test_the_way_of_training_is_chosen_on_dev_parts(turing: ModuleType, rated: Any) -> None:
    losses = dict(zip(rated.run.settings["tries"], (0.6, 0.5), strict=True))
    for name in rated.run.settings["tries"]:
        rated.run.once(f"d/{name}", rated.run.seeds[0], lambda name=name: {"dev": {"loss": losses[name]}})
    assert turing.choose(rated.run, rated)[0] == "3e-4"


def test_ablations_are_compared_over_the_seeds_that_all_have(turing: ModuleType, rated: Any) -> None:
    run, ones = rated.run, np.ones((3, 20))
    p = np.array([[0.5] * 20, [0.9] * 20, [0.1] * 20])

    def store(setting: str, seed: int, loss: float) -> None:
        run.once(setting, seed, lambda: {"p": p, "weight": ones, "dev": {"loss": loss, "accuracy": 0.5}})

    store("d/3e-4", 14, 0.4)
    assert not list(turing.tabulate_ablations(run, rated, "3e-4"))
    for name in run.settings["ablations"]:
        store(f"d/3e-4/{name}", 13, 0.6)
    store("d/3e-4", 13, 0.5)
    found = list(turing.tabulate_ablations(run, rated, "3e-4"))
    assert [one["model"] for one in found] == ["d, full", *(f"d, {name}" for name in run.settings["ablations"])]
    assert [one["loss"]["value"] for one in found] == [0.5, 0.6, 0.6, 0.6]
    assert {one["seeds"] for one in found} == {1}
