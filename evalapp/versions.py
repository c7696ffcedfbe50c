"""Versions at the end of table signatures, and conversion of tables and settings from earlier versions."""

import re
from collections.abc import Mapping
from typing import Any

from evalapp import __version__

#: The version of tables, files and evaluators without one.
FIRST = "0.1.0"
_VERSION = re.compile(r"\|v:([^|]*)\Z")
_RATINGS_Z = re.compile(r"(?<=\|ratings:)z(?=\||\Z)")


def signed(signature: str) -> str:
    """Return the signature of a table with the current version."""
    return f"{signature}|v:{__version__}"


def split_version(signature: str) -> tuple[str, str]:
    """Return the signature without its version, and the version (`FIRST` if it has none)."""
    match = _VERSION.search(signature)
    return (signature, FIRST) if match is None else (signature[: match.start()], match[1])


def read_settings(settings: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    """Return settings of `version` in today's form: `ratings: z` of 0.1.0 is `z-shrunk` today."""
    is_renamed = (version or FIRST) == FIRST and settings.get("ratings") == "z"
    return {**settings, "ratings": "z-shrunk"} if is_renamed else dict(settings)


def read_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored table in today's form, with the same values."""
    signature = str(table.get("signature", ""))
    if split_version(signature)[1] != FIRST:
        return dict(table)
    converted = read_settings(table, FIRST)
    if "signature" in converted:
        converted["signature"] = _RATINGS_Z.sub("z-shrunk", signature)
    if isinstance(converted.get("aspects"), list):
        # The table of evaluators by aspect has the signature of each aspect's own table.
        converted["aspects"] = [read_table(row) if isinstance(row, dict) else row for row in converted["aspects"]]
    return converted


def read_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of `leaderboard.json` (settings and table) in today's form."""
    version = split_version(str(entry["table"].get("signature", "")))[1]
    converted = {**entry, "params": read_settings(entry["params"], version), "table": read_table(entry["table"])}
    if "tables" in entry:
        converted["tables"] = {
            name: {**part, "params": read_settings(part["params"], version)} for name, part in entry["tables"].items()
        }
    return converted
