"""A judge from the settings to the tables: dry check, run, stored answers, budget, errors, export."""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from dataclasses import asdict
from itertools import pairwise

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.exporters.options import ExportOptions
from annotation.models import Aspect, Campaign, CampaignAspect, Comparison, Item, Output, Upload
from annotation.pipelines.exports import write_export
from annotation.services.undo import undo_upload
from evalapp.accounts.models import Project, User
from evalapp.common.errors import BadInput, Conflict, EvalappError
from evalapp.common.models import AuditEvent, RunLog
from evalapp.common.runner import execute_run
from scoring.boards.data.files import ExportFolder
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.recompute import recompute_folder
from scoring.ml.judges import client as client_module
from scoring.models import Evaluator, JudgeAnswer, Score, ScoreSet
from scoring.selectors.judge_split import count_looks, iterate_looks
from scoring.services.judges import JudgeOptions, judge_again, start_check, start_judge
from tests.factories import make_outputs, make_ratings
from tests.scoring.boards.computing import compute_table
from tests.scoring.judge_server import KEY

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(client_module, "LONGEST_WAIT", 0.01)


@pytest.fixture
def project(scored):
    scored.project.texts_may_leave = True
    scored.project.save()
    return scored.project


def judge(project, succeeds=True, **rest):
    run = execute_run(start_judge(project=project, options=JudgeOptions("fake", **rest), send=False).pk)
    assert (run.state == "succeeded") == succeeds, run.error
    return run


def read_values(run):
    rows = Score.objects.filter(score_set=run.result["score_set"]).select_related("output")
    return {row.output: row.value for row in rows}


def count_sent(judge_server):
    return len(judge_server.requests)


def expect(output):
    """The rating of the fake server, by the share of probability that it gives the number."""
    return 1 + len(output.text) // 5 % 5


def test_scores_reach_the_tables(project, judge_server):
    run = judge(project, name="fluency-judge")
    values = read_values(run)
    assert len(values) == 24
    assert all(value == pytest.approx(expect(output)) for output, value in values.items())
    table = compute_table(project, EvaluatorsQuery())
    assert "fluency-judge" in {row["evaluator"] for row in table["rows"]}
    score_set = ScoreSet.objects.get(pk=run.result["score_set"])
    assert score_set.signature.startswith("judge|model:tiny-1|template:plain@")
    assert run.result["stopped"] == ""


def test_nothing_is_sent_before_the_project_allows_it(scored, judge_server):
    with pytest.raises(BadInput, match="may not leave"):
        start_judge(project=scored.project, options=JudgeOptions("fake"), send=False)
    scored.project.texts_may_leave = True
    scored.project.save()
    run = start_judge(project=scored.project, options=JudgeOptions("fake"), send=False)
    # The switch is read again when the run begins.
    scored.project.texts_may_leave = False
    scored.project.save()
    assert execute_run(run.pk).state == "failed"
    assert judge_server.requests == []


def test_the_switch_is_audited(cast):
    from evalapp.accounts.services import update_project

    update_project(project=cast.project, actor=cast.owner, texts_may_leave=True)
    update_project(project=cast.project, actor=cast.owner, texts_may_leave=False)
    verbs = list(AuditEvent.objects.filter(project=cast.project).order_by("pk").values_list("verb", flat=True))
    assert verbs[-2:] == ["project.texts-allowed-out", "project.texts-kept-in"]


def test_a_second_run_asks_for_nothing(project, judge_server):
    first = judge(project, name="one")
    sent = count_sent(judge_server)
    assert sent == 24 == first.result["answers"]
    second = judge(project, name="one")
    assert (second.result["answers"], second.result["stored"]) == (0, 24)
    assert count_sent(judge_server) == sent
    Output.objects.filter(project=project).order_by("pk").first()
    changed = Output.objects.filter(project=project).order_by("pk")[0]
    changed.text = "A new text."
    changed.save()
    third = judge(project, name="one")
    assert third.result["answers"] == 1
    assert read_values(third)[changed] == pytest.approx(expect(changed))


def test_no_query_has_more_keys_than_databases_allow(project, judge_server, monkeypatch, client, scored):
    monkeypatch.setattr("scoring.selectors.judges.MOST_KEYS", 5)
    client.force_login(scored.researcher)
    with CaptureQueriesContext(connection) as queries:
        judge(project, name="one")
        assert judge(project, name="one").result["stored"] == 24
        response = client.get(reverse("scoring:judge-answers", args=[project.slug, "one"]))
        assert len(b"".join(response.streaming_content).splitlines()) == 24
    lists = [
        part.count(",") + 1
        for query in queries
        if "judgeanswer" in query["sql"] or "scoring_score" in query["sql"]
        for part in re.findall(r"(?:digest|output_id)\W+IN \(([^)]*)\)", query["sql"])
    ]
    assert max(lists) == 5


