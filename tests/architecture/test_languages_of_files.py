"""Files are the same in every language, and every text that pages look up is in the catalogues."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import translation
from django.utils.translation import trans_real

from tests.browser.world import make_world
from tests.cast import Cast

LINK = re.compile(r'href="(/[^"]*\.(?:csv|json|jsonl|tex|txt)(?:\?[^"]*)?)"')
#: Names that are the same in every language, and texts that people entered.
NOT_IN_THE_CATALOGUE = re.compile(r"[A-Za-z-]+|Glicko-2|ICC\(A,1\)|maude, trained elsewhere.*", re.DOTALL)


def visit_pages(cast: Cast) -> Iterator[tuple[Client, str]]:
    """Yield each page of the world of the browser tests with a client that may open it."""
    for places in make_world(cast).pages.values():
        for user, path in places:
            client = Client()
            if user:
                client.force_login(user)
            yield client, path


@pytest.mark.django_db
def test_files_are_the_same_in_every_language(cast: Cast) -> None:
    files: dict[str, Client] = {}
    for client, path in visit_pages(cast):
        html = client.get(path).content.decode(errors="replace")
        files |= {link.replace("&amp;", "&"): client for link in LINK.findall(html)}
    different = []
    for link, client in files.items():
        answers = [client.get(link, headers={"Accept-Language": code}) for code in ("en", "de", "ar")]
        bodies = [b"".join(answer) if answer.streaming else answer.content for answer in answers]
        if len(set(bodies)) > 1:
            different.append(link)
    assert len({link.partition("?")[0] for link in files}) > 20
    assert different == []


@pytest.mark.django_db
def test_every_text_of_a_page_is_in_the_catalogue(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also texts that the code keeps in constants and translates where they are shown."""
    pages = list(visit_pages(cast))
    looked_up: set[str] = set()

    def look_up(message: str) -> str:
        looked_up.add(str(message))
        return str(trans_real.gettext(message))

    monkeypatch.setattr(translation._trans, "gettext", look_up, raising=False)
    for client, path in pages:
        client.get(path, headers={"Accept-Language": "de"})
    rows = trans_real.translation("de")._catalog
    known = {""}
    for key, value in rows.items():
        known |= {key[0] if isinstance(key, tuple) else key, str(value)}  # a text can be looked up twice
    assert len(looked_up) > 1000
    assert {text for text in looked_up - known if not NOT_IN_THE_CATALOGUE.fullmatch(text)} == set()
