"""Questionnaires and batches of crowd workers: what was rated is read from the questions, or asked."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from annotation.mapping import Fault, Proposal, convert_rows, open_table, propose_mapping, read_mapping

TIME = "2026/01/12 10:11:12 AM GMT+1"
TASK = ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus"]


def propose(tmp_path: Path, head: list[str], rows: list[list[Any]]) -> Proposal:
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return propose_mapping(open_table(tmp_path / "a.csv"))


def convert(tmp_path: Path, proposal: Proposal, **more: Any) -> list[Any]:
    mapping = read_mapping({**proposal.mapping.as_json(), **more})
    return list(convert_rows(open_table(tmp_path / "a.csv", reading=mapping.reading), mapping))


def fill_form(tmp_path: Path, questions: list[str], more: dict[str, list[str]] | None = None) -> Proposal:
    """A Google Form that two people have filled in."""
    more = more or {}
    ratings = [[(k + n) % 5 + 1 for n in range(len(questions))] for k in range(2)]
    rows = [
        [TIME, f"u{k}@example.org", *(values[k] for values in more.values()), *one] for k, one in enumerate(ratings)
    ]
    return propose(tmp_path, ["Timestamp", "Username", *more, *questions], rows)


def list_rated(rows: list[Any]) -> set[tuple[str, str, str]]:
    return {(row.values["item"], row.values["system"], row.values["aspect"]) for row in rows}


FORMS = {
    "system in brackets": ("Q{q} {aspect} [{system}]", ("Fluency", "Relevance"), ("System A", "System B"), "{aspect}"),
    "aspect in brackets": ("{q}. {system} [{aspect}]", ("Fluency", "Zest"), ("Claude", "Gemini"), "{aspect}"),
    "sentence before brackets": (
        "{q}. How {aspect} is it? [{system}]", ("fluent", "kind"), ("Claude", "Gemini"), "How {aspect} is it?",
    ),
    "system in the sentence": (
        "Q{q}. How {aspect} is the answer of {system}?", ("fluent", "kind"), ("System A", "System B"),
        "How {aspect} is the answer",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_questions_say_item_system_and_aspect(tmp_path, name):
    form, aspects, systems, aspect = FORMS[name]
    parts = [(q, a, s) for q in (1, 2) for a in aspects for s in systems]
    proposal = fill_form(tmp_path, [form.format(q=q, aspect=a, system=s) for q, a, s in parts])
    assert proposal.questions == []
    item = "Q{}" if form.startswith("Q") else "{}"
    assert list_rated(convert(tmp_path, proposal)) == {
        (item.format(q), s, aspect.format(aspect=a)) for q, a, s in parts
    }


def test_systems_are_the_words_that_differ(tmp_path):
    questions = [f"How {a} is {s}'s answer?" for a in ("fluent", "kind") for s in ("Claude", "Gemini")]
    proposal = fill_form(tmp_path, questions, {"Item ID": ["i1", "i2"]})
    assert proposal.questions == []
    assert {row.values["system"] for row in convert(tmp_path, proposal)} == {"Claude", "Gemini"}


def test_item_and_system_can_be_questions_of_the_form(tmp_path):
    more = {"Item ID": ["i1", "i2"], "Which system?": ["gpt", "llama"]}
    proposal = fill_form(tmp_path, ["Fluency", "Relevance"], more)
    assert (proposal.questions, proposal.mapping.columns["item"]) == ([], ("Item ID",))
    assert list_rated(convert(tmp_path, proposal)) == {
        (item, system, aspect)
        for item, system in (("i1", "gpt"), ("i2", "llama"))
        for aspect in ("Fluency", "Relevance")
    }


def test_what_questions_do_not_say_is_asked_with_their_names(tmp_path):
    """Neither name is a known system or aspect, so either may be the system."""
    questions = [f"{q}. {s} [{a}]" for q in (1, 2) for s in ("Claude", "Gemini") for a in ("Zest", "Charm")]
    proposal = fill_form(tmp_path, questions)
    [asked] = [one for one in proposal.questions if one.member == "ratings"]
    assert questions[0] in asked.message


def judge_pairs(answers: list[str], values: list[list[Any]], inputs: list[str] | None = None) -> tuple[list[str], Any]:
    inputs = inputs or ["Input.prompt", "Input.text_a", "Input.text_b", "Input.system_a", "Input.system_b"]
    given = ["How so?", "This way.", "That way.", "gpt", "llama"][: len(inputs)]
    rows = [[f"H{k}", f"A{k}", f"W{k}", "Approved", *given, *cells] for k, cells in enumerate(values)]
    return [*TASK, *inputs, *answers], rows


def test_tasks_with_two_texts_are_comparisons_and_ratings_of_each_side(tmp_path):
    answers = ["Answer.choice.A", "Answer.choice.B", "Answer.choice.tie", "Answer.fluency_a", "Answer.fluency_b"]
    values = [["true", "false", "false", 5, 2], ["false", "true", "false", 3, 4], ["false", "false", "true", 4, 4],
              ["false", "false", "false", 1, 1]]  # fmt: skip
    proposal = propose(tmp_path, *judge_pairs(answers, values))
    assert (proposal.mapping.preset, proposal.questions) == ("mturk", [])
    rows = convert(tmp_path, proposal)
    assert [row.values["verdict"] for row in rows if row.table == "comparisons"] == ["a", "b", "tie"]
    assert [(row.values["system"], row.values["value"]) for row in rows if row.table == "ratings"][:4] == [
        ("gpt", 5), ("llama", 2), ("gpt", 3), ("llama", 4),
    ]  # fmt: skip
    assert Counter(row.table for row in rows) == {"items": 1, "outputs": 2, "comparisons": 3, "ratings": 8}


def test_two_chosen_options_are_no_verdict(tmp_path):
    answers = ["Answer.choice.A", "Answer.choice.B"]
    proposal = propose(tmp_path, *judge_pairs(answers, [["true", "false"], ["true", "true"]]))
    assert [one.member for one in proposal.questions] == ["values.verdict"]
    assert [row.row for row in convert(tmp_path, proposal) if isinstance(row, Fault)] == [3]


def test_two_texts_with_ratings_alone(tmp_path):
    inputs = ["Input.prompt", "Input.response_a", "Input.response_b"]
    proposal = propose(tmp_path, *judge_pairs(["Answer.fluency_a", "Answer.fluency_b"], [[5, 2], [4, 3]], inputs))
    assert [one.member for one in proposal.questions] == ["constants.system_a", "constants.system_b"]
    rows = convert(tmp_path, proposal, constants={"system_a": "gpt", "system_b": "llama"})
    assert Counter(row.table for row in rows) == {"items": 1, "outputs": 2, "ratings": 4}


def test_a_preset_that_finds_items_alone_asks(tmp_path):
    answers = ["Answer.comment"]
    proposal = propose(tmp_path, *judge_pairs(answers, [["Fine words."], ["Odd."]], ["Input.prompt"]))
    [asked] = proposal.questions
    assert asked.member == "outputs"
    assert "Answer.comment" in asked.options
