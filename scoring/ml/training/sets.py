"""Training on several data sets or projects at once: each has its own scales, hence heads of its own. `join_sets` makes
one dataset of equals; `add_sets` adds others to the parts of a main set, whose names and split stay as they are.

Explained in docs/explanation/evaluators/README.md#several-data-sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scoring.ml.errors import InvalidRecords
from scoring.ml.training.record import (
    OWN,
    TrainingRecord,
    hash_beginnings,
    hash_content,
    hash_contents,
    name_group,
)
from scoring.ml.types import Dataset, assign_groups

SETS = "sets"
#: The counts of the sets that `add_sets` added.
ADDED = "added"
#: The shares of the groups of an added set that are learned from and that choose the weights.
ADDED_SHARES = (0.9, 0.1)
TRAIN, DEV, HELD_OUT = range(3)
DIALOGUE = "dialogue:"


def join_sets(sets: Sequence[Dataset]) -> Dataset:
    """Return one dataset with the rows of all `sets`, whose names must differ.

    Items, groups, systems, raters and dialogues get the name of their set as prefix ("set/item"), aspects as suffix
    ("aspect (set)"), because equal names mean nothing across sets. Raises `InvalidRecords` for equal names of sets.

        both = join_sets([read_dataset("one"), read_dataset("two")])
        evaluator = fit("shared-bert", both)
    """
    names = [one.name for one in sets]
    if not names or len(set(names)) < len(names):
        raise InvalidRecords(f"join_sets() takes datasets of different names, found {', '.join(names) or 'none'}")
    first, *others = (_rename(one) for one in sets)
    languages = {one.lang for one in sets}
    joined = first.merge(others)
    return replace(
        joined,
        name="+".join(names),
        lang=languages.pop() if len(languages) == 1 else "",
        aspects=tuple(aspect for one in (first, *others) for aspect in one.aspects),
        systems=tuple(system for one in (first, *others) for system in one.systems),
        meta={SETS: names},
    )


def name_scale(aspect: str, set_name: str) -> str:
    """Return the name of the head that learns an `aspect` of the set called `set_name`."""
    return f"{aspect} ({set_name})"


def add_sets(
    train: Dataset,
    dev: Dataset,
    held_out: Dataset,
    others: Sequence[Dataset],
    *,
    seed: int,
    shared: Collection[str] = (),
) -> tuple[Dataset, Dataset]:
    """Return `train` and `dev` of a set with nine tenths and one tenth of the groups of each of the `others`, drawn
    by `seed`.

    The names of the first set stay as they are, those of the others get the name of their set as in `join_sets`, except
    `shared` aspects, which are the same scale everywhere. A group whose content is in `train` or `dev` goes there too;
    one whose content is in `held_out` or in several parts is left out, so that nobody learns from what is held out.
    Raises `InvalidRecords` for equal names of the others and ValueError for a set of a single group.
    """
    names = [one.name for one in others]
    if len(set(names)) < len(names):
        raise InvalidRecords(f"add_sets() takes datasets of different names, found {', '.join(names)}")
    parts, rows = [train, dev, held_out], []
    for other in others:
        renamed = _rename(other, shared)
        places = _place_groups(renamed, parts, seed)
        parts = [part.merge([more]) for part, more in zip(parts, renamed.divide(places, len(parts)), strict=True)]
        n_train, n_dev, n_out = (list(places.values()).count(part) for part in (TRAIN, DEV, HELD_OUT))
        rows.append({"name": other.name, "groups": n_train, "dev_groups": n_dev, "left_out": n_out})
        known = {aspect.name for aspect in parts[TRAIN].aspects}
        aspects = tuple(row for row in renamed.aspects if row.name not in known)
        parts = [
            replace(part, aspects=(*part.aspects, *aspects), systems=(*part.systems, *renamed.systems))
            for part in parts
        ]  # fmt: skip
    meta = {SETS: names, ADDED: rows}
    name = "+".join([train.name, *names])
    joined, chosen, _rest = (replace(part, name=name, meta={**part.meta, **meta}) for part in parts)
    return joined, chosen


@dataclass(frozen=True)
class FurtherSets:
    """Adds the same `others` to the parts of each model, as `add_sets`."""

    others: Sequence[Dataset]
    seed: int
    shared: Collection[str] = ()

    def __call__(self, train: Dataset, dev: Dataset, held_out: Dataset) -> tuple[Dataset, Dataset]:
        return add_sets(train, dev, held_out, self.others, seed=self.seed, shared=self.shared)


def _place_groups(other: Dataset, parts: Sequence[Dataset], seed: int) -> dict[str, int]:
    """Return the part of each group: where its content already is, else as drawn."""
    where: dict[str, set[int]] = defaultdict(set)
    for number, part in enumerate(parts):
        for contents in _list_contents(part).values():
            for content in contents:
                where[content].add(number)
    own = _list_contents(other)
    places = assign_groups(set(own), seed, ADDED_SHARES)
    for group, contents in own.items():
        known = set[int]().union(*(where.get(content, set()) for content in contents))
        if known:
            places[group] = known.pop() if len(known) == 1 else HELD_OUT
    return places


def _list_contents(dataset: Dataset) -> Mapping[str, set[str]]:
    """Return the content hashes of each split group."""
    groups = dataset.name_groups()
    result: dict[str, set[str]] = defaultdict(set)
    for item in dataset.items:
        result[groups["item", item.id]].add(hash_content(item.context, item.source, item.id))
    for dialogue in dataset.dialogues:
        result[groups["dialogue", dialogue.id]].update(hash_beginnings(dialogue.turns))
    return result


def add_originals(record: TrainingRecord, *datasets: Dataset | None) -> TrainingRecord:
    """Return the `record` of a training on joined sets with the groups, items and contents of `datasets` under their
    original names as well, by which the original sets know them. Of sets added to another, only the contents: names of
    theirs may mean something else there."""
    found = [one for one in datasets if one is not None and SETS in one.meta]
    if not found:
        return record
    names = [str(name) for name in found[0].meta[SETS]]
    seen = {*record.groups, *record.dev_groups}
    contents = {*record.contents}
    for one in found:
        own = [item for item in one.items if name_group(item.group, item.id) in seen]
        plain = [replace(item, id=_strip(item.id, names), group=_strip(item.group, names)) for item in own]
        groups = tuple(name_group(item.group, item.id) for item in plain)
        contents |= {*hash_contents(replace(record, groups=groups, dev_groups=()), replace(one, items=tuple(plain)))}
    record = replace(record, contents=tuple(sorted(contents)), sets=tuple(found[0].meta.get(ADDED, ())))
    if record.sets:
        return record
    return replace(
        record,
        groups=_with_originals(record.groups, names),
        dev_groups=_with_originals(record.dev_groups, names),
        items=_with_originals(record.items, names),
    )


def _with_originals(names: Sequence[str], sets: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*names, *(_strip(name, sets) for name in names)}))


def _strip(name: str, sets: Sequence[str]) -> str:
    """The original name; "item:" and "dialogue:" may precede the prefix."""
    kind = next((kind for kind in (OWN, DIALOGUE) if name.startswith(kind)), "")
    rest = name[len(kind) :]
    prefix = next((f"{one}/" for one in sets if rest.startswith(f"{one}/")), "")
    return kind + rest.removeprefix(prefix)


def _rename(one: Dataset, shared: Collection[str] = ()) -> Dataset:
    def name(value: str | None) -> Any:
        return f"{one.name}/{value}" if value else value

    def scale(aspect: str) -> str:
        return aspect if aspect in shared else name_scale(aspect, one.name)

    return replace(
        one,
        aspects=tuple(replace(row, name=scale(row.name)) for row in one.aspects),
        systems=tuple(replace(row, id=name(row.id)) for row in one.systems),
        items=tuple(replace(row, id=name(row.id), group=name(row.group)) for row in one.items),
        outputs=tuple(replace(row, item=name(row.item), system=name(row.system)) for row in one.outputs),
        ratings=tuple(
            replace(
                row, rater=name(row.rater), aspect=scale(row.aspect), item=name(row.item), system=name(row.system),
                dialogue=name(row.dialogue),
            )
            for row in one.ratings
        ),
        comparisons=tuple(
            replace(
                row, item=name(row.item), system_a=name(row.system_a), system_b=name(row.system_b),
                rater=name(row.rater), aspect=scale(row.aspect),
            )
            for row in one.comparisons
        ),
        dialogues=tuple(replace(row, id=name(row.id), system=name(row.system)) for row in one.dialogues),
    )  # fmt: skip
