"""Fixtures for all tests: the cast, and the servers (in `tests.services.plugin`)."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evalapp import side_figures

pytest_plugins = ["tests.services.plugin", "tests.scoring.judge_server"]

# Example time depends on the machine, not on the code: on a busy machine these checks fail now and then.
settings.register_profile("untimed", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


# An error in a side figure is an error here; a test that injects one uses the fixture `lenient_figures`.
side_figures.is_strict = True


@pytest.fixture
def lenient_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out failed side figures and names them, as in production."""
    monkeypatch.setattr(side_figures, "is_strict", False)


# Collecting tests loads seven thousand modules, which never become garbage.
gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _loaded_once() -> None:
    """Excludes everything loaded before a file's tests from garbage collection: each training collects, which takes
    half a second in a process with Django and torch."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _mails_have_left() -> Iterator[None]:
    """A thread sends mails: none may arrive while the next test checks its outbox."""
    yield
    mails = sys.modules.get("evalapp.accounts.mails")
    if mails is not None and mails._executor.cache_info().currsize:
        mails.wait_until_sent(60)


@pytest.fixture
def cast(db):
    from tests.cast import make_cast
    from tests.remembered import make_once

    return make_once("cast", make_cast)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals from twenty resamples instead of a thousand, for tests of values and of the way to a table."""
    _use_few_draws(monkeypatch)


@pytest.fixture(scope="module")
def few_draws_in_module() -> Iterator[None]:
    """`few_draws` for all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        _use_few_draws(patch)
        yield


@pytest.fixture(scope="module")
def few_penalties() -> Iterator[None]:
    """Two penalties of a head instead of nine, for tests of everything after it: choosing takes two thirds of a tiny
    training."""
    from scoring.ml.training import head

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(head, "PENALTIES", (1.0, 0.1))
        yield


def _use_few_draws(patch: pytest.MonkeyPatch) -> None:
    from scoring.boards.systems.rankings import read_draws

    def draws(settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"resamples": 20, **read_draws(settings)}

    names = ("systems.rankings", "metrics.people", "slices.compute", "matrix.compute")
    # All are imported before the first is changed, since they import the function from each other.
    for module in [import_module(f"scoring.boards.{name}") for name in names]:
        patch.setattr(module, "read_draws", draws)
