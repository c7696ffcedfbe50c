"""Import scores and leaderboards from an export: check them against the project, and store them. Scores that
were computed in the project are never changed by a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Upload, UploadChange
from annotation.parsers import canonical
from annotation.parsers.results import read_external_set
from annotation.pipelines.import_staging import NEW, SAME
from annotation.services.bulk import extend_ranges, insert_rows, reserve_ids
from evalapp.accounts.models import Project
from evalapp.versions import read_entry, read_settings, split_version
from scoring.boards.leaderboard_file import list_faults
from scoring.boards.registry import get_board
from scoring.ml.judges.reader import find_option_fault

from ..models import Evaluator, Leaderboard, Score, ScoreSet
from ..selectors.exports import without_raters
from ..selectors.external import hash_data
from ..selectors.inputs import input_hash
from ..selectors.leaderboards import make_key
from ..selectors.score_sets import SCORES, TABLES
from ..services.scores import COLUMNS, recount_score_set
from .external import (
    check_external,
    compare_scores,
    fill_hashes,
    open_external_sets,
    replace_scores,
    store_systems,
)
from .restore_judges import check_answers, find_record_fault, read_record, restore_records, store_answers

AWAY = gettext_noop(
    "It was trained in another installation, and the export does not contain its weights. To apply it, upload its "
    "folder under another name."
)

TABLES_FILE = "leaderboard.json"
#: Number of scores per insert.
BATCH = 20_000

#: The hash of an evaluator's weights in its signature.
WEIGHTS = re.compile(r"\|w:(\w+)")
#: Names of evaluators are part of URLs.
SLUG = re.compile(r"[-a-zA-Z0-9_]{1,100}")


def check(check: Any) -> None:
    if check.staging.has("scores") or check.staging.has("score_sets"):
        _check_scores(check)
        check_external(check)
    if check.staging.has("judge_answers"):
        check_answers(check)
    if "leaderboard" in check.documents:
        _check_tables(check, check.documents["leaderboard"])


def _check_tables(check: Any, document: Any) -> None:
    """Check the tables, which pages show as they are. Parameters may be missing, but unknown ones are faults."""
    for where, problem in list_faults(document):
        check.faults.add(TABLES_FILE, None, where, f"{where} {problem}.")
    for place, entry in enumerate([] if check.faults.count else document["tables"]):
        unknown = sorted(set(entry["params"]) - set(get_board(entry["kind"]).query.names()))
        if unknown:
            where = f"tables[{place}].params.{unknown[0][:50]}"
            text = _("%(place)s is unknown; was the export made by a newer version?")
            check.faults.add(TABLES_FILE, None, where, text % {"place": where})


def _check_scores(check: Any) -> None:
    """Check the score sets. Those that the project has must have the same scores, and stay unchanged."""
    staging = check.staging
    staging.execute("CREATE TABLE kept_sets (name TEXT PRIMARY KEY, id INTEGER)")
    rows = staging.execute(f"SELECT n, key, row FROM score_sets WHERE act = '{NEW}' ORDER BY n").fetchall()
    #: The evaluator of each name, in the project or in an earlier row.
    named: dict[str, tuple[str, str, Any]] = {}
    for n, name, text in rows:
        row = _read_set(text)
        slug = row["evaluator"]
        if not SLUG.fullmatch(slug):
            text = _("“%(name)s” cannot name an evaluator: use letters, digits and hyphens, at most 100.")
            check.fail_row("score_sets", n, "evaluator", text % {"name": slug[:100]})
            continue
        if row["kind"] == Evaluator.Kind.JUDGE and (why := find_option_fault(row["options"])):
            check.fail_row(
                "score_sets", n, "options", _("The options of a judge cannot be used: %(why)s.") % {"why": why}
            )
            continue
        if why := find_record_fault(row.get("judge") or {}):
            check.fail_row("score_sets", n, "judge", _("The record of a judge cannot be used: %(why)s.") % {"why": why})
            continue
        stored = _find_stored(check.project, row)
        if stored is None:
            if slug not in named:
                evaluator = Evaluator.objects.filter(project=check.project, slug=slug).first()
                named[slug] = _identify(row if evaluator is None else vars(evaluator))
            if text := _explain_difference(row, *named[slug]):
                check.fail_row("score_sets", n, "evaluator", text)
            continue
        if text := _explain_difference(row, *_identify(vars(stored.evaluator))):
            check.fail_row("score_sets", n, "kind", text)
            continue
        staging.execute("INSERT INTO kept_sets VALUES (?, ?)", [name, stored.pk])
        staging.execute("UPDATE score_sets SET act = ?, id = ? WHERE n = ?", [SAME, stored.pk, n])
        compare_scores(check, name, stored)


def _read_set(text: str) -> dict[str, Any]:
    """Parse a row of `score_sets`, with its options converted to the current version."""
    row: dict[str, Any] = json.loads(text)
    version = split_version(bare_signature(row, "signature"))[1]
    return {**row, "options": read_settings(row.get("options") or {}, version)}


def _identify(row: Mapping[str, Any]) -> tuple[str, str, Any]:
    """Return name and kind, and what identifies a trained or combined evaluator: hash of the weights, or options."""
    kind = row["kind"]
    if kind in (Evaluator.Kind.COMBINED, Evaluator.Kind.EXTERNAL, Evaluator.Kind.JUDGE):
        return row["name"], kind, canonical(row.get("options", {}))
    weights = WEIGHTS.search(row["signature"]) if kind == Evaluator.Kind.TRAINED else None
    return row["name"], kind, weights[1] if weights else ""


def _explain_difference(row: Mapping[str, Any], name: str, kind: str, identity: Any) -> str:
    """Return why scores are not by the evaluator that has their name; empty if they are."""
    facts = {"slug": row["evaluator"], "name": name, "kind": kind}
    if (row["name"], row["kind"]) != (name, kind):
        text = _(
            "The evaluator “%(slug)s” of this project is a %(name)s (%(kind)s), not %(other)s (%(other_kind)s). Rename "
            "either."
        )
        return text % {**facts, "other": row["name"], "other_kind": row["kind"]}
    if _identify(row)[2] == identity:
        return ""
    way = _("Give it another name in score_sets, or import the files into another project.")
    if kind == Evaluator.Kind.COMBINED:
        text = _("The evaluator “%(slug)s” of this project is a different combination.")
    elif kind == Evaluator.Kind.JUDGE:
        text = _("The evaluator “%(slug)s” of this project is a judge with other options.")
    elif kind == Evaluator.Kind.EXTERNAL:
        text = _("The evaluator “%(slug)s” of this project is another program, or its scores have another direction.")
    else:
        text = _("The evaluator “%(slug)s” of this project is a different %(name)s, with the weights %(weights)s.")
    return f"{text % {**facts, 'weights': identity or _('unknown')}} {way}"


def _find_stored(project: Project, row: dict[str, Any]) -> ScoreSet | None:
    return ScoreSet.objects.filter(
        project=project, evaluator__slug=row["evaluator"], signature=bare_signature(row, "signature"),
        references=row.get("references", ""), aspect=row.get("aspect", ""),
    ).first()  # fmt: skip


def bare_signature(row: dict[str, Any], name: str) -> str:
    """Return the signature of the evaluator, without the reference set and the hash of the data."""
    text: str = row[name]
    if row.get("data"):
        text = text.removesuffix(f"|data:{row['data']}")
    if row.get("references"):
        text = text.removesuffix(f"|refs:{row['references']}")
    return text


def store(promotion: Any) -> None:
    if promotion.staging.has("score_sets") or promotion.staging.has("scores"):
        _store_scores(promotion)
        restore_records(promotion)
    if promotion.staging.has("judge_answers"):
        store_answers(promotion)
    if "leaderboard" in promotion.documents:
        _store_tables(promotion.upload, promotion.project, promotion.documents["leaderboard"])


def _store_scores(promotion: Any) -> None:
    staging, project = promotion.staging, promotion.project
    #: Sets that this upload creates, and whether it creates their evaluator.
    made: dict[int, bool] = {}
    rows = staging.execute(f"SELECT key, row FROM score_sets WHERE act = '{NEW}' ORDER BY n").fetchall()
    for name, text in rows:
        score_set, with_evaluator = _make_set(project, _read_set(text))
        made[score_set.pk] = with_evaluator
        staging.execute("INSERT INTO kept_sets VALUES (?, ?)", [name, score_set.pk])
    made |= open_external_sets(promotion)
    fill_hashes(promotion)
    for pk, name in staging.execute("SELECT id, name FROM kept_sets ORDER BY id, name").fetchall():
        _store_set(promotion, name, ScoreSet.objects.select_related("evaluator").get(pk=pk), made)


def _store_set(promotion: Any, name: str, score_set: ScoreSet, made: Mapping[int, bool]) -> None:
    """Store the scores of a set, count them, and record what an undo needs."""
    pk, before = score_set.pk, {"scored_at": score_set.scored_at.isoformat() if score_set.scored_at else None}
    change: dict[str, Any] = {"made": pk in made, "evaluator": made.get(pk, False), **before}
    replaced = replace_scores(promotion, name, pk) if score_set.evaluator.is_external else 0
    systems = store_systems(promotion, name, pk)
    change |= {"ids": _insert_scores(promotion, name, pk), **({} if systems is None else {"systems": systems})}
    if not (change["ids"] or replaced or systems is not None or pk in made):
        return
    UploadChange.objects.create(upload=promotion.upload, table=SCORES, row=pk, before=change)
    score_set.refresh_from_db()
    if read_external_set(name) is not None or (replaced and pk not in made):
        score_set.scored_at, score_set.data_hash = timezone.now(), hash_data(score_set)
    recount_score_set(score_set=score_set)


def _insert_scores(promotion: Any, name: str, pk: int) -> list[list[int]]:
    """Insert the new scores of a set; return the ranges of their primary keys, for an undo."""
    sql = (
        "SELECT o.id, s.value, s.note, s.seen, s.empty, s.truncated, s.in_training FROM scores s"
        f" JOIN outputs o ON o.n = s.out WHERE s.act = '{NEW}' AND s.name = ? ORDER BY s.n"
    )
    rows = promotion._counted(_complete(promotion.staging.stream(sql, [name])))
    ranges: list[list[int]] = []
    while batch := list(islice(rows, BATCH)):
        ids = reserve_ids(Score, len(batch))
        insert_rows(Score, ("id", *COLUMNS), ((id, pk, *row) for id, row in zip(ids, batch, strict=True)))
        extend_ranges(ranges, ids)
    return ranges


def _complete(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Write flags as booleans. Where the hash of the input is unknown, each output gets another one, so that none
    counts as a duplicate."""
    for output, value, note, seen, *flags in rows:
        yield output, value, note, input_hash(output) if seen is None else seen, *map(bool, flags)


