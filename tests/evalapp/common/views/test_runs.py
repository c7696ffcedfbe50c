"""Pages of runs: their text in each state, and the end of polling when nothing more will change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils import timezone

from evalapp.common import jobs
from evalapp.common.models import Run, RunLog, WorkerBeat
from tests.evalapp.common import run_jobs
from tests.pages import read_page

RUNS = "/projects/alpha/runs/"


@pytest.fixture
def make(cast):
    def run(state="queued", **more) -> Run:
        return Run.objects.create(
            project=cast.project, kind="test-count", title="Count", input_hash=f"{timezone.now()}", state=state, **more
        )

    return run


@pytest.fixture
def reader(client, cast):
    client.force_login(cast.viewer)
    return client


def get(client, run, **headers) -> str:
    return read_page(client.get(f"{RUNS}{run.pk}/", headers=headers))


def test_missing_worker_says_how_to_start_one(reader, make):
    run = make()
    for page in (get(reader, run), read_page(reader.get(RUNS))):
        assert 'data-unserved="cpu"' in page
        assert "evalapp up" in page
    WorkerBeat.objects.create(name="w", queues=["cpu"], pid=1, host="h", at=timezone.now())
    assert "data-unserved" not in get(reader, run)


def test_list_is_filtered_by_the_state_that_it_shows(reader, make):
    by_input, failed = make("failed", cause="input"), make("failed", cause="machine")

    def rows(query: str) -> set[int]:
        return {run.pk for run in reader.get(f"{RUNS}?{query}").context["page"].rows}

    assert rows("state=stopped") == {by_input.pk}
    assert rows("state=failed&kind=") == {failed.pk}
    assert rows("") == {by_input.pk, failed.pk}
    for query in ("state=nothing", "kind=nothing"):
        assert reader.get(f"{RUNS}?{query}").status_code == 400


def test_waiting_run_shows_its_position(reader, make):
    first, second = make(), make()
    assert "next in its queue<" in get(reader, first)
    assert "place 2 in its queue; before it: Test count<" in get(reader, second)
    Run.objects.filter(pk=first.pk).update(state="running", heartbeat=timezone.now())
    assert "next in its queue, after: Test count (running)<" in get(reader, second)
    third, fourth = make(), make()
    assert "place 2 in its queue; before it: Test count (running), Test count<" in get(reader, third)
    assert "place 3 in its queue; before it: Test count (running), Test count (2)<" in get(reader, fourth)
    Run.objects.filter(pk=first.pk).update(queue="gpu")
    assert "next in its queue<" in get(reader, second), "a training of another queue keeps it from nothing"
    WorkerBeat.objects.create(name="w", queues=["cpu", "gpu"], pid=1, host="h", at=timezone.now())
    assert "next in its queue, after: Test count (running)<" in get(reader, second), "one worker does both"
    assert "its queue" not in get(reader, first)


def test_running_run_has_bar_rate_and_time_left(reader, make):
    run = make(
        "running", done=250, total=1000, unit="rows", rate=50.0, heartbeat=timezone.now(), worker="h:1", attempt=1
    )
    page = get(reader, run)
    for words in ('max="1000" value="250"', "250 of 1,000 rows", "50.0 rows/s", "about 15 s left", "h:1", "1 of 3"):
        assert words in page


def test_polling_stops_at_the_end(reader, make):
    run = make("running")
    assert 'hx-trigger="every 1s"' in get(reader, run)
    assert 'hx-trigger="every 2s"' in read_page(reader.get(RUNS))
    Run.objects.update(state="succeeded", result={"scored": 12, "url": f"{RUNS}", "nested": {"a": [1]}})
    page = get(reader, run, hx_request="true")
    assert "hx-trigger" not in page
    assert "<html" not in page, "only the fragment is sent"
    assert "Newly scored" in page
    assert "every 2s" not in read_page(reader.get(RUNS))


def test_failed_run_shows_error_and_place_and_can_be_retried(client, cast, make):
    run = make("failed", error="Two rows have faults.", faults=[{"file": "o.csv", "line": 3, "message": "No text."}])
    RunLog.objects.create(run=run, text="<b>checking</b>")
    client.force_login(cast.researcher)
    page = get(client, run)
    for words in (run_jobs.REFUSED, "o.csv", "No text.", "Try again", "&lt;b&gt;checking"):
        assert words in page
    client.post(f"{RUNS}{run.pk}/retry/")
    assert Run.objects.get(pk=run.pk).state == "queued"


def test_cancel_from_the_page_and_too_late(client, cast, make):
    run = make("queued")
    client.force_login(cast.researcher)
    client.post(f"{RUNS}{run.pk}/cancel/")
    assert Run.objects.get(pk=run.pk).state == "cancelled"
    assert RunLog.objects.get(run=run).text in get(client, run)
    running = make("running")
    client.post(f"{RUNS}{running.pk}/cancel/")
    assert Run.objects.get(pk=running.pk).cancel_requested
    page = get(client, running)
    assert RunLog.objects.get(run=running).text in page
    assert 'id="run-stops"' in page
    page = read_page(client.post(f"{RUNS}{run.pk}/cancel/", follow=True))
    assert "already ended" in page


def test_readers_see_no_buttons(reader, make):
    assert "run-cancel" not in get(reader, make())


def test_run_of_another_project_is_not_found(reader, cast, make):
    run = make()
    Run.objects.update(project=cast.foreign)
    assert reader.get(f"{RUNS}{run.pk}/").status_code == 404


def test_long_foreign_result_address_is_not_a_link(reader, make):
    assert "evil.example" not in get(reader, make("succeeded", result={"url": "//evil.example/"}))


def test_list_needs_the_same_queries_at_any_length(reader, make, django_assert_max_num_queries):
    for _ in range(60):
        make("succeeded")
    with django_assert_max_num_queries(15):
        page = read_page(reader.get(RUNS))
    assert "Next →" in page


@pytest.mark.parametrize("state", ["queued", "running", "failed", "cancelled", "succeeded"])
def test_request_details_are_folded_on_every_page(reader, make, state):
    params = {"evaluator": "adem", "folds": 5, "options": {"learning_rate": 1e-05, "affine": True, "l2": None}}
    page = get(reader, make(state, params=params))
    assert '<details class="section" id="run-asked"><summary>Parameters</summary>' in page
    for name, value in (("Evaluator", "adem"), ("Folds", "5"), ("Learning rate", "1e−05"), ("Affine", "yes")):
        assert f'<dt>{name}</dt><dd dir="auto">{value}</dd>' in page
    assert "<dt>L2</dt>" not in page  # the bare letters may occur in a form token
    assert "run-asked" not in get(reader, make(state))


def test_state_changes_are_announced_and_parts_are_named(reader, make):
    page = get(reader, make("running", phase="counting", done=3))
    status = page[page.index('<span role="status"') : page.index('id="run-phase"')]
    assert "Running" in status
    assert "counting" not in status
    assert 'hx-target="#run" hx-swap="renew"' in page


def test_kinds_have_readable_names(reader, make):
    make()
    page = read_page(reader.get(RUNS))
    for value, name in (("open_campaign", "Opening of a campaign"), ("rank", "Leaderboard"), ("import", "Import")):
        assert f'<option value="{value}">{name}</option>' in page
    assert "<dd>Test count, queue cpu</dd>" in get(reader, make())


def test_deleted_result_is_not_a_link(client, cast, make, monkeypatch):
    run = make("succeeded", result={"url": RUNS, "n": 1})
    client.force_login(cast.researcher)
    assert 'id="run-result-link"' in get(client, run)
    run_jobs.put_job(monkeypatch, replace(jobs.get_job("test-count"), gone=f"{__name__}:gone"))
    page = get(client, run)
    assert f'id="run-gone"><p>{gone(run)}</p>' in page
    assert 'id="run-result-link"' not in page


def gone(run: Run) -> str:
    return "It was deleted since."
