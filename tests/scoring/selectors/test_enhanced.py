"""The table of evaluators by reference set."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command

from annotation.models import Reference, ReferenceSet
from evalapp.common.errors import BadInput
from evalapp.versions import signed
from scoring.boards.choices import MOST_SETS
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.references.query import EnhancedQuery
from scoring.selectors.leaderboards import parse_query
from scoring.services.leaderboards import answer_leaderboard, get_leaderboard
from scoring.services.reference_sets import merge_sets
from tests.factories import make_items, make_outputs, make_ratings
from tests.pages import read_page
from tests.scoring.boards.computing import compute_table

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(cast, score):
    """Ten items with six outputs; the set `good` contains the output that raters prefer."""
    project = cast.project
    items = make_items(project, 10)
    systems = [f"sys-{k}" for k in range(6)]
    outputs = make_outputs(project, items, systems)
    aspect = make_ratings(project, outputs)
    words = ["one", "two", "three", "four", "five", "six"]
    good = ReferenceSet.objects.create(project=project, name="good", meta={"kind": "selected", "evaluator": "ream-1"})
    Reference.objects.filter(set__name="original").update(text="nothing two")
    for item in items:
        Reference.objects.create(set=good, item=item, position=0, text=" ".join(words))
        for k, output in enumerate(outputs[items.index(item) :: 10]):
            output.text = " ".join(words[: k + 1] + ["nothing"] * (5 - k))
            output.save()
            output.ratings.update(value=min(5, 1 + k + (item.pk % 2)))
    assert aspect.name == "quality"
    for references in ("original", "good"):
        for name in ("token-f1", "chrf"):
            score(project, name, references=references)
    score(project, "length")
    return project


def test_better_set_is_found_on_the_same_outputs(project) -> None:
    table = compute_table(project, EnhancedQuery())
    assert [row["name"] for row in table["sets"]] == ["original", "good"]
    assert [row["evaluator"] for row in table["rows"]] == ["chrf", "token-f1"]  # length needs no references
    row = table["rows"][1]
    cells = row["cells"]
    assert cells["original"]["n"] == cells["good"]["n"] == 60
    assert cells["good"]["pearson"]["value"] > 0.9
    (difference,) = row["differences"]
    assert (difference["a"], difference["b"]) == ("good", "original")
    assert difference["value"] == pytest.approx(
        cells["good"]["pearson"]["value"] - cells["original"]["pearson"]["value"]
    )
    assert difference["low"] > 0
    assert difference["p"] <= difference["p_holm"] < 0.05
    assert difference["williams"] < 0.05


def test_single_set_gives_the_figures_of_the_leaderboard(project) -> None:
    table = compute_table(project, EnhancedQuery(references="good,original"))
    board = get_leaderboard(project=project, query=EvaluatorsQuery(references="good")).table
    of_board = next(row for row in board["rows"] if row["evaluator"] == "chrf")
    cell = next(row for row in table["rows"] if row["evaluator"] == "chrf")["cells"]["good"]
    assert cell["pearson"] == of_board["pearson"]
    assert cell["kendall"]["value"] == of_board["kendall"]["value"]
    assert table["baseline"] == "good"


@pytest.mark.parametrize(("level", "grouping"), [("segment", "item"), ("system", "none")])
def test_groupings_and_levels_have_no_williams(project, level, grouping) -> None:
    table = compute_table(project, EnhancedQuery(level=level, grouping=grouping))
    (difference,) = table["rows"][0]["differences"]
    assert difference["williams"] is None
    assert difference["p"] is not None


def test_set_without_scores_is_reported_and_unknown_sets_are_errors(project) -> None:
    merge_sets(project=project, names=["original", "good"], into="both")
    table = compute_table(project, EnhancedQuery(references="original,both"))
    cell = table["rows"][0]["cells"]["both"]
    assert (cell.get("value"), bool(cell["note"])) == (None, True)
    assert "two selected sets" in table["note"]
    with pytest.raises(BadInput, match="both, good, original"):
        compute_table(project, EnhancedQuery(references="original,none"))
    with pytest.raises(BadInput, match=f"2 to {MOST_SETS}"):
        compute_table(project, EnhancedQuery(references="original"))


def test_table_is_cached_until_the_data_change(project) -> None:
    query = parse_query(EnhancedQuery, {"references": "original,good"})
    answer = answer_leaderboard(project=project, query=query)
    assert answer.is_current
    assert answer_leaderboard(project=project, query=query).leaderboard.pk == answer.leaderboard.pk
    with pytest.raises(BadInput, match="grouping none"):
        parse_query(EnhancedQuery, {"level": "system", "grouping": "item"})


def test_command_with_several_sets(project) -> None:
    out = io.StringIO()
    call_command("meta", project.slug, "--references", "original", "good", "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert found["kind"] == "enhanced"
    assert {row["evaluator"] for row in found["rows"]} == {"chrf", "token-f1"}
    out = io.StringIO()
    call_command("meta", project.slug, "--references", "original", "good", stdout=out)
    lines = out.getvalue().splitlines()
    assert "minus original" in lines[1]
    assert lines[-1].endswith(signed("refs:original+good"))
    out = io.StringIO()
    call_command("meta", project.slug, "--references", "good", "--json", stdout=out)
    assert json.loads(out.getvalue())["references"] == "good"


def test_only_chosen_evaluators_are_compared(project, cast, client) -> None:
    query = parse_query(EnhancedQuery, {"evaluators": "chrf"}, project)
    table = compute_table(project, query)
    assert [row["evaluator"] for row in table["rows"]] == ["chrf"]
    assert table["signature"].endswith("|evaluators:chrf")
    client.force_login(cast.researcher)
    shown = read_page(client.get("/projects/alpha/references/enhanced/?evaluators=chrf"))
    assert 'data-chosen="chrf"' in shown
    assert "Evaluators: 1 of 3" in shown
    out = io.StringIO()
    call_command("meta", "alpha", "--references", "original", "good", "--evaluators", "chrf", "--json", stdout=out)
    assert json.loads(out.getvalue())["evaluators"] == ["chrf"]
