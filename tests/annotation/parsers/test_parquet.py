"""Parquet files as uploads: typed rows, JSON in text columns, and unreadable files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.parsers import Limits, StopReading, is_derived, name_file
from annotation.parsers.rows import read_rows

LIMITS = Limits(row_bytes=10_000, rows=100, total_bytes=100_000)


def read(raw: bytes, limits: Limits = LIMITS) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
    faults: list[tuple[Any, ...]] = []
    rows = read_rows(io.BytesIO(raw), "parquet", limits, lambda *fault: faults.append(fault), "comparisons")
    return [row for _, row in rows], faults


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def test_nulls_are_absent_and_objects_are_json() -> None:
    rows, faults = read(
        as_parquet(
            [
                {"item": "i1", "step_a": 5, "system_b": '{"reference": 1}', "meta": '{"p": 0.5}', "simulated": False},
                {"item": "i2", "step_a": None, "system_b": "{curly}", "meta": None, "simulated": None},
            ]
        )
    )
    assert faults == []
    assert rows == [
        {"item": "i1", "step_a": 5, "system_b": {"reference": 1}, "meta": {"p": 0.5}, "simulated": False},
        {"item": "i2", "system_b": "{curly}"},
    ]


@pytest.mark.slow
def test_one_row_group_of_much_text_is_read_in_little_memory() -> None:
    """pandas writes up to a million rows into one group. The process that reads may use 320 MB."""
    n = 70_000
    texts = [f"{k:08d} " + "word " * 320 for k in range(n)]
    sink = io.BytesIO()
    pq.write_table(pa.table({"item": [str(k) for k in range(n)], "rater": texts}), sink, row_group_size=n)
    rows = read_rows(
        io.BytesIO(sink.getvalue()), "parquet", Limits(10_000, n, 1 << 30), lambda *fault: pytest.fail(str(fault)),
        "comparisons",
    )  # fmt: skip
    assert sum(1 for _ in rows) == n


def test_invalid_json_and_unstorable_text() -> None:
    from datetime import date

    rows, faults = read(as_parquet([{"item": "a", "meta": "{"}, {"item": "b\0", "meta": None}]))
    assert rows == []
    assert [(line, field) for line, field, _ in faults] == [(1, "meta"), (2, "")]
    _, faults = read(as_parquet([{"item": "a", "day": date(2026, 5, 1)}]))
    ((line, field, message),) = faults
    assert (line, field, "date" in message) == (1, "day", True)


def test_corrupt_or_oversized_parquet_is_refused() -> None:
    whole = as_parquet([{"item": f"i{k}"} for k in range(50)])
    for raw, message in (
        (b"PAR1 nothing", "is not Parquet"),
        (whole[:-20], "is not Parquet"),
        (as_parquet([{"item": "x"}] * 101), "more than 100 rows"),
    ):
        with pytest.raises(StopReading, match=message):
            read(raw)
    with pytest.raises(StopReading, match="unpacks to more than 100 bytes"):
        read(whole, Limits(row_bytes=10, rows=100, total_bytes=100))
    with pytest.raises(StopReading, match="has no rows"):
        read(as_parquet([{"item": "x"}])[:0] + _empty())


@pytest.mark.slow
@pytest.mark.parametrize("n", [24, 24_000])
def test_a_dictionary_page_that_does_not_fit_in_memory_is_refused_with_the_way_out(tmp_path: Path, n: int) -> None:
    """A column of 240 MB whose texts are all in one dictionary page, which the library unpacks as a whole."""
    texts = pa.array([f"{k:08d}" + "x" * (240_000_000 // n - 8) for k in range(n)])
    column = pa.DictionaryArray.from_arrays(pa.array([*range(n), *range(n)], pa.int32()), texts)
    path = tmp_path / "outputs.parquet"
    pq.write_table(pa.table({"text": column}), path, compression="zstd", dictionary_pagesize_limit=1 << 30)
    described = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert described.has_dictionary_page
    assert described.total_uncompressed_size >= 240_000_000
    rows = []
    with path.open("rb") as file, pytest.raises(StopReading, match=r"more than 320 MB at once.*use_dictionary=False"):
        rows += read_rows(file, "parquet", Limits(), lambda *fault: rows.append(fault), "outputs")
    assert rows == []


def _empty() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"item": pa.array([], pa.string())}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "kind", "format"),
    [
        ("ratings.parquet", "ratings", "parquet"),
        ("ratings-2026.safe.csv", "ratings", "safe-csv"),
        ("ratings.safe.csv.gz", "ratings", "safe-csv"),
        ("score_sets.jsonl", "score_sets", "jsonl"),
        ("scores.tsv", "scores", "tsv"),
        ("leaderboard.json", "leaderboard", "json"),
    ],
)
def test_names_of_an_export(name: str, kind: str, format: str) -> None:
    found = name_file(name)
    assert found is not None
    assert (found.kind, found.format) == (kind, format)


@pytest.mark.parametrize("name", ["README.md", "DATASHEET.md", "aggregated_ratings.safe.csv", "audit.jsonl"])
def test_generated_files_are_silently_ignored(name: str) -> None:
    assert name_file(name) is None
    assert is_derived(name)
    assert not is_derived(f"my-{name}")


def test_nan_and_invalid_utf8() -> None:
    numbers = [float("nan"), float("inf"), 1.5]
    rows, faults = read(as_parquet([{"item": "a", "value": number} for number in numbers]))
    assert rows == [{"item": "a", "value": 1.5}]
    assert [(line, field) for line, field, _ in faults] == [(1, "value"), (2, "value")]
    ends = pa.array([0, 2], pa.int32()).buffers()[1]
    latin = pa.StringArray.from_buffers(1, ends, pa.py_buffer(b"\xe9\xff"))
    sink = io.BytesIO()
    pq.write_table(pa.table({"item": latin}), sink)
    with pytest.raises(StopReading, match="UTF-8"):
        read(sink.getvalue())
