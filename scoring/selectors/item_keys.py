"""Keys of the items' `meta` that divide a project into subsets, and the subset of each output."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from annotation.models import Item, Output
from evalapp.accounts.models import Project

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Number of items searched for keys.
LOOKED_AT = 2000
#: Number of `meta`, which may contain long texts, in memory at once.
METAS = 500
#: Longer texts are no names of subsets.
MOST_LETTERS = 200
#: Keys with more values identify items rather than subsets.
MOST_VALUES = 200


def item_keys(project: Project) -> list[str]:
    """Return the keys with two to `MOST_VALUES` short values, most used first."""
    result: dict[str, Counter[str]] = {}
    long: set[str] = set()
    rows = Item.objects.filter(project=project).exclude(meta={}).order_by("pk").values_list("meta", flat=True)
    for meta in rows[:LOOKED_AT].iterator(chunk_size=METAS):
        for key, value in meta.items():
            if isinstance(value, str) and len(value) > MOST_LETTERS:
                long.add(key)
            elif isinstance(value, str | int | bool | float):
                result.setdefault(key, Counter())[str(value)] += 1
    fits = [key for key, values in result.items() if 2 <= len(values) <= MOST_VALUES and key not in long]
    return sorted(fits, key=lambda key: (-sum(result[key].values()), key))


#: Outputs per database query.
CHUNK = 10_000


def load_parts(project: Project, outputs: NDArray[Any], key: str) -> NDArray[Any]:
    """Return the value of this key for the item of every output. Memory holds only these values, each once."""
    from scoring.boards.data.columns import part_column

    numbers = outputs.tolist()
    of_output: dict[int, int] = {}
    for start in range(0, len(numbers), CHUNK):
        rows = Output.objects.filter(pk__in=numbers[start : start + CHUNK]).order_by()
        of_output |= dict(rows.values_list("pk", "item_id"))
    wanted, names = sorted(set(of_output.values())), dict[str, str]()
    of_item: dict[int | None, str] = {}
    for start in range(0, len(wanted), CHUNK):
        items = Item.objects.filter(pk__in=wanted[start : start + CHUNK]).order_by().values_list("pk", "meta")
        for item, meta in items.iterator(chunk_size=METAS):
            if (value := meta.get(key)) is not None:
                of_item[item] = names.setdefault(str(value), str(value))
    return part_column(of_item.get(of_output.get(number)) for number in numbers)
