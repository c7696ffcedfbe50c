"""Parsing that judging and writing plans share: values with errors by field, common fields, and the choice of items."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalapp.names import explain_hidden
from evalapp.translation import gettext as _

from .answers import Problem

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]*")
#: Members of `items` other than values in the items' meta.
ITEM_CHOICES = frozenset({"sample", "seed", "keys", "groups", "search"})


def slugify(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63].strip("-")


def is_whole(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


@dataclass(frozen=True)
class Option:
    """A rule for an option of a plan: its default, and either its `choices` (one of them, or a list if `type` is list),
    or its type with the limits of a number or the maximum length (`high`) of a text. `optional`: it can be null."""

    default: Any
    low: float = 0
    high: float = 1
    choices: tuple[str, ...] = ()
    type: type = bool
    optional: bool = False

    def explain(self, value: Any) -> str:
        """The error message for a value; empty if it is valid."""
        if value is None and self.optional:
            return ""
        choices = ", ".join(filter(None, self.choices))
        if self.type is list:
            is_valid = isinstance(value, (list, tuple)) and value and all(one in self.choices for one in value)
            message = _("Use one or more of: %(choices)s, each at most once.", choices=choices)
            return "" if is_valid and len(set(value)) == len(value) else message
        if self.choices:
            return "" if value in self.choices else _("Use one of: %(choices)s.", choices=choices)
        if self.type is bool:
            return "" if isinstance(value, bool) else _("Use true or false.")
        if self.type is str:
            message = _("Use a text of at most %(n)d characters.", n=self.high)
            return "" if isinstance(value, str) and len(value) <= self.high else message
        if self.type is int:
            message = _("Use a whole number from %(low)d to %(high)d.", low=self.low, high=self.high)
            return "" if is_whole(value, self.low, self.high) else message
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        message = _("Use a number from %(low)g to %(high)g.", low=self.low, high=self.high)
        return "" if is_number and self.low <= value <= self.high else message


def get_defaults(rules: Mapping[str, Option]) -> dict[str, Any]:
    return {name: rule.default for name, rule in rules.items()}


@dataclass(frozen=True, kw_only=True)
class BasePlan:
    """The fields that both kinds of plan have."""

    name: str
    slug: str
    kind: str
    guidelines: str
    seed: int
    lease_minutes: int
    max_per_annotator: int | None
    options: dict[str, Any]


class Reader:
    """Reads the members of a plan. Absent, null and invalid members get their default; errors are collected."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.problems: list[Problem] = []

    def say(self, where: str, message: str) -> None:
        self.problems.append((where, message))

    def refuse_others(self, known: frozenset[str] | set[str]) -> None:
        for name in self.raw:
            if name not in known:
                message = _("A plan has no field “%(name)s”. Known fields: %(known)s.")
                self.say(str(name), message % {"name": name, "known": ", ".join(sorted(known))})

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        value = self.whole_or_none(name, low, high)
        return default if value is None else value

    def whole_or_none(self, name: str, low: int, high: int) -> int | None:
        value = self.raw.get(name)
        if value is not None and not is_whole(value, low, high):
            self.say(name, _("Use a whole number from %(low)d to %(high)d.", low=low, high=high))
            return None
        return value

    def text(self, name: str, limit: int) -> str:
        value = self.raw.get(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > limit:
            self.say(name, _("Use a text of at most %(n)d characters.", n=limit))
            return ""
        return value.strip()

    def name(self, name: str, limit: int) -> str:
        """A text without characters that are not allowed in names."""
        value = self.text(name, limit)
        self.check_name(name, value)
        return value

    def check_name(self, where: str, value: str) -> None:
        if fault := explain_hidden(value):
            self.say(where, fault)

    def base(self, kinds: tuple[str, ...], kind: Any, slug_length: int) -> dict[str, Any]:
        """The fields of `BasePlan` except the options. `slug_length` is the maximum length of the slug."""
        name = self.name("name", limit=200)
        if not name:
            self.say("name", _("Give the campaign a name; annotators see it."))
        slug = self.text("slug", limit=63) or slugify(name)[:slug_length].strip("-")
        if name and (not _SLUG.fullmatch(slug) or len(slug) > slug_length):
            self.say("slug", _("Use a-z, 0-9 and hyphens, at most %(n)d characters.", n=slug_length))
        if kind not in kinds:
            self.say("kind", _("Use one of: %(choices)s.", choices=", ".join(kinds)))
            kind = kinds[0]
        return {
            "name": name,
            "slug": slug,
            "kind": kind,
            "guidelines": self.text("guidelines", limit=100_000),
            "seed": self.whole("seed", 13, 0, 2**31 - 1),
            "lease_minutes": self.whole("lease_minutes", 30, 1, 1440),
            "max_per_annotator": self.whole_or_none("max_per_annotator", 1, 10_000_000),
        }

    def items(self) -> dict[str, Any]:
        """The choice of items. Empty means all; a number alone is the size of a sample."""
        items = self.raw.get("items") or "all"
        if items == "all":
            return {}
        if is_whole(items, 1, 10_000_000):
            return {"sample": items}
        if not isinstance(items, Mapping):
            choices = '"all", {"sample": 40}, {"keys": [...]}, {"groups": [...]}, {"search": "words"}'
            self.say("items", _("Use one of: %(choices)s.", choices=choices))
            return {}
        for name, value in items.items():
            if name not in ITEM_CHOICES and not isinstance(value, (str, int, float, bool)):
                self.say(f"items.{name}", _("A value in the items' meta is a text, a number, true or false."))
        if items.get("sample") is not None and not is_whole(items["sample"], 1, 10_000_000):
            self.say("items.sample", _("Use a whole number above 0."))
        if not is_whole(items.get("seed", 0), -(2**63), 2**63):
            self.say("items.seed", _("Use a whole number."))
        for name in ("keys", "groups"):
            value = items.get(name)
            if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
                self.say(f"items.{name}", _("Use a list of texts."))
        if not isinstance(items.get("search", ""), str):
            self.say("items.search", _("Use a text."))
        return dict(items)

    def options(self, rules: Mapping[str, Option]) -> dict[str, Any]:
        """The valid options of the plan, without defaults."""
        raw = self.raw.get("options")
        if raw is None:
            return {}
        if not isinstance(raw, Mapping):
            self.say("options", _("Options are an object."))
            return {}
        options = {}
        for name, value in raw.items():
            rule = rules.get(name)
            if rule is None:
                message = _("There is no such option. Options: %(names)s.", names=", ".join(rules))
            else:
                message = rule.explain(value)
            if message:
                self.say(f"options.{name}", message)
            else:
                options[name] = value
        return options
