"""The training and validation data of a comparative evaluator: ratings, held-out part, references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scoring.ml.evaluators.comparative.material import HUMAN, SUPERVISED, Material
from scoring.ml.evaluators.comparative.pairs import BETTER_TARGET, WORSE_TARGET, Target
from scoring.ml.evaluators.comparative.training import choose_references
from scoring.ml.training.fit import make_job
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating
from tests.scoring.ml.evaluators.comparative.data import make


def material(folder: Path, train: Dataset, dev: Dataset | None = None, seed: int = 13, **options: Any) -> Material:
    return Material(make_job("comparative", train, options, dev=dev, seed=seed, folder=folder))


def disputed() -> Dataset:
    """Forty items with texts a and b. One person uses a wide scale and gives every a 5 and every b 1; for the first
    item, two others who otherwise give 2 rate b 3."""
    items = tuple(Item(f"i{n}", ("hello",), group=f"g{n}") for n in range(40))
    outputs = tuple(Output(item.id, system, f"{system} {item.id}") for item in items for system in "ab")
    rows = [
        Rating(rater, "good", value, output.item, output.system)
        for output in outputs
        for rater, value in (
            ("wide", 5 if output.system == "a" else 1),
            *((rater, 3 if (output.item, output.system) == ("i0", "b") else 2) for rater in ("one", "two")),
        )
    ]
    return Dataset("d", aspects=(Aspect("good", 1, 5),), items=items, outputs=outputs, ratings=tuple(rows))


@pytest.mark.parametrize(
    ("method", "first"),
    [
        # Means of 9 / 3 and 7 / 3, more than half a point apart.
        ("raw", BETTER_TARGET),
        # docs/explanation/statistics/human-scores.md#comparable-ratings:
        # spreads of 1.936, .405 and .405 make 2.07, -2.47 and -2.47 of 4, -1 and -1.
        ("z", WORSE_TARGET),
        # With each person's two ranks of the item, .25 and .75: (.75 + .25 + .25) / 3 against (.25 + .75 + .75) / 3.
        ("rank", WORSE_TARGET),
    ],
)
def test_ratings_are_made_comparable_by_the_option(tmp_path: Path, method: str, first: Target) -> None:
    found = material(
        tmp_path, disputed(), ratings=method, rating_pairs="context", human="yes", strong="no", weak="no",
        calibrate=False,
    ).human  # fmt: skip
    assert found is not None
    said = {(pair.a.item, pair.a.system): pair.target for pair in found.pairs}
    assert len(said) == 40
    assert said["i0", "a"] == first
    # Where the two give no difference, the first person decides.
    assert said["i1", "a"] == BETTER_TARGET


@pytest.mark.parametrize(
    ("phase", "kinds"),
    [
        (SUPERVISED, {"strong": "yes", "weak": "no", "human": "no"}),
        (SUPERVISED, {"strong": "no", "weak": "yes", "human": "no"}),
        (HUMAN, {"strong": "no", "weak": "no", "human": "yes"}),
    ],
    ids=["strong", "weak", "human"],
)
def test_held_out_pairs_come_from_the_held_out_part(tmp_path: Path, phase: str, kinds: dict[str, str]) -> None:
    """The stored weights are the best on texts outside the training data."""
    train, dev = make(10), make(6, 9, prefix="d")
    found = material(tmp_path, train, dev, **kinds).held_out(phase)
    assert len(found) > 8
    assert {record.item for pair in found for record in (pair.a, pair.b)} == {item.id for item in dev.items}
    texts = {row.text for row in dev.outputs} | {text for item in dev.items for text in item.references}
    assert {record.text for pair in found for record in (pair.a, pair.b)} <= texts
    assert material(tmp_path, train, None, **kinds).held_out(phase) == []


def test_references_of_a_score_are_drawn_by_the_seed(tmp_path: Path) -> None:
    """Zhou and Xu 2020: 50 machine-written texts at random, stored with the model; not simply the first ones."""
    train = make(10)

    def chosen(seed: int, n: int = 6) -> list[tuple[str, str]]:
        one = material(tmp_path, train, seed=seed)
        found = choose_references(train, one, n, one.job.rng("references"))
        return [(record.item, record.text) for record in found]

    everything = list(dict.fromkeys((row.item, row.text) for row in train.outputs))
    drawn = {seed: chosen(seed) for seed in range(30)}
    assert chosen(0) == drawn[0]
    assert len({tuple(one) for one in drawn.values()}) == 30
    assert {len(set(one)) for one in drawn.values()} == {6}
    # 180 draws from about 60 texts leave few out.
    assert len({text for one in drawn.values() for text in one}) > 0.8 * len(everything)
    assert sorted(chosen(0, 1_000)) == sorted(everything)