def test_the_rubric_is_that_of_the_campaign_and_is_copied(project, judge_server):
    campaign = Campaign.objects.create(project=project, slug="c", name="C", kind="likert", guidelines="Be strict.")
    aspect = Aspect.objects.get(project=project, name="quality")
    row = CampaignAspect.objects.create(
        campaign=campaign, aspect=aspect, position=0, question="Is it good?", low=1, high=5, labels={"5": "superb"}
    )
    judge(project, name="one")
    prompt = judge_server.requests[0]["messages"][1]["content"]
    for part in ("Is it good?", "5 = superb", "Be strict."):
        assert part in prompt
    assert Evaluator.objects.get(slug="one").options["campaign"] == "c"
    row.question = "Another?"
    row.save()
    with pytest.raises(Conflict, match=r"differs in: .*evalapp score"):
        start_judge(project=project, options=JudgeOptions("fake", name="one"), send=False)


def test_expected_ratings_weigh_alternatives(project, judge_server):
    judge_server.spread = 0.3
    run = judge(project)
    for output, value in read_values(run).items():
        # 0.69 on the rating and 0.3 on "1"; "Well" has the rest.
        top, low = expect(output), 1
        wanted = 1.0 if top == 1 else (0.69 * top + 0.3 * low) / 0.99
        assert value == pytest.approx(wanted, abs=1e-4)


def test_the_dry_check_sends_nothing(project, judge_server):
    run = execute_run(start_check(project=project, options=JudgeOptions("fake"), send=False).pk)
    assert run.state == "succeeded", run.error
    assert (run.result["requests"], run.result["stored"]) == (24, 0)
    assert len(run.result["prompts"]) == 3
    assert run.result["cost"] > 0
    assert judge_server.requests == []
    judge(project)
    again = execute_run(start_check(project=project, options=JudgeOptions("fake"), send=False).pk)
    assert (again.result["requests"], again.result["stored"]) == (0, 24)


def test_a_budget_stops_the_run_with_what_it_has(project, judge_server):
    whole = judge(project, name="whole").result["cost"]
    JudgeAnswer.objects.all().delete()
    run = judge(project, name="part", budget=whole)
    assert run.result["stopped"] == "budget"
    assert 0 < run.result["cost"] <= whole
    assert 0 < run.result["outputs"] < 24
    assert run.result["outputs"] + run.result["without_answer"] == 24
    n = count_sent(judge_server)
    rest = judge(project, name="part")
    assert rest.result["outputs"] == 24
    assert count_sent(judge_server) - n == 24 - run.result["answers"]


def test_a_budget_needs_prices(project, judge_server, settings):
    settings.JUDGE_ENDPOINTS["fake"] |= {"price_in": 0.0, "price_out": 0.0}
    with pytest.raises(BadInput, match="no prices"):
        start_judge(project=project, options=JudgeOptions("fake", budget=1.0), send=False)


def test_refusals_are_undefined_with_their_reason(project, judge_server):
    judge_server.script = ["refuse", "refuse"]
    run = judge(project)
    assert run.result["why_undefined"] == {"the model refused": 2}
    assert sum(value is None for value in read_values(run).values()) == 2
    assert judge(project).result["answers"] == 0  # a refusal is an answer and is not paid twice


def test_words_instead_of_json_are_asked_for_once_more(project, judge_server):
    judge_server.always = "words-once"
    run = judge(project, method="json")
    assert run.result["undefined"] == 0
    assert run.result["answers"] == 48
    judge_server.always = "words"
    run = judge(project, method="json", template="criteria", name="never")
    assert run.result["why_undefined"] == {"no rating in the answer": 24}
    assert run.result["answers"] == 48


def test_missing_log_probabilities_end_the_run_with_the_way_out(project, judge_server):
    judge_server.always = "bare"
    run = judge(project, succeeds=False)
    assert "method json" in run.error
    assert not ScoreSet.objects.filter(evaluator__kind="judge").exists()


def test_scores_of_two_models_are_not_mixed(project, judge_server):
    judge_server.script = [""] * 10 + ["other"] * 100
    run = judge(project, succeeds=False, name="one")
    assert "other-2" in run.error
    judge_server.script = ["other"] * 1000
    run = judge(project, name="two")
    assert "|model:other-2|" in run.result["signature"]


