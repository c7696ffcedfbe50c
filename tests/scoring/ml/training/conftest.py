"""The toy evaluator stands in the catalogue while these tests run."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from scoring.ml import registry
from tests.scoring.ml.training.toy import ENTRY


@pytest.fixture(autouse=True)
def toy_in_catalogue(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_MODULES", (*registry._MODULES, SimpleNamespace(ENTRIES=(ENTRY,))))
    registry.catalogue.cache_clear()
    yield
    registry.catalogue.cache_clear()
