"""The plain records of the library: the rows of an interchange folder, and the input of evaluators.

Nothing here reads files (see `dataset.py`), computes, or knows a database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from scoring.ml.errors import InvalidRecords

Verdict: TypeAlias = Literal["a", "b", "tie", "both_bad", "cannot_decide"]
SystemKind: TypeAlias = Literal["machine", "human", "reference", "control"]
Meta: TypeAlias = Mapping[str, Any]
#: The tables of a dataset whose rows belong to an item or a dialogue.
ROWS = ("items", "outputs", "ratings", "comparisons", "dialogues")


@dataclass(frozen=True, slots=True)
class Aspect:
    """A quality that people rate; `minimum` and `maximum` are None if it occurs only in comparisons."""

    name: str
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class System:
    """A producer of outputs; an undeclared system is a machine."""

    id: str
    kind: SystemKind = "machine"
    meta: Meta = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One input: dialogue turns (oldest first) or a source, its references, and its split group."""

    id: str
    context: tuple[str, ...] = ()
    source: str | None = None
    references: tuple[str, ...] = ()
    group: str = ""
    meta: Meta = field(default_factory=dict)

    def make_record(self, text: str = "", system: str = "") -> Record:
        """A text that answers this item, by a `system`, without references."""
        return Record(text, (), self.context, self.source, self.id, system, None, self.group)


