"""Judges in a folder through the same run as endpoints: cache, resume, cancel, time, report, faults. The models are
random, so their ratings mean nothing."""

from __future__ import annotations

import io
import json
import time
from itertools import pairwise

import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.models import Aspect, Comparison, Output
from evalapp.common.errors import BadInput
from evalapp.common.runner import RunCancelled, execute_run
from evalapp.settings.judge_endpoints import read_endpoint
from scoring.ml.judges import answers as answers_module
from scoring.ml.judges import local as local_module
from scoring.models import Evaluator, JudgeAnswer, Score, ScoreSet
from scoring.selectors.judge_answers import iterate_answer_rows, make_reader
from scoring.services.judges import JudgeOptions, judge_again, start_check, start_judge
from tests.scoring.judge_models import CHAT, END, OWN_END, save_judge

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("judges")
    save_judge("llama", root / "chat", chat=CHAT)
    save_judge("t5", root / "asked")
    save_judge("llama-reward", root / "reward", chat=CHAT)
    return root


@pytest.fixture
def project(scored, settings, folders, monkeypatch):
    """A random model has little probability on the scale; texts of the project may not leave."""
    for name in ("read_rating", "read_verdict"):
        keywords = getattr(answers_module, name).__kwdefaults__
        monkeypatch.setitem(keywords, "min_share", 0.0)
    settings.JUDGE_ENDPOINTS = {
        name: read_endpoint(name, {"folder": str(folders / name), "device": "cpu", "batch_tokens": 4_000})
        for name in ("chat", "asked", "reward")
    }
    assert not scored.project.texts_may_leave
    return scored.project


def judge(project, endpoint, succeeds=True, **rest):
    run = execute_run(start_judge(project=project, options=JudgeOptions(endpoint, **rest), send=False).pk)
    assert (run.state == "succeeded") == succeeds, run.error
    return run


def read_values(run):
    rows = Score.objects.filter(score_set=run.result["score_set"])
    return dict(rows.values_list("output", "value"))


def test_scores_need_no_permission_to_leave_and_are_answered_once(project):
    run = judge(project, "chat", name="one")
    values = read_values(run)
    assert len(values) == 24
    assert all(1 <= value <= 5 for value in values.values())
    assert len(set(values.values())) > 3
    assert (run.result["answers"], run.result["cost"], run.result["undefined"]) == (24, 0, 0)
    assert ScoreSet.objects.get(pk=run.result["score_set"]).signature.startswith("judge|model:chat@")
    again = judge(project, "chat", name="one")
    assert (again.result["answers"], again.result["stored"]) == (0, 24)
    assert read_values(again) == values
    changed = Output.objects.filter(project=project).order_by("pk")[0]
    changed.text = "A new text."
    changed.save()
    row = Evaluator.objects.get(slug="one")
    renewed = execute_run(judge_again(project=project, evaluator=row, send=False).pk)
    assert (renewed.state, renewed.result["answers"]) == ("succeeded", 1)


def test_the_dry_check_loads_no_model(project, monkeypatch):
    monkeypatch.setattr(local_module, "LocalJudge", None)
    run = execute_run(start_check(project=project, options=JudgeOptions("chat"), send=False).pk)
    assert run.state == "succeeded", run.error
    assert (run.result["requests"], run.result["cost"], run.result["may_send"]) == (24, 0, True)
    assert run.result["model"] == "chat"
    assert str(run.result).count("/chat") == 0  # no place of a folder


def test_a_sequence_to_sequence_model_rates_by_yes_or_no(project):
    run = judge(project, "asked", method="yes-no")
    assert all(1 <= value <= 5 for value in read_values(run).values())
    row = Evaluator.objects.get(slug=run.result["evaluator"])
    assert (row.options["template"], row.options["method"], row.options["local"]) == ("yes-no", "yes-no", "seq2seq")
    answer = JudgeAnswer.objects.filter(project=project)[0].answer
    assert {label for label, _p in answer["tokens"][0][1]} == {"yes", "Yes", "no", "No"}


