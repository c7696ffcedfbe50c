"""Progress of long work: a line every few seconds, not one for each step."""

from __future__ import annotations

import time
from collections.abc import Callable

Say = Callable[[str], None]
SECONDS = 2.0


def seldom(say: Say) -> Say:
    """`say`, at most every two seconds; what comes between is left out."""
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS:
            last = time.monotonic()
            say(text)

    return tell
