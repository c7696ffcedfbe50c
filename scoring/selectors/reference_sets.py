"""Read reference sets: origin, use, items with traces, and comparisons of two sets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotation.models import Item, Reference, ReferenceSet
from annotation.models.data import ORIGINAL
from annotation.parsers import canonical
from evalapp.accounts.models import Project
from evalapp.common.pagination import Page, keyset
from evalapp.names import natural_key

from ..models import SELECTED, SELECTED_KINDS, Evaluator, ScoreSet, SelectionTrace
from .inputs import get_reference_set

ITEMS_A_PAGE = 20


@dataclass(frozen=True)
class SetRow:
    """A set with its counts and everything that depends on it."""

    set: ReferenceSet
    n_references: int
    n_items: int
    score_sets: tuple[ScoreSet, ...] = ()
    #: Slugs of evaluators trained with it.
    learned: tuple[str, ...] = ()
    #: Names of sets that were made from it.
    derived: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.set.name

    @property
    def is_original(self) -> bool:
        return self.set.name == ORIGINAL

    @property
    def origin(self) -> str:
        return describe_origin(self.set)

    @property
    def kind(self) -> str:
        return get_kind(self.set)

    @property
    def meta(self) -> dict[str, Any]:
        return dict(self.set.meta)

    @property
    def per_item(self) -> float | None:
        return self.n_references / self.n_items if self.n_items else None

    @property
    def n_scores(self) -> int:
        return sum(s.n_scores for s in self.score_sets)


def sets_chosen_by(project: Project, evaluator: str) -> list[ReferenceSet]:
    """Return the sets whose references this evaluator selected, alone or with another evaluator."""
    named = Q(meta__evaluator=evaluator) | Q(meta__mix=evaluator)
    rows = ReferenceSet.objects.filter(named, project=project, meta__kind__in=SELECTED_KINDS)
    return sorted(rows, key=lambda row: natural_key(row.name))


def get_kind(row: ReferenceSet) -> str:
    """Return original, selected, raw, random, merge, writing, or other for uploads and manual sets."""
    if row.name == ORIGINAL:
        return "original"
    # Sets of writing campaigns store the kind of campaign under the same key.
    if row.meta.get("origin") == "writing" or row.meta.get("campaign"):
        return "writing"
    kind = str(row.meta.get("kind") or "other")
    return SELECTED if kind in SELECTED_KINDS else kind


def describe_origin(row: ReferenceSet) -> str:
    """Describe where a set comes from."""
    meta = row.meta
    kind = get_kind(row)
    if kind == "original":
        return _("as uploaded")
    if kind == SELECTED:
        by = f"{meta['evaluator']} and {meta['mix']}" if meta.get("mix") else meta["evaluator"]
        metrics = ", ".join(name for name in meta.get("metrics", ()) if name)
        text = _("selected by %(by)s from %(source)s")
        if metrics:
            text = _("selected by %(by)s for %(metrics)s from %(source)s")
        return text % {"by": by, "metrics": metrics, "source": _source(str(meta.get("candidates", "")))}
    if kind == "raw":
        return _("initial references of %(name)s") % {"name": meta.get("of")}
    if kind == "random":
        return _("random control of %(name)s") % {"name": meta.get("of")}
    if kind == "merge":
        return _("merged from %(names)s") % {"names": ", ".join(meta.get("of", ()))}
    if kind == "writing":
        return _("written in the campaign %(name)s") % {"name": meta.get("campaign", row.name)}
    return _("uploaded") if row.upload_id else _("created here")


def _source(candidates: str) -> str:
    if candidates.startswith("corpus:"):
        return _("the corpus %(name)s") % {"name": candidates.removeprefix("corpus:")}
    sources = {"outputs": _("outputs of systems"), "withheld": _("further references of the items")}
    return sources.get(candidates, _("candidates"))


def list_sets(project: Project) -> list[SetRow]:
    """Return all sets, `original` first (also without a row), then newest first."""
    sets = list(ReferenceSet.objects.filter(project=project).order_by("-pk"))
    if not any(row.name == ORIGINAL for row in sets):
        sets.append(ReferenceSet(project=project, name=ORIGINAL))
    sets.sort(key=lambda row: row.name != ORIGINAL)
    return _rows(project, sets)


def get_set(project: Project, name: str) -> SetRow:
    """Return a set. Raises `NotThere` with the names of all sets."""
    (row,) = _rows(project, [get_reference_set(project, name)])
    return row


def _rows(project: Project, sets: list[ReferenceSet]) -> list[SetRow]:
    """Return the sets with counts and dependents, in a fixed number of queries."""
    known = [row.pk for row in sets if row.pk]
    counted = (
        Reference.objects.filter(set__in=known).order_by().values("set")
        .annotate(n=Count("pk"), items=Count("item", distinct=True)).values_list("set", "n", "items")
    )  # fmt: skip
    counts = {pk: (n, items) for pk, n, items in counted}
    scored: dict[str, list[ScoreSet]] = {}
    made = ScoreSet.objects.filter(project=project).select_related("evaluator").order_by("pk")
    for score_set in sorted(made, key=lambda row: natural_key(row.evaluator.slug)):
        scored.setdefault(score_set.references, []).append(score_set)
    learned: dict[str, list[str]] = {}
    trained = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.TRAINED).values_list("slug", "record")
    for slug, record in sorted(trained, key=lambda row: natural_key(row[0])):
        name = (record.get("choice") or {}).get("references")
        if name:
            learned.setdefault(name, []).append(slug)
    derived: dict[str, list[str]] = {}
    for row in ReferenceSet.objects.filter(project=project).exclude(meta={}).order_by("pk"):
        for name in _parents(row.meta):
            derived.setdefault(name, []).append(row.name)
    return [
        SetRow(
            row, *counts.get(row.pk, (0, 0)), score_sets=tuple(scored.get(row.name, ())),
            learned=tuple(learned.get(row.name, ())), derived=tuple(derived.get(row.name, ())),
        )
        for row in sets
    ]  # fmt: skip


def _parents(meta: Mapping[str, Any]) -> list[str]:
    of = meta.get("of") or []
    names = [of] if isinstance(of, str) else list(of)
    start = meta.get("references")
    return [*names, start] if isinstance(start, str) and start not in names else names


# ---- item by item -----------------------------------------------------------------------------------------


@dataclass
class ItemRow:
    """An item of a set with its references and the trace of their selection."""

    item: Item
    references: list[Reference] = field(default_factory=list)
    trace: SelectionTrace | None = None


def list_items(row: ReferenceSet) -> QuerySet[Item]:
    """The items that have a reference in this set."""
    present = Exists(Reference.objects.filter(item=OuterRef("pk"), set=row.pk))
    return Item.objects.filter(project=row.project_id).filter(present)


def item_page(row: ReferenceSet, *, cursor: str = "", key: str = "") -> tuple[Page, list[ItemRow]]:
    """Return a page of items with references and traces; `key` filters by part of the item key."""
    rows = list_items(row) if row.pk else Item.objects.none()
    if key:
        rows = rows.filter(key__icontains=key)
    result = keyset(rows, order=("order_key",), cursor=cursor, size=ITEMS_A_PAGE)
    by_item = {item.pk: ItemRow(item) for item in result.rows}
    for reference in Reference.objects.filter(set=row.pk, item__in=list(by_item)).order_by("item", "position"):
        by_item[reference.item_id].references.append(reference)
    for trace in SelectionTrace.objects.filter(set=row.pk, item__in=list(by_item)):
        by_item[trace.item_id].trace = trace
    return result, list(by_item.values())


def reference_rows(row: ReferenceSet) -> Iterator[dict[str, Any]]:
    """Yield the rows of `references.jsonl`, items in natural order, references by position."""
    rows = Reference.objects.filter(set=row.pk).order_by("item__order_key", "position")
    for key, position, text, meta in rows.values_list("item__key", "position", "text", "meta").iterator(2000):
        yield {"set": row.name, "item": key, "position": position, "text": text, "meta": canonical(meta)}


# ---- comparison -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Counts of items and references of two sets, separate and shared. A text counts once per item."""

    first: SetRow
    second: SetRow
    items_both: int
    only_first: int
    only_second: int
    shared: int

    @property
    def overlap(self) -> float | None:
        """Jaccard of the two sets of (item, text)."""
        union = self.shared + self.only_first + self.only_second
        return self.shared / union if union else None


