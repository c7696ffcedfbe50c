"""Responses do not differ in cost: neither time nor size reveals whether a name, an address or a project exists, or
which text is a control. Clocks are noisy, so the expensive operations are counted: database statements, hashed
passwords, response bytes, mails waited for."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.mail import EmailMessage
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.models import Output, Unit
from evalapp.accounts.mails import wait_until_sent
from evalapp.accounts.models import User
from tests.cast import PASSWORD, Cast, person
from tests.judging import open_rating

pytestmark = pytest.mark.django_db
#: Two: one may be drawn for the first place, which does not count; the other comes later.
CONTROLS = [{"item": f"i00{k}", "system": "sys-alpha", "expected": {"naturalness": [6, 6]}} for k in range(2)]
ONE = [{"name": "naturalness", "question": "How natural is it?", "low": 1, "high": 6}]
#: The allowed differences between two responses: tokens, and the annotator's seconds for a text.
_OWN = re.compile(
    rb'(csrf\w*"? (value|content)="[^"]+"|nonce="[^"]+"|"X-CSRFToken": "[^"]+"|data-csrf="[^"]+"'
    rb'|title="Your pace so far">[^<]*)'
)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records each password that was hashed."""
    found: list[str] = []
    encode = MD5PasswordHasher.encode

    def counting(self: Any, password: str, salt: str) -> str:
        found.append(password)
        return str(encode(self, password, salt))

    monkeypatch.setattr(MD5PasswordHasher, "encode", counting)
    return found


def length(answer: Any, public: str) -> int:
    """In bytes, without random values, and with every number as one digit."""
    drawn = re.sub(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"", _OWN.sub(b"", answer.content))
    return len(re.sub(rb"\d+", b"0", drawn.replace(public.encode(), b"")))


def cost(act: Any) -> tuple[Any, int]:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        return act(), len(queries)


@pytest.mark.promise("attempts")
def test_signing_in_costs_the_same_for_known_and_unknown_names(cast: Cast, hashed: list[str]) -> None:
    gone = person("gone")
    Client().post("/account/sign-in/", {"username": "first", "password": "of this address"})
    User.objects.filter(pk=gone.pk).update(is_active=False)
    seen = set()
    for name, password in (("rita", "wrong-password"), ("nobody", "wrong-password"), ("gone", PASSWORD)):
        hashed.clear()
        form = {"username": name, "password": password}
        answer, statements = cost(lambda form=form: Client().post("/account/sign-in/", form))
        page = _OWN.sub(b"", answer.content).replace(name.encode(), b"NAME")
        seen.add((answer.status_code, page, statements, len(hashed), tuple(sorted(answer.headers))))
    assert len(seen) == 1, [(status, statements, count) for status, _, statements, count, _ in seen]
    assert len(hashed) == 1  # each does the slow part


@pytest.mark.promise("attempts")
def test_password_reset_waits_for_no_mail(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a mail server that answers only after the page."""
    may, sent = threading.Event(), []

    def slow(self: EmailMessage) -> None:
        assert may.wait(30)
        sent.extend(self.to)

    monkeypatch.setattr(EmailMessage, "send", slow)
    Client().post("/account/reset/", {"email": "first@example.org"})
    seen = set()
    for mail in ("rita@example.org", "nobody@example.org"):
        answer, statements = cost(lambda mail=mail: Client().post("/account/reset/", {"email": mail}))
        seen.add((answer.status_code, answer.headers["Location"], answer.content, statements))
    assert sent == []
    may.set()
    wait_until_sent(60)
    assert sent == ["rita@example.org"]
    assert len(seen) == 1, seen


@pytest.mark.promise("walk")
def test_foreign_project_is_as_absent_as_a_missing_one(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.annotator)
    for pattern in ("/projects/{}/", "/api/v1/projects/{}/", "/api/v1/projects/{}/items/", "/projects/{}/members/"):
        seen = set()
        for slug in (cast.foreign.slug, "not-there-123"):
            assert len(cast.foreign.slug) == len("not-there-123")
            answer, statements = cost(lambda path=pattern.format(slug): client.get(path))
            page = _OWN.sub(b"", answer.content).replace(slug.encode(), b"SLUG")
            seen.add((answer.status_code, page, statements, tuple(sorted(answer.headers))))
        assert {status for status, *_ in seen} == {404}, pattern
        assert len(seen) == 1, (pattern, seen)


@pytest.mark.promise("blind")
def test_control_item_costs_the_same_as_others(cast: Cast) -> None:
    """Each step of judging, from the second text on: the same statements, the same number of bytes."""
    campaign = open_rating(cast, items=6, aspects=ONE, controls=CONTROLS, options={"control_rate": 0.4}, overlap=1)
    Output.objects.update(text="Text of equal length.")
    client = Client()
    client.force_login(cast.annotator)
    found: dict[str, set[Any]] = defaultdict(set)
    for turn in range(9):
        following, first = cost(lambda: client.post(f"/api/v1/campaigns/{campaign.pk}/next/"))
        if following.status_code == 204:
            break
        public = following.json()["id"]
        page, second = cost(lambda: client.get(f"/my/{campaign.pk}/"))
        # The page shows the mean time, which must not depend on the speed of this machine.
        body = {"submission": str(uuid4()), "answer": {"naturalness": 3}, "seconds": 8.0}
        done, third = cost(
            lambda public=public, body=body: client.post(
                f"/api/v1/assignments/{public}/submit/", body, content_type="application/json"
            )
        )
        assert done.status_code == 200
        if turn:  # nothing is cached for the first text, which also has no way back
            kind = Unit.objects.get(assignments__public=public).kind
            sizes = tuple(length(answer, public) for answer in (following, page, done))
            found[kind].add((first, second, third, sizes))
    assert set(found) == {"normal", "control"}
    assert found["control"] <= found["normal"], found
