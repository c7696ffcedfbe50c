"""Colours, size of text and contrast, with and without an account."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from evalapp.accounts.models import User
from tests.cast import Cast
from tests.pages import read_page

pytestmark = pytest.mark.django_db
CHOSEN = {"theme": "dark", "text": "large", "contrast": "more"}
SHOWN = 'data-theme="dark" data-text="large" data-contrast="more"'
USUAL = 'data-theme="system" data-text="normal" data-contrast="system"'


def read_look(client: Client, path: str = "/") -> str:
    """The attributes of the page's root element."""
    return (
        read_page(client.get(path, follow=True)).partition('<html lang="en-gb" dir="ltr" ')[2].partition(">")[0].strip()
    )


def test_choice_of_a_person_applies_in_all_their_browsers(cast: Cast, client: Client) -> None:
    User.objects.filter(pk=cast.viewer.pk).update(preferences={"keys": {"skip": "s"}})
    client.force_login(cast.viewer)
    assert read_look(client) == USUAL
    answer = client.post("/account/display/", {**CHOSEN, "next": "/account/?x=1"})
    assert answer.headers["Location"] == "/account/?x=1"
    other = Client()
    other.force_login(cast.viewer)
    assert read_look(other) == SHOWN
    assert User.objects.get(pk=cast.viewer.pk).preferences == {
        "keys": {"skip": "s"}, "text": "large", "contrast": "more", "language": "browser",
    }  # fmt: skip
    other.force_login(cast.annotator)
    assert read_look(other) == USUAL


def test_choice_without_account_stays_in_the_browser(client: Client, cast: Cast) -> None:
    client.post("/account/display/", CHOSEN)
    assert read_look(client) == SHOWN
    assert client.cookies["display"]["httponly"]
    assert read_look(Client()) == USUAL
    client.force_login(cast.viewer)  # the account comes first
    assert read_look(client) == USUAL


@pytest.mark.parametrize("next_page", ["https://example.org/", "//example.org/", "javascript:alert(1)", "", "account/"])
def test_only_pages_of_this_site_follow(client: Client, next_page: str, db: Any) -> None:
    answer = client.post("/account/display/", {**CHOSEN, "next": next_page})
    assert answer.headers["Location"] == "/account/display/"


@pytest.mark.parametrize("cookie", ["", "dark", "x.y.z", "dark.large.more.x", '"><script>', "...."])
def test_damaged_cookie_falls_back_to_the_defaults(client: Client, db: Any, cookie: str) -> None:
    client.cookies["display"] = cookie
    look = read_look(client, "/account/sign-in/")
    if not cookie.startswith("dark"):
        assert look == USUAL
    assert "script" not in look


def test_unknown_choices_become_the_default(client: Client, db: Any) -> None:
    client.post("/account/display/", {"theme": "pink", "text": "large"})
    assert read_look(client) == 'data-theme="system" data-text="large" data-contrast="system"'
