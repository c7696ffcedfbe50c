"""Parsing: every kind of damage gives a message with the line and a remedy."""

from __future__ import annotations

import gzip
import io
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.parsers import Limits, StopReading, canonical, encode_row, open_plain, read_document, read_rows
from annotation.parsers.strict_json import decode_object

LIMITS = Limits(row_bytes=2000, rows=50, total_bytes=100_000)


def read(data: bytes, form: str = "jsonl", limits: Limits = LIMITS, named_gzip: bool = False):
    faults: list[tuple] = []
    plain = open_plain(io.BytesIO(data), named_gzip=named_gzip)
    rows = list(read_rows(plain, form, limits, lambda *fault: faults.append(fault)))
    return rows, faults


def stops(data: bytes, form: str = "jsonl", **wishes) -> str:
    with pytest.raises(StopReading) as stop:
        read(data, form, **wishes)
    return stop.value.message


def test_lines_are_numbered_and_blank_lines_skipped():
    rows, faults = read(b'{"a": 1}\n\n  \r\n{"a": 2}\r\n{"a": 3}')
    assert rows == [(1, {"a": 1}), (4, {"a": 2}), (5, {"a": 3})]
    assert faults == []


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_byte_order_mark_is_not_part_of_the_first_name(form):
    data = b'\xef\xbb\xbf{"id": "x"}\n' if form == "jsonl" else b"\xef\xbb\xbfid\nx\n"
    assert read(data, form)[0][0][1] == {"id": "x"}


def test_gzip_is_detected_by_content():
    assert read(gzip.compress(b'{"a": 1}\n'))[0] == [(1, {"a": 1})]


def test_gz_name_requires_gzip_content():
    assert "not gzip" in stops(b'{"a": 1}\n', named_gzip=True)


def test_truncated_gzip_is_reported():
    data = gzip.compress(b"".join(json.dumps({"a": n}).encode() + b"\n" for n in range(40)))
    assert "ends in the middle" in stops(data[:-20])


def test_a_gzip_bomb_stops_at_the_limit():
    bomb = gzip.compress(b'{"a": 1}' + b" " * 1000 + b"\n") * 1
    many = gzip.compress((b'{"a": 1}' + b" " * 1900 + b"\n") * 200)
    assert read(bomb)[0]
    assert "unpacks to more than 100,000 bytes" in stops(many, limits=Limits(2000, 1000, 100_000))


def test_endless_line_of_a_bomb_is_not_read_into_memory():
    rows, faults = read(gzip.compress(b"x" * 50_000 + b'\n{"a": 1}\n'))
    assert rows == [(2, {"a": 1})]
    assert faults[0][0] == 1
    assert "longer than 2,000 bytes" in faults[0][2]


def test_too_many_rows():
    assert "more than 50 rows" in stops(b'{"a": 1}\n' * 51)
    assert "more than 50 rows" in stops(b"a\n" + b"1\n" * 51, "csv")


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity"])
def test_nan_and_infinity_are_reported(word):
    rows, faults = read(b'{"value": ' + word + b"}\n")
    assert rows == []
    ((line, field, message),) = faults
    assert (line, field, word.decode() in message) == (1, "", True)


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": 1, "a": 2}',
        b'{"a" : 1, "a" :2}',
        b'{"meta": {"x": 1, "x": 1}}',
        b'{"meta": [{"x": 1, "x": 2}], "b": ""}',
        b'{"text": "say \\"this\\": yes", "a": 1, "a": 2}',
    ],
)
def test_duplicate_key_is_an_error(line):
    rows, faults = read(line + b"\n")
    assert rows == []
    assert "occurs twice" in faults[0][2]


def test_text_resembling_keys_is_not_a_key():
    line = {"text": 'she said "this": and "that" : too', "meta": {"a": {"b": ['":']}}}
    assert read(json.dumps(line).encode())[0] == [(1, line)]


def test_integers_of_any_size_stay_exact():
    assert (
        decode_object(b'{"meta": {"n": 123456789012345678901234567890}}')["meta"]["n"] == 123456789012345678901234567890
    )


def test_wrong_encoding_names_the_byte():
    _, faults = read('{"text": "café"}\n'.encode("latin-1"))
    assert {"0xE9", "14"} <= set(re.findall(r"0x\w\w|\d+", faults[0][2]))
    assert "byte 0xE9" in stops("text\ncafé\n".encode("latin-1"), "csv")


def test_utf16_is_reported():
    assert "UTF-16" in stops('{"a": 1}'.encode("utf-16"))


@pytest.mark.parametrize(("head", "name"), [(b"PK\x03\x04rest", "ZIP"), (b"PAR1rest", "Parquet")])
def test_archives_and_binary_tables_are_refused(head, name):
    assert name in stops(head)


@pytest.mark.parametrize(
    ("data", "form", "part"),
    [
        (b"", "jsonl", "empty"),
        (b"\n\n", "jsonl", "only blank lines"),
        (b"", "csv", "empty"),
        (b"id,text\n", "csv", "no rows"),
        (gzip.compress(b"", mtime=0), "jsonl", "empty"),
    ],
)
def test_empty_files(data, form, part):
    assert part in stops(data, form)


def test_list_around_the_rows_is_explained():
    _, faults = read(b'[{"a": 1}]\n')
    assert "list" in faults[0][2]


