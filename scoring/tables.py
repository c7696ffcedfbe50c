"""Leaderboards as files: CSV, and LaTeX for a paper (booktabs). The tables come from the selectors."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalapp.markup import escape_latex, guard_formula, join_latex
from evalapp.side_figures import failure_sentence

from .selectors.leaderboards import COEFFICIENTS, EARLIER, MODELS

#: Figures besides the coefficients, and their heads.
EXTRA = {"accuracy": "Acc.", "pa": "PA", "spa": "SPA", "calibrated": "Systems"}
#: Parts of the judgements of a system, as far as its method has them.
SHARES = ("win", "tie", "both_bad", "loss", "better", "undecided", "worse")
#: Places of one remark that are named.
MOST_PLACES = 8
#: Points of a rating by a model of comparisons per unit of log odds: 400 are odds of 10 to 1.
ELO = 400 / math.log(10)


def as_csv(table: Mapping[str, Any]) -> str:
    """One row per system or evaluator, figures at full precision, undefined figures empty."""
    head, rows = ROWS[table["kind"]](table)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([guard_formula(value) for value in row] for row in rows)
    return buffer.getvalue()


def as_latex(table: Mapping[str, Any]) -> str:
    """A table for `booktabs`, with the signature as a comment, so that the figures can be computed again."""
    body = LATEX[table["kind"]](table)
    lines = [f"% {table['signature']}"]
    if table["n_simulated"]:
        lines.append("% Simulated judgements are among these figures.")
    lines += [f"% {said}" for said in table.get("counted", [])]
    if table["kind"] != "systems":
        lines += [f"% {row['evaluator']}: {row['signature']}" for row in table["rows"] if row["signature"]]
    elif table.get("evaluator"):
        lines.append(f"% {table['evaluator']['signature']}")
    lines += [f"% Out of date: {row['evaluator']}: {row['reason']}" for row in table.get("stale", [])]
    lines += [f"% {sentence}" for sentence in [failure_sentence(table.get("failed", ()))] if sentence]
    return join_latex([*lines, *body, ""])


def _system_rows(table: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    names = ["rank", "rank_low", "rank_high", "tier", "system", "step", "kind", "value", "low", "high"]
    names += ["n", "n_ratings", "simulated", "note"]
    names += ["sd"] if any("sd" in row for row in table["rows"]) else []
    shares = [name for name in SHARES if any(name in row.get("shares", {}) for row in table["rows"])]
    rows = [
        [*(row[name] for name in names), *(row.get("shares", {}).get(name) for name in shares), table["signature"]]
        for row in table["rows"]
    ]
    return [*names, *shares, "signature"], rows


def _evaluator_rows(table: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    parts = ("value", "low", "high", "n", "note")
    names = [*COEFFICIENTS, *_extra(table)]
    head = ["evaluator", "kind"] + [f"{name}_{part}" for name in names for part in parts]
    head += ["letters", "cluster", "of_ceiling"]
    head += [f"{name}_whole" for name in COEFFICIENTS] + ["n_whole", "n_in_training"]
    head += ["n", "n_missing", "stale", "signature", "settings", "test_population", "interval_population"]
    about = [(table.get("test") or {}).get("population", ""), table.get("population", "")]
    rows = [
        [row["evaluator"], row["kind"]]
        + [row[name][part] for name in names for part in parts]
        + [row.get("letters", ""), row.get("cluster"), (row.get("corrected") or {}).get("value")]
        + _whole(row)
        + [row["n"], row["n_missing"], row.get("stale", ""), row["signature"], table["signature"]]
        + about
        for row in table["rows"]
    ]
    return head, rows


def _extra(table: Mapping[str, Any]) -> list[str]:
    """The figures that the rows have besides the coefficients."""
    return [name for name in EXTRA if table["rows"] and name in table["rows"][0]]


def _whole(row: Mapping[str, Any]) -> list[Any]:
    """The figures over all rated outputs, training data included, where some were left out of the others."""
    whole = row.get("whole")
    figures = [whole[name]["value"] for name in COEFFICIENTS] + [whole["n"]] if whole else [None] * 4
    return [*figures, row.get("n_in_training", 0)]


def _systems_latex(table: Mapping[str, Any]) -> list[str]:
    """Ratings of a model of comparisons as whole numbers; with the parts of wins, ties and losses where there are
    any. Systems that cannot be told apart are named in a comment below."""
    model = table.get("method") in MODELS
    compared = any("win" in row.get("shares", {}) for row in table["rows"])
    rows = []
    for row in table["rows"]:
        cells = [place(row).replace("–", "--"), escape_latex(row["label"]), _figure(row, 0 if model else 3)]
        cells += [_won(row.get("shares", {}))] if compared else []
        rows.append(" & ".join([*cells, str(row["n_ratings"] if compared else row["n"])]) + r" \\")
    head = ["Rank", "System", (r"Rating" if model else "Score") + r" [95\,\%]"]
    head += [r"Win / tie / loss [\%]"] if compared else []
    connected = (table.get("extras", {}).get("connectivity") or {}).get("note")
    lines = [f"% {connected}"] if connected else []
    lines += _tabular("rlrrr" if compared else "rlrr", " & ".join([*head, "$n$"]) + r" \\", rows)
    lines += _remarks(table["rows"], "label", ())
    lines += [f"% {row['label']}: {row['note']}" for row in table["rows"] if row["value"] is None and row["note"]]
    return [*lines, *(f"% Cannot be told apart: {', '.join(group)}" for group in table.get("groups", []))]


EFFECTS = {"side": "the side shown first", "length": "a text longer by one root mean square of the differences"}


def effects_of(table: Mapping[str, Any]) -> list[str]:
    """What the model adjusted for, as sentences with figures in points of the rating."""
    extras, found = table["extras"], []
    for name, words in EFFECTS.items():
        effect = extras.get(name)
        if effect is None or "points" not in effect:
            continue
        if effect["value"] is None:
            found.append(f"Not adjusted for {words}: {effect['note']}.")
            continue
        ends = [None if effect[end] is None else ELO * effect[end] for end in ("low", "high")]
        between = "" if None in ends else f" [{ends[0]:+.0f}, {ends[1]:+.0f}]"
        found.append(f"Adjusted for {words}: worth {effect['points']:+.0f} points{between}.")
    spread = extras.get("rater_effects")
    if spread and spread["n"]:
        low, high = spread["low"], spread["high"]
        found.append(f"Adjusted for each rater’s advantage of the first side: {low:+.0f} to {high:+.0f} points.")
    return found


def _won(shares: Mapping[str, float]) -> str:
    if "win" not in shares:
        return "--"
    parts = (shares["win"], shares["tie"] + shares.get("both_bad", 0.0), shares["loss"])
    return " / ".join(f"{100 * part:.0f}" for part in parts)


def _evaluators_latex(table: Mapping[str, Any]) -> list[str]:
    """Sentinels in italics; letters as exponents, where the evaluators were tested against each other."""
    names = [*COEFFICIENTS, *_extra(table)]
    rows = []
    for row in table["rows"]:
        name = escape_latex(row["evaluator"])
        shown = rf"\textit{{{name}}}" if row["is_sentinel"] else name
        shown += f"$^{{{row['letters']}}}$" if row.get("letters") else ""
        rows.append(" & ".join([shown, *(_figure(row[c], 3) for c in names), str(row["n"])]) + r" \\")
    head = " & ".join(["Evaluator", *(EXTRA.get(name, name.capitalize()) for name in names), "$n$"]) + r" \\"
    lines = _tabular("l" + "r" * (len(names) + 1), head, rows)
    lines += _remarks(table["rows"], "evaluator", names)
    ceiling, test = table.get("ceiling"), table.get("test")
    if test and test["names"]:
        lines += [f"% {letters_caption(table)}", f"% {test['signature']}"]
        lines += [f"% {test['changed']}."] if test.get("changed") else []
    about = f"% Intervals: about {table.get('population')}. {table.get('coverage', '')}".rstrip()
    lines += [about] if table.get("population") else []
    if ceiling and ceiling["value"] is not None:
        lines.append(f"% Noise ceiling of {table['coefficient']}: {ceiling['value']:.3f}")
    return lines


EXCHANGED = {
    "perm-systems": "PERM-SYSTEMS: exchanges of whole systems",
    "perm-inputs": "PERM-INPUTS: exchanges of groups of items",
    "perm-both": "exchanges of groups of items, called PERM-BOTH in version 0.1.0",
    "bootstrap": "paired bootstrap",
    "williams": "Williams’ test",
}


def has_earlier_test(table: Mapping[str, Any]) -> bool:
    """Whether the letters come from the test that versions before 0.2.0 used at the system level."""
    test = table.get("test") or {}
    by_ratings = table.get("people", "ratings") == "ratings"
    return bool(test.get("test") == EARLIER and test["names"] and table.get("level") == "system" and by_ratings)


def letters_caption(table: Mapping[str, Any]) -> str:
    """What the letters of a table mean, or why it has none: the test by its name, about which systems and items it
    speaks, and the smallest p that it can give."""
    test = table["test"]
    named = EXCHANGED.get(test.get("test", ""), str(test.get("test", "")).upper())
    has_letters = any(row.get("letters") for row in table["rows"])
    n_drawn = test.get("k_used") or (test.get("k") if has_letters else 0) or 0
    drawn = "" if test.get("test") == "williams" else f", {n_drawn:,} draws"
    rows = "decided pairs" if table["kind"] == "pairs" else {"dialogue": "dialogues"}.get(table["level"], "outputs")
    rows = "systems" if table.get("people", "ratings") != "ratings" else rows
    of_rows = f"over {test.get('n_rows', 0):,} {rows} that all have scored"
    parts = [
        f"Evaluators that share a letter are not significantly different ({named}{drawn}; two-sided p ≤ "
        f"{test.get('alpha', 0.05)} after Holm’s correction for all pairs, {of_rows})."
    ]
    if not has_letters:
        why = f": {test['note']}" if test.get("note") else ""
        parts = [f"No letters{why}.", f"The test is {named}{drawn}, {of_rows}." if n_drawn else f"The test: {named}."]
    if has_earlier_test(table):
        parts.append("At this level that test finds differences far too often; later versions exchange whole systems.")
    if test.get("population"):
        parts.append(f"This speaks about {test['population']}.")
    if test.get("test") == "williams" and has_letters:
        parts.append(
            "It takes outputs for independent; of outputs of the same items its p may be too small, so rather report "
            "the permutation test."
        )
    by_outputs = table["kind"] == "evaluators" and table["level"] != "system" and rows != "systems"
    if by_outputs and any(row.get("n") not in (None, test.get("n_rows")) for row in table["rows"]):
        parts.append("Each coefficient itself is over all outputs that its own evaluator has scored.")
    if test.get("smallest_p"):
        parts.append(f"The smallest p of this test is {test['smallest_p']:.2g} before the correction.")
    return " ".join(parts)


def is_marked(estimate: Mapping[str, Any]) -> bool:
    """Whether there is an interval that says something of itself, as one from few groups does."""
    return estimate.get("low") is not None and bool(estimate.get("note"))


def _remarks(rows: Sequence[Mapping[str, Any]], name: str, parts: Sequence[str]) -> list[str]:
    """What marked intervals say of themselves, once for all rows that say the same; `parts` of a row are estimates,
    none: the row is one."""
    said: dict[str, list[str]] = {}
    for row in rows:
        for found in [row[part] for part in parts] if parts else [row]:
            if is_marked(found) and row[name] not in said.setdefault(found["note"], []):
                said[found["note"]].append(row[name])
    return [f"% $\\dagger$ {note}: {', '.join(names)}" for note, names in said.items()]


def _tabular(columns: str, head: str, rows: list[str]) -> list[str]:
    return [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]


def _figure(estimate: Mapping[str, Any], digits: int) -> str:
    if estimate["value"] is None:
        return "--"
    number: Callable[[float], str] = lambda x: f"{x:.{digits}f}"  # noqa: E731
    value = f"${number(estimate['value'])}$"
    if estimate["low"] is None:
        return value
    value += r"$^{\dagger}$" if is_marked(estimate) else ""
    return f"{value} {{\\small $[{number(estimate['low'])}, {number(estimate['high'])}]$}}"


def place(row: Mapping[str, Any]) -> str:
    """`1`, `2–4` where the interval of the rank is wider, or a dash."""
    if row["rank"] is None:
        return "-"
    low, high = row["rank_low"], row["rank_high"]
    return str(low) if low == high else f"{low}–{high}"


# ---- tables with a cell for every row and column ----------------------------------------------------------


def columns_of(table: Mapping[str, Any]) -> list[str]:
    """The heads of the cells, in their order."""
    if table["kind"] == "slices":
        return [part["name"] for part in table["parts"]]
    if table["kind"] == "aspects":
        return [aspect["aspect"] for aspect in table["aspects"]]
    if table["kind"] == "pairs":
        return [column["name"] for column in table["columns"]]
    return [row["evaluator"] for row in table["rows"]]


def cells_of(table: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any] | None, Mapping[str, Any]]]:
    """(row, column, estimate, the cell itself) for every cell; the estimate of a slice is the shrunken one, and that
    of an evaluator with itself is None."""
    found = []
    for row in table["rows"]:
        for name, cell in zip(columns_of(table), row["cells"], strict=True):
            estimate = cell["shrunken"] if table["kind"] == "slices" else cell
            found.append((row["evaluator"], name, estimate, cell or {}))
    return found


def remarks_of(table: Mapping[str, Any]) -> list[str]:
    """What marked and missing figures say of themselves, a line for all that say the same."""
    found = [(row, f"in {column}", cell) for row, column, cell, _ in cells_of(table) if cell is not None]
    found += [(row["evaluator"], "in all", row["estimate"]) for row in table["rows"] if "estimate" in row]
    said: dict[str, list[str]] = {}
    for row, column, cell in found:
        if cell["note"]:
            said.setdefault(cell["note"], []).append(row if table["kind"] == "matrix" else f"{row} {column}")
    lines = []
    for note, places in said.items():
        named = list(dict.fromkeys(places))
        more = f" and {len(named) - MOST_PLACES:,} more" if len(named) > MOST_PLACES else ""
        lines.append(f"{note[0].upper()}{note[1:]}: {', '.join(named[:MOST_PLACES])}{more}.")
    return lines


def _cell_rows(table: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """A line for every cell, so that programs need not know how many columns there are."""
    parts = ("value", "low", "high", "n", "note")
    slices = table["kind"] == "slices"
    head = ["evaluator", "column", *parts] + (["raw", "raw_low", "raw_high", "weight"] if slices else [])
    rows = []
    for row, column, estimate, cell in cells_of(table):
        if estimate is None:
            continue
        raw = [cell["raw"][end] for end in ("value", "low", "high")] + [cell["weight"]] if slices else []
        rows.append([row, column, *(estimate[part] for part in parts), *raw, table["signature"]])
    return [*head, "settings"], rows


def _cells_latex(table: Mapping[str, Any]) -> list[str]:
    names = columns_of(table)
    rows = []
    for row in table["rows"]:
        name = escape_latex(row["evaluator"])
        cells = [cell["shrunken"] if table["kind"] == "slices" else cell for cell in row["cells"]]
        shown = ["" if cell is None else _figure({**cell, "low": None}, 3) for cell in cells]
        rows.append(" & ".join([rf"\textit{{{name}}}" if row["is_sentinel"] else name, *shown]) + r" \\")
    head = " & ".join(["Evaluator", *(escape_latex(name) for name in names)]) + r" \\"
    return _tabular("l" + "r" * len(names), head, rows)


def _pairs_latex(table: Mapping[str, Any]) -> list[str]:
    """With intervals, letters as exponents, and what one person reaches against the others as the last row."""
    names = columns_of(table)
    rows = []
    for row in table["rows"]:
        name = escape_latex(row["evaluator"])
        shown = rf"\textit{{{name}}}" if row["is_sentinel"] else name
        shown += f"$^{{{row['letters']}}}$" if row["letters"] else ""
        cells = ["" if cell is None else _figure(cell, 3) for cell in row["cells"]]
        rows.append(" & ".join([shown, *cells, str(row["n"])]) + r" \\")
    own = table["ceiling"]
    if own[0]["value"] is not None:
        cells = ["" if cell is None else _figure(cell, 3) for cell in own]
        rows.append(r"\midrule one person, by the others & " + " & ".join([*cells, str(own[0]["n"])]) + r" \\")
    head = " & ".join(["Evaluator", *(escape_latex(name.capitalize()) for name in names), "$n$"]) + r" \\"
    lines = _tabular("l" + "r" * (len(names) + 1), head, rows)
    lines += [f"% $\\dagger$ {remark}" for remark in remarks_of(table)]
    if table["test"]["names"]:
        lines += [f"% {letters_caption(table)}", f"% {table['test']['signature']}"]
    return lines


Rows = Callable[[Mapping[str, Any]], tuple[list[str], list[list[Any]]]]
ROWS: dict[str, Rows] = {"systems": _system_rows, "evaluators": _evaluator_rows}
ROWS |= dict.fromkeys(("slices", "matrix", "aspects", "pairs"), _cell_rows)
LATEX: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "systems": _systems_latex,
    "evaluators": _evaluators_latex,
    **dict.fromkeys(("slices", "matrix", "aspects"), _cells_latex),
    "pairs": _pairs_latex,
}
