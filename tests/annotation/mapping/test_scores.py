"""Scores by other programs in tables of any layout: columns next to the outputs, rows, and files of mt-metrics-eval."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotation.mapping import ConvertedRow, WrongMapping, convert_rows, open_table, propose_mapping, read_mapping
from annotation.parsers import StopReading

WIDE = {"shape": "wide", "columns": {"item": "id", "source": "src"}, "outputs": [{"pattern": "{system}_output"}]}


def convert(tmp_path: Path, content: str, mapping: dict) -> tuple[list[dict], list[str]]:
    path = tmp_path / "table.csv"
    path.write_text(content)
    rows = list(convert_rows(open_table(path), read_mapping(mapping)))
    scores = [row.values for row in rows if isinstance(row, ConvertedRow) and row.table == "scores"]
    return scores, [str(row) for row in rows if not isinstance(row, ConvertedRow)]


def test_columns_of_metrics_beside_the_outputs(tmp_path):
    content = "id,src,gpt_output,llama_output,gpt_comet,llama_comet,gpt_ter\n1,a,b,c,0.5,0.25,30\n2,d,e,f,,-1,\n"
    mapping = {**WIDE, "scores": [
        {"pattern": "{system}_{evaluator}"},
        {"column": "gpt_ter", "system": "gpt", "evaluator": "TER", "higher_is_better": "false",
         "reference_set": "original"},
    ]}  # fmt: skip
    scores, faults = convert(tmp_path, content, mapping)
    assert not faults
    comet = {"evaluator": "comet"}
    assert sorted(scores, key=str) == sorted([
        {"item": "1", "system": "gpt", "score": 0.5, **comet}, {"item": "1", "system": "llama", "score": 0.25, **comet},
        {"item": "1", "system": "gpt", "evaluator": "TER", "score": 30, "higher_is_better": False,
         "reference_set": "original"},
        {"item": "2", "system": "llama", "score": -1, **comet},
    ], key=str)  # fmt: skip


def test_column_of_a_metric_next_to_one_output_per_row(tmp_path):
    mapping = {
        "shape": "long", "columns": {"item": "id", "system": "model", "text": "answer"},
        "scores": [{"column": "bleu", "evaluator": "BLEU"}], "constants": {"signature": "sacrebleu|v:2"},
    }  # fmt: skip
    scores, faults = convert(tmp_path, "id,model,answer,bleu\n1,gpt,a,7\n1,llama,b,\n", mapping)
    assert not faults
    assert scores == [{"item": "1", "system": "gpt", "evaluator": "BLEU", "signature": "sacrebleu|v:2", "score": 7}]


def test_row_for_each_score(tmp_path):
    columns = {"item": "id", "system": "model", "evaluator": "metric", "score": "number", "higher_is_better": "up"}
    content = "id,model,metric,number,up\n1,gpt,comet,0.5,\n1,gpt,ter,3,no\n1,gpt,ter,many,no\n"
    scores, faults = convert(tmp_path, content, {"shape": "long", "columns": columns})
    base = {"item": "1", "system": "gpt"}
    assert scores == [
        {**base, "evaluator": "comet", "score": 0.5},
        {**base, "evaluator": "ter", "score": 3, "higher_is_better": False},
    ]
    (fault,) = faults
    assert "many" in fault


@pytest.mark.parametrize(
    ("mapping", "member"),
    [
        ({"shape": "long", "columns": {"item": "id", "score": "s"}}, "columns.evaluator"),
        ({**WIDE, "scores": [{"column": "s", "system": "gpt"}]}, "scores[0]"),
        ({**WIDE, "scores": [{"pattern": "{system}_{metric}"}]}, "scores[0].pattern"),
    ],
)
def test_what_is_missing(mapping, member):
    with pytest.raises(WrongMapping) as wrong:
        read_mapping(mapping)
    assert member in [fault.member for fault in wrong.value.faults]


def make_metrics_folder(tmp_path: Path) -> Path:
    files = {
        "sources/en-de.txt": "one\ntwo\n", "references/en-de.refA.txt": "eins\nzwei\n",
        "system-outputs/en-de/gpt.txt": "ein\nzwo\n", "system-outputs/en-de/llama.txt": "1\n2\n",
        "human-scores/en-de.mqm.seg.score": "gpt\t-1\ngpt\tNone\nllama\t-5\nllama\t0\n",
        "human-scores/en-de.mqm.sys.score": "gpt\t-1\nllama\t-2.5\n",
        "metric-scores/en-de/COMET-src.seg.score": "gpt\t0.5\ngpt\t0.75\nllama\t0.25\nllama\tNone\n",
        "metric-scores/en-de/BLEU-refA.sys.score": "gpt\t31.5\nllama\t12\n",
    }  # fmt: skip
    folder = tmp_path / "wmt"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_folder_of_mt_metrics_eval(tmp_path):
    table = open_table(make_metrics_folder(tmp_path))
    proposal = propose_mapping(table)
    assert not proposal.questions
    # The mapping stays the same when it is written and read.
    mapping = read_mapping(proposal.mapping.as_json())
    assert mapping == proposal.mapping
    rows = list(convert_rows(table, mapping))
    assert all(isinstance(row, ConvertedRow) for row in rows), rows
    comet = {"evaluator": "COMET-src"}
    assert [row.values for row in rows if row.table == "scores"] == [
        {"system": "gpt", "evaluator": "BLEU-refA", "reference_set": "original", "score": 31.5},
        {"system": "llama", "evaluator": "BLEU-refA", "reference_set": "original", "score": 12},
        {"item": "1", "system": "gpt", **comet, "score": 0.5},
        {"item": "1", "system": "llama", **comet, "score": 0.25},
        {"item": "2", "system": "gpt", **comet, "score": 0.75},
    ]
    ratings = [(row.values["system"], row.values["value"]) for row in rows if row.table == "ratings"]
    assert ratings == [("gpt", -1), ("llama", -5), ("llama", 0)]


def test_system_with_two_scores(tmp_path):
    folder = make_metrics_folder(tmp_path)
    (folder / "metric-scores/en-de/BLEU-refA.sys.score").write_text("gpt\t31.5\ngpt\t12\n")
    with pytest.raises(StopReading, match="“gpt” has several scores"):
        list(open_table(folder))
