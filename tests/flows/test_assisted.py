"""Uploaded scores and a rated sample: command, page, API, files, export and recomputation agree."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from evalapp.accounts.models import Project
from scoring.boards.recompute import recompute_folder
from scoring.models import Score, ScoreSet

pytestmark = pytest.mark.django_db
SYSTEMS = ("alpha", "beta", "gamma")


def write(folder, name, rows):
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def project(tmp_path):
    """60 items in 30 groups, 3 systems, 20 rated items; the evaluator `judge` scores all and predicts ratings well."""
    rng = np.random.default_rng(8)
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder, "items", [{"id": f"i{k}", "group": f"g{k // 2}", "references": ["x"]} for k in range(60)])
    outputs, ratings, scores = [], [], []
    for k in range(60):
        for place, system in enumerate(SYSTEMS):
            quality = 3 + 0.2 * place + rng.normal()
            outputs.append({"item": f"i{k}", "system": system, "text": f"{system} says {k}"})
            scores.append({"item": f"i{k}", "system": system, "evaluator": "judge", "score": quality})
            if k % 3 == 0:
                value = round(float(np.clip(quality + 0.3 * rng.normal(), 1, 5)), 2)
                ratings.append({"item": f"i{k}", "system": system, "rater": "ann", "aspect": "quality", "value": value})
    write(folder, "outputs", outputs)
    write(folder, "ratings", ratings)
    write(folder, "scores", scores)
    call_command("load", str(folder), "--project", "weekend", stdout=io.StringIO(), stderr=io.StringIO())
    return Project.objects.get(slug="weekend")


def run(*arguments):
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_command_narrows_intervals(project):
    table = json.loads(run("systems", "weekend", "--assist", "judge", "--json"))
    alone = {row["label"]: row for row in json.loads(run("systems", "weekend", "--json"))["rows"]}
    assert next(row["label"] for row in table["rows"]) == "gamma"
    for row in table["rows"]:
        human = row["assisted"]["human"]
        assert human["value"] == pytest.approx(alone[row["label"]]["value"])
        assert row["high"] - row["low"] < 0.8 * (human["high"] - human["low"])
        assert row["assisted"]["effective"] > 1.5 * row["n"]
        assert (row["n"], row["n_ratings"], row["assisted"]["n_scored"]) == (20, 20, 60)
    assert table["extras"]["saved"] > 0.3
    text = run("systems", "weekend", "--assist", "judge")
    assert "Assisted by judge; intervals are about items like these." in text
    assert "judge saves about" in text


def test_page_api_and_files(project, admin_client):
    page = admin_client.get("/projects/weekend/systems/?assist=judge").content.decode()
    assert "assisted by judge" in page
    assert "Judgements only" in page
    assert 'value="judge" selected' in page
    assert "As good as" not in admin_client.get("/projects/weekend/systems/").content.decode()
    answer = admin_client.get("/api/v1/projects/weekend/leaderboards/systems/?assist=judge&target=these-items").json()
    assert (answer["assist"], answer["target"]) == ("judge", "these-items")
    (first, *_), lines = csv_rows(admin_client, "?assist=judge")
    assert first["human_value"] != first["value"]
    assert float(first["effective_n"]) > 20
    assert lines == 3
    assert "Judgements only" in admin_client.get("/projects/weekend/systems/table.tex?assist=judge").content.decode()


def test_caption_is_whole_phrases(project, admin_client):
    page = " ".join(admin_client.get("/projects/weekend/systems/?assist=judge").content.decode().split())
    caption = page.partition("<caption>")[2].partition("</caption>")[0]
    text = "Assisted by judge; the intervals are about items like these. 95 % intervals."
    assert caption.strip().startswith(f'Mean rating: <span dir="auto">quality</span>. {text}')


def test_page_says_why_an_evaluator_cannot_assist(project, admin_client):
    ScoreSet.objects.filter(project=project).update(scored_at=None)
    page = admin_client.get("/projects/weekend/systems/?assist=judge").content.decode()
    assert "No assisted ranking yet." in page
    assert "judge has no complete scores" in page
    assert "No judgements yet." not in page


def test_overview_shows_the_ranking_by_judgements_alone(project, admin_client):
    for query in ("", "?assist=judge"):
        admin_client.get(f"/projects/weekend/systems/{query}")
    table = json.loads(run("systems", "weekend", "--json"))
    page = admin_client.get("/projects/weekend/").content.decode()
    assert f'<td class="num">{table["rows"][0]["value"]:.2f}</td>' in page
    (row,) = [one for one in table["rows"] if one["rank"] == 1]
    assisted = json.loads(run("systems", "weekend", "--assist", "judge", "--json"))
    (other,) = [one for one in assisted["rows"] if one["rank"] == 1]
    assert f"{row['value']:.2f}" != f"{other['value']:.2f}"


def csv_rows(client: Client, query: str):
    text = client.get(f"/projects/weekend/systems/table.csv{query}").content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    return rows, len(rows)


@pytest.mark.parametrize("target", ["items-like-these", "these-items"])
def test_export_recomputes(project, tmp_path, target):
    run("systems", "weekend", "--assist", "judge", "--target", target)
    run("dump", "weekend", str(tmp_path / "out"))
    outcomes = recompute_folder(tmp_path / "out")
    assert all(outcome.is_equal for outcome in outcomes), [str(o.differences or o.problem) for o in outcomes]
    assert any(
        (outcome.exported.get("assist"), outcome.exported.get("target")) == ("judge", target) for outcome in outcomes
    )


def test_scores_of_training_items_are_refused(project):
    score_set = ScoreSet.objects.get(project=project)
    output = Score.objects.filter(score_set=score_set).first().output_id
    Score.objects.filter(score_set=score_set, output=output).update(in_training=True)
    ScoreSet.objects.filter(pk=score_set.pk).update(n_in_training=1)
    with pytest.raises(CommandError, match=r"1 of the outputs scored by judge are in its training data.*--folds 5"):
        run("systems", "weekend", "--assist", "judge")


def test_scores_of_whole_systems_are_refused(project, admin_client):
    score_set = ScoreSet.objects.get(project=project)
    Score.objects.filter(score_set=score_set).delete()
    row = {"step": None, "low": None, "high": None, "n": None, "note": ""}
    score_set.systems = [{"system": name, "value": place, **row} for place, name in enumerate(SYSTEMS)]
    score_set.save()
    page = admin_client.get("/projects/weekend/systems/?assist=judge")
    assert page.status_code == 200
    assert "judge has no scores of outputs." in page.content.decode()


@pytest.mark.parametrize("method", ["win-rate", "bradley-terry"])
def test_comparisons_of_outputs_without_scores_are_named(compared, admin_client, method):
    Score.objects.filter(score_set__project=compared, output__item__key__in=[f"i{k}" for k in range(0, 60, 3)]).delete()
    page = admin_client.get(f"/projects/weekend/systems/?aspect=better&method={method}&assist=judge")
    assert page.status_code == 200
    assert "No scored output has been compared with another for better." in page.content.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--assist", "nobody"], "There is no evaluator “nobody”"),
        (["--assist", "judge", "--by", "judge"], "leave out by or assist"),
        (["--assist", "judge", "--method", "glicko2"], "can assist the methods"),
        (["--target", "these-items"], "Without assist"),
    ],
)
def test_wrong_combinations_are_named(project, arguments, message):
    with pytest.raises(CommandError, match=message):
        run("systems", "weekend", *arguments)


def test_evaluator_that_says_nothing_does_not_widen(project, tmp_path):
    rng = np.random.default_rng(9)
    folder = tmp_path / "noise"
    folder.mkdir()
    rows = [
        {"item": f"i{k}", "system": system, "evaluator": "noise", "score": float(rng.normal())}
        for k in range(60)
        for system in SYSTEMS
    ]
    write(folder, "scores", rows)
    run("load", str(folder), "--project", "weekend")
    table = json.loads(run("systems", "weekend", "--assist", "noise", "--json"))
    widths = [(row["high"] - row["low"], row["assisted"]["human"]) for row in table["rows"]]
    assert sum(width for width, _ in widths) <= 1.03 * sum(human["high"] - human["low"] for _, human in widths)
    assert "noise does not help here" in " ".join(table["findings"])


@pytest.fixture
def compared(project, tmp_path):
    """The project with comparisons of all pairs of systems on 20 items."""
    rng = np.random.default_rng(10)
    scores = {
        (row.output.item.key, row.output.system.name): row.value
        for row in Score.objects.filter(score_set__project=project).select_related("output__item", "output__system")
    }
    rows = []
    for k in range(0, 60, 3):
        for a, b in (("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma")):
            apart = 2 * (scores[f"i{k}", a] - scores[f"i{k}", b]) + rng.logistic()
            verdict = "tie" if abs(apart) < 0.3 else "a" if apart > 0 else "b"
            rows.append({"item": f"i{k}", "system_a": a, "system_b": b, "rater": "ann", "aspect": "better",
                         "verdict": verdict})  # fmt: skip
    folder = tmp_path / "pairs"
    folder.mkdir()
    write(folder, "comparisons", rows)
    run("load", str(folder), "--project", "weekend")
    return project


@pytest.mark.parametrize("method", ["win-rate", "bradley-terry", "davidson"])
def test_comparisons_are_assisted_and_recompute(compared, tmp_path, admin_client, method):
    arguments = ["--aspect", "better", "--method", method]
    table = json.loads(run("systems", "weekend", *arguments, "--assist", "judge", "--json"))
    alone = {row["label"]: row for row in json.loads(run("systems", "weekend", *arguments, "--json"))["rows"]}
    assert table["extras"]["saved"] > 0.05
    for row in table["rows"]:
        assert row["assisted"]["human"]["value"] == pytest.approx(alone[row["label"]]["value"])
        assert row["n"] == 20
    page = admin_client.get(f"/projects/weekend/systems/?aspect=better&method={method}&assist=judge").content.decode()
    assert "assisted by judge" in page
    run("dump", "weekend", str(tmp_path / "out"))
    outcomes = recompute_folder(tmp_path / "out")
    assert all(outcome.is_equal for outcome in outcomes), [str(o.differences or o.problem) for o in outcomes]
    assert any((one.exported.get("assist"), one.exported.get("method")) == ("judge", method) for one in outcomes)


def test_evaluators_are_compared_by_the_judgements_they_save(project, admin_client):
    table = json.loads(run("meta", "weekend", "--json"))
    (row,) = [row for row in table["rows"] if row["evaluator"] == "judge"]
    systems = json.loads(run("systems", "weekend", "--assist", "judge", "--json"))
    assert row["saved"] == pytest.approx(systems["extras"]["saved"])
    assert "saved" in run("meta", "weekend")
    assert ">saved<" in admin_client.get("/projects/weekend/evaluation/").content.decode()
