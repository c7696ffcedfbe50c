"""Checks of `leaderboard.json` before anything reads it: the entries, their parameters and the table of each board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import PlainValidator

from scoring.boards.choices import CHOICES, EARLIER
from scoring.boards.registry import get_board, list_boards
from scoring.boards.shapes import ABSENT, Fault, Part, fault, find_faults
from scoring.boards.systems.rankings import covariates_of

#: More tables than any project has, and more draws than any table.
MOST_TABLES = 5_000
MOST_DRAWS = 1_000_000
DRAWS = ("seed", "resamples")
#: Values of parameters that queries no longer have, or write as an empty text.
ALSO = {"test": (EARLIER,), "judged": ("",)}


def _check_params(value: Any) -> Any:
    """Names and texts, and numbers for the resamples."""
    if not isinstance(value, dict):
        raise fault("must be an object")
    for name, given in value.items():
        path = f".{name[:50]}"
        if name in DRAWS:
            if type(given) is not int or not 0 <= given <= MOST_DRAWS:
                raise fault(f"must be a whole number from 0 to {MOST_DRAWS:,}", path)
        elif name == "covariates":
            _check_covariates(given, path)
        elif name in CHOICES:
            known = [*ALSO.get(name, ()), *CHOICES[name]]
            if given not in known:
                raise fault(f"must be one of {', '.join(known)}", path)
        elif not isinstance(given, str):
            raise fault("must be a text", path)
    return value


def _check_covariates(given: Any, path: str) -> None:
    try:
        covariates_of({"covariates": given if isinstance(given, str) else "?"})
    except ValueError as error:
        raise fault(str(error), path) from error


Params = Annotated[dict[str, Any], PlainValidator(_check_params, json_schema_input_type=dict[str, Any])]


class InnerEntry(Part):
    params: Params
    sets: list[str]


class TableOfKind(Part):
    kind: str


class Entry(Part):
    """A table with its parameters and the sets of scores behind it."""

    kind: str
    params: Params
    table: TableOfKind
    sets: list[str] = ABSENT
    references: list[str] = ABSENT
    tables: dict[str, InnerEntry] = ABSENT


def faults_of(document: Any) -> Iterator[Fault]:
    """What is wrong with the content of a `leaderboard.json`, the first fault of each table; nothing if it is sound."""
    whole = fault_of_list(document)
    if whole is not None:
        yield whole
        return
    for place, entry in enumerate(document["tables"]):
        found = fault_of_table(entry, place)
        if found is not None:
            yield found


def fault_of_list(document: Any) -> Fault | None:
    """What is wrong with the document itself, whatever its tables are."""
    found = document.get("tables") if isinstance(document, dict) else None
    if not isinstance(found, list):
        return "tables", "must be a list of tables"
    if len(found) > MOST_TABLES:
        return "tables", f"has {len(found):,} tables; no export has more than {MOST_TABLES:,}"
    return None


def fault_of_table(entry: Any, place: int, *, to_compute: bool = False) -> Fault | None:
    """The first fault of the table at this place. `to_compute`: also whether computing it again has all that it
    needs."""
    return next(_find_faults(entry, f"tables[{place}]", to_compute), None)


def _find_faults(entry: Any, where: str, to_compute: bool) -> Iterator[Fault]:
    yield from find_faults(Entry, entry, where)
    kind = entry["kind"]
    if kind not in list_boards():
        yield f"{where}.kind", f"must be one of {', '.join(sorted(list_boards()))}, not “{kind[:50]}”"
    rules = get_board(kind).module("table")
    if to_compute:
        yield from _find_missing(entry, where, rules)
    else:
        yield from _absent(getattr(rules, "SHOWN", ()), entry["table"], f"{where}.table")
    model = rules.choose_model(entry["table"]) if hasattr(rules, "choose_model") else rules.Table
    yield from find_faults(model, entry["table"], f"{where}.table")
    if hasattr(rules, "find_further_faults"):
        yield from rules.find_further_faults(entry, where)
    if entry["table"]["kind"] != kind:
        yield f"{where}.table.kind", f"must be “{kind}”, as its entry says"


def _find_missing(entry: Any, where: str, rules: Any) -> Iterator[Fault]:
    """Parameters and members without which the table cannot be computed again."""
    yield from _absent(rules.NEEDED, entry["params"], f"{where}.params")
    for name, part in (entry.get("tables") or {}).items() if hasattr(rules, "NEEDED_INSIDE") else ():
        yield from _absent(rules.NEEDED_INSIDE, part["params"], f"{where}.tables.{name[:50]}.params")
    members, inside = getattr(rules, "MEMBERS", ("sets",)), ()
    if hasattr(rules, "needed_members"):
        members, inside = rules.needed_members(entry)
    yield from _absent(members, entry, where)
    yield from _absent(inside, entry["table"], f"{where}.table")


def _absent(names: Any, value: Mapping[str, Any], where: str) -> Iterator[Fault]:
    for name in names:
        if name not in value:
            yield f"{where}.{name}", "is missing"
