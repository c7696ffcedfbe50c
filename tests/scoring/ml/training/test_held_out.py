"""The part on which the card's agreement with human judgements is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scoring.ml import fit
from tests.scoring.ml.training.toy import toy_data


def test_human_agreement_is_measured_on_the_held_out_part() -> None:
    """In training, raters prefer long texts, held out they prefer short ones: the sign shows which part is used."""
    train, dev = toy_data(12), toy_data(8, seed=9)
    dev = replace(dev, ratings=tuple(replace(row, value=7 - row.value) for row in dev.ratings))
    found = fit("toy", train, dev=dev, frozen=True, epochs=1)
    said = {row["evaluator"]: row["pearson"] for row in found.record.correlations}
    assert {name: row["n"] for name, row in said.items()} == dict.fromkeys(("toy", "length", "overlap", "random"), 16)
    by_hand = {
        part: np.corrcoef(found.score(data.outputs_with_context()), [row.value for row in data.ratings])[0, 1]
        for part, data in (("train", train), ("dev", dev))
    }
    assert said["toy"]["value"] == pytest.approx(by_hand["dev"])
    assert by_hand["train"] * by_hand["dev"] < -0.8
    assert said["length"]["value"] < -0.9
