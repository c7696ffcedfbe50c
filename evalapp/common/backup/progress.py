"""Progress messages of long work."""

import time
from collections.abc import Callable

Say = Callable[[str], None]
SECONDS = 2.0


def throttle(say: Say) -> Say:
    """Return `say`, limited to one message every two seconds; other messages are dropped."""
    last = time.monotonic()

    def say_sometimes(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS:
            last = time.monotonic()
            say(text)

    return say_sometimes
