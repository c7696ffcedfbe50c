"""How the leaderboard of systems is rendered."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from string import ascii_lowercase
from typing import Any

from evalapp.markup import escape_latex
from evalapp.side_figures import side_value
from evalapp.stored_texts import translate_stored
from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop
from scoring.boards.choices import METHODS, MODELS, TARGETS
from scoring.boards.render.console import as_lines, filter_line, interval, stale_lines
from scoring.boards.render.latex import figure, lead_lines, mark_remarks, tabular
from scoring.boards.render.page import Column, Given, Grid, arrange, measure_width, place, place_rows, scale_values
from scoring.plots import drawing

#: Name of a figure in a comparison of two tables.
FIGURE = "system"
#: Shares of the judgements of a system, depending on the method.
SHARES = ("win", "tie", "both_bad", "loss", "better", "undecided", "worse")

#: Columns of a table with an evaluator's help.
ASSISTED: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "human_value": lambda row: row["human"]["value"],
    "human_low": lambda row: row["human"]["low"],
    "human_high": lambda row: row["human"]["high"],
    "n_scored": lambda row: row["n_scored"],
    "effective_n": lambda row: row["effective"],
    "weight": lambda row: row["weight"],
}

#: Rating points per unit of log odds: 400 points are odds of 10 to 1.
ELO = 400 / math.log(10)


def list_cells(table: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    names = ["rank", "rank_low", "rank_high", "tier", "system", "step", "kind", "value", "low", "high"]
    names += ["n", "n_ratings", "simulated", "note"]
    names += ["sd"] if any("sd" in row for row in table["rows"]) else []
    shares = [name for name in SHARES if any(name in row.get("shares", {}) for row in table["rows"])]
    added = list(ASSISTED) if table.get("assist") else []
    rows = [
        [
            *(row[name] for name in names), *(row.get("shares", {}).get(name) for name in shares),
            *(ASSISTED[name](row["assisted"]) for name in added), table["signature"],
        ]
        for row in table["rows"]
    ]  # fmt: skip
    return [*names, *shares, *added, "signature"], rows


def write_latex(table: Mapping[str, Any]) -> list[str]:
    """Return a LaTeX table with ratings of models as whole numbers, shares of wins, ties and losses if any, and
    comments on groups of systems."""
    model = table.get("method") in MODELS
    compared = any("win" in row.get("shares", {}) for row in table["rows"])
    assisted = bool(table.get("assist"))
    rows = []
    for row in table["rows"]:
        cells = [place(row).replace("–", "--"), escape_latex(row["label"]), figure(row, 0 if model else 3)]
        cells += [_won(row.get("shares", {}), "--")] if compared else []
        if assisted:
            cells += [figure(row["assisted"]["human"], 0 if model else 3), _count(row["assisted"]["effective"], "--")]
        rows.append([*cells, str(row["n_ratings"] if compared else row["n"])])
    head = ["Rank", "System", (r"Rating" if model else "Score") + r" [95\,\%]"]
    head += [r"Win / tie / loss [\%]"] if compared else []
    head += [r"Judgements only [95\,\%]", r"$n_\mathrm{eff}$"] if assisted else []
    connected = (table.get("extras", {}).get("connectivity") or {}).get("note")
    lines = [*lead_lines(table), *([f"% {connected}"] if connected else [])]
    lines += [f"% Assisted by {escape_latex(table['assist'])}, {table['target']}"] if assisted else []
    lines += tabular([*head, "$n$"], rows, "rl" + "r" * (len(head) - 1))
    lines += mark_remarks(table["rows"], "label", ())
    lines += [f"% {row['label']}: {row['note']}" for row in table["rows"] if row["value"] is None and row["note"]]
    return [*lines, *(f"% {_name_groups(table)}: {', '.join(group)}" for group in table.get("groups", []))]


def is_tested(table: Mapping[str, Any]) -> bool:
    """Return whether the systems of a group are those that tests of their pairs do not tell apart. In other tables
    their rank intervals overlap, although two may differ significantly."""
    return table["method"] in MODELS and table.get("extras", {}).get("ranks") != "ends"


def _name_groups(table: Mapping[str, Any]) -> str:
    return "Not significantly different" if is_tested(table) else "Rank intervals overlap"


EFFECTS = {
    "side": gettext_noop("the side shown first"),
    "length": gettext_noop("a text longer by the root mean square difference"),
}


def describe_effects(table: Mapping[str, Any]) -> list[str]:
    """Return sentences on the covariates of the model, with effects in rating points."""
    extras, sentences = table["extras"], []
    for name, words in EFFECTS.items():
        effect = extras.get(name)
        if effect is None or "points" not in effect:
            continue
        if effect["value"] is None:
            text = _("Not adjusted for %(effect)s: %(note)s.")
            sentences.append(text % {"effect": _(words), "note": translate_stored(effect["note"])})
            continue
        ends = [None if effect[end] is None else ELO * effect[end] for end in ("low", "high")]
        between = "" if None in ends else f" [{ends[0]:+.0f}, {ends[1]:+.0f}]"
        text = _("Adjusted for %(effect)s: %(points)+.0f points%(interval)s.")
        sentences.append(text % {"effect": _(words), "points": effect["points"], "interval": between})
    spread = extras.get("rater_effects")
    if spread and spread["n"]:
        low, high = spread["low"], spread["high"]
        text = _("Adjusted for each rater’s preference for the first side: %(low)+.0f to %(high)+.0f points.")
        sentences.append(text % {"low": low, "high": high})
    return sentences


def _won(shares: Mapping[str, float], dash: str) -> str:
    if "win" not in shares:
        return dash
    parts = (shares["win"], shares["tie"] + shares.get("both_bad", 0.0), shares["loss"])
    return " / ".join(f"{100 * part:.0f}" for part in parts)


def _count(value: float | None, dash: str) -> str:
    return dash if value is None else f"{value:.0f}"


def write_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a console table with a row for each system, then remarks and the signature."""
    by = table["by"] or f"human judgements, {table['aspect']}"
    yield f"Systems of {table['project']} by {by} ({table['method']})"
    if table.get("assist"):
        yield f"Assisted by {table['assist']}; intervals are about {TARGETS[table['target']]}."
    if table.get("campaign"):
        yield f"Only judgements of the campaign {table['campaign']}."
    if table.get("filter"):
        yield filter_line(table["filter"])
    if table["n_simulated"]:
        yield "Figures include simulated judgements."
    yield from stale_lines(table)
    if seen := (table.get("evaluator") or {}).get("n_in_training"):
        what = "verdicts" if table["method"] in MODELS else "scores"
        yield f"{seen:,} {what} are on items in the training data of {by}."
    if connected := (table["extras"].get("connectivity") or {}).get("note"):
        yield f"Note: {connected}."
    if table["rows"]:
        yield from _row_lines(table)
    for group in table["groups"]:
        yield f"{_name_groups(table)}: {', '.join(group)}"
    yield from [*table.get("counted", []), *describe_effects(table), *table.get("findings", [])]
    for row in table["extras"].get("people", []):
        yield _agreement_line(row)
    if table["note"]:
        yield table["note"]
    yield table["signature"]
    if table["method"] == "glicko2" and table["by"]:
        yield table["evaluator"]["signature"]


