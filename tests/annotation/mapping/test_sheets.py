"""Sheets as people make them: each leads to the right proposal or a question, and left-out columns are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from annotation.mapping import Fault, Proposal, convert_rows, open_table, propose_mapping, read_mapping
from annotation.mapping.names import choose_translation

JUDGED = [(k, k % 5 + 1, k % 3 + 1) for k in range(1, 7)]


def propose(tmp_path: Path, head: str, rows: list[str], end: str = "") -> Proposal:
    (tmp_path / "sheet.csv").write_text("\n".join([head, *rows, *([end] if end else [])]) + "\n")
    return propose_mapping(open_table(tmp_path / "sheet.csv"))


def convert(tmp_path: Path, proposal: Proposal) -> list[Any]:
    mapping = read_mapping(proposal.mapping.as_json())
    return list(convert_rows(open_table(tmp_path / "sheet.csv", reading=mapping.reading), mapping))


def list_rated(tmp_path: Path, proposal: Proposal) -> set[tuple[str, str]]:
    """(system, aspect) of all ratings."""
    return {(row.values["system"], row.values["aspect"]) for row in convert(tmp_path, proposal) if row[1] == "ratings"}


#: Every column is used: names of columns with two outputs and two ratings, the systems, and the aspect.
NAMED = {
    "spaces": ("gpt output,llama output,gpt fluency,llama fluency", ("gpt", "llama"), "fluency"),
    "hyphens": ("output-gpt-4,output-llama,fluency-gpt-4,fluency-llama", ("gpt-4", "llama"), "fluency"),
    "dots": ("gpt.response,llama.response,gpt.fluency,llama.fluency", ("gpt", "llama"), "fluency"),
    "camel case": ("gptAnswer,llamaAnswer,gptFluency,llamaFluency", ("gpt", "llama"), "Fluency"),
    "brackets": ("answer (gpt),answer (llama),fluency (gpt),fluency [llama]", ("gpt", "llama"), "fluency"),
    "letters": ("Model A answer,Model B answer,Model A score,Model B score", ("Model A", "Model B"), "score"),
    "word for ratings": ("outputs.gpt,outputs.llama,ratings.gpt.tone,ratings.llama.tone", ("gpt", "llama"), "tone"),
    "names only": ("gpt,llama,gpt: quality,llama: quality", ("gpt", "llama"), "quality"),
    "questions": ("Answer of X-1,Answer of Y-2,How good is the answer of X-1?,How good is the answer of Y-2?",
                  ("X-1", "Y-2"), "How good is the answer"),
    "German": ("Antwort von GPT,Antwort von Llama,Flüssigkeit GPT,Flüssigkeit Llama", ("GPT", "Llama"), "Flüssigkeit"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("is_constant", [False, True])
def test_systems_are_read_from_the_names_of_columns(tmp_path, name, is_constant):
    head, systems, aspect = NAMED[name]
    second = "I cannot help with that." if is_constant else "Perhaps {} it is."
    rows = [f"p{k},What is {k}?,It is {k}.,I think {k} it is.,{second.format(k)},{a},{b}" for k, a, b in JUDGED]
    proposal = propose(tmp_path, f"prompt_id,question,answer_gold,{head}", rows)
    assert (proposal.questions, proposal.left_out) == ([], [])
    assert list_rated(tmp_path, proposal) == {(system, aspect) for system in systems}
    assert {row.values["system"] for row in convert(tmp_path, proposal) if row[1] == "outputs"} == set(systems)
    assert next(row.values["references"] for row in convert(tmp_path, proposal) if row[1] == "items") == ["It is 1."]


def test_columns_that_are_not_imported_are_named_with_a_value(tmp_path):
    rows = [f"{k},What is {k}?,It is {k}.,{k}.5,2026-01-0{k}," for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, "id,question,gpt output,seconds,asked on,later,", [f"{row}," for row in rows])
    assert [(one.column, one.example) for one in proposal.left_out] == [
        ("seconds", "1.5"), ("asked on", "2026-01-01"), ("later", ""),
    ]  # fmt: skip
    assert all(one.message for one in proposal.left_out)


@pytest.mark.parametrize(
    ("head", "cells", "asked"),
    [
        # Two columns of the same name, with a rating each
        ("answer,score,answer,score", "It is {}.,{},Or {}.,{}", {"outputs", "ratings"}),
        ("gpt output,llama output,rating", "It is {}.,Or it is {}.,{}", {"ratings"}),
        ("gpt output,llama output,background", "It is {}.,Or it is {}.,In the year {}.", {"outputs"}),
        ("gpt,refusal", "It is {}.,I cannot help with that.", {"outputs"}),
        ("gpt output,llama output,gpt fluency,llama fluency,winner", "It is {}.,Or {}.,{},3,gpt", {"shape"}),
        ("gpt output,llama output,fluency winner,overall winner", "It is {}.,Or {}.,gpt,llama", {"shape"}),
        ("gpt output,llama output,rank gpt,rank llama", "It is {}.,Or {}.,{},3", {"ratings"}),
        ("answer A,answer B,preferred", "It is {}.,Or it is {}.,A", {"constants.system_a", "constants.system_b"}),
    ],
)
def test_what_is_ambiguous_is_asked(tmp_path, head, cells, asked):
    rows = [f"p{k},What is {k}?,{cells.replace('{}', str(k))}" for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, f"id,question,{head}", rows)
    assert {question.member for question in proposal.questions} == asked


def test_ratings_right_of_outputs_suggest_their_system(tmp_path):
    rows = [f"Was ist {k}?,Es ist {k}.,{a},Oder {k}.,{b}" for k, a, b in JUDGED]
    proposal = propose(tmp_path, "Frage,Ausgabe GPT,Bewertung,Ausgabe Llama,Bewertung", rows)
    assert [question.suggestion for question in proposal.questions] == ["GPT", "Llama"]
    assert [one.column for one in proposal.left_out] == ["Bewertung", "Bewertung (2)"]


def test_which_output_is_better_makes_comparisons_of_the_two(tmp_path):
    rows = [f"What is {k}?,It is {k}.,Or {k}.,{['gpt', 'llama', 'tie'][k % 3]}" for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, "question,gpt answer,llama answer,winner", rows)
    assert proposal.questions == []
    verdicts = [row.values["verdict"] for row in convert(tmp_path, proposal) if row[1] == "comparisons"]
    assert verdicts == ["b", "tie", "a"] * 2


def test_rows_of_totals_are_left_out_and_named(tmp_path):
    rows = [f"q{k},What is {k}?,It is {k}.,{a}" for k, a, _b in JUDGED]
    proposal = propose(tmp_path, "id,question,gpt answer,gpt score", rows, "Average,,,2.5\n,,,")
    assert proposal.mapping.as_json()["only"] == {"question": True}
    assert [reason.message for reason in proposal.reasons if reason.member == "only"]
    assert sum(row[1] == "items" for row in convert(tmp_path, proposal)) == len(rows)
    # Without a column that decides it
    proposal = propose(tmp_path, "id,question,gpt answer,gpt score", rows, "Average,of all,of all,2.5")
    assert [question.member for question in proposal.questions] == ["only"]


def test_ids_that_are_missing_or_repeat_are_asked(tmp_path):
    rows = [f"{'' if k == 3 else k},What is {k}?,It is {k}.,Or {k}." for k, _a, _b in JUDGED]
    questions = propose(tmp_path, "ID,Question,GPT Answer,Llama Answer", rows).questions
    assert [(one.member, "row 4" in one.message) for one in questions] == [("ids", True)]
    rows = [f"{k % 5},What is {k}?,It is {k}.,Or {k}." for k, _a, _b in JUDGED]
    questions = propose(tmp_path, "ID,Question,GPT Answer,Llama Answer", rows).questions
    assert [one.member for one in questions] == ["ids"]


def test_words_of_usual_scales_have_numbers_and_others_are_asked(tmp_path):
    words = ["Strongly agree", "Disagree", "Neutral"]
    rows = [f"{k},It is {k}.,{words[k % 3]},{k % 3} - so so,{'top' if k % 2 else 'flop'}" for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, "id,gpt output,gpt fluency,gpt clarity,gpt style", rows)
    values = proposal.mapping.values["value"]
    assert [values[word] for word in words] == [5, 2, 3]
    assert (values["1 - so so"], values.keys() & {"top", "flop"}) == (1, set())
    assert [question.member for question in proposal.questions] == ["values.value"]


def test_raters_are_read_from_names_of_columns(tmp_path):
    rows = [f"{k},What is {k}?,gpt,It is {k}.,{a},{b}" for k, a, b in JUDGED]
    proposal = propose(tmp_path, "id,prompt,model,response,fluency rater 1,fluency rater 2", rows)
    made = [row.values for row in convert(tmp_path, proposal) if row[1] == "ratings"]
    assert {(one["rater"], one["aspect"]) for one in made} == {("rater 1", "fluency"), ("rater 2", "fluency")}


def test_decimal_commas_dates_and_remarks(tmp_path):
    rows = [f'{k};Was ist {k}?;Es ist {k}.;"{a},5";0{k}.02.2026;{"naja" if k == 2 else ""}' for k, a, _b in JUDGED]
    proposal = propose(tmp_path, "Nr;Frage;Antwort GPT;Bewertung GPT;Datum;Anmerkung", rows)
    assert proposal.questions == []
    assert proposal.mapping.meta == {"items": ("Anmerkung",)}
    assert [one.column for one in proposal.left_out] == ["Datum"]
    assert next(row.values["value"] for row in convert(tmp_path, proposal) if row[1] == "ratings") == 2.5


def test_ratings_without_texts_have_systems_and_lengths_are_no_ratings(tmp_path):
    head = "id,gpt_fluency,gpt_meaning,llama_fluency,llama_meaning,gpt_length"
    proposal = propose(tmp_path, head, [f"{k},{a},{b},{b},{a},{k * 7}" for k, a, b in JUDGED])
    assert {one.system for one in proposal.mapping.ratings} == {"gpt", "llama"}
    assert [one.column for one in proposal.left_out] == ["gpt_length"]


def test_a_column_source_with_names_of_data_sets_is_no_source_text(tmp_path):
    rows = [f"{k},{['sharegpt', 'evol'][k % 2]},What is {k}?,It is {k}.,gpt" for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, "Example ID,source,prompt,response,model", rows)
    assert "source" not in proposal.mapping.columns
    assert proposal.mapping.columns["item"] == ("Example ID",)
    assert [one.column for one in proposal.left_out] == ["source"]


def test_answers_of_a_form_are_ratings_by_the_words_of_their_scale(tmp_path):
    names = [f"How {word} is the answer of {system}?" for word in ("fluent", "helpful") for system in ("GPT", "Llama")]
    rows = [f"2026/01/1{k} 10:12:13 AM,a{k}@example.org,Agree,Disagree,Strongly agree,Neutral" for k in range(3)]
    proposal = propose(tmp_path, ",".join(["Timestamp", "Email Address", *names]), rows)
    assert proposal.mapping.preset == "google-forms"
    assert proposal.mapping.values["value"] == {"Agree": 4, "Disagree": 2, "Strongly agree": 5, "Neutral": 3}
    assert [one.member for one in proposal.questions] == ["columns.item"]
    assert [(one.system, one.aspect) for one in proposal.mapping.ratings] == [
        (system, f"How {word} is the answer") for word in ("fluent", "helpful") for system in ("GPT", "Llama")
    ]


def test_preferences_keep_the_systems(tmp_path):
    rows = ["why?,so,no,gpt,llama", "how?,thus,hm,llama,gpt"]
    proposal = propose(tmp_path, "prompt,chosen,rejected,chosen_model,rejected_model", rows)
    assert proposal.questions == []
    judged = [row.values for row in convert(tmp_path, proposal) if row[1] == "comparisons"]
    assert [(row["system_a"], row["system_b"], row["verdict"]) for row in judged] == [
        ("gpt", "llama", "a"), ("llama", "gpt", "a"),
    ]  # fmt: skip


def test_answers_without_a_number_that_a_preset_leaves_out_are_named(tmp_path):
    results = [
        {"from_name": "fluency", "to_name": "text", "type": "rating", "value": {"rating": 4}},
        {"from_name": "verdict", "to_name": "text", "type": "choices", "value": {"choices": ["Good"]}},
    ]
    data = {"item_id": "q", "prompt": "why?", "model": "gpt", "response": "so"}
    task = {"id": 1, "data": data, "annotations": [{"completed_by": 1, "result": results}]}
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    proposal = propose_mapping(open_table(tmp_path / "tasks.json"))
    assert proposal.mapping.preset == "label-studio-ratings"
    assert ["“Good”" in one.message for one in proposal.reasons if one.member == "values.value"] == [True]


ABROAD = {
    "French": (["Numéro", "Question", "Réponse", "Modèle", "Évaluateur", "Fluidité"], "cp1252"),
    "Spanish": (["Identificador", "Pregunta", "Respuesta", "Modelo", "Evaluador", "Fluidez"], "utf-8"),
    "Japanese": (["番号", "質問", "回答", "モデル", "評価者", "流暢さ"], "utf-8"),
}


@pytest.mark.parametrize("name", ABROAD)
def test_names_of_other_languages(tmp_path, name):
    head, encoding = ABROAD[name]
    rows = [f"{k},Où est-ce {k} ?,C'est là-bas {k}.,gpt,ann,{k % 5 + 1}" for k in range(6)]
    (tmp_path / "sheet.csv").write_text("\n".join([",".join(head), *rows]) + "\n", encoding=encoding)
    proposal = propose_mapping(open_table(tmp_path / "sheet.csv"))
    assert (proposal.questions, proposal.left_out) == ([], [])
    assert list_rated(tmp_path, proposal) == {("gpt", head[-1])}


def test_columns_of_annotators_are_ratings_each(tmp_path):
    rows = [f"{k},What is {k}?,It is {k}.,gpt,{k},{6 - k}" for k, _a, _b in JUDGED[:5]]
    proposal = propose(tmp_path, "id,question,answer,model,fluency_ann1,fluency_ann2", rows)
    assert {row.values["rater"] for row in convert(tmp_path, proposal) if row[1] == "ratings"} == {"ann1", "ann2"}
    proposal = propose(tmp_path, "id,question,answer,model,Annotator 1,Annotator 2", rows)
    assert [(one.member, one.suggestion) for one in proposal.questions] == [("constants.aspect", "overall")]
    assert [one.rater for one in proposal.mapping.ratings] == ["Annotator 1", "Annotator 2"]


def test_names_of_annotators_with_an_aspect_are_raters(tmp_path):
    rows = [f"{k},What is {k}?,It is {k}.,gpt,{a},{b},{b}" for k, a, b in JUDGED]
    proposal = propose(tmp_path, "id,question,answer,model,Fluency (Anna),Fluency (Ben),fluency_mean", rows)
    assert proposal.questions == []
    assert [one.column for one in proposal.left_out] == ["fluency_mean"]
    made = [row.values for row in convert(tmp_path, proposal) if row[1] == "ratings"]
    assert {(one["rater"], one["aspect"]) for one in made} == {("Anna", "Fluency"), ("Ben", "Fluency")}


def test_scales_after_a_name_are_no_part_of_it(tmp_path):
    for name in ("Rating 1-5", "rating (1-5)", "Score [0 - 100]"):
        rows = [f"{k},What is {k}?,gpt,It is {k}.,{a}" for k, a, _b in JUDGED]
        proposal = propose(tmp_path, f"id,question,model,answer,{name}", rows)
        assert (proposal.questions, proposal.mapping.columns["value"]) == ([], (name,))


def test_raters_without_recognized_ratings_are_asked(tmp_path):
    rows = [f"{k},Was ist {k}?,gpt,What is {k}?,r{k % 2},Accuracy,{['minor', 'major'][k % 2]}" for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, "seg_id,source,system,target,rater,category,severity", rows)
    assert proposal.mapping.columns["text"] == ("target",)
    assert [(one.member, one.options) for one in proposal.questions] == [("ratings", ("category", "severity"))]


def test_merged_ids_are_not_proposed_to_be_numbered(tmp_path):
    rows = [f"{k},Why {k}?,gpt,One {k}.,{k}\n,,llama,Two {k}.,3" for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, "id,prompt,model,output,fluency", rows)
    assert [(one.member, one.suggestion) for one in proposal.questions] == [("ids", "")]


def test_two_rows_of_names_with_raters_below_aspects(tmp_path):
    rows = [f"{k},Why {k}?,mt,One {k}.,{k},3,{k},2" for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, ",,,,Fluency,,Adequacy,", ["id,prompt,system,output,R1,R2,R1,R2", *rows])
    found = [(one.aspect, one.rater) for one in proposal.mapping.ratings]
    assert found == [("Fluency", "R1"), ("Fluency", "R2"), ("Adequacy", "R1"), ("Adequacy", "R2")]


def test_numbers_with_a_word_for_ratings_in_their_names_are_asked(tmp_path):
    rows = [f"{k},What is {k}?,It is {k}.,gpt,{a},{b},7" for k, a, b in JUDGED]
    proposal = propose(tmp_path, "id,question,answer,model,politeness_score,rating tone,tokens", rows)
    asked = [(one.member, one.options) for one in proposal.questions]
    assert asked == [("ratings", ("politeness_score", "rating tone"))]


def test_pairs_with_ratings_of_each_side(tmp_path):
    rows = [f"{k},Why {k}?,One {k}.,Two {k}.,gpt,llama,{k},3,{'ab'[k % 2]}" for k, _a, _b in JUDGED[:4]]
    head = "id,prompt,response_a,response_b,model_a,model_b,fluency_a,fluency_b"
    proposal = propose(tmp_path, f"{head},preferred", rows)
    assert (proposal.questions, proposal.left_out) == ([], [])
    assert list_rated(tmp_path, proposal) == {("gpt", "fluency"), ("llama", "fluency")}
    proposal = propose(tmp_path, head, [row[:-2] for row in rows])
    assert [row.table for row in convert(tmp_path, proposal)].count("ratings") == 8
    proposal = propose(tmp_path, head.replace("fluency", "winner"), [row[:-2] for row in rows])
    assert [one.member for one in proposal.questions] == ["columns.verdict"]


JUDGES = {
    "numbers": ("annotator_1,annotator_2", ["1", "2"]),
    "words": ("rater 1,rater 2", ["A", "tie"]),
    "names": ("winner (rater 1),winner (rater 2)", ["model_a", "model_b"]),
}


@pytest.mark.parametrize("name", JUDGES)
def test_columns_of_verdicts_under_the_names_of_raters(tmp_path, name):
    names, (first, second) = JUDGES[name]
    cells = [(first, second), (second, first), (first, ""), (first, first)]
    rows = [f"{k},Why {k}?,One {k}.,Two {k}.,gpt,llama,{a},{b}" for k, (a, b) in enumerate(cells)]
    proposal = propose(tmp_path, f"id,prompt,response_1,response_2,model_1,model_2,{names}", rows)
    assert (proposal.questions, proposal.left_out, proposal.mapping.ratings) == ([], [], ())
    made = [row.values for row in convert(tmp_path, proposal) if row.table == "comparisons"]
    words = {"1": "a", "2": "b", "A": "a", "model_a": "a", "model_b": "b"}
    raters = [one.rater for one in proposal.mapping.verdicts]
    assert [(one["item"], one["rater"], one["verdict"]) for one in made] == [
        (str(k), rater, words.get(cell, cell))
        for k, pair in enumerate(cells)
        for rater, cell in zip(raters, pair, strict=True)
        if cell
    ]


def test_a_wrong_verdict_of_one_rater_leaves_the_others(tmp_path):
    rows = [f"{k},Why {k}?,One {k}.,Two {k}.,gpt,llama,A,B" for k in range(4)]
    proposal = propose(tmp_path, "id,prompt,response_1,response_2,model_1,model_2,rater 1,rater 2", rows)
    (tmp_path / "sheet.csv").open("a").write("9,Why 9?,One.,Two.,gpt,llama,perhaps,B\n")
    made = convert(tmp_path, proposal)
    [fault] = [row for row in made if isinstance(row, Fault)]
    assert (fault.row, fault.column) == (6, "rater 1")
    assert sum(row.table == "comparisons" for row in made if not isinstance(row, Fault)) == 9


def test_numbers_under_the_names_of_raters_may_be_ratings(tmp_path):
    rows = [f"{k},Why {k}?,One {k}.,Two {k}.,gpt,llama,{k % 5},1" for k, _a, _b in JUDGED]
    proposal = propose(tmp_path, "id,prompt,response_1,response_2,model_1,model_2,annotator_1,annotator_2", rows)
    assert (proposal.mapping.ratings, proposal.mapping.verdicts) == ((), ())
    assert [(one.member, "annotator_2" in one.options) for one in proposal.questions] == [("columns.verdict", True)]


@pytest.mark.parametrize("names", ["score_chosen,score_rejected", "chosen_score,rejected_score"])
def test_scores_of_chosen_and_rejected_texts_are_ratings(tmp_path, names):
    rows = [f"{k},Why {k}?,One {k}.,Two {k}.,4.5,{a}" for k, a, _b in JUDGED]
    proposal = propose(tmp_path, f"id,prompt,chosen,rejected,{names}", rows)
    assert proposal.left_out == []
    assert [(one.aspect, one.side) for one in proposal.mapping.ratings] == [("score", "a"), ("score", "b")]
    ratings = [row.values for row in convert(tmp_path, proposal) if row.table == "ratings"]
    assert [(one["system"], one["value"]) for one in ratings[:2]] == [("chosen", 4.5), ("rejected", JUDGED[0][1])]


@pytest.mark.parametrize(
    ("column", "grades", "asked"),
    [
        ("Note", ["1", "2", "6"], "1 = 6, 2 = 5, 6 = 1"),
        ("Schulnote", ["1.3", "2.7", "4"], "1.3 = 5.7, 2.7 = 4.3, 4 = 3"),
        ("Note", ['"1,3"', '"2,0"', '"4,7"'], "1,3 = 5.7, 2,0 = 5, 4,7 = 2.3"),
        ("Note", ["12", "15", "20"], ""),
        ("Bewertung", ["1", "2", "3"], ""),
    ],
)
def test_grades_of_which_one_is_the_best_are_asked(tmp_path, column, grades, asked):
    rows = [f"{k},Wer {k}?,Das ist {k}.,gpt,{grades[k % 3]}" for k in range(9)]
    proposal = propose(tmp_path, f"Nr,Frage,Antwort,Modell,{column}", rows)
    assert [one.suggestion for one in proposal.questions] == [asked] * bool(asked)


def test_ratings_out_of_different_numbers_are_asked(tmp_path):
    rows = [f"{k},Why {k}?,It is {k}.,gpt,{['4/5', '8/10', '3/5'][k % 3]}" for k in range(9)]
    proposal = propose(tmp_path, "id,question,answer,model,rating", rows)
    [question] = proposal.questions
    assert question.member == "values.value"
    assert "out of 5, 10" in question.message
    assert "value" not in proposal.mapping.values


@pytest.mark.parametrize(
    ("cells", "asked"),
    [
        (["1", "2", "0"], []),
        (["-2", "-1", "0", "1"], ["[-2, 2]"]),
        (["0", "1"], ["[0, 1]"]),
        (["1", "5"], ["[1, 5]"]),
        (["10%", "90%"], ["[10, 90]"]),
    ],
)
def test_numbers_of_verdicts_are_asked_unless_they_count_the_outputs(tmp_path, cells, asked):
    rows = [f"{k},Why {k}?,One {k}.,Two {k}.,gpt,llama,{cell}" for k, cell in enumerate(cells * 2)]
    proposal = propose(tmp_path, "id,prompt,response_a,response_b,model_a,model_b,preference (-2 to 2)", rows)
    assert [one.message[one.message.rindex("[") : -3] for one in proposal.questions] == asked
    assert bool(proposal.mapping.values.get("verdict")) != bool(asked)


def test_verdicts_that_number_the_outputs(tmp_path):
    words = ["Response 1", "response_2", "Tie"]
    rows = [f"{k},Why {k}?,One {k}.,Two {k}.,gpt,llama,{word}" for k, word in enumerate(words * 2)]
    proposal = propose(tmp_path, "id,prompt,response_1,response_2,model_1,model_2,better", rows)
    assert proposal.questions == []
    verdicts = [row.values["verdict"] for row in convert(tmp_path, proposal) if row[1] == "comparisons"]
    assert verdicts == ["a", "b", "tie"] * 2


def test_words_under_a_usual_name_for_ratings_are_ratings(tmp_path):
    rows = [f"{k},What is {k}?,It is {k}.,gpt,{k % 3}/5" for k in range(9)]
    proposal = propose(tmp_path, "id,question,answer,model,rating", rows)
    assert (proposal.questions, proposal.mapping.values["value"]["2/5"]) == ([], 2)


@pytest.mark.parametrize("words", [["01. Mai", "3", "02. Feb"], ["1-2", "2–3"], ["2-Sept", "1"], ["1/2/2026", "3"]])
def test_dates_and_ranges_in_ratings_are_asked(tmp_path, words):
    rows = [f"{k},What is {k}?,It is {k}.,gpt,{words[k % len(words)]}" for k in range(9)]
    proposal = propose(tmp_path, "id,question,answer,model,rating", rows)
    [question] = proposal.questions
    assert (question.member, words[0] in question.message) == ("values.value", True)
    assert "value" not in proposal.mapping.values


@pytest.mark.parametrize("word", ["2026-05-0{}", "{0}{0}{0}/1000", "level {} of them"])
def test_different_words_in_every_row_under_a_usual_name_are_no_silent_loss(tmp_path, word):
    rows = [f"{k},What is {k}?,It is {k}.,gpt,{word.format(k)}" for k in range(1, 7)]
    proposal = propose(tmp_path, "id,question,answer,model,rating", rows)
    assert proposal.left_out == []
    if word.endswith("/1000"):
        assert [row.values["value"] for row in convert(tmp_path, proposal) if row[1] == "ratings"][:2] == [111, 222]
    else:
        assert [one.member for one in proposal.questions] == ["values.value"]


def test_answers_that_begin_with_a_number_are_ratings(tmp_path):
    words = ["1 - bad", "2 decent", "3: may pass", "4 (5 is the best)"]
    rows = [f"{k},What is {k}?,It is {k}.,gpt,{words[k % 4]}" for k in range(9)]
    proposal = propose(tmp_path, "id,question,answer,model,rating", rows)
    numbers = dict(zip(words, (1, 2, 3, 4), strict=True))
    assert (proposal.questions, proposal.mapping.values) == ([], {"value": numbers})


def test_a_column_of_formulas_without_values_is_left_out_with_its_reason(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["id", "question", "gpt output", "gpt fluency", "difference"])
    for k in range(1, 5):
        book.active.append([k, f"What is {k}?", f"It is {k} so.", k, f"=D{k + 1}-1"])
    book.save(tmp_path / "a.xlsx")
    proposal = propose_mapping(open_table(tmp_path / "a.xlsx"))
    assert proposal.questions == []
    [left] = proposal.left_out
    assert left.column == "difference"
    assert "formula" in left.message


@pytest.mark.parametrize("cover", [[], [["Please rate the answers."], ["Thank you."]]])
def test_a_cover_before_the_sheet_with_the_table_is_not_read(tmp_path, cover):
    book = openpyxl.Workbook()
    for cells in cover:
        book.active.append(cells)
    sheet = book.create_sheet("Answers")
    for k in range(5):
        sheet.append([k, f"What is {k}?", f"It is {k} so."] if k else ["id", "question", "gpt output"])
    book.save(tmp_path / "a.xlsx")
    proposal = propose_mapping(open_table(tmp_path / "a.xlsx"))
    assert (proposal.mapping.reading.sheet, proposal.questions) == ("Answers", [])
    assert ["“Answers”" in one.message for one in proposal.reasons if one.member == "reading"] == [True]


CHOSEN = {
    "winner_a,winner_b,tie": {"winner_a": "a", "winner_b": "b", "tie": "tie"},
    "A wins,B wins,Tie": {"A wins": "a", "B wins": "b", "Tie": "tie"},
    "preferredLeft,preferredRight,both bad": {"preferredLeft": "a", "preferredRight": "b", "both bad": "both_bad"},
    "A besser,B besser,Unentschieden": {"A besser": "a", "B besser": "b", "Unentschieden": "tie"},
    "model_a_better,model_b_better,neither": {
        "model_a_better": "a", "model_b_better": "b", "neither": "both_bad",
    },
}  # fmt: skip


@pytest.mark.parametrize("names", CHOSEN)
def test_columns_of_zeros_and_a_one_are_verdicts(tmp_path, names):
    flags = ["1,0,0", "0,1,0", "0,0,1", "0,0,0"]
    rows = [f"p{k},Why {k}?,It is so.,It is not.,gpt,llama,{cells}" for k, cells in enumerate(flags)]
    proposal = propose(tmp_path, f"id,prompt,text_a,text_b,system_a,system_b,{names}", rows)
    assert (proposal.questions, proposal.left_out) == ([], [])
    assert proposal.mapping.values["verdict"] == CHOSEN[names]
    made = [row.values["verdict"] for row in convert(tmp_path, proposal) if row.table == "comparisons"]
    assert made == list(CHOSEN[names].values())


def test_columns_of_true_and_false_can_name_the_systems(tmp_path):
    rows = [f"p{k},Why {k}?,It is {k}.,It is not {k}.,{cells}" for k, cells in enumerate(["true,false", "false,true"])]
    proposal = propose(tmp_path, "id,prompt,gpt output,llama output,gpt wins,llama wins", rows)
    assert (proposal.questions, proposal.left_out, proposal.mapping.shape) == ([], [], "pairs")
    made = [row.values for row in convert(tmp_path, proposal) if row.table == "comparisons"]
    assert [(one["verdict"], one["system_a"]) for one in made] == [("a", "gpt"), ("b", "gpt")]


@pytest.mark.parametrize(("cells", "message"), [("1,1", "winner_a|winner_b"), ("2,0", "“2” is not true or false")])
def test_a_row_with_two_winners_or_another_number_is_a_fault(tmp_path, cells, message):
    rows = [f"p{k},Why {k}?,So.,Not.,gpt,llama,{one}" for k, one in enumerate(["1,0", "0,1", "1,0"])]
    proposal = propose(tmp_path, "id,prompt,text_a,text_b,system_a,system_b,winner_a,winner_b", rows)
    (tmp_path / "sheet.csv").open("a").write(f"p9,Why 9?,So.,Not.,gpt,llama,{cells}\n")
    [fault] = [row for row in convert(tmp_path, proposal) if isinstance(row, Fault)]
    assert fault.row == 5
    assert message in str(fault)


@pytest.mark.parametrize(
    ("words", "likely"),
    [
        (["yes", "no"], "no = 0, yes = 1"),
        (["True", "False"], "false = 0, true = 1"),
        (["A", "C", "F"], "a = 4, c = 2, f = 0"),
        (["A", "B", "E"], "a = 5, b = 4, e = 1"),
    ],
)
@pytest.mark.parametrize("column", ["hallucinated", "fluency"])
def test_words_that_may_be_ratings_are_asked_with_likely_numbers(tmp_path, column, words, likely):
    rows = [f"p{k},Why {k}?,It is {k} then.,{words[k % len(words)]}" for k in range(9)]
    proposal = propose(tmp_path, f"id,prompt,gpt output,{column}", rows)
    [asked] = proposal.questions
    assert (asked.suggestion, column in asked.message) == (likely, True)
    assert proposal.mapping.meta == {}


@pytest.mark.parametrize("names", [("de", "en", "fr"), ("en-US", "zh_CN"), ("Deutsch", "English"), ("日本語", "英語")])
def test_columns_named_after_languages_are_no_systems(tmp_path, names):
    rows = [",".join([str(k), *(f"Text {k} of {name} here" for name in names)]) for k in range(1, 7)]
    proposal = propose(tmp_path, ",".join(["id", *names]), rows)
    assert proposal.mapping.outputs == ()
    (question,) = proposal.questions
    assert (question.member, question.options) == ("outputs", names)


def test_a_language_next_to_systems_is_asked_about(tmp_path):
    rows = [f"{k},Ein Satz {k} hier,A sentence {k} here,One sentence {k} here" for k in range(1, 7)]
    proposal = propose(tmp_path, "id,de,opus,llama", rows)
    assert {one.column for one in proposal.mapping.outputs} == {"opus", "llama"}
    (question,) = proposal.questions
    assert (question.member, question.options, question.suggestion) == ("columns.context", ("de",), "de")


@pytest.mark.parametrize(
    "head",
    [
        "ID / 编号,Prompt / 提示,System / 系统,Response / 回复,Rater / 评估者,Fluency / 流畅度",
        "编号 ID,提示 (prompt),系统 (system),回复（response）,评估者 Rater,流畅度 (Fluency)",
        "Nummer/ID,Frage / Question,Modell / Model,Antwort | Answer,Bewerter / Rater,Fluency",
    ],
)
def test_names_in_two_languages(tmp_path, head):
    rows = [
        f"{k},What is {k}?,{system},It is {k} by {system}.,anna,{k % 5 + 1}" for k in range(1, 5) for system in "XY"
    ]
    proposal = propose(tmp_path, head, rows)
    assert (proposal.questions, proposal.left_out) == ([], [])
    assert {row[1] for row in convert(tmp_path, proposal)} == {"items", "outputs", "ratings"}
    assert {row.values["system"] for row in convert(tmp_path, proposal) if row[1] == "outputs"} == {"X", "Y"}


@pytest.mark.parametrize("name", ["fluency/coherence", "input / output", "model/version"])
def test_two_things_in_a_name_are_not_one_in_two_languages(name):
    assert choose_translation(name) == name
