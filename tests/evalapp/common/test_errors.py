"""Input that no supported database can store is refused with a message, by pages and by the API."""

from __future__ import annotations

import base64
import re

import pytest
from django.shortcuts import render
from django.test import RequestFactory

from evalapp.common.errors import BadInput, Fault, NotThere
from evalapp.common.middleware import ErrorPages
from evalapp.common.pages import came_from
from tests.cast import make_cast
from tests.pages import read_page


@pytest.mark.server("postgres")
def test_nul_character_is_a_bad_request(postgres_db, client):
    cast = make_cast()
    client.force_login(cast.researcher)
    assert client.get("/projects/alpha/references/x%00/").status_code == 400
    assert client.get("/api/v1/projects/alpha/scores/?system=%00").status_code == 400
    wishes = {"kind": "score", "evaluator": "\0"}
    refused = client.post("/api/v1/projects/alpha/runs/", wishes, content_type="application/json")
    assert (refused.status_code, refused.json()["type"]) == (400, "/docs/errors#bad-input")
    assert "NUL" in refused.json()["detail"]


@pytest.mark.django_db
def test_half_a_character_in_a_cursor_is_a_bad_request(client):
    client.force_login(make_cast().researcher)
    cursor = base64.urlsafe_b64encode(b'[0,"\\ud800"]').decode()
    refused = client.get("/api/v1/projects/", {"cursor": cursor})
    assert (refused.status_code, refused.json()["type"]) == (400, "/docs/errors#bad-input")


def test_error_page_states_an_error_once():
    faults = [
        Fault("The name is taken.", field="name"), Fault("It has no text.", file="a.csv", line=3), Fault("Too long."),
    ]  # fmt: skip
    said = render(None, "errors/_domain.html", {"error": BadInput("The name is taken. a.csv:3: It has no text.")})
    assert "errorlist" not in read_page(said)
    error = BadInput("The name is taken. See below: It has no text.", faults=faults)
    said = read_page(render(None, "errors/_domain.html", {"error": error}))
    assert said.count("The name is taken.") == 1
    assert "<li>a.csv:3: It has no text.</li><li>Too long.</li>" in said


@pytest.mark.parametrize(
    ("method", "referer", "back"),
    [
        ("post", "http://testserver/projects/a/?x=1", "/projects/a/?x=1"),
        ("post", "http://testserver/here/", "/here/"),
        ("get", "http://testserver/here/", ""),
        ("get", "http://testserver/there/#part", "/there/"),
        ("get", "http://elsewhere/there/", ""),
        ("get", "javascript:alert(1)", ""),
        ("get", "http://testserver//elsewhere/", "/elsewhere/"),
        ("get", "", ""),
    ],
)
def test_error_page_leads_back(method, referer, back):
    request = getattr(RequestFactory(), method)("/here/", headers={"Referer": referer})
    assert came_from(request) == back
    request.htmx = type("Part", (), {"boosted": False, "history_restore_request": False})()
    answer = ErrorPages(lambda _: None).process_exception(request, BadInput("No."))  # type: ignore[arg-type]
    assert answer is not None
    assert (f'<a class="button" href="{back}">Back</a>' in read_page(answer)) == bool(back)


@pytest.mark.parametrize(
    ("address", "method", "error", "plain"),
    [
        ("/board/?evaluators=nobody", "get", BadInput("No."), "/board/"),
        ("//elsewhere/?x=1", "get", BadInput("No."), "/elsewhere/"),
        ("/board/", "get", BadInput("No."), ""),
        ("/board/?x=1", "post", BadInput("No."), ""),
        ("/board/?x=1", "get", NotThere("No."), ""),
    ],
)
def test_missing_page_offers_a_way_out(address, method, error, plain):
    request = getattr(RequestFactory(), method)(address)
    request.path = address.partition("?")[0]
    answer = ErrorPages(lambda _: None).process_exception(request, error)  # type: ignore[arg-type]
    assert answer is not None
    shown = read_page(answer)
    assert re.findall(r'href="([^"]*)" data-plain>', shown) == ([plain] if plain else [])
