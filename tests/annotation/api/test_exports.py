"""The API of exports: the 202 answer, its run, and files as attachments."""

from __future__ import annotations

import dataclasses

import pytest
from rest_framework.test import APIClient

from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from tests.taking import WHOLE, take_in

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/projects/alpha/exports/"


def test_request_follow_and_download_an_export(cast):
    take_in(cast.project, WHOLE)
    api = APIClient()
    api.force_authenticate(cast.researcher)
    answer = api.post(ADDRESS, {"format": "jsonl"}, format="json")
    assert answer.status_code == 202
    assert api.post(ADDRESS, {}, format="json").json()["id"] == answer.json()["id"]
    execute_run(answer.json()["id"])
    body = api.get(answer["Location"]).json()
    assert body["state"] == "succeeded"
    assert [file["name"] for file in body["files"]] == [
        "dataset.json", "comparisons.jsonl", "items.jsonl", "outputs.jsonl", "ratings.jsonl", "leaderboard.json",
        "README.md", "DATASHEET.md",
    ]  # fmt: skip
    file = api.get(body["files"][2]["url"])
    assert file["X-Content-Type-Options"] == "nosniff"
    assert b"".join(file.streaming_content).count(b"\n") == 2
    assert api.get(body["archive"]).status_code == 200
    assert api.get(body["files"][2]["url"].replace("items", "nothing")).status_code == 404
    assert len(api.get(ADDRESS).json()["results"]) == 1
    assert api.delete(answer["Location"]).status_code == 204
    assert api.get(answer["Location"]).status_code == 404
    assert api.get(ADDRESS).json()["results"] == []


def test_invalid_requests_are_refused(cast):
    api = APIClient()
    api.force_authenticate(cast.owner)
    assert api.post(ADDRESS, {"format": "docx"}, format="json").status_code == 400
    misspelt = api.post(ADDRESS, {"judgments": True}, format="json")
    assert (misspelt.status_code, misspelt.json()["errors"][0]["field"]) == (400, "judgments")
    assert not Run.objects.exists()
    api.force_authenticate(cast.viewer)
    assert api.post(ADDRESS, {}, format="json").status_code == 403
    assert api.get(ADDRESS).status_code == 200
    other = Run.objects.create(project=cast.project, kind="score", title="x", input_hash="x", state="succeeded")
    assert api.get(f"/api/v1/exports/{other.pk}/").status_code == 404
    api.force_authenticate(cast.stranger)
    assert api.get(ADDRESS).status_code == 404


def test_general_runs_endpoint_starts_exports(cast):
    api = APIClient()
    api.force_authenticate(cast.researcher)
    address = "/api/v1/projects/alpha/runs/"
    assert api.post(address, {"kind": "export", "format": "csv"}, format="json").status_code == 202
    assert api.post(address, {"kind": "export", "colour": "red"}, format="json").status_code == 400


def test_request_schema_matches_the_options(cast):
    """The API, the form and the command take names, defaults and choices from the options of an export."""
    from django.utils.choices import flatten_choices

    from annotation.api.exports import ExportRequestSerializer
    from annotation.exporters.options import ExportOptions
    from annotation.views.exports import ExportForm

    known = {one.name: one for one in dataclasses.fields(ExportOptions)}
    given = ExportRequestSerializer(data={})
    assert given.is_valid()
    assert given.validated_data == ExportOptions().as_dict()
    assert set(ExportForm.base_fields) <= set(known)
    for name, one in known.items():
        if choices := one.metadata["choices"]:
            assert tuple(given.fields[name].choices) == choices
            assert {value for value, _ in flatten_choices(ExportForm.base_fields[name].choices)} == set(choices)
