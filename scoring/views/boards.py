"""Pages of the two leaderboards, and the same tables as CSV, JSON and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_GET

from annotation.selectors.campaigns import has_adaptive
from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, NotThere, Unavailable
from evalapp.common.pages import page
from evalapp.side_figures import side_figure

from .. import agreement_files, enhanced_tables, tables
from ..forms import QueryForm, aspect_names
from ..games_form import GamesForm
from ..models import ScoreSet
from ..selectors.aspects import choose_aspect
from ..selectors.catalogue import get_entry
from ..selectors.games import judges_of, plays_games
from ..selectors.leaderboards import (
    COEFFICIENTS,
    COMPARED,
    FIGURES,
    LEVELS,
    METHODS,
    MODELED,
    MODELS,
    OF_LEVEL,
    PEOPLE,
    EvaluatorsQuery,
    SystemsQuery,
    chosen_evaluators,
    given_of,
    names_of,
    parse_query,
    people_of,
)
from ..selectors.selecting import has_choices
from ..services.leaderboards import Answer, answer_leaderboard, note_reading
from ..tables import effects_of, letters_caption, place

BY_PEOPLE = ["aspect", "method", "ratings", "systems", "campaign", "filter"]
#: Lines at the side of a table that can still be told from one another.
MOST_LINES = 6
#: Heads of columns where the full name is long.
SHORT = {"accuracy": "Accuracy", "pa": "PA", "spa": "SPA", "calibrated": "Systems, calibrated"}
#: What a row of evaluators can have besides the coefficients.
EXTRA = ("accuracy", "pa", "spa", "calibrated")
BY_EVALUATOR = ["by", "systems", "references"]
#: How an evaluator that compares texts can rank systems.
BY_JUDGE = {"mean": "Mean score", "glicko2": "Glicko-2 (games)"}
EVALUATORS = [
    "aspect",
    "people",
    "level",
    "grouping",
    "undefined",
    "systems",
    "coefficient",
    "test",
    "ratings",
    "references",
    "filter",
]
#: Evaluators whose p-values are shown pair by pair.
MOST_PAIRS = 12


@login_required
@require_GET
def systems(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    return systems_page(request, project, request.GET)


def systems_page(
    request: HttpRequest, project: Project, given: Mapping[str, str], games_form: GamesForm | None = None
) -> HttpResponse:
    """The page of systems as these parameters ask for it; with a form of games that has faults, these beside it."""
    by = given.get("by", "")
    judge = next((row for row in judges_of(project) if row.slug == by), None) if by else None
    if by and judge is None and games_form is None:
        # Another evaluator was chosen above the table, of which there are scores alone.
        given = {name: given[name] for name in given if name != "method"}
    query = parse_query(SystemsQuery, given, project)
    games = plays_games(query)
    answer, reason = _answer(project, query, request.user)
    names = BY_EVALUATOR if query.by else BY_PEOPLE
    if judge is not None:
        reads = not games or "references" in get_entry(judge.name).needs
        names = ["by", "method", "systems", *(["references"] if reads else [])]
    if not query.by and query.method != "mean":
        names = [name for name in names if name != "ratings"]
    if not query.by and query.method in MODELS and has_adaptive(project):
        names = [*names, "weights"]
    if not query.by and query.method in MODELED:
        names = [*names, "covariates"]
    if not query.by and query.method == "m1":
        names = [*names, "per"]
    table, known = answer.table, names_of(project)
    if query.by and table and table["aspect"]:
        names = ["aspect", *names]
    form = _form(project, query, names, table, rated=query.method == "mean", known=known)
    if judge is not None:
        form.fields["method"].choices = list(BY_JUDGE.items())  # type: ignore[attr-defined]
    shown = systems_shown(table)
    writes = may_write(request, project)
    context = {
        "project": project,
        "query": query,
        "form": form,
        "answer": answer,
        "table": table,
        "reason": reason,
        **shown,
        "has_choices": shown["has_steps"] or (bool(shown["rows"]) and has_choices(project)),
        "params": urlencode(given_of(query)),
        "asked": asdict(query),
        "evaluators": known["by"],
        "plot": _plot_params(query, answer),
        "may_write": writes,
        "games": games,
        "games_form": (games_form or _games_form(query)) if games and writes else None,
        "is_old": answer.is_old,
    }
    status = 422 if games_form is not None else 200
    return page(request, "scoring/systems/show.html", context, fragment="board", status=status)


def _games_form(query: SystemsQuery) -> GamesForm:
    return GamesForm(initial={name: getattr(query, name) for name in ("by", "systems", "references")})


@login_required
@require_GET
def evaluation(request: HttpRequest, slug: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    query = parse_query(EvaluatorsQuery, _fitting(request.GET), project)
    answer, reason = _answer(project, query, request.user)
    table = answer.table
    if table and table["rows"]:
        note_reading(project=project, user=request.user)
    shown = evaluators_shown(table, query.coefficient)
    form = _evaluators_form(project, query, table)
    context = {
        "project": project,
        "query": query,
        "form": form,
        **evaluator_choices(form.known["by"], query),
        "answer": answer,
        "table": table,
        "reason": reason,
        **shown,
        "shown": _chosen(project, table, request.GET.get("plot", "")),
        "missing_sentinels": any(row["is_sentinel"] and row["score_set"] is None for row in shown["rows"]),
        "params": urlencode(given_of(query)),
        "asked": asdict(query),
        "plot": _plot_params(query, answer),
        "may_write": may_write(request, project),
    }
    return page(request, "scoring/evaluation/show.html", context, fragment="board")


def evaluator_choices(known: list[str], query: Any) -> dict[str, Any]:
    """The evaluators that can be compared, each with whether it was ticked; none is where all are compared."""
    chosen = chosen_evaluators(query)
    names = sorted({*known, *chosen})
    return {"evaluator_choices": [(name, name in chosen) for name in names], "chosen": chosen}


def asked_of(given: QueryDict) -> dict[str, Any]:
    """The parameters of an address; the evaluators come as ticks of a form, or as one text with commas."""
    asked: dict[str, Any] = dict(given.items())
    return asked | ({"evaluators": given.getlist("evaluators")} if "evaluators" in asked else {})


def _fitting(given: QueryDict) -> dict[str, Any]:
    """What was chosen above the table, without what the level that was chosen last does not have."""
    asked = asked_of(given)
    compared = asked.get("people", "ratings") not in ("", "ratings")
    if compared:
        asked["level"] = "system"
    level = asked.get("level") or "segment"
    if OF_LEVEL.get(asked.get("coefficient", ""), level) != level or (compared and asked.get("coefficient") == "spa"):
        del asked["coefficient"]
    if level != "segment":
        asked.pop("grouping", None)
    return asked


def _evaluators_form(project: Project, query: EvaluatorsQuery, table: Mapping[str, Any] | None) -> QueryForm:
    """Without the choices that what people said does not leave open."""
    names, compared = EVALUATORS, query.people != "ratings"
    if compared:
        names = [name for name in names if name not in ("level", "grouping", "ratings")]
    if query.grouping == "none":
        names = [name for name in names if name != "undefined"]
    form = _form(project, query, names, table, rated=not compared)
    ways = people_of(form.known)
    if ways == ["ratings"]:
        del form.fields["people"]
    else:
        choices = [(name, PEOPLE[name]) for name in PEOPLE if name in ways or name == query.people]
        form.fields["people"].choices = choices  # type: ignore[attr-defined]
    if compared:
        fits = [pair for pair in form.fields["coefficient"].choices if pair[0] != "spa"]  # type: ignore[attr-defined]
        form.fields["coefficient"].choices = fits  # type: ignore[attr-defined]
    return form


def _is_own(table: Mapping[str, Any]) -> bool:
    """Whether an evaluator gave the values of systems itself; without intervals nothing was drawn for these."""
    return table["extras"].get("ranks") == "ends" or not table["n_clusters"]


def systems_shown(table: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the table of systems is drawn from."""
    rows = table["rows"] if table else []
    drawn = _drawn(rows, _range(rows, table["scale"])) if table else []
    lines: list[list[str]] = [[] for _ in rows]
    with side_figure("The lines that join systems"):
        lines = joined([row["label"] for row in rows], table.get("groups", []) if table else [])
    for row, parts in zip(drawn, lines, strict=True):
        row |= {"joined": parts, "bar": []}
        with side_figure("The bars of wins, ties and losses"):
            row["bar"] = _bar(row["shares"])
    agreement: dict[str, Any] = {"agreement": [], "agreement_notes": []}
    with side_figure("How far the order is that of people"):
        agreement = _agreement_shown(table)
    effects: list[str] = []
    with side_figure("What the model adjusted for"):
        effects = effects_of(table) if table else []
    method = table["method"] if table else ""
    return {
        "rows": drawn,
        "has_steps": any(row["step"] is not None for row in rows),
        "is_own": _is_own(table) if table and table["by"] else False,
        "has_intervals": any(row["low"] is not None for row in rows),
        "has_lines": any(lines),
        "has_bar": any(row["bar"] for row in drawn),
        "has_both_bad": any(row["shares"].get("both_bad") for row in drawn),
        "has_sd": any(row.get("sd") is not None for row in rows),
        "digits": 0 if method in MODELS else 3,
        "method_name": METHODS.get(method, ""),
        "is_model": method in MODELS,
        **agreement,
        "effects": effects,
    }