def test_errors_of_a_request_are_counted_and_asked_again(project, judge_server):
    judge_server.script = [400, 400]
    run = judge(project, name="one")
    assert (run.result["failed"], run.result["undefined"]) == (2, 2)
    lines = run.log.filter(text__startswith="A request failed").values_list("text", flat=True)
    assert len(lines) == 1, list(lines)
    assert judge(project, name="one").result["undefined"] == 0


def test_a_run_that_died_repeats_at_most_the_requests_in_flight(project, judge_server, monkeypatch):
    """The worker dies while it stores the answers that have arrived."""
    from scoring.pipelines import judge_sending

    store, calls = judge_sending.store_answers, Counter()

    class Killed(BaseException):
        pass

    def die(**rest):
        calls["n"] += 1
        if calls["n"] == 4:
            raise Killed
        store(**rest)

    monkeypatch.setattr(judge_sending, "store_answers", die)
    run = start_judge(project=project, options=JudgeOptions("fake", name="one"), send=False)
    with pytest.raises(Killed):
        execute_run(run.pk)
    monkeypatch.setattr(judge_sending, "store_answers", store)
    type(run).objects.filter(pk=run.pk).update(state="queued", worker="")
    assert execute_run(run.pk).state == "succeeded"
    repeated = sum(n - 1 for n in judge_server.digests.values())
    assert len(judge_server.digests) == 24
    assert repeated <= 4


def test_samples_are_separate_answers_whose_ratings_are_averaged(project, judge_server):
    values = iter([1, 3] * 100)
    judge_server.rate = lambda prompt: next(values)
    run = judge(project, samples=2, temperature=1.0)
    assert run.result["answers"] == 48
    assert JudgeAnswer.objects.filter(repeat=1).count() == 24
    assert {round(value, 6) for value in read_values(run).values()} <= {1.0, 2.0, 3.0}
    record = Evaluator.objects.get(slug=run.result["evaluator"]).record
    assert record["consistency"]["n"] == 24
    assert 0 < record["consistency"]["mean_sd"] <= 2**0.5 + 1e-9
    assert record["mean_share"] == pytest.approx(0.99)


def test_pairs_are_judged_in_both_orders(project, judge_server):
    """The server prefers the longer text, and text A among equal ones: a tie, because the orders disagree."""

    def compare(prompt):
        a, b = (re.findall(rf"Text {side}:\n<<<\n(.*?)\n>>>", prompt, re.S)[-1] for side in "AB")
        return "A" if len(a) >= len(b) else "B"

    judge_server.rate = compare
    aspect = Aspect.objects.get(project=project, name="quality")
    outputs = list(Output.objects.filter(project=project).order_by("item", "pk"))
    pairs = [(a, b) for a, b in pairwise(outputs) if a.item_id == b.item_id]
    for a, b in pairs:
        Comparison.objects.create(project=project, output_a=a, output_b=b, aspect=aspect, rater="r1", verdict="a")
    run = judge(project, template="pairs")
    assert run.result["answers"] == 2 * len(pairs)
    equal = sum(len(a.text) == len(b.text) for a, b in pairs)
    assert (run.result["pairs"], run.result["orders_disagree"]) == (len(pairs), equal)
    assert run.result["first_better"] - run.result["second_better"] == 2 * equal
    wins = {output: [] for pair in pairs for output in pair}
    for a, b in pairs:
        value = 0.5 if len(a.text) == len(b.text) else float(len(a.text) > len(b.text))
        wins[a].append(value)
        wins[b].append(1 - value)
    assert read_values(run) == {output: pytest.approx(sum(row) / len(row)) for output, row in wins.items()}
    every = judge(project, template="pairs", pairs="all")
    assert every.result["pairs"] == 24  # 3 pairs for each of 8 items


def add_rated_items(project):
    """Rate 12 more items, so that enough of their groups are of the tuning part."""
    items = [Item(project=project, key=f"j{k:02d}", context=["Hello."], group=f"h{k:02d}") for k in range(12)]
    make_ratings(project, make_outputs(project, Item.objects.bulk_create(items), ("sys-a", "sys-b", "sys-c")))


def test_examples_count_as_training_data(project, judge_server):
    add_rated_items(project)
    run = judge(project, examples=2)
    assert run.result["in_training"] == 6  # two groups with three outputs each
    record = Evaluator.objects.get(slug=run.result["evaluator"]).record
    assert len(record["examples"]) == 2
    assert "Example text" in judge_server.requests[0]["messages"][1]["content"]
    assert "|examples:2@" in run.result["signature"]
    assert judge(project, examples=2).result["answers"] == 0


