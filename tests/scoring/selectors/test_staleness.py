"""Tables state which of their scores are stale, wherever they are shown."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from annotation.models import Output, ReferenceSet, Upload, WrittenReference
from annotation.services.campaigns import create_writing, open_campaign
from scoring.boards.aspects.query import AspectsQuery
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.references.query import EnhancedQuery
from scoring.boards.render.files import as_csv
from scoring.boards.render.latex import as_latex
from scoring.boards.slices.query import SlicesQuery
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Evaluator, ScoreSet
from scoring.selectors.leaderboards import compute_stamp
from scoring.services.leaderboards import get_leaderboard
from scoring.services.snapshots import take_snapshot
from tests.factories import make_items, make_outputs
from tests.pages import read_page
from tests.writing import fill_ports, open_task_view, send

pytestmark = pytest.mark.django_db


@pytest.fixture
def later(scored):
    """Another output, uploaded after everything was scored; random has been scored again since."""
    first = Output.objects.order_by("pk").first()
    upload = Upload.objects.create(
        project=scored.project, title="u", state="done", finished_at=timezone.now() + timedelta(seconds=1),
        counts={"outputs": {"added": 1}},
    )  # fmt: skip
    Output.objects.create(project=scored.project, item=first.item, system=first.system, step=5, text="later")
    ScoreSet.objects.filter(evaluator__slug="random").update(
        scored_at=timezone.now() + timedelta(seconds=2), n_scores=25
    )
    return upload


def make_table(project, query):
    return get_leaderboard(project=project, query=query).table


def test_nothing_is_stale_at_first(scored):
    table = make_table(scored.project, EvaluatorsQuery())
    assert table["stale"] == []
    assert {(row["stale"], row["n_unscored"]) for row in table["rows"]} == {("", 0)}
    assert make_table(scored.project, SystemsQuery(by="length"))["stale"] == []
    assert "stale" not in make_table(scored.project, SystemsQuery())


def test_upload_marks_the_rows_of_older_scores(scored, later):
    table = make_table(scored.project, EvaluatorsQuery())
    reason = f"upload {later.pk} changed items, outputs or references later; 1 output has no score"
    assert [(row["evaluator"], row["reason"], row["n_unscored"]) for row in table["stale"]] == [
        ("length", reason, 1),
        ("token-f1", reason, 1),
    ]
    rows = {row["evaluator"]: (row["stale"], row["n_unscored"]) for row in table["rows"]}
    assert rows["length"] == (reason, 1)
    assert rows["random"] == ("", 0)
    assert rows["overlap"] == ("", 0)  # it was not applied


def test_cached_table_reflects_the_upload(scored, request):
    assert make_table(scored.project, EvaluatorsQuery())["stale"] == []
    request.getfixturevalue("later")
    assert make_table(scored.project, EvaluatorsQuery())["stale"] != []


def test_system_scores_and_further_tables_show_it(scored, later):
    (found,) = make_table(scored.project, SystemsQuery(by="length"))["stale"]
    assert (found["evaluator"], found["n_unscored"]) == ("length", 1)
    assert make_table(scored.project, SystemsQuery(by="random"))["stale"] == []
    for item in Output.objects.order_by("pk"):
        item.item.meta = {"half": item.item_id % 2}
        item.item.save()
    ReferenceSet.objects.get_or_create(project=scored.project, name="original")
    ReferenceSet.objects.create(project=scored.project, name="more")
    for query in (SlicesQuery(), MatrixQuery(), AspectsQuery(), EnhancedQuery(references="original,more")):
        table = make_table(scored.project, query)
        assert "token-f1" in {row["evaluator"] for row in table["stale"]}, query
    assert "% Out of date: token-f1: upload" in as_latex(table)


def test_page_api_and_command_show_it(scored, client, later):
    client.force_login(scored.researcher)
    name = reverse("scoring:evaluator", args=["alpha", "length"])
    for page in ("scoring:evaluation", "scoring:systems"):
        text = read_page(client.get(reverse(page, args=["alpha"]), {"by": "length"}))
        assert "out of date" in text
        assert f"upload {later.pk} changed" in text
        assert f'<a href="{name}">length</a>' in text
    assert "out of date" not in read_page(client.get(reverse("scoring:systems", args=["alpha"])))
    board = client.get("/api/v1/projects/alpha/leaderboards/evaluators/").json()
    assert [row["evaluator"] for row in board["stale"]] == ["length", "token-f1"]
    assert {row["evaluator"]: row["n_unscored"] for row in board["rows"]}["length"] == 1
    assert client.get("/api/v1/projects/alpha/leaderboards/systems/", {"by": "length"}).json()["stale"]
    for command in (("meta", "alpha"), ("systems", "alpha", "--by", "length")):
        out = StringIO()
        call_command(*command, stdout=out)
        assert "Out of date: length" in out.getvalue()
        assert "evalapp score EVALUATOR --project alpha" in out.getvalue()
        out = StringIO()
        call_command(*command, "--json", stdout=out, stderr=StringIO())
        assert json.loads(out.getvalue())["stale"][0]["evaluator"] == "length"


def test_files_and_snapshots_show_it(scored, client, later):
    table = make_table(scored.project, EvaluatorsQuery())
    assert f"upload {later.pk} changed" in as_csv(table)
    assert "% Out of date: length: upload" in as_latex(table)
    client.force_login(scored.researcher)
    take_snapshot(project=scored.project, user=scored.researcher, query=EvaluatorsQuery(), title="Kept")
    Evaluator.objects.filter(slug="length").delete()
    text = read_page(client.get(reverse("scoring:snapshot", args=["alpha", "kept"])))
    assert "were out of date" in text


def test_writing_into_a_scored_set_changes_the_data_version(cast, score, monkeypatch):
    fill_ports(monkeypatch)
    make_outputs(cast.project, make_items(cast.project, 2, 1))
    plan = {
        "name": "free", "slug": "free", "kind": "constraint", "items": {"keys": ["i000"]},
        "options": {"constraint": "free", "target": 3},
    }  # fmt: skip
    campaign = create_writing(user=cast.researcher, project=cast.project, plan=plan)
    open_campaign(user=cast.researcher, campaign=campaign)
    view = send(cast.annotator, open_task_view(cast.annotator, campaign), "Something quite else.").view
    name = WrittenReference.objects.get().set.name
    query = MatrixQuery(references=name)
    score(cast.project, "token-f1", references=name)
    before, people = compute_stamp(cast.project, query), compute_stamp(cast.project, SystemsQuery())
    assert make_table(cast.project, query)["stale"] == []
    send(cast.annotator, view, "And something more.")
    assert compute_stamp(cast.project, query) != before
    assert compute_stamp(cast.project, SystemsQuery()) == people
    assert f"references were added to or removed from {name}" in make_table(cast.project, query)["stale"][0]["reason"]
