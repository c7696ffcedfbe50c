"""Exported files in use: read by `datasets`, opened in a spreadsheet, published with card and datasheet without
identifying anybody."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.exporters.options import ExportOptions
from annotation.models import Aspect, Campaign, Comparison, Rating, System
from annotation.pipelines.exports import write_export
from evalapp.accounts.models import Project
from evalapp.common import audit
from tests.annotation.pipelines.rich import RICH
from tests.evalapp.test_markup import NASTY
from tests.taking import list_errors, take_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def rich(cast):
    upload = take_in(cast.project, RICH)
    assert upload.state == "done", list_errors(upload)
    return cast.project


def export(project: Project, folder: Path, **wishes: Any) -> Path:
    folder.mkdir()
    write_export(project, folder, ExportOptions(**wishes), lambda done: None)
    return folder


def read_header(folder: Path) -> dict[str, Any]:
    text = (folder / "README.md").read_text(encoding="utf-8")
    _, head, _ = text.split("---\n", 2)
    return yaml.safe_load(head)


def test_datasets_reads_every_configuration_of_the_card(rich, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    left_out = {}
    for format in ("jsonl", "safe-csv", "parquet"):
        folder = export(rich, tmp_path / format, format=format, level="both")
        names = [config["config_name"] for config in read_header(folder)["configs"]]
        found = {
            name: datasets.load_dataset(str(folder), name, split="train", cache_dir=str(tmp_path / "cache" / format))
            for name in names
        }
        left_out[format] = {"items", "ratings", "comparisons", "aggregated_comparisons"} - set(names)
        assert found["ratings"].num_rows == Rating.objects.filter(project=rich).count() == 4
        assert sorted(row["id"] for row in found["items"]) == ["Z", "i1", "i2", "é"]
        texts = {row["text"] for row in found["outputs"]}
        assert ("'" if format == "safe-csv" else "") + '=1+1, "x"\r\ny' in texts
        default = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache" / format))
        assert default["train"].column_names == found["items"].column_names
    # A reference compared as a system is an object among strings, which no typed JSON reader accepts.
    assert left_out["jsonl"] == {"comparisons", "aggregated_comparisons"}
    assert left_out["safe-csv"] == left_out["parquet"] == set()
    assert "the values in `system_b` are of several kinds" in (tmp_path / "jsonl" / "README.md").read_text()


def test_no_cell_is_a_formula_and_every_text_is_restored(rich, tmp_path):
    dangerous = ["=1+1", "+1", "-2+3", "@SUM(A1)", "\tx", "\r=1", "'=1", "'", "\uff1d1", "plain", "-5"]
    rows = [{"item": "i1", "system": f"s{k}", "text": text, "meta": {"=k": "=v"}} for k, text in enumerate(dangerous)]
    assert take_in(rich, {"outputs.jsonl": rows}).state == "done"
    folder = export(rich, tmp_path / "safe", format="safe-csv")
    for file in folder.glob("*.csv"):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines):
                risky = [cell for cell in row if cell[:1] in set("=+-@\t\r\uff1d") and not _is_number(cell)]
                assert risky == [], file.name
    twin = Project.objects.create(slug="twin", name="twin")
    upload = take_in(twin, {file.name: file.read_bytes() for file in folder.iterdir()})
    assert upload.state == "done", list_errors(upload)
    stored = dict(twin.outputs.filter(item__key="i1").values_list("system__name", "text"))
    assert [stored[f"s{k}"] for k in range(len(dangerous))] == dangerous


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_figures_over_raters(rich, tmp_path):
    # Two ratings of the same output, 4 and 1: mean 2.5, median 2.5, standard deviation 3 / sqrt 2.
    take_in(rich, {"ratings.jsonl": [{"item": "i1", "system": "s", "rater": "q", "aspect": "quality", "value": 1}]})
    folder = export(rich, tmp_path / "sums", level="aggregated")
    assert not (folder / "ratings.jsonl").exists()
    assert not (folder / "leaderboard.json").exists()
    rows = [json.loads(line) for line in (folder / "aggregated_ratings.jsonl").read_text().splitlines()]
    (row,) = (row for row in rows if row.get("item") == "i1")
    assert row == {
        "item": "i1", "system": "s", "aspect": "quality", "n": 2, "mean": 2.5, "median": 2.5,
        "sd": pytest.approx(3 / 2**0.5), "low": 1, "high": 4, "simulated": 0,
    }  # fmt: skip
    pairs = [json.loads(line) for line in (folder / "aggregated_comparisons.jsonl").read_text().splitlines()]
    assert [(row["system_b"], row["n"], row["tie"], row["cannot_decide"]) for row in pairs if row["item"] == "i1"] == [
        ({"reference": 1}, 1, 0, 1), ("t", 1, 1, 0),
    ]  # fmt: skip


def test_raters_cannot_be_identified_from_an_export(rich, cast, tmp_path):
    names = {"Olga": 1, "eva@example.org": 2, "worker-7": 3}
    take_in(
        rich,
        {
            "ratings.jsonl": [
                {"item": "i1", "system": "t", "rater": rater, "aspect": "quality", "value": value}
                for rater, value in names.items()
            ]
        },
    )
    audit.record(verb="member.added", project=rich, actor=cast.owner, object="eva", email="eva@example.org")

    def raters(folder: Path) -> dict[int, str]:
        rows = [json.loads(line) for line in (folder / "ratings.jsonl").read_text().splitlines()]
        return {row["value"]: row["rater"] for row in rows if row.get("system") == "t"}

    kept = raters(export(rich, tmp_path / "kept", audit=True))
    assert kept[3] == "worker-7"
    assert kept[1].startswith("rater-")
    assert kept[2].startswith("rater-")
    log = (tmp_path / "kept" / "audit.jsonl").read_text()
    assert "upload.done" in log
    assert "eva" not in log
    every = raters(export(rich, tmp_path / "all", raters="pseudonyms"))
    assert {every[1], every[2]} == {kept[1], kept[2]}
    assert every[3].startswith("rater-")
    assert raters(export(rich, tmp_path / "none", raters="as-uploaded"))[2] == "eva@example.org"
    # Exporting a loaded export again keeps all rater names.
    twin = Project.objects.create(slug="twin", name="twin")
    take_in(twin, {file.name: file.read_bytes() for file in (tmp_path / "all").glob("*.json*")})
    assert raters(export(twin, tmp_path / "again", raters="pseudonyms")) == every


def test_card_and_datasheet_state_known_and_unknown_facts(rich, tmp_path):
    Project.objects.filter(pk=rich.pk).update(licence="CC-BY-4.0", source="our own | two lines\nof it")
    Campaign.objects.create(
        project=rich, slug="fluency", name="Fluency", kind="likert", state="closed", overlap=3, unit_count=5,
        guidelines="Read aloud.\n\nThen rate.",
    )  # fmt: skip
    folder = export(rich, tmp_path / "out")
    head = read_header(folder)
    assert (head["license"], head["language"], head["pretty_name"]) == ("cc-by-4.0", ["en"], "Alpha")
    assert head["size_categories"] == ["n<1K"]
    assert "simulated-judgements" in head["tags"]
    card = (folder / "README.md").read_text()
    assert "| source | our own \\| two lines of it |" in card
    assert "| quality | ratings of outputs | 3 | 3 | 1 | 1.0 | 1 (33 %) | - (" in card
    sheet = (folder / "DATASHEET.md").read_text()
    assert "**Was there an ethics review?**\n\nnot recorded" in sheet
    assert "- fluency: 5 x 3" in sheet
    assert "> Read aloud.\n>\n> Then rate." in sheet
    assert "- quality: 1 to 5" in sheet
    assert "simulated: 1 (" in sheet
    assert Comparison.objects.filter(project=rich).count() == 3
    assert "- quality, comparisons of two outputs: both_bad 1 (50 %), tie 1 (50 %)" in sheet
    # The description of a campaign survives load and is exported again.
    twin = Project.objects.create(slug="twin", name="twin")
    upload = take_in(twin, {file.name: file.read_bytes() for file in folder.iterdir()})
    assert upload.state == "done", list_errors(upload)
    again = export(twin, tmp_path / "again")
    assert (again / "DATASHEET.md").read_text() == sheet
    assert (again / "README.md").read_text() == card


def test_campaign_with_a_minimal_description(rich, tmp_path):
    told = {"units": 3, "aspects": [{"name": "quality"}]}
    upload = take_in(rich, {"campaigns.jsonl": [{"campaign": "far", "kind": "likert", "told": told}]})
    assert list_errors(upload) == []
    sheet = (export(rich, tmp_path / "a") / "DATASHEET.md").read_text(encoding="utf-8")
    assert "- far: 3" in sheet
    assert "- far, quality: not recorded" in sheet
    assert "- far: not recorded practice items" in sheet


def test_old_names_break_no_exported_file(rich, tmp_path):
    """FAULTS D4: names stored before such names were refused."""
    for k, name in enumerate(NASTY):
        System.objects.create(project=rich, name=name, kind="human", declared=True)
        Aspect.objects.create(project=rich, name=name, low=1, high=5, position=10 + k)
    Rating.objects.filter(project=rich).update(rater="a\nb|c")
    Project.objects.filter(pk=rich.pk).update(name=NASTY[0], licence="x\u2028 y\x85", source=NASTY[1])
    for format in ("jsonl", "csv", "safe-csv", "parquet"):
        folder = export(rich, tmp_path / format, format=format, level="both", judgements=True, attributes=True)
        assert read_header(folder)["pretty_name"] == "good<U+000A>\\input{/etc/passwd}%"
        for name in ("README.md", "DATASHEET.md"):
            text = (folder / name).read_text(encoding="utf-8")
            assert "\n\\input" not in text
            for hidden in ("\x0b", "\x1b", "\x85", "\u2028", "\u2029", "\u202e", "\u200b", "\ufeff", "\ufffe"):
                assert hidden not in text, (name, hidden)
        table = (folder / "README.md").read_text(encoding="utf-8").split("## Judgements")[1]
        rows = [line for line in table.splitlines() if line.startswith("| ")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {9}
