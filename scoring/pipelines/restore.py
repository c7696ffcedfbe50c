"""Scores and kept tables of an export, read back: the checks of an import against what the project holds, and the way
into its tables. What was scored here is never changed by a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import Any

from annotation.models import Upload, UploadChange
from annotation.parsers import canonical
from annotation.pipelines.import_staging import NEW, SAME
from annotation.services.bulk import insert_rows, reserve_ids
from evalapp.accounts.models import Project
from evalapp.versions import read_entry, read_settings, split_version
from scoring.boards.leaderboard_file import list_faults
from scoring.boards.registry import get_board

from ..models import Evaluator, Leaderboard, Score, ScoreSet
from ..selectors.exports import without_raters
from ..selectors.leaderboards import make_key
from ..selectors.score_sets import SCORES, TABLES
from ..selectors.summaries import summarise_scores
from ..services.scores import COLUMNS, finish_score_set

AWAY = (
    "It was trained in another installation, and its weights did not come with the export. Upload its folder, under "
    "another name, to apply it."
)

TABLES_FILE = "leaderboard.json"
#: Scores that go into the database together.
BATCH = 20_000

#: The hash of an evaluator's weights in its signature.
WEIGHTS = re.compile(r"\|w:(\w+)")
#: An evaluator stands in the addresses of its pages.
SLUG = re.compile(r"[-a-zA-Z0-9_]{1,100}")


def check(check: Any) -> None:
    if check.staging.has("scores") or check.staging.has("score_sets"):
        _check_scores(check)
    if "leaderboard" in check.documents:
        _check_tables(check, check.documents["leaderboard"])


def _check_tables(check: Any, document: Any) -> None:
    """Pages show kept tables as they are, so each must be one. A choice that an older version did not have may be
    missing, none that this version does not know may be there."""
    for where, problem in list_faults(document):
        check.faults.add(TABLES_FILE, None, where, f"{where} {problem}.")
    for place, entry in enumerate([] if check.faults.count else document["tables"]):
        unknown = sorted(set(entry["params"]) - set(get_board(entry["kind"]).query.names()))
        if unknown:
            where = f"tables[{place}].params.{unknown[0][:50]}"
            check.faults.add(TABLES_FILE, None, where, f"{where} is not known here; was it made by a newer version?")


def _check_scores(check: Any) -> None:
    """A set that stands here already must say the same; its rows are left alone."""
    staging = check.staging
    staging.execute("CREATE TABLE kept_sets (name TEXT PRIMARY KEY, id INTEGER)")
    rows = staging.execute(f"SELECT n, key, row FROM score_sets WHERE act = '{NEW}' ORDER BY n").fetchall()
    #: Who has which name already, here or in a row before.
    named: dict[str, tuple[str, str, Any]] = {}
    for n, name, text in rows:
        told = _read_set(text)
        if not SLUG.fullmatch(told["evaluator"]):
            text = (
                f"“{told['evaluator'][:100]}” cannot name an evaluator: use letters, digits and hyphens, at most 100."
            )
            check.fail_row("score_sets", n, "evaluator", text)
            continue
        found = _stored(check.project, told)
        if found is None:
            if told["evaluator"] not in named:
                other = Evaluator.objects.filter(project=check.project, slug=told["evaluator"]).first()
                named[told["evaluator"]] = _who(told) if other is None else _who_is(other)
            if text := _differs(told, *named[told["evaluator"]]):
                check.fail_row("score_sets", n, "evaluator", text)
            continue
        if text := _differs(told, *_who_is(found.evaluator)):
            check.fail_row("score_sets", n, "kind", text)
            continue
        staging.execute("INSERT INTO kept_sets VALUES (?, ?)", [name, found.pk])
        staging.execute("UPDATE score_sets SET act = ?, id = ? WHERE n = ?", [SAME, found.pk, n])
        _compare(check, name, found)


def _read_set(text: str) -> dict[str, Any]:
    """A row of `score_sets`, its options as today's version understands them."""
    told: dict[str, Any] = json.loads(text)
    version = split_version(bare_signature(told, "signature"))[1]
    return {**told, "options": read_settings(told.get("options") or {}, version)}


