"""What `leaderboard.json` of an export must look like before anything is made of it: every member that a page, a file
or a computation reads, by kind of table. Whether the figures are right is `recompute`'s question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalapp.stats.agreement.normalise import RATING_METHODS
from scoring.boards.data.columns import LEFT_OUT
from scoring.boards.metrics.by_ratings import COEFFICIENTS
from scoring.boards.metrics.ranked import RANKINGS
from scoring.boards.metrics.significance import EARLIER, TESTS
from scoring.boards.shapes import (
    Fault,
    Looks,
    anything,
    both,
    defined,
    flag,
    list_of,
    map_of,
    maybe,
    number,
    object_of,
    one_of,
    slug,
    text,
)
from scoring.boards.systems.rankings import covariates_of

#: More tables than anybody asks of one project.
MOST_TABLES = 5_000
MOST_DRAWS = 1_000_000
JUDGED = ("ratings", "comparisons", "turing", "dialogues")
#: Figures that either all rows of a table of evaluators have, or none.
EXTRA = ("accuracy", "pa", "spa", "calibrated")
#: What a row calls the figure, where that is not the name by which it is asked for.
FIGURES = {"acc-eq": "accuracy"}


def faults_of(document: Any) -> Iterator[Fault]:
    """What is wrong with the content of a `leaderboard.json`, the first fault of each table; nothing if it is sound."""
    whole = fault_of_list(document)
    if whole is not None:
        yield whole
        return
    for place, entry in enumerate(document["tables"]):
        fault = fault_of_table(entry, place)
        if fault is not None:
            yield fault


def fault_of_list(document: Any) -> Fault | None:
    """What is wrong with the document itself, whatever its tables are."""
    found = document.get("tables") if isinstance(document, dict) else None
    if not isinstance(found, list):
        return "tables", "must be a list of tables"
    if len(found) > MOST_TABLES:
        return "tables", f"has {len(found):,} tables; no export has more than {MOST_TABLES:,}"
    return None


def fault_of_table(entry: Any, place: int, *, to_compute: bool = False) -> Fault | None:
    """The first fault of the table at this place. `to_compute`: also whether all stands there that computing it again
    needs."""
    return next(_entry(entry, f"tables[{place}]", to_compute), None)


def _entry(entry: Any, where: str, to_compute: bool) -> Iterator[Fault]:
    sound = True
    for fault in _ENTRY(entry, where):
        sound = False
        yield fault
    if not sound:
        return
    kind = entry["kind"]
    if kind not in KINDS:
        yield f"{where}.kind", f"must be one of {', '.join(sorted(KINDS))}, not “{kind[:50]}”"
        return
    if to_compute:
        yield from object_of(dict.fromkeys(_NEEDED[kind], text))(entry["params"], f"{where}.params")
        for name, part in entry.get("tables", {}).items() if kind == "aspects" else ():
            yield from object_of(dict.fromkeys(_OF_EVALUATORS, text))(
                part["params"], f"{where}.tables.{name[:50]}.params"
            )
        people = kind == "systems" and not entry["params"]["by"]
        yield from object_of(dict.fromkeys(() if people else _BEHIND[kind], anything))(entry, where)
        if kind == "systems" and not people:
            yield from object_of({"evaluator": anything})(entry["table"], f"{where}.table")
    elif kind == "enhanced":
        yield from object_of({"sets": anything})(entry["table"], f"{where}.table")
    looks = KINDS[kind]
    if kind == "evaluators":
        asked = entry["params"].get("coefficient")
        looks = both(looks, lambda table, place: _ordered(table, asked, place))
    yield from looks(entry["table"], f"{where}.table")
    if entry["table"]["kind"] != kind:
        yield f"{where}.table.kind", f"must be “{kind}”, as its entry says"


# ---- what tables are ------------------------------------------------------------------------------------------------

_VALUE: dict[str, Looks] = dict.fromkeys(("value", "low", "high", "n"), number) | {"note": text}
_ESTIMATE = object_of(_VALUE)


def _effect(value: Any, where: str) -> Iterator[Fault]:
    """An estimate; one in points of the rating is told in words, for which it needs all of itself."""
    needed = _VALUE if isinstance(value, dict) and "points" in value else {}
    yield from object_of(needed, {**_VALUE, "points": number})(value, where)
    if needed and value.get("value") is not None and value.get("points") is None:
        yield f"{where}.points", "must be a number beside a value"


def _shares(value: Any, where: str) -> Iterator[Fault]:
    """Parts of the judgements of a system; of comparisons all that a bar is made of."""
    yield from map_of(defined)(value, where)
    for name in ("tie", "loss") if isinstance(value, dict) and "win" in value else ():
        if name not in value:
            yield f"{where}.{name}", "is missing"


def _spread(value: Any, where: str) -> Iterator[Fault]:
    """The effects of raters: from where to where, if there are any."""
    some = isinstance(value, dict) and bool(value.get("n"))
    yield from object_of({"n": number, **dict.fromkeys(("low", "high"), defined if some else number)})(value, where)


_HEAD: dict[str, Looks] = {"kind": text, "aspect": text, "signature": text, "note": text, "n_simulated": number}
_COUNTS: dict[str, Looks] = dict.fromkeys(
    ("n_items", "n_systems", "n_raters", "n_ratings", "n_outputs", "n_excluded", "n_clusters", "n_filtered"), number
)
_FILTER: dict[str, Looks] = {
    "filter": maybe(object_of({"name": text, "digest": text}, {"raters": number, "reason": text})),
    "failed": list_of(text),
}
_WHO: dict[str, Looks] = {"evaluator": slug, "name": text, "kind": text, "is_sentinel": flag, "signature": text}
_FIGURES: dict[str, Looks] = dict.fromkeys(COEFFICIENTS, _ESTIMATE)


def _table(head: Mapping[str, Looks], row: Looks, optional: Mapping[str, Looks] | None = None) -> Looks:
    return object_of(
        {**_HEAD, **head, "rows": list_of(row)}, {**_COUNTS, **_FILTER, "counted": list_of(text), **(optional or {})}
    )


_SYSTEMS = _table(
    {
        "method": text, "scale": list_of(number, 2),
        "extras": object_of({}, {
            "side": _effect, "length": _effect, "side_bias": _effect, "length_bias": _effect,
            "rater_effects": _spread, "both_bad_share": number,
        }),
    },
    object_of(
        {
            "label": text, "system": text, "kind": text, "step": number, "shares": _shares, "note": text,
            **dict.fromkeys(("rank", "rank_low", "rank_high", "tier", "value", "low", "high"), number),
            **dict.fromkeys(("n", "n_ratings", "simulated"), number),
        }
    ),
    {
        "by": maybe(text), "groups": list_of(list_of(text, 1)), "findings": list_of(text), "totals": map_of(number),
        "evaluator": object_of({"slug": slug, "aspect": text}, {"signature": text, "n_in_training": number}),
    },
)  # fmt: skip

_TEST = object_of(
    {"names": list_of(text), "p_holm": list_of(list_of(number)), "signature": text, "note": text},
    {"alpha": number, "k": number, "n_rows": number, "smallest_p": number}
    | dict.fromkeys(("test", "population", "changed"), text),
)

_EVALUATOR = object_of(
    {
        **_WHO, **_FIGURES, **dict.fromkeys(("n", "n_missing"), number), "note": text, "letters": text,
        "whole": maybe(object_of({**_FIGURES, "n": number})), "corrected": maybe(_ESTIMATE),
        "score_set": maybe(text),
    },
    {**dict.fromkeys(EXTRA, _ESTIMATE), "n_in_training": number, "values": list_of(number)},
)  # fmt: skip


def _alike(table: Any, where: str) -> Iterator[Fault]:
    """The same figures in every row."""
    figures = [{name for name in EXTRA if name in row} for row in table["rows"]]
    for place, found in enumerate(figures):
        if found != figures[0]:
            name = sorted(found ^ figures[0])[0]
            yield f"{where}.rows[{place}].{name}", "must stand in all rows or in none"
    yield from _square(table, where)


def _square(table: Any, where: str) -> Iterator[Fault]:
    """A p for every two evaluators that were tested."""
    names, pairs = table["test"]["names"], table["test"]["p_holm"]
    if any(len(part) != len(names) for part in (pairs, *pairs)):
        yield f"{where}.test.p_holm", f"must be {len(names)} by {len(names)}, as many as there are names"


def _ordered(table: Any, coefficient: Any, where: str) -> Iterator[Fault]:
    """The figure by which a page puts the evaluators in order."""
    figure = FIGURES.get(coefficient, coefficient)
    if figure in EXTRA and any(figure not in row for row in table["rows"]):
        yield f"{where}.rows", f"must have “{figure}”, by which they are in order"


_EVALUATORS = both(
    _table(
        {
            "level": text, "coefficient": text, "ceiling": _ESTIMATE, "test": _TEST,
        },
        _EVALUATOR,
        {
            "people": one_of("ratings", *RANKINGS), "evaluators": list_of(text),
            "scores": list_of(object_of({"label": text, **dict.fromkeys(("value", "low", "high"), number)})),
        },
    ),
    _alike,
)  # fmt: skip

_DIFFERENCE = object_of(
    {"a": text, "b": text, **dict.fromkeys(("value", "low", "high", "p", "p_holm"), number)}, {"williams": number}
)


def _with_all_sets(table: Any, where: str) -> Iterator[Fault]:
    for place, row in enumerate(table["rows"]):
        for found in table.get("sets", ()):
            if found["name"] not in row["cells"]:
                yield f"{where}.rows[{place}].cells.{found['name'][:50]}", "is missing"


_ENHANCED = both(
    _table(
        {"baseline": text},
        object_of(
            {
                "evaluator": slug, "name": text, "differences": list_of(_DIFFERENCE), "n": number,
                "cells": map_of(object_of({**_FIGURES, "n": number, "signature": text, "note": text})),
            }
        ),
        {"sets": list_of(object_of({"name": text, "origin": text, "n_references": number, "per_item": number}))},
    ),
    _with_all_sets,
)  # fmt: skip


def _with_cells(heads: str) -> Looks:
    """As many cells in each row as there are heads."""

    def look(table: Any, where: str) -> Iterator[Fault]:
        for place, row in enumerate(table["rows"]):
            if len(row["cells"]) != len(table[heads]):
                yield f"{where}.rows[{place}].cells", f"must be {len(table[heads])}, as many as there are {heads}"

    return look


def _cells(cell: Looks, **more: Looks) -> Looks:
    return object_of({**_WHO, **more, "cells": list_of(cell)})


def _with_some_aspect(table: Any, where: str) -> Iterator[Fault]:
    yield from _with_cells("aspects")(table, where)
    if table["rows"] and not table["aspects"]:
        yield f"{where}.rows", "must be empty where there is no aspect"


_SLICES = both(
    _table(
        {"key": text, "coefficient": text, "parts": list_of(object_of({"name": text, "n": number}))},
        _cells(object_of({"raw": _ESTIMATE, "shrunken": _ESTIMATE, "weight": number})),
    ),
    _with_cells("parts"),
)
_MATRIX = both(_table({"coefficient": text}, _cells(maybe(_ESTIMATE))), _with_cells("rows"))
_ASPECTS = both(
    _table(
        {
            "coefficient": text,
            "figure": one_of(*COEFFICIENTS, *EXTRA),
            "aspects": list_of(object_of({"aspect": text})),
        },
        _cells(_ESTIMATE, score_set=maybe(text)),
    ),
    _with_some_aspect,
)


def _with_ceilings(table: Any, where: str) -> Iterator[Fault]:
    if len(table["ceiling"]) != len(table["columns"]):
        yield f"{where}.ceiling", f"must be {len(table['columns'])}, as many as there are columns"


_PAIRS = both(
    _table(
        {
            "columns": list_of(object_of({"name": text, "n": number})), "ceiling": list_of(maybe(_ESTIMATE)),
            "by_lot": number, **dict.fromkeys(("n_pairs", "n_decided", "n_tied", "n_split"), number),
            "test": _TEST,
        },
        _cells(
            maybe(object_of(_VALUE, {"epsilon": number, "cross_validated": maybe(_ESTIMATE)})),
            letters=text, n=number, n_missing=number, score_set=maybe(text),
        ),
        {"evaluators": list_of(text), "baseline": text, "shorter": flag},
    ),
    both(_with_cells("columns"), both(_with_ceilings, _square)),
)  # fmt: skip

_COEFFICIENT = object_of({"name": text, "label": text, **_VALUE})
_LINE = object_of(
    {
        "aspect": text, "judged": one_of(*JUDGED), "source": text, "scale": text,
        "coefficients": list_of(_COEFFICIENT, 1),
        **dict.fromkeys(("n_units", "n_raters", "n_judgements", "n_simulated"), number),
    }
)  # fmt: skip


_PART = object_of({}, {"share": number, "n": number})


def _agreement(table: Any, where: str) -> Iterator[Fault]:
    """Lines of all aspects, or the coefficients of one."""
    row = _COEFFICIENT if isinstance(table, dict) and table.get("aspect") else _LINE
    detail: dict[str, Looks] = {"judged": one_of(*JUDGED)} if row is _COEFFICIENT else {}
    told = {"notes": list_of(text), "prevalence": list_of(_PART), **dict.fromkeys(("n_units", "n_judgements"), number)}
    yield from _table({"campaign": text, "scale": text, **detail}, row, told)(table, where)


#: How a table of each kind must look.
KINDS: dict[str, Looks] = {
    "systems": _SYSTEMS, "evaluators": _EVALUATORS, "enhanced": _ENHANCED, "agreement": _agreement, "slices": _SLICES,
    "matrix": _MATRIX, "aspects": _ASPECTS, "pairs": _PAIRS,
}  # fmt: skip


def _covariates(value: Any, where: str) -> Iterator[Fault]:
    try:
        covariates_of({"covariates": value if isinstance(value, str) else "?"})
    except ValueError as error:
        yield where, str(error)


#: What can be asked for where there is a choice.
CHOICES: dict[str, Looks] = {
    "method": one_of("mean", *RANKINGS), "ratings": one_of(*RATING_METHODS), "systems": one_of(*LEFT_OUT),
    "level": one_of("segment", "dialogue", "system"), "grouping": one_of("none", "item", "system"),
    "coefficient": one_of(*COEFFICIENTS, "acc-eq", "pa", "spa"), "test": one_of(*TESTS, EARLIER),
    "judged": one_of("", *JUDGED), "scale": one_of("auto", "nominal", "ordinal", "interval", "ratio"),
    "weights": one_of("none", "propensity"), "covariates": _covariates,
    "per": one_of("judgement", "output"), "undefined": one_of("drop", "zero"), "people": one_of("ratings", *RANKINGS),
}  # fmt: skip


def _params(value: Any, where: str) -> Iterator[Fault]:
    """Names and texts; what the resamples are drawn by are numbers."""
    yield from map_of(anything)(value, where)
    for name, given in value.items() if isinstance(value, dict) else ():
        if name not in ("seed", "resamples"):
            yield from CHOICES.get(name, text)(given, f"{where}.{name[:50]}")
        elif type(given) is not int or not 0 <= given <= MOST_DRAWS:
            yield f"{where}.{name}", f"must be a whole number from 0 to {MOST_DRAWS:,}"


#: Around a table: what was asked for, and the sets behind it.
_ENTRY = object_of(
    {"kind": text, "params": _params, "table": object_of({"kind": text})},
    {
        "sets": list_of(text), "references": list_of(text),
        "tables": map_of(object_of({"params": _params, "sets": list_of(text)})),
    },
)  # fmt: skip
_OF_EVALUATORS = ("level", "grouping", "systems", "references", "ratings")
#: What computing a table again reads of its settings, and of what stands beside them.
_NEEDED: dict[str, tuple[str, ...]] = {
    "systems": ("by", "method", "ratings", "systems"), "evaluators": _OF_EVALUATORS,
    "enhanced": ("level", "grouping", "systems", "ratings"), "agreement": ("aspect", "judged", "campaign", "scale"),
    "slices": ("coefficient", "systems", "references", "ratings"),
    "matrix": ("level", "coefficient", "systems", "references"), "aspects": (*_OF_EVALUATORS, "coefficient"),
    "pairs": ("systems", "references", "test"),
}  # fmt: skip
_BEHIND: dict[str, tuple[str, ...]] = {
    "systems": ("sets",), "evaluators": ("sets",), "enhanced": ("sets", "references"), "agreement": (),
    "slices": ("sets",), "matrix": ("sets",), "aspects": ("tables",), "pairs": ("sets",),
}  # fmt: skip
