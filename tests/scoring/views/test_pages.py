"""The pages of scoring at their addresses: content, permissions, number of queries."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from lxml import html

from annotation.models import Output, Rating
from evalapp import __version__
from evalapp.common.models import Run
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.slices.query import SlicesQuery
from scoring.forms.fields import ApplyForm
from scoring.models import Leaderboard, Score, ScoreSet
from scoring.selectors.catalogue import entries, get_entry
from scoring.services import leaderboards
from scoring.services.leaderboards import compute_leaderboard
from scoring.services.scores import get_default_options
from tests.pages import read_page
from tests.scoring.training import make_trained

pytestmark = pytest.mark.django_db

PAGES = ("evaluator-list", "systems", "evaluation")


@pytest.fixture
def researcher(client, cast):
    client.force_login(cast.researcher)
    return client


def address(name: str, *rest: object, project: str = "alpha") -> str:
    return reverse(f"scoring:{name}", args=[project, *rest])


@pytest.mark.parametrize("name", PAGES)
def test_empty_project_explains_what_to_do(researcher, name):
    response = researcher.get(address(name))
    assert response.status_code == 200
    assert "<code>evalapp load FOLDER --project alpha</code>" in read_page(response)


@pytest.mark.parametrize("name", PAGES)
def test_annotators_and_strangers_are_refused(scored, client, name):
    client.force_login(scored.annotator)
    assert client.get(address(name)).status_code == 403
    client.force_login(scored.stranger)
    assert client.get(address(name)).status_code == 404
    client.logout()
    assert client.get(address(name)).status_code == 302


@pytest.mark.parametrize("name", PAGES)
def test_pages_need_few_queries(scored, researcher, name, django_assert_max_num_queries):
    researcher.get(address(name))
    with django_assert_max_num_queries(15):
        assert researcher.get(address(name)).status_code == 200


def test_systems_are_ranked_with_intervals(scored, researcher):
    text = read_page(researcher.get(address("systems")))
    assert "sys-a" in text
    assert '<svg class="interval"' in text
    table = Leaderboard.objects.get(kind="systems").table
    assert [row["n_ratings"] for row in table["rows"]] == [16, 16, 16]
    assert table["signature"].endswith(f"|aspect:quality|ratings:raw|systems:all|v:{__version__}")


def test_systems_by_evaluator(scored, researcher):
    text = read_page(researcher.get(address("systems") + "?by=length"))
    assert 'data-by="length"' in text
    assert "Mean score of length" in text
    assert re.search(r"<caption>[^<]*95 % intervals", text)
    assert "Rank intervals:" in text


def test_system_score_without_an_interval_shows_none(scored, researcher):
    """The evaluator has one value per system for all its outputs, like perception."""
    score_set = ScoreSet.objects.get(evaluator__slug="length")
    names = sorted({row["system"] for row in score_set.summary})
    score_set.systems = [{"system": name, "step": None, "value": place / 8} for place, name in enumerate(names)]
    score_set.save(update_fields=["systems"])
    text = " ".join(read_page(researcher.get(address("systems") + "?by=length")).split())
    assert re.search(r"<caption>[^<]*one value per system\. ?<", text)
    assert "Rank intervals:" not in text
    assert f'Rank intervals overlap: <span dir="auto">{", ".join(reversed(names))}</span>' in text
    assert f'<td class="num">1–{len(names)}</td>' in text


def test_system_score_with_its_interval(scored, researcher):
    score_set = ScoreSet.objects.get(evaluator__slug="length")
    names = sorted({row["system"] for row in score_set.summary})
    score_set.systems = [
        {"system": name, "step": None, "value": place, "low": place - 0.4, "high": place + 0.4, "n": 4, "note": ""}
        for place, name in enumerate(names)
    ]
    score_set.save(update_fields=["systems"])
    text = " ".join(read_page(researcher.get(address("systems") + "?by=length")).split())
    assert re.search(r"<caption>[^<]*one value per system[^<]*95 % intervals", text)
    assert 'data-ranks="ends"' in text
    assert "Rank intervals overlap:" not in text


def test_simulated_ratings_are_marked(scored, researcher):
    Rating.objects.filter(rater="r0").update(simulated=True)
    for name in ("systems", "evaluation"):
        assert "badge simulated" in read_page(researcher.get(address(name)))


def test_unapplied_baselines_are_listed_in_the_table(scored, researcher):
    text = read_page(researcher.get(address("evaluation")))
    assert "evalapp score overlap" in text
    assert "Apply missing trivial baselines" in text
    researcher.post(address("score-sentinels"))
    assert Run.objects.filter(kind="score", params__evaluator="overlap").exists()


def test_unknown_choice_is_a_readable_error(scored, researcher):
    response = researcher.get(address("systems") + "?method=elo")
    assert response.status_code == 400
    assert 'data-error="bad-input" data-field="method"' in read_page(response)
    assert "mean, win-rate, m1" in read_page(response)


def test_missing_comparisons_are_not_an_error(scored, researcher):
    response = researcher.get(address("systems") + "?method=win-rate")
    assert response.status_code == 200
    assert 'data-empty="judgements"' in read_page(response)


def test_applying_queues_a_run_and_reports_errors(scored, researcher):
    assert "lowercase" in read_page(researcher.get(address("evaluator-apply", "bleu-4")))
    response = researcher.post(
        address("evaluator-apply", "bleu-4"), {"references": "original", "option_lowercase": "on"}
    )
    run = Run.objects.get(params__evaluator="bleu-4")
    assert response["Location"] == reverse("run", args=["alpha", run.pk])
    assert run.params["options"]["lowercase"] is True
    wrong = researcher.post(address("evaluator-apply", "random"), {"option_seed": "many"})
    assert wrong.status_code == 422
    assert "whole number" in read_page(wrong)


def test_scores_being_computed_are_not_called_stale(scored, researcher):
    run = Run.objects.get(params__evaluator="length")
    ScoreSet.objects.filter(run=run).update(scored_at=None)
    Run.objects.filter(pk=run.pk).update(state="running")
    for page in (address("evaluator-list"), address("evaluator", "length")):
        text = read_page(researcher.get(page))
        assert "out of date" not in text
        assert reverse("run", args=["alpha", run.pk]) in text
    Run.objects.filter(pk=run.pk).update(state="failed")
    assert "not complete" in read_page(researcher.get(address("evaluator-list")))


def test_applying_a_comparative_evaluator_states_its_workload(scored, researcher):
    """Once, a hundred readings of each output took an hour without a warning."""
    row = make_trained(scored.project, "judge", "comparative")
    assert "model calls" not in read_page(researcher.get(address("evaluator-apply", "judge")))
    row.options = {"references": 50, "comparison": True}
    row.save()
    n = Output.objects.filter(project=scored.project).count()
    text = read_page(researcher.get(address("evaluator-apply", "judge")))
    assert "50 machine texts" in text
    assert f"{100 * n:,} model calls" in text
    row.record["profile"] = "paper"
    row.save()
    text = read_page(researcher.get(address("evaluator-apply", "judge")))
    assert "50 machine texts" in text
    assert f" {50 * n:,} model calls" in text
    # One text after the other, and a non-comparative evaluator.
    row.options["comparison"] = False
    row.save()
    assert "model calls" not in read_page(researcher.get(address("evaluator-apply", "judge")))
    assert "model calls" not in read_page(researcher.get(address("evaluator-apply", "bleu-4")))


def test_form_fields_left_empty_keep_the_trained_options(scored, researcher):
    """Once, selects showed their first option and the checkbox was off: applying by page used verdicts and one-way
    reading for an evaluator trained on expected outcomes both ways."""
    make_trained(scored.project, "judge", "comparative")

    def applied(**chosen):
        place = address("evaluator-apply", "judge")
        forms = html.fromstring(read_page(researcher.get(place))).forms
        sent = next(dict(form.form_values()) for form in forms if any(key.startswith("option_") for key in form.fields))
        assert researcher.post(place, sent | chosen).status_code == 302
        return Run.objects.filter(kind="score").latest("pk").params["options"]

    untouched = applied()
    assert [untouched[name] for name in ("symmetric", "outcome", "tie_rule", "n_references")] == [None] * 4
    assert untouched == get_entry("comparative").parse_options({})
    chosen = applied(option_symmetric="false", option_outcome="verdict", option_tie_rule="paper")
    assert (chosen["symmetric"], chosen["outcome"], chosen["tie_rule"]) == (False, "verdict", "paper")
    assert applied(option_symmetric="true")["symmetric"] is True


@pytest.mark.parametrize("name", [entry.name for entry in entries()])
def test_untouched_form_requests_the_defaults(name, scored, settings):
    settings.ENCODERS = {"mine": "/nowhere"}
    entry, project = get_entry(name), scored.project
    (form,) = html.fromstring(f"<body><form>{ApplyForm(project=project, entry=entry)}</form></body>").forms
    sent = ApplyForm(QueryDict(urlencode(form.form_values())), project=project, entry=entry)
    assert sent.is_valid() or not sent.fields, sent.errors
    given = sent.options if sent.fields else {}
    named = {option.name: given[option.name] for option in entry.options if option.needed}
    defaults = get_default_options(entry, project) | named
    assert entry.parse_options({**defaults, **given}) == entry.parse_options(defaults)


def test_viewer_may_not_apply(scored, client):
    client.force_login(scored.viewer)
    assert client.get(address("evaluator-apply", "bleu-4")).status_code == 403
    assert client.post(address("score-sentinels")).status_code == 403


def test_evaluator_page_shows_figures_by_system_and_staleness(scored, researcher):
    text = read_page(researcher.get(address("evaluator", "length")))
    assert "length|tok:words|v:" in text
    assert "out of date" not in text
    Output.objects.create(
        project=scored.project,
        item=Output.objects.first().item,
        system=Output.objects.first().system,
        step=5,
        text="later",
    )
    assert "1 output came later" in read_page(researcher.get(address("evaluator", "length")))


def test_scores_are_available_as_csv(scored, researcher):
    response = researcher.get(address("scores-csv", "length"))
    lines = b"".join(response.streaming_content).decode().splitlines()
    assert lines[0] == "item,system,step,value,note,in_training,signature"
    assert len(lines) == 25
    assert "attachment" in response["Content-Disposition"]


@pytest.mark.parametrize("name", ["systems-file", "evaluation-file"])
@pytest.mark.parametrize("ending", ["csv", "json", "tex"])
def test_tables_are_available_as_files(scored, researcher, name, ending):
    response = researcher.get(address(name, ending))
    text = response.content.decode()
    assert response.status_code == 200
    assert f".{ending}" in response["Content-Disposition"]
    if ending == "json":
        assert len(json.loads(text)["rows"]) in (3, 4)
    elif ending == "tex":
        assert r"\toprule" in text
        assert text.count(r"\\") in (4, 5)
    else:
        assert len(text.splitlines()) in (4, 5)


def test_plots_are_svg_with_title_and_description(scored, researcher):
    for path in (
        address("systems-svg"),
        address("evaluation-svg") + "?coefficient=kendall&theme=dark",
        address("scatter-svg", "length"),
        address("scatter-svg", "length") + "?level=system",
        address("distribution-svg", "length"),
    ):
        response = researcher.get(path)
        assert response["Content-Type"].startswith("image/svg+xml"), path
        text = read_page(response)
        assert "<title" in text
        assert "<desc" in text
        assert "<style" not in text
        assert " style=" not in text


def test_scores_of_an_item(scored, researcher):
    output = Output.objects.first()
    text = read_page(researcher.get(address("item-scores", output.item_id), headers={"hx-request": "true"}))
    assert "<html" not in text
    assert "token-f1" in text
    assert researcher.get(address("item-scores", 99999)).status_code == 404


def test_cached_table_is_used_until_the_data_change(scored, researcher):
    researcher.get(address("evaluation"))
    before = Leaderboard.objects.get(kind="evaluators").computed_at
    researcher.get(address("evaluation"))
    assert Leaderboard.objects.get(kind="evaluators").computed_at == before
    rating = Rating.objects.first()
    Rating.objects.create(
        project=scored.project, output=rating.output, aspect=rating.aspect, rater="r9", value=1, simulated=False
    )
    researcher.get(address("evaluation"))
    assert Leaderboard.objects.get(kind="evaluators").computed_at > before


def test_large_table_is_computed_in_a_run(scored, researcher, monkeypatch):
    from scoring.services import leaderboards

    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 10)
    text = read_page(researcher.get(address("systems")))
    run = Run.objects.get(kind="rank")
    assert f"run {run.pk}" in text
    assert "every 3s" in text
    from evalapp.common.runner import execute_run

    assert execute_run(run.pk).state == "succeeded"
    text = read_page(researcher.get(address("systems")))
    assert "every 3s" not in text
    assert "sys-a" in text


def test_many_evaluators_are_correlated_in_a_run_with_progress(scored, researcher, monkeypatch):
    from evalapp.common.runner import execute_run
    from scoring.models import Evaluator, ScoreSet
    from scoring.services import leaderboards

    def large(**query):
        return leaderboards.is_large(scored.project, EvaluatorsQuery(**query))

    assert not large()
    now = ScoreSet.objects.first().scored_at
    for number in range(60):
        slug = f"metric-{number}"
        made = Evaluator.objects.create(project=scored.project, slug=slug, name=slug, kind="baseline")
        ScoreSet.objects.create(project=scored.project, evaluator=made, signature=slug, scored_at=now)
    # 48 ratings and 63 evaluators: all pairs are a hundred thousand cells, and ranks cost more.
    assert not large()
    assert large(coefficient="spearman")
    assert not large(coefficient="spearman", test="none")
    assert not leaderboards.is_large(scored.project, SlicesQuery(coefficient="spearman"))
    Evaluator.objects.filter(slug__startswith="metric-").delete()
    monkeypatch.setattr(leaderboards, "MAX_CORRELATED_IN_REQUEST", 100)
    text = read_page(researcher.get(address("evaluation")))
    assert 'id="board-state"' in text
    assert "<table" not in text
    run = Run.objects.get(kind="rank")
    Run.objects.filter(pk=run.pk).update(state="running", done=3, total=6, unit="steps")
    assert "3 of 6 steps" in read_page(researcher.get(address("evaluation")))
    Run.objects.filter(pk=run.pk).update(state="queued")
    told = []
    leaderboards.compute_leaderboard(
        project=scored.project, query=EvaluatorsQuery(), progress=lambda *steps: told.append(steps)
    )
    assert told == [(3, 6), (4, 6), (5, 6), (6, 6)]
    assert execute_run(run.pk).state == "succeeded"
    assert "token-f1" in read_page(researcher.get(address("evaluation")))


def test_evaluator_page_has_the_interval_of_a_system_score(scored, researcher, score):
    score(scored.project, "chrf")
    rows = ScoreSet.objects.get(evaluator__slug="chrf").systems
    text = read_page(researcher.get(address("evaluator", "chrf")))
    assert all(f"[{row['low']:.3f}, {row['high']:.3f}]" in text for row in rows)
    # From before intervals existed.
    ScoreSet.objects.filter(evaluator__slug="chrf").update(
        systems=[{name: row[name] for name in ("system", "step", "value", "n")} for row in rows]
    )
    text = read_page(researcher.get(address("evaluator", "chrf")))
    assert all(f"{row['value']:.3f}" in text for row in rows)
    assert "[" not in text.partition("Scores by system")[2].partition("</table>")[0]


def test_overview_shows_the_first_rows(scored, researcher):
    researcher.get(address("systems"))
    with CaptureQueriesContext(connection) as queries:
        text = read_page(researcher.get(reverse("project", args=["alpha"])))
    assert len(queries) <= 15  # like every list page, whatever the apps add to it
    assert "Leaderboard" in text
    assert "sys-a" in text


def test_leaderboards_count_as_read_only_when_opened(scored, researcher):
    """Once, a table made by the demonstration, an export or another person checked off the first step."""
    compute_leaderboard(project=scored.project, query=EvaluatorsQuery())

    def done() -> list[bool]:
        steps = researcher.get("/projects/alpha/").context["steps"]
        return [step.done for step in steps if step.title == "Read the leaderboards"]

    assert done() == [False]
    researcher.get("/projects/alpha/evaluation/")
    assert done() == [True]
    researcher.force_login(scored.owner)
    assert done() == [False]


def test_pages_that_need_a_ream_mention_one_in_training(researcher, cast):
    pages = (address("select-references"), address("reliability-curves"))
    for page in pages:
        assert 'data-missing="ream"' in read_page(researcher.get(page))
    run = Run.objects.create(
        project=cast.project, kind="train", title="Train ream-1", params={"evaluator": "ream"}, state="running"
    )
    for page in pages:
        text = read_page(researcher.get(page))
        assert f"run {run.pk}</a> (running)" in text
        assert 'data-missing="ream"' not in text


def test_invalid_digits_are_refused_with_a_message(scored, researcher):
    """“²” is a digit but not a number; a cursor is a list, not just any object with a length."""
    run = Run.objects.first()
    odd = "eyIwIjoxLCIxIjoyfQ"  # {"0":1,"1":2}
    for path, status in (
        ("/api/v1/projects/alpha/runs/?limit=²", 400),
        (f"/api/v1/projects/alpha/runs/?cursor={odd}", 400),
        (address("evaluator", "length") + "?set=²", 404),
        (address("evaluator", "length") + "?fold=²", 200),
        (address("evaluator-upload") + "?folds=²", 200),
        (address("train", "maude") + "?check=²", 200),
        (address("select-references") + "?preview=²", 200),
        (address("reliability-curves") + "?run=²", 200),
        (f"/projects/alpha/runs/{run.pk}/?log=²", 200),
    ):
        assert researcher.get(path).status_code == status, path


def test_missing_evaluator_cannot_be_applied(scored, researcher):
    def why(name):
        response = researcher.get(address("evaluator", name))
        assert response.status_code == 404
        return read_page(response)

    assert "Apply it" in why("chrf")
    unknown = why("ream-1")
    assert ("“ream-1”" in unknown, "deleted" in unknown, "Apply it" in unknown) == (True, False, False)
    Run.objects.create(
        project=scored.project, kind="train", title="Train ream-1", input_hash="1", state="succeeded",
        result={"evaluator": "ream-1"},
    )  # fmt: skip
    assert "“ream-1” was deleted" in why("ream-1")


def test_leaderboard_without_scores_mentions_scores(scored, researcher):
    ScoreSet.objects.filter(evaluator__slug="token-f1").delete()
    text = read_page(researcher.get(address("systems") + "?by=token-f1"))
    assert "No scores yet." in text
    assert "No judgements yet." not in text
    assert f'href="{address("evaluator-list")}"' in text


def test_undefined_scores_are_neither_drawn_nor_resampled(scored, researcher):
    found = ScoreSet.objects.get(evaluator__slug="token-f1")
    Score.objects.filter(score_set=found).update(value=None)
    found.summary = [{**row, "n": 0, "mean": None} for row in found.summary]
    found.data_hash = "none"  # so that no cache file of columns is written for it
    found.save()
    text = read_page(researcher.get(address("systems") + "?by=token-f1"))
    assert "no score of" in text
    assert "no judgement" not in text
    assert "0 group" not in text
    text = read_page(researcher.get(address("evaluator", "token-f1")))
    assert "distribution.svg" not in text
    text = read_page(researcher.get(address("evaluator", "length")))
    assert "distribution.svg" in text
    assert f'{address("systems")}?by=length"> Means with 95 % intervals' in text


def test_narrow_table_of_evaluators_has_the_interval_next_to_the_figure(scored, researcher):
    text = read_page(researcher.get(address("evaluation") + "?coefficient=spearman&intervals=1"))
    row = next(part for part in text.split("<tr") if ">length</a>" in part)
    cells = row.split('<td class="num"')
    shown = [cell for cell in cells if "narrow-only" in cell]
    assert len(shown) == 1
    assert " to " in shown[0]


def test_preview_states_the_number_of_items(scored, researcher):
    params = {
        "evaluator": "ream-1",
        "candidates": "outputs",
        "references": "original",
        "start": "one",
        "max": 10,
        "items": [],
    }
    for sample, words in (
        (3, "Trying 3 items in"),
        (1, "Trying 1 item in"),
        (9, "Trying 5 items"),
        (None, "Trying 5 items"),
    ):
        run = Run.objects.create(
            project=scored.project, kind="preview-references", title="Preview", input_hash=str(sample),
            params={**params, "sample": sample},
        )  # fmt: skip
        assert words in read_page(researcher.get(address("select-references") + f"?preview={run.pk}"))


def test_unknown_evaluator_is_refused_and_starts_no_run(scored, researcher, monkeypatch):
    """Once, each visit of the address queued a run that failed."""
    monkeypatch.setattr(leaderboards, "MAX_ROWS_IN_REQUEST", 1)
    response = researcher.get(address("systems") + "?by=nobody")
    assert response.status_code == 400
    assert not Run.objects.filter(kind="rank").exists()


def test_going_back_in_the_history_gets_the_whole_page(scored, researcher):
    """htmx asks for a page that its history lost; a part of it would be shown alone."""
    url = address("systems")
    assert b"<html" not in researcher.get(url, headers={"HX-Request": "true"}).content
    asked = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert b"<html" in researcher.get(url, headers=asked).content
    assert b"<html" in researcher.get(url + "?by=nobody", headers=asked).content
