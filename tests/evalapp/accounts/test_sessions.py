from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from evalapp.accounts.sessions import SessionStore


@pytest.mark.django_db
def test_stored_session_is_read():
    first = SessionStore()
    first["colour"] = "blue"
    first.create()
    second = SessionStore(first.session_key)
    assert second["colour"] == "blue"
    second["colour"] = "red"
    second.save()
    assert SessionStore(first.session_key)["colour"] == "red"


@pytest.mark.django_db
def test_expired_session_is_empty_and_gets_a_new_key():
    first = SessionStore()
    first["colour"] = "blue"
    first.create()
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    second = SessionStore(first.session_key)
    assert second.get("colour") is None
    assert second.session_key is None


@pytest.mark.django_db
def test_unknown_key_is_not_adopted():
    store = SessionStore("k" * 32)
    assert store.get("colour") is None
    store["colour"] = "blue"
    store.save()
    assert store.session_key != "k" * 32
