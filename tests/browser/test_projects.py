"""The short name of a new project follows its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cast import Cast

pytestmark = pytest.mark.browser


def test_the_short_name_follows_the_name_until_it_is_typed(cast: Cast, page_for: Callable[..., Any]) -> None:
    page = page_for(cast.researcher)
    page.goto("/projects/new/")
    page.locator("#id_name").press_sequentially("Gespräche: Bäcker 2 ")
    assert page.locator("#id_slug").input_value() == "gesprache-backer-2"
    page.locator("#id_name").fill("Straße, Øre, Łódź, Œuvre")
    assert page.locator("#id_slug").input_value() == "strasse-ore-lodz-oeuvre"
    page.locator("#id_slug").fill("own")
    page.locator("#id_name").press_sequentially("x")
    assert page.locator("#id_slug").input_value() == "own"
