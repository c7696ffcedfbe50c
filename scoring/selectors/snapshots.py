"""Reading snapshots of leaderboards, and changes between two snapshots, or since a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models.fields.json import KT
from django.utils.translation import gettext as _

from annotation.models import RaterFilter, Upload, UploadChange
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from scoring.boards.choices import COEFFICIENTS
from scoring.boards.registry import get_board, list_boards

from ..models import Evaluator, Snapshot

#: Counts that are worth comparing.
COUNTS = ("n_outputs", "n_ratings", "n_raters", "n_items", "n_clusters", "n_systems", "n_excluded", "n_simulated")


def list_snapshots(project: Project) -> list[Snapshot]:
    """Return snapshots, newest first, without tables but with the `signature` of each."""
    rows = Snapshot.objects.filter(project=project).select_related("created_by").defer("table")
    return list(rows.annotate(signature=KT("table__signature")))


def get_snapshot(project: Project, slug: str) -> Snapshot:
    """Return a snapshot. Raises `NotThere` with some of the names."""
    snapshot = Snapshot.objects.filter(project=project, slug=slug).select_related("created_by").first()
    if snapshot is None:
        there = ", ".join(Snapshot.objects.filter(project=project).values_list("slug", flat=True)[:20]) or _("none yet")
        text = _("There is no snapshot “%(name)s” in %(project)s. There are: %(known)s.")
        raise NotThere(text % {"name": slug, "project": project.slug, "known": there})
    return snapshot


def count_of_filters(*, upload: Upload) -> int:
    """Return the number of snapshots and combinations that use a filter from this upload. Their signatures contain its
    name, which another filter could take."""
    brought = UploadChange.objects.filter(upload=upload, table="filters").values("row")
    names = set(RaterFilter.objects.filter(pk__in=brought).values_list("name", flat=True))
    if not names:
        return 0
    kept = Snapshot.objects.filter(project=upload.project_id).values_list("params", flat=True)
    used = [params.get("filter") for params in kept]
    combined = Evaluator.objects.filter(project=upload.project_id, kind=Evaluator.Kind.COMBINED)
    # Uploaded combinations have no record of their parts.
    used += [row.options.get("filter") for row in combined if row.record.get("parts")]
    return sum(name in names for name in used)


@dataclass(frozen=True)
class Change:
    """A row of two tables; a figure is null if the row is absent."""

    name: str
    first: Mapping[str, Any] | None
    second: Mapping[str, Any] | None
    rank_first: str = "-"
    rank_second: str = "-"
    is_sentinel: bool = False

    @property
    def difference(self) -> float | None:
        """Second minus first."""
        values = [part["value"] if part else None for part in (self.first, self.second)]
        return None if values[0] is None or values[1] is None else values[1] - values[0]

    @property
    def moved(self) -> bool:
        return self.rank_first != self.rank_second

    @property
    def outside(self) -> bool:
        """Whether the second value is outside the interval of the first."""
        if not (self.first and self.second) or None in (self.first["low"], self.second["value"]):
            return False
        return not self.first["low"] <= self.second["value"] <= self.first["high"]


class Differing(NamedTuple):
    """A setting or a count that differs."""

    name: str
    first: Any
    second: Any


@dataclass(frozen=True)
class Changes:
    """Rows of two tables of a kind in the order of the second, with the settings and counts that differ."""

    kind: str
    coefficient: str
    rows: list[Change]
    settings: list[Differing]
    counts: list[Differing]


def compare_tables(first: Mapping[str, Any], second: Mapping[str, Any], coefficient: str = "pearson") -> Changes:
    """Compare two tables. Raises `BadInput` if they are of different kinds."""
    kind = second["kind"]
    if first["kind"] != kind or kind not in list_boards():
        text = _("Tables of different kinds (%(first)s, %(second)s) cannot be compared.")
        raise BadInput(text % {"first": first["kind"], "second": kind})
    if kind == "evaluators" and coefficient not in COEFFICIENTS:
        text = _("coefficient must be one of %(known)s, not “%(value)s”.")
        raise BadInput(text % {"known": ", ".join(COEFFICIENTS), "value": coefficient})
    before, after = (_rows(table, coefficient) for table in (first, second))
    names = [*after, *(name for name in before if name not in after)]
    rows = [_change(name, before.get(name), after.get(name)) for name in names]
    return Changes(
        kind, coefficient if kind == "evaluators" else "", rows, _settings(first, second), _counts(first, second)
    )


def _rows(table: Mapping[str, Any], coefficient: str) -> dict[str, dict[str, Any]]:
    """Return rows by name, best first, each with its estimate and displayed rank."""
    board = get_board(table["kind"])
    columns = board.module("columns")
    if hasattr(columns, "rank_rows"):
        ranked: dict[str, dict[str, Any]] = columns.rank_rows(table, coefficient)
        return ranked
    # Ranks differ between columns, so these rows have none.
    figures = board.get_renderer("list_figures")(table)
    return {name: {"estimate": one, "place": "-", "is_sentinel": False} for name, one in figures}


def _change(name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Change:
    return Change(
        name,
        before["estimate"] if before else None,
        after["estimate"] if after else None,
        before["place"] if before else "-",
        after["place"] if after else "-",
        bool((after or before or {}).get("is_sentinel")),
    )


def _settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Differing]:
    """Return the parts in which the signatures differ."""
    one, two = (dict(_parts(table["signature"])) for table in (first, second))
    return [Differing(name, one.get(name), two.get(name)) for name in {**one, **two} if one.get(name) != two.get(name)]


def _parts(signature: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (part.partition(":") for part in signature.split("|"))]


def _counts(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Differing]:
    """Return counts of the tables and their methods that differ."""
    one, two = ({**{name: table.get(name) for name in COUNTS}, **table.get("totals", {})} for table in (first, second))
    names = [*one, *(name for name in two if name not in one)]
    return [Differing(_label(name), one.get(name), two.get(name)) for name in names if one.get(name) != two.get(name)]


def _label(name: str) -> str:
    return name.removeprefix("n_").replace("_", " ")
