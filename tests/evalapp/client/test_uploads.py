"""Selection of the files that are uploaded from a folder, and mappings of files with other columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalapp.client import InvalidArgument, MissingFile
from evalapp.client.uploads import list_files, read_mapping


def test_every_importable_file_of_an_export_is_uploaded(tmp_path):
    wanted = [
        "campaigns.csv", "dataset.json", "filters.jsonl", "leaderboard.json", "outputs.safe.csv", "ratings.tsv.gz",
        "score_sets.parquet", "scores.parquet",
    ]  # fmt: skip
    for name in [*wanted, "README.md", "DATASHEET.md", "aggregated_ratings.jsonl", "judgements.jsonl", "notes.txt"]:
        (tmp_path / name).touch()
    assert [path.name for path in list_files([tmp_path])] == wanted


@pytest.mark.django_db
def test_sheet_is_uploaded_with_a_mapping(rita: Any, tmp_path: Any) -> None:
    sheet = tmp_path / "may.csv"
    sheet.write_text("id,prompt,gpt,llama\nq1,Any plans?,The lake trail.,No plans.\n")
    mapping = {
        "shape": "wide", "columns": {"item": "id", "context": "prompt"},
        "outputs": [{"column": "gpt", "system": "gpt"}, {"column": "llama", "system": "llama"}],
    }  # fmt: skip
    upload = rita.project("alpha").upload(sheet, mapping=mapping)
    assert upload.counts["outputs"]["added"] == 2
    (tmp_path / "m.json").write_text(json.dumps(mapping))
    again = rita.project("alpha").upload(sheet, mapping=tmp_path / "m.json")
    assert again.counts["outputs"]["same"] == 2


def test_wrong_mapping_is_refused_before_sending(tmp_path: Any) -> None:
    with pytest.raises(MissingFile):
        read_mapping(tmp_path / "none.json")
    with pytest.raises(InvalidArgument):
        read_mapping({"values": {1, 2}})
