"""Numbers as texts for people, with a true minus sign. Files for machines keep the hyphen."""

import math

MINUS = "−"
#: Languages that would read the comma of "1,250" as a decimal sign; their counts have a narrow space.
SPACED = frozenset({"ar", "de", "es", "fa", "fr", "pt", "ru"})


def show_count(value: int, language: str | None) -> str:
    """Format a whole number with groups of three digits as in `language`."""
    text = f"{value:,}".replace("-", MINUS)
    return text.replace(",", "\u202f") if language in SPACED else text


def show_figure(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """Format a number with fixed digits; `sign` writes plus signs too. Undefined is a dash."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", MINUS)
