"""Further tables of evaluators as plain values: by part of the items, against each other, by aspect. Columns and
settings in, like `metrics.compute`, which has the main one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.core.common_rows import find_common_rows
from evalapp.stats.correlation.matrix import correlation_matrix
from evalapp.stats.correlation.meta_evaluation import OTHER_SYSTEMS, THESE_SYSTEMS, CorrelationSettings
from evalapp.stats.correlation.slices import slice_estimates
from evalapp.stats.resampling.bootstrap import Bootstrap
from evalapp.stats.resampling.jackknife import NAME
from evalapp.versions import split_version
from scoring.boards.metrics.by_ratings import (
    FEW_SYSTEMS,
    LEAST_SHARE,
    People,
    Scored,
    chosen_of,
    chosen_part,
    of_all_outputs,
    with_missing,
    with_wider,
)
from scoring.boards.systems.rankings import draws_of

#: Parts that one table shows; the rest is `OTHERS`.
MOST_PARTS = 20
OTHERS = "(others)"
#: Smaller parts have no coefficient worth the name.
LEAST = 3

Settings = Mapping[str, Any]
Table = dict[str, Any]


def largest_parts(part: NDArray[Any], most: int = MOST_PARTS) -> NDArray[Any]:
    """The column with all but its most frequent values as `OTHERS` (equal ones: by name)."""
    names, counts = np.unique(part, return_counts=True)
    if len(names) <= most:
        return part
    order = sorted(range(len(names)), key=lambda k: (-counts[k], names[k]))
    kept = names[order[: most - 1]]
    return np.where(np.isin(part, kept), part, OTHERS)


def slices_table(
    people: People, scored: Sequence[Scored], part: NDArray[Any], settings: Settings, *, aspect: str, outside: BoolArray
) -> Table:
    """How well each evaluator follows people in every part of the items, as found and shrunken towards the whole.
    `part` names the part of each output of `people`. `settings`: key, coefficient, systems, references, ratings."""
    compared = people if outside.all() else people.only(outside)
    parts = largest_parts(np.asarray(part)[outside])
    names, counts = np.unique(parts, return_counts=True)
    rows = []
    for one in scored:
        found = (
            slice_estimates(
                one.metric[outside],
                compared.mean,
                compared.item,
                compared.system,
                parts,
                settings=CorrelationSettings(coefficients=(settings["coefficient"],)),
                bootstrap=Bootstrap(cluster=compared.cluster, **draws_of(settings)),
            )
            if len(compared)
            else None
        )
        slices = {str(s.name): s.as_dict() for s in found.slices} if found else {}
        whole = found.whole.as_dict() if found else _none("nothing can be compared")
        rows.append(
            {
                **_said(one),
                "estimate": whole,
                "spread": found.as_dict()["spread"] if found else None,
                "cells": [slices.get(str(name)) or _empty(str(name)) for name in names],
            }
        )
    counted = [{"name": str(name), "n": int(n)} for name, n in zip(names, counts, strict=True)]
    return {
        "kind": "slices",
        **_head(settings, people, compared, aspect),
        "key": settings["key"],
        "coefficient": settings["coefficient"],
        "signature": _signature(settings, aspect, f"slices:{settings['key']}"),
        "parts": counted,
        "evaluators": chosen_of(settings),
        "note": with_missing("" if len(names) > 1 else "All items are of one part.", settings, rows),
        "rows": sorted(rows, key=_order),
    }


def matrix_table(
    scored: Sequence[Scored],
    columns: FloatArray,
    cluster: IntArray,
    system: IntArray,
    settings: Settings,
    *,
    aspect: str = "",
) -> Table:
    """Evaluators against each other over the outputs (n, k): what says the same as what. At the level of systems over
    the systems' means. `settings`: level, coefficient, systems, references."""
    over, unit = columns, cluster
    by_system = settings["level"] == "system"
    if by_system:
        # Means of two evaluators can be compared over the same outputs only.
        common = find_common_rows(
            list(columns.T), np.ones(len(columns), dtype=bool), np.unique(system, return_inverse=True)[1],
            least=FEW_SYSTEMS, share=0.0 if chosen_of(settings) else LEAST_SHARE, what="systems",
        )  # fmt: skip
        used = common.rows if common.used else np.ones(len(columns), dtype=bool)
        over, unit = _means(columns[used], system[used])
    what = "systems" if by_system else "items"
    found = correlation_matrix(
        over, coefficient=settings["coefficient"], what=what, bootstrap=Bootstrap(cluster=unit, **draws_of(settings))
    )
    place = {number: k for k, number in enumerate(_similar(found.values))}
    order = sorted(range(len(scored)), key=lambda k: place[k])
    rows = []
    for i in order:
        cells = [None if i == j else found[i, j].as_dict() for j in order]
        rows.append({**_said(scored[i]), "n": int(np.isfinite(columns[:, i]).sum()), "cells": cells})
    return {
        "kind": "matrix",
        "aspect": aspect,
        "level": settings["level"],
        "coefficient": settings["coefficient"],
        "systems": settings["systems"],
        "references": settings["references"],
        "ratings": "",
        "signature": _signature(
            settings, aspect, f"matrix|level:{settings['level']}", "boot:systems" if by_system else "boot:inputs"
        ),
        "n_outputs": len(columns),
        "n_items": len(np.unique(cluster)),
        "n_systems": len(np.unique(system)),
        "n_simulated": 0,
        "evaluators": chosen_of(settings),
        "note": with_missing("" if len(scored) > 1 else "There are not two evaluators to be compared.", settings, rows),
        "rows": rows,
    }


#: What a table of aspects keeps of the table of each.
OF_ASPECT = ("aspect", "n_outputs", "n_excluded", "n_ratings", "n_raters", "ceiling", "signature")


