"""Sign-in with an institution in a real browser, which applies the content security policy and the rules of cookies to
every redirect between the two sites."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from evalapp.accounts.services import create_invitation
from tests.browser.conftest import Site, new_database, run_site
from tests.evalapp.accounts.oidc_server import CLIENT, SECRET, OidcServer, oidc_server

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcServer]:
    with oidc_server() as server:
        server.host = "localhost"  # another site than 127.0.0.1
        server.claims |= {"email": "nova@example.org", "preferred_username": "nova", "name": "Nova Née"}
        yield server


@pytest.fixture(scope="module")
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, provider: OidcServer
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    row = {"label": "Uni Köln", "issuer": provider.issuer, "client_id": CLIENT, "secret_env": "UNI_SECRET"}
    with new_database(request, folder) as database:
        yield from run_site(
            folder, database, OIDC_PROVIDERS=json.dumps({"uni": row}), UNI_SECRET=SECRET, PASSWORD_SIGN_IN="0"
        )


@pytest.mark.parametrize("width", [390, 1100])
def test_a_newcomer_joins_signs_out_and_comes_back(page_for, cast, axe, width):
    _row, secret = create_invitation(project=cast.project, role="annotator", actor=cast.owner)
    page = page_for(width=width)
    page.goto(f"/invitations/{secret}/")
    expect(page.get_by_role("link", name="Sign in with Uni Köln")).to_be_visible()
    expect(page.locator("input[type=password]")).to_have_count(0)
    assert axe(page) == []
    page.get_by_role("link", name="Sign in with Uni Köln").click()
    page.get_by_role("button", name="Join as Nova Née (nova)").click()
    page.wait_for_url("**/")
    assert cast.project.memberships.get(user__username="nova").role == "annotator"
    page.goto("/account/")
    expect(page.locator("[data-identity]")).to_contain_text("nova@example.org")
    assert axe(page) == []
    page.locator("summary", has_text="Nova Née").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign out at Uni Köln")).to_be_visible()
    assert axe(page) == []
    page.get_by_role("link", name="Sign out at Uni Köln").click()
    page.wait_for_url("**/")
    page.goto("/account/sign-in/?next=/account/tokens/")
    assert axe(page) == []
    page.get_by_role("link", name="Sign in with Uni Köln").click()
    page.wait_for_url("**/account/tokens/")


def test_a_user_connects_a_second_sign_in(page_for, cast, axe):
    page = page_for(cast.annotator)
    page.goto("/account/")
    page.get_by_role("link", name="Connect Uni Köln").click()
    expect(page.locator("main")).to_contain_text("nova@example.org")
    assert axe(page) == []
    page.get_by_role("button", name="Connect").click()
    expect(page.locator("[data-identity]")).to_contain_text("nova@example.org")
