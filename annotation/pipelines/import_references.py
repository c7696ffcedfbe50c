"""Judgements of a reference without an output: raters judged human texts together with the systems' texts, but the data
contain them as references only, as in WebNLG 2020. The output is created from the first reference of the item."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from annotation.models import System
from annotation.parsers.fields import NO_STEP
from annotation.selectors import stored
from annotation.services.bulk import split_by_size

from .import_staging import NEW

if TYPE_CHECKING:
    from .import_faults import Check

#: The key in the output's meta with the position of the reference, counted from 0.
META = json.dumps({"from_reference": 0})


def make_outputs(check: Check, kinds: dict[str, str]) -> None:
    """Create an output for each judged item of a system of kind `reference` that has none, if the item has a
    reference."""
    staging = check.staging
    names = {name for name, kind in kinds.items() if kind == "reference"}
    names |= {name for (name,) in staging.execute("SELECT key FROM systems WHERE kind = 'reference'")}
    known = dict(System.objects.filter(project=check.project, kind="reference").values_list("name", "pk"))
    names |= known.keys()
    if not names or not (staging.has("ratings") or staging.has("comparisons")):
        return
    staging.execute("CREATE TEMP TABLE reference_systems (name TEXT PRIMARY KEY)")
    staging.many("INSERT INTO reference_systems VALUES (?)", [(name,) for name in names])
    judged = " UNION ".join(
        f"SELECT item, {column} AS system FROM {table} WHERE item IS NOT NULL AND {step} = {NO_STEP}"
        f" AND {column} IN (SELECT name FROM reference_systems)"
        for table, column, step in (
            ("ratings", "system", "step"), ("comparisons", "a", "step_a"), ("comparisons", "b", "step_b"),
        )
    )  # fmt: skip
    staging.execute(
        f"CREATE TEMP TABLE without_output AS SELECT j.item, j.system, i.refs FROM ({judged}) j LEFT JOIN items i"
        " ON i.key = j.item WHERE NOT EXISTS (SELECT 1 FROM outputs o WHERE o.item = j.item AND o.system = j.system)"
    )
    for batch in split_by_size(staging.stream("SELECT item, system, refs FROM without_output"), 500):
        _make(check, batch, known)


def _make(check: Check, batch: list[tuple[str, str, str | None]], known: dict[str, int]) -> None:
    ids = stored.item_ids(check.project, [item for item, _, _ in batch])
    references = stored.read_original_references(list(ids.values()))
    there = {(item, system) for _, item, system, _ in stored.read_output_keys(list(ids.values()), list(known.values()))}
    made = []
    for item, system, refs in batch:
        texts = references.get(ids.get(item, 0), []) if refs is None else json.loads(refs)
        if texts and (ids.get(item), known.get(system)) not in there:
            made.append((NEW, item, system, NO_STEP, texts[0], META))
    check.staging.many("INSERT INTO outputs (act, item, system, step, text, meta) VALUES (?,?,?,?,?,?)", made)
