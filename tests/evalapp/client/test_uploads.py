"""Selection of the files that are uploaded from a folder."""

from __future__ import annotations

from evalapp.client.uploads import list_files


def test_every_importable_file_of_an_export_is_uploaded(tmp_path):
    wanted = [
        "campaigns.csv", "dataset.json", "filters.jsonl", "leaderboard.json", "outputs.safe.csv", "ratings.tsv.gz",
        "score_sets.parquet", "scores.parquet",
    ]  # fmt: skip
    for name in [*wanted, "README.md", "DATASHEET.md", "aggregated_ratings.jsonl", "judgements.jsonl", "notes.txt"]:
        (tmp_path / name).touch()
    assert [path.name for path in list_files([tmp_path])] == wanted
