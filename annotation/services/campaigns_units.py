"""Creates the units of a campaign from its plan, and their slots with random ranks and sides. In bulk: 100,000 units
with three slots each take seconds."""

import io
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import NamedTuple

from django.db import connection
from django.db.models import Count, F, Q, QuerySet
from django.db.models.fields.json import KeyTransform
from django.utils.translation import gettext as _

from annotation.allocation.pairs import choose_pairs, draw_sides
from annotation.allocation.plan_reading import ITEM_CHOICES
from annotation.allocation.streams import SPAN, draw
from annotation.models import Campaign, Item, Output, Reference, Slot, Unit
from annotation.models.data import ORIGINAL
from evalapp.common.errors import BadInput

BATCH = 20_000
#: Campaigns up to this number of units are opened at once, not by a worker.
HERE_AT_MOST = 20_000
#: Adaptive pair selection: units in the pool for each judged unit, the minimum per pair of systems, and the maximum.
POOL, POOL_A_PAIR, POOL_AT_MOST = 10, 20, 100_000


class UnitRow(NamedTuple):
    item: int
    output_a: int
    output_b: int | None
    reference: int | None
    group: object  # the pair of systems, or the system; sides are balanced within it
    chance: float | None = None  # the probability with which the output was drawn, if its plan says so


class _Text(NamedTuple):
    item: int
    system: int
    step: int | None
    output: int


def select_items(campaign: Campaign) -> QuerySet[Item]:
    """Items of the plan, before sampling."""
    choice = campaign.plan.get("items") or {}
    rows = Item.objects.filter(project_id=campaign.project_id)
    if choice.get("keys") is not None:
        rows = rows.filter(key__in=choice["keys"])
    if choice.get("groups") is not None:
        rows = rows.filter(group__in=choice["groups"])
    if choice.get("search"):
        words = choice["search"]
        # Turns are stored as JSON, in which quotes and line breaks are escaped.
        inside = json.dumps(words, ensure_ascii=False)[1:-1]
        rows = rows.filter(Q(key__icontains=words) | Q(source__icontains=words) | Q(context__icontains=inside))
    for place, (name, value) in enumerate((name, value) for name, value in choice.items() if name not in ITEM_CHOICES):
        # An explicit transform, because a key may have the name of a lookup.
        rows = rows.alias(**{f"choice_{place}": KeyTransform(name, "meta")}).filter(**{f"choice_{place}": value})
    return rows


def select_outputs(campaign: Campaign) -> QuerySet[Output]:
    """Outputs of the plan's items and systems."""
    rows = Output.objects.filter(project_id=campaign.project_id)
    if campaign.plan.get("outputs"):
        return rows.filter(pk__in=find_listed(campaign))
    systems = Q()
    for row in campaign.plan.get("systems", []):
        if isinstance(row, str):
            systems |= Q(system__name=row)
        elif row.get("step") is None:
            systems |= Q(system__name=row["system"])
        else:
            systems |= Q(system__name=row["system"], step=row["step"])
    rows = rows.filter(systems)
    if campaign.plan.get("items"):
        items = select_items(campaign)
        sample = campaign.plan["items"].get("sample")
        if sample is not None:
            # Sample among items with outputs; otherwise a sample could be empty.
            ids = sorted(items.filter(pk__in=rows.values("item")).values_list("pk", flat=True))
            rng = random.Random(draw(campaign.plan["items"].get("seed", campaign.seed), "items"))
            return rows.filter(item__in=rng.sample(ids, min(sample, len(ids))))
        rows = rows.filter(item__in=items.values("pk"))
    return rows


def find_listed(campaign: Campaign) -> dict[int, float | None]:
    """The chance of each output that the plan lists, by primary key. Raises `BadInput` for one that is missing."""
    listed = {(row["item"], row["system"], row["step"]): row["chance"] for row in campaign.plan["outputs"]}
    rows = Output.objects.filter(
        project_id=campaign.project_id, item__key__in={key[0] for key in listed},
        system__name__in={key[1] for key in listed},
    )  # fmt: skip
    found = {tuple(key): pk for pk, *key in rows.values_list("pk", "item__key", "system__name", "step")}
    missing = [key for key in listed if key not in found]
    if missing:
        text = _("The project has no output of %(system)s for the item %(item)s.")
        raise BadInput.for_field("outputs", text % {"item": missing[0][0], "system": missing[0][1]})
    return {found[key]: chance for key, chance in listed.items()}


