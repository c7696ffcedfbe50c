"""The API of this app from outside."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalapp.common.models import Run

pytestmark = pytest.mark.django_db

API = "/api/v1/projects/alpha"


@pytest.fixture
def viewer(scored, client):
    client.force_login(scored.viewer)
    return client


def test_catalogue_names_options(viewer):
    rows = {row["name"]: row for row in viewer.get(reverse("api-catalogue")).json()["results"]}
    assert rows["bleu-4"]["needs"] == ["references"]
    assert rows["random"]["options"][0]["default"] == 13


def test_applied_evaluators(viewer):
    rows = viewer.get(f"{API}/evaluators/").json()["results"]
    assert [row["evaluator"] for row in rows] == ["token-f1", "random", "length"]
    assert rows[0]["n_scores"] == 24
    assert rows[0]["references"] == "original"
    assert rows[0]["stale"] == ""


def test_scores_by_cursor(viewer, django_assert_max_num_queries):
    with django_assert_max_num_queries(10):
        first = viewer.get(f"{API}/scores/?evaluator=length&limit=20").json()
    assert len(first["results"]) == 20
    rest = viewer.get(first["next"]).json()
    assert len(rest["results"]) == 4
    assert rest["next"] is None
    assert first["results"][0]["signature"].startswith("length|")
    assert len(viewer.get(f"{API}/scores/?system=sys-b&item=i001").json()["results"]) == 3


def test_leaderboards(viewer):
    systems = viewer.get(f"{API}/leaderboards/systems/").json()
    assert systems["is_current"] is True
    assert {row["system"] for row in systems["rows"]} == {"sys-a", "sys-b", "sys-c"}
    evaluators = viewer.get(f"{API}/leaderboards/evaluators/?level=system").json()
    assert evaluators["level"] == "system"
    by_name = {row["evaluator"]: row for row in evaluators["rows"]}
    assert by_name["overlap"]["pearson"]["value"] is None
    assert "not applied yet" in by_name["overlap"]["pearson"]["note"]
    assert "6" not in evaluators["note"] or "3 systems" in evaluators["note"]


def test_invalid_parameter_is_a_problem_document(viewer):
    response = viewer.get(f"{API}/leaderboards/systems/?method=elo")
    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["errors"][0]["field"] == "method"


@pytest.mark.parametrize("board", ["systems", "evaluators", "aspects", "matrix", "pairs", "slices"])
def test_misspelt_table_parameter_is_refused(viewer, board):
    # If ignored, the answer would belong to another question, for example another aspect.
    response = viewer.get(f"{API}/leaderboards/{board}/?sistems=machine")
    assert response.status_code == 400
    (fault,) = response.json()["errors"]
    assert fault["field"] == "sistems"
    assert "systems" in fault["message"]


def test_misspelt_score_filter_is_refused(viewer):
    response = viewer.get(f"{API}/scores/?evaluater=length")
    assert response.json()["errors"][0]["field"] == "evaluater"
    assert viewer.get(f"{API}/scores/?evaluator=length&format=json").status_code == 200


def test_scoring_is_a_run(scored, client):
    client.force_login(scored.researcher)
    body = {"kind": "score", "evaluator": "bleu-4", "options": {"lowercase": True}}
    response = client.post(f"{API}/runs/", body, content_type="application/json")
    assert response.status_code == 202
    assert Run.objects.get(pk=response.json()["id"]).params["options"]["lowercase"] is True
    wrong = client.post(f"{API}/runs/", {"kind": "score", "nonsense": 1}, content_type="application/json")
    assert wrong.status_code == 400
    assert [row["field"] for row in wrong.json()["errors"]] == ["nonsense", "evaluator"]


def test_listed_encoders_are_installed(scored, client):
    client.force_login(scored.researcher)
    body = {"kind": "score", "evaluator": "bertscore", "options": {"encoder": "/etc"}}
    response = client.post(f"{API}/runs/", body, content_type="application/json")
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == "options.encoder"


def test_roles(scored, client):
    client.force_login(scored.annotator)
    assert client.get(f"{API}/scores/").status_code == 403
    client.force_login(scored.stranger)
    assert client.get(f"{API}/leaderboards/systems/").status_code == 404
    client.logout()
    assert client.get(f"{API}/evaluators/").status_code in (401, 403)


@pytest.mark.parametrize("address", ["scores/?item=%00", "scores/?references=%00", "leaderboards/systems/?aspect=a%00"])
def test_nul_in_any_address_is_refused(cast, client, address):
    """PostgreSQL cannot store it, which would be a server error."""
    client.force_login(cast.viewer)
    assert client.get(f"/api/v1/projects/alpha/{address}").status_code == 400


@pytest.mark.parametrize("name", ["evaluators", "reference-sets", "rater-filters", "snapshots", ""])
def test_single_page_list_has_no_further_pages(viewer, name):
    address = f"{API}/{name}/" if name else reverse("api-catalogue")
    answer = viewer.get(address).json()
    assert set(answer) == {"results", "next", "previous"}
    assert (answer["next"], answer["previous"]) == (None, None)
