"""The card's agreement with people: how many groups its intervals rest on, and what it says where these are few."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scoring.ml import fit, load
from scoring.ml.artefact import CARD
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.card import write_card
from tests.scoring.ml.training.toy import toy_data

WARNING = "say little"


def trained(n_groups: int) -> TrainedEvaluator:
    """Agreement is measured on 12 items with two outputs each, in so many groups."""
    dev = toy_data(12, seed=9)
    items = tuple(replace(item, group=f"g{number % n_groups}") for number, item in enumerate(dev.items))
    return fit("toy", toy_data(12), dev=replace(dev, items=items), frozen=True, epochs=1)


def with_rows(evaluator: TrainedEvaluator, rows: Any) -> TrainedEvaluator:
    record = replace(evaluator.record, correlations=tuple(rows))
    return type(evaluator)(evaluator.entry, replace(evaluator.artefact, record=record))


def counts(card: str) -> dict[str, tuple[str, str]]:
    """n and groups of each evaluator's row."""
    return {name: (n, groups) for name, n, groups in re.findall(r"\| ([\w-]+) \| fluency \| (\S+) \| (\S+) \|", card)}


@pytest.mark.parametrize("n_groups", [12, 10, 9, 3, 1])
def test_the_groups_stand_beside_n_and_few_are_warned_of(tmp_path: Path, n_groups: int) -> None:
    """10 is the bound of the leaderboards (`evalapp.stats.resampling.FEW_CLUSTERS`); of one group there is no interval
    to warn of."""
    evaluator = trained(n_groups)
    evaluator.save_pretrained(tmp_path / "out")
    card = (tmp_path / "out" / CARD).read_text(encoding="utf-8")
    assert counts(card) == dict.fromkeys(("toy", "length", "overlap", "random"), ("24", str(n_groups)))
    assert (WARNING in card) == (n_groups in (3, 9))
    assert (f"so few groups ({n_groups})" in card) == (n_groups in (3, 9))
    assert ("[" in card.partition("## Agreement")[2]) == (n_groups > 1)
    # As it is read again: the number stands in the record.
    assert write_card(load(tmp_path / "out")) == card


def test_a_record_of_before_the_groups_were_counted_says_what_it_knows() -> None:
    few, many = trained(3), trained(12)
    old = [
        with_rows(one, ({k: v for k, v in row.items() if k != "n_groups"} for row in one.record.correlations))
        for one in (few, many)
    ]
    assert write_card(old[0]) == write_card(few)
    card = write_card(old[1])
    assert set(counts(card).values()) == {("24", "-")}
    assert WARNING not in card


def test_of_several_numbers_the_least_and_the_greatest_are_named() -> None:
    evaluator = trained(3)
    rows = [dict(row) for row in evaluator.record.correlations]
    rows[1]["n_groups"], rows[2]["n_groups"] = 8, 12
    assert "so few groups (3 to 8)" in write_card(with_rows(evaluator, rows))
