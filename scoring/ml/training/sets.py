"""Training on several data sets or projects at once: each has its own scales, hence heads of its own.

Explained in docs/explanation/evaluators/README.md#several-data-sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scoring.ml.errors import InvalidRecords
from scoring.ml.training.record import OWN, TrainingRecord, hash_contents, name_group
from scoring.ml.types import Dataset

SETS = "sets"
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


def add_originals(record: TrainingRecord, *datasets: Dataset | None) -> TrainingRecord:
    """Return the `record` of a training on joined sets with the groups, items and contents of `datasets` under their
    original names as well, by which the original sets know them."""
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
    return replace(
        record,
        groups=_with_originals(record.groups, names),
        dev_groups=_with_originals(record.dev_groups, names),
        items=_with_originals(record.items, names),
        contents=tuple(sorted(contents)),
    )


def _with_originals(names: Sequence[str], sets: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*names, *(_strip(name, sets) for name in names)}))


def _strip(name: str, sets: Sequence[str]) -> str:
    """The original name; "item:" and "dialogue:" may precede the prefix."""
    kind = next((kind for kind in (OWN, DIALOGUE) if name.startswith(kind)), "")
    rest = name[len(kind) :]
    prefix = next((f"{one}/" for one in sets if rest.startswith(f"{one}/")), "")
    return kind + rest.removeprefix(prefix)


def _rename(one: Dataset) -> Dataset:
    def name(value: str | None) -> Any:
        return f"{one.name}/{value}" if value else value

    def scale(aspect: str) -> str:
        return f"{aspect} ({one.name})"

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