def _row_lines(table: Mapping[str, Any]) -> list[str]:
    model = table["method"] in MODELS
    compared = any("win" in row["shares"] for row in table["rows"])
    judged = compared or not table["by"]
    spread = any(row.get("sd") is not None for row in table["rows"])
    rows = [
        [
            place(row).replace("–", "-"),
            row["label"],
            row["kind"],
            interval(row, 0 if model else 3),
            *([f"{row['sd']:.1f}"] if spread else []),
            str(row["n"]),
            *([str(row["n_ratings"])] if judged else []),
            *([_won(row["shares"], "-")] if compared else []),
            *(_assisted_cells(row["assisted"], 0 if model else 3) if table.get("assist") else []),
            row["note"],
        ]
        for row in table["rows"]
    ]
    head = ["rank", "system", "kind", "rating" if model else "value", *(["sd"] if spread else []), "outputs"]
    head += [("verdicts" if table["by"] else "games") if compared else "judgements"] if judged else []
    head += [
        *(["win / tie / loss %"] if compared else []),
        *(["judgements only", "as good as", "weight"] if table.get("assist") else []),
        "",
    ]
    return as_lines(head, rows, left=(0, 1, 2, len(head) - 1))


def _assisted_cells(row: Mapping[str, Any], digits: int) -> list[str]:
    weight = "-" if row["weight"] is None else f"{row['weight']:.2f}"
    return [interval(row["human"], digits), _count(row["effective"], "-"), weight]


