"""Several evaluators combined into one, from the request to its row on the leaderboard."""

from __future__ import annotations

import io
import json
import re
from dataclasses import asdict
from html import unescape
from uuid import uuid4

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.models import Item, Output, System
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent
from evalapp.common.queue import cancel_run, enqueue_run, retry_run
from evalapp.common.runner import execute_run
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Evaluator, Score, ScoreSet
from scoring.pipelines.combine import is_drawn
from scoring.selectors.columns import get_columns_file, load_columns, output_file, read_columns
from scoring.selectors.leaderboards import find_leaderboard
from scoring.selectors.score_sets import list_states
from scoring.services import columns
from scoring.services.combining import CombineOptions, make_signature, start_combination
from scoring.services.evaluators import delete_evaluator
from scoring.services.leaderboards import compute_leaderboard
from scoring.services.reports import CurveOptions, start_curves
from scoring.services.scores import apply_evaluator
from tests.annotation.services.judging_helpers import open_for
from tests.factories import make_items, make_outputs
from tests.pages import read_page
from tests.scoring.boards.computing import compute_table
from tests.scoring.training import make_trained
from tests.taking import take_in

pytestmark = pytest.mark.django_db


def combine(project, *parts, **rest):
    run = execute_run(start_combination(project=project, options=CombineOptions(parts, **rest), send=False).pk)
    assert run.state == "succeeded", run.error
    return ScoreSet.objects.select_related("evaluator").get(pk=run.result["score_set"])


def read_values(project, slug):
    rows = Score.objects.filter(score_set__evaluator__slug=slug, score_set__project=project).order_by("output_id")
    return np.array([np.nan if v is None else v for v in rows.values_list("value", flat=True)])


def test_mean_of_z_is_the_mean_of_its_parts(scored):
    made = combine(scored.project, "length", "token-f1", name="both")
    parts = [read_values(scored.project, name) for name in ("length", "token-f1")]
    expected = np.mean([(x - x.mean()) / x.std() for x in parts], axis=0)
    np.testing.assert_allclose(read_values(scored.project, "both"), expected, atol=1e-12)
    assert made.n_in_training == 0
    assert made.references == "original"  # the references of token-f1
    assert made.full_signature.startswith("combined|method:mean-z|parts:length@")
    rows = {row["evaluator"]: row for row in compute_table(scored.project, EvaluatorsQuery())["rows"]}
    assert rows["both"]["kind"] == "combined"
    assert rows["both"]["pearson"]["value"] is not None


def test_stacked_combination_marks_its_training_data_and_can_be_repeated(scored):
    made = combine(scored.project, "length", "token-f1", method="stacked", name="stack")
    record = made.evaluator.record
    seen = set(Score.objects.filter(score_set=made, in_training=True).values_list("output__item__group", flat=True))
    assert seen == {f"g{k:03d}" for k in range(8) if is_drawn(f"g{k:03d}", 13, 0.5)}
    assert record["n_groups"] == len(seen) == record["n_groups_drawn"]
    weights = [part["weight"] for part in record["parts"]]
    x = np.stack([read_values(scored.project, name) for name in ("length", "token-f1")], axis=1)
    z = (x - np.array(record["centre"])) / np.array(record["spread"])
    np.testing.assert_allclose(read_values(scored.project, "stack"), record["intercept"] + z @ weights, atol=1e-9)
    table = compute_table(scored.project, EvaluatorsQuery())
    assert table["n_excluded"] == 3 * len(seen)
    first = (made.full_signature, read_values(scored.project, "stack").tolist())
    again = execute_run(apply_evaluator(project=scored.project, evaluator="stack", send=False).pk)
    assert again.kind == "combine"
    assert (again.result["signature"], read_values(scored.project, "stack").tolist()) == first
    assert ScoreSet.objects.filter(evaluator__slug="stack").count() == 1


