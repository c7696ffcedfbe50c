"""Evaluators against human comparisons, and models of comparisons with covariates, by page, command and API."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from annotation.models import Comparison, Output, Rating
from evalapp.common.errors import BadInput
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.systems.query import SystemsQuery
from scoring.selectors.leaderboards import list_known, parse_query
from tests.factories import make_items, make_outputs, make_ratings
from tests.pages import read_page

pytestmark = pytest.mark.django_db
SYSTEMS = tuple(f"sys-{name}" for name in "abcdef")


@pytest.fixture
def compared(cast, score):
    """Six systems on 4 items; the longer text usually wins, against other systems and against the reference."""
    outputs = make_outputs(cast.project, make_items(cast.project, 4), SYSTEMS)
    for output in outputs:
        place = SYSTEMS.index(output.system.name)
        output.text = "word " * (1 + place + (5 * place + 7 * output.item_id) % 3)
        output.save()
    aspect = make_ratings(cast.project, outputs[:4])
    rows, both = [], {"project": cast.project, "aspect": aspect}
    for item, of in enumerate(cast.project.items.order_by("key")):
        of_item = list(Output.objects.filter(item=of).order_by("system__name"))
        for i, one in enumerate(of_item):
            for j, two in enumerate(of_item[:i]):
                verdict = ("a", "a", "tie", "b")[(i + j + item) % 4]
                rows.append(Comparison(output_a=one, output_b=two, rater=f"r{j % 2}", verdict=verdict, **both))
            rows.append(
                Comparison(
                    output_a=one, reference=0, rater="r0", verdict=("b", "tie", "a")[min(2, (i + item) // 3)], **both
                )
            )
    Comparison.objects.bulk_create(rows)
    score(cast.project, "length")
    return cast


def test_page_offers_existing_judgements_and_shows_the_table(compared, client):
    client.force_login(compared.researcher)
    shown = read_page(client.get("/projects/alpha/evaluation/"))
    assert 'name="people"' in shown
    address = "/projects/alpha/evaluation/?people=m1&level=segment&grouping=item&coefficient=spa&plot=length"
    shown = read_page(client.get(address))
    assert 'data-people="m1" data-judgements="24"' in shown
    assert "Turing M1" in shown
    assert "Fisher’s z" in shown
    assert 'id="human-scores"' in shown
    assert "soft pairwise" not in shown.lower()
    assert client.get("/projects/alpha/evaluation/length/scatter.svg?people=m1").status_code == 200
    for ending, words in (("csv", "people:davidson"), ("tex", "PA"), ("json", '"people": "davidson"')):
        found = client.get(f"/projects/alpha/evaluation/table.{ending}?people=davidson")
        assert words in read_page(found)


def test_same_by_command_and_api(compared, client):
    out = io.StringIO()
    call_command("meta", "alpha", "--people", "m1", "--json", stdout=out)
    table = json.loads(out.getvalue())
    row = next(row for row in table["rows"] if row["evaluator"] == "length")
    assert (table["people"], table["level"], row["n"]) == ("m1", "system", 6)
    assert row["pearson"]["value"] > 0.5
    assert -1 <= row["pearson"]["low"] < row["pearson"]["value"] < row["pearson"]["high"] <= 1
    client.force_login(compared.researcher)
    board = client.get("/api/v1/projects/alpha/leaderboards/evaluators/?people=m1").json()
    same = next(row for row in board["rows"] if row["evaluator"] == "length")
    assert same["pearson"] == row["pearson"]
    assert same["values"] == row["values"]
    assert [score["label"] for score in board["scores"]] == [score["label"] for score in table["scores"]]
    lines = io.StringIO()
    call_command("meta", "alpha", "--people", "m1", stdout=lines)
    assert "Human scores of 6 systems: Turing M1, 24 judgements" in lines.getvalue()
    with pytest.raises(CommandError, match="only one reference set"):
        call_command("meta", "alpha", "--people", "m1", "--references", "original", "good")
    assert client.get("/api/v1/projects/alpha/leaderboards/evaluators/?people=rank").status_code == 400


def test_options_incompatible_with_comparisons_are_errors(compared):
    with pytest.raises(BadInput, match="not of single outputs"):
        parse_query(EvaluatorsQuery, {"people": "davidson", "level": "segment"})
    with pytest.raises(BadInput, match="needs ratings of outputs"):
        parse_query(EvaluatorsQuery, {"people": "davidson", "coefficient": "spa"})
    with pytest.raises(BadInput, match="adjust for covariates"):
        parse_query(SystemsQuery, {"method": "win-rate", "covariates": "side"})
    choices = EvaluatorsQuery().list_choices(list_known(compared.project))
    assert choices["people"][:3] == ["ratings", "m1", "win-rate"]
    Comparison.objects.all().delete()
    assert EvaluatorsQuery().list_choices(list_known(compared.project))["people"] == ["ratings"]


def test_covariates_are_optional_and_their_effects_are_shown(compared, client):
    client.force_login(compared.researcher)
    address = "/projects/alpha/systems/?method=davidson"
    assert 'name="covariates"' in read_page(client.get(address))
    shown = read_page(client.get(f"{address}&covariates=length%2Brater"))
    effects = re.findall(r"<p data-effect>(.*?)</p>", shown)
    assert ["root mean square" in effect for effect in effects] == [False, True, False], effects
    assert "each rater" in effects[2]
    board = client.get("/api/v1/projects/alpha/leaderboards/systems/?method=davidson&covariates=side").json()
    assert "covariates:side" in board["signature"]
    assert board["extras"]["side"]["points"] == pytest.approx(
        400 / 2.302585 * board["extras"]["side"]["value"], rel=1e-5
    )
    out = io.StringIO()
    call_command("systems", "alpha", "--method", "davidson", "--covariates", "side", stdout=out)
    assert "Adjusted for the side" in out.getvalue()
    plain = client.get("/api/v1/projects/alpha/leaderboards/systems/?method=davidson").json()
    assert {row["label"]: row["value"] for row in plain["rows"]} != {
        row["label"]: row["value"] for row in board["rows"]
    }


def test_table_starts_with_win_rate_if_there_are_only_comparisons(compared, client):
    Rating.objects.filter(project=compared.project).delete()
    assert parse_query(EvaluatorsQuery, {}, compared.project).people == "win-rate"
    client.force_login(compared.researcher)
    shown = read_page(client.get("/projects/alpha/evaluation/"))
    assert 'data-people="win-rate"' in shown
    board = client.get("/api/v1/projects/alpha/leaderboards/evaluators/").json()
    assert (board["people"], board["level"]) == ("win-rate", "system")
    out = io.StringIO()
    call_command("meta", "alpha", stdout=out)
    assert "Human scores of 6 systems: Win rate" in out.getvalue()
    assert client.get("/projects/alpha/evaluation/plot.svg").status_code == 200
    Comparison.objects.filter(project=compared.project, reference=None).delete()
    assert parse_query(EvaluatorsQuery, {}, compared.project).people == "m1"


def test_missing_ratings_name_the_other_choice(compared, client):
    """An option that needs ratings, such as single outputs, must not switch to another table than the requested one."""
    assert parse_query(EvaluatorsQuery, {}, compared.project).people == "ratings"
    Rating.objects.filter(project=compared.project).delete()
    for asked in ({"level": "segment"}, {"grouping": "item"}, {"coefficient": "spa", "level": "system"}):
        assert parse_query(EvaluatorsQuery, asked, compared.project).people == "ratings"
    client.force_login(compared.researcher)
    shown = read_page(client.get("/projects/alpha/evaluation/?people=ratings"))
    assert 'data-empty="ratings"' in shown
    assert "choose Win rate" in shown
    assert "By comparisons" in shown
    by_aspect = read_page(client.get("/projects/alpha/evaluation/aspects/"))
    assert "No aspect" in by_aspect
    assert 'data-empty="ratings"' in by_aspect
    with pytest.raises(CommandError, match="meta --people win-rate"):
        call_command("meta", "alpha", "--level", "segment")
    Comparison.objects.filter(project=compared.project).delete()
    with pytest.raises(CommandError, match="Upload some, or open a campaign"):
        call_command("meta", "alpha")


def test_overview_offers_leaderboards_with_comparisons_only(compared, client):
    Rating.objects.filter(project=compared.project).delete()
    client.force_login(compared.researcher)
    assert "Read the leaderboards" in read_page(client.get("/projects/alpha/"))
