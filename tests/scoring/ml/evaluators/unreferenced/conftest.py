"""A tiny encoder and conversations whose replies can be distinguished from false ones."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.ml.types import Dataset, Dialogue
from tests.scoring.ml.tiny import WORDS, tiny_encoder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("frozen"))


@pytest.fixture(scope="session")
def dialogues() -> Dataset:
    """30 conversations of 2 to 6 turns; every reply starts with the last word of the previous turn."""
    rng = np.random.default_rng(5)
    found = []
    for number in range(30):
        turns = [" ".join(rng.choice(WORDS, int(rng.integers(2, 7))))]
        while len(turns) < 2 + number % 5:
            rest = rng.choice(WORDS, int(rng.integers(1, 6)))
            turns.append(" ".join([turns[-1].split()[-1], *rest]))
        found.append(Dialogue(f"d{number:02}", tuple(turns)))
    return Dataset("talk", dialogues=tuple(found))


SMALL: dict[str, dict[str, int]] = {
    "maude": {"hidden": 16, "down": 12, "decoder": 16},
    "bert-nli": {"decoder": 16},
    "infersent": {"hidden": 8, "embedding": 12, "decoder": 16},
    "ruber": {"hidden": 8, "embedding": 12, "decoder": 16},
}


@pytest.fixture(params=list(SMALL))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def small(name: str) -> dict[str, int]:
    return dict(SMALL[name])
