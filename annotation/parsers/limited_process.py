"""A process of limited memory that reads an untrusted file from stdin and writes lines of JSON to stdout. A small file
can unpack to any size, and libraries allocate memory before they can be asked how much."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import orjson

from evalapp.translation import gettext as _

from .faults import StopReading

_ROOT = Path(__file__).resolve().parents[2]
_LONGEST_LINE = 1 << 28


def read_process(
    stack: ExitStack, module: str, arguments: Iterable[object], raw: IO[bytes], damaged: Callable[[int], str]
) -> Iterator[list[Any]]:
    """The lines of the process. `[place, message, "stop"]` raises `StopReading`; `damaged` makes the message for a
    process that was killed after so many lines, because of its memory limit or damaged content."""
    lines = 0
    printed = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, *map(str, arguments)],
        stdin=_as_file(raw, stack),
        stdout=subprocess.PIPE,
        stderr=printed,
        env=_environment(),
    )
    stack.callback(_end, process)
    assert process.stdout is not None
    while line := process.stdout.readline(_LONGEST_LINE):
        match orjson.loads(line):
            case [place, message, "stop"]:
                raise StopReading(message, place)
            case read:
                lines += 1
                yield read
    if code := process.wait():
        if code > 0:
            printed.seek(0)
            raise RuntimeError(f"{module} failed:\n{printed.read().decode(errors='replace')[-4000:]}")
        raise StopReading(damaged(lines), lines)


def _as_file(raw: IO[bytes], stack: ExitStack) -> IO[bytes]:
    """`raw`, or a temporary copy if it is not a file of the system."""
    raw.seek(0)
    try:
        raw.fileno()
    except OSError:
        copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        copy.write(raw.read())
        copy.seek(0)
        return copy
    return raw


def _environment() -> dict[str, str]:
    """Without secrets, because the process reads untrusted content. A single memory arena, so that the limit counts
    used memory."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "LANG", "HOME") if name in os.environ}
    return {**kept, "PYTHONPATH": str(_ROOT), "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}


def _end(process: subprocess.Popen[Any]) -> None:
    assert process.stdout is not None
    process.stdout.close()
    process.kill()
    process.wait()


def print_lines(lines: Iterable[list[Any]], memory: int) -> int:
    """In the process: limit the memory to `memory` bytes more than now, and write the lines."""
    limit_memory(memory)
    out = sys.stdout.buffer
    try:
        try:
            for line in lines:
                out.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except StopReading as stop:
            out.write(orjson.dumps([stop.line, stop.message, "stop"], option=orjson.OPT_APPEND_NEWLINE))
        except MemoryError:
            message = _("Reading the file needs more than %(memory)d MB of memory.", memory=memory >> 20)
            out.write(orjson.dumps([None, message, "stop"], option=orjson.OPT_APPEND_NEWLINE))
        out.flush()
    except BrokenPipeError:
        return 0  # the reader has stopped
    return 0


def limit_memory(memory: int) -> None:
    """Limit the memory of the process. If the system does not report memory usage, only the counting of bytes limits
    it."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        most = int(statm.read_text().split()[0]) * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
