"""File names of the format, with common variations."""

from __future__ import annotations

import pytest

from annotation.parsers import name_file, shorten_name


@pytest.mark.parametrize(
    ("name", "kind", "form", "zipped"),
    [
        ("items.jsonl", "items", "jsonl", False),
        ("outputs.csv.gz", "outputs", "csv", True),
        ("ratings-2024.tsv", "ratings", "tsv", False),
        ("outputs_gpt-4.v2.ndjson", "outputs", "jsonl", False),
        ("dataset.json", "dataset", "json", False),
        ("folder/sub/corpus.jsonl.gz", "corpus", "jsonl", True),
        ("ITEMS.CSV", "items", "csv", False),
    ],
)
def test_known_names(name, kind, form, zipped):
    found = name_file(name)
    assert found is not None
    assert (found.kind, found.format, found.zipped) == (kind, form, zipped)


@pytest.mark.parametrize("name", ["excluded.jsonl", "LICENSE", "SOURCE.txt", "items.json", "myitems.jsonl", "items"])
def test_unknown_names(name):
    assert name_file(name) is None


@pytest.mark.parametrize("ending", [".jsonl", ".csv.gz", ".safe.csv", ".parquet", ".TSV"])
def test_short_names_are_equivalent(ending):
    long = f"outputs-{'x' * 300}{ending}"
    short = shorten_name(long)
    assert (len(short), shorten_name(short), shorten_name("items.jsonl")) == (200, short, "items.jsonl")
    found, wanted = name_file(short), name_file(long)
    assert (found.kind, found.format, found.zipped) == (wanted.kind, wanted.format, wanted.zipped)


def test_explicit_kind_overrides_the_name():
    found = name_file("results.csv", "outputs")
    assert found is not None
    assert (found.kind, found.format) == ("outputs", "csv")
    assert name_file("x.jsonl", "nonsense") is None