def _who(told: dict[str, Any]) -> tuple[str, str, Any]:
    """Method, kind, and what tells one trained or combined evaluator from another."""
    kind = told["kind"]
    if kind == Evaluator.Kind.COMBINED:
        return told["name"], kind, canonical(told.get("options", {}))
    found = WEIGHTS.search(told["signature"]) if kind == Evaluator.Kind.TRAINED else None
    return told["name"], kind, found[1] if found else ""


def _who_is(row: Evaluator) -> tuple[str, str, Any]:
    told = {"name": row.name, "kind": row.kind, "options": row.options, "signature": row.signature}
    return _who(told)


def _differs(told: dict[str, Any], name: str, kind: str, what: Any) -> str:
    """Why these scores are not those of the evaluator that has the name; empty where they are."""
    slug, way = told["evaluator"], "Give it another name in score_sets, or load the files into another project."
    if (told["name"], told["kind"]) != (name, kind):
        other = f"{told['name']} ({told['kind']})"
        return f"The evaluator “{slug}” is a {name} ({kind}) here, not {other}. Rename one of the two."
    if _who(told)[2] == what:
        return ""
    if kind == Evaluator.Kind.COMBINED:
        return f"The evaluator “{slug}” combines others, or in another way, here. {way}"
    return f"The evaluator “{slug}” is another {name} here, with the weights {what or 'unknown'}. {way}"


def _stored(project: Project, told: dict[str, Any]) -> ScoreSet | None:
    return ScoreSet.objects.filter(
        project=project, evaluator__slug=told["evaluator"], signature=bare_signature(told, "signature"),
        references=told.get("references", ""), aspect=told.get("aspect", ""),
    ).first()  # fmt: skip


def bare_signature(told: dict[str, Any], name: str) -> str:
    """The evaluator's own signature, without what it was measured against and the hash of the data."""
    text: str = told[name]
    if told.get("data"):
        text = text.removesuffix(f"|data:{told['data']}")
    if told.get("references"):
        text = text.removesuffix(f"|refs:{told['references']}")
    return text


def _compare(check: Any, name: str, found: ScoreSet) -> None:
    sql = (
        "SELECT s.n, o.id, s.value FROM scores s JOIN outputs o ON o.n = s.out"
        f" WHERE s.n > ? AND s.act = '{NEW}' AND s.name = '{name.replace(chr(39), chr(39) * 2)}' ORDER BY s.n"
    )
    for batch in check.staging.batches(sql):
        stored = dict(
            Score.objects.filter(score_set=found, output__in=[row[1] for row in batch]).values_list("output", "value")
        )
        decisions: list[tuple[str, int | None, int]] = []
        for n, output, value in batch:
            if output in stored and stored[output] != value:
                text = f"The set “{name}” has another score of this output here; scores are never overwritten."
                check.fail_row("scores", n, "value", text)
            elif output in stored:
                decisions.append((SAME, None, n))
        check.settle("scores", decisions)


def store(promotion: Any) -> None:
    if promotion.staging.has("score_sets"):
        _store_scores(promotion)
    if "leaderboard" in promotion.documents:
        _store_tables(promotion.upload, promotion.project, promotion.documents["leaderboard"])