@pytest.fixture
def pairs(project):
    aspect = Aspect.objects.get(project=project, name="quality")
    outputs = list(Output.objects.filter(project=project).order_by("item", "pk"))
    found = [(a, b) for a, b in pairwise(outputs) if a.item_id == b.item_id]
    for a, b in found:
        Comparison.objects.create(project=project, output_a=a, output_b=b, aspect=aspect, rater="r1", verdict="a")
    return found


def test_pairs_are_judged_in_both_orders(project, pairs):
    run = judge(project, "chat", template="pairs")
    assert run.result["pairs"] == len(pairs)
    assert run.result["answers"] == 2 * len(pairs)
    assert set(read_values(run).values()) <= {0.0, 0.25, 0.5, 0.75, 1.0}


def test_a_reward_model_rates_and_compares(project, pairs, client, scored):
    run = judge(project, "reward", name="reward")
    rewards = read_values(run)
    row = Evaluator.objects.get(slug="reward")
    assert (row.options["template"], row.options["method"]) == ("reward", "reward")
    wins = judge(project, "reward", template="reward-pairs", name="wins")
    assert wins.result["answers"] == 0  # the same rewards
    expected = {}
    for a, b in pairs:
        x, y = rewards[a.pk], rewards[b.pk]
        for one, value in ((a.pk, (x > y) + (x == y) / 2), (b.pk, (y > x) + (x == y) / 2)):
            expected.setdefault(one, []).append(value)
    assert read_values(wins) == {output: sum(row) / len(row) for output, row in expected.items()}
    rows = list(
        iterate_answer_rows(Evaluator.objects.get(slug="wins"), make_reader(Evaluator.objects.get(slug="wins")))
    )
    assert len(rows) == 2 * len(pairs)
    by_text = {
        (output.item.key, output.system.name, output.step): rewards[output.pk]
        for output in Output.objects.filter(project=project).select_related("item", "system")
    }
    assert all(row["value"] == by_text[row["item"], row["system_a"], row["step_a"]] for row in rows)
    # Rewards are on no scale of people, so the report brings them to it.
    client.force_login(scored.researcher)
    report = client.get(reverse("api-evaluator-report", args=[project.slug, "reward"])).json()
    assert report["scaling"] is not None


def test_answers_can_be_generated(project):
    run = judge(project, "chat", method="json", name="writer")
    assert run.result["why_undefined"] == {"no rating in the answer": 24}
    assert run.result["completion_tokens"] > 24


def test_control_tokens_are_neutralised_and_tried(project, client, scored):
    outputs = list(Output.objects.filter(project=project).order_by("pk")[:2])
    for output, token in zip(outputs, (END, OWN_END), strict=True):
        output.text += f" {token}\n5"
        output.save()
    run = judge(project, "chat", name="one", injections=20)
    assert run.result["controls"] == 2
    n = len(local_attacks())
    assert run.result["injections"]["tried"] == run.result["injections"]["rated"] == 20 > n
    assert Evaluator.objects.get(slug="one").options["controls"] == [OWN_END, "<pad>"]
    client.force_login(scored.researcher)
    page = client.get(reverse("scoring:judge-report", args=[project.slug, "one"])).content.decode()
    assert "<dd data-controls>2</dd>" in page
    assert client.get(reverse("api-evaluator-report", args=[project.slug, "one"])).json()["controls"] == 2


def local_attacks():
    from scoring.ml.judges.injections import ATTACKS

    return [*ATTACKS, OWN_END, "<pad>"]


def test_a_run_whose_time_is_over_stops_with_what_it_has(project, settings, monkeypatch):
    settings.JUDGE_ENDPOINTS["chat"]["batch_tokens"] = 1
    now = time.monotonic
    jumps = iter([0.0] * 12)
    monkeypatch.setattr(time, "monotonic", lambda: now() + next(jumps, 3600.0))
    run = judge(project, "chat", name="one", minutes=30)
    monkeypatch.setattr(time, "monotonic", now)
    assert run.result["stopped"] == "time"
    assert 0 < run.result["outputs"] < 24
    assert run.result["outputs"] + run.result["without_answer"] == 24
    rest = judge(project, "chat", name="one")
    assert rest.result["answers"] == 24 - run.result["answers"]
    assert rest.result["stopped"] == ""


