"""Fixtures for all tests: the cast, and the servers (in `tests.services.plugin`)."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evalapp import side_figures

pytest_plugins = ["tests.services.plugin"]

# How long an example takes is no property of the code: on a busy machine the checks of time failed now and then.
settings.register_profile("untimed", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


# An error in a side figure is an error here; a test that injects one takes the fixture `lenient_figures`.
side_figures.is_strict = True


@pytest.fixture
def lenient_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the running program: side figures that fail are left out and named."""
    monkeypatch.setattr(side_figures, "is_strict", False)


# Seven thousand modules are loaded while tests are collected, and nothing of them is ever garbage.
gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _loaded_once() -> None:
    """What is loaded when a file's tests begin is left out of garbage collection: every training collects, which
    takes half a second of a process that holds Django and torch."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _mails_have_left() -> Iterator[None]:
    """They are sent by a thread: none may come when the next test looks into its box."""
    yield
    mails = sys.modules.get("evalapp.accounts.mails")
    if mails is not None and mails._line.cache_info().currsize:
        mails.wait_until_sent(60)


@pytest.fixture
def cast(db):
    from tests.cast import make_cast

    return make_cast()


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals from twenty resamples in place of a thousand: for tests of values, and of the way to a table."""
    from evalapp.stats.tables import draws_of

    def draws(settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"resamples": 20, **draws_of(settings)}

    for name in ("tables", "meta_tables", "evaluator_tables", "folder_tables"):
        monkeypatch.setattr(f"evalapp.stats.{name}.draws_of", draws)
