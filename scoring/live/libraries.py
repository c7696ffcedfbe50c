"""The libraries that evaluators with a network need, loaded in a worker by whoever comes first."""

from __future__ import annotations

import threading
from importlib import import_module

#: What the first answer would have to wait for.
HEAVY = ("torch", "transformers", "scoring.ml")

_alone = threading.Lock()


def load_libraries() -> None:
    """One thread at a time: `transformers` puts another module in its own place while it is imported, and a thread
    that asks for it meanwhile is left with the first one, which is empty."""
    with _alone:
        for name in HEAVY:
            import_module(name)
