"""Whether what a run made is still there."""

from __future__ import annotations

import pytest

from annotation.models import ReferenceSet
from evalapp.common.models import Run
from scoring.models import Evaluator
from scoring.selectors.run_results import evaluator_gone, references_gone, was_made

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(cast):
    def make(kind, **result):
        return Run.objects.create(
            project=cast.project, kind=kind, title=kind, input_hash=kind, state="succeeded", result=result
        )

    return make


def test_an_evaluator_that_was_deleted(cast, run):
    training = run("train", evaluator="ream-1")
    row = Evaluator.objects.create(project=cast.project, slug="ream-1", name="ream", kind="trained", run=training)
    assert evaluator_gone(training) == ""
    again = run("games", evaluator="ream-1")
    assert evaluator_gone(again) == ""
    row.delete()
    assert "ream-1 was deleted" in evaluator_gone(training)
    assert "ream-1 was deleted" in evaluator_gone(again)
    assert was_made(cast.project, "ream-1")
    assert not was_made(cast.project, "ream-2")
    assert not was_made(cast.foreign, "ream-1")


def test_another_evaluator_of_the_same_name_is_not_what_a_training_made(cast, run):
    training = run("train", evaluator="ream-1")
    Evaluator.objects.create(
        project=cast.project, slug="ream-1", name="ream", kind="trained", run=run("artefact", evaluator="ream-1")
    )
    assert "was deleted" in evaluator_gone(training)
    Evaluator.objects.update(run=None)  # of an import or a restored backup nobody knows which run it was
    assert evaluator_gone(training) == ""


def test_references_that_were_deleted(cast, run):
    made = run("annotate", references="auto")
    assert references_gone(made) == "The reference set auto was deleted since."
    ReferenceSet.objects.create(project=cast.project, name="auto")
    assert references_gone(made) == ""
    assert (references_gone(run("annotate-preview")), evaluator_gone(run("plan"))) == ("", "")
