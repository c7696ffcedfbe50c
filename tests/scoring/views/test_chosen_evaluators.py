"""A table compares evaluators chosen by name: by page, command and API. Without a choice, single-fold trainings that
together used everything leave nothing to compare on."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from annotation.models import Comparison, Item
from evalapp import __version__
from evalapp.common.errors import BadInput
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.recompute import recompute_folder
from scoring.models import Leaderboard, Score, ScoreSet, Snapshot
from scoring.selectors.leaderboards import make_key, parse_query
from scoring.services import leaderboards
from scoring.services.columns import cache_columns
from scoring.services.leaderboards import get_leaderboard, renew_leaderboards
from tests.pages import read_page
from tests.scoring.pipelines.test_whole_export import export

pytestmark = pytest.mark.django_db
PAGE = "/projects/alpha/evaluation/"


@pytest.fixture
def halves(scored):
    """Of 24 rated outputs, token-f1 learned from the first 12 and random from at least the rest: nothing is left for
    both."""
    outputs = sorted(Score.objects.filter(score_set__evaluator__slug="length").values_list("output_id", flat=True))
    for slug, seen in (("token-f1", outputs[:12]), ("random", outputs[9:])):
        score_set = ScoreSet.objects.get(evaluator__slug=slug)
        Score.objects.filter(score_set=score_set, output__in=seen).update(in_training=True)
        ScoreSet.objects.filter(pk=score_set.pk).update(n_in_training=len(seen))
        cache_columns(ScoreSet.objects.get(pk=score_set.pk))
    return scored


def read_text(response) -> str:
    """The text of a page without tags and repeated spaces."""
    return " ".join(re.sub(r"<[^>]+>", " ", read_page(response)).split())


def test_if_nothing_is_left_the_largest_learners_and_remedies_are_named(halves, client):
    table = get_leaderboard(project=halves.project, query=EvaluatorsQuery()).table
    assert (table["n_outputs"], table["n_excluded"], table["evaluators"]) == (0, 24, [])
    assert all(figure in table["note"] for figure in ("training data", "24 rated outputs", "random 15, token-f1 12. "))
    for way in ("--evaluators", "train with folds", "delete", "have more outputs judged"):
        assert way in table["note"]
    client.force_login(halves.researcher)
    response = client.get(PAGE)
    shown = read_text(response)
    assert "random 15, token-f1 12" in shown
    assert re.findall(r"data-excluded=\"(\w+)\"", read_page(response)) == ["all"]
    assert "all 24" in shown


def test_figures_on_all_outputs_are_not_promised_for_a_ranking(halves, client):
    """The table against comparisons has none; page and command once announced them."""
    for item in Item.objects.filter(project=halves.project):
        _, one, two = item.outputs.order_by("system__name")  # token-f1 has seen every output of the first system
        aspect = halves.project.aspects.get()
        Comparison.objects.create(
            project=halves.project, output_a=one, output_b=two, aspect=aspect, rater="r0", verdict="a"
        )
    client.force_login(halves.researcher)
    response = client.get(PAGE + "?people=win-rate&evaluators=token-f1,length")
    shown = read_text(response)
    assert re.search(r"data-excluded=\"\d+\"", read_page(response))
    assert "small type" not in shown
    out = io.StringIO()
    call_command("meta", "alpha", "--people", "win-rate", "--evaluators", "token-f1", "length", stdout=out)
    assert "are left out: an evaluator was trained on their groups." in out.getvalue()
    assert "On all of them" not in out.getvalue()


def test_only_chosen_evaluators_get_rows_and_affect_tests_and_exclusions(halves):
    query = parse_query(EvaluatorsQuery, {"evaluators": "token-f1, length,length"}, halves.project)
    assert query.evaluators == "length,token-f1"
    table = get_leaderboard(project=halves.project, query=query).table
    assert {row["evaluator"] for row in table["rows"]} == {"length", "token-f1"}
    assert set(table["test"]["names"]) == {"length", "token-f1"}
    assert (table["n_outputs"], table["n_excluded"], table["note"]) == (12, 12, "")
    assert table["signature"].endswith(f"|evaluators:length+token-f1|v:{__version__}")
    whole = get_leaderboard(project=halves.project, query=EvaluatorsQuery()).table
    assert "evaluators:" not in whole["signature"]
    assert make_key(query) == make_key(parse_query(EvaluatorsQuery, {"evaluators": ["token-f1", "length"]}))
    (row,) = get_leaderboard(project=halves.project, query=EvaluatorsQuery(evaluators="random")).table["rows"]
    assert (row["evaluator"], row["n"]) == ("random", 9)


def test_unknown_evaluator_is_an_error_and_one_without_scores_is_reported(halves, client, score):
    with pytest.raises(BadInput, match=r"“nobody” .*alpha.*length.*random.*token-f1"):
        parse_query(EvaluatorsQuery, {"evaluators": "nobody,length"}, halves.project)
    client.force_login(halves.researcher)
    shown = client.get(PAGE + "?evaluators=nobody")
    assert shown.status_code == 400
    assert "“nobody”" in read_page(shown)
    with pytest.raises(CommandError, match="no evaluator “nobody”"):
        call_command("meta", "alpha", "--evaluators", "nobody")
    ScoreSet.objects.filter(evaluator__slug="token-f1").update(references="other")
    table = get_leaderboard(project=halves.project, query=EvaluatorsQuery(evaluators="length,token-f1")).table
    assert table["note"].endswith(": token-f1.")
    assert [row["evaluator"] for row in table["rows"]] == ["length"]


def test_unapplied_baseline_can_be_chosen(halves):
    names = [row["evaluator"] for row in get_leaderboard(project=halves.project, query=EvaluatorsQuery()).table["rows"]]
    unapplied = next(name for name in names if name not in ("length", "random", "token-f1"))
    query = parse_query(EvaluatorsQuery, {"evaluators": f"length,{unapplied}"}, halves.project)
    table = get_leaderboard(project=halves.project, query=query).table
    assert [row["evaluator"] for row in table["rows"]] == ["length", unapplied]


def test_page_offers_the_choice_and_states_it_above_the_table(halves, client):
    client.force_login(halves.researcher)
    shown = read_page(client.get(PAGE))
    assert "Evaluators: all" in shown
    assert 'name="evaluators" value="token-f1">' in shown
    shown = read_page(client.get(PAGE + "?evaluators=token-f1&evaluators=length&level=segment"))
    assert "Evaluators: 2 of 3" in shown
    assert 'name="evaluators" value="token-f1" checked>' in shown
    assert 'name="evaluators" value="random">' in shown
    assert 'data-chosen="length token-f1"' in shown
    assert "evaluators=length%2Ctoken-f1" in shown, "the files and plots are of the same table"
    for end in ("plot.svg", "token-f1/scatter.svg", "table.tex", "table.json"):
        assert client.get(f"{PAGE}{end}?evaluators=length,token-f1").status_code == 200, end
    lines = client.get(f"{PAGE}table.csv?evaluators=length,token-f1").content.decode().splitlines()
    assert len(lines) == 3


@pytest.mark.parametrize("kind", ["aspects", "matrix", "slices"])
def test_further_tables_use_the_same_choice(halves, client, kind):
    for number, item in enumerate(halves.project.items.all()):
        item.meta = {"part": "ab"[number % 2]}
        item.save()
    client.force_login(halves.researcher)
    shown = read_page(client.get(f"{PAGE}{kind}/?evaluators=token-f1&evaluators=length"))
    assert "Evaluators: 2 of 3" in shown
    table = client.get(f"/api/v1/projects/alpha/leaderboards/{kind}/?evaluators=length,token-f1").json()
    assert {row["evaluator"] for row in table["rows"]} == {"length", "token-f1"}
    assert table["evaluators"] == ["length", "token-f1"]
    assert "|evaluators:length+token-f1" in table["signature"]
    out = io.StringIO()
    further = ["--slices", "part"] if kind == "slices" else [f"--{kind}"]
    call_command("meta", "alpha", *further, "--evaluators", "token-f1", "length", stdout=out)
    assert "Only selected evaluators are compared: length, token-f1." in out.getvalue()
    assert "random" not in out.getvalue()


def test_same_by_command_and_api(halves, client):
    out = io.StringIO()
    call_command("meta", "alpha", "--evaluators", "token-f1", "length", "--json", stdout=out)
    table = json.loads(out.getvalue())
    client.force_login(halves.researcher)
    board = client.get("/api/v1/projects/alpha/leaderboards/evaluators/?evaluators=token-f1,length").json()
    assert board["evaluators"] == table["evaluators"] == ["length", "token-f1"]
    assert [row["pearson"] for row in board["rows"]] == [row["pearson"] for row in table["rows"]]
    refused = client.get("/api/v1/projects/alpha/leaderboards/evaluators/?evaluators=nobody")
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["field"] == "evaluators"
    parameters = client.get("/api/v1/schema/?format=json").json()["paths"][
        "/api/v1/projects/{slug}/leaderboards/evaluators/"
    ]["get"]["parameters"]
    described = next(found for found in parameters if found["name"] == "evaluators")
    assert "commas" in described["description"]


def test_snapshot_keeps_the_chosen_evaluators(halves, client):
    client.force_login(halves.researcher)
    asked = client.get(PAGE + "?evaluators=token-f1,length").context["asked"]
    assert (
        client.post("/projects/alpha/snapshots/", {"board": "evaluators", "title": "Two", **asked}).status_code == 302
    )
    kept = Snapshot.objects.get()
    assert kept.params["evaluators"] == "length,token-f1"
    shown = client.get(f"/projects/alpha/snapshots/{kept.slug}/")
    assert 'data-chosen="length token-f1"' in read_page(shown)
    assert "Compare all" not in read_page(shown)
    out = io.StringIO()
    call_command("snapshot", "alpha", "compare", kept.slug, "now", "--json", stdout=out)
    assert json.loads(out.getvalue())["settings"] == []


def test_tables_of_deleted_evaluators_are_not_renewed(halves, monkeypatch):
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 1)
    for query in (EvaluatorsQuery(evaluators="length"), EvaluatorsQuery(evaluators="gone")):
        leaderboards.compute_leaderboard(project=halves.project, query=query)
    Leaderboard.objects.update(stamp="earlier")
    renewed = renew_leaderboards(project=halves.project)
    assert [run.params["query"]["evaluators"] for run in renewed] == ["length"]


def test_export_recomputes_these_tables(halves, tmp_path):
    for query in (EvaluatorsQuery(aspect="quality"), EvaluatorsQuery(aspect="quality", evaluators="length,token-f1")):
        get_leaderboard(project=halves.project, query=query)
    export(halves.project, tmp_path / "out")
    outcomes = recompute_folder(tmp_path / "out")
    assert [str(found) for outcome in outcomes for found in outcome.differences] == []
    notes = {outcome.exported["note"] for outcome in outcomes if outcome.exported["kind"] == "evaluators"}
    assert any("random 15, token-f1 12" in note for note in notes)
    chosen = [outcome.exported for outcome in outcomes if outcome.exported.get("evaluators")]
    assert [len(table["rows"]) for table in chosen] == [2]