def test_combination_is_as_old_as_its_parts(scored, score):
    """Once, it counted as up to date whatever happened to its parts' scores."""
    project = scored.project

    def stale(name):
        return [s.stale for s in list_states(project, Output.objects.count()) if s.score_set.evaluator.slug == name]

    combine(project, "length", "token-f1", name="both")
    combine(project, "random", "token-f1", name="other")
    Output.objects.filter(pk=Output.objects.first().pk).update(text="quite another text")
    assert stale("both") == [""]
    score(project, "length")
    assert (stale("both"), stale("other")) == (["the scores of its part length changed"], [""])
    ScoreSet.objects.filter(project=project, evaluator__slug="random").delete()
    assert stale("other") == ["the scores of its part random changed"]
    done = execute_run(apply_evaluator(project=project, evaluator="both", send=False).pk)
    assert done.state == "succeeded"
    assert stale("both") == ["", "another signature was scored later"]


def test_stacked_combination_is_as_old_as_its_ratings(scored):
    """Once, it counted as up to date whatever ratings came later."""
    project = scored.project
    combine(project, "length", "token-f1", method="stacked", name="stack")
    combine(project, "length", "token-f1", name="both")

    def stale():
        found = {s.score_set.evaluator.slug: s.stale for s in list_states(project, Output.objects.count())}
        assert not any(why for slug, why in found.items() if slug != "stack")
        return found["stack"]

    campaign = open_for(scored, aspects=[{"name": "quality", "question": "How good?", "low": 1, "high": 5}])
    assert stale() == ""
    shown = get_next_assignment(user=scored.annotator, campaign_id=campaign.pk).shown
    assert shown is not None
    submit_answer(user=scored.annotator, public=shown.public, submission=uuid4(), answer={"quality": 4})
    assert stale() == "ratings of quality, from which it learned its weights, were added later"
    execute_run(apply_evaluator(project=project, evaluator="stack", send=False).pk)
    assert stale() == ""
    first = Output.objects.select_related("item", "system").first()
    row = {"item": first.item.key, "system": first.system.name, "rater": "r9", "aspect": "quality", "value": 3}
    upload = take_in(project, {"ratings.jsonl": [row]})
    assert stale() == f"upload {upload.pk} changed items, outputs, references or ratings later"


