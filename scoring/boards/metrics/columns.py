"""How the main leaderboard of evaluators is rendered."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop
from scoring.boards.base import order_evaluators
from scoring.boards.choices import COEFFICIENTS, COMPARED, FIGURES, LEVELS, PEOPLE, RIVAL
from scoring.boards.render.console import as_lines, counting_lines, interval, test_lines
from scoring.boards.render.figures import letters_caption
from scoring.boards.render.latex import evaluator_name, figure, lead_lines, mark_remarks, tabular
from scoring.boards.render.page import (
    Column,
    Given,
    Grid,
    arrange,
    list_p_values,
    measure_width,
    place_rows,
    scale_around_zero,
    scale_shares,
)
from scoring.plots import drawing

TEMPLATE = "scoring/evaluation/show.html"
#: Name of a figure in a comparison of two tables.
FIGURE = "evaluator"
#: Heads of figures after the coefficients.
EXTRA = {"accuracy": "Acc.", "pa": "PA", "spa": "SPA", "calibrated": "Systems"}


def list_cells(table: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    parts = ("value", "low", "high", "n", "note")
    names = [*COEFFICIENTS, *list_extra(table)]
    head = ["evaluator", "kind"] + [f"{name}_{part}" for name in names for part in parts]
    head += ["letters", "cluster", "of_ceiling", "over_ridge", "over_ridge_low", "over_ridge_high"]
    head += [f"{name}_whole" for name in COEFFICIENTS] + ["n_whole", "n_in_training"]
    head += ["saved"] if saves(table) else []
    head += ["n", "n_missing", "stale", "signature", "settings", "test_population", "interval_population"]
    about = [(table.get("test") or {}).get("population", ""), table.get("population", "")]
    rows = [
        [row["evaluator"], row["kind"]]
        + [row[name][part] for name in names for part in parts]
        + [row.get("letters", ""), row.get("cluster"), (row.get("corrected") or {}).get("value")]
        + [row.get("over_ridge", {}).get(end) for end in ("value", "low", "high")]
        + _whole(row)
        + ([row.get("saved")] if saves(table) else [])
        + [row["n"], row["n_missing"], row.get("stale", ""), row["signature"], table["signature"]]
        + about
        for row in table["rows"]
    ]
    return head, rows


def saves(table: Mapping[str, Any]) -> bool:
    """Return whether any evaluator saves judgements; none does if everything was judged."""
    return any(row.get("saved") for row in table["rows"])


def list_extra(table: Mapping[str, Any]) -> list[str]:
    """Return the names of figures in addition to the coefficients."""
    return [name for name in EXTRA if table["rows"] and name in table["rows"][0]]


def _whole(row: Mapping[str, Any]) -> list[Any]:
    """Return the figures over all rated outputs, training data included, if some outputs were left out."""
    whole = row.get("whole")
    figures = [whole[name]["value"] for name in COEFFICIENTS] + [whole["n"]] if whole else [None] * 4
    return [*figures, row.get("n_in_training", 0)]


def is_above_ridge(row: Mapping[str, Any]) -> bool:
    """Whether the interval of the difference from ridge is above 0."""
    low = row["over_ridge"]["low"]
    return low is not None and low > 0


def _list_over_ridge(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on each trained evaluator in a table with a trained ridge."""
    for row in table["rows"]:
        if found := row.get("over_ridge"):
            text = _("significantly above %(rival)s") if is_above_ridge(row) else _("not significantly above %(rival)s")
            yield f"{row['evaluator']}: {text % found}, {interval(found)}."


def write_latex(table: Mapping[str, Any]) -> list[str]:
    """Return a LaTeX table: trivial baselines in italics, letters as exponents."""
    names = [*COEFFICIENTS, *list_extra(table)]
    rows = [[evaluator_name(row), *(figure(row[name], 3) for name in names), str(row["n"])] for row in table["rows"]]
    head = ["Evaluator", *(EXTRA.get(name, name.capitalize()) for name in names), "$n$"]
    lines = lead_lines(table) + tabular(head, rows)
    lines += mark_remarks(table["rows"], "evaluator", names)
    ceiling, test = table.get("ceiling"), table.get("test")
    if test and test["names"]:
        lines += [f"% {letters_caption(table)}", f"% {test['signature']}"]
        lines += [f"% {test['changed']}."] if test.get("changed") else []
    lines += [f"% {line}" for line in _list_over_ridge(table)]
    about = f"% Intervals generalise to {table.get('population')}. {table.get('coverage', '')}".rstrip()
    lines += [about] if table.get("population") else []
    if ceiling and ceiling["value"] is not None:
        lines.append(f"% Noise ceiling of {table['coefficient']}: {ceiling['value']:.3f}")
    return lines


