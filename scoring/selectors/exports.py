"""Score sets, scores and stored tables for an export, with everything needed to recompute the tables. Score sets get
names that do not depend on the database."""

import platform
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from annotation.models import Comparison, Rating
from annotation.parsers import canonical
from evalapp.accounts.models import Project
from evalapp.side_figures import side_figure
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.base import Query
from scoring.boards.data.project import ProjectData
from scoring.boards.registry import list_boards

from ..models import Leaderboard, Score, ScoreSet
from .aspects import list_judged
from .judge_records import make_judge_record
from .leaderboards import compute_stamp, make_key, may_be_shown

Row = dict[str, Any]
CHUNK = 5_000
#: The natural order of items and systems, no step first.
SCORES_IN_ORDER = (
    "output__item__order_key", "output__system__order_key", F("output__step").asc(nulls_first=True),
)  # fmt: skip
#: Version of `leaderboard.json`.
FORMAT = 1
#: Members of a table that describe one installation.
_LOCAL = ("project", "lang")
_SET = "score_set"


def set_names(project: Project) -> dict[int, str]:
    """Return primary key -> name of every complete score set: `bleu-star@original`, `shared-bert-1/fluency`. Sets that
    differ only in the signature are numbered."""
    rows = ScoreSet.objects.filter(project=project, scored_at__isnull=False).select_related("evaluator")
    result: dict[int, str] = {}
    taken: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row.evaluator.slug, row.aspect, row.references, row.full_signature)):
        name = row.evaluator.slug + (f"/{row.aspect}" if row.aspect else "")
        name += f"@{row.references}" if row.references else ""
        taken[name] = taken.get(name, 0) + 1
        result[row.pk] = name if taken[name] == 1 else f"{name}#{taken[name]}"
    return result


def rows(*, project: Project) -> Iterator[tuple[str, Row]]:
    """Yield (table, row) of `score_sets`, then `scores`, in canonical order."""
    names = set_names(project)
    sets = ScoreSet.objects.filter(pk__in=names).select_related("evaluator").in_bulk()
    for pk, name in sorted(names.items(), key=lambda pair: pair[1]):
        yield "score_sets", _set_row(name, sets[pk])
    for pk, name in sorted(names.items(), key=lambda pair: pair[1]):
        yield from _score_rows(name, pk)


def _set_row(name: str, row: ScoreSet) -> Row:
    evaluator = row.evaluator
    return {
        "id": name, "evaluator": evaluator.slug, "name": evaluator.name, "kind": evaluator.kind,
        "options": canonical(evaluator.options), "aspect": row.aspect, "references": row.references,
        "signature": row.full_signature, "short_signature": row.full_short_signature, "data": row.data_hash,
        "scored_at": row.scored_at.isoformat() if row.scored_at else None, "n_in_training": row.n_in_training,
        "systems": canonical(row.systems), **({"judge": make_judge_record(evaluator)} if evaluator.is_judge else {}),
    }  # fmt: skip


def _score_rows(name: str, pk: int) -> Iterator[tuple[str, Row]]:
    fields = (
        "output__item__key", "output__system__name", "output__step", "value", "note", "in_training", "is_empty",
        "is_truncated", "input_hash",
    )  # fmt: skip
    result = Score.objects.filter(score_set=pk).order_by(*SCORES_IN_ORDER).values_list(*fields)
    for item, system, step, value, note, in_training, is_empty, is_truncated, input_hash in result.iterator(CHUNK):
        row: Row = {"set": name, "item": item, "system": system, "step": step, "value": canonical(value)}
        if note:
            row["note"] = note
        flags = {"in_training": in_training, "empty": is_empty, "truncated": is_truncated}
        row |= {flag: True for flag, value in flags.items() if value}
        row["input"] = input_hash
        yield "scores", row


# ---- tables -----------------------------------------------------------------------------------------------------


