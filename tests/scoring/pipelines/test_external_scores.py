"""Scores made by other programs: rows of `scores` that name an evaluator."""

from __future__ import annotations

import json

import pytest

from annotation.models import Output
from annotation.services.undo import take_back_upload
from evalapp.common.errors import BadInput, Conflict
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Evaluator, Score, ScoreSet
from scoring.selectors.reports import check_chooser
from scoring.selectors.score_sets import list_states
from scoring.services.evaluators import delete_evaluator
from scoring.services.leaderboards import get_leaderboard
from scoring.services.reports import RobustnessOptions, start_robustness
from scoring.services.scores import apply_evaluator
from scoring.services.several import plan_scores
from tests.taking import ITEMS, OUTPUTS, WHOLE, list_errors, row_counts, take_in

pytestmark = pytest.mark.django_db

SCORES = [
    {"item": "i1", "system": "s", "evaluator": "COMET 22", "score": 0.5},
    {"item": "i1", "system": "t", "evaluator": "COMET 22", "score": None},
    {"item": "i2", "system": "s", "evaluator": "COMET 22", "score": 0.25},
]


def scores(*rows, **more):
    return {"scores.jsonl": [{**row, **more} for row in rows or SCORES]}


@pytest.fixture
def project(cast):
    # Texts that were judged cannot change.
    upload = take_in(cast.project, {name: WHOLE[name] for name in ("dataset.json", "items.jsonl", "outputs.jsonl")})
    assert upload.state == "done", list_errors(upload)
    return cast.project


def take(project, files, **options):
    upload = take_in(project, files, **options)
    assert upload.state == "done", list_errors(upload)
    return upload


def values(project):
    rows = Score.objects.filter(score_set__project=project).order_by("pk")
    return {(row.output.item.key, row.output.system.name): row.value for row in rows}


def stale(project):
    return [state.stale for state in list_states(project, Output.objects.filter(project=project).count())]


def test_scores_make_a_set_of_their_own(project):
    upload = take(project, scores())
    assert upload.counts == {"scores": {"rows": 3, "added": 3, "same": 0, "replaced": 0, "faulty": 0}}
    (found,) = ScoreSet.objects.all()
    evaluator = found.evaluator
    assert (evaluator.slug, evaluator.name, evaluator.kind) == ("comet-22", "external", "external")
    assert evaluator.options == {"evaluator": "COMET 22", "higher_is_better": True}
    assert found.full_signature == f"COMET 22|external|v:1|data:{found.data_hash}"
    assert (found.n_scores, found.n_undefined, found.n_duplicate) == (3, 1, 0)
    assert [row["label"] for row in found.summary] == ["s", "t"]
    assert Score.objects.get(value=None).note == "the file has no score"
    assert stale(project) == [""]
    again = take(project, scores())
    assert again.counts["scores"] == {"rows": 3, "added": 0, "same": 3, "replaced": 0, "faulty": 0}


def test_scores_can_come_with_their_outputs(cast):
    take(cast.project, {**WHOLE, **scores()})
    assert values(cast.project) == {("i1", "s"): 0.5, ("i1", "t"): None, ("i2", "s"): 0.25}
    assert stale(cast.project) == [""]


def test_signature_aspect_and_references_make_different_sets(project):
    take(project, scores(reference_set="original", signature="comet|model:da|v:2.2.0"))
    take(project, scores(aspect="quality"))
    found = {(row.references, row.aspect): row.signature for row in ScoreSet.objects.all()}
    assert found == {("original", ""): "comet|model:da|v:2.2.0", ("", "quality"): "COMET 22|external|v:1"}
    assert Evaluator.objects.count() == 1


def test_lower_is_better_is_negated_and_said(project):
    take(project, scores(higher_is_better=False))
    assert values(project) == {("i1", "s"): -0.5, ("i1", "t"): None, ("i2", "s"): -0.25}
    found = ScoreSet.objects.get()
    assert found.signature == "COMET 22|external|negated|v:1"
    upload = take_in(project, scores())
    assert upload.state == "faulty"
    assert "higher_is_better must be the same for all scores of “COMET 22”" in list_errors(upload)[0]