def compare_sets(project: Project, first: str, second: str) -> Comparison:
    """Compare two sets in the database; texts must be identical."""
    one, two = get_set(project, first), get_set(project, second)
    a, b = one.set, two.set

    def texts(of: ReferenceSet) -> QuerySet[Any, Any]:
        return Reference.objects.filter(set=of.pk).order_by()

    def missing(of: ReferenceSet, other: ReferenceSet) -> int:
        same = Reference.objects.filter(set=other.pk, item=OuterRef("item"), text=OuterRef("text"))
        return texts(of).exclude(Exists(same)).values("item", "text").distinct().count()

    n_first = texts(a).values("item", "text").distinct().count()
    only_first = missing(a, b)
    both = list_items(a).filter(Exists(Reference.objects.filter(item=OuterRef("pk"), set=b.pk))).count()
    return Comparison(one, two, both, only_first, missing(b, a), n_first - only_first)


@dataclass(frozen=True)
class Difference:
    """One item of a comparison."""

    item: Item
    shared: list[str]
    only_first: list[str]
    only_second: list[str]


#: References of two sets whose items are compared to count the different ones.
MOST_COUNTED = 30_000
#: Parts of the differences: items in both sets, only in the second, only in the first.
BOTH, SECOND, FIRST = "both", "second", "first"


