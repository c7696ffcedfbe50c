"""What an export holds of this room: sets of scores with their signatures, the scores, and the tables that are kept,
with all that is needed to compute them again. Sets go by a name that does not depend on the database."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from django.db.models import F

from annotation.parsers import canonical
from evalapp.accounts.models import Project
from evalapp.side_figures import side_figure

from ..models import Leaderboard, Score, ScoreSet
from .compared import compared_sets
from .leaderboards import (
    SHAPES,
    AgreementQuery,
    EnhancedQuery,
    EvaluatorsQuery,
    Query,
    SystemsQuery,
    chosen_evaluators,
    key_of,
    may_be_shown,
    stamp_of,
)
from .score_sets import get_current_set

Row = dict[str, Any]
CHUNK = 5_000
#: The natural order of items and systems, no step first.
SCORES_IN_ORDER = (
    "output__item__order_key", "output__system__order_key", F("output__step").asc(nulls_first=True),
)  # fmt: skip
#: Of `leaderboard.json`.
FORMAT = 1
#: What a kept table says of one installation only.
_LOCAL = ("project", "lang")
_SET = "score_set"


def set_names(project: Project) -> dict[int, str]:
    """Primary key -> name of every complete set of scores: `bleu-star@original`, `shared-bert-1/fluency`; those that
    differ in nothing but the signature are numbered."""
    rows = ScoreSet.objects.filter(project=project, scored_at__isnull=False).select_related("evaluator")
    found: dict[int, str] = {}
    taken: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row.evaluator.slug, row.aspect, row.references, row.full_signature)):
        name = row.evaluator.slug + (f"/{row.aspect}" if row.aspect else "")
        name += f"@{row.references}" if row.references else ""
        taken[name] = taken.get(name, 0) + 1
        found[row.pk] = name if taken[name] == 1 else f"{name}#{taken[name]}"
    return found


def rows(*, project: Project) -> Iterator[tuple[str, Row]]:
    """(table, row): `score_sets`, then `scores`, in canonical order."""
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
        "systems": canonical(row.systems),
    }  # fmt: skip


def _score_rows(name: str, pk: int) -> Iterator[tuple[str, Row]]:
    fields = (
        "output__item__key", "output__system__name", "output__step", "value", "note", "in_training", "is_empty",
        "is_truncated", "input_hash",
    )  # fmt: skip
    found = Score.objects.filter(score_set=pk).order_by(*SCORES_IN_ORDER).values_list(*fields)
    for item, system, step, value, note, in_training, is_empty, is_truncated, input_hash in found.iterator(CHUNK):
        row: Row = {"set": name, "item": item, "system": system, "step": step, "value": canonical(value)}
        if note:
            row["note"] = note
        flags = {"in_training": in_training, "empty": is_empty, "truncated": is_truncated}
        row |= {flag: True for flag, value in flags.items() if value}
        row["input"] = input_hash
        yield "scores", row


# ---- tables -----------------------------------------------------------------------------------------------------


def query_of(row: Leaderboard) -> Query | None:
    """The query of a kept table, or None where it was kept by another version of the program."""
    shape = SHAPES.get(row.kind)
    if shape is None or set(row.params) != set(shape.__dataclass_fields__):
        return None
    query: Query = shape(**row.params)
    return query if key_of(query) == row.key else None


def documents(*, project: Project, raters: Callable[[str], str]) -> dict[str, Row]:
    """The files of this room that are one object, by name. No table names a rater."""
    found = leaderboard(project=project)
    return {} if found is None else {"leaderboard.json": found}


def of_campaign(query: Query) -> bool:
    """Whether a table is about the judgements of one campaign, which an export does not tell from others."""
    return bool(getattr(query, "campaign", ""))


def leaderboard(*, project: Project) -> Row | None:
    """`leaderboard.json`: every kept table that tells the present state, with its settings and the names of its sets.
    None where no table is kept."""
    names = set_names(project)
    stamps = [stamp_of(project), stamp_of(project, AgreementQuery())]
    kept = Leaderboard.objects.filter(project=project, stamp__in=stamps, kind__in=EXPORTED).order_by("pk")
    queries = [(row, query) for row in kept if (query := query_of(row)) is not None and not of_campaign(query)]
    # The filter of a table may have been withdrawn since: then it stays out, as it is shown nowhere.
    shown = may_be_shown(project, [query for _, query in queries])
    tables = []
    for (row, query), is_shown in zip(queries, shown, strict=True):
        if is_shown:
            with side_figure(f"A table of {query.kind}"):
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
    # The advice that a page gives names the project.
    here = f" --project {project.slug}"
    table = {name: value for name, value in _elsewhere(row.table, names, here).items() if name not in _LOCAL}
    if isinstance(query, AgreementQuery):
        table = _without_raters(table)
    entry: Row = {"kind": row.kind, "params": canonical(row.params)}
    if isinstance(query, SystemsQuery) and query.by:
        entry["sets"] = [names[_set_of_systems(project, query)]]
    elif isinstance(query, EvaluatorsQuery):
        entry["sets"] = [names[found.pk] for found in compared_sets(project, query, table["aspect"])]
    elif isinstance(query, EnhancedQuery):
        from .enhanced import chosen_sets, newest_sets  # NumPy and SciPy only where tables are exported

        entry["references"] = chosen_sets(project, query)
        chosen = chosen_evaluators(query)
        by_evaluator = newest_sets(project, entry["references"], table["aspect"], evaluators=chosen)
        entry["sets"] = [names[found.pk] for _, cells in sorted(by_evaluator.items()) for found in cells.values()]
    elif row.kind in ("slices", "matrix", "aspects", "pairs"):
        entry |= _of_evaluators(project, query, names, table)
    return {**entry, "table": canonical(table)}


def _of_evaluators(project: Project, query: Any, names: dict[int, str], table: Row) -> Row:
    """The sets behind a further table of evaluators; of one by aspect the settings and sets of each aspect's table."""
    from .evaluator_boards import one_of_each, queries_by_aspect

    if table["kind"] == "aspects":
        of_aspects = {
            found.aspect: {
                "params": asdict(found),
                "sets": [names[s.pk] for s in compared_sets(project, found, found.aspect)],
            }
            for found in queries_by_aspect(project, query)
        }
        return {"tables": of_aspects}
    if table["kind"] == "matrix":
        return {"sets": [names[s.pk] for s in one_of_each(compared_sets(project, query), query.aspect)]}
    return {"sets": [names[s.pk] for s in compared_sets(project, query, table["aspect"])]}


