"""Leaderboards need few queries, also while a large table is still being computed."""

from __future__ import annotations

import io
import re
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Rating
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.common.models import Run
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Leaderboard
from scoring.plots import drawing as plots
from scoring.selectors.exports import leaderboard
from scoring.selectors.leaderboards import compute_stamp
from scoring.services import leaderboards
from tests.annotation.services.judging_helpers import open_for
from tests.factories import make_items, make_outputs, make_ratings
from tests.pages import read_page

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("page", ["systems", "evaluation"])
def test_table_under_computation_needs_at_most_15_queries(cast, client, monkeypatch, page):
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 1)
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project)))
    client.force_login(cast.researcher)
    address = f"/projects/alpha/{page}/"
    client.get(address)  # queues the run
    assert Run.objects.get().kind == "rank"
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    assert len(queries) <= 15


def test_data_version_changes_with_everything_a_table_shows(cast):
    from annotation.models import Aspect, Rating, System, Upload

    stamps = [compute_stamp(cast.project)]
    outputs = make_outputs(cast.project, make_items(cast.project))
    stamps.append(compute_stamp(cast.project))
    make_ratings(cast.project, outputs)
    stamps.append(compute_stamp(cast.project))
    System.objects.filter(name="sys-a").update(kind="human")
    stamps.append(compute_stamp(cast.project))
    Aspect.objects.update(position=7)
    stamps.append(compute_stamp(cast.project))
    upload = Upload.objects.create(project=cast.project, title="x", state="done")
    stamps.append(compute_stamp(cast.project))
    Upload.objects.filter(pk=upload.pk).update(state="undone")
    stamps.append(compute_stamp(cast.project))
    Rating.objects.order_by("-pk").first().delete()
    stamps.append(compute_stamp(cast.project))
    assert len(set(stamps)) == len(stamps)


def test_dialogues_are_offered_where_they_were_rated(cast, client):
    from annotation.models import Aspect, Dialogue, Rating

    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project)))
    client.force_login(cast.viewer)
    assert "Dialogues</option>" not in read_page(client.get("/projects/alpha/evaluation/"))
    dialogue = Dialogue.objects.create(project=cast.project, key="d", turns=["a"])
    aspect = Aspect.objects.get(project=cast.project)
    Rating.objects.create(project=cast.project, dialogue=dialogue, aspect=aspect, rater="r", value=3)
    assert "Dialogues</option>" in read_page(client.get("/projects/alpha/evaluation/"))
    page = read_page(client.get("/projects/alpha/evaluation/?level=dialogue"))
    assert 'data-column="calibrated"' in page
    assert "coefficient=calibrated" not in page  # it is no coefficient to test
    shown = [read_page(client.get(f"/projects/alpha/evaluation/?grouping={by}")) for by in ("none", "item")]
    assert ['name="undefined"' in page for page in shown] == [False, True]


def test_plot_of_a_table_under_recomputation_is_not_cached(cast, client, monkeypatch):
    from evalapp.common.runner import execute_run

    cache.clear()
    outputs = make_outputs(cast.project, make_items(cast.project))
    aspect = make_ratings(cast.project, outputs)
    leaderboards.get_leaderboard(project=cast.project, query=SystemsQuery())
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 1)
    for output in outputs:
        value = 5 if output.system.name == "sys-b" else 1
        Rating.objects.create(project=cast.project, output=output, aspect=aspect, rater="late", value=value)
    client.force_login(cast.viewer)
    address = "/projects/alpha/systems/plot.svg"
    before = client.get(address, {"v": "new"})
    assert execute_run(Run.objects.get(kind="rank").pk).state == "succeeded"
    after = client.get(address).content
    assert after != before.content
    assert before["Cache-Control"] == "private, no-cache"
    # A current table is drawn once.
    monkeypatch.setattr(plots, "draw_forest", None)
    assert client.get(address).content == after


def test_systems_by_judgements_of_one_campaign(cast, client, monkeypatch):
    """Two campaigns and an upload; by page, command and API."""
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project)))
    aspects = [{"name": "quality", "question": "How good?", "low": 1, "high": 5}]
    first, second = (open_for(cast, aspects=aspects, name=name) for name in ("First round", "Second round"))
    pair = open_for(cast, "pairwise", name="Which?")
    for campaign, value in ((first, 5), (first, 4), (second, 1)):
        shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
        answer = {"quality": value}
        submit_answer(user=cast.annotator, public=shown.public, submission=uuid4(), answer=answer)
    shown = get_next_assignment(user=cast.annotator, campaign_id=pair.pk).shown
    submit_answer(user=cast.annotator, public=shown.public, submission=uuid4(), answer={"pairwise-quality": "a"})

    client.force_login(cast.viewer)
    api = "/api/v1/projects/alpha/leaderboards/systems/"
    whole, one, compared, other = (
        client.get(f"{api}?campaign={slug}").json() for slug in ("", first.slug, pair.slug, second.slug)
    )
    # 16 uploaded ones and 3 of the annotator; for an output requested in both rounds, the first one counts.
    outputs = Rating.objects.exclude(judgement=None).values_list("output", flat=True)
    n = 16 + len(set(outputs))
    assert len(outputs) == 3
    assert [sum(row["n_ratings"] for row in found["rows"]) for found in (whole, one, other)] == [n, 2, 1]
    assert len(whole["counted"]) == 19 - n
    assert sum(row["value"] * row["n_ratings"] for row in one["rows"]) == 9
    assert one["signature"] == whole["signature"].replace("|systems", f"|campaign:{first.slug}|systems")
    assert (compared["method"], compared["aspect"], compared["rows"][0]["n_ratings"]) == (
        "win-rate", "pairwise-quality", 1,
    )  # fmt: skip
    shown = read_page(client.get(f"/projects/alpha/systems/?campaign={second.slug}"))
    assert f'Only judgements of the campaign <span dir="auto">{second.slug}</span>.' in shown
    assert f'<option value="{first.slug}">' in shown
    told = io.StringIO()
    call_command("systems", "alpha", "--campaign", first.slug, stdout=told)
    assert f"Only judgements of the campaign {first.slug}." in told.getvalue()
    assert client.get(f"{api}?campaign=none").status_code == 404
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 1)
    assert client.get(f"{api}?campaign=none").status_code == 404  # no run that would fail
    refused = client.get(f"{api}?by=length&campaign={first.slug}")
    assert (refused.status_code, "campaign" in refused.json()["detail"]) == (400, True)
    # The overview shows the table of the whole project, and so does an export, which does not distinguish campaigns.
    overview = read_page(client.get("/projects/alpha/"))
    assert all(f'<th scope="row" dir="auto">{name}</th>' in overview for name in ("sys-a", "sys-b"))
    assert [entry["params"]["campaign"] for entry in leaderboard(project=cast.project)["tables"]] == [""]


def test_note_on_all_intervals_appears_once(scored, client):
    """Eight items are few for each evaluator's interval: one sentence below the table, none in its rows. Three items
    give no interval, so there is no note on intervals."""
    client.force_login(scored.viewer)
    address = "/projects/alpha/evaluation/?aspect=quality"
    page = read_page(client.get(address))
    text = re.sub(r"<[^>]+>", " ", page)
    assert text.count("8 items only") == 1
    assert text.index("8 items only") < text.index("1,000 resamples")
    scored.project.items.filter(key__in=["i003", "i004", "i005", "i006", "i007"]).delete()
    Leaderboard.objects.all().delete()
    page = read_page(client.get(address))
    text = re.sub(r"<[^>]+>", " ", page)
    assert text.count("3 items only") == 1
    assert "1,000 resamples" not in text
