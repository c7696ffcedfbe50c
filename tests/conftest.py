"""Fixtures for all tests: the cast, and the servers (in `tests.services.plugin`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest_plugins = ["tests.services.plugin"]


@pytest.fixture
def cast(db):
    from tests.cast import make_cast

    return make_cast()
