"""Which files of a folder are read to recompute tables: one of each table, and none is left out without a word."""

from __future__ import annotations

import pytest

from scoring.boards.data.files import ExportFolder, FolderError

NAMES = ("jsonl", "jsonl.gz", "csv", "csv.gz", "safe.csv", "tsv", "tsv.gz", "parquet")


@pytest.mark.parametrize("ending", NAMES)
def test_every_ending_of_an_export_is_read(tmp_path, ending):
    (tmp_path / f"ratings.{ending}").touch()
    (tmp_path / "README.md").touch()
    (tmp_path / f"aggregated_ratings.{ending}").touch()
    assert ExportFolder(tmp_path).has("ratings")


@pytest.mark.parametrize("name", ["outputs-gpt.jsonl", "ratings_2.csv.gz", "ratings.csv", "scores.ndjson"])
def test_a_file_that_would_not_be_read_is_an_error(tmp_path, name):
    (tmp_path / "ratings.jsonl").touch()
    (tmp_path / "outputs.jsonl").touch()
    (tmp_path / name).touch()
    with pytest.raises(FolderError, match=f"{name}: it would not be read"):
        ExportFolder(tmp_path)
