"""At system level, every evaluator is compared with the same human means, whatever it scored; notes name evaluators,
not numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalapp.stats.agreement.coefficients import NARROW
from evalapp.stats.core.common_rows import find_common_rows
from evalapp.stats.correlation.coefficients import pearson_value
from scoring.boards.data.columns import Ratings, Units
from scoring.boards.matrix.compute import matrix_table
from scoring.boards.metrics.by_ratings import coverage_note, evaluators_table
from scoring.boards.metrics.people import WIDER, People, Scored, ScoredSets
from scoring.boards.references.compute import enhanced_table

SETTINGS = {
    "level": "system", "grouping": "none", "systems": "all", "references": "original", "ratings": "raw",
    "coefficient": "pearson", "test": "permutation",
}  # fmt: skip
ITEMS, SYSTEMS = 14, 8


def make_people(seed):
    rng = np.random.default_rng(seed)
    units = Units({k: (f"s{k}", "machine") for k in range(SYSTEMS)})
    for k in range(SYSTEMS):
        units.code(k, None)
    item, system = np.repeat(np.arange(ITEMS), SYSTEMS), np.tile(np.arange(SYSTEMS), ITEMS)
    value = 0.4 * system + rng.normal(size=len(item)) + 0.5 * rng.normal(size=ITEMS)[item]
    n = np.arange(len(item))
    ratings = Ratings(n, item, item, system, 0 * n, value, np.zeros(len(n), bool), units, ("a",))
    return People(ratings, method="raw", subset="all"), rng


def own_values(rng):
    return [{"system": f"s{k}", "step": None, "value": 0.3 * k + float(rng.normal())} for k in range(SYSTEMS)]


def make_table(people, scored, **wished):
    return evaluators_table(people, ScoredSets(scored, np.ones(len(people), bool)), {**SETTINGS, **wished}, aspect="q")


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), missing=st.sampled_from([0.0, 0.05, 0.2]), first=st.sampled_from(["plain", "own"]))
def test_same_outputs_for_every_evaluator(seed, missing, first):
    # Outputs are missing at random for evaluators of single outputs, of single outputs and whole systems (chrF), and
    # only of whole systems (distinct).
    people, rng = make_people(seed)

    def column():
        values = people.mean + rng.normal(size=len(people))
        return np.where(rng.random(len(people)) < missing, np.nan, values)

    scored = [
        Scored("plain", "plain", "baseline", "p", column()),
        Scored("chrf", "chrf", "baseline", "c", column(), own=own_values(rng)),
        Scored("distinct", "distinct", "baseline", "d", np.full(len(people), np.nan), own=own_values(rng)),
    ]
    scored = scored if first == "plain" else scored[::-1]
    both = np.isfinite(scored[0].metric if first == "plain" else scored[2].metric) & np.isfinite(scored[1].metric)
    # Were fewer than half of the outputs common, one evaluator would be left out (see the next test); distinct has a
    # value for every system, hence for all outputs.
    assume(2 * both.sum() >= len(people))
    table = make_table(people, scored)
    means = np.array([people.mean[both & (people.system == k)].mean() for k in range(SYSTEMS)])
    rows = {row["evaluator"]: row for row in table["rows"]}
    assert {row["n"] for row in rows.values()} == {int(both.sum())} == {table["n_outputs"]}
    for one in scored:
        if one.own:
            expected = pearson_value(np.array([row["value"] for row in one.own]), means)
        else:
            own = np.array([one.metric[both & (people.system == k)].mean() for k in range(SYSTEMS)])
            expected = pearson_value(own, means)
        assert rows[one.evaluator]["pearson"]["value"] == pytest.approx(expected, abs=1e-9)
    assert table["n_uncommon"] == int((~both).sum())
    assert ("that all evaluators have scored" in table["note"]) == bool(table["n_uncommon"])


def test_evaluator_with_few_scores_does_not_restrict_the_others():
    people, rng = make_people(1)
    full = [Scored(name, name, "baseline", name, people.mean + rng.normal(size=len(people))) for name in ("a", "b")]
    few = Scored("few", "few", "baseline", "f", np.where(people.item < 3, people.mean, np.nan))
    table = make_table(people, [*full, few])
    rows = {row["evaluator"]: row for row in table["rows"]}
    assert table["n_outputs"] == rows["a"]["n"] == len(people)
    assert rows["few"]["letters"] == ""
    assert "scored 24 of 112 outputs (8 systems), too few to be compared with the others" in rows["few"]["note"]
    # Naming it compares all evaluators on its outputs.
    chosen = make_table(people, [*full, few], evaluators="a,b,few")
    assert {row["n"] for row in chosen["rows"]} == {24}


def test_matrix_of_system_means_covers_common_outputs():
    people, rng = make_people(2)
    columns = np.stack([people.mean + rng.normal(size=len(people)) for _ in range(3)], axis=1)
    columns[rng.random(columns.shape) < 0.15] = np.nan
    scored = [Scored(name, name, "baseline", name, columns[:, k]) for k, name in enumerate("abc")]
    table = matrix_table(scored, columns, people.cluster, people.system, {**SETTINGS, "resamples": 10})
    both = np.isfinite(columns).all(axis=1)
    means = [[columns[both & (people.system == s), k].mean() for s in range(SYSTEMS)] for k in range(2)]
    row = next(row for row in table["rows"] if row["evaluator"] == "a")
    place = [row["evaluator"] for row in table["rows"]].index("b")
    assert row["cells"][place]["value"] == pytest.approx(np.corrcoef(means)[0, 1])


@pytest.mark.parametrize("level", ["segment", "system"])
def test_notes_name_evaluators(level):
    # FAULTS E14: "2 has no defined coefficient".
    people, rng = make_people(3)
    scored = [Scored(name, name, "baseline", name, people.mean + rng.normal(size=len(people))) for name in ("a", "b")]
    scored.append(Scored("flat", "flat", "baseline", "f", np.ones(len(people))))
    scored.append(replace(scored[0], signature="again"))  # two score sets from the same evaluator
    table = make_table(people, scored, level=level)
    notes = [table["note"], table["test"]["note"], *(row["note"] for row in table["rows"])]
    assert not any(re.search(r"(^|[;.,] )\d+(#\d+)? (has|scored|gives)", note) for note in notes), notes
    flat = next(row for row in table["rows"] if row["evaluator"] == "flat")
    assert "flat has no defined coefficient" in table["test"]["note"] or flat["note"] == "gives the same score to all"
    assert sorted(table["test"]["names"]).count("a") == 2


def test_common_rows_as_worked_by_hand():
    nan = np.nan
    columns = [np.array([1, 2, nan, 4.0]), np.array([nan, 2, 3, 5.0]), np.full(4, nan), np.ones(4)]
    found = find_common_rows(columns, np.ones(4, bool), least=2)
    assert found.used == [0, 1]
    assert found.rows.tolist() == [False, True, False, True]
    assert found.reasons == {2: "has no score", 3: "gives the same score to all"}
    # Three common rows are impossible: the column with the fewest scores (the last in a tie) is set aside.
    found = find_common_rows(columns, np.ones(4, bool), least=3)
    assert found.used == [0]
    assert found.reasons[1].startswith("scored 3 of 4 outputs")


def test_intervals_with_wrong_coverage_carry_a_note():
    people, rng = make_people(4)  # 14 groups of items
    scored = [Scored("a", "a", "baseline", "a", people.mean + rng.normal(size=len(people)))]
    shown = make_table(people, scored, level="segment")["coverage"]
    assert "14 groups" in shown
    assert "not simulated" in shown
    assert "Kendall" in make_table(people, scored)["coverage"]
    assert coverage_note("segment", 101) == coverage_note("segment", 9) == ""  # for 9, each estimate has its own note


def test_notes_on_intervals_match_the_simulation():
    file = Path(__file__).parents[4] / "docs/results/rows/intervals.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for n, span in ((30, ".91 to .94 for 30 groups"), (100, ".92 to .95 for 100")):
        found = [row["result"] for row in rows if f"intervals over outputs, {n} items" in row["setting"]]
        shares = [result[grouping] for result in found for grouping in ("none", "item", "system")]
        assert len(shares) >= 27
        assert f"{min(shares):.2f} to {max(shares):.2f} for {n}".replace("0.", ".") == span.replace(" groups", "")
        assert span in coverage_note("segment", n)
    for n in (10, 20, 50):
        (found,) = [row["result"] for row in rows if row["setting"] == f"agreement | {n} units"]
        shares = [found[name] for name in ("alpha (interval)", "alpha (nominal)", "Fleiss' kappa", "ICC(A,1)")]
        assert f"in {min(shares):.2f} to {max(shares):.2f} from {n}".replace("0.", ".") in NARROW


def test_system_scores_over_more_outputs_carry_a_note():
    # distinct has one value per system; chrf lacks some outputs, so only its outputs are compared.
    people, rng = make_people(5)
    none = np.full(len(people), np.nan)
    column = np.where(np.arange(len(people)) % 5 == 0, np.nan, people.mean + rng.normal(size=len(people)))
    distinct = Scored("distinct-2", "distinct", "baseline", "d", none, own=own_values(rng))
    chrf = Scored("chrf", "chrf", "baseline", "c", column, own=own_values(rng))
    plain = Scored("plain", "plain", "baseline", "p", people.mean + rng.normal(size=len(people)))
    said = "distinct-2 has one value for all outputs of a system, also those not compared here."
    table = make_table(people, [distinct, chrf, plain])
    assert table["n_outputs"] == np.isfinite(column).sum()
    assert table["note"].endswith(said)  # all outputs scored by chrf are compared
    assert {row["evaluator"] for row in table["rows"] if WIDER in row["note"]} == {"distinct-2"}
    assert WIDER not in str(make_table(people, [distinct, plain])) + str(make_table(people, [chrf]))
    assert said not in make_table(people, [distinct, chrf, plain], level="segment")["note"]
    # Nor outputs left out because an evaluator was trained on them.
    outside = people.item > 1
    table = evaluators_table(people, ScoredSets([distinct, plain], outside), SETTINGS, aspect="q")
    assert table["note"] == said
    table = enhanced_table(
        people, [{"one": distinct, "two": distinct}], SETTINGS, aspect="q", names=["one", "two"], outside=outside
    )
    assert table["note"] == said