def _agreement_line(row: Mapping[str, Any]) -> str:
    """Return a line on the rank correlation of games with human judgements of an aspect."""
    who = "simulated raters" if row["simulated"] else "human judgements"
    figures = f"Spearman {interval(row['spearman'])}, Kendall {interval(row['kendall'])}"
    if row["spearman"]["value"] is None:
        figures = row["spearman"]["note"]
    elif row["spearman"]["note"]:
        figures += f" ({row['spearman']['note']})"
    return f"Correlation with {who} ({row['aspect']}, {row['judged_by']}): {figures}, over {row['n_systems']} systems"


# ---- the page and its plot ------------------------------------------------------------------------------------

#: Maximum number of lines beside a table.
MOST_LINES = 6
AXES = {
    "mean": gettext_noop("mean rating, 95 %"),
    "win-rate": gettext_noop("win rate, 95 %"),
    "m1": gettext_noop("share at least as good as the reference"),
}


def _gives_values(table: Mapping[str, Any]) -> bool:
    """Return whether the evaluator scores whole systems; such values without intervals have no resamples."""
    return table["extras"].get("ranks") == "ends" or not table["n_clusters"]


def build_context(table: Mapping[str, Any] | None, query: Any = None) -> dict[str, Any]:
    """Return what the template needs besides the table."""
    rows = table["rows"] if table else []
    scale = scale_values(rows, table["scale"]) if table else None
    drawn = place_rows(rows, scale) if scale else []
    labels, groups = [row["label"] for row in rows], table.get("groups", []) if table else []
    no_lines: list[list[str]] = [[] for _ in rows]
    lines = side_value(_("The lines that join systems"), lambda: joined(labels, groups), no_lines)
    letters = find_letters(table)
    for row, parts in zip(drawn, lines, strict=True):
        row["joined"], row["letters"] = parts, letters.get(row["label"], "")
        row["bar"] = side_value(_("The bars of wins, ties and losses"), partial(_bar, row["shares"]), [])
    no_agreement: dict[str, Any] = {"agreement": [], "agreement_notes": []}
    agreement = side_value(_("How far the order is that of people"), lambda: _agreement_shown(table), no_agreement)
    effects = side_value(_("What the model adjusted for"), lambda: describe_effects(table) if table else [], [])
    method = table["method"] if table else ""
    return {
        "rows": drawn,
        "scale": scale,
        "has_steps": any(row["step"] is not None for row in rows),
        "is_own": _gives_values(table) if table and table["by"] else False,
        "has_intervals": any(row["low"] is not None for row in rows),
        "has_lines": any(lines),
        "has_letters": bool(letters),
        "needs_letters": any(len(group) > 1 for group in groups) and not any(lines),
        "is_tested": table is not None and is_tested(table),
        "plot_caption": caption_picture(table) if table else "",
        "has_bar": any(row["bar"] for row in drawn),
        "has_both_bad": any(row["shares"].get("both_bad") for row in drawn),
        "has_sd": any(row.get("sd") is not None for row in rows),
        "digits": 0 if method in MODELS else 3,
        "method_name": _(METHODS[method]) if method in METHODS else "",
        "is_model": method in MODELS,
        **agreement,
        "effects": effects,
    }


def caption_picture(table: Mapping[str, Any]) -> str:
    """Return the explanation of lines and letters in the picture of systems."""
    if find_letters(table):
        if is_tested(table):
            return _("Lines: 95 % intervals. Systems that share a letter are not significantly different.")
        return _("Lines: 95 % intervals. Systems that share a letter have overlapping rank intervals.")
    return _("Lines: 95 % intervals.") if any(row["low"] is not None for row in table["rows"]) else ""