@dataclass(frozen=True, slots=True)
class Output:
    """A system's text for an item; `step` is the training step of a checkpoint."""

    item: str
    system: str
    text: str
    step: int | None = None
    meta: Meta = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rating:
    """A rater's value of an aspect for an output, or for a whole dialogue if `dialogue` is set."""

    rater: str
    aspect: str
    value: float
    item: str | None = None
    system: str | None = None
    step: int | None = None
    dialogue: str | None = None
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A rater's verdict on two outputs; `reference_b` is set if side b is that reference."""

    item: str
    system_a: str
    system_b: str | None
    rater: str
    aspect: str
    verdict: Verdict
    reference_b: int | None = None
    step_a: int | None = None
    step_b: int | None = None
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A whole conversation, used to train unreferenced metrics or rated as one unit."""

    id: str
    turns: tuple[str, ...]
    system: str | None = None
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """The input of an evaluator: a text with everything that it may be measured against. References and context are
    lists or tuples of texts. Raises `InvalidRecords` for a single text, which would be read as characters."""

    text: str
    references: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    source: str | None = None
    item: str = ""
    system: str = ""
    step: int | None = None
    group: str = ""

    def __post_init__(self) -> None:
        for name in ("references", "context"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise InvalidRecords(f"{name} of a record is a list of texts, not one text: {name}=[{given!r:.40}]")
            if not isinstance(given, tuple):
                object.__setattr__(self, name, tuple(given))


def check_records(records: object, call: str) -> None:
    """Raise `InvalidRecords`, which says how to make records, unless `records` is a list of records or of objects with
    their attributes; `call` names the function in the message."""
    if isinstance(records, str | bytes | Mapping) or not (hasattr(records, "__len__") and hasattr(records, "__iter__")):
        wrong = f"found {type(records).__name__}"
    else:
        place, odd = next(((k, row) for k, row in enumerate(records) if not hasattr(row, "text")), (-1, None))
        if place < 0:
            return
        wrong = f"found {type(odd).__name__} at place {place}"
    raise InvalidRecords(
        f"{call} takes a list of records, {wrong}. scoring.ml.Record(text=..., context=[...], references=[...]) makes "
        "one, read_dataset(folder).outputs_with_context() those of a folder; score(hypotheses, references) also takes "
        "lists of texts."
    )


def check_dataset(data: object, call: str) -> None:
    """Raise `InvalidRecords` for the function `call` unless `data` is a dataset."""
    if not isinstance(data, Dataset):
        text = f"{call} takes a dataset, found {type(data).__name__}: read_dataset(folder) gives that of a folder."
        raise InvalidRecords(text)


@dataclass(frozen=True, repr=False)
class Dataset:
    """A whole interchange folder. Rows keep the order of their files."""

    name: str
    task: str = ""
    lang: str = ""
    aspects: tuple[Aspect, ...] = ()
    systems: tuple[System, ...] = ()
    items: tuple[Item, ...] = ()
    outputs: tuple[Output, ...] = ()
    ratings: tuple[Rating, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    dialogues: tuple[Dialogue, ...] = ()
    meta: Meta = field(default_factory=dict)

    def __repr__(self) -> str:
        """The row counts in one line; all rows would be megabytes."""
        tables = ("items", "systems", "outputs", "ratings", "comparisons", "dialogues")
        counts = ", ".join(f"{len(getattr(self, name)):,} {name}" for name in tables if getattr(self, name))
        return f"<Dataset {self.name!r}: {counts or 'no rows'}>"

    def outputs_with_context(self) -> list[Record]:
        """Every output with context, source and references of its item, in the order of `outputs`."""
        items = {item.id: item for item in self.items}
        return [
            Record(o.text, item.references, item.context, item.source, item.id, o.system, o.step, item.group)
            for o in self.outputs
            for item in (items[o.item],)
        ]

    def split(
        self, seed: int = 13, by: Literal["group"] = "group", shares: Sequence[float] = (0.8, 0.1, 0.1)
    ) -> tuple[Dataset, ...]:
        """Split the data by whole groups, by default 80 % train, 10 % dev and 10 % test.

        Groups (an item without a group is its own; so is a dialogue, unless items name it as their group) are sorted by
        sha256 of seed and name and cut at the cumulative shares of their number, so the result depends only on the seed
        and the set of groups, never on the order of rows. Rows of a group stay together. Raises ValueError if `by` is
        not "group" or there are fewer groups than parts.
        """
        if by != "group":
            raise ValueError(f"split(by={by!r}): only whole groups may be parted; use by='group'")
        groups = set(self.name_groups().values())
        return self.divide(assign_groups(groups, seed, shares), len(shares))

    def name_groups(self) -> dict[tuple[str, str], str]:
        """Return the split group of each item and dialogue, by ("item" or "dialogue", id)."""
        named = {item.group for item in self.items}
        return {
            **{("item", item.id): item.group or f"item:{item.id}" for item in self.items},
            **{("dialogue", d.id): d.id if d.id in named else f"dialogue:{d.id}" for d in self.dialogues},
        }

    def divide(self, part_of_group: Mapping[str, int], n: int) -> tuple[Dataset, ...]:
        """Return `n` parts of whole groups; `part_of_group` has the number of each group of `name_groups`."""
        part_of_row = {row: part_of_group[group] for row, group in self.name_groups().items()}

        def part_of_rating(rating: Rating) -> int:
            if rating.dialogue is not None:
                return part_of_row["dialogue", rating.dialogue]
            return part_of_row["item", rating.item or ""]

        part_of: dict[str, Callable[[Any], int]] = {
            "items": lambda row: part_of_row["item", row.id],
            "outputs": lambda row: part_of_row["item", row.item],
            "ratings": part_of_rating,
            "comparisons": lambda row: part_of_row["item", row.item],
            "dialogues": lambda row: part_of_row["dialogue", row.id],
        }

        def choose(part: int) -> Dataset:
            return self._with_rows(lambda name: (row for row in getattr(self, name) if part_of[name](row) == part))

        return tuple(map(choose, range(n)))

    def merge(self, others: Iterable[Dataset]) -> Dataset:
        """These rows and those of the `others`, which are parts of the same dataset."""
        parts = (self, *others)
        return self._with_rows(lambda name: (row for part in parts for row in getattr(part, name)))

    def without_rows(self) -> Dataset:
        """The same dataset without items and everything that belongs to them."""
        return self._with_rows(lambda name: ())

    def _with_rows(self, choose: Callable[[str], Iterable[Any]]) -> Dataset:
        """The dataset with other rows in each of its `ROWS`."""
        rows: dict[str, Any] = {name: tuple(choose(name)) for name in ROWS}
        return replace(self, **rows)


def training_names(group: str, item: str) -> tuple[str, ...]:
    """The names under which a training may have noted an item, its group first: the group, the dialogue that the group
    is named after, or the item alone, which may have joined the group since."""
    return (group, f"dialogue:{group}", f"item:{item}") if group else (f"item:{item}",)


def assign_groups(groups: set[str], seed: int, shares: Sequence[float]) -> dict[str, int]:
    """Return the part number of each of the `groups`, sorted by a hash with `seed` and divided in the proportions of
    `shares`; every part gets at least one group."""
    if len(groups) < len(shares):
        raise ValueError(f"{len(groups)} groups cannot be parted into {len(shares)}: collect more groups")
    ordered = sorted(groups, key=lambda group: hashlib.sha256(f"{seed}:{group}".encode()).digest())
    total, n = float(sum(shares)), len(ordered)
    ends: list[int] = []
    cumulative = 0.0
    for index, share in enumerate(shares):
        cumulative += share
        low = (ends[-1] if ends else 0) + 1
        high = n - (len(shares) - 1 - index)
        ends.append(min(max(round(n * cumulative / total), low), high))
    ends[-1] = n
    starts = [0, *ends[:-1]]
    return {
        group: part for part, (start, end) in enumerate(zip(starts, ends, strict=True)) for group in ordered[start:end]
    }
