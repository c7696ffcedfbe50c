"""An encoder without dropout, like ModernBERT: model certainty is 1 everywhere, and this is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from scoring.ml import fit, plan
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.perception.evaluator import NO_DROPOUT, Perception, _drops
from scoring.ml.types import Dataset, Item, Output
from tests.scoring.ml.tiny import FAMILIES, tiny_encoder


def data() -> Dataset:
    items = tuple(Item(f"i{n}", ("hello",), references=("you like tea",), group=f"g{n}") for n in range(8))
    outputs = tuple(Output(item.id, "near", f"{word} tea") for item, word in zip(items, "abcdefgh", strict=True))
    return Dataset("hand", items=items, outputs=outputs)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_missing_dropout_is_reported(tmp_path: Path, dropout: float) -> None:
    """Once, the scores had unc:both/20 in their signature without a warning, after twenty identical passes."""
    encoder = tiny_encoder("modernbert", tmp_path, dropout=dropout)
    found = fit("perception", data(), encoder=encoder, max_steps=1, penalty="none")
    assert isinstance(found, Perception)
    records = data().outputs_with_context()
    said = () if dropout else (NO_DROPOUT,)
    m, _ = Perception(found.entry, found.artefact, {"mc_passes": 3}).certainty(records)
    assert (m == 1).all() == (not dropout)
    assert found.evaluate(records).remarks == said
    assert tuple(note for note in plan("perception", data(), encoder=encoder).notes if "dropout" in note) == said
    assert CrossFitted(found.entry, [found, found]).evaluate(records).remarks == said
    # Without passes there is no need for dropout.
    assert Perception(found.entry, found.artefact, {"uncertainty": "data"}).evaluate(records).remarks == ()
    mean = Perception(found.entry, found.artefact, {"uncertainty": "none", "p_gen": "mc_mean"})
    assert mean.evaluate(records).remarks == said


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_recognised_by_its_configuration(tmp_path: Path, family: str) -> None:
    for dropout in (0.0, 0.1):
        encoder = find_encoder(tiny_encoder(family, tmp_path / str(dropout), dropout=dropout, layers=1))
        assert _drops(encoder) == (dropout > 0)
