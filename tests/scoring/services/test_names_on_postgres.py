"""Names of evaluators requested at the same moment, on PostgreSQL: no two runs reserve the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection

from evalapp.common import queue
from evalapp.common.errors import Conflict
from evalapp.common.models import Run
from scoring.ml import registry
from scoring.ml.artefact import REQUIRED
from scoring.models import Evaluator, ScoreSet
from scoring.selectors import training as trainings
from scoring.services import artefacts
from scoring.services.artefacts import receive_artefact
from scoring.services.combining import CombineOptions, start_combination
from scoring.services.training import TrainingOptions, start_training
from tests.cast import Cast, make_cast
from tests.scoring.training import fill, put_toy_into_catalogue


@pytest.fixture
def people(postgres_db: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    put_toy_into_catalogue(monkeypatch)
    cast = make_cast()
    fill(cast.project)
    yield cast
    registry.catalogue.cache_clear()


def both(monkeypatch: pytest.MonkeyPatch, first: Any, second: Any) -> tuple[Run, Future[Run]]:
    """The second request comes after the first has looked up the taken names, but before it has reserved its own."""
    looked, others = trainings.names_in_making, list[Future[Run]]()

    def work() -> Run:
        try:
            return second()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:

        def meanwhile(project: Any) -> dict[str, Run]:
            found = looked(project)
            monkeypatch.setattr(trainings, "names_in_making", looked)
            others.append(pool.submit(work))
            wait(others, timeout=0.5)
            return found

        monkeypatch.setattr(trainings, "names_in_making", meanwhile)
        run = first()
        wait(others, timeout=20)
    return run, others[0]


def test_two_concurrent_trainings_have_two_names(people: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(seed: int) -> Run:
        return start_training(
            project=people.project, options=TrainingOptions("toy", seed=seed), send=False, any_encoder=True
        )

    first, second = both(monkeypatch, lambda: ask(1), lambda: ask(2))
    assert [first.params["slug"], second.result().params["slug"]] == ["toy-1", "toy-2"]


def test_same_training_twice_at_once_is_one_run(people: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> Run:
        return start_training(project=people.project, options=TrainingOptions("toy"), send=False, any_encoder=True)

    first, second = both(monkeypatch, ask, ask)
    assert second.result().pk == first.pk


def test_name_being_reserved_is_refused_at_once(people: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(seed: int) -> Run:
        options = TrainingOptions("toy", seed=seed, name="mine")
        return start_training(project=people.project, options=options, send=False, any_encoder=True)

    first, second = both(monkeypatch, lambda: ask(1), lambda: ask(2))
    with pytest.raises(Conflict, match=f"Run {first.pk} is creating an evaluator named “mine”"):
        second.result()


def test_combinations_also_have_distinct_names(people: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("length", "random"):
        evaluator = Evaluator.objects.create(project=people.project, slug=name, name=name, kind="sentinel")
        ScoreSet.objects.create(
            project=people.project, evaluator=evaluator, signature=name, scored_at=people.project.created_at
        )

    def ask(method: str) -> Run:
        options = CombineOptions(("length", "random"), method=method)
        return start_combination(project=people.project, options=options, send=False)

    first, second = both(monkeypatch, lambda: ask("mean-z"), lambda: ask("stacked"))
    assert [first.params["slug"], second.result().params["slug"]] == ["combined-1", "combined-2"]


def test_uploads_also_have_distinct_names(
    people: Cast, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    """The name is chosen once the files are there: another upload may have taken it meanwhile."""
    settings.ARTEFACTS_DIR = tmp_path

    def ask() -> Run:
        files = {"files": [SimpleUploadedFile(name, b"{}") for name in REQUIRED]}
        return receive_artefact(project=people.project, user=None, name="", files=files)

    monkeypatch.setattr(queue, "send_run", lambda run: False)
    assert ask().params["slug"] == "uploaded-1"
    others: list[Run] = []
    write = artefacts._write

    def meanwhile(*given: Any) -> int:
        monkeypatch.setattr(artefacts, "_write", write)
        others.append(ask())
        return write(*given)

    monkeypatch.setattr(artefacts, "_write", meanwhile)
    assert [ask().params["slug"], others[0].params["slug"]] == ["uploaded-3", "uploaded-2"]
