"""Fixtures for the tests of accounts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from evalapp.accounts import limits


@pytest.fixture
def one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps all attempts of a test in one window of clock time."""
    monkeypatch.setattr(limits, "time", SimpleNamespace(time=lambda: 6000.0))
