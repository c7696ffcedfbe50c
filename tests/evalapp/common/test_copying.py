"""Rows of COPY."""

from __future__ import annotations

from evalapp.common.copying import copy_line


def test_copy_row_is_one_line():
    """Escapes of the text format (PostgreSQL documentation, COPY)."""
    assert copy_line(["a\tb\nc\\d\re", None, True, -1, 0.1]) == "a\\tb\\nc\\\\d\\re\t\\N\tt\t-1\t0.1\n"
