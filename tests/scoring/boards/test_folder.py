"""Selection of folder files for recomputing tables: one per table, and none is skipped silently."""

from __future__ import annotations

import pytest

from scoring.boards.data.files import ExportFolder, FolderError

NAMES = ("jsonl", "jsonl.gz", "csv", "csv.gz", "safe.csv", "tsv", "tsv.gz", "parquet")


@pytest.mark.parametrize("ending", NAMES)
def test_every_file_extension_of_an_export_is_read(tmp_path, ending):
    (tmp_path / f"ratings.{ending}").touch()
    (tmp_path / "README.md").touch()
    (tmp_path / f"aggregated_ratings.{ending}").touch()
    assert ExportFolder(tmp_path).has("ratings")


@pytest.mark.parametrize("name", ["outputs-gpt.jsonl", "ratings_2.csv.gz", "ratings.csv", "scores.ndjson"])
def test_unreadable_file_is_an_error(tmp_path, name):
    (tmp_path / "ratings.jsonl").touch()
    (tmp_path / "outputs.jsonl").touch()
    (tmp_path / name).touch()
    with pytest.raises(FolderError, match=f"{name}: it would not be read"):
        ExportFolder(tmp_path)