def write_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a console table of coefficients, then the tests and the noise ceiling."""
    yield f"Evaluators of {table['project']}: {table['aspect']}, {table['level']} level, systems {table['systems']}"
    if table["people"] != "ratings":
        name = PEOPLE[table["people"]]
        yield f"Human scores of {table['n_systems']} systems: {name}, {table['n_ratings']:,} judgements"
    if table["note"]:
        yield table["note"]
    yield from counting_lines(table)
    yield from _excluded_lines(table)
    extra = list_extra(table)
    rows = [
        [
            row["evaluator"] + (" (sentinel)" if row["is_sentinel"] else ""),
            *(interval(row[name]) for name in (*COEFFICIENTS, *extra)),
            row["letters"],
            *(["-" if row.get("saved") is None else f"{row['saved']:.0%}"] if saves(table) else []),
            str(row["n"]),
            row["pearson"]["note"] or row["note"],
        ]
        for row in table["rows"]
    ]
    head = ["evaluator", *COEFFICIENTS, *extra, "letters", *(["saved"] if saves(table) else []), "n", ""]
    yield from as_lines(head, rows, left=(0, head.index("letters"), len(head) - 1))
    yield from _list_over_ridge(table)
    yield from test_lines(table)
    if table.get("population"):
        yield f"Intervals generalise to {table['population']}. {table.get('coverage', '')}".rstrip()
    if table["ceiling"]["value"] is not None:
        yield f"Noise ceiling of {table['coefficient']}: {interval(table['ceiling'])}."
    yield table["signature"]


def _excluded_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on outputs in training data; against ratings also figures that include them."""
    if not table["n_excluded"]:
        return
    rated = table["people"] == "ratings"
    yield (
        f"Compared on {table['n_outputs']:,} outputs; {table['n_excluded']:,} are left out: an evaluator was "
        f"trained on their groups.{' On all outputs:' if rated else ''}"
    )
    if rated:
        whole = [
            [row["evaluator"], *(interval(row["whole"][name]) for name in COEFFICIENTS), str(row["whole"]["n"])]
            for row in table["rows"]
            if row["whole"]
        ]
        yield from as_lines(["evaluator", *COEFFICIENTS, "n"], whole)
        yield "On outputs outside of training data:"


# ---- the page and its plot ------------------------------------------------------------------------------------

#: Short heads of columns.
SHORT = {
    "accuracy": gettext_noop("Accuracy"),
    "pa": "PA",
    "spa": "SPA",
    "calibrated": gettext_noop("Systems, calibrated"),
}


