"""Which files of a folder are sent."""

from __future__ import annotations

from evalapp.client.uploads import files_of


def test_every_file_of_an_export_that_is_read_back_is_sent(tmp_path):
    wanted = [
        "campaigns.csv", "dataset.json", "filters.jsonl", "leaderboard.json", "outputs.safe.csv", "ratings.tsv.gz",
        "score_sets.parquet", "scores.parquet",
    ]  # fmt: skip
    for name in [*wanted, "README.md", "DATASHEET.md", "aggregated_ratings.jsonl", "judgements.jsonl", "notes.txt"]:
        (tmp_path / name).touch()
    assert [path.name for path in files_of([tmp_path])] == wanted
