"""Texts by the kind of ending they are, for the robustness report
(docs/explanation/evaluators/perception.md#robustness-report): what people wrote in campaigns
under a constraint, references and wrong answers (`meta`) of items, and outputs of machines for the same items."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, QuerySet
from django.utils.translation import gettext_noop

from annotation.allocation.writing_plan import CONSTRAINTS
from annotation.models import Item, Output, Reference, System, WritingCampaign, WrittenReference
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project

if TYPE_CHECKING:
    from scoring.ml import Record

#: Kinds in the order of the report.
KINDS = {
    "MGE": gettext_noop("outputs of machines"),
    "HWE": gettext_noop("written freely"),
    "LDHWE": gettext_noop("written without words of the original"),
    "HWEBQ": gettext_noop("better than the original, confirmed by others"),
    "AE": gettext_noop("minimally edited to be wrong"),
}
#: Key of an item's `meta` with a list of wrong answers.
WRONG = "adversarial_negatives"
#: Number of items with wrong answers to sample.
SAMPLE = 300


@dataclass(frozen=True)
class Sources:
    """Data of a project for the report. `written`: kind -> number of texts from campaigns; `has_wrong`: whether items
    have wrong answers."""

    written: dict[str, int]
    has_wrong: bool

    @property
    def is_empty(self) -> bool:
        return not self.has_wrong and not any(self.written.values())

    @property
    def missing(self) -> dict[str, str]:
        """Kinds of written texts that are missing, with descriptions."""
        brought = {"HWE", "LDHWE", "AE"} if self.has_wrong else set()
        return {kind: KINDS[kind] for kind in CONSTRAINTS.values() if not self.written[kind] and kind not in brought}


def find_sources(project: Project) -> Sources:
    """Return the available data, in two queries."""
    name = "campaign__options__constraint"
    rows = _written(project).order_by().values(name).annotate(n=Count("pk"))
    counts = {row[name]: row["n"] for row in rows}
    written = {kind: counts.get(constraint, 0) for constraint, kind in CONSTRAINTS.items()}
    return Sources(written, Item.objects.filter(project=project, meta__has_key=WRONG).exists())


def texts_by_kind(project: Project, sample: int = SAMPLE, seed: int = 13) -> dict[str, list[Record]]:
    """Return the texts by kind: all texts of campaigns under a constraint, one text of each kind from items with wrong
    answers, and machine outputs for all these items.

    The only reference of a text is the item's original: the first in the set that the campaign started from, or in the
    set `original`. Items without one are left out.
    """
    rows = list(
        _written(project).order_by("pk")
        .values_list("unit__item", "campaign__start_set", "campaign__options__constraint", "text")
    )  # fmt: skip
    items = Item.objects.in_bulk({item for item, *_ in rows})
    originals = _originals({(item, start) for item, start, *_ in rows})
    result: dict[str, list[Record]] = {kind: [] for kind in KINDS}
    first: dict[int, str] = {}
    for item, start, constraint, text in rows:
        original = originals.get((item, start))
        if original is not None:
            first.setdefault(item, original)
            result[CONSTRAINTS[constraint]].append(_record(items[item], text, original))
    for one, original, texts in _brought_along(project, sample, seed):
        first.setdefault(one.pk, original)
        for kind, text in texts.items():
            result[kind].append(_record(one, text, original))
        items[one.pk] = one
    machines = Output.objects.filter(item__in=first, system__kind=System.Kind.MACHINE).order_by("pk")
    for item, system, text in machines.values_list("item", "system__name", "text"):
        result["MGE"].append(_record(items[item], text, first[item], system))
    return result


def _written(project: Project) -> QuerySet[WrittenReference]:
    return WrittenReference.objects.filter(
        campaign__project=project, campaign__kind=WritingCampaign.Kind.CONSTRAINT,
        state=WrittenReference.State.SHOWN,
    )  # fmt: skip


def _brought_along(project: Project, sample: int, seed: int) -> list[tuple[Item, str, dict[str, str]]]:
    """Return items with wrong answers: the item, its first reference, and by kind the first wrong answer, another
    reference, and the reference with the fewest words in common with the first."""
    from scoring.ml.evaluators.perception.robustness import least_overlapping

    keys = sorted(Item.objects.filter(project=project, meta__has_key=WRONG).values_list("key", "pk"))
    if len(keys) > sample:
        keys = sorted(random.Random(f"{seed}:kinds").sample(keys, sample))
    items = Item.objects.in_bulk([pk for _, pk in keys])
    references: dict[int, list[str]] = {}
    rows = Reference.objects.filter(item__in=items, set__name=ORIGINAL).order_by("item", "position")
    for item, text in rows.values_list("item", "text"):
        references.setdefault(item, []).append(text)
    result = []
    for _, pk in keys:
        wrong = items[pk].meta[WRONG]
        texts = [text for text in wrong if isinstance(text, str) and text] if isinstance(wrong, list) else []
        if not texts or pk not in references:
            continue
        original, *others = references[pk]
        others = [text for text in others if text != original]
        kinds = {"AE": texts[0]}
        if others:
            far = least_overlapping(original, others)
            rest = others[:far] + others[far + 1 :]
            kinds |= {"LDHWE": others[far], **({"HWE": rest[0]} if rest else {})}
        result.append((items[pk], original, kinds))
    return result


def _originals(places: set[tuple[int, int | None]]) -> dict[tuple[int, int], str]:
    rows = Reference.objects.filter(item__in={item for item, _ in places}, set__in={start for _, start in places})
    result: dict[tuple[int, int], str] = {}
    for item, start, text in rows.order_by("position").values_list("item", "set", "text"):
        result.setdefault((item, start), text)
    return result


def _record(item: Item, text: str, original: str, system: str = "") -> Record:
    from scoring.ml import Record

    context = tuple(map(str, item.context))
    return Record(text, (original,), context, item.source, item.key, system, group=item.group)