def test_impossible_combinations_are_explained(scored, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    combine(scored.project, "length", "random", name="pair")
    with pytest.raises(BadInput, match="from 2 to 50"):
        start_combination(project=scored.project, options=CombineOptions(("length", "length")))
    with pytest.raises(BadInput, match="score chrf --project alpha"):
        start_combination(project=scored.project, options=CombineOptions(("length", "chrf")))
    with pytest.raises(BadInput, match="name its parts"):
        start_combination(project=scored.project, options=CombineOptions(("length", "pair")))
    with pytest.raises(Conflict, match="taken"):
        start_combination(project=scored.project, options=CombineOptions(("length", "random"), name="pair"))
    with pytest.raises(BadInput, match="share"):
        start_combination(project=scored.project, options=CombineOptions(("length", "random"), share=1.0))
    with pytest.raises(BadInput, match=r"seed .* 0"):
        start_combination(project=scored.project, options=CombineOptions(("length", "random"), seed=-1))
    make_trained(scored.project, "ream-1", name="ream")
    with pytest.raises(BadInput, match=r"seed .* 0"):
        start_curves(project=scored.project, options=CurveOptions("ream-1", seed=-1), send=False)


def test_part_without_any_score_is_refused(scored, score):
    Item.objects.filter(project=scored.project).update(context=[], source=None)
    assert score(scored.project, "overlap").result["undefined"] == 24
    with pytest.raises(BadInput, match=r"overlap .*undefined"):
        start_combination(project=scored.project, options=CombineOptions(("length", "overlap")), send=False)


def test_signature_of_very_many_parts_fits():
    sets = [ScoreSet(evaluator=Evaluator(slug=f"evaluator-of-some-length-{k}"), signature="x") for k in range(50)]
    params = {"method": "stacked", "aspect": "quality", "ratings": "raw", "share": 0.5, "seed": 13}
    full, short = make_signature(params, sets)
    assert len(full) <= 500
    assert "-more@" in full
    assert full.endswith("|aspect:quality|ratings:raw|share:0.5|seed:13|v:1")
    other, _ = make_signature(params, [*sets[:-1], ScoreSet(evaluator=Evaluator(slug="other"), signature="x")])
    assert other != full
    assert len(short) <= 300


def test_large_sets_are_cached_as_columns(scored, monkeypatch, settings, tmp_path):
    settings.ARTEFACTS_DIR = tmp_path
    monkeypatch.setattr(columns, "MIN_CACHED", 5)
    made = combine(scored.project, "length", "random", name="pair")
    path = get_columns_file(made)
    assert path.is_file()
    Score.objects.filter(score_set=made).update(value=7.0)  # only in the database
    kept = load_columns(made)
    assert not (kept.value == 7.0).any()
    path.write_bytes(path.read_bytes()[:100])  # truncated
    assert (load_columns(made).value == 7.0).all()
    found = read_columns(made)
    some = np.array([found.output[3], -1, found.output[0]])
    np.testing.assert_array_equal(np.isnan(found.of(some)), [False, True, False])
    columns.remove_columns(project=scored.project)
    assert not path.exists()


def test_tables_of_a_large_project_are_equal_from_files(scored, monkeypatch, settings, tmp_path):
    """Systems by an evaluator and the matrix, from the database and from a run's cached files."""
    settings.ARTEFACTS_DIR = tmp_path
    queries = [SystemsQuery(by="length"), MatrixQuery(), EvaluatorsQuery()]
    before = [compute_leaderboard(project=scored.project, query=query).table for query in queries]
    assert not list(tmp_path.rglob("*.npz"))
    monkeypatch.setattr(columns, "MIN_CACHED", 5)
    for query in queries:
        params = {"board": str(query.kind), "query": asdict(query), "stamp": "x"}
        run = enqueue_run(kind="rank", project=scored.project, params=params, title="t", send=False)
        assert execute_run(run.pk).state == "succeeded"
    assert len(list(tmp_path.rglob("*.npz"))) == 4  # three sets and the outputs
    kept = [find_leaderboard(scored.project, query).table for query in queries]
    assert kept == before
    make_outputs(scored.project, make_items(scored.foreign, 0))  # nothing new: the file stays
    assert output_file(scored.project).is_file()
    System.objects.filter(name="sys-a", project=scored.project).update(kind="human")
    assert not output_file(scored.project).is_file()


def test_by_command_page_and_deletion(scored, client):
    out = io.StringIO()
    call_command("combine", "alpha", "length", "token-f1", "--name", "both", "--here", "--json", stdout=out)
    assert json.loads(out.getvalue())["evaluator"] == "both"
    out = io.StringIO()
    call_command("combine", "alpha", "length", "random", "--method", "stacked", "--here", stdout=out)
    assert "in groups it learned from" in out.getvalue()
    client.force_login(scored.researcher)
    shown = read_page(client.get(reverse("scoring:evaluator", args=["alpha", "combined-1"])))
    assert 'data-method="stacked"' in shown
    body = {"parts": ["length", "random"], "method": "mean-z", "name": "third"}
    assert client.post(reverse("scoring:combine", args=["alpha"]), body).status_code == 302
    assert client.post(reverse("scoring:combine", args=["alpha"]), {**body, "name": "both"}).status_code == 422
    assert client.post(reverse("scoring:combine-again", args=["alpha", "both"])).status_code == 302
    assert client.post(reverse("scoring:evaluator-delete", args=["alpha", "combined-1"])).status_code == 302
    assert not Evaluator.objects.filter(slug="combined-1").exists()
    verbs = set(AuditEvent.objects.values_list("verb", flat=True))
    assert {"evaluator.combined", "evaluator.deleted"} <= verbs


def test_deleting_a_part_is_announced_and_reported(scored, score, client, settings, tmp_path):
    """Once, the confirmation only named the part's own scores; then two pages and two commands sent people in a
    circle."""
    settings.ARTEFACTS_DIR = tmp_path
    part = make_trained(scored.project, "comp-a")
    ScoreSet.objects.filter(evaluator__slug="random").update(evaluator=part)
    combine(scored.project, "comp-a", "length", name="comb-1")
    combine(scored.project, "token-f1", "length", name="comb-2")
    before = read_values(scored.project, "comb-1").tolist()
    client.force_login(scored.researcher)
    asked = read_page(client.get(reverse("scoring:evaluator-delete", args=["alpha", "comp-a"])))
    assert re.search(r'id="combinations"><p>[^<]*<a[^>]*>comb-1</a>\.', asked)
    assert client.get("/api/v1/projects/alpha/evaluators/trained/comp-a/").json()["part_of"] == ["comb-1"]
    assert 'id="combinations"' not in read_page(
        client.get(reverse("scoring:evaluator-delete", args=["alpha", "comb-1"]))
    )
    delete_evaluator(evaluator=part)

    found = {s.score_set.evaluator.slug: s for s in list_states(scored.project, Output.objects.count())}
    reason = "its part comp-a was deleted, so that it cannot be renewed"
    assert (found["comb-1"].stale, found["comb-1"].deleted) == (reason, ("comp-a",))
    assert (found["comb-2"].stale, found["comb-2"].deleted) == ("", ())
    assert read_values(scored.project, "comb-1").tolist() == before
    page = read_page(client.get(reverse("scoring:evaluator", args=["alpha", "comb-1"])))
    assert 'data-stale="for good"' in page
    assert f"{reason}." in page
    assert 'href="/projects/alpha/evaluators/combine/?part=length&amp;"> Combine others' in page
    assert reverse("scoring:combine-again", args=["alpha", "comb-1"]) not in page
    assert 'evaluators/comp-a/"' not in page
    board = read_page(client.get(reverse("scoring:evaluation", args=["alpha"])))
    assert (f"{reason}." in board, 'data-stale="for good"' in board) == (True, True)
    out = io.StringIO()
    call_command("meta", "alpha", stdout=out)
    assert (f"Out of date: comb-1: {reason}." in out.getvalue(), "Score again" in out.getvalue()) == (True, False)

    way = "comb-1 cannot be combined again: its part comp-a was deleted."
    with pytest.raises(CommandError) as refused:
        call_command("score", "comb-1", "--project", "alpha", "--here")
    assert way in str(refused.value)
    again = client.post(reverse("scoring:combine-again", args=["alpha", "comb-1"]))
    assert (again.status_code, way in unescape(read_page(again))) == (400, True)
    with pytest.raises(BadInput, match="comp-a"):
        start_combination(project=scored.project, options=CombineOptions(("length", "comp-a")))
    # Retrying a run that failed earlier gives the same message.
    run = execute_run(
        enqueue_run(
            kind="combine", project=scored.project, params=found["comb-1"].score_set.run.params, title="t", send=False
        ).pk
    )
    assert run.state == "failed"
    assert run.error.startswith(way)
    # If others are also out of date, the advice to apply again is limited to these.
    Output.objects.filter(pk=Output.objects.first().pk).update(text="quite another text")
    score(scored.project, "length")
    board = read_page(client.get(reverse("scoring:evaluation", args=["alpha"])))
    assert 'data-stale="partly"' in board


def test_deletion_keeps_files_of_others(scored, settings, tmp_path, django_capture_on_commit_callbacks):
    settings.ARTEFACTS_DIR = tmp_path
    (tmp_path / "kept").write_text("x")
    made = combine(scored.project, "length", "random", name="pair")
    with django_capture_on_commit_callbacks(execute=True):
        delete_evaluator(evaluator=made.evaluator)
    assert (tmp_path / "kept").exists()


def test_retry_never_replaces_the_current_owner_of_a_name(scored):
    options = CombineOptions(("length", "random"), name="pair")
    first = start_combination(project=scored.project, options=options, send=False)
    cancel_run(run=first)
    made = combine(scored.project, "length", "token-f1", name="pair")
    retry_run(run=first)
    assert execute_run(first.pk).state == "failed"
    first.refresh_from_db()
    assert "“pair”" in first.error
    found = Evaluator.objects.get(slug="pair")
    assert (found.options["parts"], found.signature) == (["length", "token-f1"], made.signature)
    Evaluator.objects.filter(slug="pair").update(kind="trained", name="maude", folder="x")
    assert execute_run(enqueue_run(kind="combine", project=scored.project, params=first.params, title="t").pk).error
    assert Evaluator.objects.get(slug="pair").name == "maude"
