"""`/docs/errors`: every code that a problem document can carry has a section there."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from django.urls import reverse
from lxml import html
from rest_framework import exceptions

import annotation
import evalapp
import retrieval
import scoring
from evalapp.common.errors import EvalappError
from evalapp.common.problem_types import PROBLEM_TYPES
from evalapp.common.problems import DOCUMENTATION

ROOT = Path(__file__).resolve().parents[3]
ROOMS = (evalapp, annotation, retrieval, scoring)
BY_CODE = {one.code: one for one in PROBLEM_TYPES}


def everything_under(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from everything_under(one)


def own_errors() -> set[type[EvalappError]]:
    """Every error class, after importing every module that defines one."""
    for room in ROOMS:
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            source = ROOT / (module.name.replace(".", "/") + ".py")
            if source.exists() and "code, title = " in source.read_text(encoding="utf-8"):
                importlib.import_module(module.name)
    tree = tuple(room.__name__ for room in ROOMS)
    return {one for one in everything_under(EvalappError) if one.__module__.split(".")[0] in tree}


def literal_codes() -> dict[str, str]:
    """Code -> place of every call of `problem` or of the error pages with a literal code."""
    found = {}
    for room in ROOMS:
        for path in Path(next(iter(room.__path__))).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ("problem", "_answer"):
                    continue
                first = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
                found |= dict.fromkeys(first[:1], f"{path}:{node.lineno}")
    return found


def test_every_error_class_has_a_section():
    found = own_errors()
    assert len(found) > 15
    assert not {one.code: one.__qualname__ for one in found if one.code not in BY_CODE}
    wrong = {one.__qualname__: one.status for one in found if BY_CODE[one.code].status != one.status}
    assert not wrong


def test_every_framework_refusal_has_a_section():
    """`ValidationError` becomes bad-input: its codes belong to fields."""
    kinds = [exceptions.APIException, *everything_under(exceptions.APIException)]
    codes = {
        kind.default_code.replace("_", "-")
        for kind in kinds
        if kind.__module__ == exceptions.__name__ and kind is not exceptions.ValidationError
    }
    assert {"not-authenticated", "parse-error"} <= codes
    assert codes <= set(BY_CODE)


def test_every_literal_code_has_a_section():
    found = literal_codes()
    assert {"server-error", "bad-request", "not-authenticated"} <= set(found)
    assert not {code: place for code, place in found.items() if code not in BY_CODE}


def test_each_code_has_one_section_with_meaning_and_remedy():
    assert len(BY_CODE) == len(PROBLEM_TYPES)
    for one in PROBLEM_TYPES:
        assert one.title, one.code
        assert one.meaning.endswith("."), one.code
        assert one.way_out.endswith("."), one.code
        assert HTTPStatus(one.status) >= 400


@pytest.mark.django_db
def test_problem_type_leads_to_its_section_without_sign_in(client):
    refused = client.get("/api/v1/projects/")
    address, _, code = refused.json()["type"].partition("#")
    assert (address, code) == (DOCUMENTATION, "not-authenticated")
    assert address == reverse("docs-errors")
    page = client.get(address)
    assert page.status_code == 200
    tree = html.fromstring(page.content)
    assert [one.get("id") for one in tree.xpath("//main//section")] == list(BY_CODE)
    [section] = tree.xpath(f"//section[@id='{code}']")
    assert "Authorization: Bearer TOKEN" in section.text_content()
    assert not tree.xpath("//main//script|//main//style|//main//*[@style]")
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
