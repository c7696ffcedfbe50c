"""The card's agreement with human judgements: correlations, verdicts on compared pairs, the number of groups behind
their intervals, and warnings where these are few."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scoring.ml import fit, load
from scoring.ml.artefact import CARD
from scoring.ml.base import ARTIFACT
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.types import Dataset
from tests.scoring.ml.training.test_verdicts import compared
from tests.scoring.ml.training.toy import toy_data

WARNING = "say little"


def trained(n_groups: int) -> TrainedEvaluator:
    """Agreement is measured on 12 items with two outputs each, in this number of groups."""
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
def test_groups_are_shown_with_n_and_few_give_a_warning(tmp_path: Path, n_groups: int) -> None:
    """10 is the limit of the leaderboards (`FEW_CLUSTERS`); a single group has no interval to warn about."""
    evaluator = trained(n_groups)
    evaluator.save_pretrained(tmp_path / "out")
    card = (tmp_path / "out" / CARD).read_text(encoding="utf-8")
    assert counts(card) == dict.fromkeys(("toy", "length", "overlap", "random"), ("24", str(n_groups)))
    assert (WARNING in card) == (n_groups == 9)  # 3 give no interval
    assert (f"from few groups ({n_groups})" in card) == (n_groups == 9)
    assert ("[" in card.partition("## Agreement")[2]) == (n_groups > 4)
    # Read back: the number is in the record.
    assert load(tmp_path / "out").card == card


def test_record_without_group_counts_shows_the_rest() -> None:
    few, many = trained(3), trained(12)
    old = [
        with_rows(one, ({k: v for k, v in row.items() if k != "n_groups"} for row in one.record.correlations))
        for one in (few, many)
    ]
    assert old[0].card == few.card
    card = old[1].card
    assert set(counts(card).values()) == {("24", "-")}
    assert WARNING not in card


def test_differing_counts_are_shown_as_a_range() -> None:
    evaluator = trained(6)
    rows = [dict(row) for row in evaluator.record.correlations]
    rows[2]["n_groups"], rows[3]["n_groups"] = 8, 12  # row 1 has no interval: length predicts these ratings exactly
    assert "from few groups (6 to 8)" in with_rows(evaluator, rows).card


HEADING = "| evaluator | aspect | pairs | groups | decided pairs right | all three verdicts right |"


def measured_on(dev: Dataset | None) -> TrainedEvaluator:
    return fit("toy", toy_data(12), dev=dev, frozen=True, epochs=1)


def agreement(evaluator: TrainedEvaluator) -> str:
    return evaluator.card.partition("## Agreement with people\n")[2].partition("\n## ")[0]


def estimate(value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "n": 30, "note": ""}


ROW: dict[str, Any] = {
    "evaluator": "toy", "aspect": "fluency", "n_groups": 20, "n_groups_decided": 18, "n_pairs": 40, "n_decided": 30,
    "n_tied": 10, "n_split": 3, "n_identical": 1, "n_missing": 0, "simulated": 0, "by_lot": 0.375,
    "ties": "cross-validated", "decided": estimate(0.7, 0.6, 0.8), "verdicts": estimate(0.55, 0.45, 0.65),
}  # fmt: skip


def with_verdicts(evaluator: TrainedEvaluator, *rows: dict[str, Any]) -> str:
    record = replace(evaluator.record, verdicts=rows)
    return agreement(type(evaluator)(evaluator.entry, replace(evaluator.artefact, record=record)))


@pytest.fixture(scope="module")
def unmeasured() -> TrainedEvaluator:
    return measured_on(replace(toy_data(12, seed=9), ratings=()))


def test_without_held_out_groups_the_card_says_so() -> None:
    evaluator = measured_on(None)
    assert "Not measured: no groups were held out." in agreement(evaluator)
    record = replace(evaluator.record, metrics={"loss": 0.5})
    card = type(evaluator)(evaluator.entry, replace(evaluator.artefact, record=record)).card
    assert "In the training: loss 0.5" in card
    assert "On the held-out part" not in card


def test_without_judgements_both_ways_are_explained(unmeasured: TrainedEvaluator) -> None:
    said = agreement(unmeasured)
    assert "Not measured: neither ratings for fluency of three outputs or more nor comparisons for fluency" in said
    assert "|" not in said


def test_compared_outputs_are_shown_by_verdicts(tmp_path: Path) -> None:
    evaluator = measured_on(compared(toy_data(12, seed=9)))
    said = agreement(evaluator)
    assert "Not measured" not in said
    assert "Pearson" not in said
    assert re.findall(r"^\| (\w+) \| fluency \| (\d+) \| ", said, re.MULTILINE) == [
        (name, str(evaluator.record.verdicts[0]["n_pairs"])) for name in ("toy", "length", "overlap", "random")
    ]
    assert "also chose the weights, so slightly optimistic" in said
    # Read back: the figures are in the record.
    evaluator.save_pretrained(tmp_path / "out")
    assert agreement(load(tmp_path / "out")) == said


def test_ratings_and_comparisons_are_both_shown() -> None:
    dev = toy_data(12, seed=9)
    said = agreement(measured_on(replace(compared(dev), ratings=dev.ratings)))
    assert said.index("| Pearson |") < said.index(HEADING)
    assert said.count("| length | fluency |") == 2


def test_older_folder_shows_the_same(tmp_path: Path) -> None:
    evaluator = measured_on(toy_data(12, seed=9))
    evaluator.save_pretrained(tmp_path / "out")
    path = tmp_path / "out" / ARTIFACT
    header = json.loads(path.read_text(encoding="utf-8"))
    assert header["record"].pop("verdicts") == []
    path.write_text(json.dumps(header), encoding="utf-8")
    old = load(tmp_path / "out")
    assert old.record.verdicts == ()
    assert old.card == evaluator.card


def test_row_states_its_pairs_and_the_chance_level(unmeasured: TrainedEvaluator) -> None:
    said = with_verdicts(unmeasured, ROW, {**ROW, "evaluator": "length", "n_missing": 2, "ties": "fitted"})
    assert f"{HEADING}\n|---|---|---|---|---|---|\n" in said
    assert "| toy | fluency | 40 | 20 | 0.700 [0.600, 0.800] | 0.550 [0.450, 0.650] |" in said
    assert "| length | fluency | 38 | 20 | 0.700 [0.600, 0.800] | 0.550 [0.450, 0.650] (fitted) |" in said
    assert (
        "- fluency: 30 pairs decided and 10 tied; left out: 3 without one most frequent verdict, 1 of identical texts. "
        "Chance level on all pairs: 0.250 by always saying tied, 0.375 by guessing the better text."
    ) in said
    assert said.count("- fluency") == 1
    assert "toy: scores that differ by no more than a threshold are tied; the threshold for each fifth" in said
    assert "length (fitted): for too few groups the threshold" in said
    assert "said by itself" not in said
    assert WARNING not in said
    assert "simulated" not in said


def test_row_states_its_ties_simulated_judgements_and_few_groups(unmeasured: TrainedEvaluator) -> None:
    row = {**ROW, "ties": "own", "simulated": 1200, "n_split": 0, "n_identical": 0}
    said = with_verdicts(unmeasured, {**row, "n_groups_decided": 9})
    assert "toy said by itself what is tied." in said
    assert "left out: none." in said
    assert "**1,200 of the judgements were simulated**" in said
    assert "from few groups (9)" in said
    undefined = {"value": None, "low": None, "high": None, "n": 0, "note": "people decided no pair"}
    said = with_verdicts(unmeasured, {**row, "n_groups_decided": 0, "decided": undefined})
    assert "| - (people decided no pair) |" in said
    assert WARNING not in said