def build_grid(table: Mapping[str, Any], context: Mapping[str, Any], given: Given) -> Grid:
    """Return the table of the page with the columns and the order that its reader chose."""
    is_model, by, method = context["is_model"], table["by"], table["method"]
    value = _("Score") if by and not is_model else "M1" if method == "m1" else _("Rating")
    value = _("Win rate") if method == "win-rate" and not by else value
    judged = _("Verdicts") if by else _("Games") if context["has_bar"] else _("Judgements")
    shares = _("Win / tie / loss, %")
    shares = _("Win / tie + both bad (counted as ties) / loss, %") if context["has_both_bad"] else shares
    columns = [
        Column("rank", _("Rank"), lambda row: row["rank"], is_ascending=True),
        Column("lines", _("Lines join systems that are not significantly different") if context["is_tested"]
               else _("Lines join systems whose rank intervals overlap"), is_number=False,
               css="narrow-hide", is_silent=True) if context["has_lines"] else None,
        Column("letters", _("Letters"), is_number=False, css="narrow-hide")
        if context["needs_letters"] else None,
        Column("system", _("System"), lambda row: row["system"], is_number=False, is_kept=True),
        Column("step", _("Step"), lambda row: row["step"], is_ascending=True, css="narrow-hide")
        if context["has_steps"] else None,
        Column("value", value, lambda row: row["value"]),
        Column("interval", "95 %", measure_width, is_drawn=True),
        Column("low", _("from"), lambda row: row["low"], css="narrow-hide", is_detail=True),
        Column("high", _("to"), lambda row: row["high"], css="narrow-hide", is_detail=True),
        Column("sd", _("SD"), lambda row: row.get("sd"), title=_("Variation of the rating between simulations"))
        if context["has_sd"] else None,
        Column("n", _("Outputs"), lambda row: row["n"], is_folded=True),
        Column("judged", judged, lambda row: row["n_ratings"], is_folded=True) if not by or is_model else None,
        Column("shares", shares, lambda row: row["shares"].get("win"), is_number=False, is_ascending=False)
        if context["has_bar"] else None,
        *_assisted_columns(table),
        Column("kind", _("Kind"), lambda row: row["kind"], is_number=False),
    ]  # fmt: skip
    return arrange(
        [column for column in columns if column], context["rows"], given,
        default="rank", has_intervals=context["has_intervals"],
    )  # fmt: skip


def _assisted_columns(table: Mapping[str, Any]) -> list[Column]:
    if not table.get("assist"):
        return []
    title = _("Number of judged outputs that would give the same interval without the evaluator")
    share = _("Share of the evaluator’s prediction that is used, 0 to 1")
    return [
        Column("human", _("Judgements only"), lambda row: row["assisted"]["human"]["value"], css="narrow-hide"),
        Column("effective", _("As good as"), lambda row: row["assisted"]["effective"], title=title),
        Column("weight", _("Weight"), lambda row: row["assisted"]["weight"], title=share, css="narrow-hide"),
    ]