def test_the_key_is_in_no_output(project, judge_server, caplog, settings):
    import logging

    caplog.set_level(logging.DEBUG)
    judge_server.script = [500, 400, 429]
    run = judge(project, name="one")
    judge_server.always = 400
    failed = judge(project, succeeds=False, name="two", template="criteria")
    out = io.StringIO()
    call_command("judge", project.slug, "fake", "--check", "--here", stdout=out)
    texts = [
        caplog.text, json.dumps(run.result), failed.error, out.getvalue(), repr(settings.JUDGE_ENDPOINTS),
        *RunLog.objects.values_list("text", flat=True),
        *map(json.dumps, JudgeAnswer.objects.values_list("answer", flat=True)),
        *(json.dumps(row.detail) for row in AuditEvent.objects.all()),
    ]  # fmt: skip
    assert all(KEY not in text and KEY[:12] not in text for text in texts)


def test_a_missing_key_says_where_it_should_be(project, judge_server, monkeypatch):
    monkeypatch.delenv("FAKE_JUDGE_KEY")
    run = judge(project, succeeds=False)
    assert "FAKE_JUDGE_KEY" in run.error
    assert judge_server.requests == []


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ({"model": "huge"}, "no model"),
        ({"template": "none"}, "no template"),
        ({"template": "plain@3"}, "no template"),
        ({"campaign": "none"}, "no campaign"),
        ({"references": "none"}, "no reference set"),
        ({"samples": 0}, "samples"),
        ({"temperature": math.nan}, "temperature"),
        ({"method": "guess"}, "method"),
        ({"aspect": "none"}, "no aspect"),
        ({"examples": 20}, "examples need"),
        ({"name": "length"}, "length"),
    ],
)
def test_faulty_requests_are_refused(project, judge_server, rest, said):
    def start():
        run = execute_run(start_judge(project=project, options=JudgeOptions("fake", **rest), send=False).pk)
        raise BadInput(run.error)

    with pytest.raises(EvalappError, match=said):
        start()
    assert judge_server.requests == []


def test_an_address_is_no_endpoint(project, judge_server):
    for name in (judge_server.url, "http://127.0.0.1:1/v1", ""):
        with pytest.raises(BadInput, match="no endpoint"):
            start_judge(project=project, options=JudgeOptions(name), send=False)


def test_the_command_checks_and_runs(project, judge_server):
    out = io.StringIO()
    call_command("judge", project.slug, "fake", "--check", "--here", stdout=out)
    assert "24 requests to fake" in out.getvalue()
    out = io.StringIO()
    call_command("judge", project.slug, "fake", "--here", "--name", "mine", stdout=out)
    assert "mine: 24 outputs scored, 0 undefined" in out.getvalue()
    with pytest.raises(CommandError, match="no endpoint"):
        call_command("judge", project.slug, "other", "--here")


def test_options_are_plain():
    assert asdict(JudgeOptions("fake"))["temperature"] == 0.0


def test_texts_that_ask_for_the_best_rating_are_part_of_the_report(project, judge_server, client, scored):
    """The server believes every text with "Ignore all", the first of ten attacks."""
    judge_server.rate = lambda prompt: 5 if "Ignore all previous" in prompt else 3
    run = judge(project, name="one", injections=20)
    assert run.result["answers"] == 24 + 20
    assert run.result["injections"] == {
        "tried": 20, "rated": 20, "changed": 2, "mean_change": pytest.approx(2 * 2 / 20)
    }  # fmt: skip
    client.force_login(scored.researcher)
    page = client.get(reverse("scoring:judge-report", args=[project.slug, "one"])).content.decode()
    assert "2 of 20 changed the rating" in page
    with pytest.raises(BadInput, match="rated texts only"):
        start_judge(
            project=project,
            options=JudgeOptions("fake", aspect="quality", template="pairs", pairs="all", injections=1),
            send=False,
        )


# ---- pages, files and report --------------------------------------------------------------------------------------


def test_answers_are_a_file_of_json_lines(project, judge_server, client, scored):
    run = judge(project, name="one")
    client.force_login(scored.researcher)
    response = client.get(reverse("scoring:judge-answers", args=[project.slug, "one"]))
    rows = [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]
    assert len(rows) == 24
    values = {(output.item.key, output.system.name): value for output, value in read_values(run).items()}
    assert {(row["item"], row["system"]): row["value"] for row in rows} == values
    assert all(row["prompt_tokens"] and row["cost"] > 0 and row["tokens"] and row["text"] for row in rows)
    assert client.get(reverse("scoring:judge-answers", args=[project.slug, "length"])).status_code == 400


