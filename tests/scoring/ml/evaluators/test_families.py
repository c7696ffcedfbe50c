"""Encoders of every family under the evaluators that use cached vectors: train, save, load, equal scores."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.ml import fit, load
from scoring.ml.types import Aspect, Dataset, Dialogue, Item, Output, Rating
from tests.scoring.ml.tiny import WORDS

#: The tests of each evaluator cover BERT.
FAMILIES = ("roberta", "distilbert", "deberta-v2", "modernbert")
#: Fast ones. The evaluator's own part is trained, and also the encoder where it can be tuned.
OPTIONS: dict[str, dict[str, Any]] = {
    "adem": {"components": 4, "l2": 0.1},
    "ridge": {},
    "maude": {"epochs": 1, "hidden": 8, "down": 8, "decoder": 8},
    "ream": {"epochs": 1, "metric": "token-f1", "sizes": "1,2", "combinations": 2, "heads": 2, "foreign": 2},
    "ream tuned": {
        "epochs": 1, "metric": "token-f1", "sizes": "1,2", "combinations": 2, "heads": 2, "foreign": 2,
        "negatives": "add", "tune_encoder": True, "pairing": "joint", "encoder_learning_rate": 1e-2,
    },
}  # fmt: skip


def data() -> Dataset:
    """Ten items and dialogues with texts of multiple lengths; four systems, whose longer outputs are rated higher."""
    rng = np.random.default_rng(8)

    def text(n: int) -> str:
        return " ".join(rng.choice(WORDS, n))

    items, outputs, ratings, dialogues = [], [], [], []
    for number in range(10):
        name = f"i{number}"
        items.append(Item(name, (text(2 + number % 5),), references=(text(4), text(2)), group=name))
        dialogues.append(Dialogue(name, (text(1 + number % 4), text(3), text(2))))
        for place in range(4):
            outputs.append(Output(name, f"s{place}", f"{text(1 + place)} {items[-1].references[0][: 6 * place]}"))
            ratings.append(Rating("r1", "overall", 1.0 + place, name, f"s{place}"))
    return Dataset(
        "hand", aspects=(Aspect("overall", 1, 5),), items=tuple(items), outputs=tuple(outputs),
        ratings=tuple(ratings), dialogues=tuple(dialogues),
    )  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", list(OPTIONS))
def test_any_family_of_encoders(name: str, family: str, tiny_family: Callable[[str], str], tmp_path: Path) -> None:
    whole = data()
    encoder = shutil.copytree(tiny_family(family), tmp_path / "encoder")
    found = fit(name.split()[0], whole, encoder=str(encoder), **OPTIONS[name])
    records = whole.outputs_with_context()
    # A `ream` scores with a metric; it learns the reliability.
    part = "reliability" if "ream" in name else ""

    def values(evaluator: Any, given: Any) -> Any:
        scored = evaluator.evaluate(given)
        return scored.components[part] if part else scored.values

    whole_values = values(found, records)
    assert np.isfinite(whole_values).all()
    assert len(set(whole_values.round(5))) >= len(whole.items) / 2
    # Padding is never read, so the other texts in the batch do not matter.
    for row in (0, 17, 39):
        assert values(found, records[row : row + 1])[0] == pytest.approx(whole_values[row], abs=1e-5)
    found.save_pretrained(tmp_path / "out")
    if "tuned" in name:  # it is in the artefact's own folder
        shutil.rmtree(encoder)
    loaded = load(tmp_path / "out")
    np.testing.assert_allclose(values(loaded, records), whole_values, atol=1e-6)
    assert loaded.signature == found.signature
