"""The libraries that neural evaluators need, loaded once in a worker."""

import threading
from importlib import import_module

#: Slow imports that would delay the first answer.
HEAVY = ("torch", "transformers", "scoring.ml")

_alone = threading.Lock()


def load_libraries() -> None:
    """Import the libraries, one thread at a time: `transformers` replaces its own module during import, and a second
    thread would keep the empty first one."""
    with _alone:
        for name in HEAVY:
            import_module(name)
