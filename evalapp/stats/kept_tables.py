"""What `leaderboard.json` of an export must look like before anything is made of it: every member that a page, a file
or a computation reads, by kind of table. Whether the figures are right is `recompute`'s question."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from evalapp.stats.columns import LEFT_OUT
from evalapp.stats.meta_tables import COEFFICIENTS
from evalapp.stats.meta_tests import TESTS
from evalapp.stats.ranked_tables import RANKINGS
from evalapp.stats.tables import covariates_of

#: (where, what is wrong there).
Fault: TypeAlias = tuple[str, str]
#: Looks at a value and its place.
Looks: TypeAlias = Callable[[Any, str], Iterator[Fault]]

#: More tables than anybody asks of one project.
MOST_TABLES = 5_000
MOST_DRAWS = 1_000_000
JUDGED = ("ratings", "comparisons", "turing", "dialogues")
#: Figures that either all rows of a table of evaluators have, or none.
EXTRA = ("accuracy", "pa", "spa")


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
        yield from _object(dict.fromkeys(_NEEDED[kind], _text))(entry["params"], f"{where}.params")
        for name, part in entry.get("tables", {}).items() if kind == "aspects" else ():
            yield from _object(dict.fromkeys(_OF_EVALUATORS, _text))(
                part["params"], f"{where}.tables.{name[:50]}.params"
            )
        people = kind == "systems" and not entry["params"]["by"]
        yield from _object(dict.fromkeys(() if people else _BEHIND[kind], _anything))(entry, where)
        if kind == "systems" and not people:
            yield from _object({"evaluator": _anything})(entry["table"], f"{where}.table")
    elif kind == "enhanced":
        yield from _object({"sets": _anything})(entry["table"], f"{where}.table")
    yield from KINDS[kind](entry["table"], f"{where}.table")
    if entry["table"]["kind"] != kind:
        yield f"{where}.table.kind", f"must be “{kind}”, as its entry says"


# ---- what values can be ---------------------------------------------------------------------------------------------


def _text(value: Any, where: str) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield where, "must be a text"


def _flag(value: Any, where: str) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield where, "must be true or false"


def _number(value: Any, where: str) -> Iterator[Fault]:
    """A number, or null for one that is undefined."""
    if value is None:
        return
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or abs(value) > 1e300 or not math.isfinite(value):
        yield where, "must be a number or null"


def _one_of(*names: str) -> Looks:
    def look(value: Any, where: str) -> Iterator[Fault]:
        if value not in names:
            yield where, f"must be one of {', '.join(names)}"

    return look


def _maybe(inner: Looks) -> Looks:
    return lambda value, where: iter(()) if value is None else inner(value, where)


def _list(inner: Looks, least: int = 0) -> Looks:
    def look(value: Any, where: str) -> Iterator[Fault]:
        if not isinstance(value, list) or len(value) < least:
            yield where, "must be a list" + (f" of {least} or more" if least else "")
            return
        for place, part in enumerate(value):
            yield from inner(part, f"{where}[{place}]")

    return look


def _map(inner: Looks) -> Looks:
    def look(value: Any, where: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield where, "must be an object"
            return
        for name, part in value.items():
            yield from inner(part, f"{where}.{name[:50]}")

    return look


def _object(members: Mapping[str, Looks], optional: Mapping[str, Looks] | None = None) -> Looks:
    """An object with these members; others are nobody's concern."""

    def look(value: Any, where: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield where, "must be an object"
            return
        for name, inner in members.items():
            if name not in value:
                yield f"{where}.{name}", "is missing"
                return
            yield from inner(value[name], f"{where}.{name}")
        for name, inner in (optional or {}).items():
            if name in value:
                yield from inner(value[name], f"{where}.{name}")

    return look


def _anything(value: Any, where: str) -> Iterator[Fault]:
    return iter(())


def _and(first: Looks, then: Looks) -> Looks:
    """`then` may rely on what `first` found sound."""

    def look(value: Any, where: str) -> Iterator[Fault]:
        sound = True
        for fault in first(value, where):
            sound = False
            yield fault
        if sound:
            yield from then(value, where)

    return look


# ---- what tables are ------------------------------------------------------------------------------------------------

_VALUE: dict[str, Looks] = dict.fromkeys(("value", "low", "high", "n"), _number) | {"note": _text}
_ESTIMATE = _object(_VALUE)


def _effect(value: Any, where: str) -> Iterator[Fault]:
    """An estimate; one in points of the rating is told in words, for which it needs all of itself."""
    needed = _VALUE if isinstance(value, dict) and "points" in value else {}
    yield from _object(needed, {**_VALUE, "points": _number})(value, where)
    if needed and value.get("value") is not None and value.get("points") is None:
        yield f"{where}.points", "must be a number beside a value"


_HEAD: dict[str, Looks] = {"kind": _text, "aspect": _text, "signature": _text, "note": _text, "n_simulated": _number}
_COUNTS: dict[str, Looks] = dict.fromkeys(
    ("n_items", "n_systems", "n_raters", "n_ratings", "n_outputs", "n_excluded", "n_clusters", "n_filtered"), _number
)
_FILTER: dict[str, Looks] = {"filter": _maybe(_object({"name": _text, "digest": _text}))}
_WHO: dict[str, Looks] = {"evaluator": _text, "name": _text, "kind": _text, "is_sentinel": _flag, "signature": _text}
_FIGURES: dict[str, Looks] = dict.fromkeys(COEFFICIENTS, _ESTIMATE)


def _table(head: Mapping[str, Looks], row: Looks, optional: Mapping[str, Looks] | None = None) -> Looks:
    return _object({**_HEAD, **head, "rows": _list(row)}, {**_COUNTS, **_FILTER, **(optional or {})})


_SYSTEMS = _table(
    {
        "method": _text, "scale": _list(_number, 2),
        "extras": _object({}, {
            "side": _effect, "length": _effect, "side_bias": _effect, "length_bias": _effect,
            "rater_effects": _object(dict.fromkeys(("n", "low", "high"), _number)),
        }),
    },
    _object(
        {
            "label": _text, "system": _text, "kind": _text, "step": _number, "shares": _map(_number), "note": _text,
            **dict.fromkeys(("rank", "rank_low", "rank_high", "tier", "value", "low", "high"), _number),
            **dict.fromkeys(("n", "n_ratings", "simulated"), _number),
        }
    ),
    {
        "by": _maybe(_text), "groups": _list(_list(_text, 1)), "findings": _list(_text), "totals": _map(_anything),
        "evaluator": _object({"slug": _text, "aspect": _text}, {"signature": _text}),
    },
)  # fmt: skip

_EVALUATOR = _object(
    {
        **_WHO, **_FIGURES, **dict.fromkeys(("n", "n_missing"), _number), "note": _text, "letters": _text,
        "whole": _maybe(_object({**_FIGURES, "n": _number})), "corrected": _maybe(_ESTIMATE),
        "score_set": _maybe(_text),
    },
    {**dict.fromkeys(EXTRA, _ESTIMATE), "n_in_training": _number, "values": _list(_number)},
)  # fmt: skip


def _alike(table: Any, where: str) -> Iterator[Fault]:
    """The same figures in every row."""
    figures = [{name for name in EXTRA if name in row} for row in table["rows"]]
    for place, found in enumerate(figures):
        if found != figures[0]:
            name = sorted(found ^ figures[0])[0]
            yield f"{where}.rows[{place}].{name}", "must stand in all rows or in none"


_EVALUATORS = _and(
    _table(
        {
            "level": _text, "coefficient": _text, "ceiling": _ESTIMATE,
            "test": _object({
                "names": _list(_text), "p_holm": _list(_list(_number)), "signature": _text, "note": _text,
            }),
        },
        _EVALUATOR,
        {
            "people": _one_of("ratings", *RANKINGS),
            "scores": _list(_object({"label": _text, **dict.fromkeys(("value", "low", "high"), _number)})),
        },
    ),
    _alike,
)  # fmt: skip

_DIFFERENCE = _object(
    {"a": _text, "b": _text, **dict.fromkeys(("value", "low", "high", "p", "p_holm"), _number)}, {"williams": _number}
)


def _with_all_sets(table: Any, where: str) -> Iterator[Fault]:
    for place, row in enumerate(table["rows"]):
        for found in table.get("sets", ()):
            if found["name"] not in row["cells"]:
                yield f"{where}.rows[{place}].cells.{found['name'][:50]}", "is missing"


_ENHANCED = _and(
    _table(
        {"baseline": _text},
        _object(
            {
                "evaluator": _text, "name": _text, "differences": _list(_DIFFERENCE), "n": _number,
                "cells": _map(_object({**_FIGURES, "n": _number, "signature": _text, "note": _text})),
            }
        ),
        {"sets": _list(_object({"name": _text, "origin": _text, "n_references": _number, "per_item": _number}))},
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
    return _object({**_WHO, **more, "cells": _list(cell)})


def _with_some_aspect(table: Any, where: str) -> Iterator[Fault]:
    yield from _with_cells("aspects")(table, where)
    if table["rows"] and not table["aspects"]:
        yield f"{where}.rows", "must be empty where there is no aspect"


_SLICES = _and(
    _table(
        {"key": _text, "coefficient": _text, "parts": _list(_object({"name": _text, "n": _number}))},
        _cells(_object({"raw": _ESTIMATE, "shrunken": _ESTIMATE, "weight": _number})),
    ),
    _with_cells("parts"),
)
_MATRIX = _and(_table({"coefficient": _text}, _cells(_maybe(_ESTIMATE))), _with_cells("rows"))
_ASPECTS = _and(
    _table(
        {"coefficient": _text, "figure": _text, "aspects": _list(_object({"aspect": _text}))},
        _cells(_ESTIMATE, score_set=_maybe(_text)),
    ),
    _with_some_aspect,
)

_COEFFICIENT = _object({"name": _text, "label": _text, **_VALUE})
_LINE = _object(
    {
        "aspect": _text, "judged": _one_of(*JUDGED), "source": _text, "scale": _text,
        "coefficients": _list(_COEFFICIENT, 1),
        **dict.fromkeys(("n_units", "n_raters", "n_judgements", "n_simulated"), _number),
    }
)  # fmt: skip


def _agreement(table: Any, where: str) -> Iterator[Fault]:
    """Lines of all aspects, or the coefficients of one."""
    row = _COEFFICIENT if isinstance(table, dict) and table.get("aspect") else _LINE
    detail: dict[str, Looks] = {"judged": _one_of(*JUDGED)} if row is _COEFFICIENT else {}
    yield from _table({"campaign": _text, "scale": _text, **detail}, row, {"notes": _list(_text)})(table, where)


#: How a table of each kind must look.
KINDS: dict[str, Looks] = {
    "systems": _SYSTEMS, "evaluators": _EVALUATORS, "enhanced": _ENHANCED, "agreement": _agreement, "slices": _SLICES,
    "matrix": _MATRIX, "aspects": _ASPECTS,
}  # fmt: skip


def _covariates(value: Any, where: str) -> Iterator[Fault]:
    try:
        covariates_of({"covariates": value if isinstance(value, str) else "?"})
    except ValueError as error:
        yield where, str(error)


#: What can be asked for where there is a choice.
CHOICES: dict[str, Looks] = {
    "method": _one_of("mean", *RANKINGS), "ratings": _one_of("raw", "z", "rank"), "systems": _one_of(*LEFT_OUT),
    "level": _one_of("segment", "dialogue", "system"), "grouping": _one_of("none", "item", "system"),
    "coefficient": _one_of(*COEFFICIENTS, "acc-eq", "pa", "spa"), "test": _one_of(*TESTS),
    "judged": _one_of("", *JUDGED), "scale": _one_of("auto", "nominal", "ordinal", "interval", "ratio"),
    "weights": _one_of("none", "propensity"), "covariates": _covariates, "people": _one_of("ratings", *RANKINGS),
}  # fmt: skip


def _params(value: Any, where: str) -> Iterator[Fault]:
    """Names and texts; what the resamples are drawn by are numbers."""
    yield from _map(_anything)(value, where)
    for name, given in value.items() if isinstance(value, dict) else ():
        if name not in ("seed", "resamples"):
            yield from CHOICES.get(name, _text)(given, f"{where}.{name[:50]}")
        elif type(given) is not int or not 0 <= given <= MOST_DRAWS:
            yield f"{where}.{name}", f"must be a whole number from 0 to {MOST_DRAWS:,}"


#: Around a table: what was asked for, and the sets behind it.
_ENTRY = _object(
    {"kind": _text, "params": _params, "table": _object({"kind": _text})},
    {
        "sets": _list(_text), "references": _list(_text),
        "tables": _map(_object({"params": _params, "sets": _list(_text)})),
    },
)  # fmt: skip
_OF_EVALUATORS = ("level", "grouping", "systems", "references", "ratings")
#: What computing a table again reads of its settings, and of what stands beside them.
_NEEDED: dict[str, tuple[str, ...]] = {
    "systems": ("by", "method", "ratings", "systems"), "evaluators": _OF_EVALUATORS,
    "enhanced": ("level", "grouping", "systems", "ratings"), "agreement": ("aspect", "judged", "campaign", "scale"),
    "slices": ("coefficient", "systems", "references", "ratings"),
    "matrix": ("level", "coefficient", "systems", "references"), "aspects": (*_OF_EVALUATORS, "coefficient"),
}  # fmt: skip
_BEHIND: dict[str, tuple[str, ...]] = {
    "systems": ("sets",), "evaluators": ("sets",), "enhanced": ("sets", "references"), "agreement": (),
    "slices": ("sets",), "matrix": ("sets",), "aspects": ("tables",),
}  # fmt: skip
