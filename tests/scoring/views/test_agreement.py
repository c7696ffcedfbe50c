"""The pages about raters, and the filters created there."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.models import Comparison, Output, RaterFilter, Rating
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.boards.agreement.columns import plan_growth
from scoring.boards.agreement.query import AgreementQuery
from scoring.services import leaderboards
from scoring.services.leaderboards import get_leaderboard
from tests.factories import make_items, make_outputs, make_ratings
from tests.pages import read_page

pytestmark = pytest.mark.django_db


@pytest.fixture
def rated(cast):
    """12 outputs with ratings by three people, including one who rates at random; one comparison by two people."""
    outputs = make_outputs(cast.project, make_items(cast.project, 6))
    aspect = make_ratings(cast.project, outputs, raters=0)
    for index, output in enumerate(outputs):
        for rater, value in (("r0", 1 + index % 5), ("r1", 1 + index % 5), ("r2", 1 + (index * 3) % 5)):
            Rating.objects.create(project=cast.project, output=output, aspect=aspect, rater=rater, value=value)
    for rater, verdict in (("r0", "a"), ("r1", "tie")):
        Comparison.objects.create(
            project=cast.project, output_a=outputs[0], output_b=outputs[6], aspect=aspect, rater=rater, verdict=verdict
        )
    return cast


def test_every_aspect_in_a_row_and_one_in_detail(rated, client):
    client.force_login(rated.researcher)
    text = read_page(client.get(reverse("scoring:agreement", args=["alpha"])))
    assert "95 % intervals" in text
    assert "Comparisons" in text
    assert "Krippendorff&#x27;s alpha (interval)" in text
    assert "Distribution of answers" in text


def test_reliability_grows_with_the_number_of_ratings(rated, client):
    client.force_login(rated.researcher)
    page = client.get("/projects/alpha/agreement/").content.decode()
    table = client.get("/projects/alpha/agreement/").context["table"]
    single = next(row for row in table["rows"] if row["name"] == "icc_1")["value"]
    lines = plan_growth(table).paint.args[0]
    values = [point["value"] for point in lines[0]["points"]]
    assert values[0] == pytest.approx(single)
    assert all(a < b for a, b in pairwise(values))
    assert "agreement/growth.svg?" in page
    assert client.get("/projects/alpha/agreement/growth.svg").status_code == 200
    negative = plan_growth({**table, "rows": [{**row, "value": -0.1} for row in table["rows"]]})
    assert {point["value"] for point in negative.paint.args[0][0]["points"]} == {0.0}
    undefined = [{**row, "value": None} for row in table["rows"]]
    assert plan_growth({**table, "rows": undefined}) is None
    assert plan_growth({**table, "rows": []}) is None


def test_agreement_of_ranks_on_page_and_by_command(rated, client):
    client.force_login(rated.researcher)
    url = reverse("scoring:agreement", args=["alpha"])
    text = read_page(client.get(url, {"ratings": "rank"}))
    assert "ranks within item" in text
    assert "|ratings:rank|" in text
    assert client.get(url, {"ratings": "rank", "scale": "nominal"}).status_code == 400
    out = io.StringIO()
    call_command("agreement", "alpha", "--aspect", "quality", "--ratings", "rank", stdout=out)
    assert "Ratings: ranks within item and rater" in out.getvalue()


def test_missing_judgements_are_reported_with_a_remedy(cast, client):
    client.force_login(cast.researcher)
    for name in ("agreement", "agreement-raters", "agreement-calibration"):
        text = read_page(client.get(reverse(f"scoring:{name}", args=["alpha"])))
        assert "no judgements yet" in text
        assert "<button>Show</button>" not in text  # there is nothing to choose


def test_selected_raters_become_a_filter_named_by_every_table(rated, client):
    client.force_login(rated.researcher)
    url = reverse("scoring:agreement-raters", args=["alpha"])
    refused = client.post(url, {"raters": ["r2"], "name": "hasty", "reason": ""})
    assert refused.status_code == 422
    made = client.post(url, {"raters": ["r2"], "name": "hasty", "reason": "clicks at random"}, follow=True)
    assert "clicks at random" in read_page(made)
    with_filter = get_leaderboard(project=rated.project, query=AgreementQuery(aspect="quality", filter="hasty")).table
    whole = get_leaderboard(project=rated.project, query=AgreementQuery(aspect="quality")).table
    assert (whole["n_raters"], with_filter["n_raters"], with_filter["n_filtered"]) == (3, 2, 12)
    # r0 and r1 always agree
    assert with_filter["rows"][0]["value"] == pytest.approx(1.0)
    assert whole["rows"][0]["value"] < 0.9
    assert Rating.objects.count() == 36


def test_filter_is_withdrawn_and_restored_by_buttons(rated, client):
    RaterFilter.objects.create(project=rated.project, name="hasty", raters=["r2"], reason="why")
    client.force_login(rated.researcher)
    text = client.post(reverse("scoring:rater-filter-move", args=["alpha", "hasty", "withdraw"]), follow=True)
    assert "withdrawn" in read_page(text)
    assert client.get(reverse("scoring:agreement", args=["alpha"]) + "?filter=hasty").status_code == 409
    client.post(reverse("scoring:rater-filter-move", args=["alpha", "hasty", "restore"]))
    assert client.get(reverse("scoring:agreement", args=["alpha"]) + "?filter=hasty").status_code == 200
    client.force_login(rated.viewer)
    assert client.post(reverse("scoring:rater-filter-move", args=["alpha", "hasty", "withdraw"])).status_code == 403


def test_large_tables_are_computed_in_a_run(rated, client, monkeypatch):
    monkeypatch.setattr(leaderboards, "MAX_JUDGED_IN_REQUEST", 5)
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 5)
    client.force_login(rated.researcher)
    url = reverse("scoring:agreement-raters", args=["alpha"])
    assert 'id="board-state"' in read_page(client.get(url))
    assert client.get(reverse("scoring:agreement-file", args=["alpha", "csv"])).status_code == 503
    for run in Run.objects.filter(kind="rank", state="queued"):
        assert execute_run(run.pk).state == "succeeded"
    assert ">Correlation" in read_page(client.get(url))


def test_agreement_of_many_ratings_is_computed_in_a_run(rated, client, monkeypatch):
    """Variance components of ten thousand incomplete ratings take seconds."""
    monkeypatch.setattr(leaderboards, "MAX_JUDGED_IN_REQUEST", Rating.objects.count() - 1)
    client.force_login(rated.researcher)
    assert 'id="board-state"' in read_page(client.get(reverse("scoring:agreement", args=["alpha"])))


def test_note_shared_by_coefficients_is_shown_once(rated, client):
    """With one rating missing, all four two-way ICCs use REML and say so: the first one in words."""
    Rating.objects.filter(rater="r2").last().delete()
    client.force_login(rated.researcher)
    text = read_page(client.get(reverse("scoring:agreement", args=["alpha"])))
    assert text.count('<td class="small muted">REML, since some raters did not rate every unit') == 1
    assert text.count(">as above<") >= 3  # notes about few items may also be equal


def test_files(rated, client):
    client.force_login(rated.researcher)
    csv = client.get(reverse("scoring:agreement-file", args=["alpha", "csv"])).content.decode().splitlines()
    assert csv[0].startswith("aspect,judged,source,scale,n_units,n_shared")
    assert csv[1].startswith("quality,ratings,,interval,12,12,3,36,alpha,")
    tex = read_page(client.get(reverse("scoring:agreement-file", args=["alpha", "tex"])))
    assert r"\toprule" in tex
    assert tex.startswith("% agreement|aspect:all aspects")


def test_repeats_are_not_a_second_rater(rated):
    output = Output.objects.filter(project=rated.project).first()
    aspect = rated.project.aspects.get()
    Rating.objects.create(project=rated.project, output=output, aspect=aspect, rater="r0#2", value=5)
    table = get_leaderboard(project=rated.project, query=AgreementQuery(aspect="quality")).table
    assert (table["n_raters"], table["n_judgements"], table["n_repeats"]) == (3, 36, 1)


def test_power_page_uses_existing_comparisons(rated, client):
    client.force_login(rated.researcher)
    url = reverse("scoring:agreement-power", args=["alpha"])
    text = read_page(client.get(url))
    # One of two comparisons is a tie: 194 decisive ones are 388
    # (docs/explanation/statistics/planning.md#worked-numbers).
    assert all(figure in text for figure in ("388 comparisons", "50% ties", "60%", "power 0.80"))
    assert re.search(r"\b2 comparisons [^.]*\bquality\b", text)
    question = url + "?test=williams&effect=0.4,0.3,0.5"
    assert "choose two-sided" in read_page(client.get(question))
    text = read_page(client.get(question + "&sides=2"))
    assert "(alpha 0.05, two-sided)" in text
    assert "choose two-sided" not in text
    assert client.get(question + "&sides=3").status_code == 422
    assert client.get(url + "?test=preference&effect=half").status_code == 422
    assert "cannot be" in read_page(client.get(url + "?test=correlation&effect=1.5"))


@pytest.mark.parametrize("test", ["preference", "correlation", "rating"])
def test_pilot_of_simulated_judgements_is_marked(rated, client, test):
    for model in (Rating, Comparison):
        model.objects.update(simulated=True)
    client.force_login(rated.viewer)
    page = client.get(reverse("scoring:agreement-power", args=["alpha"]), {"test": test})
    assert "badge simulated" in read_page(page)


def test_rating_design_from_the_pilot(rated, client):
    client.force_login(rated.researcher)
    url = reverse("scoring:agreement-power", args=["alpha"])
    text = read_page(client.get(url + "?test=rating&effect=1"))
    assert "Twice the items" in text
    assert "Variances from" in text
    Rating.objects.all().delete()
    assert client.get(url + "?test=rating&effect=1").status_code == 422
