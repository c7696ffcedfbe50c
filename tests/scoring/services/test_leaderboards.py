"""Tables are recomputed after scoring, so that their pages find them ready."""

from __future__ import annotations

import pytest

from annotation.models import Output
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.registry import get_board
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Leaderboard, ScoreSet
from scoring.selectors.leaderboards import compute_stamp
from scoring.services import leaderboards
from scoring.services.combining import CombineOptions, start_combination
from scoring.services.leaderboards import get_leaderboard, renew_leaderboards
from tests.factories import make_ratings

pytestmark = pytest.mark.django_db


@pytest.fixture
def large(scored, monkeypatch):
    """A project whose table of evaluators is large and was computed; its table of systems is small."""
    for query in (EvaluatorsQuery(), SystemsQuery()):
        get_leaderboard(project=scored.project, query=query)
    monkeypatch.setattr(leaderboards, "MAX_CORRELATED_IN_REQUEST", 100)
    return scored


def queued() -> list[dict]:
    return list(Run.objects.filter(kind="rank", state="queued").order_by("pk").values_list("params__query", flat=True))


def test_new_scores_renew_large_tables_that_were_viewed(large, score):
    score(large.project, "chrf")
    assert queued() == [EvaluatorsQuery().params]
    assert execute_run(Run.objects.get(kind="rank").pk).state == "succeeded"
    answer = leaderboards.answer_leaderboard(project=large.project, query=EvaluatorsQuery())
    assert answer.is_current
    assert "chrf" in {row["evaluator"] for row in answer.table["rows"]}
    assert renew_leaderboards(project=large.project) == []


def test_last_of_several_scorings_renews_them(large, score):
    waiting = Run.objects.create(project=large.project, kind="train", title="Train", queue="gpu", params={})
    score(large.project, "chrf")
    assert queued() == []
    Run.objects.filter(pk=waiting.pk).update(state="cancelled")
    assert len(renew_leaderboards(project=large.project)) == 1


def test_combination_also_renews_them(large):
    options = CombineOptions(("length", "random"), name="both")
    run = execute_run(start_combination(project=large.project, options=options, send=False).pk)
    assert run.state == "succeeded", run.error
    assert queued() == [EvaluatorsQuery().params]


def test_tables_of_older_versions_are_left_alone(large, score):
    Leaderboard.objects.filter(kind="evaluators").update(key="an older one")
    score(large.project, "chrf")
    assert queued() == []
    Leaderboard.objects.filter(kind="evaluators").update(params={"aspect": "", "gone": "x"})
    assert renew_leaderboards(project=large.project) == []


def test_human_system_table_stays_current_after_scoring(large, score):
    for query in (SystemsQuery(), SystemsQuery(by="length"), AgreementQuery()):
        get_leaderboard(project=large.project, query=query)
    score(large.project, "chrf")
    current = {
        (row.kind, row.params.get("by", "")): row.stamp
        == compute_stamp(large.project, get_board(row.kind).query(**row.params))
        for row in Leaderboard.objects.filter(project=large.project)
    }
    assert current == {
        ("evaluators", ""): False, ("systems", ""): True, ("systems", "length"): False, ("agreement", ""): True,
    }  # fmt: skip
    make_ratings(large.project, list(Output.objects.all()), aspect="tone")
    assert compute_stamp(large.project, SystemsQuery()) != Leaderboard.objects.get(kind="systems", params__by="").stamp


def test_missing_reference_set_is_reported(scored):
    for query in (EvaluatorsQuery(references="betre"), SystemsQuery(by="length", references="betre")):
        with pytest.raises(NotThere, match=r"“betre” .*alpha"):
            get_leaderboard(project=scored.project, query=query)


def test_scores_of_another_aspect_are_not_used(scored):
    ScoreSet.objects.filter(evaluator__slug="length").update(aspect="tone")
    found = {
        aspect: get_leaderboard(project=scored.project, query=SystemsQuery(by="length", aspect=aspect)).table["aspect"]
        for aspect in ("", "tone")
    }
    assert found == {"": "tone", "tone": "tone"}
    with pytest.raises(BadInput, match=r"“wit” .*“original”"):
        get_leaderboard(project=scored.project, query=SystemsQuery(by="length", aspect="wit"))
    # An evaluator with one score for all aspects has it for each.
    assert get_leaderboard(project=scored.project, query=SystemsQuery(by="token-f1", aspect="wit")).table["rows"]