def read_stored_query(row: Leaderboard) -> Query | None:
    """Return the query of a stored table, None if another version stored it."""
    board = list_boards().get(row.kind)
    if board is None or set(row.params) != set(board.query.names()):
        return None
    query = board.query(**row.params)
    return query if make_key(query) == row.key else None


def documents(*, project: Project, raters: Callable[[str], str]) -> dict[str, Row]:
    """Return the JSON documents of the export by file name. No table names a rater."""
    document = leaderboard(project=project)
    return {} if document is None else {"leaderboard.json": document}


def leaderboard(*, project: Project) -> Row | None:
    """Return `leaderboard.json`: every current table with its settings and score sets, or None without tables."""
    names = set_names(project)
    stamps = [compute_stamp(project), compute_stamp(project, AgreementQuery())]
    kept = Leaderboard.objects.filter(project=project, stamp__in=stamps).order_by("pk")
    queries = [
        (row, query) for row in kept if (query := read_stored_query(row)) is not None and not query.campaign_slug
    ]
    # Tables with a withdrawn filter are not exported, because they are not shown either.
    shown = may_be_shown(project, [query for _, query in queries])
    tables = []
    for (row, query), is_shown in zip(queries, shown, strict=True):
        if is_shown:
            with side_figure(_("A table of %(kind)s") % {"kind": query.kind}):
                tables.append(_entry(project, row, query, names))
    if not tables:
        return None
    libraries = {name: version(name) for name in ("numpy", "scipy")}
    return {
        "format": FORMAT,
        "recompute": "python -m evalapp.stats.recompute FOLDER",
        "versions": {"python": platform.python_version(), **libraries},
        "tables": sorted(tables, key=lambda entry: (entry["kind"], str(sorted(entry["params"].items())))),
    }


def _entry(project: Project, row: Leaderboard, query: Query, names: dict[int, str]) -> Row:
    # Advice on pages names the project.
    here = f" --project {project.slug}"
    table = {name: value for name, value in _elsewhere(row.table, names, here).items() if name not in _LOCAL}
    if query.names_raters:
        table = _without_raters(table)
    source = query.describe_source(ProjectData(project), table, lambda one: names[one.pk])
    return {"kind": row.kind, "params": canonical(row.params), **source, "table": canonical(table)}


#: Members of a table of agreement that do not describe single raters.
_OF_ALL = (
    "kind", "aspect", "judged", "campaign", "scale", "ratings", "signature", "n_units", "n_items", "n_raters",
    "n_judgements", "n_repeats", "n_filtered", "n_simulated", "note", "rows", "notes", "prevalence", "filter", "failed",
)  # fmt: skip


def without_raters(table: Mapping[str, Any]) -> Row:
    """Return a table of agreement without members that describe single raters."""
    return {name: table[name] for name in _OF_ALL if name in table}


def _without_raters(table: Row) -> Row:
    """Also remove rows of campaigns: exports do not say which campaign a judgement is from."""
    return {**without_raters(table), "rows": [row for row in table["rows"] if not row.get("source")]}


def _elsewhere(value: Any, names: dict[int, str], here: str) -> Any:
    """Replace primary keys of score sets by names, and remove the name of the project."""
    if isinstance(value, dict):
        return {
            key: names.get(part) if key == _SET and part is not None else _elsewhere(part, names, here)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_elsewhere(part, names, here) for part in value]
    return value.removesuffix(here) if isinstance(value, str) else value


def list_exported_queries(project: Project) -> list[Query]:
    """Return the queries of the tables that every export has."""
    has_scores = ScoreSet.objects.filter(project=project, scored_at__isnull=False).exists()
    ways = {
        "ratings": Rating.objects.filter(output__isnull=False),
        "dialogues": Rating.objects.filter(dialogue__isnull=False),
        "pairs": Comparison.objects.filter(reference=None),
        "turing": Comparison.objects.exclude(reference=None),
    }
    judged: Any = {aspect.name: used for aspect, used in list_judged(project, ways)}
    return [query for board in list_boards().values() for query in board.query.list_exported(judged, has_scores)]
