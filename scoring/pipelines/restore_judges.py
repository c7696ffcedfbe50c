"""Import what an export says about judges: raw answers, so that a judge asks for nothing twice, the examples of its
prompts, and the looks at its test part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import UploadChange
from annotation.pipelines.import_staging import FAULTY, NEW, SAME
from annotation.services.bulk import extend_ranges, reserve_ids
from evalapp.accounts.models import Project
from evalapp.common import audit

from ..models import Evaluator, JudgeAnswer
from ..selectors.judge_records import make_judge_record
from ..selectors.judge_split import LOOKED
from ..selectors.score_sets import ANSWERS

#: Answers that are compared and stored at once.
BATCH = 2_000
_TEXTS = ("item", "group", "system", "text", "answer")


def find_record_fault(record: Mapping[str, Any]) -> str:
    """Return why the record of a judge in a file cannot be used, "" if it can."""
    if not isinstance(record.get("model", ""), str):
        return _("%(name)s must be text") % {"name": "model"}
    for name, is_valid in (("examples", _is_example), ("looks", _is_look)):
        rows = record.get(name, [])
        if not isinstance(rows, list) or not all(map(is_valid, rows)):
            return _("%(name)s cannot be read") % {"name": name}
    return ""


def _is_example(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(name), str) for name in _TEXTS)
        and isinstance(row.get("source"), str | None)
        and isinstance(row.get("context"), list)
        and all(isinstance(turn, str) for turn in row["context"])
    )


def _is_look(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("figures"), dict):
        return False
    try:
        return datetime.fromisoformat(row.get("at", "")).tzinfo is not None
    except (TypeError, ValueError):
        return False


def read_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a new evaluator: model id and examples of a judge."""
    record = row.get("judge") or {}
    return {name: record[name] for name in ("model", "examples") if record.get(name)}


def restore_records(promotion: Any) -> None:
    """Record the looks at the test part that the project does not know yet: a copy of a project does not begin with an
    unseen test part."""
    texts = promotion.staging.execute(f"SELECT row FROM score_sets WHERE act IN ('{NEW}', '{SAME}') ORDER BY n")
    rows = [json.loads(text) for (text,) in texts.fetchall()]
    records = {row["evaluator"]: row["judge"] for row in rows if row.get("judge")}
    for evaluator in Evaluator.objects.filter(project=promotion.project, slug__in=records, kind=Evaluator.Kind.JUDGE):
        known = make_judge_record(evaluator)["looks"]
        for look in records[evaluator.slug].get("looks", []):
            if look not in known:
                audit.record(
                    verb=LOOKED, project=promotion.project, actor=promotion.upload.created_by, object=evaluator.slug,
                    **look,
                )  # fmt: skip


# ---- answers ----------------------------------------------------------------------------------------------------


def check_answers(check: Any) -> None:
    """Mark answers that the project has, and refuse those of unknown judges."""
    staging = check.staging
    endpoints = _find_endpoints(check.project, staging)
    staging.execute("CREATE TEMP TABLE judges (name TEXT PRIMARY KEY)")
    staging.many("INSERT INTO judges VALUES (?)", [(name,) for name in endpoints])
    check.fail(
        "judge_answers",
        "t.evaluator NOT IN (SELECT name FROM judges)",
        "evaluator",
        lambda name: _("There is no judge “%(name)s”, neither in score_sets nor stored.") % {"name": name},
        "t.evaluator",
    )
    # Equal texts share an answer.
    staging.execute(
        f"UPDATE judge_answers SET act = '{SAME}' WHERE act = '{NEW}' AND n NOT IN (SELECT min(n) FROM judge_answers"
        f" WHERE act <> '{FAULTY}' GROUP BY evaluator, request, sample, model)"
    )
    sql = f"SELECT n, evaluator, request, sample, model FROM judge_answers WHERE n > ? AND act = '{NEW}' ORDER BY n"
    for batch in staging.batches(sql, BATCH):
        known = _find_known(check.project, {row[2] for row in batch})
        same = [(SAME, None, n) for n, name, *key in batch if (endpoints[name], *key) in known]
        check.settle("judge_answers", same)
    check.tick("answers of judges: compared")


def _find_endpoints(project: Project, staging: Any) -> dict[str, str]:
    """Return the endpoint of each judge of the project and the upload."""
    rows = [json.loads(text) for (text,) in staging.execute("SELECT row FROM score_sets").fetchall()]
    options = {row["evaluator"]: row.get("options") or {} for row in rows if row.get("kind") == Evaluator.Kind.JUDGE}
    stored = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.JUDGE)
    options |= dict(stored.values_list("slug", "options"))
    return {slug: str(one.get("endpoint", ""))[:40] for slug, one in options.items()}


def _find_known(project: Project, digests: set[str]) -> set[tuple[str, str, int, str]]:
    rows = JudgeAnswer.objects.filter(project=project, digest__in=digests)
    return set(rows.values_list("endpoint", "digest", "repeat", "model"))


def store_answers(promotion: Any) -> None:
    """Insert the new answers, and record what an undo needs."""
    endpoints = _find_endpoints(promotion.project, promotion.staging)
    sql = f"SELECT evaluator, request, sample, model, row FROM judge_answers WHERE act = '{NEW}' ORDER BY n"
    rows = promotion._counted(promotion.staging.stream(sql))
    ranges: list[list[int]] = []
    answers = _make_answers(promotion.project, endpoints, rows)
    while batch := list(islice(answers, BATCH)):
        ids = reserve_ids(JudgeAnswer, len(batch))
        extend_ranges(ranges, ids)
        for row, pk in zip(batch, ids, strict=True):
            row.pk = pk
        # Two judges may share an answer, and a run may have stored it meanwhile.
        JudgeAnswer.objects.bulk_create(batch, ignore_conflicts=True)
    if ranges:
        before = {"ids": ranges}
        UploadChange.objects.create(upload=promotion.upload, table=ANSWERS, row=ranges[0][0], before=before)


def _make_answers(
    project: Project, endpoints: Mapping[str, str], rows: Iterator[tuple[Any, ...]]
) -> Iterator[JudgeAnswer]:
    for name, digest, sample, model, text in rows:
        row = json.loads(text)
        yield JudgeAnswer(
            project=project, endpoint=endpoints[name], digest=digest, repeat=sample, model=model,
            answer={key: row[key] for key in ("text", "finish", "refused", "tokens")},
            characters=row["characters"] or 0, prompt_tokens=row["prompt_tokens"],
            completion_tokens=row["completion_tokens"], cost=row["cost"], seconds=row["seconds"],
        )  # fmt: skip
