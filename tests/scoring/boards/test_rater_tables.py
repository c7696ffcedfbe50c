"""Columns of judgements and the tables about raters: repeats, controls, order of rows, calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalapp.stats.agreement.judged import JudgementColumns, RaterJudgements, collect_judgements, split_key
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.agreement.normalise import normalise_ratings
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.agreement.compute import ORIENTED, detail_table, overview_table, to_points
from scoring.boards.data.columns import persons

SETTINGS = {"judged": "", "campaign": "", "scale": "auto", "filter": ""}


def columns(rows: list[tuple[Any, ...]], *, numeric: bool = True) -> RaterJudgements:
    """Rows of (value, item, system, rater, source)."""
    value, item, system, rater, source = (list(part) for part in zip(*rows, strict=True))
    judgements = JudgementColumns(
        value=value,
        unit=[f"{i}\t{s}" for i, s in zip(item, system, strict=True)],
        item=item,
        system=system,
        rater=rater,
        source=source,
        seconds=[5.0] * len(rows),
        at=[float(n) for n in range(len(rows))],
        simulated=[False] * len(rows),
    )
    return collect_judgements(judgements, numeric=numeric)


def toy() -> list[tuple[Any, ...]]:
    """Closed form by hand: models 0, 1, 2 by raters 0, 1, 2."""
    table = ((4, 3, 5), (2, 3, 4), (1, 2, 3))
    return [
        (float(value), "i0", f"model-{m}", f"rater-{r}", "")
        for m, row in enumerate(table)
        for r, value in enumerate(row)
    ]


@pytest.mark.parametrize(
    ("key", "known", "person"),
    [
        ("r7#2", {"r7"}, "r7"), ("r7#2", set(), "r7#2"), ("r7@12#2", {"r7"}, "r7"), ("a@1#2", {"a@1"}, "a@1"),
        ("r-2345abcd@12#2", set(), "r-2345abcd"), ("rater-0123456789@9", set(), "rater-0123456789"),
        ("anna@12", set(), "anna@12"),
    ],
)  # fmt: skip
def test_person_behind_a_rater_key(key, known, person):
    assert split_key(key, known | {key})[0] == person


def test_person_is_one_rater_in_every_campaign():
    """r7 rated i twice in the first campaign and once in the second, and j only in the second."""
    said = [("i", "r7", "one"), ("i", "r7#2", "one"), ("i", "r7@12", "two"), ("i", "r8", "one"), ("j", "r7@12", "two")]
    judged = columns([(float(n), item, "s", rater, source) for n, (item, rater, source) in enumerate(said)])
    assert judged.raters == ("r7", "r8")
    assert list(judged.repeat) == [False, True, True, False, False]
    table = detail_table(judged, SETTINGS, aspect="q", judged="ratings", controls={})
    assert (table["n_raters"], table["n_repeats"], table["raters"][0]["self_consistency"]["n"]) == (2, 2, 2)
    # Within the second campaign, r7's rating of i there is their judgement.
    lines = overview_table([("q", "ratings", judged)], SETTINGS)["rows"]
    assert [(row["source"], row["n_raters"], row["n_judgements"]) for row in lines] == [
        ("", 2, 3), ("one", 2, 2), ("two", 1, 2),
    ]  # fmt: skip
    assert list(persons(np.arange(3), ("r-2345abcd@3", "r8", "r-2345abcd@2"))) == [2, 1, 2]


def test_order_of_rows_changes_nothing():
    rows = [
        (float(1 + (3 * i + s + r) % 5), f"i{i}", f"s{s}", f"r{r}", "")
        for i in range(9)
        for s in (0, 1)
        for r in range(3)
    ]
    turned = [rows[place] for place in np.random.default_rng(3).permutation(len(rows))]
    of_times = {"at", "seconds", "drift"}
    first, second = (
        detail_table(columns(part), SETTINGS, aspect="q", judged="ratings", controls={}) for part in (rows, turned)
    )
    for table in (first, second):
        table["raters"] = [{k: v for k, v in row.items() if k not in of_times} for row in table["raters"]]
    assert first == second


def test_calibrated_means_are_shown_next_to_plain_ones():
    table = detail_table(columns(toy()), SETTINGS, aspect="q", judged="ratings", controls={})
    systems = table["calibration"]["systems"]
    assert [row["system"] for row in systems] == ["model-0", "model-1", "model-2"]
    assert [row["raw"] for row in systems] == pytest.approx([4, 3, 2])
    # Everybody rated everything, so no system has stricter raters.
    assert [row["difference"] for row in systems] == pytest.approx([0, 0, 0], abs=1e-6)


def test_controls_and_reasons_come_first():
    rows = [(float(1 + (i + r // 9) % 5), f"i{i}", "s", f"r{r}", "") for i in range(12) for r in range(3)]
    table = detail_table(columns(rows), SETTINGS, aspect="q", judged="ratings", controls={"r2": (4, 3), "gone": (5, 5)})
    assert table["raters"][0]["rater"] == "r2"
    assert table["raters"][0]["reasons"] == ["Failed 3 of 4 control items."]
    assert [row["n"] for row in table["raters"]] == [12, 12, 12]


def test_each_of_several_sources_has_a_row():
    rows = [
        (float(1 + i % 5), f"i{i}", "s", rater, source) for i in range(8) for rater, source in (("a", ""), ("b", "one"))
    ]
    table = overview_table([("q", "ratings", columns(rows))], SETTINGS)
    assert [row["source"] for row in table["rows"]] == ["", "uploaded", "one"]
    whole = {found["name"]: found for found in table["rows"][0]["coefficients"]}
    assert whole["alpha"]["value"] == pytest.approx(1.0)
    alone = {found["name"]: found for found in table["rows"][1]["coefficients"]}
    assert alone["alpha"]["value"] is None
    assert alone["alpha"]["note"]


def test_verdicts_are_nominal_and_have_points():
    verdicts = ["a", "b", "tie", "both_bad"]
    judged = columns([(v, f"i{n}", "", r, "") for n, v in enumerate(verdicts) for r in ("x", "y")], numeric=False)
    table = detail_table(judged, {**SETTINGS, "scale": "interval"}, aspect="q", judged="comparisons", controls={})
    assert table["scale"] == "nominal"
    assert table["rows"][0]["value"] == pytest.approx(1.0)
    assert table["calibration"] is None
    assert "side and rater as covariates" in table["calibration_note"]
    # Every second unit is shown with sides swapped.
    assert sorted(to_points(judged)) == pytest.approx([0.5] * 4 + [1.0] * 4)


def test_nobody_judged():
    table = detail_table(columns(toy()).only(np.zeros(9, bool)), SETTINGS, aspect="q", judged="ratings", controls={})
    assert table["note"] == "There are no judgements of q here."
    assert (table["rows"], table["raters"], table["prevalence"]) == ([], [], [])


def test_ratings_of_one_output_are_not_independent():
    """Three raters agree on everything: the interval is that of 40 outputs, not of 120 ratings."""
    rng = np.random.default_rng(2)
    item, system, rater = (grid.ravel() for grid in np.meshgrid(range(40), range(2), range(3), indexing="ij"))
    output = np.round(rng.normal(3, 1, (40, 2)), 2)
    value = output[item, system] + 0.01 * rng.normal(size=len(item))
    rows = [(float(v), f"i{i}", f"s{s}", f"r{r}", "") for v, i, s, r in zip(value, item, system, rater, strict=True)]
    found = detail_table(columns(rows), SETTINGS, aspect="q", judged="ratings", controls={})["calibration"]
    for row in found["systems"]:
        assert row["sd"] == pytest.approx(output.std(ddof=1) / np.sqrt(40), rel=0.05)
        assert row["value"] == pytest.approx(output[:, int(row["system"][1])].mean(), abs=0.01)


def strict_and_mild() -> list[tuple[Any, ...]]:
    """Four items, three systems: the mild rater gives two points more than the strict one, in the same order; in one
    more item each rated one output only."""
    rows = [
        (float(1 + (item + system) % 3 + 2 * rater), f"i{item}", f"s{system}", f"r{rater}", "")
        for item in range(4) for system in range(3) for rater in range(2)
    ]  # fmt: skip
    return [*rows, (1.0, "alone", "s0", "r0", ""), (5.0, "alone", "s0", "r1", "")]


@pytest.mark.parametrize("ratings", ["raw", "z", "z-shrunk", "rank"])
def test_ranks_and_z_scores_use_the_order_not_the_level(ratings):
    settings = {**SETTINGS, "ratings": ratings}
    judged = columns(strict_and_mild())
    table = detail_table(judged, settings, aspect="q", judged="ratings", controls={})
    by_name = {row["name"]: row for row in table["rows"]}
    line = overview_table([("q", "ratings", judged)], settings)["rows"][0]
    assert by_name["alpha"]["value"] == pytest.approx(line["coefficients"][0]["value"])
    # Counts and answers refer to the original values.
    assert (table["n_judgements"], table["n_units"]) == (26, 13)
    assert {row["value"] for row in table["prevalence"]} == {"1", "2", "3", "4", "5"}
    if ratings == "raw":
        assert by_name["alpha"]["value"] < 0.3
        assert "ratings:" not in table["signature"]
        return
    assert f"|ratings:{ratings}|" in table["signature"]
    if ratings == "rank":
        # Every rater orders the three outputs of an item equally: 1/6, 3/6, 5/6.
        assert by_name["alpha"]["value"] == pytest.approx(1.0)
        assert (by_name["alpha"]["n"], by_name["percent"]["value"]) == (12, 1.0)
        assert table["notes"][-1] == "2 ratings have no rank: their raters rated nothing else of the item."
    else:
        assert by_name["percent"]["value"] is None
        assert table["pairs"][0]["kappa"]["note"] == "z-scores of two raters are hardly ever equal"
        # Krippendorff's alpha of the same z-scores, computed directly.
        values = normalise_ratings(judged.value, judged.item, judged.rater, method=ratings)
        assert by_name["alpha"]["value"] == pytest.approx(
            krippendorff_alpha(judged.unit, values, bootstrap=Bootstrap(resamples=0)).value
        )


def test_single_rated_outputs_have_no_rank():
    rows = [(float(1 + i), f"d{i}", "", f"r{r}", "") for i in range(4) for r in range(2)]
    table = detail_table(columns(rows), {**SETTINGS, "ratings": "rank"}, aspect="q", judged="dialogues", controls={})
    assert all(row["value"] is None and row["note"] for row in table["rows"])


@pytest.mark.parametrize(("judged", "said"), [("comparisons", True), ("turing", False), ("ratings", False)])
def test_orientation_of_pair_verdicts_is_stated(judged, said):
    value = [1.0, 2.0] if judged == "ratings" else ["a", "b"]
    rows = [(value[(i + r) % 2], f"i{i}", "", f"r{r}", "") for i in range(3) for r in range(2)]
    found = columns(rows, numeric=judged == "ratings")
    table = detail_table(found, SETTINGS, aspect="q", judged=judged, controls={})
    assert (ORIENTED in table["notes"]) is said


@pytest.mark.parametrize(
    ("method", "reason"), [("z", "two ratings with a z-score"), ("rank", "two ratings with a rank")]
)
def test_ratings_without_a_value_explain_missing_agreement(method, reason):
    """Both raters give only equal ratings, one per item: no z-scores, no ranks. Units were rated twice."""
    rows = [(value, f"i{k}", "s", rater, "") for k in range(6) for rater, value in (("r1", 3.0), ("r2", 4.0))]
    settings = {**SETTINGS, "ratings": method}
    line = overview_table([("quality", "ratings", columns(rows))], settings)["rows"][0]
    detail = detail_table(columns(rows), settings, aspect="quality", judged="ratings", controls={})
    for found in (line["coefficients"], detail["rows"]):
        notes = {row["name"]: row["note"] for row in found}
        assert all(row["value"] is None for row in found)
        assert reason in notes["alpha"]
        assert reason in notes["icc_a1"]
        assert not any("no unit was rated twice" in note for note in notes.values())
    # If nothing was rated twice, that is the reason.
    once = overview_table([("quality", "ratings", columns(rows[::2]))], {**SETTINGS, "ratings": "raw"})["rows"][0]
    assert once["coefficients"][0]["note"] == "no unit was rated twice"
