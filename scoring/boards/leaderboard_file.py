"""Check `leaderboard.json` before it is read: its entries, their parameters and the table of each board."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import PlainValidator

from scoring.boards.choices import CHOICES, EARLIER
from scoring.boards.registry import get_board, list_boards
from scoring.boards.shapes import ABSENT, Fault, Part, fault, find_faults
from scoring.boards.systems.rankings import parse_covariates

MAX_TABLES = 5_000
MAX_DRAWS = 1_000_000
DRAWS = ("seed", "resamples")
#: Values that old exports have and queries no longer take, or write as an empty text.
OLD_VALUES = {"test": (EARLIER,), "judged": ("",)}


def _check_params(value: Any) -> Any:
    if not isinstance(value, dict):
        raise fault("must be an object")
    for name, given in value.items():
        path = f".{name[:50]}"
        if name in DRAWS:
            if type(given) is not int or not 0 <= given <= MAX_DRAWS:
                raise fault(f"must be a whole number from 0 to {MAX_DRAWS:,}", path)
        elif name == "covariates":
            try:
                parse_covariates({"covariates": given if isinstance(given, str) else "?"})
            except ValueError as error:
                raise fault(str(error), path) from error
        elif name in CHOICES:
            known = [*OLD_VALUES.get(name, ()), *CHOICES[name]]
            if given not in known:
                raise fault(f"must be one of {', '.join(known)}", path)
        elif not isinstance(given, str):
            raise fault("must be a text", path)
    return value


Params = Annotated[dict[str, Any], PlainValidator(_check_params, json_schema_input_type=dict[str, Any])]


class AspectEntry(Part):
    params: Params
    sets: list[str]


class AnyTable(Part):
    kind: str


class Entry(Part):
    """A table with its parameters and the score sets it was computed from."""

    kind: str
    params: Params
    table: AnyTable
    sets: list[str] = ABSENT
    references: list[str] = ABSENT
    tables: dict[str, AspectEntry] = ABSENT


def list_faults(document: Any) -> Iterator[Fault]:
    """Yield the first fault of each table of a `leaderboard.json`, or the fault of the document itself."""
    whole = find_document_fault(document)
    if whole is not None:
        yield whole
        return
    faults = (find_table_fault(entry, place) for place, entry in enumerate(document["tables"]))
    yield from (fault for fault in faults if fault is not None)


def find_document_fault(document: Any) -> Fault | None:
    """Return the fault of the document, whatever its tables contain."""
    tables = document.get("tables") if isinstance(document, dict) else None
    if not isinstance(tables, list):
        return "tables", "must be a list of tables"
    if len(tables) > MAX_TABLES:
        return "tables", f"has {len(tables):,} tables; no export has more than {MAX_TABLES:,}"
    return None


def find_table_fault(entry: Any, place: int, *, to_compute: bool = False) -> Fault | None:
    """Return the first fault of the table at this place; with `to_compute` also if it lacks what recomputing needs."""
    return next(_find_faults(entry, f"tables[{place}]", to_compute), None)


def _find_faults(entry: Any, where: str, to_compute: bool) -> Iterator[Fault]:
    yield from find_faults(Entry, entry, where)
    kind = entry["kind"]
    if kind not in list_boards():
        yield f"{where}.kind", f"must be one of {', '.join(sorted(list_boards()))}, not “{kind[:50]}”"
    board = get_board(kind)
    rules = board.module("table")
    if to_compute:
        yield from _find_missing(entry, where, rules)
    else:
        yield from _find_absent(getattr(rules, "SHOWN", ()), entry["table"], f"{where}.table")
    yield from find_faults(board.choose_model(entry["table"]), entry["table"], f"{where}.table")
    if hasattr(rules, "find_further_faults"):
        yield from rules.find_further_faults(entry, where)
    if entry["table"]["kind"] != kind:
        yield f"{where}.table.kind", f"must be “{kind}”, as its entry says"


def _find_missing(entry: Any, where: str, rules: Any) -> Iterator[Fault]:
    """Yield parameters and members that are needed to recompute the table and are absent."""
    yield from _find_absent(rules.NEEDED, entry["params"], f"{where}.params")
    for name, part in (entry.get("tables") or {}).items() if hasattr(rules, "NEEDED_INSIDE") else ():
        yield from _find_absent(rules.NEEDED_INSIDE, part["params"], f"{where}.tables.{name[:50]}.params")
    members, inside = getattr(rules, "MEMBERS", ("sets",)), ()
    if hasattr(rules, "needed_members"):
        members, inside = rules.needed_members(entry)
    yield from _find_absent(members, entry, where)
    yield from _find_absent(inside, entry["table"], f"{where}.table")


def _find_absent(names: Iterable[str], value: Mapping[str, Any], where: str) -> Iterator[Fault]:
    yield from ((f"{where}.{name}", "is missing") for name in names if name not in value)
