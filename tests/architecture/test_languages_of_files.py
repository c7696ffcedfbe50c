"""Files are the same in every language, and all pages show only texts that can be translated."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.browser.world import make_world
from tests.cast import Cast

LINK = re.compile(r'href="(/[^"]*\.(?:csv|json|jsonl|tex|txt)(?:\?[^"]*)?)"')


@pytest.mark.django_db
def test_files_are_the_same_in_every_language(cast: Cast) -> None:
    world = make_world(cast)
    files: dict[str, Client] = {}
    for places in world.pages.values():
        for user, path in places:
            client = Client()
            if user:
                client.force_login(user)
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
