"""The link of a run to its result, and whether the result still exists."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from annotation.models import ReferenceSet
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.boards.registry import list_boards
from scoring.models import Evaluator, ScoreSet
from scoring.selectors.leaderboards import parse_query
from scoring.selectors.run_results import (
    evaluator_gone,
    make_board_address,
    make_score_address,
    references_gone,
    scores_gone,
    was_made,
)
from scoring.services.scores import apply_evaluator
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db
METRICS = ("length", "random")


@pytest.fixture
def run(cast):
    def make(kind, **result):
        return Run.objects.create(
            project=cast.project, kind=kind, title=kind, input_hash=kind, state="succeeded", result=result
        )

    return make


def test_deleted_evaluator(cast, run):
    training = run("train", evaluator="ream-1")
    row = Evaluator.objects.create(project=cast.project, slug="ream-1", name="ream", kind="trained", run=training)
    assert evaluator_gone(training) == ""
    again = run("games", evaluator="ream-1")
    assert evaluator_gone(again) == ""
    row.delete()
    assert "ream-1" in evaluator_gone(training)
    assert "ream-1" in evaluator_gone(again)
    assert was_made(cast.project, "ream-1")
    assert not was_made(cast.project, "ream-2")
    assert not was_made(cast.foreign, "ream-1")


def test_another_evaluator_of_the_same_name_is_not_the_result(cast, run):
    training = run("train", evaluator="ream-1")
    Evaluator.objects.create(
        project=cast.project, slug="ream-1", name="ream", kind="trained", run=run("artefact", evaluator="ream-1")
    )
    assert "were deleted" in evaluator_gone(training)
    Evaluator.objects.update(run=None)  # after an import or a restored backup, the run is unknown
    assert evaluator_gone(training) == ""


def test_deleted_references(cast, run):
    made = run("select-references", references="auto")
    assert "auto" in references_gone(made)
    ReferenceSet.objects.create(project=cast.project, name="auto")
    assert references_gone(made) == ""
    assert (references_gone(run("preview-references")), evaluator_gone(run("plan"))) == ("", "")


def test_scores_link_to_their_page_until_deleted(cast, client):
    make_outputs(cast.project, make_items(cast.project, 2))
    (first, second) = [execute_run(apply_evaluator(project=cast.project, evaluator=name).pk) for name in METRICS]
    client.force_login(cast.researcher)
    for run, name in ((first, "length"), (second, "random")):
        score_set = ScoreSet.objects.get(pk=run.result["score_set"])
        assert run.result["url"] == make_score_address(score_set)
        assert f"<h1>{name}</h1>" in client.get(run.result["url"]).content.decode()
        assert scores_gone(run) == ""
    ScoreSet.objects.filter(pk=first.result["score_set"]).delete()
    assert "were deleted" in scores_gone(first)
    assert scores_gone(second) == ""
    Evaluator.objects.filter(slug="random").delete()
    assert "random" in scores_gone(second)
    assert scores_gone(Run(project=cast.project, kind="score")) == ""


@pytest.mark.parametrize(("kind", "shape"), [(kind, board.query) for kind, board in list_boards().items()])
def test_table_links_to_the_page_that_shows_it(cast, client, kind, shape):
    """Tables of every kind, with default and other options."""
    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 4)))
    client.force_login(cast.researcher)
    for query in (shape(), shape(aspect="quality") if kind != "aspects" else shape(level="system")):
        answered = client.get(make_board_address(cast.project, query))
        assert answered.status_code == 200
        assert parse_query(shape, answered.wsgi_request.GET.dict(), cast.project) == query
        # The page of agreement may also show a single kind of judgements.
        assert query.non_default_params.items() <= dict(parse_qsl(answered.context["params"])).items()
