"""The version at the end of a table's signature, and what the settings of earlier versions mean today."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalapp import __version__

#: The version of tables, files and evaluators that name none.
FIRST = "0.1.0"
_VERSION = re.compile(r"\|v:([^|]*)\Z")
_RATINGS_Z = re.compile(r"(?<=\|ratings:)z(?=\||\Z)")


def signed(signature: str) -> str:
    """The signature of a table, closed by the version that computed it."""
    return f"{signature}|v:{__version__}"


def split_version(signature: str) -> tuple[str, str]:
    """The signature without its version, and the version (`FIRST` where it names none)."""
    found = _VERSION.search(signature)
    return (signature, FIRST) if found is None else (signature[: found.start()], found[1])


def read_settings(settings: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    """Settings as today's version understands them: what 0.1.0 called `ratings: z` is `z-shrunk` now."""
    is_renamed = (version or FIRST) == FIRST and settings.get("ratings") == "z"
    return {**settings, "ratings": "z-shrunk"} if is_renamed else dict(settings)


def read_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """A stored table as today's version understands it; its figures stay as they are."""
    signature = str(table.get("signature", ""))
    if split_version(signature)[1] != FIRST:
        return dict(table)
    found = read_settings(table, FIRST)
    if "signature" in found:
        found["signature"] = _RATINGS_Z.sub("z-shrunk", signature)
    if isinstance(found.get("aspects"), list):
        # The table of evaluators by aspect repeats the signature of every aspect's own table.
        found["aspects"] = [read_table(row) if isinstance(row, dict) else row for row in found["aspects"]]
    return found


def read_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of `leaderboard.json` (settings and table) as today's version understands it."""
    version = split_version(str(entry["table"].get("signature", "")))[1]
    found = {**entry, "params": read_settings(entry["params"], version), "table": read_table(entry["table"])}
    if "tables" in entry:
        of_aspects = entry["tables"].items()
        found["tables"] = {
            name: {**part, "params": read_settings(part["params"], version)} for name, part in of_aspects
        }
    return found
