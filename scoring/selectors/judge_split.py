"""The groups of items on which judges are developed, and the held-out groups on which a final judge is tested.

A hash of the group's name decides, so that new groups have a part as well. The split is the same for all judges of a
project, and belongs to their options: an export that is imported under another name keeps it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotation.models import Item
from evalapp.accounts.models import Project
from evalapp.common.models import AuditEvent

from ..models import Evaluator

#: Written with every look at the test part of a judge; its detail has the figures that were shown. A look that was
#: imported has its time in the project of the export as `at`.
LOOKED = "judge-report.test-part-shown"


@dataclass(frozen=True)
class Split:
    """The division of groups into a development part and a test part. `key` determines it."""

    key: str

    def is_test(self, group: str, item: str) -> bool:
        """Whether an item belongs to the test part: half of the groups; an item without group is its own."""
        name = group or f"item:{item}"
        return hashlib.sha256(f"{self.key}:{name}".encode("utf-8", "surrogatepass")).digest()[0] < 128


def get_split(project: Project) -> Split:
    """Return the split of the project's first judge, or the one that a first judge will get."""
    rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.JUDGE).order_by("pk")
    keys = (options["split"] for options in rows.values_list("options", flat=True) if options.get("split"))
    return Split(next(keys, f"judge-test:{project.slug}"))


def count_groups(project: Project) -> dict[str, int]:
    """Return the number of groups in each part, which a judge records when it is created."""
    split = get_split(project)
    groups = {
        (group, "" if group else key) for key, group in Item.objects.filter(project=project).values_list("key", "group")
    }
    n_test = sum(split.is_test(group, key) for group, key in groups)
    return {"development": len(groups) - n_test, "test": n_test}


@dataclass(frozen=True)
class Look:
    """A look at the test part of a judge, with the figures that were shown; `figures["table"]` is the kind of table if
    it was in one."""

    evaluator: str
    at: datetime
    figures: Mapping[str, Any]


def count_looks(project: Project, evaluators: list[str]) -> int:
    """Return how often the test part was shown for these evaluators."""
    return AuditEvent.objects.filter(project=project, verb=LOOKED, object__in=evaluators).count()


def iterate_looks(project: Project, evaluators: list[str]) -> Iterator[Look]:
    """Yield each look at the test part for these evaluators, in the order of their records."""
    for event in AuditEvent.objects.filter(project=project, verb=LOOKED, object__in=evaluators).order_by("pk"):
        at = event.detail.get("at")
        yield Look(event.object, datetime.fromisoformat(at) if at else event.at, event.detail.get("figures", {}))