def build_context(table: Mapping[str, Any] | None, query: Any) -> dict[str, Any]:
    """Return what the template needs besides the table; rows are sorted by the coefficient."""
    coefficient = query.coefficient
    key = FIGURES.get(coefficient, coefficient)
    rows = sorted(table["rows"], key=lambda row: order_evaluators(row, row[key])) if table else []
    names = (*COEFFICIENTS, *(name for name in EXTRA if rows and name in rows[0]))
    asked = {figure: name for name, figure in FIGURES.items()}
    columns = [
        {"key": name, "name": asked.get(name, name), "label": _(SHORT.get(name) or COMPARED[name])} for name in names
    ]
    signed = key in COEFFICIENTS
    scale = scale_around_zero(rows, key) if signed else scale_shares(rows, key)
    drawn = place_rows(rows, scale, key)
    for row in drawn:
        row["is_above_ridge"] = bool(row.get("over_ridge")) and is_above_ridge(row)
        row["figures"] = [
            {
                **row[name],
                "whole": row["whole"][name]["value"] if row["whole"] and name in row["whole"] else None,
                "key": name,
                "orders": name == key,
            }
            for name in names
        ]
    tested = bool(table and table["test"]["names"]) and coefficient == (table or {}).get("coefficient")
    people = (table or {}).get("people", "ratings")
    notes = {row["estimate"]["note"] for row in drawn if row["estimate"]["value"] is not None}
    return {
        "rows": drawn,
        "scale": scale,
        # A note on all intervals is shown once, below the table.
        "interval_note": notes.pop() if len(notes) == 1 and len(drawn) > 1 else "",
        "has_intervals": any(row["estimate"]["low"] is not None for row in drawn),
        "has_missing": any(row.get("n_missing") for row in drawn if row["estimate"]["value"] is not None),
        "has_ridge": any(row.get("over_ridge") for row in rows),
        "lacks_ridge": people == "ratings"
        and any(row["kind"] == "trained" for row in rows)
        and not any(row["name"] == RIVAL and row["kind"] == "trained" for row in rows),
        "missing_sentinels": any(row["is_sentinel"] and row["score_set"] is None for row in rows),
        "compared": people != "ratings",
        "people_name": _(PEOPLE[people]),
        "coefficient": coefficient,
        "coefficient_label": _(COMPARED[coefficient]),
        "columns": columns,
        "has_letters": tested and any(row["letters"] for row in rows),
        "has_ceiling": table is not None
        and table["ceiling"]["value"] is not None
        and coefficient == table["coefficient"],
        "pairs": list_p_values(table) if table else [],
        "letters_caption": letters_caption(table) if table and tested else "",
    }


def _arrange_human_scores(table: Mapping[str, Any], given: Given) -> Grid:
    """Return the table of human scores of the systems."""
    columns = [
        Column("system", _("System"), lambda row: row["label"], is_number=False),
        Column("value", _("Value"), lambda row: row["value"]),
        Column("interval", "95 %", measure_width, is_ascending=True),
        Column("n", _("Outputs"), lambda row: row["n"]),
    ]
    return arrange(columns, table["scores"], given, name="scores", default="-value")


def build_grid(table: Mapping[str, Any], context: Mapping[str, Any], given: Given) -> Grid:
    """Return the table of the page with the columns and the order that its reader chose."""
    letters = _("Evaluators that share a letter are not significantly different")
    calibrated = _(
        "Spearman correlation of the evaluator’s system means with human system means, adjusted for rater leniency"
    )
    columns = [
        Column("rank", _("Rank"), lambda row: int(row["place"]) if row["place"] != "-" else None, is_ascending=True),
        Column("letters", _("Letters"), lambda row: row.get("letters"), is_number=False, title=letters)
        if context["has_letters"] else None,
        Column("evaluator", _("Evaluator"), lambda row: row["evaluator"], is_number=False, is_kept=True),
        *(
            Column(column["key"], column["label"], lambda row, key=column["key"]: row[key]["value"],  # type: ignore[misc]
                   title=calibrated if column["key"] == "calibrated" else "")
            for column in context["columns"]
        ),
        Column("interval", f"{context['coefficient_label']}, 95 %", lambda row: measure_width(row["estimate"]),
               is_drawn=True),
        Column("low", _("from"), lambda row: row["estimate"]["low"], css="narrow-hide", is_detail=True),
        Column("high", _("to"), lambda row: row["estimate"]["high"], css="narrow-hide", is_detail=True),
        Column("ceiling", _("of ceiling"), lambda row: (row.get("corrected") or {}).get("value"), css="narrow-hide",
               title=_("Coefficient divided by the noise ceiling")) if context["has_ceiling"] else None,
        Column("ridge", _("over ridge"), lambda row: row.get("over_ridge", {}).get("value"),
               title=_("Coefficient minus that of ridge, with the 95 % interval of the difference"))
        if context["has_ridge"] else None,
        Column("saved", _("saved"), lambda row: row.get("saved"),
               title=_("Share of the judgements that it saves if it assists means of systems"))
        if saves(table) else None,
        Column("n", "n", lambda row: None if row["estimate"]["value"] is None else row["estimate"]["n"],
               is_folded=not context["has_missing"]),
        Column("signature", _("Signature"), lambda row: row.get("short_signature"), is_number=False),
    ]  # fmt: skip
    key = FIGURES.get(context["coefficient"], context["coefficient"])
    grid = arrange(
        [column for column in columns if column], context["rows"], given,
        default=f"-{key}", has_intervals=context["has_intervals"],
    )  # fmt: skip
    return replace(grid, further={"scores": _arrange_human_scores(table, given)}) if table.get("scores") else grid


