"""Rows are created once, and again only if the tables have changed otherwise."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from tests.remembered import make_once

pytestmark = pytest.mark.django_db


def test_rows_are_made_again_only_after_another_change():
    made = []

    def make() -> int:
        made.append(1)
        return Group.objects.create(name="made").pk

    def make_in_transaction() -> int:
        with transaction.atomic():
            found = make_once("rows of this test", make)
            assert Group.objects.get(name="made").pk == found
            transaction.set_rollback(True)
        return found

    first = make_in_transaction()
    assert make_in_transaction() == first
    assert len(made) == 1
    Group.objects.create(name="other")
    other = make_in_transaction()
    assert make_in_transaction() == other != first
    assert len(made) == 2
