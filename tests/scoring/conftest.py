"""A project with two systems, ratings by two people, and the scores of two evaluators."""

from __future__ import annotations

import pytest

from evalapp.common.runner import execute_run
from scoring.services.scores import apply_evaluator
from tests.factories import make_items, make_outputs, make_ratings
from tests.remembered import make_once
from tests.scoring.training import fill, put_toy_into_catalogue


@pytest.fixture
def score(db):
    def apply(project, name, **rest):
        run = execute_run(apply_evaluator(project=project, evaluator=name, send=False, **rest).pk)
        assert run.state == "succeeded", run.error
        return run

    return apply


@pytest.fixture
def scored(cast, score):
    """The cast, whose project has 8 items, 3 systems, 48 ratings and scores of length, random and token-f1."""

    def make() -> None:
        outputs = make_outputs(cast.project, make_items(cast.project, 8), ("sys-a", "sys-b", "sys-c"))
        for index, output in enumerate(outputs):
            output.text += " more" * (index % 4)
            output.save()
        make_ratings(cast.project, outputs)
        for name in ("length", "random", "token-f1"):
            score(cast.project, name)

    make_once("scored", make)
    return cast


@pytest.fixture
def toy(cast, monkeypatch):
    """The cast's project with 12 items and ratings, and an evaluator in the catalogue that learns instantly."""
    from scoring.ml import registry

    put_toy_into_catalogue(monkeypatch)
    fill(cast.project)
    yield cast
    registry.catalogue.cache_clear()
