"""Pages of snapshots: list, saving, one snapshot, comparison, deleting."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.pages import came_from, page, project_page, read_choice
from scoring.boards.choices import COEFFICIENTS
from scoring.boards.metrics import columns as metrics_columns
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.registry import get_board, list_boards
from scoring.boards.render.figures import has_earlier_test, letters_caption
from scoring.boards.render.page import Column, Grid, arrange, measure_width
from scoring.boards.systems import columns as systems_columns

from ..downloads import make_file
from ..models import Snapshot
from ..selectors.leaderboards import parse_query
from ..selectors.snapshots import Changes, compare_tables, get_snapshot, list_snapshots
from ..services.leaderboards import Answer, answer_leaderboard
from ..services.snapshots import delete_snapshot, take_snapshot
from .boards import build_grid, list_coefficients, plan_picture

NOW = "now"


@project_page(GET="read", POST="write")
def snapshot_list(request: HttpRequest, project: Project) -> HttpResponse:
    """List the snapshots; a POST saves one of the table given by `board` and its parameters."""
    if request.method == "POST":
        board = request.POST.get("board", "")
        if board not in list_boards():
            text = _("board must be one of %(known)s, not “%(value)s”.")
            raise BadInput(text % {"known": ", ".join(list_boards()), "value": board})
        query = parse_query(get_board(board).query, request.POST, project)
        given = {name: request.POST.get(name, "") for name in ("title", "note")}
        try:
            row = take_snapshot(project=project, user=request.user, query=query, **given)
        except Conflict as error:
            messages.warning(request, _("Snapshot not saved. %(reason)s") % {"reason": error.detail})
            return redirect(came_from(request) or reverse("scoring:snapshots", args=[project.slug]))
        messages.success(request, _("Snapshot saved under this permanent address, for members of the project."))
        return redirect("scoring:snapshot", project.slug, row.slug)
    context = {
        "project": project,
        "rows": list_snapshots(project),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "scoring/snapshots/list.html", context)


@project_page(GET="read")
def snapshot(request: HttpRequest, project: Project, name: str) -> HttpResponse:
    row = get_snapshot(project, name)
    context: dict[str, Any] = {
        "project": project,
        "row": row,
        "frozen": True,
        "answer": Answer(row.table, row, True),  # type: ignore[arg-type]
        "table": row.table,
        "others": [other for other in list_snapshots(project) if other.kind == row.kind and other.pk != row.pk],
        "may_write": can(user=request.user, project=project, need="write"),
        "drawn": plan_snapshot(project, row),
        "drawn_plot": f"v={row.pk}",
    }
    if row.kind == "systems":
        context |= systems_columns.build_context(row.table)
    elif row.kind == "evaluators":
        known = list_coefficients(row.table)
        query = EvaluatorsQuery(coefficient=read_choice(request, "coefficient", known, known[0]))
        context |= metrics_columns.build_context(row.table, query)
        context["recomputed"] = _recomputed(project, row, request.user) if has_earlier_test(row.table) else None
    else:
        board = get_board(row.kind)
        figures = [{**estimate, "name": name} for name, estimate in board.get_renderer("list_figures")(row.table)]
        context["grid"] = _arrange_figures(figures, board.get_renderer("FIGURE"), request)
    if row.kind in ("systems", "evaluators"):
        context |= build_grid(request, row.kind, context)
    return page(request, "scoring/snapshots/show.html", context)


def plan_snapshot(project: Project, row: Snapshot) -> Any:
    """Return the picture of a snapshot; None if there is nothing to plot. Later versions may not know its settings."""
    try:
        query = parse_query(get_board(row.kind).query, row.params)
    except BadInput:
        return None
    return plan_picture(project, query, row.table)


def _arrange_figures(figures: list[dict[str, Any]], what: str, request: HttpRequest) -> Grid:
    """Return the table of all figures of a snapshot whose board has no ranks."""
    columns = [
        Column("name", what[:1].upper() + what[1:], lambda row: row["name"], is_number=False),
        Column("value", _("Value"), lambda row: row["value"]),
        Column("width", "95 %", measure_width, is_ascending=True),
        Column("n", "n", lambda row: row["n"]),
        Column("note", _("Note"), lambda row: row["note"], is_number=False),
    ]
    return arrange(columns, figures, dict(request.GET.lists()))


def _recomputed(project: Project, row: Snapshot, user: Any) -> dict[str, Any]:
    """Return the letters of a snapshot by the test of version 0.1.0 next to those of the current test."""
    try:
        answer = _now(project, row, user)
    except (BadInput, NotThere) as error:
        return {"reason": error.detail}
    if answer.table is None or not answer.is_current or answer.leaderboard is None:
        return {"reason": _("they are being computed; reload this page in a moment")}
    now = {entry["evaluator"]: entry["letters"] for entry in answer.table["rows"]}
    rows = [
        (one["evaluator"], one["letters"], now.get(one["evaluator"])) for one in row.table["rows"] if one["letters"]
    ]
    is_same = answer.leaderboard.stamp == row.stamp
    return {"rows": rows, "is_same": is_same, "test": answer.table["test"], "caption": letters_caption(answer.table)}


@project_page(GET="read")
def snapshot_file(request: HttpRequest, project: Project, name: str, ending: str) -> HttpResponse:
    row = get_snapshot(project, name)
    return make_file(row.table, ending, f"{project.slug}-{row.slug}")


@project_page(GET="read")
def compare(request: HttpRequest, project: Project) -> HttpResponse:
    """Compare two snapshots, or a snapshot and the current table."""
    rows = list_snapshots(project)
    if not rows:
        return redirect("scoring:snapshots", project.slug)
    first = get_snapshot(project, request.GET.get("first") or rows[0].slug)
    requested = request.GET.get("second") or NOW
    second = None if requested == NOW else get_snapshot(project, requested)
    # Other coefficients need not be in both tables.
    coefficients = [name for name in list_coefficients(first.table) if name in COEFFICIENTS]
    coefficient = read_choice(request, "coefficient", coefficients, coefficients[0])
    now = _now(project, first, request.user) if second is None else None
    table = second.table if second else now.table if now else None
    columns = get_board(first.kind).module("columns")
    found = compare_tables(first.table, table, coefficient) if table else None
    context = {
        "project": project,
        "first": first,
        "second": second,
        "requested": requested,
        "rows": rows,
        "answer": now,
        "coefficient": coefficient,
        "coefficients": coefficients,
        "found": found,
        "has_places": hasattr(columns, "rank_rows"),
    }
    if found:
        context["grid"] = _arrange_comparison(found, columns, request, is_later=second is not None)
    return page(request, "scoring/snapshots/compare.html", context)


def _arrange_comparison(found: Changes, columns: Any, request: HttpRequest, *, is_later: bool) -> Grid:
    """Return the table of both snapshots side by side."""

    def value_of(part: str) -> Callable[[Any], Any]:
        return lambda row: (getattr(row, part) or {}).get("value")

    def width_of(part: str) -> Callable[[Any], Any]:
        return lambda row: measure_width(getattr(row, part)) if getattr(row, part) else None

    def place_of(part: str) -> Callable[[Any], Any]:
        # A rank can be a range: 2–4.
        return lambda row: next((int(n) for n in getattr(row, part).split("–") if n.isdecimal()), None)

    listed = [Column("name", columns.FIGURE[:1].upper() + columns.FIGURE[1:], lambda row: row.name, is_number=False)]
    if hasattr(columns, "rank_rows"):
        now = _("Rank later") if is_later else _("Rank now")
        listed += [
            Column("rank_first", _("Rank then"), place_of("rank_first"), is_ascending=True),
            Column("rank_second", now, place_of("rank_second"), is_ascending=True),
        ]
    listed += [
        Column("first", _("Then"), value_of("first")),
        Column("width_first", "95 %", width_of("first"), is_ascending=True),
        Column("second", _("Later") if is_later else _("Now"), value_of("second")),
        Column("width_second", "95 %", width_of("second"), is_ascending=True),
        Column("difference", _("Difference"), lambda row: row.difference),
    ]
    return arrange(listed, found.rows, dict(request.GET.lists()))


def _now(project: Project, first: Any, user: Any) -> Answer:
    return answer_leaderboard(
        project=project, query=parse_query(get_board(first.kind).query, first.params, project), user=user
    )


@project_page(GET="write", POST="write")
def delete(request: HttpRequest, project: Project, name: str) -> HttpResponse:
    row = get_snapshot(project, name)
    if request.method == "POST":
        delete_snapshot(project=project, user=request.user, slug=name)
        messages.success(request, _("%(title)s deleted.") % {"title": row.title})
        return redirect("scoring:snapshots", project.slug)
    return page(request, "scoring/snapshots/delete.html", {"project": project, "row": row})