#: What a table of agreement tells of all raters together; times and names of single ones stay out of an export.
_OF_ALL = (
    "kind", "aspect", "judged", "campaign", "scale", "ratings", "signature", "n_units", "n_items", "n_raters",
    "n_judgements", "n_repeats", "n_filtered", "n_simulated", "note", "rows", "notes", "prevalence", "filter", "failed",
)  # fmt: skip


def without_raters(table: Mapping[str, Any]) -> Row:
    """A table of agreement that names no rater."""
    return {name: table[name] for name in _OF_ALL if name in table}


def _without_raters(table: Row) -> Row:
    """And without lines of single campaigns: an export does not say which judgement is of which."""
    return {**without_raters(table), "rows": [row for row in table["rows"] if not row.get("source")]}


def _set_of_systems(project: Project, query: SystemsQuery) -> int:
    from .rankings import get_evaluator

    found = get_current_set(project, get_evaluator(project, query.by), query.references, query.aspect)
    assert found is not None, "a kept table has its scores"
    return found.pk


def _elsewhere(value: Any, names: dict[int, str], here: str) -> Any:
    """The table with the names of its sets in place of their primary keys, and without the name of the project."""
    if isinstance(value, dict):
        return {
            key: names.get(part) if key == _SET and part is not None else _elsewhere(part, names, here)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_elsewhere(part, names, here) for part in value]
    return value.removesuffix(here) if isinstance(value, str) else value


#: Kinds of tables that stand in an export: those that `evalapp.stats.recompute` computes.
EXPORTED = ("systems", "evaluators", "enhanced", "agreement", "slices", "matrix", "aspects", "pairs")


def usual_queries(project: Project) -> list[Query]:
    """The tables that every export has: for each aspect systems by people, and evaluators where there are scores."""
    from annotation.models import Aspect, Comparison, Rating

    has_scores = ScoreSet.objects.filter(project=project, scored_at__isnull=False).exists()
    found: list[Query] = []
    if Rating.objects.filter(project=project).exists() or Comparison.objects.filter(project=project).exists():
        found.append(AgreementQuery())
    for aspect in Aspect.objects.filter(project=project):
        compared = Comparison.objects.filter(aspect=aspect)
        if has_scores and Rating.objects.filter(aspect=aspect, dialogue__isnull=False).exists():
            found.append(EvaluatorsQuery(aspect=aspect.name, level="dialogue"))
        if Rating.objects.filter(aspect=aspect, output__isnull=False).exists():
            found.append(SystemsQuery(aspect=aspect.name))
            levels = ("segment", "system") if has_scores else ()
            found += [EvaluatorsQuery(aspect=aspect.name, level=level) for level in levels]
        if compared.filter(reference=None).exists():
            found.append(SystemsQuery(aspect=aspect.name, method="win-rate"))
            found += [EvaluatorsQuery(aspect=aspect.name, level="system", people="davidson")] * has_scores
        if compared.exclude(reference=None).exists():
            found.append(SystemsQuery(aspect=aspect.name, method="m1"))
            found += [EvaluatorsQuery(aspect=aspect.name, level="system", people="m1")] * has_scores
    return found