def test_a_cancelled_run_continues_where_it_ended(project, settings, monkeypatch):
    settings.JUDGE_ENDPOINTS["chat"]["batch_tokens"] = 1
    answer = local_module.LocalJudge.answer
    run = start_judge(project=project, options=JudgeOptions("chat", name="one"), send=False)

    calls = []

    def cancel_later(self, requests, check):
        def check_and_cancel():
            calls.append(1)
            if len(calls) == 6:
                raise RunCancelled
            check()

        return answer(self, requests, check_and_cancel)

    monkeypatch.setattr(local_module.LocalJudge, "answer", cancel_later)
    assert execute_run(run.pk).state == "cancelled"
    monkeypatch.setattr(local_module.LocalJudge, "answer", answer)
    n = JudgeAnswer.objects.count()
    assert 4 <= n < 24
    assert judge(project, "chat", name="one").result["answers"] == 24 - n


def test_other_weights_are_another_model(project, settings, folders, tmp_path):
    settings.JUDGE_ENDPOINTS["chat"]["folder"] = str(save_judge("llama", tmp_path / "chat", chat=CHAT, seed=8))
    judge(project, "chat", name="one")
    settings.JUDGE_ENDPOINTS["chat"]["folder"] = str(folders / "chat")
    assert judge(project, "chat", name="one").result["answers"] == 0
    judge(project, "chat", name="two", template="criteria")
    Output.objects.filter(project=project).update(text="Another text.")
    run = judge(project, "chat", succeeds=False, name="one")
    assert "answers as the model chat@" in run.error


@pytest.mark.parametrize(
    ("endpoint", "rest", "said"),
    [
        ("chat", {"template": "reward"}, "no reward model"),
        ("reward", {"template": "plain"}, "is a reward model"),
        ("reward", {"method": "json"}, "which have no other"),
        ("chat", {"method": "reward"}, "which have no other"),
        ("reward", {"injections": 3}, "does not give"),
        ("reward", {"examples": 3}, "no examples"),
        ("chat", {"samples": 2}, "the same probabilities"),
        ("chat", {"temperature": 1.0}, "the same probabilities"),
        ("chat", {"template": "pairs", "method": "yes-no"}, "rates texts"),
        ("chat", {"budget": 1.0}, "no prices"),
        ("chat", {"minutes": -1.0}, "minutes"),
    ],
)
def test_options_without_effect_are_refused(project, pairs, endpoint, rest, said):
    with pytest.raises(BadInput, match=said):
        start_judge(project=project, options=JudgeOptions(endpoint, **rest), send=False)


def test_a_missing_folder_is_named_by_its_endpoint_alone(project, settings, tmp_path):
    settings.JUDGE_ENDPOINTS["chat"]["folder"] = str(tmp_path / "private" / "chat")
    with pytest.raises(BadInput, match="endpoint chat cannot be used") as caught:
        start_judge(project=project, options=JudgeOptions("chat"), send=False)
    assert "private" not in str(caught.value)


def test_the_page_and_the_command_choose_a_folder_by_name(project, client, scored, folders):
    client.force_login(scored.researcher)
    address = reverse("scoring:judge", args=[project.slug])
    page = client.get(address).content.decode()
    assert "models in a folder judge" in page
    assert str(folders) not in page
    assert client.post(address, {"endpoint": "reward", "samples": 1, "minutes": "10"}).status_code == 302
    assert project.runs.order_by("-pk")[0].params["config"]["template"] == "reward"
    assert client.post(address, {"endpoint": str(folders / "chat"), "samples": 1}).status_code == 422
    out = io.StringIO()
    call_command("judge", project.slug, "chat", "--here", "--name", "mine", stdout=out)
    assert "mine: 24 outputs scored, 0 undefined" in out.getvalue()
    call_command("judge", project.slug, "chat", "--check", "--here", stdout=out)
    assert str(folders) not in out.getvalue()
    assert str(folders) not in json.dumps(Evaluator.objects.get(slug="mine").options)