def _agreement_shown(table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the rank correlations of games with human judgements, and notes on undefined ones."""
    rows = table["extras"].get("people", []) if table else []
    agreement = [{**row, "figures": [row["spearman"], row["kendall"]]} for row in rows]
    notes = {figure["note"] for row in agreement for figure in row["figures"] if figure["note"]}
    return {"agreement": agreement, "agreement_notes": [f"{note[0].upper()}{note[1:]}." for note in sorted(notes)]}


def joined(labels: list[str], groups: list[list[str]]) -> list[list[str]]:
    """Return for each row the parts of lines that join systems without significant differences: `begin`, `on`, `end` or
    empty, from left to right. Nothing is drawn if there are too many lines; the table then has a column of letters."""
    place = {label: number for number, label in enumerate(labels)}
    spans = [(place[group[0]], place[group[-1]]) for group in groups if group[0] in place and group[-1] in place]
    tracks: list[int] = []
    parts = [[""] * MOST_LINES for _ in labels]
    for begin, end in sorted(spans):
        track = next((number for number, until in enumerate(tracks) if until < begin), len(tracks))
        if track == MOST_LINES:
            return [[] for _ in labels]
        tracks[track:] = [end] if track == len(tracks) else [end, *tracks[track + 1 :]]
        for row in range(begin, end + 1):
            parts[row][track] = "begin" if row == begin else "end" if row == end else "on"
    return [row[: len(tracks)] for row in parts]


def _bar(shares: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the parts of a bar, 120 wide, of wins, ties, both bad and losses."""
    if "win" not in shares:
        return []
    parts, at = [], 0.0
    for name in ("win", "tie", "both_bad", "loss"):
        wide = 120 * shares.get(name, 0.0)
        if wide:
            parts.append({"name": name, "x": round(at, 1), "width": round(wide, 1), "share": shares[name]})
        at += wide
    return parts


def plan_picture(table: Mapping[str, Any], query: Any, project: str) -> drawing.Picture:
    """Return a forest plot of the systems, best first."""
    if query.plays_games:
        axis = _("%(method)s rating by %(by)s, 95 %%", method=METHODS[query.method], by=query.by)
    elif query.by:
        axis = f"{query.by}, 95 %"
    elif query.method in MODELS:
        axis = _("%(method)s rating, 95 %%", method=METHODS[query.method])
    else:
        axis = _(AXES[query.method])
    title = _("Systems of %(project)s by %(by)s") % {"project": project, "by": query.by or table["aspect"]}
    letters = find_letters(table)
    rows = [{**row, "letters": letters.get(row["label"], "")} for row in table["rows"]]
    digits = 0 if query.method in MODELS or query.plays_games else 3
    marks = [drawing.Mark(0.5)] if table["method"] in ("win-rate", "m1") else []
    return drawing.plan_forest(
        [{**row, "kind": _(row["kind"])} for row in rows],
        finding=_describe(table, digits),
        title=title,
        axis=axis,
        zero=False,
        digits=digits,
        marks=marks,
        main=_("machine"),
    )


def assign_letters(table: Mapping[str, Any]) -> dict[str, str]:
    """Return letters by label of system: systems of a group share one, see `is_tested`. Groups are runs of adjacent
    rows; a row in none has a letter of its own. Empty for a single system, and for tables that have no groups."""
    labels = [row["label"] for row in table["rows"] if row["value"] is not None]
    if "groups" not in table or len(labels) < 2:
        return {}
    places = {label: number for number, label in enumerate(labels)}
    runs = [[label for label in group if label in places] for group in table["groups"]]
    inside = {label for run in runs for label in run}
    runs += [[label] for label in labels if label not in inside]
    letters: dict[str, str] = dict.fromkeys(labels, "")
    for number, run in enumerate(sorted(filter(None, runs), key=lambda run: places[run[0]])):
        letter = ascii_lowercase[number % 26] + str(number // 26 or "")
        for label in run:
            letters[label] += letter
    return letters


def find_letters(table: Mapping[str, Any] | None) -> dict[str, str]:
    return side_value(_("The letters of systems"), lambda: assign_letters(table) if table else {}, {})


def _describe(table: Mapping[str, Any], digits: int) -> str:
    """Return which system is first, and which ones are in a group with it."""
    valued = [row for row in table["rows"] if row["value"] is not None]
    if not valued:
        return ""
    first = valued[0]
    text = _("%(system)s is first with %(value)s.")
    sentences = [text % {"system": first["label"], "value": drawing.name_estimate(first, digits)}]
    joined_with = {label for group in table.get("groups", []) if first["label"] in group for label in group}
    others = [row["label"] for row in valued if row["label"] in joined_with - {first["label"]}]
    if others and is_tested(table):
        sentences.append(_("Not significantly different from it: %(systems)s.") % {"systems": ", ".join(others)})
    elif others:
        sentences.append(_("Its rank interval overlaps those of: %(systems)s.") % {"systems": ", ".join(others)})
    elif "groups" in table and len(valued) > 1 and is_tested(table):
        sentences.append(_("It is significantly different from all others."))
    elif "groups" in table and len(valued) > 1:
        sentences.append(_("Its rank interval overlaps no other."))
    return " ".join(sentences)


def rank_rows(table: Mapping[str, Any], coefficient: str) -> dict[str, dict[str, Any]]:
    """Return systems by label with estimates and ranks, for a comparison of two tables."""
    return {row["label"]: {"estimate": row, "place": place(row), "is_sentinel": False} for row in table["rows"]}
