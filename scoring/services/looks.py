"""Looks at the test part of judges: tables that compare them with people over all groups count as well as reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalapp.accounts.models import Project
from evalapp.common import audit

from ..models import Evaluator
from ..selectors.judge_split import LOOKED, iterate_looks

#: Tables without human judgements.
_WITHOUT_PEOPLE = ("matrix",)


def record_table_looks(*, project: Project, user: Any = None, table: Mapping[str, Any]) -> None:
    """Record that a table compared judges with people in all groups: once for each kind of table, aspect and signature
    of a judge, because the same table tells nothing new."""
    shown = _find_signatures(table)
    if not shown or table["kind"] in _WITHOUT_PEOPLE:
        return
    judges = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.JUDGE, slug__in=shown)
    wanted = {
        slug: {"table": table["kind"], "aspect": table.get("aspect", ""), "signature": shown[slug]}
        for slug in judges.values_list("slug", flat=True)
    }
    known = [(look.evaluator, look.figures) for look in iterate_looks(project, list(wanted))] if wanted else []
    for slug, figures in wanted.items():
        if (slug, figures) not in known:
            audit.record(verb=LOOKED, project=project, actor=user, object=slug, figures=figures)


def _find_signatures(table: Mapping[str, Any]) -> dict[str, str]:
    """Return the signatures of the evaluators that may be judges."""
    if table.get("assist"):
        return {table["assist"]: table["evaluator"]["signature"]}
    return {
        row["evaluator"]: row.get("signature", "")
        for row in table["rows"]
        if "evaluator" in row and row.get("kind", Evaluator.Kind.JUDGE) == Evaluator.Kind.JUDGE
    }
