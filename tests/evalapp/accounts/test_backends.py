from __future__ import annotations

import pytest
from django.contrib.auth import authenticate

from evalapp.accounts.backends import PasswordBackend
from evalapp.accounts.models import User
from tests.cast import PASSWORD


@pytest.mark.django_db
def test_session_loads_the_whole_user(cast):
    User.objects.filter(pk=cast.annotator.pk).update(theme="dark", preferences={"keys": {"skip": "s"}})
    read = PasswordBackend().get_user(cast.annotator.pk)
    expected = User.objects.get(pk=cast.annotator.pk)
    for field in User._meta.concrete_fields:
        assert getattr(read, field.attname) == getattr(expected, field.attname), field.attname
    assert read is not None
    assert read.get_session_auth_hash() == expected.get_session_auth_hash()
    assert not read._state.adding


@pytest.mark.django_db
def test_one_statement(cast, django_assert_num_queries):
    with django_assert_num_queries(1):
        PasswordBackend().get_user(cast.annotator.pk)


@pytest.mark.django_db
def test_inactive_and_unknown_people_are_anonymous(cast):
    User.objects.filter(pk=cast.annotator.pk).update(is_active=False)
    assert PasswordBackend().get_user(cast.annotator.pk) is None
    assert PasswordBackend().get_user(0) is None


@pytest.mark.django_db
def test_new_password_ends_sessions(cast, client):
    client.force_login(cast.annotator)
    assert client.get("/api/v1/projects/").status_code == 200
    cast.annotator.set_password("another-long-password")
    cast.annotator.save()
    assert client.get("/api/v1/projects/").status_code in (401, 403)


@pytest.mark.django_db
def test_password_is_checked(cast, rf):
    request = rf.post("/")
    assert authenticate(request, username="anna", password=PASSWORD) == cast.annotator
    assert authenticate(request, username="anna", password="wrong") is None
