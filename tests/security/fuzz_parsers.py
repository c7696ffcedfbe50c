"""Random bytes for the upload parsers: gzip, JSONL, CSV, TSV, dataset.json, and the checks of each kind of row.
`one_input` is the function under test; hypothesis calls it in the tests, atheris guided by coverage:

    make fuzz            (SECONDS=300)
"""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

FORMS = ("jsonl", "csv", "tsv", "json")


def one_input(data: bytes) -> int:
    """Parses the bytes as an upload, with format, table and packing chosen by the first two; returns the valid rows.
    Any input must end in rows, in errors with messages, or in `StopReading`."""
    from annotation.parsers import KINDS, Limits, StopReading, check_dataset, open_plain, read_document, read_rows

    if len(data) < 2:
        return 0
    kinds = sorted(KINDS)
    form, kind, packed = FORMS[data[0] % 4], kinds[data[1] % len(kinds)], data[0] >= 128
    content = data[2:]
    raw = io.BytesIO(gzip.compress(content, 1) if packed and data[1] >= 64 else content)
    limits = Limits(10_000, 1_000, 1_000_000)
    faults: list[tuple[int, str, str]] = []
    whole = 0
    with contextlib.suppress(StopReading):
        plain = open_plain(raw, named_gzip=packed)
        if form == "json":
            check_dataset(read_document(plain, limits), lambda field, words: faults.append((0, field, words)))
            whole = 1
            return whole
        for line, row in read_rows(plain, form, limits, lambda *fault: faults.append(fault), kind):
            assert line >= 1
            assert type(row) is dict
            said = len(faults)
            checked = KINDS[kind].check(row, lambda field, words, line=line: faults.append((line, field, words)))
            assert checked is not None or len(faults) > said, "a row without a key has its fault"
            whole += checked is not None
    assert all(words for _, _, words in faults)
    return whole


def main() -> None:
    import atheris

    with atheris.instrument_imports():
        import annotation.parsers  # noqa: F401

    def tried(data: bytes) -> None:
        one_input(data)

    atheris.Setup(sys.argv, tried)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
