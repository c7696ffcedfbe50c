"""Behind a proxy with wrong settings, the message names the wrong setting."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
FORM = {"username": "rita", "password": "x"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evalapp.example.org"},
        {"Origin": "https://evalapp.example.org", "X-Forwarded-Proto": "https"},  # SECURE_PROXY is not set
        {"Origin": "https://testserver"},  # the scheme was lost on the way
        {"Origin": "null"},
    ],
)
def test_form_from_an_untrusted_origin_names_the_setting(headers):
    answer = Client(enforce_csrf_checks=True).post("/account/sign-in/", FORM, headers=headers)
    text = answer.content.decode()
    assert answer.status_code == 403
    assert "CSRF_TRUSTED_ORIGINS" in text
    assert headers["Origin"] in text
    assert "http://testserver" in text
    assert "reload" not in text


def test_referer_is_also_compared_under_tls(settings):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    headers = {"Referer": "https://evalapp.example.org/", "X-Forwarded-Proto": "https"}
    answer = Client(enforce_csrf_checks=True).post("/account/sign-in/", FORM, headers=headers)
    assert answer.status_code == 403
    assert "CSRF_TRUSTED_ORIGINS" in answer.content.decode()


def test_trusted_origin_without_a_token_names_the_usual_cause(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://evalapp.example.org"]
    headers = {"Origin": "https://evalapp.example.org"}
    answer = Client(enforce_csrf_checks=True).post("/account/sign-in/", FORM, headers=headers)
    assert answer.status_code == 403
    assert "reload" in answer.content.decode()
    assert "CSRF_TRUSTED_ORIGINS" not in answer.content.decode()


def test_api_with_a_session_names_the_setting(cast):
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.owner)
    answer = client.post(
        "/api/v1/projects/", {"slug": "beta"}, content_type="application/json",
        headers={"Origin": "https://evalapp.example.org"},
    )  # fmt: skip
    assert answer.status_code == 403
    assert "CSRF_TRUSTED_ORIGINS" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/", "/account/sign-in/", "/api/v1/projects/"])
def test_unknown_host_names_the_setting(path, settings):
    settings.ALLOWED_HOSTS = ["evalapp.example.org"]
    answer = Client().get(path, headers={"Host": "other.example.org"})
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.content.decode()
    assert "other.example.org" in answer.content.decode()
    bad = Client().get(path, headers={"Host": "<script>alert(1)</script>"})
    assert bad.status_code == 400
    assert bad.headers["Content-Type"] == "application/problem+json" or "<script>alert" not in bad.content.decode()
