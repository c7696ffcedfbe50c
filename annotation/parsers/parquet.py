"""Rows of a Parquet file, as written by exports: typed columns, with objects as JSON text.

A small file can unpack to any size, and the library allocates memory before it can be asked how much. So a separate
process with limited memory reads the file (`parquet_process`), and writes each checked row as a line of JSON."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import orjson

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

from .faults import Limits, Lost, Report, Row, StopReading

_MODULE = "annotation.parsers.parquet_process"
_ROOT = Path(__file__).resolve().parents[2]
_LONGEST_LINE = 1 << 28
_DAMAGED = gettext_noop("The file ends in .parquet and is not Parquet, or is damaged. Write it again.")


def read_parquet(
    raw: IO[bytes], limits: Limits, report: Report, lost: Lost = lambda line, row: None, table: str = ""
) -> Iterator[tuple[int, Row]]:
    """(row number from 1, row); nulls are absent. `lost` gets the identifying values of a faulty row."""
    rows = 0
    with ExitStack() as stack:
        printed = stack.enter_context(tempfile.TemporaryFile())
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                _MODULE,
                *map(str, (limits.row_bytes, limits.rows, limits.total_bytes)),
                table,
            ],
            stdin=_as_file(raw, stack),
            stdout=subprocess.PIPE,
            stderr=printed,
            env=_environment(),
        )
        stack.callback(_end, process)
        assert process.stdout is not None
        while line := process.stdout.readline(_LONGEST_LINE):
            match orjson.loads(line):
                case [number, row]:
                    rows += 1
                    yield number, row
                case [number, field, message, key]:
                    rows += 1
                    report(number, field, message)
                    lost(number, key)
                case [number, message, "stop"]:
                    raise StopReading(message, number)
        if code := process.wait():
            if code > 0:
                printed.seek(0)
                raise RuntimeError(f"{_MODULE} failed:\n{printed.read().decode(errors='replace')[-4000:]}")
            # It was killed or failed, because of the memory limit or damaged content.
            raise StopReading(
                _(_DAMAGED) if not rows else _("The Parquet file cannot be read after row %(rows)s.", rows=f"{rows:,}"),
                rows,
            )
    if not rows:
        raise StopReading(_("The file has no rows. Leave it out, or write its rows."))


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