def test_the_page_checks_and_starts(project, judge_server, client, scored):
    client.force_login(scored.researcher)
    address = reverse("scoring:judge", args=[project.slug])
    assert "fake" in client.get(address).content.decode()
    form = {"endpoint": "fake", "template": "plain", "samples": 1}
    limits = {"budget": "2.5", "injections": "3"}
    checked = client.post(address, {**form, **limits, "samples": 2, "check": "1"})
    assert checked.status_code == 302
    # The page of the check leads on to the form with its options.
    check = execute_run(project.runs.get(kind="judge-check").pk)
    onward = f"{address}?check={check.pk}"
    assert onward in client.get(checked["Location"]).content.decode()
    shown = client.get(onward).context["form"]
    assert [shown[name].value() for name in ("endpoint", "template", "samples", "budget", "injections")] == [
        "fake", "plain", 2, 2.5, 3,
    ]  # fmt: skip
    assert client.get(f"{address}?check=x").status_code == 200
    assert client.post(address, {**form, "name": "mine"}).status_code == 302
    kinds = list(project.runs.order_by("pk").values_list("kind", flat=True))
    assert kinds[-2:] == ["judge-check", "judge"]
    assert client.post(address, {**form, "endpoint": judge_server.url}).status_code == 422


def test_templates_have_versions(project, judge_server, client, scored):
    client.force_login(scored.researcher)
    address = reverse("scoring:judge-template", args=[project.slug])
    form = {"name": "mine", "kind": "pointwise", "text": "{question} {output} {answer_format}"}
    assert client.post(address, form).status_code == 302
    assert client.post(address, form).status_code == 302  # the same text is no new version
    assert client.post(address, {**form, "text": "Please: " + form["text"]}).status_code == 302
    assert list(project.judge_templates.values_list("version", flat=True)) == [2, 1]
    page = client.get(address).content.decode()
    assert page.count("{question} {output} {answer_format}</pre>") == 3  # two versions, and the current one
    client.force_login(scored.viewer)
    page = client.get(address).content.decode()
    assert "mine@1" in page
    assert "<textarea" not in page
    client.force_login(scored.researcher)
    assert client.post(address, {**form, "text": "{output}"}).status_code == 422
    assert client.post(address, {**form, "name": "plain"}).status_code == 422
    first = judge(project, template="mine@1")
    assert "|template:mine@1@" in first.result["signature"]
    assert not judge_server.requests[0]["messages"][1]["content"].startswith("Please")
    judge(project, template="mine")
    assert judge_server.requests[-1]["messages"][1]["content"].startswith("Please")


def test_the_report_counts_looks_at_the_test_part(project, judge_server, client, scored):
    judge(project, name="one")
    judge(project, name="two", template="criteria")
    client.force_login(scored.researcher)
    address = reverse("scoring:judge-report", args=[project.slug, "one"])
    page = client.get(address).content.decode()
    assert 'data-part="development"' in page
    assert "shown 0 times" in page
    assert "two" in page
    page = client.post(address).content.decode()
    assert 'data-part="test"' in page
    assert "shown 1 time." in page
    call = reverse("api-evaluator-report", args=[project.slug, "one"])
    development, test = client.get(call).json(), client.post(call).json()
    assert (development["looks"], test["looks"]) == (1, 2)
    n_rated = len({rating.output_id for rating in project.ratings.all()})
    assert development["n_outputs"] + test["n_outputs"] == n_rated
    assert development["others"][0]["pearson"] == pytest.approx(1.0)  # the server rates by the text alone
    whole = client.get(reverse("api-evaluator-report", args=[project.slug, "length"])).json()
    assert whole["n_outputs"] == n_rated
    assert whole["scaling"] is not None
    assert client.get(call, {"epsilon": "x"}).status_code == 400
    # What shows nothing is no look at the test part.
    assert client.post(call + "?epsilon=x").status_code == 400
    assert client.post(address + "?epsilon=x").status_code == 400
    assert client.get(call).json()["looks"] == 2


def test_a_report_by_simulated_ratings_says_so(scored, client):
    client.force_login(scored.researcher)
    names = [scored.project.slug, "length"]
    page, call = reverse("scoring:judge-report", args=names), reverse("api-evaluator-report", args=names)
    assert client.get(call).json()["n_simulated"] == 0
    assert "badge simulated" not in client.get(page).content.decode()
    scored.project.ratings.filter(rater="r0").update(simulated=True)
    assert client.get(call, {"epsilon": 0.2}).json()["n_simulated"] == scored.project.ratings.filter(rater="r0").count()
    assert "badge simulated" in client.get(page, {"epsilon": 0.2}).content.decode()


