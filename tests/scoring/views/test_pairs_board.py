"""Evaluators on human-compared pairs of outputs: page, files, plot, API, command, snapshot and export."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.models import Aspect, Comparison, Output, RaterFilter
from scoring.boards.pairs.query import PairsQuery
from scoring.boards.recompute import recompute_folder
from scoring.models import Evaluator, Leaderboard, Score, ScoreSet, Snapshot
from scoring.selectors.leaderboards import parse_query
from scoring.services.leaderboards import is_large
from tests.factories import make_items, make_outputs
from tests.pages import read_page

pytestmark = pytest.mark.django_db
SYSTEMS = ("sys-a", "sys-b", "sys-c")
PAGE = "/projects/alpha/evaluation/pairs/"
API = "/api/v1/projects/alpha/leaderboards/pairs/"


@pytest.fixture
def compared(cast, score):
    """Three systems on 12 items without ratings: the longer text wins in two of three pairs, each judged by two
    people."""
    outputs = make_outputs(cast.project, make_items(cast.project, 12), SYSTEMS)
    for output in outputs:
        place = SYSTEMS.index(output.system.name)
        output.text = "word " * (1 + 2 * place + output.item_id % 2)
        output.save()
    aspect = Aspect.objects.create(project=cast.project, name="better", position=1)
    rows = []
    for number, item in enumerate(cast.project.items.order_by("key")):
        a, b, c = Output.objects.filter(item=item).order_by("system__name")
        for place, (one, two) in enumerate(((b, a), (a, c), (c, b))):
            wins = "a" if len(one.text) > len(two.text) else "b"
            said = {"a": "b", "b": "a"}[wins] if (number + place) % 3 == 0 else wins
            said = "tie" if (number + place) % 6 == 1 else said
            for rater in ("r1", "r2"):
                row = {"output_a": one, "output_b": two, "rater": rater, "verdict": said}
                rows.append(Comparison(project=cast.project, aspect=aspect, **row))
    rows[-1].verdict = "both_bad" if rows[-2].verdict != "tie" else "a"
    Comparison.objects.bulk_create(rows)
    for name in ("length", "random", "overlap"):
        score(cast.project, name)
    return cast


def command(*words):
    out = io.StringIO()
    call_command("meta", "alpha", "--pairs", *words, stdout=out)
    return out.getvalue()


def test_same_table_by_page_api_and_command(compared, client):
    client.force_login(compared.viewer)
    shown = read_page(client.get(PAGE + "?intervals=1"))
    assert all(figure in shown for figure in ("35 pairs", "3 systems"))
    assert 'data-pairs="35" data-split="1"' in shown
    assert "single rater" in shown
    assert "Chance level: 0.50" in shown
    assert shown.count("cross-validated 0.") == 3
    assert 'aria-current="page">Pairwise accuracy' in shown
    table = json.loads(command("--json"))
    answer = client.get(API).json()
    assert [row["cells"] for row in answer["rows"]] == [row["cells"] for row in table["rows"]]
    assert answer["test"]["names"] == table["test"]["names"]
    assert (answer["n_pairs"], answer["n_split"]) == (35, 1)
    length = next(row for row in table["rows"] if row["evaluator"] == "length")
    assert length["cells"][0]["value"] > 0.55
    assert length["cells"][1] is None
    assert length["cells"][0]["n"] == table["n_decided"]
    text = command()
    assert "on 35 compared pairs" in text
    assert "length (sentinel)" in text
    assert "one rater" in text
    assert "Chance level: 0.500" in text


def test_files_and_plot(compared, client):
    client.force_login(compared.viewer)

    def get(ending):
        return client.get(f"{PAGE}table.{ending}").content.decode()

    lines = get("csv").splitlines()
    assert lines[0].startswith("evaluator,column,value,low,high,n,note")
    # Three evaluators with three figures each; length has no difference to itself.
    assert len(lines) == 1 + 3 * 3 - 1
    assert "Less length" in get("tex")
    assert r"\midrule one rater" in get("tex")
    assert json.loads(get("json"))["kind"] == "pairs"
    svg = client.get(f"{PAGE}plot.svg").content.decode()
    assert "decided pairs" in svg
    assert client.get(f"{PAGE}plot.pdf").content.startswith(b"%PDF")


def test_requested_options_take_effect(compared, client):
    client.force_login(compared.viewer)
    chosen = client.get(API, {"evaluators": "length,random", "test": "bootstrap"}).json()
    assert {row["evaluator"] for row in chosen["rows"]} == {"length", "random"}
    assert "test:bootstrap" in chosen["signature"]
    assert "evaluators:length+random" in chosen["signature"]
    refused = client.get(API, {"test": "williams"})
    assert refused.status_code == 400
    assert "permutation or bootstrap" in read_page(refused)
    assert client.get(PAGE + "?test=none").status_code == 200
    RaterFilter.objects.create(project=compared.project, name="without-r2", raters=["r2"], reason="too fast")
    found = client.get(API, {"filter": "without-r2"}).json()
    assert found["n_raters"] == 1
    # With one judgement each, every pair has a verdict, and no rater can be compared with others.
    assert (found["n_pairs"], found["n_split"]) == (36, 0)
    assert (found["ceiling"][0]["value"], "two people" in found["ceiling"][0]["note"]) == (None, True)


def test_training_data_of_an_evaluator_are_excluded(compared, client):
    client.force_login(compared.viewer)
    items = list(compared.project.items.order_by("key").values_list("pk", flat=True))[:4]
    of_length = ScoreSet.objects.get(evaluator__slug="length")
    Score.objects.filter(score_set=of_length, output__item__in=items).update(in_training=True)
    ScoreSet.objects.filter(pk=of_length.pk).update(n_in_training=12)
    found = client.get(API).json()
    assert found["n_excluded"] == 4 * 3 * 2
    assert found["n_pairs"] == 23
    assert "24 comparisons are excluded" in read_page(client.get(PAGE))
    Score.objects.filter(score_set=of_length).update(in_training=True)
    Leaderboard.objects.all().delete()
    ScoreSet.objects.filter(pk=of_length.pk).update(n_in_training=36)
    shown = read_page(client.get(PAGE))
    assert 'data-empty="table"' in shown
    assert "<table" not in shown
    assert "length 36" in shown


def test_empty_states_explain_what_is_missing(cast, client, score):
    client.force_login(cast.viewer)
    assert 'data-empty="comparisons"' in read_page(client.get(PAGE))
    make_outputs(cast.project, make_items(cast.project, 2), SYSTEMS)
    aspect = Aspect.objects.create(project=cast.project, name="better", position=1)
    one, two = Output.objects.filter(item__project=cast.project).order_by("item", "system")[:2]
    Comparison.objects.create(project=cast.project, aspect=aspect, output_a=one, output_b=two, rater="r1", verdict="a")
    assert 'data-empty="scores"' in read_page(client.get(PAGE))
    score(cast.project, "length")
    assert "1 pair of outputs" in read_page(client.get(PAGE))


def test_main_table_links_here_if_few_systems_allow_no_ranking(compared, client):
    client.force_login(compared.viewer)
    shown = read_page(client.get("/projects/alpha/evaluation/"))
    assert re.search(r"data-note=\"table\"> ?<p>[^<]*\b3 systems\b", shown)
    assert f'<a href="{PAGE}?aspect=better">Pairwise accuracy of each evaluator</a>' in shown


def test_large_tables_are_left_to_a_run(compared, monkeypatch):
    query = parse_query(PairsQuery, {}, compared.project)
    assert not is_large(compared.project, query)
    monkeypatch.setattr("scoring.services.leaderboards.MAX_ROWS_IN_REQUEST", 200)
    assert is_large(compared.project, query)


def test_snapshot_and_recompute(compared, client, tmp_path):
    client.force_login(compared.researcher)
    assert client.get(PAGE).status_code == 200
    call_command("snapshot", "alpha", "take", "--board", "pairs", "--name", "then", stdout=io.StringIO())
    kept = Snapshot.objects.get(slug="then")
    assert kept.table["n_pairs"] == 35
    page = read_page(client.get(reverse("scoring:snapshot", args=["alpha", "then"])))
    assert "length, decided pairs" in page
    call_command("dump", "alpha", str(tmp_path / "out"), stdout=io.StringIO())
    outcomes = recompute_folder(tmp_path / "out")
    found = [outcome for outcome in outcomes if outcome.exported.get("kind") == "pairs"]
    assert [outcome.is_equal for outcome in found] == [True], [str(d) for o in found for d in o.differences]
    assert found[0].n_numbers > 50


def test_trained_evaluators_have_their_difference_from_ridge(compared, client):
    for slug, name in (("random", "ridge"), ("overlap", "maude")):
        Evaluator.objects.filter(project=compared.project, slug=slug).update(kind="trained", name=name)
    client.force_login(compared.viewer)
    shown = read_page(client.get(PAGE + "?intervals=1"))
    assert "minus ridge" in shown
    cells = {row["evaluator"]: row["cells"] for row in client.get(API).json()["rows"]}
    assert cells["length"][3] is cells["random"][3] is None
    assert cells["overlap"][3]["value"] == pytest.approx(cells["overlap"][0]["value"] - cells["random"][0]["value"])
    assert "less ridge" in command()
    assert "Less ridge" in client.get(f"{PAGE}table.tex").content.decode()
