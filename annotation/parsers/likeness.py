"""Names that look alike: they differ only in Unicode normalization, white space, or invisible characters."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from evalapp.markup import show_hidden
from evalapp.names import strip_invisible


def fold_name(name: str) -> str:
    """The same for names that look alike.

    >>> fold_name("cafe\\u0301 \\u200b") == fold_name("caf\\u00e9")
    True
    """
    if name.isascii() and name.isprintable() and " " not in name:
        return name
    return "".join(strip_invisible(unicodedata.normalize("NFC", name)).split())


def list_spellings(name: str) -> list[str]:
    """Other names that look like `name`, if they can be guessed."""
    blank = " ".join(strip_invisible(name).split())
    names = {unicodedata.normalize(form, text) for form in ("NFC", "NFD") for text in (name, blank, fold_name(name))}
    return sorted(names - {name, ""})


def find_alike(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of at least two different names that look alike."""
    groups: dict[str, set[str]] = defaultdict(set)
    for name in names:
        groups[fold_name(name)].add(name)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)


def describe_name(name: str) -> str:
    """`name` in quotes with its invisible characters, so that lookalikes can be distinguished."""
    points = " ".join(f"U+{ord(char):04X}" for char in name if not char.isascii() or char.isspace())
    return f"“{show_hidden(name)}” ({points})" if points and len(points) < 120 else f"“{show_hidden(name)}”"