class Estimate(NamedTuple):
    """`units` are judged; `rows` are created when the campaign is opened. With adaptive pair selection, a pool of pairs
    is created and as many as planned are judged."""

    units: int
    rows: int


def estimate_units(campaign: Campaign) -> Estimate:
    """The counts after opening a draft. Exact if it is opened at once. A larger campaign is counted without creating
    its units, so texts that are also practice or control units count twice."""
    rows = _count_rows(campaign)
    if rows <= HERE_AT_MOST:
        draft = copy(campaign)  # choose_units stores the compared systems in the plan
        draft.plan = dict(campaign.plan)
        rows = len(choose_units(draft))
    wanted = campaign.plan.get("pairs")
    return Estimate(min(rows, wanted) if wanted and campaign.options.get("adaptive") else rows, rows)


def count_planned(campaign: Campaign) -> int:
    """The number of units that a plan would judge, also of a campaign that is not stored: the estimate of a large
    campaign."""
    rows, wanted = _count_rows(campaign), campaign.plan.get("pairs")
    return min(rows, wanted) if wanted and campaign.options.get("adaptive") else rows


def _count_rows(campaign: Campaign) -> int:
    outputs = select_outputs(campaign)
    if campaign.kind == Campaign.Kind.TURING:
        references = Reference.objects.filter(set__project_id=campaign.project_id, set__name=ORIGINAL)
        outputs = outputs.filter(item__in=references.values("item"))
    if campaign.kind != Campaign.Kind.PAIRWISE:
        # The plan may select only the last step of a system.
        is_last = campaign.plan.get("steps") == "last"
        return outputs.order_by().values("item", "system").distinct().count() if is_last else outputs.count()
    count = Count("system", distinct=True) if campaign.plan.get("steps") == "last" else Count("pk")
    sizes = [n for _, n in outputs.order_by().values_list("item").annotate(n=count)]
    players = ("system",) if campaign.plan.get("steps") == "last" else ("system", "step")
    every = sum(n * (n - 1) // 2 for n in sizes)
    wanted = _wanted(campaign, outputs.order_by().values(*players).distinct().count())
    return min(every, wanted) if wanted else every


def _wanted(campaign: Campaign, players: int) -> int | None:
    """The number of pairs of texts to create; None for all."""
    wanted = campaign.plan.get("pairs")
    if not campaign.options.get("adaptive"):
        return wanted
    pairs = players * (players - 1) // 2
    most = POOL_AT_MOST if wanted is None else min(max(POOL * wanted, POOL_A_PAIR * pairs), POOL_AT_MOST)
    return max(most, wanted or 0)


def list_players(texts: Iterable[_Text]) -> list[tuple[int, int]]:
    """The compared systems as (system, step), with step 0 for none, in the order in which pairs number them."""
    return sorted({(text.system, text.step or 0) for text in texts})


def _texts(campaign: Campaign) -> list[_Text]:
    rows = select_outputs(campaign).order_by("item_id", "system_id", F("step").asc(nulls_first=True), "pk")
    texts = [_Text(*row) for row in rows.values_list("item_id", "system_id", "step", "pk").iterator(BATCH)]
    if campaign.plan.get("steps") != "last":
        return texts
    last: dict[tuple[int, int], _Text] = {}
    for text in texts:
        known = last.get((text.item, text.system))
        if known is None or (text.step or 0) >= (known.step or 0):
            last[text.item, text.system] = text
    return list(last.values())


def choose_units(campaign: Campaign) -> list[UnitRow]:
    """The units of the plan, determined by the data and the campaign's seed, without those of practice and control
    units. With adaptive pair selection, stores the compared systems in the plan."""
    texts = _texts(campaign)
    if campaign.options.get("adaptive"):
        campaign.plan["players"] = [list(player) for player in list_players(texts)]
    if campaign.kind == Campaign.Kind.LIKERT:
        chances = find_listed(campaign) if campaign.plan.get("outputs") else {}
        rows = [UnitRow(text.item, text.output, None, None, text.system, chances.get(text.output)) for text in texts]
    elif campaign.kind == Campaign.Kind.PAIRWISE:
        rows = _pairs(campaign, texts)
    else:
        rows = _against_references(campaign, texts)
    checks = set(
        campaign.units.exclude(kind=Unit.Kind.NORMAL).values_list("output_a_id", "output_b_id", "reference_id")
    )
    taken = {frozenset(row[:2]) if row[1] else row for row in checks}
    return [
        row
        for row in rows
        if (frozenset((row.output_a, row.output_b)) if row.output_b else (row.output_a, None, row.reference))
        not in taken
    ]


def _pairs(campaign: Campaign, texts: Sequence[_Text]) -> list[UnitRow]:
    players = list_players(texts)
    number = {player: index for index, player in enumerate(players)}
    items = sorted({text.item for text in texts})
    place = {item: index for index, item in enumerate(items)}
    outputs: dict[tuple[int, int], int] = {}
    rows: list[list[int]] = [[] for _ in items]
    for text in texts:
        player = number[text.system, text.step or 0]
        outputs[place[text.item], player] = text.output
        rows[place[text.item]].append(player)
    chosen = choose_pairs(rows, _wanted(campaign, len(players)), seed=draw(campaign.seed, "pairs"))
    return [UnitRow(items[index], outputs[index, a], outputs[index, b], None, (a, b)) for index, a, b in chosen]


def _against_references(campaign: Campaign, texts: Sequence[_Text]) -> list[UnitRow]:
    """Each output with a randomly drawn original reference of its item."""
    rows = Reference.objects.filter(set__project_id=campaign.project_id, set__name=ORIGINAL)
    references: dict[int, list[int]] = {}
    for item, pk in rows.order_by("item_id", "position").values_list("item_id", "pk").iterator(BATCH):
        references.setdefault(item, []).append(pk)
    pairs = []
    for text in texts:
        choice = references.get(text.item)
        if choice:
            picked = choice[draw(campaign.seed, "reference", text.output) % len(choice)]
            pairs.append(UnitRow(text.item, text.output, None, picked, text.system))
    return pairs


# ---- writing ----------------------------------------------------------------------------------------------


def write_units(campaign: Campaign, rows: Sequence[UnitRow], progress: Callable[[int, int], None]) -> None:
    """Create units and slots of a campaign, in the caller's transaction."""
    campaign.units.filter(kind=Unit.Kind.NORMAL).delete()
    total = len(rows) * (1 + campaign.overlap)
    done = 0
    values: Iterator[tuple] = (
        (campaign.pk, "normal", row.item, row.output_a, row.output_b, row.reference, None, "", row.chance)
        for row in rows
    )
    columns = [
        "campaign_id", "kind", "item_id", "output_a_id", "output_b_id", "reference_id", "expected", "why",
        "propensity",
    ]  # fmt: skip
    for batch in _batches(values):
        copy_rows(Unit._meta.db_table, columns, batch)
        done += len(batch)
        progress(done, total)
    ids = list(campaign.units.filter(kind=Unit.Kind.NORMAL).order_by("pk").values_list("pk", flat=True))
    flips = draw_sides([row.group for row in rows], seed=draw(campaign.seed, "sides"))
    rng = random.Random(draw(campaign.seed, "ranks"))
    swaps = campaign.kind != Campaign.Kind.LIKERT
    n_players = len(campaign.plan.get("players") or ())
    codes = [row.group[0] * n_players + row.group[1] for row in rows] if n_players else [None] * len(rows)  # type: ignore[index]
    state = "pool" if n_players else "free"
    slots = (
        (campaign.pk, unit, number, state, rng.randrange(SPAN), swaps and flip ^ (number % 2 == 1), code)
        for unit, flip, code in zip(ids, flips, codes, strict=True)
        for number in range(campaign.overlap)
    )
    for batch in _batches(slots):
        copy_rows(Slot._meta.db_table, ["campaign_id", "unit_id", "number", "state", "rank", "swapped", "pair"], batch)
        done += len(batch)
        progress(done, total)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # The planner needs statistics on the new rows before annotators arrive.
            cursor.execute(f"ANALYZE {Unit._meta.db_table}, {Slot._meta.db_table}")


def _batches(rows: Iterable[tuple]) -> Iterator[list[tuple]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def copy_rows(table: str, columns: Sequence[str], rows: Sequence[tuple]) -> None:
    """Insert rows with COPY on PostgreSQL, with a prepared statement elsewhere. For numbers, booleans and short plain
    words."""
    names = ", ".join(columns)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # An empty field is NULL; a quoted one is an empty text.
            lines = (",".join("" if v is None else '""' if v == "" else str(v) for v in row) for row in rows)
            buffer = io.StringIO("\n".join(lines))
            cursor.copy_expert(f"COPY {table} ({names}) FROM STDIN WITH (FORMAT csv)", buffer)
            return
        marks = ", ".join(["%s"] * len(columns))
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)


def explain_no_units() -> BadInput:
    return BadInput(
        _("There is nothing to judge: the plan matches no outputs. Upload outputs, or select other items and systems.")
    )
