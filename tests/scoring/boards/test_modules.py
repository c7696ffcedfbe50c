"""A reader who follows a request meets few modules: those of `scoring` that run code while the page of a stored
leaderboard is answered. Computing a table adds the board's `compute` and the data; addresses, middleware and other apps
are not counted."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

pytestmark = pytest.mark.django_db
#: Modules of `scoring` that may run code while a page is answered.
MOST = 12


def trace_modules(call: Any) -> set[str]:
    """Return the modules of `scoring` whose functions run during a call."""
    modules: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if (
            event == "call"
            and name.startswith("scoring.")
            and name != "scoring.urls"
            and frame.f_code.co_name != "<module>"
        ):
            modules.add(name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return modules


@pytest.mark.parametrize(
    "page", ["systems", "evaluation", "evaluation/aspects", "evaluation/matrix", "references/enhanced", "agreement"]
)
def test_page_of_a_board_passes_through_few_modules(scored, client, page):
    client.force_login(scored.viewer)
    address = f"/projects/alpha/{page}/"
    client.get(address)  # computes and stores the table
    modules = trace_modules(lambda: client.get(address))
    assert len(modules) > 4
    assert len(modules) <= MOST, " ".join(sorted(modules))
