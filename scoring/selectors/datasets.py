"""A project as training data (`scoring.ml.types.Dataset`): rows in the order of a dump, restricted to campaigns, raters
and systems."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotation.exporters.canonical import BATCH, name_systems, one_moment, sort_outputs
from annotation.models import Aspect, Campaign, Comparison, Dialogue, Item, Output, Rating, System
from annotation.models.campaigns import Judgement
from annotation.models.data import ORIGINAL
from annotation.parsers import canonical
from annotation.selectors.stored import as_text, decode
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault

from .inputs import get_reference_set, read_references

if TYPE_CHECKING:
    from scoring.ml import types

#: Stands for uploaded judgements in lists of campaigns.
UPLOADED = "uploads"


@dataclass(frozen=True)
class DataChoice:
    """The part of a project used for training; an empty tuple means all. Items keep all their references."""

    references: str = ORIGINAL
    campaigns: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> DataChoice:
        lists = {name: tuple(given.get(name) or ()) for name in ("campaigns", "raters", "systems")}
        return cls(references=given.get("references") or ORIGINAL, **lists)

    def as_dict(self) -> dict[str, Any]:
        """Return the choice as parameters of a run, sorted."""
        return {key: sorted(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def check_choice(project: Project, choice: DataChoice) -> None:
    """Raise `BadInput` with a fault for each unknown name."""
    faults = []
    get_reference_set(project, choice.references)
    known = {
        "campaigns": {*Campaign.objects.filter(project=project).values_list("slug", flat=True), UPLOADED},
        "systems": set(System.objects.filter(project=project).values_list("name", flat=True)),
        "raters": set(rater_names(project)) if choice.raters else set(),
    }
    for name, there in known.items():
        missing = [value for value in getattr(choice, name) if value not in there]
        if missing:
            listed = ", ".join(sorted(there)[:20]) or _("none")
            text = _("%(project)s has no %(kind)s “%(name)s”. There are: %(known)s.")
            text %= {"project": project.slug, "kind": name[:-1], "name": missing[0], "known": listed}
            faults.append(Fault(text, field=name))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)


def judged_aspects(project: Project, kinds: Collection[str], choice: DataChoice | None = None) -> list[str]:
    """Return the aspects with judgements of the given kinds (`ratings`, `comparisons`) within a choice, in order."""
    choice = choice or DataChoice()
    ratings = Rating.objects.filter(project=project, aspect=OuterRef("pk"), output__isnull=False)
    compared = Comparison.objects.filter(project=project, aspect=OuterRef("pk"))
    if choice.systems:
        ratings = ratings.filter(output__system__name__in=choice.systems)
        compared = compared.filter(output_a__system__name__in=choice.systems)
    q = Q()
    if "ratings" in kinds:
        q |= Q(Exists(_narrowed(ratings, project, choice)))
    if "comparisons" in kinds:
        q |= Q(Exists(_narrowed(compared, project, choice)))
    rows = Aspect.objects.filter(q, project=project) if q else Aspect.objects.none()
    return list(rows.order_by("position", "id").values_list("name", flat=True))


def _narrowed(rows: QuerySet, project: Project, choice: DataChoice) -> QuerySet:
    """Restrict judgements to the raters and campaigns of a choice."""
    if choice.raters:
        rows = rows.filter(rater__in=choice.raters)
    if choice.campaigns:
        named = [slug for slug in choice.campaigns if slug != UPLOADED]
        made = Judgement.objects.filter(campaign__project=project, campaign__slug__in=named)
        wanted = Q(judgement__in=made.values("pk"))
        if UPLOADED in choice.campaigns:
            wanted |= Q(judgement=None)
        rows = rows.filter(wanted)
    return rows


def rater_names(project: Project) -> list[str]:
    """Return the names of all raters, sorted."""
    result: set[str] = set()
    for rows in (Rating.objects, Comparison.objects):
        result.update(rows.filter(project=project).order_by().values_list("rater", flat=True).distinct())
    return sorted(result)


def build_dataset(project: Project, choice: DataChoice | None = None, *, dialogues: bool = True) -> types.Dataset:
    """Return the rows of the project in canonical order; without restrictions equal to `read_dataset` of a dump.

    Campaigns and raters restrict judgements; systems restrict outputs and their judgements.
    """
    from scoring.ml import types

    reader = _Reader(project, choice or DataChoice())
    with one_moment():
        reader.read_items()
        if dialogues:
            reader.read_dialogues()
        aspects = tuple(
            types.Aspect(row.name, row.low, row.high)
            for row in Aspect.objects.filter(project=project).order_by("position", "id")
        )
        systems = tuple(
            types.System(name, kind, canonical(meta))
            for name, kind, meta in System.objects.filter(project=project, declared=True)
            .order_by("order_key")
            .values_list("name", "kind", "meta")
            if reader.wants_system(name)
        )
    return types.Dataset(
        name=project.name or project.slug,
        task=project.task,
        lang=project.lang,
        aspects=aspects,
        systems=systems,
        items=tuple(reader.items),
        outputs=tuple(reader.outputs),
        ratings=tuple(reader.ratings),
        comparisons=tuple(reader.comparisons),
        dialogues=tuple(reader.dialogues),
        meta={"licence": project.licence, "source": project.source, "notes": project.notes},
    )


@dataclass
class _Reader:
    """Reads a project in batches to limit memory."""

    project: Project
    choice: DataChoice
    items: list[types.Item] = field(default_factory=list)
    outputs: list[types.Output] = field(default_factory=list)
    ratings: list[types.Rating] = field(default_factory=list)
    comparisons: list[types.Comparison] = field(default_factory=list)
    dialogues: list[types.Dialogue] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.systems = name_systems(self.project)
        self.aspects = dict(Aspect.objects.filter(project=self.project).values_list("id", "name"))
        self.references = get_reference_set(self.project, self.choice.references)

    def wants_system(self, name: str) -> bool:
        return not self.choice.systems or name in self.choice.systems

    def read_items(self) -> None:
        rows = Item.objects.filter(project=self.project).order_by("order_key")
        columns = rows.values_list("id", "key", "context", "source", "group", as_text("meta")).iterator(BATCH)
        while batch := list(islice(columns, BATCH)):
            self._items(batch)
            places = self._outputs({row[0]: row[1] for row in batch})
            self._ratings(places)
            self._comparisons(places)

    def _items(self, batch: Sequence[tuple[Any, ...]]) -> None:
        from scoring.ml import types

        texts = read_references(self.references, item__in=[row[0] for row in batch])
        for number, key, context, source, group, meta in batch:
            references = tuple(texts[number])
            self.items.append(types.Item(key, tuple(context), source, references, group, canonical(decode(meta))))

    def _outputs(self, keys: dict[int, str]) -> dict[int, int]:
        """Add the outputs of the items; return the position of each in `outputs` by primary key."""
        from scoring.ml import types

        rows = Output.objects.filter(item_id__in=keys)
        wanted = {system for system, name in self.systems.items() if self.wants_system(name)}
        columns = rows.values_list("item_id", "system_id", "step", "id", "text", as_text("meta"))
        result = [row for row in columns if row[1] in wanted]
        sort_outputs(result, keys, self.systems)
        first = len(self.outputs)
        for item, system, step, _pk, text, meta in result:
            self.outputs.append(types.Output(keys[item], self.systems[system], text, step, canonical(decode(meta))))
        return {row[3]: first + place for place, row in enumerate(result)}

    def _wanted(self, rows: QuerySet) -> QuerySet:
        return _narrowed(rows, self.project, self.choice)

    def _ratings(self, places: dict[int, int]) -> None:
        from scoring.ml import types

        for place, rater, aspect, value, simulated in self._list_ratings("output_id", places):
            of = self.outputs[place]
            self.ratings.append(types.Rating(rater, aspect, value, of.item, of.system, of.step, None, simulated))

    def _list_ratings(self, column: str, places: dict[int, int]) -> list[tuple[int, str, str, float, bool]]:
        """Return (place, rater, aspect, value, simulated) of ratings, rows by `column`, in canonical order."""
        rows = self._wanted(Rating.objects.filter(**{f"{column}__in": places}))
        ratings = [
            (places[of], rater, self.aspects[aspect], value, simulated)
            for of, rater, aspect, value, simulated in rows.values_list(
                column, "rater", "aspect_id", "value", "simulated"
            )
        ]
        return sorted(ratings, key=lambda row: row[:3])

    def _comparisons(self, places: dict[int, int]) -> None:
        from scoring.ml import types

        rows = self._wanted(Comparison.objects.filter(output_a_id__in=places))
        if self.choice.references != ORIGINAL:
            rows = rows.filter(reference=None)  # they name a place in the original references
        result = []
        for a, b, reference, aspect, rater, verdict, simulated in rows.values_list(
            "output_a_id", "output_b_id", "reference", "aspect_id", "rater", "verdict", "simulated"
        ):
            if b is not None and b not in places:
                continue  # of a system that was not chosen
            place_b = -1 if b is None else places[b]
            against = -1 if reference is None else reference
            result.append((places[a], place_b, against, rater, self.aspects[aspect], verdict, simulated))
        result.sort(key=lambda row: row[:5])
        for a, b, reference, rater, aspect, verdict, simulated in result:
            first = self.outputs[a]
            second = self.outputs[b] if b >= 0 else None
            self.comparisons.append(
                types.Comparison(
                    item=first.item,
                    system_a=first.system,
                    system_b=second.system if second else None,
                    rater=rater,
                    aspect=aspect,
                    verdict=verdict,
                    reference_b=None if reference < 0 else reference,
                    step_a=first.step,
                    step_b=second.step if second else None,
                    simulated=simulated,
                )
            )

    def read_dialogues(self) -> None:
        from scoring.ml import types

        rows = Dialogue.objects.filter(project=self.project).order_by("order_key")
        columns = rows.values_list("id", "key", "turns", "system_id", "speakers").iterator(BATCH)
        while batch := list(islice(columns, BATCH)):
            places: dict[int, int] = {}
            for number, key, turns, system_pk, speakers in batch:
                system = None if system_pk is None else self.systems[system_pk]
                if system is not None and not self.wants_system(system):
                    continue
                places[number] = len(self.dialogues)
                self.dialogues.append(types.Dialogue(key, tuple(turns), system, tuple(speakers or ())))
            self.ratings.extend(self._of_dialogues(places))

    def _of_dialogues(self, places: dict[int, int]) -> Iterator[types.Rating]:
        from scoring.ml import types

        for place, rater, aspect, value, simulated in self._list_ratings("dialogue_id", places):
            yield types.Rating(rater, aspect, value, dialogue=self.dialogues[place].id, simulated=simulated)
