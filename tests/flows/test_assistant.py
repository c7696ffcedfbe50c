"""The default assistant: people judge through the API, a refit is queued, and pages, command and API use its scores."""

from __future__ import annotations

import io
import json
from uuid import uuid4

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from annotation.models import CampaignMember, Item, Output, Rating
from annotation.services.campaigns import create_campaign, open_campaign
from evalapp.common.models import Run, RunLog
from evalapp.common.runner import execute_run
from evalapp.events.tasks import watch_events
from scoring.boards.recompute import recompute_folder
from scoring.models import Evaluator, Score, ScoreSet
from scoring.pipelines import refit as pipeline
from scoring.selectors.assistant import EVERY
from scoring.services import assistant
from tests.factories import make_outputs
from tests.scoring.ml.tiny import tiny_encoder

pytestmark = pytest.mark.django_db
WORDS = ("good", "fine", "poor", "strange")


@pytest.fixture
def open_with(cast, settings, tmp_path, monkeypatch):
    """Return a function that opens a campaign of a plan about 160 outputs of 80 items in as many groups; the words of
    an output tell how it is judged."""
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"
    folder = tiny_encoder("bert", tmp_path / "tiny")
    monkeypatch.setattr(pipeline, "choose_options", lambda _context: {
        "encoder": folder, "pooling": "mean", "max_length": None,
    })  # fmt: skip
    items = [Item(project=cast.project, key=f"i{k:02d}", context=["Hello."], group=f"g{k:02d}") for k in range(80)]
    outputs = make_outputs(cast.project, Item.objects.bulk_create(items), ("sys-a", "sys-b"))
    words = np.random.default_rng(2).choice(WORDS, len(outputs))
    for k, (output, word) in enumerate(zip(outputs, words, strict=True)):
        output.text = f"{word} " * (1 + k % 3)
    Output.objects.bulk_update(outputs, ["text"])

    def open_plan(kind, **aspect):
        plan = {"name": "Quality", "kind": kind, "aspects": [{"name": "quality", **aspect}], "overlap": 1}
        campaign = create_campaign(project=cast.project, user=cast.researcher, plan=plan)
        return open_campaign(campaign=campaign, user=cast.researcher, here=True)

    return open_plan


@pytest.fixture
def campaign(open_with):
    return open_with("likert", low=1, high=7)


def judge(client, cast, campaign, n: int) -> None:
    """Answer `n` texts through the API, as the judging page does."""
    client.force_login(cast.annotator)
    rng = np.random.default_rng(1)
    for _ in range(n):
        shown = client.post(f"/api/v1/campaigns/{campaign.pk}/next/", content_type="application/json").json()
        values = [
            int(np.clip(7 - 2 * WORDS.index(text["text"].split()[0]) + rng.integers(0, 2), 1, 7))
            for text in shown["texts"]
        ]
        answer = values[0] if len(values) == 1 else "a" if values[0] > values[1] else "b"
        body = {"submission": str(uuid4()), "answer": {"quality": answer}}
        sent = client.post(f"/api/v1/assignments/{shown['id']}/submit/", body, content_type="application/json")
        assert sent.status_code == 200, sent.content


def refits() -> list[Run]:
    return list(Run.objects.filter(kind="refit").order_by("pk"))


def run_next() -> Run:
    run = execute_run(refits()[-1].pk)
    assert run is not None
    return run


