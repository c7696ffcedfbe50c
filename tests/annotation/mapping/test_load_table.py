"""Tables by `load --map`, from the file to the leaderboard: what `--propose` prints can be loaded unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.models import Comparison, Item, Output, Rating, Upload
from evalapp.accounts.models import Project
from tests.annotation.management.commands.test_load import call
from tests.annotation.mapping.test_tables import write_xlsx

pytestmark = pytest.mark.django_db

WIDE = (
    "id,prompt,reference,gpt4_output,llama_output,gpt4_fluency,llama_fluency\n"
    '1,What is the capital?,Paris it is.,"Paris, of course.",Perhaps Lyon.,5,2\n'
    "2,How tall is it?,It is 330 m.,About 330 metres.,Nobody knows that.,4,1\n"
    "3,Who wrote Faust?,Goethe wrote it.,Goethe did it.,,5,\n"
)
LONG = (
    "prompt_id;prompt;model;response;annotator;score\n"
    "p1;Hello there, friend?;gpt;Hi you.;ann1;5\np1;Hello there, friend?;gpt;Hi you.;ann2;3,5\n"
    "p1;Hello there, friend?;llama;Bye now.;ann1;1\n"
)


def propose(tmp_path: Path, name: str, content: str) -> tuple[Path, Path]:
    """The table and the mapping that is proposed for it, as files."""
    table, mapping = tmp_path / name, tmp_path / "m.json"
    table.write_text(content, encoding="utf-8")
    proposal, code = call("load", table, "--propose", "--map", mapping)
    assert (code, proposal["questions"]) == (0, [])
    assert json.loads(mapping.read_text(encoding="utf-8")) == proposal["mapping"]
    assert call("load", table, "--propose", "--map", mapping)[1] == 2  # it is not overwritten
    return table, mapping


def test_wide_csv_into_a_leaderboard(tmp_path):
    table, mapping = propose(tmp_path, "wide.csv", WIDE)
    report, code = call("load", table, "--map", mapping, "--project", "wide")
    assert code == 0, report
    assert {name: counts["added"] for name, counts in report["counts"].items()} == {
        "items": 3, "outputs": 5, "ratings": 5,
    }  # fmt: skip
    output = Output.objects.get(item__key="1", system__name="gpt4")
    assert output.text == "Paris, of course."
    assert output.item.context == ["What is the capital?"]
    assert [one.text for one in output.item.references.all()] == ["Paris it is."]
    board, code = call("systems", "wide")
    assert code == 0
    assert [row["system"] for row in board["rows"]] == ["gpt4", "llama"]
    again, code = call("load", table, "--map", mapping, "--project", "wide")
    assert (code, again["counts"]["outputs"]["same"]) == (0, 5)


def test_long_csv_has_each_output_once(tmp_path):
    table, mapping = propose(tmp_path, "long.csv", LONG)
    report, code = call("load", table, "--map", mapping, "--project", "long")
    assert code == 0, report
    assert (Item.objects.count(), Output.objects.count()) == (1, 2)
    assert sorted(Rating.objects.values_list("rater", "value")) == [("ann1", 1.0), ("ann1", 5.0), ("ann2", 3.5)]


def test_faults_name_row_and_column_of_the_table_and_nothing_is_stored(tmp_path):
    table, mapping = propose(tmp_path, "long.csv", LONG)
    table.write_text(LONG + f"p2;Well?;gpt;Yes.;ann1;good\n;Oh?;gpt;No.;ann1;3\np3;Eh?;gpt;Eh.;{'x' * 101};3\n")
    report, code = call("load", table, "--map", mapping, "--project", "long")
    assert code == 1
    assert [(one["file"], one["line"], one["field"]) for one in report["faults"]] == [
        ("long.csv", 5, "score"), ("long.csv", 6, "prompt_id"), ("long.csv", 7, "annotator"),
    ]  # fmt: skip
    assert not Project.objects.exists()
    assert not Item.objects.exists()


def test_a_wrong_mapping_is_refused_before_anything_is_received(tmp_path):
    table, mapping = propose(tmp_path, "long.csv", LONG)
    mapping.write_text('{"shape": "long", "columns": {"item": "prompt_id", "txt": "response"}}')
    report, code = call("load", table, "--map", mapping, "--project", "long")
    assert code == 2
    assert {fault["field"] for fault in report["errors"]} == {"columns.txt", "columns"}
    assert not Upload.objects.exists()
    mapping.write_text('{"shape": "long"')
    assert call("load", table, "--map", mapping, "--project", "long")[1] == 1


def test_a_table_needs_a_mapping_and_a_project(tmp_path):
    table, mapping = propose(tmp_path, "long.csv", LONG)
    assert call("load", table, "--project", "long")[1] == 2
    assert call("load", table, "--map", mapping)[1] == 2


def test_pairs_become_comparisons(tmp_path):
    content = "question,model_a,model_b,response_a,response_b,winner\nHow so?,g,l,This way.,That way.,model_b\n"
    content += "Why then?,l,g,I know not.,Because.,tie (bothbad)\n"
    table, mapping = propose(tmp_path, "battles.csv", content)
    report, code = call("load", table, "--map", mapping, "--project", "battles")
    assert code == 0, report
    assert sorted(Comparison.objects.values_list("verdict", flat=True)) == ["b", "both_bad"]


def make_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "lines"
    folder.mkdir()
    files = {"src.txt": "Hallo\nGut\n", "ref.txt": "Hello\nGood\n", "gpt.txt": "Hi\nGood\n", "llama.txt": "No\n\n"}
    for name, content in {**files, "x.mqm.seg.score": "gpt\t5\ngpt\t4\nllama\t1\nllama\tNone\n"}.items():
        (folder / name).write_text(content)
    return folder


def test_aligned_files_into_a_leaderboard(tmp_path):
    folder, mapping = make_folder(tmp_path), tmp_path / "m.json"
    proposal, _code = call("load", folder, "--propose", "--map", mapping)
    assert proposal["questions"] == []
    report, code = call("load", folder, "--map", mapping, "--project", "lines")
    assert code == 0, report
    assert {name: counts["added"] for name, counts in report["counts"].items()} == {
        "items": 2, "outputs": 4, "ratings": 3,
    }  # fmt: skip
    assert Output.objects.get(item__key="2", system__name="llama").text == ""
    board, _code = call("systems", "lines")
    assert [row["system"] for row in board["rows"]] == ["gpt", "llama"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet", "a.xlsx"])
def test_other_formats_into_a_leaderboard(tmp_path, name):
    rows = [
        {"prompt": f"How much is {k}?", "model": model, "answer": f"It is {k}, says {model}.", "quality": k + better}
        for k in (1, 2)
        for better, model in enumerate(("llama", "gpt"))
    ]
    table, mapping = tmp_path / name, tmp_path / "m.json"
    if name == "a.xlsx":
        write_xlsx(table, [list(rows[0]), *(list(row.values()) for row in rows)])
    elif name == "a.parquet":
        pq.write_table(pa.Table.from_pylist(rows), table)
    else:
        table.write_text(json.dumps(rows) if name == "a.json" else "\n".join(map(json.dumps, rows)))
    proposal, _code = call("load", table, "--propose", "--map", mapping)
    assert proposal["questions"] == []
    assert call("load", table, "--map", mapping, "--project", "p")[1] == 0
    assert [row["system"] for row in call("systems", "p")[0]["rows"]] == ["gpt", "llama"]
