"""A database for the pages that are followed."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """pytest-django makes a database only for tests with its mark. It has sorted the tests before, so that those with
    transactions of their own run before `weekend` opens one."""
    for item in items:
        if "weekend" in getattr(item, "fixturenames", ()):
            item.add_marker("django_db")