def command(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def read(client, address: str) -> str:
    page = client.get(address)
    assert page.status_code == 200
    return " ".join(page.content.decode().split())


def test_judgements_lead_to_assisted_estimates(client, cast, campaign, tmp_path):
    judge(client, cast, campaign, EVERY - 1)
    watch_events()
    assert refits() == [], "no refit before the boundary"
    judge(client, cast, campaign, 1)
    assert refits() == [], "nothing is queued in a request"
    watch_events()
    watch_events()
    (queued,) = refits()
    assert (queued.state, queued.queue, queued.params["until"]) == (Run.State.QUEUED, "cpu", EVERY)
    run = run_next()
    assert run.state == Run.State.SUCCEEDED, run.error
    watch_events()
    assert len(refits()) == 1, "no refit without further judgements"
    score_set = ScoreSet.objects.get(evaluator__slug="ridge")
    assert (score_set.aspect, score_set.n_scores, score_set.n_in_training) == ("quality", 160, 0)

    client.force_login(cast.researcher)
    systems = "/projects/alpha/systems/"
    assert "Assisted by ridge" in read(client, systems)
    page = read(client, f"{systems}?assist=ridge")
    assert 'value="ridge" selected' in page
    fit = f"after {EVERY} judgements in campaigns, from {run.result['learned_from']} judged outputs."
    assert fit in page
    assert fit in read(client, f"/projects/alpha/campaigns/{campaign.pk}/quality/")
    assert fit in read(client, "/projects/alpha/evaluators/ridge/")
    answer = client.get("/api/v1/projects/alpha/leaderboards/systems/?assist=ridge").json()
    assert answer["assist"] == "ridge"
    assert answer["extras"]["saved"] is not None
    table = json.loads(command("systems", "alpha", "--json", "--assist"))
    assert table["evaluator"]["signature"] == score_set.full_signature
    assert [row["value"] for row in table["rows"]] == [row["value"] for row in answer["rows"]]

    before = dict(Score.objects.values_list("output", "value"))
    judge(client, cast, campaign, EVERY + 1)
    watch_events()
    run = run_next()
    assert run.result["judgements"] == 2 * EVERY + 1
    assert ScoreSet.objects.get(evaluator__slug="ridge").pk == score_set.pk
    assert dict(Score.objects.values_list("output", "value")) != before
    client.force_login(cast.researcher)
    assert f"after {2 * EVERY + 1} judgements" in read(client, f"{systems}?assist=ridge")
    command("dump", "alpha", str(tmp_path / "out"))
    outcomes = recompute_folder(tmp_path / "out")
    assert any(outcome.exported.get("assist") == "ridge" for outcome in outcomes)
    assert all(outcome.is_equal for outcome in outcomes), [str(one.differences or one.problem) for one in outcomes]


def test_comparisons_lead_to_assisted_estimates(client, cast, open_with, tmp_path):
    campaign = open_with("pairwise")
    client.force_login(cast.researcher)
    offered = read(client, "/projects/alpha/systems/?method=win-rate")
    judge(client, cast, campaign, EVERY - 1)
    watch_events()
    assert refits() == []
    judge(client, cast, campaign, 1)
    watch_events()
    (queued,) = refits()
    assert queued.params["until"] == EVERY
    run = run_next()
    assert (run.state, run.result["learned_from"]) == (Run.State.SUCCEEDED, 2 * EVERY), run.error
    score_set = ScoreSet.objects.get(evaluator__slug="ridge")
    assert (score_set.aspect, score_set.n_scores, score_set.n_in_training) == ("quality", 160, 0)
    assert f"|compared:{EVERY}|" in score_set.signature
    scores = dict(Score.objects.filter(score_set=score_set).values_list("output__text", "value"))
    best, worst = ([value for text, value in scores.items() if text.startswith(word)] for word in ("good", "strange"))
    assert np.mean(best) > np.mean(worst) + 1

    client.force_login(cast.researcher)
    assert "Assisted by ridge" in offered
    fit = f"after {EVERY} judgements in campaigns, from {2 * EVERY} judged outputs."
    assert fit in read(client, "/projects/alpha/systems/?method=win-rate&assist=ridge")
    quality = read(client, f"/projects/alpha/campaigns/{campaign.pk}/quality/")
    assert fit in quality
    saved = json.loads(command("systems", "alpha", "--method", "win-rate", "--json", "--assist"))["extras"]["saved"]
    assert saved > 0.05, saved
    assert f"quality: ridge saves about {100 * saved:.0f} % of the judgements." in quality
    assert fit in read(client, "/projects/alpha/evaluators/ridge/")
    for method in ("win-rate", "bradley-terry"):
        answer = client.get(f"/api/v1/projects/alpha/leaderboards/systems/?method={method}&assist=ridge").json()
        table = json.loads(command("systems", "alpha", "--method", method, "--json", "--assist"))
        assert table["evaluator"]["signature"] == score_set.full_signature
        assert [row["value"] for row in table["rows"]] == [row["value"] for row in answer["rows"]]
    command("dump", "alpha", str(tmp_path / "out"))
    outcomes = recompute_folder(tmp_path / "out")
    assert any(outcome.exported.get("assist") == "ridge" for outcome in outcomes)
    assert all(outcome.is_equal for outcome in outcomes), [str(one.differences or one.problem) for one in outcomes]


def test_refit_encodes_new_texts_only_and_equals_a_fit_from_scratch(client, cast, campaign, settings, monkeypatch):
    judge(client, cast, campaign, EVERY)
    watch_events()
    run_next()
    encoded: list[int] = []
    original = pipeline.encode_features
    monkeypatch.setattr(pipeline, "encode_features", lambda *given: (encoded.append(1), original(*given)))
    judge(client, cast, campaign, EVERY)
    watch_events()
    assert run_next().state == Run.State.SUCCEEDED
    assert encoded == []
    found = dict(Score.objects.values_list("output", "value"))
    settings.ARTEFACTS_DIR = settings.ARTEFACTS_DIR.parent / "empty"
    client.force_login(cast.researcher)
    assert client.post("/projects/alpha/evaluators/apply/ridge/").status_code == 302
    assert run_next().state == Run.State.SUCCEEDED
    assert encoded == [1]
    again = dict(Score.objects.values_list("output", "value"))
    assert again == pytest.approx(found, rel=0, abs=1e-9)


def test_no_output_is_scored_by_ratings_of_its_group(client, cast, campaign):
    judge(client, cast, campaign, 2 * EVERY)
    watch_events()
    run_next()
    before = dict(Score.objects.values_list("output", "value"))
    item = Rating.objects.select_related("output__item").order_by("pk").first().output.item
    own = Output.objects.filter(item__in=Item.objects.filter(group=item.group) if item.group else [item])
    for rating in Rating.objects.filter(output__in=own):
        Rating.objects.filter(pk=rating.pk).update(value=1 if rating.value > 4 else 7)
    client.force_login(cast.researcher)
    client.post("/projects/alpha/evaluators/apply/ridge/")
    assert run_next().state == Run.State.SUCCEEDED
    after = dict(Score.objects.values_list("output", "value"))
    own_keys = set(own.values_list("pk", flat=True))
    assert own_keys
    assert {key: after[key] for key in own_keys} == {key: before[key] for key in own_keys}
    assert after != before


def test_removed_judgements_lead_to_a_refit(client, cast, campaign):
    judge(client, cast, campaign, 2 * EVERY)
    watch_events()
    run_next()
    CampaignMember.objects.filter(campaign=campaign).update(done=EVERY + 10)  # as if another campaign were deleted
    watch_events()
    assert [run.params["until"] for run in refits()] == [2 * EVERY, EVERY + 10]
    run_next()
    watch_events()
    assert len(refits()) == 2


def test_failed_refit_leaves_scores_and_judging_alone(client, cast, campaign, monkeypatch):
    judge(client, cast, campaign, EVERY)
    watch_events()
    run_next()
    before = dict(Score.objects.values_list("output", "value"))

    def fail(**_given):
        raise RuntimeError("no space")

    monkeypatch.setattr(pipeline, "finish_score_set", fail)
    judge(client, cast, campaign, EVERY)
    watch_events()
    assert run_next().state == Run.State.FAILED
    assert dict(Score.objects.values_list("output", "value")) == before
    watch_events()
    assert len(refits()) == 2, "a failed refit is not repeated at once"
    judge(client, cast, campaign, 1)
    client.force_login(cast.researcher)
    assert f"after {EVERY} judgements" in read(client, "/projects/alpha/systems/?assist=ridge")


def test_it_is_offered_before_its_first_fit(client, cast, campaign):
    judge(client, cast, campaign, 6)
    client.force_login(cast.researcher)
    assert "Assisted by ridge" in read(client, "/projects/alpha/systems/")
    page = read(client, "/projects/alpha/systems/?assist=ridge")
    assert "fitted after every 50 judgements in campaigns" in page
    assert "Fit now" in page
    with pytest.raises(CommandError, match="evalapp score ridge --project alpha"):
        command("systems", "alpha", "--assist")
    assert client.get("/api/v1/projects/alpha/leaderboards/systems/?assist=ridge").status_code == 400
    assert "ridge: 0 outputs scored." in command("score", "ridge", "--project", "alpha", "--here")
    judge(client, cast, campaign, 30)
    assert "ridge: 160 outputs scored." in command("score", "ridge", "--project", "alpha", "--here")
    assert json.loads(command("systems", "alpha", "--json", "--assist"))["assist"] == "ridge"


def test_too_few_ratings_are_no_error(client, cast, campaign):
    judge(client, cast, campaign, 3)
    run = execute_run(assistant.start_refit(project=cast.project, send=False).pk)
    assert run is not None
    assert (run.state, run.result["aspects"]) == (Run.State.SUCCEEDED, [])
    assert RunLog.objects.filter(run=run, text="quality: too few different ratings (3).").exists()
    assert not Evaluator.objects.filter(slug="ridge").exists()
