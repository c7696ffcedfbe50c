"""Numbers as texts for people, with a true minus sign. Files for machines keep the hyphen."""

import math

MINUS = "−"


def show_figure(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """Format a number with fixed digits; `sign` writes plus signs too. Undefined is a dash."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", MINUS)
