"""Counting attempts."""

from __future__ import annotations

import time

import pytest
from django.test import RequestFactory, override_settings

from evalapp.accounts import limits
from evalapp.accounts.models import AttemptCount
from evalapp.common.errors import TooMany

LIMIT = limits.Limit("test", 3, 60)


@pytest.fixture(autouse=True)
def clock(monkeypatch, db):
    now = [6000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def test_limit_holds_until_the_window_ends(clock):
    for _ in range(3):
        limits.spend(LIMIT, "a")
    with pytest.raises(TooMany) as error:
        limits.spend(LIMIT, "a")
    assert error.value.extra == {"wait": 60}
    limits.spend(LIMIT, "b")
    clock[0] += 60
    limits.spend(LIMIT, "a")


def test_keys_are_digests_and_old_windows_are_deleted(clock):
    limits.count(LIMIT, "olga@example.org")
    assert "olga" not in str(list(AttemptCount.objects.values()))
    clock[0] += 180
    limits.count(LIMIT, "Olga@example.org")
    assert AttemptCount.objects.count() == 1


def test_last_address_counts_behind_a_proxy():
    request = RequestFactory().get("/", HTTP_X_FORWARDED_FOR="6.6.6.6, 10.0.0.9", REMOTE_ADDR="127.0.0.1")
    assert limits.client_ip(request) == "127.0.0.1", "without the proxy the header is anybody's word"
    with override_settings(SECURE_SSL_REDIRECT=True):
        assert limits.client_ip(request) == "10.0.0.9"


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:DB8:1:2::ffff", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_network_of_addresses_counts_as_one(address, counted):
    assert limits.client_ip(RequestFactory().get("/", REMOTE_ADDR=address)) == counted
