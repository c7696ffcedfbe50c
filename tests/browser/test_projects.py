"""The short name of a new project follows its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.cast import Cast

pytestmark = pytest.mark.browser


def test_the_short_name_follows_the_name_until_it_is_typed(cast: Cast, page_for: Callable[..., Any]) -> None:
    page = page_for(cast.researcher)
    page.goto("/projects/new/")
    page.locator("#id_name").press_sequentially("Gespräche: Bäcker 2 ")
    expect(page.locator("#id_slug")).to_have_value("gesprache-backer-2")
    page.locator("#id_name").fill("Straße, Øre, Łódź, Œuvre")
    expect(page.locator("#id_slug")).to_have_value("strasse-ore-lodz-oeuvre")
    page.locator("#id_slug").fill("own")
    page.locator("#id_name").press_sequentially("x")
    expect(page.locator("#id_slug")).to_have_value("own")