def _make_set(project: Project, row: dict[str, Any]) -> tuple[ScoreSet, bool]:
    """Return the set, and whether its evaluator was created."""
    evaluator = Evaluator.objects.filter(project=project, slug=row["evaluator"]).first()
    made = evaluator is None
    if evaluator is None:
        away = row["kind"] == Evaluator.Kind.TRAINED
        evaluator = Evaluator.objects.create(
            project=project, slug=row["evaluator"], name=row["name"], kind=row["kind"],
            options=row.get("options", {}), state=Evaluator.State.DAMAGED if away else Evaluator.State.READY,
            damage=AWAY if away else "", signature=bare_signature(row, "signature") if away else "",
            record=read_record(row),
        )  # fmt: skip
    score_set = ScoreSet.objects.create(
        project=project, evaluator=evaluator, signature=bare_signature(row, "signature"),
        short_signature=bare_signature(row, "short_signature"), references=row.get("references", ""),
        aspect=row.get("aspect", ""), data_hash=row.get("data", ""), systems=row.get("systems", []),
        scored_at=datetime.fromisoformat(row["scored_at"]), n_in_training=row.get("n_in_training", 0),
    )  # fmt: skip
    return score_set, made


def _store_tables(upload: Upload, project: Project, document: dict[str, Any]) -> None:
    """Store query and table; a page computes the table again from the data of this project."""
    for entry in map(read_entry, document["tables"]):
        # Parameters that an older version did not have get their defaults.
        query = get_board(entry["kind"]).query(**entry["params"])
        params, key = asdict(query), make_key(query)
        if not Leaderboard.objects.filter(project=project, key=key).exists():
            table = without_raters(entry["table"]) if entry["kind"] == Leaderboard.Kind.AGREEMENT else entry["table"]
            table = {"project": project.slug, "lang": project.lang, **_without_sets(table)}
            row = Leaderboard.objects.create(
                project=project, kind=entry["kind"], params=params, key=key, stamp="", table=table
            )
            UploadChange.objects.create(upload=upload, table=TABLES, row=row.pk, before={})


def _without_sets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if key == "score_set" else _without_sets(part) for key, part in value.items()}
    return [_without_sets(part) for part in value] if isinstance(value, list) else value