def test_the_report_reads_no_answers(project, judge_server, client, scored):
    """They may be many, or absent, as those of an imported judge are."""
    add_rated_items(project)
    judge(project, name="one", examples=2)
    JudgeAnswer.objects.all().delete()
    row = Evaluator.objects.get(slug="one")
    call = reverse("api-evaluator-report", args=[project.slug, "one"])
    client.force_login(scored.researcher)
    assert client.get(call).json()["mean_share"] == pytest.approx(0.99)
    row.record = {}
    row.save()
    response = client.get(call)
    assert response.status_code == 200
    assert response.json()["mean_share"] is None
    page = client.get(reverse("scoring:judge-report", args=[project.slug, "one"]))
    assert 'data-part="development"' in page.content.decode()


def test_owners_allow_that_texts_leave_by_page_and_api(scored, judge_server, client):
    project = scored.project
    runs, call = (reverse(name, args=[project.slug]) for name in ("api-run-list", "api-project"))
    page = reverse("accounts:project-settings", args=[project.slug])
    form = {"name": project.name, "task": project.task, "lang": project.lang}
    start = {"kind": "judge", "endpoint": "fake"}

    def is_allowed():
        project.refresh_from_db()
        return project.texts_may_leave

    client.force_login(scored.researcher)
    assert client.patch(call, {"texts_may_leave": True}, content_type="application/json").status_code == 403
    assert client.post(page, {**form, "texts_may_leave": "on"}).status_code == 403
    assert not is_allowed()
    response = client.post(runs, start, content_type="application/json")
    assert response.status_code == 400
    assert "may not leave" in response.content.decode()
    assert "may not leave" in client.get(reverse("scoring:judge", args=[project.slug])).content.decode()

    client.force_login(scored.owner)
    assert client.post(page, {**form, "texts_may_leave": "on"}).status_code == 302
    assert is_allowed()
    assert client.patch(call, {"texts_may_leave": False}, content_type="application/json").status_code == 200
    assert not is_allowed()
    assert client.patch(call, {"texts_may_leave": True}, content_type="application/json").status_code == 200
    assert client.post(runs, start, content_type="application/json").status_code in (201, 202)
    # A form without the tick turns it off.
    assert client.post(page, form).status_code == 302
    assert not is_allowed()
    verbs = AuditEvent.objects.filter(project=project, verb__startswith="project.texts").order_by("pk")
    assert list(verbs.values_list("verb", "actor")) == [
        (f"project.texts-{change}", scored.owner.pk) for change in ("allowed-out", "kept-in") * 2
    ]


def test_deleting_a_judge_says_what_is_lost(project, judge_server, client, scored):
    judge(project, name="one")
    judge(project, name="two", template="criteria")
    client.force_login(scored.viewer)
    address = reverse("scoring:evaluator-delete", args=[project.slug, "one"])
    assert client.post(address).status_code == 403
    client.force_login(scored.researcher)
    assert address in client.get(reverse("scoring:evaluator", args=[project.slug, "one"])).content.decode()
    page = client.get(address).content.decode()
    assert "its 24 scores" in page
    assert "Also delete the 24" in page
    assert client.post(address).status_code == 302
    assert not Evaluator.objects.filter(slug="one").exists()
    assert not Score.objects.filter(score_set__evaluator__slug="one").exists()
    assert JudgeAnswer.objects.count() == 48
    # The same judge again asks for nothing.
    assert judge(project, name="one").result["answers"] == 0
    assert (
        client.post(reverse("scoring:evaluator-delete", args=[project.slug, "two"]), {"answers": "1"}).status_code
        == 302
    )
    assert JudgeAnswer.objects.count() == 24
    events = AuditEvent.objects.filter(project=project, verb="evaluator.deleted").order_by("pk")
    assert [(row.object, row.detail.get("answers")) for row in events] == [("one", None), ("two", 24)]
    assert judge(project, name="two", template="criteria").result["answers"] == 24


def test_a_judge_that_a_run_uses_is_not_deleted(project, judge_server, client, scored):
    judge(project, name="one")
    start_judge(project=project, options=JudgeOptions("fake", name="one", minutes=5), send=False)
    client.force_login(scored.researcher)
    client.post(reverse("scoring:evaluator-delete", args=[project.slug, "one"]))
    assert Evaluator.objects.filter(slug="one").exists()


