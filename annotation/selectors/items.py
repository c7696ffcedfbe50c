"""Reads items: search and filters for the list, and all data of an item. The number of queries does not depend on the
number of rows."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Avg, Count, Exists, F, OuterRef, Q, QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Comparison, Item, Output, Rating, Reference
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from evalapp.names import natural_key

SCOPES = {"context": gettext_lazy("contexts"), "output": gettext_lazy("outputs"), "id": gettext_lazy("ids")}
RATED = {"yes": gettext_lazy("judged"), "no": gettext_lazy("not judged")}
MAX_OUTPUTS = 200


@dataclass(frozen=True)
class ItemFilter:
    """The filters of the list. `meta` is `key=value`; `rated` is yes, no or empty."""

    q: str = ""
    scope: str = "context"
    group: str = ""
    meta: str = ""
    system: str = ""
    rated: str = ""

    @property
    def active(self) -> bool:
        return bool(self.q or self.group or self.meta or self.system or self.rated)


def find_items(project: Project, wanted: ItemFilter) -> QuerySet[Item]:
    rows = Item.objects.filter(project=project)
    if "\0" in "".join((wanted.q, wanted.group, wanted.meta, wanted.system)):
        raise BadInput(_("A search text cannot contain a NUL character."))
    if wanted.q:
        rows = _search(rows, wanted)
    if wanted.group:
        rows = rows.filter(group=wanted.group)
    if wanted.meta:
        key, separator, value = wanted.meta.partition("=")
        if not separator or not key.strip():
            raise BadInput(_("Enter a filter on meta as key=value, for example domain=food."))
        text = Cast(KeyTextTransform(key.strip(), "meta"), TextField())
        rows = rows.alias(meta_text=text, meta_value=KeyTransform(key.strip(), "meta"))
        is_asked = Q(meta_text=value.strip())
        if value.strip() == "null":  # JSON null is a text in SQLite and NULL in PostgreSQL
            is_asked |= Q(meta_value=None)
        rows = rows.filter(is_asked)
    if wanted.system:
        rows = rows.filter(Exists(Output.objects.filter(item=OuterRef("pk"), system__name=wanted.system)))
    if wanted.rated in RATED:
        rows = rows.filter(judged=wanted.rated == "yes")
    return rows


def _search(rows: QuerySet[Item], wanted: ItemFilter) -> QuerySet[Item]:
    if wanted.scope == "id":
        return rows.filter(key__icontains=wanted.q)
    if wanted.scope == "output":
        return rows.filter(Exists(Output.objects.filter(item=OuterRef("pk"), text__icontains=wanted.q)))
    # Turns are stored as JSON, in which quotes and line breaks are escaped.
    inside = json.dumps(wanted.q, ensure_ascii=False)[1:-1]
    matching = rows.annotate(said=Cast("context", TextField()))
    return matching.filter(Q(said__icontains=inside) | Q(source__icontains=wanted.q))


def count_judgements(items: list[Item]) -> dict[int, dict[str, int]]:
    """Counts for a page of items: outputs, references, ratings and comparisons of each."""
    ids = [item.pk for item in items]
    counts: dict[int, dict[str, int]] = {
        id: {"outputs": 0, "references": 0, "ratings": 0, "comparisons": 0} for id in ids
    }
    for name, rows, column in (
        ("outputs", Output.objects.filter(item_id__in=ids), "item_id"),
        ("references", Reference.objects.filter(item_id__in=ids, set__name=ORIGINAL), "item_id"),
        ("ratings", Rating.objects.filter(output__item_id__in=ids), "output__item_id"),
        ("comparisons", Comparison.objects.filter(output_a__item_id__in=ids), "output_a__item_id"),
    ):
        for id, count in rows.order_by().values_list(column).annotate(n=Count("pk")):
            counts[id][name] = count
    return counts


@dataclass
class OutputView:
    """An output with its ratings: aspect name -> {mean, n, simulated, values}."""

    output: Output
    ratings: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class ItemView:
    item: Item
    references: list[tuple[str, list[Reference]]]
    outputs: list[OutputView]
    aspects: list[str]
    comparisons: list[dict[str, Any]]
    more_outputs: int

    @property
    def only_simulated(self) -> bool:
        """Whether all ratings of the outputs are simulated; the page says so once."""
        return all(rating["simulated"] for row in self.outputs for rating in row.ratings.values())

    @property
    def heads(self) -> list[dict[str, Any]]:
        """The aspects, each with the number of ratings that all its outputs have, if it is the same."""
        counts = {
            name: {row.ratings[name]["n"] for row in self.outputs if name in row.ratings} for name in self.aspects
        }
        return [{"name": name, "n": next(iter(found)) if len(found) == 1 else None} for name, found in counts.items()]

    @property
    def only_simulated_pairs(self) -> bool:
        return all(pair["simulated"] for pair in self.comparisons)


def get_item(project: Project, pk: int) -> Item:
    item = Item.objects.filter(project=project, pk=pk).first()
    if item is None:
        raise NotThere(_("There is no such item in this project."))
    return item


def get_item_view(item: Item) -> ItemView:
    """All data of an item, in a fixed number of queries."""
    sets: dict[str, list[Reference]] = defaultdict(list)
    for reference in Reference.objects.filter(item=item).select_related("set").order_by("position", "pk"):
        sets[reference.set.name].append(reference)
    outputs = Output.objects.filter(item=item).select_related("system")
    rows = list(outputs.order_by("system__order_key", F("step").asc(nulls_first=True))[: MAX_OUTPUTS + 1])
    more = outputs.count() - MAX_OUTPUTS if len(rows) > MAX_OUTPUTS else 0
    views = {output.pk: OutputView(output) for output in rows[:MAX_OUTPUTS]}
    aspects: dict[str, tuple[int, int]] = {}
    ratings = Rating.objects.filter(output__in=list(views)).order_by().values_list(
        "output_id", "aspect__name", "aspect__position", "aspect_id", "simulated"
    )  # fmt: skip
    for output, aspect, position, aspect_id, simulated, mean, count in ratings.annotate(m=Avg("value"), n=Count("pk")):
        aspects[aspect] = (position, aspect_id)
        old = views[output].ratings.get(aspect)
        if old is not None:
            total = old["n"] + count
            mean = (old["mean"] * old["n"] + mean * count) / total
            count, simulated = total, simulated or old["simulated"]
        views[output].ratings[aspect] = {"mean": mean, "n": count, "simulated": simulated}
    return ItemView(
        item,
        sorted(sets.items(), key=lambda pair: (pair[0] != ORIGINAL, natural_key(pair[0]))),
        list(views.values()),
        sorted(aspects, key=lambda name: aspects[name]),
        _verdicts(item),
        more,
    )


def _verdicts(item: Item) -> list[dict[str, Any]]:
    """Counts of verdicts by pair and aspect."""
    rows = (
        Comparison.objects.filter(output_a__item=item)
        .order_by()
        .values_list(
            "output_a__system__name", "output_a__step", "output_b__system__name", "output_b__step", "reference",
            "aspect__name", "simulated", "verdict",
        )
        .annotate(n=Count("pk"))
    )  # fmt: skip
    pairs: dict[tuple, dict[str, Any]] = {}
    for a, step_a, b, step_b, reference, aspect, simulated, verdict, count in rows:
        key = (aspect, a, step_a or -1, b or "", step_b or -1, -1 if reference is None else reference)
        pair = pairs.setdefault(
            key,
            {"aspect": aspect, "a": a, "step_a": step_a, "b": b, "step_b": step_b, "reference": reference,
             "simulated": False, "verdicts": dict.fromkeys(Comparison.Verdict.values, 0), "n": 0},
        )  # fmt: skip
        pair["verdicts"][verdict] += count
        pair["n"] += count
        pair["simulated"] = pair["simulated"] or simulated
    return [pairs[key] for key in sorted(pairs, key=_natural)]


def _natural(key: tuple[Any, ...]) -> tuple[Any, ...]:
    aspect, a, step_a, b, step_b, reference = key
    return aspect, natural_key(a), step_a, natural_key(b), step_b, reference


def find_neighbours(item: Item) -> tuple[int | None, int | None]:
    """The previous and the next item in the order of the list."""
    rows = Item.objects.filter(project_id=item.project_id)
    before = rows.filter(order_key__lt=item.order_key).order_by("-order_key").values_list("pk", flat=True).first()
    after = rows.filter(order_key__gt=item.order_key).order_by("order_key").values_list("pk", flat=True).first()
    return before, after
