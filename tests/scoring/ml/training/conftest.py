"""Registers the toy evaluator in the catalogue while these tests run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scoring.ml import registry
from tests.scoring.ml.training.toy import ENTRY


@pytest.fixture(scope="module", autouse=True)
def toy_in_catalogue() -> Iterator[None]:
    # For the whole module: fixtures of that scope also train it.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "LEARNED", (*registry.LEARNED, ENTRY))
        registry.catalogue.cache_clear()
        yield
    registry.catalogue.cache_clear()