def _agreement_shown(table: Mapping[str, Any] | None) -> dict[str, Any]:
    """How far the order of games is people's: a row for each aspect and way of judging, and why figures are missing."""
    rows = table["extras"].get("people", []) if table else []
    agreement = [{**row, "figures": [row["spearman"], row["kendall"]]} for row in rows]
    notes = {figure["note"] for row in agreement for figure in row["figures"] if figure["note"]}
    return {"agreement": agreement, "agreement_notes": [f"{note[0].upper()}{note[1:]}." for note in sorted(notes)]}


def joined(labels: list[str], groups: list[list[str]]) -> list[list[str]]:
    """For each row the lines at its side, from left to right: `begin`, `on`, `end` of a run of systems that cannot be
    told apart, or empty. Of runs too many to be read side by side none is drawn."""
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
    """Wins, ties, both bad and losses of a system as parts of a bar 120 wide."""
    if "win" not in shares:
        return []
    found, at = [], 0.0
    for name in ("win", "tie", "both_bad", "loss"):
        wide = 120 * shares.get(name, 0.0)
        if wide:
            found.append({"name": name, "x": round(at, 1), "width": round(wide, 1), "share": shares[name]})
        at += wide
    return found


def evaluators_shown(table: Mapping[str, Any] | None, coefficient: str) -> dict[str, Any]:
    """What the table of evaluators is drawn from, best first by this coefficient."""
    key = FIGURES.get(coefficient, coefficient)
    rows = sorted(table["rows"], key=lambda row: _by(row, key)) if table else []
    names = (*COEFFICIENTS, *(name for name in EXTRA if rows and name in rows[0]))
    asked = {figure: name for name, figure in FIGURES.items()}
    columns = [
        {"key": name, "name": asked.get(name, name), "label": SHORT.get(name) or COMPARED[name]} for name in names
    ]
    signed = key in COEFFICIENTS
    drawn = _drawn(rows, _around_zero(rows, key) if signed else _of_shares(rows, key), key, signed=signed)
    for row in drawn:
        row["figures"] = [
            {
                **row[name],
                "whole": row["whole"][name]["value"] if row["whole"] and name in row["whole"] else None,
                "orders": name == key,
            }
            for name in names
        ]
    tested = bool(table and table["test"]["names"]) and coefficient == (table or {}).get("coefficient")
    people = (table or {}).get("people", "ratings")
    notes = {row["estimate"]["note"] for row in drawn if row["estimate"]["value"] is not None}
    return {
        "rows": drawn,
        # What is said of every interval is said once, below the table.
        "interval_note": notes.pop() if len(notes) == 1 and len(drawn) > 1 else "",
        "has_intervals": any(row["estimate"]["low"] is not None for row in drawn),
        "compared": people != "ratings",
        "people_name": PEOPLE[people],
        "coefficient": coefficient,
        "coefficient_label": COMPARED[coefficient],
        "columns": columns,
        "has_letters": tested and any(row["letters"] for row in rows),
        "has_ceiling": table is not None
        and table["ceiling"]["value"] is not None
        and coefficient == table["coefficient"],
        "pairs": _pairs(table) if table else [],
        "letters_caption": letters_caption(table) if table and tested else "",
    }