def test_nul_is_an_error_but_an_escaped_backslash_is_not():
    rows, faults = read(b'{"text": "a\\u0000b"}\n{"text": "a\\\\u0000b"}\n')
    assert rows == [(2, {"text": "a\\u0000b"})]
    assert "NUL" in faults[0][2]


def test_lone_surrogates_are_errors():
    rows, faults = read(b'{"text": "\\ud800"}\n')
    assert rows == []
    assert len(faults) == 1


def test_csv_quoted_line_breaks_keep_their_bytes_and_line_numbers():
    rows, _ = read(b'id,text\r\n1,"one\r\ntwo\nthree"\r\n2,four\r\n', "csv")
    assert rows == [(2, {"id": "1", "text": "one\r\ntwo\nthree"}), (5, {"id": "2", "text": "four"})]


def test_csv_cells_have_the_types_of_json():
    data = b'id\tcontext\tsource\tmeta\tcolour\nx\t["a", "b"]\t\t{"n": 1}\tred\n'
    rows, faults = read(data, "tsv")
    assert faults == []
    assert rows == [(2, {"id": "x", "context": ["a", "b"], "meta": {"n": 1}, "colour": "red"})]


def test_csv_numbers_truth_and_references():
    data = b'item,system_b,step,value,simulated\ni,"{""reference"": 2}",7,4.5,TRUE\n'
    assert read(data, "csv")[0] == [
        (2, {"item": "i", "system_b": {"reference": 2}, "step": 7, "value": 4.5, "simulated": True})
    ]


def test_csv_invalid_json_list_shows_an_example():
    # Plain text counts as a list with one entry (FAULTS F1); text that begins like a JSON list must be one.
    rows, faults = read(b'id,context\nx,"[""hello there"\n', "csv")
    assert rows == []
    assert faults[0][:2] == (2, "context")
    assert '["first", "second"]' in faults[0][2]


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"id,text\n1\n", "1 cells, the header 2"),
        (b'id,text\n1,"open\n', "never closed"),
        (b"id,id\n1,2\n", "twice. Rename or remove one"),
        (b"id,\n1,2\n", "has no name"),
        (b'id,text\n1,"a"b\n', "must be doubled"),
        (b'"id" ; "text"\n"1" ; "a"\n', "not even a space"),
        (b"id,text\r1,2\r", "lone carriage return"),
        (b"id,text\n1,a\0b\n", "NUL"),
    ],
)
def test_csv_damage(data, part):
    try:
        _, faults = read(data, "csv")
        message = faults[0][2]
    except StopReading as stop:
        message = stop.message
    assert part in message


def test_csv_unclosed_quote_does_not_swallow_a_large_file():
    assert "never closed" not in stops(b'id,text\n1,"open\n' + b"2,x\n" * 1000, "csv")


def test_document_is_one_object():
    assert read_document(open_plain(io.BytesIO(b'{"name": "x"}')), LIMITS) == {"name": "x"}
    for data in (b"", b"[1]", b"{", b'{"a": NaN}'):
        with pytest.raises(StopReading):
            read_document(open_plain(io.BytesIO(data)), LIMITS)


# PostgreSQL and CSV readers accept no NUL, and lone surrogates are not valid UTF-8.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(TEXT, VALUE, max_size=4), min_size=1, max_size=8))
@settings(max_examples=150)
def test_written_rows_are_read_back(rows):
    data = "".join(encode_row(row) + "\n" for row in rows).encode()
    found, faults = read(data, limits=Limits(1_000_000, 100, 10_000_000))
    assert faults == []
    assert [row for _, row in found] == rows


@given(st.binary(max_size=300), st.sampled_from(["jsonl", "csv", "tsv"]))
@settings(max_examples=200)
def test_any_bytes_give_rows_errors_or_a_message(data, form):
    try:
        rows, faults = read(data, form)
    except StopReading as stop:
        rows, faults = [], [(stop.line, "", stop.message)]
    assert all(type(row) is dict for _, row in rows)
    assert all(message for _, _, message in faults)


def test_json_cells_and_documents_refuse_nul():
    rows, faults = read(b'id,context\nx,"[""a\\u0000b""]"\ny,"[""a""]"\n', "csv")
    assert [row["id"] for _, row in rows] == ["y"]
    assert [(line, "NUL" in text) for line, _, text in faults] == [(2, True)]
    with pytest.raises(StopReading, match="NUL"):
        read_document(open_plain(io.BytesIO(b'{"notes": "a\\u0000b"}')), LIMITS)


def test_too_deep_nesting_is_an_error():
    lines = [f'{{"id": "{depth}", "deep": {"[" * depth}{"]" * depth}}}\n' for depth in (50, 500)]
    rows, faults = read("".join(lines).encode())
    assert [row["id"] for _, row in rows] == ["50"]
    assert [(line, "nested too deeply" in text) for line, _, text in faults] == [(2, True)]


@pytest.mark.parametrize(("value", "kept"), [(3.0, 3), (1e16, 10**16), (1e23, 10**23), (-2e19, -2 * 10**19)])
def test_integers_are_equal_on_every_database(value, kept):
    """A jsonb column returns 1e16 as 10000000000000000, since PostgreSQL stores numbers as decimals."""
    assert encode_row({"x": canonical(value)}) == encode_row({"x": canonical(kept)}) == f'{{"x": {kept}}}'