def aspects_table(tables: Sequence[Mapping[str, Any]], settings: Settings) -> Table:
    """Evaluators by aspect, from the main tables of all aspects: one figure for each, with its interval. `settings`:
    coefficient (the name of the figure in a row), level, grouping, systems, references, ratings."""
    figure = settings["figure"]
    if any(figure not in row for table in tables for row in table["rows"]):
        raise ValueError(f"tables at the level {settings['level']} have no figure “{figure}”")
    by_name: dict[str, Table] = {}
    wider = of_all_outputs(with_wider([row for table in tables for row in table["rows"]]))
    for place, table in enumerate(tables):
        for row in table["rows"]:
            kept = ("evaluator", "name", "kind", "is_sentinel", "signature", "short_signature", "score_set")
            mine = by_name.setdefault(
                row["evaluator"], {name: row[name] for name in kept} | {"cells": [None] * len(tables)}
            )
            mine["cells"][place] = {name: row[figure][name] for name in ("value", "low", "high", "n", "note")} | {
                "letters": row["letters"]
            }
    rows = list(by_name.values())
    for row in rows:
        row["cells"] = [cell or {**_none("not scored for this aspect"), "letters": ""} for cell in row["cells"]]
    return {
        "kind": "aspects",
        "aspect": "",
        "figure": figure,
        **{name: settings[name] for name in ("coefficient", "level", "grouping", "systems", "references", "ratings")},
        "signature": _signature(
            settings, "all", f"aspects|level:{settings['level']}|grouping:{settings['grouping']}", _drawn(settings)
        ),
        "population": OTHER_SYSTEMS if settings["level"] == "system" else THESE_SYSTEMS,
        "aspects": [
            # The version closes the signature of the whole table.
            {name: table[name] for name in OF_ASPECT} | {"signature": split_version(table["signature"])[0]}
            for table in tables
        ],
        "n_excluded": sum(table["n_excluded"] for table in tables),
        "n_simulated": sum(table["n_simulated"] for table in tables),
        "counted": [f"{table['aspect']}: {said}" for table in tables for said in table.get("counted", ())],
        "n_items": max((table["n_items"] for table in tables), default=0),
        "evaluators": chosen_of(settings),
        "note": with_missing(wider if tables else "No aspect has been rated.", settings, rows),
        "rows": sorted(rows, key=lambda row: (-_mean(row["cells"]), row["evaluator"])),
    }


def _mean(cells: Sequence[Mapping[str, Any]]) -> float:
    values = [cell["value"] for cell in cells if cell["value"] is not None]
    return sum(values) / len(values) if values else -2.0


def _means(columns: FloatArray, system: IntArray) -> tuple[FloatArray, IntArray]:
    """Every system's mean of every column over the outputs that have a score, and the systems as clusters."""
    names, code = np.unique(system, return_inverse=True)
    defined = np.isfinite(columns)
    found = np.full((len(names), columns.shape[1]), np.nan)
    for k in range(columns.shape[1]):
        counts = np.bincount(code, weights=defined[:, k], minlength=len(names))
        sums = np.bincount(code, weights=np.where(defined[:, k], columns[:, k], 0.0), minlength=len(names))
        np.divide(sums, counts, out=found[:, k], where=counts > 0)
    return found, np.arange(len(names))


def _similar(values: FloatArray) -> list[int]:
    """An order that puts next to each other what correlates: from the one closest to all others, each time the one
    closest to the last. Ties go to the first."""
    if not len(values):
        return []
    closeness = np.nan_to_num(values, nan=-1.0)
    order = [int(closeness.sum(axis=1).argmax())]
    left = [k for k in range(len(values)) if k != order[0]]
    while left:
        order.append(max(left, key=lambda k: (closeness[order[-1], k], -k)))
        left.remove(order[-1])
    return order


def _said(one: Scored) -> Table:
    return {
        "evaluator": one.evaluator,
        "name": one.name,
        "kind": one.kind,
        "is_sentinel": one.is_sentinel,
        "score_set": one.score_set,
        "signature": one.signature,
        "short_signature": one.short_signature,
    }


def _none(reason: str) -> Table:
    return {"value": None, "low": None, "high": None, "n": 0, "note": reason}


def _empty(name: str) -> Table:
    reason = _none("no output of this part has both scores")
    return {"name": name, "raw": reason, "shrunken": dict(reason), "weight": None, "n_pairs": 0}


def _head(settings: Settings, people: People, compared: People, aspect: str) -> Table:
    return {
        "aspect": aspect,
        **{name: settings[name] for name in ("systems", "references", "ratings")},
        "n_outputs": len(compared),
        "n_excluded": len(people) - len(compared),
        "n_ratings": people.n_ratings,
        "n_raters": people.n_raters,
        "n_systems": len(np.unique(compared.system)),
        "n_items": len(np.unique(compared.item)),
        "n_simulated": people.n_simulated,
        "counted": people.counted,
    }


def _signature(settings: Settings, aspect: str, what: str, boot: str = "boot:inputs") -> str:
    parts = [what, f"coef:{settings['coefficient']}", boot]
    parts += [f"{name}:{settings[name]}" for name in ("ratings", "systems", "references") if settings.get(name)]
    return "|".join([*parts, f"aspect:{aspect}"] if aspect else parts) + chosen_part(settings)


def _drawn(settings: Settings) -> str:
    """How `correlate` makes intervals at this level."""
    return f"interval:{NAME}" if settings["level"] == "system" else "boot:inputs"


def _order(row: Mapping[str, Any]) -> tuple[bool, float, str]:
    value = row["estimate"]["value"]
    return (value is None, -(value or 0.0), row["evaluator"])
