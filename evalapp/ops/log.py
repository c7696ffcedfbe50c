"""Merge the output of several processes into one log: `name | line`, with a colour per name on a terminal."""

import contextlib
import os
import re
from collections.abc import Mapping
from typing import TextIO

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
MAX_LINE = 8192


def wants_colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether to use colours: on a terminal, unless NO_COLOR is set or it does not support them."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class MergedLog:
    """Writes complete lines with the name of their process; buffers incomplete lines."""

    def __init__(self, stream: TextIO, names: list[str], *, colour: bool) -> None:
        self._stream = stream
        self._width = max((len(name) for name in names), default=0)
        self._colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)} if colour else {}
        self._rest: dict[str, bytes] = {}

    def feed(self, name: str, data: bytes) -> None:
        """Add bytes from a process."""
        *lines, rest = (self._rest.get(name, b"") + data).split(b"\n")
        if len(rest) > MAX_LINE:
            lines, rest = [*lines, rest], b""
        self._rest[name] = rest
        for line in lines:
            self.line(name, line.decode("utf-8", "replace"))

    def flush(self, name: str) -> None:
        """Write the last line of a process, which has no line break."""
        rest = self._rest.pop(name, b"")
        if rest.strip():
            self.line(name, rest.decode("utf-8", "replace"))

    def line(self, name: str, text: str) -> None:
        text = _ESCAPES.sub("", text).rstrip()
        if not text:
            return
        label = f"{name:<{self._width}} |"
        if name in self._colours:
            label = f"\x1b[{self._colours[name]}m{label}\x1b[0m"
        # The processes must be stopped in order even if the terminal is closed.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{label} {text}\n")
            self._stream.flush()