def test_other_value_needs_replace(project, cast):
    first = take(project, scores())
    data = ScoreSet.objects.get().data_hash
    other = scores({**SCORES[0], "score": 0.75})
    refused = take_in(project, other)
    assert refused.state == "faulty"
    assert list_errors(refused) == [
        "scores.jsonl:1: A different score by “comet-22” is stored. Use replace to overwrite it."
    ]
    second = take(project, other, replace=True)
    assert second.counts["scores"]["replaced"] == 1
    assert values(project)["i1", "s"] == 0.75
    assert ScoreSet.objects.get().data_hash != data
    # The earlier upload can only be undone after the later one, which restores the earlier value.
    with pytest.raises(Conflict):
        take_back_upload(upload=first, user=cast.owner)
    take_back_upload(upload=second, user=cast.owner)
    assert values(project)["i1", "s"] == 0.5
    assert ScoreSet.objects.get().data_hash == data
    take_back_upload(upload=first, user=cast.owner)
    assert not Evaluator.objects.exists()
    assert "scores" not in row_counts(project)


def test_changed_text_makes_the_score_out_of_date(project):
    take(project, scores())
    changed = {"item": "i1", "system": "t", "text": "Good evening."}
    take(project, {"outputs.jsonl": [changed]}, replace=True)
    assert stale(project) == [
        "1 score is of a text, context, source or references that have changed since; upload it again"
    ]
    # The same values again do not say that the new text was scored; with replace they do.
    take(project, scores())
    assert stale(project) != [""]
    take(project, scores(), replace=True)
    assert stale(project) == [""]
    # Back to the scored text: the hash of what was scored tells.
    take(project, {"outputs.jsonl": [OUTPUTS[1]]}, replace=True)
    assert stale(project) != [""]


def test_changed_and_restored_text_is_current(project, cast):
    take(project, scores())
    changed = take(project, {"outputs.jsonl": [{**OUTPUTS[1], "text": "Good evening."}]}, replace=True)
    assert stale(project) != [""]
    take(project, {"outputs.jsonl": [OUTPUTS[1]]}, replace=True)
    assert stale(project) == [""]
    assert changed.state == "done"


def test_only_sets_with_these_references_depend_on_them(project):
    take(project, scores(reference_set="original"))
    take(project, scores(evaluator="qe"))
    grown = {**ITEMS[1], "references": ["Goodbye."]}
    take(project, {"items.jsonl": [grown]}, replace=True)
    named = {state.score_set.evaluator.slug: state.stale for state in list_states(project, 3)}
    assert named["qe"] == ""
    assert named["comet-22"].startswith("1 score is of a text")


def test_new_outputs_have_no_score(project):
    take(project, scores())
    take(project, {"outputs.jsonl": [{"item": "i2", "system": "t", "text": "Farewell."}]})
    assert stale(project) == ["1 output came later and has no score"]