def list_different_items(comparison: Comparison, part: str = "") -> QuerySet[Item]:
    """Return the items on which two sets differ, or one part."""
    a, b = comparison.first.set.pk, comparison.second.set.pk

    def holds(of: int | None) -> Exists:
        return Exists(Reference.objects.filter(set=of, item=OuterRef("pk")))

    def lacks(of: int | None, other: int | None) -> Exists:
        same = Reference.objects.filter(set=other, item=OuterRef("item"), text=OuterRef("text"))
        return Exists(Reference.objects.filter(set=of, item=OuterRef("pk")).exclude(Exists(same)).annotate(x=F("pk")))

    items = Item.objects.filter(project=comparison.first.set.project_id)
    if part in (FIRST, SECOND):
        return items.filter(holds(a if part == FIRST else b), ~holds(b if part == FIRST else a))
    items = items.filter(holds(a), holds(b)) if part == BOTH else items
    return items.filter(lacks(a, b) | lacks(b, a))


def count_differences(comparison: Comparison) -> dict[str, int | None]:
    """Return the number of items in each part of the differences. In both sets they are only counted up to a number of
    references, because that reads all of them; else it is None."""
    is_small = comparison.first.n_references + comparison.second.n_references <= MOST_COUNTED
    return {
        BOTH: list_different_items(comparison, BOTH).count() if is_small else None,
        SECOND: comparison.second.n_items - comparison.items_both,
        FIRST: comparison.first.n_items - comparison.items_both,
    }


def difference_page(comparison: Comparison, cursor: str = "", part: str = "") -> tuple[Page, list[Difference]]:
    """Return a page of the items on which two sets differ, or of one part."""
    a, b = comparison.first.set.pk, comparison.second.set.pk
    result = keyset(list_different_items(comparison, part), order=("order_key",), cursor=cursor, size=ITEMS_A_PAGE)
    texts: dict[tuple[int, int], list[str]] = {}
    wanted = Reference.objects.filter(set__in=[a, b], item__in=[item.pk for item in result.rows])
    for item, of, text in wanted.order_by("item", "position").values_list("item", "set", "text"):
        texts.setdefault((item, of), []).append(text)
    differences = []
    for item in result.rows:
        one = list(dict.fromkeys(texts.get((item.pk, a or 0), ())))
        two = list(dict.fromkeys(texts.get((item.pk, b or 0), ())))
        differences.append(
            Difference(
                item, [t for t in one if t in two], [t for t in one if t not in two], [t for t in two if t not in one]
            )
        )
    return result, differences
