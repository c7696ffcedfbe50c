"""A rated data set whose better outputs are longer, split once, and a design of short trainings."""

from __future__ import annotations

from pathlib import Path

import pytest

from scoring.ml.studies.kinds import get_kind
from scoring.ml.studies.measures import StudyData
from scoring.ml.studies.steps import Design, split_data
from scoring.ml.types import Aspect, Dataset, Dialogue, Item, Output, Rating, System
from tests.scoring.ml.tiny import tiny_encoder

SYSTEMS = ("bad", "fair", "good")


def make_dataset(n: int = 30) -> Dataset:
    """Items of `n` groups with three systems, whose ratings by two people rise with the words."""
    items = tuple(
        Item(f"i{k}", ("do you like tea",), references=("i like tea", "no tea"), group=f"g{k}") for k in range(n)
    )
    words = {"bad": "no", "fair": "you like tea", "good": "yes i like the tea you like"}
    outputs = tuple(Output(item.id, system, f"{words[system]} {item.id[1:]}") for item in items for system in SYSTEMS)
    ratings = tuple(
        Rating(rater, "good", float(1 + 2 * SYSTEMS.index(o.system) - (rater == "b" and k % 3 == 0)), o.item, o.system)
        for k, o in enumerate(outputs)
        for rater in ("a", "b")
    )
    return Dataset(
        "small", lang="en", aspects=(Aspect("good", 0, 6),), systems=tuple(map(System, SYSTEMS)), items=items,
        outputs=outputs, ratings=ratings, dialogues=(),
    )  # fmt: skip


def make_dialogues(n: int) -> tuple[Dialogue, ...]:
    return tuple(Dialogue(f"d{k}", ("do you like tea", f"yes i like tea {k}", "no the cat ran")) for k in range(n))


@pytest.fixture
def data() -> StudyData:
    return StudyData(*split_data(make_dataset(), 13, 0.3), ("good",))


@pytest.fixture
def make_design(tmp_path: Path):
    """Returns a function that makes the design of a kind, with a tiny encoder and two steps of training."""
    encoder = tiny_encoder("bert", tmp_path / "tiny")

    def make(kind: str, **more: object) -> Design:
        options = {"encoder": encoder, "max_steps": 2, "epochs": 1}
        return Design(get_kind(kind), **{"options": options, **more})  # type: ignore[arg-type]

    return make