def test_scores_of_whole_systems(project):
    rows = [
        {"system": "s", "evaluator": "BLEU", "score": 31.5},
        {"system": "t", "evaluator": "BLEU", "score": 12.0},
    ]
    take(project, scores(*rows))
    found = ScoreSet.objects.get()
    assert [(row["system"], row["step"], row["value"]) for row in found.systems] == [
        ("s", None, 31.5),
        ("t", None, 12.0),
    ]
    assert stale(project) == [""]
    table = get_leaderboard(project=project, query=SystemsQuery(by=found.evaluator.slug)).table
    assert [(row["label"], row["value"], row["low"]) for row in table["rows"]] == [("s", 31.5, None), ("t", 12.0, None)]
    refused = take_in(project, scores({**rows[0], "score": 1}))
    assert "A different score by" in list_errors(refused)[0]
    take(project, scores({**rows[0], "score": 1}), replace=True)
    assert ScoreSet.objects.get().systems[0]["value"] == 1


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ({"item": "i9"}, "item", "There is no item “i9”"),
        ({"system": "nobody"}, "system", "“nobody” has no output for the item “i1”"),
        ({"step": 3}, "system", "“s” has no output of step 3 for the item “i1”"),
        ({"item": None, "system": "nobody"}, "system", "There is no system “nobody”"),
        ({"item": None, "step": 3}, "system", "“s” has no outputs of step 3"),
        ({"item": None, "score": None}, "score", "The score of a whole system cannot be empty"),
        ({"reference_set": "best"}, "reference_set", "There is no reference set “best”. There are: original"),
        ({"score": "0.5"}, "score", "score must be a number"),
        ({"score": True}, "score", "score must be a number"),
        ({"score": 1e200}, "score", "score is beyond 1e+150"),
        ({"value": 3}, "value", "Write the number in the column “score”"),
        ({"set": "x"}, "set", "not both"),
        ({"evaluator": ""}, "evaluator", "evaluator is empty"),
        ({"evaluator": None}, "evaluator", "evaluator is missing"),
        ({"higher_is_better": "no"}, "higher_is_better", "must be true or false"),
        ({"signature": "a\nb"}, "signature", "signature contains"),
        ({"note": 7}, "note", "note must be text"),
        ({"evaluator": "comet_22"}, "evaluator", "“comet_22” and “COMET 22” have the same address, comet-22"),
        ({"evaluator": "Known"}, "evaluator", "“known” is a baseline evaluator of this project"),
    ],
)
def test_faulty_rows(project, row, field, message):
    Evaluator.objects.create(project=project, slug="known", name="bleu", kind="baseline")
    take(project, scores(SCORES[2]))
    upload = take_in(project, scores({**SCORES[0], **row}))
    assert upload.state == "faulty"
    (fault,) = upload.faults.all()
    assert (fault.file, fault.line, fault.field) == ("scores.jsonl", 1, field)
    assert message in fault.message
    assert Score.objects.count() == 1


@pytest.mark.parametrize("cell", ["nan", "inf", "-Infinity", "n/a", "1,234"])
def test_cells_that_are_no_numbers(project, cell):
    upload = take_in(project, {"scores.csv": f'item,system,evaluator,score\ni1,s,m,"{cell}"\n'.encode()})
    assert upload.state == "faulty"
    (fault,) = upload.faults.all()
    assert (fault.line, fault.field) == (2, "score")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have(project, value):
    line = json.dumps(SCORES[0]).replace("0.5", value).encode()
    upload = take_in(project, {"scores.jsonl": line})
    assert upload.state == "faulty"
    assert value.lstrip("-") in list_errors(upload)[0]


def test_table_of_a_spreadsheet(project):
    rows = "Item;System;Evaluator;Score;Higher_is_better\ni1;s;ter;0,5;no\ni1;t;ter;;no\n"
    take(project, {"scores.csv": rows.encode()})
    assert values(project) == {("i1", "s"): -0.5, ("i1", "t"): None}


def test_same_output_twice(project):
    upload = take_in(project, scores(SCORES[0], SCORES[0]))
    assert "The same key is already used in scores.jsonl:1" in list_errors(upload)[0]


def test_name_of_the_catalogue_gets_another_address(project):
    take(project, scores(evaluator="token-f1"))
    assert Evaluator.objects.get().slug == "token-f1-external"
    run = apply_evaluator(project=project, evaluator="token-f1", send=False)
    assert run.params["evaluator"] == "token-f1"


def test_external_evaluator_cannot_score(project):
    take(project, scores())
    with pytest.raises(BadInput, match="comet-22 was made elsewhere"):
        start_robustness(project=project, options=RobustnessOptions("comet-22"), send=False)
    with pytest.raises(BadInput, match="comet-22 was made elsewhere"):
        check_chooser(project, "comet-22")
    (plan,) = plan_scores(project=project, evaluators=["comet-22"])
    assert (plan.outcome, plan.why.partition(",")[0]) == ("refused", "comet-22 was made elsewhere")
    with pytest.raises(Conflict, match="Delete the scores of comet-22"):
        delete_evaluator(evaluator=Evaluator.objects.get(slug="comet-22"))
    with pytest.raises(BadInput, match=r"comet-22 was made elsewhere.*Upload them again, with replace"):
        apply_evaluator(project=project, evaluator="comet-22", send=False)


def test_too_many_evaluators(project, monkeypatch):
    monkeypatch.setattr("scoring.pipelines.external.MOST_SETS", 2)
    upload = take_in(project, scores(*({**SCORES[0], "evaluator": str(k)} for k in range(3))))
    assert "There are more than 2 evaluators" in list_errors(upload)[0]