def _store_scores(promotion: Any) -> None:
    staging, project = promotion.staging, promotion.project
    #: Sets that this upload makes, and whether their evaluator, too.
    made: dict[int, bool] = {}
    rows = staging.execute(f"SELECT key, row FROM score_sets WHERE act = '{NEW}' ORDER BY n").fetchall()
    for name, text in rows:
        found, with_evaluator = _make_set(project, _read_set(text))
        made[found.pk] = with_evaluator
        staging.execute("INSERT INTO kept_sets VALUES (?, ?)", [name, found.pk])
    touched = staging.execute("SELECT id, name FROM kept_sets ORDER BY id, name").fetchall()
    for pk, name in touched:
        ids = _insert_scores(promotion, name, pk)
        if ids or pk in made:
            before = {"made": pk in made, "evaluator": made.get(pk, False), "ids": ids}
            UploadChange.objects.create(upload=promotion.upload, table=SCORES, row=pk, before=before)
    for found in ScoreSet.objects.filter(pk__in={pk for pk, _ in touched}):
        finish_score_set(
            score_set=found, data_hash=found.data_hash, systems=found.systems, summary=summarise_scores(found),
            scored_at=found.scored_at,
        )  # fmt: skip


def _insert_scores(promotion: Any, name: str, pk: int) -> list[list[int]]:
    """The new scores of one set; gives the ranges of their numbers, by which an undo finds them again."""
    sql = (
        "SELECT o.id, s.value, s.note, s.seen, s.empty, s.truncated, s.in_training FROM scores s"
        f" JOIN outputs o ON o.n = s.out WHERE s.act = '{NEW}' AND s.name = ? ORDER BY s.n"
    )
    rows = promotion._counted(_as_booleans(promotion.staging.stream(sql, [name])))
    ranges: list[list[int]] = []
    while batch := list(islice(rows, BATCH)):
        ids = reserve_ids(Score, len(batch))
        insert_rows(Score, ("id", *COLUMNS), ((id, pk, *row) for id, row in zip(ids, batch, strict=True)))
        for id in ids:
            if ranges and ranges[-1][1] == id - 1:
                ranges[-1][1] = id
            else:
                ranges.append([id, id])
    return ranges


def _as_booleans(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    for *plain, empty, truncated, in_training in rows:
        yield (*plain, bool(empty), bool(truncated), bool(in_training))


def _make_set(project: Project, told: dict[str, Any]) -> tuple[ScoreSet, bool]:
    """The set, and whether its evaluator was made, too."""
    evaluator = Evaluator.objects.filter(project=project, slug=told["evaluator"]).first()
    made = evaluator is None
    if evaluator is None:
        away = told["kind"] == Evaluator.Kind.TRAINED
        evaluator = Evaluator.objects.create(
            project=project, slug=told["evaluator"], name=told["name"], kind=told["kind"],
            options=told.get("options", {}), state=Evaluator.State.DAMAGED if away else Evaluator.State.READY,
            damage=AWAY if away else "", signature=bare_signature(told, "signature") if away else "",
        )  # fmt: skip
    found = ScoreSet.objects.create(
        project=project, evaluator=evaluator, signature=bare_signature(told, "signature"),
        short_signature=bare_signature(told, "short_signature"), references=told.get("references", ""),
        aspect=told.get("aspect", ""), data_hash=told.get("data", ""), systems=told.get("systems", []),
        scored_at=datetime.fromisoformat(told["scored_at"]), n_in_training=told.get("n_in_training", 0),
    )  # fmt: skip
    return found, made


def _store_tables(upload: Upload, project: Project, document: dict[str, Any]) -> None:
    """What was asked for is kept, with what was answered; a page computes it anew from the data that are here."""
    for entry in map(read_entry, document["tables"]):
        # A choice that an older version did not have is at its default.
        query = get_board(entry["kind"]).query(**entry["params"])
        params, key = asdict(query), make_key(query)
        if not Leaderboard.objects.filter(project=project, key=key).exists():
            told = without_raters(entry["table"]) if entry["kind"] == Leaderboard.Kind.AGREEMENT else entry["table"]
            table = {"project": project.slug, "lang": project.lang, **_without_sets(told)}
            row = Leaderboard.objects.create(
                project=project, kind=entry["kind"], params=params, key=key, stamp="", table=table
            )
            UploadChange.objects.create(upload=upload, table=TABLES, row=row.pk, before={})


def _without_sets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if key == "score_set" else _without_sets(part) for key, part in value.items()}
    return [_without_sets(part) for part in value] if isinstance(value, list) else value
