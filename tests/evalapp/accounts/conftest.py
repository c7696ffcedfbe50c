"""Fixtures for the tests of accounts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from evalapp.accounts import limits


@pytest.fixture
def one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts are counted by windows of the clock, and one window may end between two attempts of a test: here none
    does."""
    monkeypatch.setattr(limits, "time", SimpleNamespace(time=lambda: 6000.0))
