"""Pages and API of reference sets and of reference selection, as people and programs use them."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse

from annotation.models import ReferenceSet
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from tests.factories import make_outputs, make_ratings
from tests.pages import read_page
from tests.scoring.reference_selection import SeeThrough, fill_references, see_through, select_references

pytestmark = pytest.mark.django_db

CURVES = {
    "evaluator": "judge", "metric": "bleu-star", "other": "", "other_metric": "", "references": "original", "seed": 13,
    "n_items": 4, "n_groups": 4, "n_left_out": 1,
    "panels": {
        "size": {"axes": ["references", "reliability of bleu-star"], "lines": [
            {"name": "gold", "points": [{"x": 1, "value": 0.2, "low": 0.1, "high": 0.3, "n": 4},
                                        {"x": 2, "value": 0.3, "low": 0.2, "high": 0.4, "n": 4}]}]},
    },
    "table": [{"size": 1, "n": 4, "gold": 0.2, "predicted": 0.25, "mse": 0.01, "constant": 0.02, "r2": 0.5}],
}  # fmt: skip


@pytest.fixture
def project(cast, monkeypatch, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    items = fill_references(cast.project)
    make_ratings(cast.project, make_outputs(cast.project, items, ("sys-a", "sys-b", "sys-c")))
    see_through(monkeypatch, cast.project, judge=[SeeThrough("judge")], second=[SeeThrough("second")])
    select_references(cast.project, controls=True)
    return cast.project


@pytest.fixture
def researcher(client, cast):
    client.force_login(cast.researcher)
    return client


#: The origin of the set "chosen".
SELECTED = re.compile(r"\bjudge\b[^<]*\bbleu-star\b")


def page(client, name, *args, status=200, **query):
    response = client.get(reverse(f"scoring:{name}", args=args), query)
    assert response.status_code == status, response.content[:500]
    return read_page(response)


def test_without_a_trained_ream_the_page_offers_training(cast, researcher) -> None:
    text = page(researcher, "select-references", "alpha")
    assert reverse("scoring:train", args=["alpha", "ream"]) in text
    assert "Preview on 5 items" not in text


def test_list_show_compare_download(project, researcher) -> None:
    text = page(researcher, "reference-sets", "alpha")
    assert SELECTED.search(text)
    assert "chosen-random" in text
    text = page(researcher, "reference-set", "alpha", "chosen", item="k1")
    assert "gained" in text
    assert "candidates considered" in text
    assert ">k1<" in text
    assert ">k2<" not in text
    text = page(researcher, "reference-sets-compare", "alpha", first="chosen", second="chosen-raw")
    assert re.search(r"\b4 references [^.]*\bboth\b", text)
    page(researcher, "reference-set", "alpha", "none", status=404)
    lines = b"".join(
        researcher.get(reverse("scoring:reference-set-file", args=["alpha", "chosen-raw"])).streaming_content
    )
    assert [json.loads(line)["item"] for line in lines.splitlines()] == ["k0", "k1", "k2", "k3"]


def test_preview_then_select(project, researcher) -> None:
    form = {
        "evaluator": "judge", "candidates": "withheld", "references": "original", "start": "one", "max": 10,
        "min_gain": 0, "per_item": 100, "seed": 13, "into": "mine",
    }  # fmt: skip
    address = reverse("scoring:select-references", args=["alpha"])
    shown = researcher.post(address, {**form, "do": "preview"})
    run = execute_run(Run.objects.get(kind="preview-references").pk)
    assert run.state == Run.State.SUCCEEDED
    text = read_page(researcher.get(shown.headers["Location"]))
    assert not ReferenceSet.objects.filter(name="mine").exists()
    assert 'value="mine"' in text
    taken = researcher.post(address, {**form, "into": "chosen", "do": "start"})
    assert taken.status_code == 422
    assert 'id="id_into_error"' in read_page(taken)
    unnamed = researcher.post(address, {**form, "into": "", "do": "start"})
    assert unnamed.status_code == 422
    started = researcher.post(address, {**form, "do": "start"})
    assert started.status_code == 302
    run = execute_run(Run.objects.filter(kind="select-references").latest("pk").pk)
    assert run.result["references"] == "mine"


def test_merge_and_delete(project, researcher, score) -> None:
    address = reverse("scoring:reference-sets-merge", args=["alpha"])
    assert researcher.post(address, {"names": ["chosen"], "into": "one"}).status_code == 422
    assert researcher.post(address, {"names": ["chosen", "original"], "into": "both"}).status_code == 302
    score(project, "token-f1", references="both")
    text = page(researcher, "reference-set-delete", "alpha", "both")
    assert re.search(r"\b12 scores [^.]*\btoken-f1\b", text)
    assert 'name="with_scores"' in text
    address = reverse("scoring:reference-set-delete", args=["alpha", "both"])
    assert 'data-level="error"' in read_page(researcher.post(address))
    assert ReferenceSet.objects.filter(name="both").exists()
    assert researcher.post(address, {"with_scores": "on"}).status_code == 302
    assert not ReferenceSet.objects.filter(name="both").exists()
    assert 'id="not-deletable"' in page(researcher, "reference-set-delete", "alpha", "original")


def test_evaluators_by_set(project, researcher, score) -> None:
    assert 'data-empty="scores"' in page(researcher, "enhanced", "alpha")
    for name in ("original", "chosen"):
        score(project, "chrf", references=name)
    text = page(researcher, "enhanced", "alpha")
    assert SELECTED.search(text)
    assert "Williams" in text
    ordered = page(researcher, "enhanced", "alpha", set=["original", "chosen"], first="chosen")
    assert "difference from chosen" in ordered
    for ending, expected in (("csv", "difference_low"), ("tex", r"\toprule"), ("json", '"enhanced"')):
        assert expected in page(researcher, "enhanced-file", "alpha", ending)


def test_curves(project, researcher) -> None:
    assert 'id="no-curves"' in page(researcher, "reliability-curves", "alpha")
    response = researcher.post(
        reverse("scoring:reliability-curves", args=["alpha"]),
        {"evaluator": "judge", "other": "second", "references": "original", "sample": 10, "seed": 3},
    )
    assert response.status_code == 302
    run = Run.objects.get(kind="reliability")
    assert run.params["other"] == "second"
    Run.objects.filter(pk=run.pk).update(state="succeeded", result=CURVES)
    text = page(researcher, "reliability-curves", "alpha")
    assert "<table" in text
    assert "1 excluded" in text
    assert "badge simulated" not in text
    Run.objects.filter(pk=run.pk).update(result={**CURVES, "n_simulated": 5})
    assert "badge simulated" in page(researcher, "reliability-curves", "alpha")
    svg = page(researcher, "reliability-curves-svg", "alpha", run.pk, "size")
    assert svg.startswith("<svg")
    assert "gold: from 0.200 to 0.300" in svg
    page(researcher, "reliability-curves-svg", "alpha", run.pk, "transfer", status=404)


def test_api(project, researcher, score) -> None:
    base = "/api/v1/projects/alpha/"
    rows = researcher.get(f"{base}reference-sets/").json()["results"]
    assert [row["name"] for row in rows] == ["original", "chosen-random", "chosen-raw", "chosen"]
    one = researcher.get(f"{base}reference-sets/chosen/").json()
    assert one["n_items"] == 4
    assert one["meta"]["evaluator"] == "judge"
    assert researcher.get(f"{base}reference-sets/chosen/comparison/chosen-raw/").json()["shared"] == 4
    traces = researcher.get(f"{base}reference-sets/chosen/traces/").json()["results"]
    assert traces[0]["item"] == "k0"
    assert traces[0]["steps"]
    options = {"kind": "select-references", "evaluator": "judge", "into": "by-api", "max": 3}
    made = researcher.post(f"{base}runs/", options, content_type="application/json")
    assert made.status_code == 202, made.content
    wrong = researcher.post(f"{base}runs/", {**options, "max": "3", "odd": 1}, content_type="application/json")
    assert {fault["field"] for fault in wrong.json()["errors"]} == {"max", "odd"}
    merged = researcher.post(
        f"{base}reference-sets/", {"name": "both", "merge": ["chosen", "original"]}, content_type="application/json"
    )
    assert merged.status_code == 201
    score(project, "token-f1", references="both")
    assert researcher.delete(f"{base}reference-sets/both/").status_code == 409
    assert researcher.delete(f"{base}reference-sets/both/?with_scores=true").status_code == 204
