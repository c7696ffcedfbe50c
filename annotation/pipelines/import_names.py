"""Names of an upload that look alike: hints in its report, and suggestions if a row refers to a missing name."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from annotation.models import System
from annotation.parsers.likeness import describe_name, find_alike, fold_name, list_spellings
from annotation.selectors import stored
from evalapp.accounts.models import Project
from evalapp.translation import gettext as _

from .import_staging import Staging

#: The maximum number of hints of a kind, and of names with unusual characters that are compared.
_MOST_HINTS, _MOST_NAMES = 20, 100_000
#: Contains a character outside printable ASCII.
_UNUSUAL = "key GLOB '*[^!-~]*'"


def find_hints(project: Project, staging: Staging) -> list[str]:
    """A sentence for each group of systems, items, aspects or raters that look alike, if a new one is among them."""
    systems = set(System.objects.filter(project=project).values_list("name", flat=True))
    hints = _describe_groups("systems", _read_column(staging, "SELECT key FROM systems"), systems)
    aspects = set(_read_column(staging, "SELECT key FROM aspects WHERE id IS NOT NULL"))
    hints += _describe_groups("aspects", _read_column(staging, "SELECT key FROM aspects"), aspects)
    hints += _describe_groups(
        "items",
        _list_unusual_items(project, staging),
        set(_read_column(staging, "SELECT key FROM items WHERE act IN ('same', 'known')")),
    )
    raters = "SELECT rater FROM ratings UNION SELECT rater FROM comparisons"
    if staging.has("ratings") or staging.has("comparisons"):
        hints += _describe_groups("raters", _read_column(staging, raters), set())
    return hints


def _read_column(staging: Staging, sql: str) -> list[str]:
    return [name for (name,) in islice(staging.stream(sql), _MOST_NAMES)]


def _list_unusual_items(project: Project, staging: Staging) -> list[str]:
    """Items with unusual characters, and items of the upload and the project that look like them."""
    unusual = _read_column(staging, f"SELECT key FROM items WHERE file IS NOT NULL AND {_UNUSUAL}")
    return [*unusual, *_find_items(project, staging, {other for name in unusual for other in list_spellings(name)})]


def _find_items(project: Project, staging: Staging, names: Iterable[str]) -> list[str]:
    """Those of `names` that are items of the upload or of the project."""
    keys: list[str] = []
    wanted = iter(sorted(names))
    while part := list(islice(wanted, 500)):
        places = ",".join("?" * len(part))
        sql = f"SELECT key FROM items WHERE file IS NOT NULL AND key IN ({places})"
        keys += [key for (key,) in staging.execute(sql, part)]
        keys += stored.item_ids(project, part)
    return keys


def _describe_groups(kind: str, names: Iterable[str], known: set[str]) -> list[str]:
    groups = [group for group in find_alike({*names, *known}) if not known.issuperset(group)]
    hints = [
        _(
            "%(kind)s: %(names)s differ only in Unicode form, white space or invisible characters. If they are the "
            "same, use one name.",
            kind=kind,
            names=_(" and ").join(map(describe_name, group)),
        )
        for group in groups[:_MOST_HINTS]
    ]
    more = len(groups) - _MOST_HINTS
    if more > 0:
        hints.append(_("%(kind)s: %(n)s more groups of names that look alike.", kind=kind, n=f"{more:,}"))
    return hints


class Lookalikes:
    """Finds names that look like a missing one. Names are read when the first one is missing."""

    def __init__(self, project: Project, staging: Staging) -> None:
        self.project, self.staging = project, staging
        self.folded: dict[str, dict[str, str]] = {}

    def suggest(self, table: str, name: Any) -> str:
        """A sentence that names the lookalike, or an empty text."""
        if table not in self.folded:
            self.folded[table] = {fold_name(key): key for key in self._names(table)}
        other = self.folded[table].get(fold_name(str(name)))
        if other is None and table == "items":
            other = next(iter(_find_items(self.project, self.staging, list_spellings(str(name)))), None)
        if other is None or other == name:
            return ""
        return _(
            " There is %(name)s, which differs only in Unicode form, white space or invisible characters.",
            name=describe_name(other),
        )

    def _names(self, table: str) -> list[str]:
        if table == "items":
            return _read_column(self.staging, f"SELECT key FROM items WHERE file IS NOT NULL AND {_UNUSUAL}")
        there = f"SELECT key FROM {table} WHERE file IS NOT NULL OR id IS NOT NULL OR act = 'mentioned'"
        stored_names = System.objects.filter(project=self.project).values_list("name", flat=True)
        return _read_column(self.staging, there) + (list(stored_names) if table == "systems" else [])
