"""Evaluators are compared on outputs outside all training data. Expected figures by numpy on the rows determined
here."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command

from annotation.models import Item, Rating
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.render.files import as_csv
from scoring.boards.render.latex import as_latex
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Score, ScoreSet
from scoring.selectors.training import artefact_folder
from scoring.services.columns import cache_columns
from scoring.services.leaderboards import compute_leaderboard
from tests.scoring.training import train

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> None:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"


def read_rows(project, **query) -> dict:
    table = compute_leaderboard(project=project, query=EvaluatorsQuery(aspect="quality", **query)).table
    return {**table, "rows": {row["evaluator"]: row for row in table["rows"]}}


def pearson(slug: str, groups: set[str] | None = None) -> float:
    scores, people = [], []
    for score in Score.objects.filter(score_set__evaluator__slug=slug).select_related("output__item"):
        if groups is None or score.output.item.group in groups:
            scores.append(score.value)
            people.append(np.mean(Rating.objects.filter(output=score.output).values_list("value", flat=True)))
    return float(np.corrcoef(scores, people)[0, 1])


def test_all_are_compared_outside_everybodys_training_data(toy, score):
    score(toy.project, "length")
    table = read_rows(toy.project)
    assert (table["n_outputs"], table["n_excluded"], table["rows"]["length"]["whole"]) == (24, 0, None)
    slugs = [train(toy.project, folds=1, seed=seed).slug for seed in (1, 2)]
    unseen = {f"g{k:03d}" for k in range(12)}
    for slug in slugs:
        score(toy.project, slug)
        evaluator = Score.objects.filter(score_set__evaluator__slug=slug).first().score_set.evaluator
        split = json.loads((artefact_folder(evaluator) / "split.json").read_text())
        unseen -= {*split["train"], *split["dev"]}
    table = read_rows(toy.project)
    assert table["n_outputs"] == 2 * len(unseen)
    assert table["n_excluded"] == 24 - 2 * len(unseen)
    row = table["rows"]["length"]
    assert row["whole"]["n"] == 24
    assert row["whole"]["pearson"]["value"] == pytest.approx(pearson("length"))
    assert table["rows"][slugs[0]]["n_in_training"] == 22


def test_without_unseen_outputs_nothing_is_compared_and_every_table_says_why(toy, score):
    """For example, if each of two models was trained on the groups that the other left out."""
    score(toy.project, "length")
    evaluator = train(toy.project, folds=1)
    score(toy.project, evaluator.slug)
    Score.objects.filter(score_set__evaluator=evaluator).update(in_training=True)
    ScoreSet.objects.filter(evaluator=evaluator).update(n_in_training=24)
    cache_columns(ScoreSet.objects.get(evaluator=evaluator))
    for number, item in enumerate(Item.objects.filter(project=toy.project)):
        Item.objects.filter(pk=item.pk).update(meta={"part": "ab"[number % 2]})
    table = read_rows(toy.project)
    assert (table["n_outputs"], table["n_excluded"]) == (0, 24)
    assert "none is left" in table["note"]
    assert table["rows"]["length"]["pearson"]["value"] is None
    assert table["rows"]["length"]["whole"]["pearson"]["value"] == pytest.approx(pearson("length"))
    left_out = "24 rated outputs are left out: an evaluator in this table was trained on their groups."
    for arguments in (["--aspects"], ["--slices", "part"]):
        told = io.StringIO()
        call_command("meta", "alpha", *arguments, stdout=told)
        assert left_out in told.getvalue(), arguments
    told = io.StringIO()
    call_command("meta", "alpha", "--aspects", stdout=told)
    assert f"{evaluator.slug} in quality" in told.getvalue()


def test_single_model_leaves_its_unused_groups(toy, score):
    evaluator = train(toy.project, folds=1)
    for name in ("length", evaluator.slug):
        score(toy.project, name)
    split = json.loads((artefact_folder(evaluator) / "split.json").read_text())
    left = {f"g{k:03d}" for k in range(12)} - {*split["train"], *split["dev"]}
    assert len(left) == 1
    table = read_rows(toy.project)
    assert table["rows"]["length"]["n"] == table["rows"][evaluator.slug]["n"] == table["n_outputs"] == 2
    whole = table["rows"][evaluator.slug]["whole"]
    assert whole["pearson"]["value"] == pytest.approx(pearson(evaluator.slug))
    board = compute_leaderboard(project=toy.project, query=EvaluatorsQuery(aspect="quality")).table
    named = list(csv.DictReader(io.StringIO(as_csv(board))))  # notes contain commas
    assert {row["evaluator"]: row["n_in_training"] for row in named}[evaluator.slug] == "22"
    assert float(named[0]["n_whole"]) == 24
    assert evaluator.slug in as_latex(board)


def test_cross_fitted_evaluators_are_compared_on_everything(toy, score):
    evaluator = train(toy.project, folds=2)
    for name in ("length", evaluator.slug):
        score(toy.project, name)
    table = read_rows(toy.project)
    assert (table["n_outputs"], table["n_excluded"]) == (24, 0)
    assert table["rows"][evaluator.slug]["pearson"]["value"] == pytest.approx(pearson(evaluator.slug))
    systems = compute_leaderboard(project=toy.project, query=SystemsQuery(by=evaluator.slug)).table
    assert {row["system"] for row in systems["rows"]} == {"sys-a", "sys-b"}
    assert systems["evaluator"]["n_in_training"] == 0
