"""Names of an upload that look like others: hints in its report, and the way out where a row names what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from annotation.models import System
from annotation.parsers.likeness import describe_name, find_alike, fold_name, spellings
from annotation.selectors import stored

if TYPE_CHECKING:
    from .import_checks import Check

#: Hints of one kind that are given, and names with unusual characters that are looked at.
_MOST_HINTS, _MOST_NAMES = 20, 100_000
_ONLY = "only in Unicode form, white space or characters that cannot be seen"
#: Something besides letters, digits and signs of ASCII.
_UNUSUAL = "key GLOB '*[^!-~]*'"


def hints(check: Check) -> list[str]:
    """A sentence for each group of systems, items, aspects or raters that look alike, one of which is new."""
    staging = check.staging
    systems = set(System.objects.filter(project=check.project).values_list("name", flat=True))
    found = _say("systems", _column(check, "SELECT key FROM systems"), systems)
    aspects = set(_column(check, "SELECT key FROM aspects WHERE id IS NOT NULL"))
    found += _say("aspects", _column(check, "SELECT key FROM aspects"), aspects)
    found += _say("items", _items(check), set(_column(check, "SELECT key FROM items WHERE act IN ('same', 'known')")))
    raters = "SELECT rater FROM ratings UNION SELECT rater FROM comparisons"
    if staging.has("ratings") or staging.has("comparisons"):
        found += _say("raters", _column(check, raters), set())
    return found


def _column(check: Check, sql: str) -> list[str]:
    return [name for (name,) in islice(check.staging.stream(sql), _MOST_NAMES)]


def _items(check: Check) -> list[str]:
    """Items with unusual characters, and what looks like them in the upload and in the project."""
    unusual = _column(check, f"SELECT key FROM items WHERE file IS NOT NULL AND {_UNUSUAL}")
    return [*unusual, *_there(check, {other for name in unusual for other in spellings(name)})]


def _there(check: Check, names: Iterable[str]) -> list[str]:
    """Those that are items of the upload or of the project."""
    found: list[str] = []
    wanted = iter(sorted(names))
    while part := list(islice(wanted, 500)):
        places = ",".join("?" * len(part))
        sql = f"SELECT key FROM items WHERE file IS NOT NULL AND key IN ({places})"
        found += [key for (key,) in check.staging.execute(sql, part)]
        found += stored.item_ids(check.project, part)
    return found


def _say(kind: str, names: Iterable[str], known: set[str]) -> list[str]:
    groups = [group for group in find_alike({*names, *known}) if not known.issuperset(group)]
    said = [
        f"The {kind} {' and '.join(map(describe_name, group))} differ {_ONLY}. Are they one? Then give them one name."
        for group in groups[:_MOST_HINTS]
    ]
    more = len(groups) - _MOST_HINTS
    return [*said, f"{more:,} more such groups of {kind}."] if more > 0 else said


class Lookalikes:
    """What looks like a name that is not there. Looked up only once something is missing."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.folded: dict[str, dict[str, str]] = {}

    def say(self, table: str, name: Any) -> str:
        """A sentence, or nothing."""
        if table not in self.folded:
            self.folded[table] = {fold_name(key): key for key in self._names(table)}
        other = self.folded[table].get(fold_name(str(name)))
        if other is None and table == "items":
            other = next(iter(_there(self.check, spellings(str(name)))), None)
        if other is None or other == name:
            return ""
        return f" There is {describe_name(other)}, which differs {_ONLY}."

    def _names(self, table: str) -> list[str]:
        if table == "items":
            return _column(self.check, f"SELECT key FROM items WHERE file IS NOT NULL AND {_UNUSUAL}")
        there = f"SELECT key FROM {table} WHERE file IS NOT NULL OR id IS NOT NULL OR act = 'mentioned'"
        stored_names = System.objects.filter(project=self.check.project).values_list("name", flat=True)
        return _column(self.check, there) + (list(stored_names) if table == "systems" else [])
