"""Leaderboards ask few questions, also while a large table is still to be computed."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalapp.common.models import Run
from scoring import plots
from scoring.selectors.leaderboards import SystemsQuery, stamp_of
from scoring.services import leaderboards
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("page", ["systems", "evaluation"])
def test_a_table_that_is_being_computed_costs_at_most_15_queries(cast, client, monkeypatch, page):
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 1)
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project)))
    client.force_login(cast.researcher)
    address = f"/projects/alpha/{page}/"
    client.get(address)  # queues the run
    assert Run.objects.get().kind == "rank"
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    assert len(queries) <= 15


def test_the_state_of_the_data_changes_with_everything_a_table_shows(cast):
    from annotation.models import Aspect, Rating, System, Upload

    stamps = [stamp_of(cast.project)]
    outputs = make_outputs(cast.project, make_items(cast.project))
    stamps.append(stamp_of(cast.project))
    make_ratings(cast.project, outputs)
    stamps.append(stamp_of(cast.project))
    System.objects.filter(name="sys-a").update(kind="human")
    stamps.append(stamp_of(cast.project))
    Aspect.objects.update(position=7)
    stamps.append(stamp_of(cast.project))
    upload = Upload.objects.create(project=cast.project, title="x", state="done")
    stamps.append(stamp_of(cast.project))
    Upload.objects.filter(pk=upload.pk).update(state="undone")
    stamps.append(stamp_of(cast.project))
    Rating.objects.order_by("-pk").first().delete()
    stamps.append(stamp_of(cast.project))
    assert len(set(stamps)) == len(stamps)


def test_dialogues_are_offered_where_they_were_rated(cast, client):
    from annotation.models import Aspect, Dialogue, Rating

    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project)))
    client.force_login(cast.viewer)
    assert "Dialogues</option>" not in client.get("/projects/alpha/evaluation/").content.decode()
    dialogue = Dialogue.objects.create(project=cast.project, key="d", turns=["a"])
    aspect = Aspect.objects.get(project=cast.project)
    Rating.objects.create(project=cast.project, dialogue=dialogue, aspect=aspect, rater="r", value=3)
    assert "Dialogues</option>" in client.get("/projects/alpha/evaluation/").content.decode()
    assert client.get("/projects/alpha/evaluation/?level=dialogue").status_code == 200


def test_a_picture_of_a_table_that_is_being_computed_anew_is_not_kept(cast, client, monkeypatch):
    from annotation.models import Rating
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
    # What stands is drawn once.
    monkeypatch.setattr(plots, "draw_forest", None)
    assert client.get(address).content == after
