"""Steps: their order, the split, what is left out, and the figures of every measure with short trainings."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scipy.stats import spearmanr

from scoring.ml.errors import TrainingDataError
from scoring.ml.studies.kinds import get_kind, list_variants
from scoring.ml.studies.measures import StudyData
from scoring.ml.studies.steps import (
    compute_step,
    digest_step,
    list_steps,
    plan_step,
    plan_variants,
    split_data,
)
from scoring.ml.studies.table import tabulate
from scoring.ml.training.gold import collect_rated_outputs
from scoring.ml.types import Comparison
from tests.scoring.ml.studies.conftest import SYSTEMS, make_dataset, make_dialogues
from tests.scoring.ml.test_selection import dataset as make_choices


def compute_all(design, data, tmp_path, evaluators=()):
    """The steps with their results."""
    steps = list_steps(list_variants(design.kind, evaluators), design)
    return [(step, compute_step(step, data, design, tmp_path / str(n))) for n, step in enumerate(steps)]


def test_split_is_by_whole_groups_and_dialogues_do_not_change_it():
    plain = make_dataset()
    parts = split_data(plain, 13, 0.3)
    with_dialogues = split_data(replace(plain, dialogues=make_dialogues(50)), 13, 0.3)
    assert [[item.id for item in part.items] for part in parts] == [
        [item.id for item in part.items] for part in with_dialogues
    ]
    assert [len(part.items) for part in parts] == [18, 3, 9]
    assert [len(part.dialogues) for part in with_dialogues] == [31, 4, 15]
    groups = [{item.group for item in part.items} for part in parts]
    assert not (groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2])
    with pytest.raises(TrainingDataError, match="cannot be parted"):
        split_data(make_dataset(2), 13, 0.3)


def test_variants_that_differ_only_in_scoring_share_a_training(make_design):
    variants = list_variants(get_kind("ablation"), ["perception"])
    steps = list_steps(variants, make_design("ablation", seeds=2))
    assert [step.label for step in steps] == [
        f"{name}, seed {seed}"
        for seed, rival in ((13, ["ridge"]), (14, []))
        for name in ("full model", "w/o data uncertainty", "w/o context", *rival)
    ]
    assert [variant.label for variant in steps[0].variants] == ["full model", "w/o model uncertainty"]


def test_untrained_evaluators_come_first_and_once(make_design):
    variants = list_variants(get_kind("side-by-side"), ["ridge", "length"])
    steps = list_steps(variants, make_design("side-by-side", seeds=3))
    assert [(step.evaluator, step.seed) for step in steps] == [("length", None)] + [("ridge", s) for s in (13, 14, 15)]


def test_a_part_that_the_data_lack_is_left_out_with_the_reason(make_design, data):
    design = make_design("ablation")
    plans, left_out = plan_variants(list_variants(design.kind, ["comparative"]), data, design)
    assert "w/o weak supervision" in left_out
    assert {"full model", "w/o human annotation"} <= set(plans)


def test_digest_changes_with_everything_that_changes_the_result(make_design, data):
    design = make_design("seeds", seeds=2)
    first, _rival, second = list_steps(list_variants(design.kind), design)
    digests = [
        digest_step(first, data, design),
        digest_step(second, data, design),
        digest_step(first, data, replace(design, options={**design.options, "epochs": 2})),
        digest_step(first, StudyData(data.train, data.dev, data.test, ()), design),
        digest_step(first, StudyData(data.dev, data.train, data.test, data.aspects), design),
    ]
    assert len(set(digests)) == len(digests)
    # A training that another kind shares is the same step.
    assert digest_step(first, data, replace(design, kind=get_kind("side-by-side"), seeds=5)) == digests[0]


def test_plan_has_a_range_with_the_time_to_score_the_test_part(make_design, data):
    design = make_design("seeds")
    step, _rival = list_steps(list_variants(design.kind), design)
    plan = plan_step(step, data, design)
    assert plan.steps == 2
    assert plan.seconds_range[0] < plan.seconds < plan.seconds_range[1]


def test_agreement_of_length_and_a_trained_evaluator(make_design, data, tmp_path):
    design = make_design("side-by-side")
    results = compute_all(design, data, tmp_path, ["length", "shared-bert"])
    json.dumps([result for _step, result in results], allow_nan=False)
    cells = results[0][1]["parts"]["good"]["length"]
    # Longer outputs are better by construction, so the order of systems is perfect.
    assert cells["system_spearman"]["value"] == pytest.approx(1)
    assert cells["spearman"]["value"] > 0.8
    trained = results[1][1]
    assert {"accuracy", "f1", "mcc", "auroc"} <= set(trained["parts"]["good"]["shared-bert"])
    # A third of the outputs is rated below the threshold of 5: the bad and the fair ones.
    assert trained["floors"]["good"]["constant class"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert len(trained["scores"]["shared-bert"]["good"]) == len(data.test.outputs)
    # The rival reads the same data; better outputs are longer, and ridge has the number of words.
    (table,) = tabulate(design.kind, results, data)
    rows = {row["label"]: row["cells"] for row in table["rows"]}
    assert list(rows) == ["length", "shared-bert", "ridge", "constant class"]
    over = rows["shared-bert"]["over_rival:spearman"]
    # Of the stored scores, which have six digits: equal texts can differ in the eighth.
    stored = spearmanr(trained["scores"]["shared-bert"]["good"], collect_rated_outputs(data.test, "good").means())
    assert over["value"] == pytest.approx(stored.statistic - rows["ridge"]["spearman"]["value"], abs=1e-9)
    assert "over_rival:spearman" not in rows["length"] | rows["ridge"]


def test_pairs_of_comparative_with_coverage_and_ridge_on_differences(make_design, tmp_path):
    compared = make_dataset()
    comparisons = tuple(
        Comparison(item.id, a, b, rater, "good", "a" if SYSTEMS.index(a) > SYSTEMS.index(b) else "b")
        for item in compared.items
        for a, b in (("bad", "good"), ("fair", "bad"), ("good", "fair"))
        for rater in ("a", "b")
    )
    data = StudyData(*split_data(replace(compared, ratings=(), comparisons=comparisons), 13, 0.3), ("good",))
    design = make_design("seeds")
    results = compute_all(design, data, tmp_path, ["comparative"])
    (table,) = tabulate(design.kind, results, data)
    rows = {row["label"]: row["cells"] for row in table["rows"]}
    # Nine groups with three pairs each.
    assert rows["comparative"]["coverage"]["n"] == rows["ridge"]["decided"]["n"] == 27
    assert 0 <= rows["comparative"]["coverage"]["value"] <= 1
    assert "coverage" not in rows["ridge"]
    # Longer texts are better by construction: a regression on differences of features, the length among them, finds it.
    assert rows["ridge"]["decided"]["value"] == 1
    over = rows["comparative"]["over_rival:decided"]
    assert over["value"] == pytest.approx(rows["comparative"]["decided"]["value"] - 1)
    assert table["columns"][-1] == "over_rival:decided"


def test_robustness_and_selection_by_length(make_design, data, tmp_path):
    """Their reports have tests of their own; here the cells and the row of random choices."""
    item = data.test.items[0]
    kinds = {"HWE": [item.make_record("yes i like it", "HWE")], "AE": [item.make_record("no", "AE")], "MGE": []}
    (_step, result), = compute_all(
        make_design("robustness"), replace(data, kinds=kinds), tmp_path, ["length"]
    )  # fmt: skip
    cells = result["parts"][""]["length"]
    assert list(cells) == ["HWE", "AE"]
    assert cells["HWE"]["value"] > cells["AE"]["value"]
    choices = StudyData(*split_data(make_choices(40), 13, 0.5), ("good",))
    (_step, result), = compute_all(make_design("selection"), choices, tmp_path, ["length"])  # fmt: skip
    # The longest step is people's best; among the variants the shortest.
    assert result["parts"]["good"]["length"]["steps_wins"]["value"] == 1
    assert result["parts"]["good"]["length"]["variants_wins"]["value"] == 0
    assert result["floors"]["good"]["at random"]["steps_wins"]["value"] == pytest.approx(1 / 3)


def test_systems_deltas_and_reliability(make_design, data, tmp_path):
    (_step, result), (_other, rival) = compute_all(make_design("p-sys"), data, tmp_path / "p")
    assert list(rival["parts"][""]["good"]) == ["ridge"]
    assert {row: cells["perception"]["n"] for row, cells in result["parts"][""].items()} == dict.fromkeys(
        ("bad", "fair", "good"), len(data.test.items)
    )
    assert result["floors"][""]["good"]["human:good"]["value"] > result["floors"][""]["bad"]["human:good"]["value"]
    talk = replace(make_dataset(), dialogues=make_dialogues(40))
    spoken = StudyData(*split_data(talk, 13, 0.3), ("good",))
    (_step, result), = compute_all(make_design("delta"), spoken, tmp_path / "d")  # fmt: skip
    rows = result["parts"]["maude"]
    assert rows["ground_truth"]["delta"]["value"] == 0
    assert {"rand_utt", "word_drop", "word_order", "word_repeat"} <= set(rows)
    (_step, result), = compute_all(make_design("reliability"), data, tmp_path / "r")  # fmt: skip
    assert list(result["parts"]["ream"]) == ["1", "2"]
    assert {"gold", "predicted", "mse", "constant", "r2", "ceiling"} == set(result["parts"]["ream"]["1"])