def _pairs(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """p-values of all pairs, a row for each evaluator; of very many none, they stand in the JSON."""
    with side_figure("The p-values of all pairs"):
        names = table["test"]["names"]
        if 2 <= len(names) <= MOST_PAIRS:
            return [
                # There is no test of the worse one against the better one; versions before 0.2.0 stored 1 there.
                {"name": name, "cells": [{"p": p, "is_tested": column > row} for column, p in enumerate(cells)]}
                for row, (name, cells) in enumerate(zip(names, table["test"]["p_holm"], strict=True))
            ]
    return []


def coefficient_of(request: HttpRequest, default: str = "pearson") -> str:
    coefficient = request.GET.get("coefficient", default)
    if coefficient not in COEFFICIENTS:
        raise BadInput(f"coefficient is one of {', '.join(COEFFICIENTS)}, not “{coefficient}”.")
    return coefficient


def may_write(request: HttpRequest, project: Project) -> bool:
    """By the role that `get_project` found; asks nothing."""
    return bool(request.user.is_superuser or project.role in ROLES_FOR["write"])  # type: ignore[attr-defined,union-attr]


def _answer(project: Project, query: Any, user: Any) -> tuple[Answer, str]:
    """The table, or why there is none: nothing judged yet is a state of the project, not a mistake of the reader."""
    try:
        return answer_leaderboard(project=project, query=query, user=user), ""
    except BadInput as error:
        return Answer(None, None, True), error.detail


def _form(
    project: Project,
    query: Any,
    names: list[str],
    table: Mapping[str, Any] | None,
    *,
    rated: bool,
    known: Mapping[str, list[str]] | None = None,
) -> QueryForm:
    aspects = aspect_names(project, rated=rated)
    values = {name: getattr(query, name) for name in names}
    if table and table["aspect"]:
        values["aspect"] = table["aspect"]
    if len(aspects) < 2:
        names = [name for name in names if name != "aspect"]
    form = QueryForm(initial=values, project=project, names=names, aspects=aspects, known=known)
    if "level" in form.fields and isinstance(query, EvaluatorsQuery) and "dialogue" in form.known["level"]:
        form.fields["level"].choices = list(LEVELS.items())  # type: ignore[attr-defined]
    if "coefficient" in form.fields:
        fits = [(name, label) for name, label in COMPARED.items() if OF_LEVEL.get(name, query.level) == query.level]
        form.fields["coefficient"].choices = fits  # type: ignore[attr-defined]
    for name in ("references", "filter", "campaign"):
        if name in form.fields and len(form.fields[name].choices) < 2:  # type: ignore[attr-defined]
            del form.fields[name]
    return form


def _plot_params(query: Any, answer: Answer) -> str:
    """The query with the state of the data, so that a browser may keep the picture."""
    stamp = answer.leaderboard.stamp[:12] if answer.leaderboard else ""
    return "&".join(part for part in (urlencode(given_of(query)), f"v={stamp}") if part)


def _by(row: Mapping[str, Any], coefficient: str) -> tuple[bool, float, str]:
    value = row[coefficient]["value"]
    return (value is None, -(value or 0.0), row["evaluator"])


def _range(rows: list[dict[str, Any]], scale: list[float | None]) -> tuple[float, float]:
    """What the little axes span: the figures with some air, within the scale where there is one."""
    values = [row[end] for row in rows for end in ("value", "low", "high") if row[end] is not None]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    air = (high - low) * 0.06 or 0.5
    low, high = low - air, high + air
    if scale[0] is not None and scale[1] is not None:
        low, high = max(low, min(scale[0], min(values))), min(high, max(scale[1], max(values)))
    return low, high


def _around_zero(rows: list[dict[str, Any]], coefficient: str) -> tuple[float, float]:
    """All intervals and the 0, within -1 and 1."""
    values = [row[coefficient][end] for row in rows for end in ("value", "low", "high")]
    found = [0.0, *(value for value in values if value is not None)]
    air = 0.05 * ((max(found) - min(found)) or 1.0)
    return max(-1.0, min(found) - air), min(1.0, max(found) + air)


def _of_shares(rows: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """All intervals of shares with some air, within 0 and 1."""
    found = [row[key][end] for row in rows for end in ("value", "low", "high") if row[key][end] is not None]
    if not found:
        return 0.0, 1.0
    air = 0.05 * ((max(found) - min(found)) or 1.0)
    return max(0.0, min(found) - air), min(1.0, max(found) + air)


def _drawn(
    rows: list[dict[str, Any]], span: tuple[float, float], part: str = "", *, signed: bool = True
) -> list[dict[str, Any]]:
    """Rows with the places of dot and line on an axis 200 wide, and what stands in the column of ranks."""
    low, high = span

    def at(value: float | None) -> float | None:
        return None if value is None else round(4 + 192 * (value - low) / ((high - low) or 1.0), 1)

    found = []
    number = 0
    for row in rows:
        estimate = row[part] if part else row
        number += estimate["value"] is not None
        drawn = {"x": at(estimate["value"]), "x_low": at(estimate["low"]), "x_high": at(estimate["high"])}
        zero = at(0.0) if part and signed else None
        shown = place(row) if "rank" in row else str(number) if estimate["value"] is not None else "-"
        found.append({**row, "estimate": estimate, "drawn": drawn, "zero": zero, "place": shown})
    return found


def _chosen(project: Project, table: Mapping[str, Any] | None, slug: str) -> dict[str, Any] | None:
    if not table or not slug:
        return None
    return next((row for row in table["rows"] if row["evaluator"] == slug and row["score_set"]), None)


# ---- files ------------------------------------------------------------------------------------------------

TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "tex": "application/x-tex; charset=utf-8"}


@login_required
@require_GET
def systems_file(request: HttpRequest, slug: str, ending: str) -> HttpResponse:
    return _file(request, slug, ending, SystemsQuery, "systems")


@login_required
@require_GET
def evaluation_file(request: HttpRequest, slug: str, ending: str) -> HttpResponse:
    return _file(request, slug, ending, EvaluatorsQuery, "evaluators")


def _file(request: HttpRequest, slug: str, ending: str, shape: Any, name: str) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
    answer = answer_leaderboard(project=project, query=parse_query(shape, request.GET, project), user=request.user)
    if answer.table is None or not answer.is_current:
        raise Unavailable("The table is being computed. Look at the leaderboard's page and try again when it stands.")
    return table_file(answer.table, ending, f"{project.slug}-{name}")


def table_file(table: Mapping[str, Any], ending: str, stem: str) -> HttpResponse:
    """A table as CSV, JSON or LaTeX."""
    if ending == "json":
        text = json.dumps(table, ensure_ascii=False, indent=1, allow_nan=False)
    else:
        files = _files_of(table["kind"])
        text = files.as_csv(table) if ending == "csv" else files.as_latex(table)
    response = HttpResponse(text, content_type=TYPES[ending])
    response.headers["Content-Disposition"] = f'attachment; filename="{stem}.{ending}"'
    return response


def _files_of(kind: str) -> Any:
    """The module that writes tables of this kind."""
    return {"agreement": agreement_files, "enhanced": enhanced_tables}.get(kind, tables)


def get_plotted_set(project: Project, query: EvaluatorsQuery, slug: str) -> ScoreSet:
    """The set that stands in the table for this evaluator."""
    if query.people != "ratings":
        from ..selectors.meta_evaluation import choose_compared_aspect

        aspect = choose_compared_aspect(project, query.aspect, turing=query.people == "m1").name
    else:
        aspect = choose_aspect(project, query.aspect, judged_by="ratings").name
    rows = ScoreSet.objects.filter(
        project=project,
        evaluator__slug=slug,
        references__in=[query.references, ""],
        aspect__in=["", aspect],
        scored_at__isnull=False,
    )
    found = rows.select_related("evaluator").order_by("-scored_at", "-pk").first()
    if found is None:
        raise NotThere(f"There are no scores of “{slug}” to be drawn.")
    return found