def plan_picture(table: Mapping[str, Any], query: Any, project: str) -> drawing.Picture:
    """Return a forest plot of the evaluators, best first, with the best trivial baseline and the noise ceiling."""
    key, name = FIGURES.get(query.coefficient, query.coefficient), _(COMPARED[query.coefficient])
    ordered = sorted(table["rows"], key=lambda row: -(row[key]["value"] or 0.0))
    tested = query.coefficient == table.get("coefficient")
    rows = [
        {
            "label": row["evaluator"],
            "kind": _("trivial baseline") if row["is_sentinel"] else _("metric"),
            "letters": row.get("letters", "") if tested else "",
            **row[key],
        }
        for row in ordered
    ]
    rows.sort(key=lambda row: row["value"] is None)
    best = next((row for row in ordered if row["is_sentinel"] and row[key]["value"] is not None), None)
    ceiling = table["ceiling"] if tested and table["ceiling"]["value"] is not None else None
    marks = []
    if best:
        marks.append(drawing.Mark(best[key]["value"], _("best baseline: %(name)s") % {"name": best["evaluator"]}))
    if ceiling:
        text = _("noise ceiling %(value).2f") % {"value": ceiling["value"]}
        marks.append(drawing.Mark(ceiling["value"], text, ceiling["low"], ceiling["high"]))
    title, zero = f"{name}, {table['aspect']}, {_(LEVELS[query.level]).lower()}", key in COEFFICIENTS
    finding = _describe([row for row in ordered if row[key]["value"] is not None], key, best, ceiling)
    return drawing.plan_forest(
        rows, finding=finding, title=title, axis=f"{name}, 95 %", zero=zero, marks=marks, main=_("metric")
    )


def _describe(
    rows: list[Mapping[str, Any]], key: str, best: Mapping[str, Any] | None, ceiling: Mapping[str, Any] | None
) -> str:
    """Return which evaluator is first, how many are above the best trivial baseline, and the noise ceiling."""
    if not rows:
        return ""
    text = _("%(name)s is first with %(value)s.")
    sentences = [text % {"name": rows[0]["evaluator"], "value": drawing.name_estimate(rows[0][key])}]
    metrics = [row for row in rows if not row["is_sentinel"]]
    if best and metrics:
        above = sum(row[key]["value"] > best[key]["value"] for row in metrics)
        text = _("%(above)d of %(all)d metrics are above the best trivial baseline, %(name)s (%(value).3f).")
        values = {"above": above, "all": len(metrics), "name": best["evaluator"], "value": best[key]["value"]}
        sentences.append(text % values)
    if ceiling:
        sentences.append(_("The noise ceiling is %(value)s.") % {"value": drawing.name_estimate(ceiling)})
    return " ".join(sentences)


def describe_scatter(row: Mapping[str, Any], query: Any) -> str:
    """Return the coefficient of an evaluator with its interval, as in the table."""
    estimate = row[FIGURES.get(query.coefficient, query.coefficient)]
    if estimate["value"] is None:
        return ""
    text = (
        "%(name)s %(value)s, n %(n)s" if query.grouping == "none" else _("%(name)s within groups: %(value)s, n %(n)s")
    )
    name = _(COMPARED[query.coefficient])
    return text % {"name": name, "value": drawing.name_estimate(estimate), "n": f"{estimate['n']:,}"}


def rank_rows(table: Mapping[str, Any], coefficient: str) -> dict[str, dict[str, Any]]:
    """Return evaluators by slug with estimate and rank by a coefficient, for a comparison of two tables."""
    result: dict[str, dict[str, Any]] = {}
    rows = sorted(table["rows"], key=lambda row: order_evaluators(row, row[coefficient]))
    for number, row in enumerate(rows, 1):
        shown = "-" if row[coefficient]["value"] is None else str(number)
        result[row["evaluator"]] = {"estimate": row[coefficient], "place": shown, "is_sentinel": row["is_sentinel"]}
    return result
