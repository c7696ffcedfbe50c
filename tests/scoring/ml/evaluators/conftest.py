"""All tests of evaluators train with two penalties of the head."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _few_penalties(few_penalties: None) -> None:
    """The tests in `tests/scoring/ml/training` try all of them."""
