"""What plans of judging and of writing share: values with their faults by field, and the choice of items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalapp.names import explain_hidden

from .answers import Problem

#: Members of `items` that are no values in the items' meta.
ITEM_CHOICES = frozenset({"sample", "seed", "keys", "groups", "search"})


def slugify(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63].strip("-")


def is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


class Reader:
    """The members of a plan; what is absent or null has its default, and so has what is wrong, with a problem told."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.problems: list[Problem] = []

    def say(self, where: str, message: str) -> None:
        self.problems.append((where, message))

    def refuse_others(self, known: frozenset[str] | set[str]) -> None:
        for name in self.raw:
            if name not in known:
                self.say(str(name), f"A plan has no “{name}”. It has: {', '.join(sorted(known))}.")

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        found = self.whole_or_none(name, low, high)
        return default if found is None else found

    def whole_or_none(self, name: str, low: int, high: int) -> int | None:
        value = self.raw.get(name)
        if value is not None and not is_whole(value, low, high):
            self.say(name, f"Use a whole number from {low} to {high}.")
            return None
        return value

    def text(self, name: str, limit: int) -> str:
        value = self.raw.get(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > limit:
            self.say(name, f"Use a text of at most {limit} characters.")
            return ""
        return value.strip()

    def name(self, name: str, limit: int) -> str:
        """A text of one line, without characters that no name may hold."""
        value = self.text(name, limit)
        self.check_name(name, value)
        return value

    def check_name(self, where: str, value: str) -> None:
        if fault := explain_hidden(value):
            self.say(where, fault)

    def items(self) -> dict[str, Any]:
        """The choice of items; empty means all, a number alone so many of them."""
        items = self.raw.get("items") or "all"
        if items == "all":
            return {}
        if is_whole(items, 1, 10_000_000):
            return {"sample": items}
        if not isinstance(items, Mapping):
            self.say("items", 'Use "all", {"sample": 40}, {"keys": [...]}, {"groups": [...]} or {"search": "words"}.')
            return {}
        for name, value in items.items():
            if name not in ITEM_CHOICES and not isinstance(value, (str, int, float, bool)):
                self.say(f"items.{name}", "A value in the items' meta is a text, a number or a truth value.")
        if items.get("sample") is not None and not is_whole(items["sample"], 1, 10_000_000):
            self.say("items.sample", "Use a whole number above 0.")
        if not is_whole(items.get("seed", 0), -(2**63), 2**63):
            self.say("items.seed", "Use a whole number.")
        for name in ("keys", "groups"):
            value = items.get(name)
            if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
                self.say(f"items.{name}", "Use a list of texts.")
        if not isinstance(items.get("search", ""), str):
            self.say("items.search", "Use a text.")
        return dict(items)

    def options(self) -> Mapping[str, Any]:
        raw = self.raw.get("options")
        if raw is None:
            return {}
        if not isinstance(raw, Mapping):
            self.say("options", "Options are an object.")
            return {}
        return raw