def test_undefined_estimates_have_their_reason_as_text(project, judge_server, client, scored):
    judge(project, name="one")
    project.ratings.exclude(rater="r0").delete()
    client.force_login(scored.researcher)
    call = client.get(reverse("api-evaluator-report", args=[project.slug, "one"])).json()
    assert call["alpha_without"]["value"] is None
    page = client.get(reverse("scoring:judge-report", args=[project.slug, "one"])).content.decode()
    assert f"data-reason>{call['alpha_without']['note']}" in page


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_an_export_has_the_raw_answers_from_which_scores_follow(project, judge_server, tmp_path, format):
    aspect = Aspect.objects.get(project=project, name="quality")
    a, b = Output.objects.filter(project=project).order_by("item", "pk")[:2]
    Comparison.objects.create(project=project, output_a=a, output_b=b, aspect=aspect, rater="r1", verdict="a")
    judge_server.spread = 0.2
    judge_server.script = ["refuse"]
    judge(project, name="rates", samples=2, temperature=1.0)
    judge_server.rate = lambda prompt: "A"
    judge(project, name="pairs", template="pairs", pairs="all")
    compute_table(project, EvaluatorsQuery())
    bare, whole = tmp_path / "bare", tmp_path / "whole"
    for folder, options in ((bare, {}), (whole, {"answers": True})):
        folder.mkdir()
        write_export(project, folder, ExportOptions(format=format, **options), lambda done: None)
    assert not list(bare.glob("judge_answers*"))
    rows = list(ExportFolder(whole).rows("judge_answers"))
    assert len(rows) == 48 + 48
    texts = "".join(path.read_text(errors="replace") for path in whole.iterdir())
    assert KEY not in texts
    assert "judge_answers" in (whole / "README.md").read_text()
    outcomes = [one for one in recompute_folder(whole) if one.title.startswith("answers of")]
    assert [one.title for one in outcomes] == ["answers of pairs, quality", "answers of rates, quality"]
    for one in outcomes:
        assert one.is_equal, one.differences
        assert one.n_numbers == 24
    if format != "jsonl":
        return
    lines = (whole / "judge_answers.jsonl").read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    first = next(row for row in changed if row["evaluator"] == "rates" and row["tokens"] and row["value"] != 1)
    first["tokens"] = [["1", [["1", -0.001]]]]
    (whole / "judge_answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changed))
    assert [one.is_equal for one in recompute_folder(whole)][-2:] == [True, False]


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_an_imported_judge_asks_for_nothing_again(project, judge_server, tmp_path, scored, client, format):
    """Also with examples in the prompts, comparisons and repaired answers. Looks at the test part are carried over."""
    add_rated_items(project)
    a, b = Output.objects.filter(project=project).order_by("item", "pk")[:2]
    aspect = Aspect.objects.get(project=project, name="quality")
    Comparison.objects.create(project=project, output_a=a, output_b=b, aspect=aspect, rater="r1", verdict="a")
    judge_server.script = ["refuse"]
    judge(project, name="rates", samples=2, temperature=1.0, examples=2)
    judge_server.always = "words-once"
    judge(project, name="repaired", method="json")
    judge_server.always = ""
    judge_server.rate = lambda prompt: "A"
    judge(project, name="pairs", template="pairs", pairs="all")
    client.force_login(scored.researcher)
    client.post(reverse("scoring:judge-report", args=[project.slug, "rates"]))
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    write_export(project, folders[0], ExportOptions(format=format, answers=True), lambda done: None)
    call_command("load", str(folders[0]), "--project", "copy", stdout=io.StringIO())
    copy = Project.objects.get(slug="copy")
    copy.texts_may_leave = True
    copy.save()
    write_export(copy, folders[1], ExportOptions(format=format, answers=True), lambda done: None)
    for name in ("judge_answers", "score_sets"):
        first, second = (next(folder.glob(f"{name}.*")).read_bytes() for folder in folders)
        assert first == second
    sent = count_sent(judge_server)
    for row in Evaluator.objects.filter(project=copy, kind="judge"):
        run = execute_run(judge_again(project=copy, evaluator=row, send=False).pk)
        assert run.state == "succeeded", run.error
        assert (run.result["answers"], run.result["without_answer"]) == (0, 0)
    assert count_sent(judge_server) == sent
    values = Score.objects.filter(score_set__evaluator__kind="judge").order_by(
        "score_set__evaluator__slug", "output__item__key", "output__system__name"
    )  # fmt: skip
    pair = [
        list(values.filter(score_set__project=one).values_list("value", "note", "in_training"))
        for one in (project, copy)
    ]
    assert pair[0] == pair[1]
    assert (count_looks(copy, ["rates"]), count_looks(copy, ["pairs"])) == (1, 0)
    (original,), (look,) = (list(iterate_looks(one, ["rates"])) for one in (project, copy))
    assert look == original
    # Loading the same files again changes nothing.
    call_command("load", str(folders[0]), "--project", "copy", stdout=io.StringIO())
    assert count_looks(copy, ["rates"]) == 1
    upload = Upload.objects.filter(project=copy).order_by("pk")[0]
    assert upload.counts["judge_answers"]["added"] == JudgeAnswer.objects.filter(project=copy).count() > 200


def test_undoing_an_upload_removes_its_answers(project, judge_server, tmp_path, scored):
    judge(project, name="one")
    folder = tmp_path / "export"
    call_command("dump", project.slug, str(folder), "--answers", stdout=io.StringIO())
    call_command("load", str(folder), "--project", "copy", stdout=io.StringIO())
    assert JudgeAnswer.objects.filter(project__slug="copy").count() == 24
    undo_upload(upload=Upload.objects.get(project__slug="copy"), user=scored.researcher)
    assert not JudgeAnswer.objects.filter(project__slug="copy").exists()
    assert JudgeAnswer.objects.filter(project=project).count() == 24


@pytest.mark.parametrize(("change", "said"), [
    ({"request": "12"}, "hexadecimal"), ({"tokens": [["4", 3]]}, "tokens must be a list"),
    ({"tokens": [["4", [["4", 2]]]]}, "tokens must be a list"), ({"sample": -1}, "sample must be a whole number"),
    ({"refused": "no"}, "refused must be true or false"), ({"text": None}, "text is missing"),
    ({"cost": "free"}, "cost must be a number"), ({"evaluator": "length"}, "There is no judge"),
])  # fmt: skip
def test_faulty_answers_are_refused_with_their_row(project, judge_server, tmp_path, change, said):
    judge(project, name="one")
    folder = tmp_path / "export"
    call_command("dump", project.slug, str(folder), "--answers", stdout=io.StringIO())
    rows = [json.loads(line) for line in (folder / "judge_answers.jsonl").read_text().splitlines()]
    rows[1] |= change
    (folder / "judge_answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("load", str(folder), "--project", "copy", stdout=io.StringIO(), stderr=err)
    assert "judge_answers.jsonl:2" in err.getvalue()
    assert said in err.getvalue()
    assert not JudgeAnswer.objects.filter(project__slug="copy").exists()


@pytest.mark.parametrize("record", [
    {"examples": [{"text": 3}]}, {"looks": [{"at": "yesterday", "figures": {}}]}, {"looks": 3}, {"model": 3},
])  # fmt: skip
def test_faulty_records_are_refused(project, judge_server, tmp_path, record):
    judge(project, name="one")
    folder = tmp_path / "export"
    call_command("dump", project.slug, str(folder), stdout=io.StringIO())
    rows = [json.loads(line) for line in (folder / "score_sets.jsonl").read_text().splitlines()]
    rows = [row | ({"judge": record} if row["kind"] == "judge" else {}) for row in rows]
    (folder / "score_sets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("load", str(folder), "--project", "copy", stdout=io.StringIO(), stderr=err)
    assert "The record of a judge cannot be used" in err.getvalue()


def test_an_export_with_a_judge_can_be_imported(project, judge_server, tmp_path, client):
    """Its scores come back, and faulty options are refused."""
    run = judge(project, name="one")
    folder = tmp_path / "export"
    call_command("dump", project.slug, str(folder), "--answers")
    call_command("load", str(folder), "--project", "copy")
    row = Evaluator.objects.get(project__slug="copy", slug="one")
    assert row.is_judge
    values = {(output.item.key, output.system.name): value for output, value in read_values(run).items()}
    scores = Score.objects.filter(score_set__evaluator=row).select_related("output__item", "output__system")
    assert {(one.output.item.key, one.output.system.name): one.value for one in scores} == values
    client.force_login(User.objects.create_superuser("root"))
    for name in ("evaluator", "judge-report", "judge-answers"):
        assert client.get(reverse(f"scoring:{name}", args=["copy", "one"])).status_code == 200
    lines = [json.loads(line) for line in (folder / "score_sets.jsonl").read_text().splitlines()]
    options = next(line for line in lines if line["kind"] == "judge")["options"]
    for change, said in (
        ({"template_text": "{output}"}, "needs {answer_format}"), ({"low": "x"}, "do not fit"), ({"step": 9}, "step"),
        ({"endpoint": 3}, "endpoint must be text"), ({"samples": -1}, "samples"),
        ({"method": "guess"}, "method is unknown"),
        ({"controls": 3}, "controls must be a list"), ({"controls": [""]}, "controls must be a list"),
        ({"model": "two\nlines"}, "line break"), ({"labels": [1]}, "do not fit"),
    ):  # fmt: skip
        for line in lines:
            if line["kind"] == "judge":
                line["options"] = {**options, **change}
        (folder / "score_sets.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        err = io.StringIO()
        with pytest.raises(SystemExit):
            call_command("load", str(folder), "--project", "other", stdout=io.StringIO(), stderr=err)
        assert said in err.getvalue()
