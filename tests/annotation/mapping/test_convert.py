"""Rows of the interchange format by mappings of every kind, and mappings that cannot be used."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from annotation.mapping import (
    ConvertedRow,
    Fault,
    WrongMapping,
    convert_rows,
    open_table,
    propose_mapping,
    read_mapping,
)
from annotation.mapping.patterns import AmbiguousPattern, match_pattern
from annotation.mapping.seen import Seen


def convert(tmp_path: Path, rows: list[dict[str, Any]], mapping: dict[str, Any]) -> dict[str, list[Any]]:
    """The converted rows by table; those of `faults` are (row, column)."""
    (tmp_path / "a.json").write_text(json.dumps(rows))
    made: dict[str, list[Any]] = {}
    for one in convert_rows(open_table(tmp_path / "a.json"), read_mapping(mapping)):
        if isinstance(one, Fault):
            made.setdefault("faults", []).append((one.row, one.column))
        else:
            made.setdefault(one.table, []).append(one.values)
    return made


ROWS = {"ids": {"source": "row"}}
JUDGED = {"rater": "r", "aspect": "better"}
LONG = {"shape": "long", "columns": {"item": "id", "system": "m", "text": "t"}, "make_items": True}


def test_the_winner_can_be_a_name_a_word_or_a_number(tmp_path):
    columns = {"item": "id", "system_a": "a", "system_b": "b", "verdict": "w"}
    mapping = {"shape": "pairs", "columns": columns, "constants": JUDGED, "make_items": False}
    rows = [{"id": k, "a": "gpt", "b": "llama", "w": word} for k, word in enumerate(["llama", "A", "tie", None, "x"])]
    made = convert(tmp_path, rows, {**mapping, "values": {"verdict": {"A": "a"}}})
    assert [row["verdict"] for row in made["comparisons"]] == ["b", "a", "tie"]
    assert made["faults"] == [(5, "w")]
    rows = [{"id": k, "a": "gpt", "b": "llama", "w": number} for k, number in enumerate([1, 2, 1.5, 1.9])]
    made = convert(tmp_path, rows, {**mapping, "values": {"verdict": {"scale": [1, 2]}}})
    assert [row["verdict"] for row in made["comparisons"]] == ["a", "b", "tie", "b"]


def test_parts_of_a_list_that_name_no_rater_are_of_different_raters(tmp_path):
    mapping = {**LONG, "columns": {**LONG["columns"]}, "ratings": [{"column": "by.fluency", "aspect": "fluency"}],
               "constants": {"rater": "expert"}, "explode": ["by"]}  # fmt: skip
    rows = [{"id": "i", "m": "gpt", "t": "So.", "by": [{"fluency": 5, "who": "ann"}, {"fluency": 3, "who": "ben"}]}]
    made = convert(tmp_path, rows, mapping)
    assert [(one["rater"], one["value"]) for one in made["ratings"]] == [("expert 1", 5), ("expert 2", 3)]
    named = {**mapping, "columns": {**LONG["columns"], "rater": "by.who"}, "constants": {}}
    assert [one["rater"] for one in convert(tmp_path, rows, named)["ratings"]] == ["ann", "ben"]
    # An output in each part
    rows = [{"id": "i", "by": [{"m": name, "t": "So.", "fluency": 5} for name in ("gpt", "llama")]}]
    columns = {"item": "id", "system": "by.m", "text": "by.t"}
    made = convert(tmp_path, rows, {**mapping, "columns": columns})
    assert [(one["rater"], one["system"]) for one in made["ratings"]] == [("expert", "gpt"), ("expert", "llama")]


def test_chats_and_marks_become_turns(tmp_path):
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    mapping = {"shape": "preference", "columns": {"chosen": "c", "rejected": "r"}, "constants": JUDGED,
               **ROWS, "turns": {name: {"rule": "chat"} for name in ("chosen", "rejected")}}  # fmt: skip
    made = convert(tmp_path, [{"c": chat, "r": [*chat[:1], {"from": "gpt", "value": "Ha"}]}], mapping)
    assert made["items"] == [{"id": "1", "context": ["Hi"]}]
    assert [(row["system"], row["text"]) for row in made["outputs"]] == [("chosen", "Ho"), ("rejected", "Ha")]
    marks = {"rule": "marks", "marks": ["\n\nHuman:", "\n\nAssistant:"]}
    texts = {"c": "\n\nHuman: Hi\n\nAssistant: Ho", "r": "\n\nHuman: Hi\n\nAssistant: Ha"}
    again = convert(tmp_path, [texts], {**mapping, "turns": {"chosen": marks, "rejected": marks}})
    assert (again["items"], again["outputs"]) == (made["items"], made["outputs"])


def test_lists_become_rows_and_raters(tmp_path):
    rows = [{"id": 1, "c": "Hi|Ho", "out": [{"m": "gpt", "q": [3, None, 5]}, {"m": "llama", "q": "[1, 2]"}]}]
    mapping = {"shape": "long", "columns": {"item": "id", "context": "c", "system": "out.m"}, "explode": ["out"],
               "ratings": [{"column": "out.q", "aspect": "q"}], "constants": {"rater": "r"},
               "turns": {"context": {"rule": "split", "separator": "|"}}}  # fmt: skip
    made = convert(tmp_path, rows, mapping)
    assert made["items"] == [{"id": "1", "context": ["Hi", "Ho"]}]
    assert [(row["system"], row["rater"], row["value"]) for row in made["ratings"]] == [
        ("gpt", "r 1", 3), ("gpt", "r 3", 5), ("llama", "r 1", 1), ("llama", "r 2", 2),
    ]  # fmt: skip


def test_a_cell_with_several_parts_is_split(tmp_path):
    rows = [{"key": key, "t": "x"} for key in ("talk_7_gpt", "8_llama", "none")]
    mapping = {"shape": "long", "columns": {"item": "key.item", "system": "key.system", "text": "t"},
               "split": {"key": "{item}_{system}"}, "make_items": True}  # fmt: skip
    made = convert(tmp_path, rows, mapping)
    assert [(row["item"], row["system"]) for row in made["outputs"]] == [("talk_7", "gpt"), ("8", "llama")]
    assert made["faults"] == [(3, "key")]
    assert convert(tmp_path, rows, {**mapping, "split": {"kye": "{item}_{system}"}})["faults"] == [(None, "kye")]


def test_only_some_rows_are_taken(tmp_path):
    rows = [{"id": k, "m": "gpt", "t": "x", "done": done} for k, done in enumerate(["2026", None, "", " ", "never"])]
    made = convert(tmp_path, rows, {**LONG, "only": {"done": True}})
    assert [row["item"] for row in made["outputs"]] == ["0", "4"]
    made = convert(tmp_path, rows, {**LONG, "only": {"done": ["2026"], "id": ["0", "4"]}})
    assert [row["item"] for row in made["outputs"]] == ["0"]
    assert convert(tmp_path, rows, {**LONG, "only": {"done": ["x"]}})["faults"] == [(None, "")]
    assert convert(tmp_path, rows, {**LONG, "only": {"dome": True}})["faults"] == [(None, "dome")]


def test_one_output_has_one_text(tmp_path):
    rows = [{"id": 1, "m": "gpt", "t": text} for text in ("same", "same", "other")]
    made = convert(tmp_path, rows, LONG)
    assert [row["text"] for row in made["outputs"]] == ["same"]
    assert made["faults"] == [(3, "t")]


def test_more_is_remembered_than_fits_in_memory():
    seen = Seen(most=10)
    seen.begin_file("a")
    assert all(seen.add(("items", k), "text", k) is True for k in range(1, 100))
    assert seen.add(("items", 1), "text", 100) is False
    seen.begin_file("b")
    assert seen.add(("items", 7), "other", 2) == ("a", 7)
    assert all(seen.add(("items", k), "text", k) is False for k in range(1, 100))


def test_memory_stays_bounded_for_many_items():
    """Fifty times as many keys need no more memory than those that fit in it."""
    peaks = []
    for count in (2_000, 100_000):
        tracemalloc.start()
        seen = Seen(most=1_000)
        seen.begin_file("a")
        for k in range(count):
            assert seen.add(("items", k), "text", k) is True
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000, peaks


def test_only_one_side_of_a_pair_has_a_text(tmp_path):
    columns = {"item": "id", "system_a": "a", "system_b": "b", "text_b": "t", "verdict": "w"}
    mapping = {"shape": "pairs", "columns": columns, "constants": JUDGED, "make_items": False}
    made = convert(tmp_path, [{"id": 1, "a": "gpt", "b": "llama", "t": "x", "w": "a"}], mapping)
    assert made["outputs"] == [{"item": "1", "system": "llama", "text": "x"}]


def test_steps_flags_and_names_of_a_row(tmp_path):
    rows = [{"id": 1, "m": "g", "t": "x", "n": step, "s": flag, "q": 3} for step, flag in
            ((10, True), ("20", "no"), (None, None), ("1.5", False), (30, "maybe"))]  # fmt: skip
    mapping = {"shape": "long", "make_items": False, "constants": {"rater": "r", "aspect": "q"},
               "columns": {"item": "id", "system": "m", "text": "t", "step": "n", "simulated": "s", "value": "q"},
               "values": {"system": {"g": "gpt"}}, "meta": {"ratings": ["n"]}}  # fmt: skip
    made = convert(tmp_path, rows, mapping)
    assert [(row["system"], row.get("step")) for row in made["outputs"]] == [
        ("gpt", step) for step in (10, 20, None, 30)
    ]
    ratings = [(row.get("step"), row.get("simulated"), row.get("meta")) for row in made["ratings"]]
    assert ratings == [(10, True, {"n": 10}), (20, None, {"n": "20"}), (None, None, None)]
    assert made["faults"] == [(4, "n"), (5, "s")]


def test_names_in_the_mapping_are_replaced_as_well(tmp_path):
    mapping = {"shape": "wide", "columns": {"item": "id"}, "make_items": False, "constants": {"rater": "r"},
               "outputs": [{"pattern": "{system}_out"}], "ratings": [{"pattern": "{system}_{aspect}"}],
               "values": {"system": {"g": "gpt"}}}  # fmt: skip
    made = convert(tmp_path, [{"id": 1, "g_out": "x", "g_fluency": 3}], mapping)
    assert made["outputs"] == [{"item": "1", "system": "gpt", "text": "x"}]
    assert made["ratings"] == [{"item": "1", "system": "gpt", "rater": "r", "aspect": "fluency", "value": 3}]


def test_mixed_types_are_faults_of_their_rows(tmp_path):
    rows = [{"id": 1, "m": "gpt", "t": 7}, {"id": 2, "m": {"name": "gpt"}, "t": "x"}, {"id": [3], "m": "gpt", "t": "x"},
            {"id": 4, "m": "gpt", "t": {"text": "x"}}, {"id": None, "m": "gpt", "t": "x"}]  # fmt: skip
    made = convert(tmp_path, rows, LONG)
    assert [row["text"] for row in made["outputs"]] == ["7"]
    assert made["faults"] == [(2, "m"), (3, "id"), (4, "t"), (5, "id")]


def test_a_mapping_that_does_not_fit_gives_only_its_faults(tmp_path):
    made = convert(
        tmp_path, [{"id": 1, "model": "gpt", "t": "x"}], {**LONG, "columns": {**LONG["columns"], "system": "modl"}}
    )
    assert made == {"faults": [(None, "modl")]}
    wide = {"shape": "wide", "columns": {"item": "id"}, "outputs": [{"pattern": "{system}_out"}], "make_items": True}
    assert convert(tmp_path, [{"id": 1}], wide) == {"faults": [(None, "outputs[0]")]}


@pytest.mark.parametrize(
    ("mapping", "members"),
    [
        (None, {"shape"}), ([], {"", "shape"}), ({"shape": "tall"}, {"shape"}),
        ({**LONG, "colour": 1}, {"colour"}),
        ({**LONG, "columns": {"item": "id", "system": ["a", "b"], "text": "t"}}, {"columns.system"}),
        ({**LONG, "columns": {"item": "id", "text": 3}}, {"columns.text", "columns.system"}),
        ({**LONG, "constants": {"system": "x"}}, {"constants.system"}),
        ({"shape": "long", "columns": {"system": "m", "text": "t"}}, {"columns.item"}),
        ({**LONG, "ratings": [{"column": "x"}]}, {"ratings[0]"}),
        ({"shape": "wide", "outputs": [{"pattern": "{system}{aspect}"}], **ROWS}, {"outputs[0].pattern"}),
        ({"shape": "wide", "outputs": [{"pattern": "a", "column": "b"}], **ROWS}, {"outputs[0]"}),
        ({**LONG, "ids": {"source": "guess"}}, {"ids.source"}),
        ({**LONG, "split": {"a": "{item}{system}", "b": "{item}", "c": "{x}_{x}", "d": 3}},
         {"split.a", "split.b", "split.c", "split.d"}),
        ({**LONG, "only": {"a": False, "b": 3}}, {"only.a", "only.b"}),
        ({**LONG, "reading": {"header_rows": 0}}, {"reading.header_rows"}),
        ({**LONG, "turns": {"text": {"rule": "marks"}}}, {"turns.text.marks"}),
        ({**LONG, "values": {"verdict": {"scale": [1, 1]}}}, {"values.verdict.scale"}),
        ({"shape": "pairs", "columns": {"item": "id"}},
         {"columns.system_a", "columns.system_b", "columns.verdict", "columns.rater", "columns.aspect"}),
    ],
)  # fmt: skip
def test_wrong_mappings_name_their_members(mapping, members):
    with pytest.raises(WrongMapping) as caught:
        read_mapping(mapping)
    assert members <= {fault.member for fault in caught.value.faults}


def test_a_mapping_is_equal_after_writing_and_reading():
    mapping = {
        "shape": "wide", "preset": "x", "columns": {"item": "id", "context": ["a", "b"]},
        "outputs": [{"pattern": "{system}_out"}], "ratings": [{"column": "q", "system": "s", "aspect": "q"}],
        "constants": {"rater": "r"}, "values": {"value": {"good": 1, "n/a": None}},
        "turns": {"context": {"rule": "chat", "roles": ["user"]}}, "ids": {"prefix": "p"}, "explode": ["list"],
        "split": {"key": "{item}_{rater}"}, "only": {"status": ["done"], "date": True},
        "meta": {"items": ["topic"]}, "reading": {"separator": ";", "skip_below": 2},
        "make_items": True, "empty": "text",
    }  # fmt: skip
    assert read_mapping(mapping).as_json() == mapping


def test_patterns_are_read_by_the_parts_that_repeat():
    columns = ["gpt_4_fluency", "gpt_4_meaning", "llama_fluency", "llama_meaning", "id"]
    matched = match_pattern("{system}_{aspect}", columns)
    assert {(parts["system"], parts["aspect"]) for parts in matched.values()} == {
        ("gpt_4", "fluency"), ("gpt_4", "meaning"), ("llama", "fluency"), ("llama", "meaning"),
    }  # fmt: skip
    with pytest.raises(AmbiguousPattern):
        match_pattern("{system}_{aspect}", ["gpt_4_fluency"])


# ---- proposals ------------------------------------------------------------------------------------------------------


def propose(tmp_path: Path, content: str) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """The proposed mapping, and the options of each question."""
    (tmp_path / "a.csv").write_text(content)
    proposal = propose_mapping(open_table(tmp_path / "a.csv"))
    return proposal.mapping.as_json(), {question.member: question.options for question in proposal.questions}


def test_two_candidates_are_a_question_and_none_is_chosen(tmp_path):
    mapping, questions = propose(tmp_path, "id,system,model,response\n1,a,b,An answer here.\n1,c,d,Another answer.\n")
    assert questions == {"columns.system": ("system", "model")}
    assert "system" not in mapping["columns"]
    with pytest.raises(WrongMapping):
        read_mapping(mapping)


def test_texts_among_numbers_are_a_question_unless_they_say_that_there_is_none(tmp_path):
    rows = "".join(f"{k},gpt,An answer {k}.,{k}\n" for k in range(1, 9))
    mapping, questions = propose(
        tmp_path, f"id,model,response,rating\n{rows}9,gpt,Answer 9.,N/A\n10,gpt,Answer 10.,good\n"
    )
    assert mapping["values"] == {"value": {"N/A": None}}
    assert list(questions) == ["values.value"]


def test_of_two_ids_the_one_that_repeats_is_the_items(tmp_path):
    content = "id,prompt_id,model,response\n1,p1,a,One two.\n2,p1,b,Two three.\n3,p2,a,Three four.\n4,p2,b,Four five.\n"
    mapping, questions = propose(tmp_path, content)
    assert (mapping["columns"]["item"], questions) == ("prompt_id", {})


def test_a_file_without_the_name_of_its_system_is_asked_for_it(tmp_path):
    mapping, questions = propose(tmp_path, "question,answer\nHow is it?,It is fine.\nWho is it?,It is me.\n")
    assert questions == {"constants.system": ()}
    assert mapping["columns"] == {"text": "answer", "context": "question"}


def test_reasons_are_given_for_all_parts(tmp_path):
    (tmp_path / "a.csv").write_text("prompt,output_a,output_b\nHow is it?,It is good.,It is bad.\n")
    proposal = propose_mapping(open_table(tmp_path / "a.csv"))
    assert {reason.member for reason in proposal.reasons} == {"columns.context", "ids", "outputs"}
    rows = list(convert_rows(open_table(tmp_path / "a.csv"), proposal.mapping))
    assert [row.values["system"] for row in rows if isinstance(row, ConvertedRow) and row.table == "outputs"] == [
        "a",
        "b",
    ]
