"""Every address x every role x own and foreign objects, against the table in `routes`. An address without a line
fails, and so does a line without an address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from evalapp.accounts.roles import ROLES_FOR
from tests.architecture.routes import API, PAGES, Rule
from tests.architecture.world import Side, World, make_world

pytestmark = pytest.mark.django_db

ROLES = ("owner", "researcher", "annotator", "viewer", "stranger", "anonymous")
MEMBERS = ROLES[:4]
RULES = {**PAGES, **API}
METHODS = ("get", "post", "put", "patch", "delete")
#: Answers that say: you may, but not like this.
NOT_LIKE_THIS = {400, 409, 413, 415, 422}


def addresses() -> dict[str, tuple[URLPattern, set[str]]]:
    """Every named address, its pattern and the names of its parts."""
    found: dict[str, tuple[URLPattern, set[str]]] = {}

    def walk(resolver: URLResolver, namespace: str, parts: set[str]) -> None:
        for entry in resolver.url_patterns:
            names = parts | set(entry.pattern.converters)
            if isinstance(entry, URLResolver):
                walk(entry, f"{entry.namespace}:" if entry.namespace else namespace, names)
            else:
                found[f"{namespace}{entry.name}"] = (entry, names)

    walk(get_resolver(), "", set())
    return found


def test_every_address_has_its_line_and_every_line_an_address():
    assert sorted(RULES) == sorted(addresses())


def test_every_method_of_the_api_has_its_line():
    missing = []
    for name in API:
        view = addresses()[name][0].callback
        offered = {method for method in METHODS if hasattr(view.cls, method)}
        missing += [f"{name}: {method}" for method in offered - {rule.method for rule in API[name]}]
    assert not missing


# ---- the walk ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(django_db_setup: Any, django_db_blocker: Any) -> Iterator[World]:
    """Made once; what a request changes is rolled back after it."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_world()
        transaction.set_rollback(True)


def ask(world: World, rule: Rule, name: str, side: Side, role: str, mixed: Side | None = None) -> HttpResponse:
    """One request. With `mixed`, the project is that one and everything else comes from `side`."""
    names = addresses()[name][1]
    kwargs = {}
    for part in names:
        of = mixed if mixed is not None and part == "slug" else side
        kwargs[part] = world.part(of, part, rule.parts.get(part))
    client = Client(raise_request_exception=True)
    user = world.user(role)
    if user is not None:
        client.force_login(user)
    options: dict[str, Any] = {}
    if rule.method != "get":
        options = {"data": {key: world.part(side, key, value) for key, value in rule.body.items()}}
        if name in API:
            options["content_type"] = "application/json"
    with transaction.atomic():
        answer = getattr(client, rule.method)(reverse(name, kwargs=kwargs) + rule.query, **options)
        transaction.set_rollback(True)
    return answer


def outcome(name: str, answer: HttpResponse) -> str:
    """`in`, `sign in`, `no` (403), `nothing` (404) or the bare status."""
    status = answer.status_code
    if status == 302 and answer.headers["Location"].startswith("/account/sign-in/"):
        return "sign in"
    if status < 400 or status in NOT_LIKE_THIS:
        return "in"
    if name in API and status in (401, 403) and not answer.wsgi_request.user.is_authenticated:
        return "sign in"
    return {403: "no", 404: "nothing"}.get(status, str(status))


def expected(rule: Rule, role: str) -> set[str]:
    if rule.need == "open":
        return {"in"}
    if role == "anonymous":
        return {"sign in"}
    if rule.need == "signed-in":
        return {"in"}
    if rule.need == "researcher-somewhere":
        return {"in"} if role in ("owner", "researcher", "stranger") else {"no"}
    if rule.need == "mine":
        return {"in"} if role == "annotator" else {"no", "nothing"}
    if role == "stranger":
        return {"nothing"}
    return {"in"} if role in ROLES_FOR[rule.need] else {"no", "nothing"}


CASES = [
    pytest.param(name, rule, id=f"{rule.method}-{name}") for name, rules in sorted(RULES.items()) for rule in rules
]


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_own_objects(world, name, rule):
    wrong = {}
    for role in ROLES:
        got = outcome(name, ask(world, rule, name, world.own, role))
        if got not in expected(rule, role):
            wrong[role] = f"{got} instead of {' or '.join(sorted(expected(rule, role)))}"
    assert not wrong


def _names_objects(name: str, rule: Rule, world: World) -> bool:
    """Whether the address leads to something of one project."""
    names = addresses()[name][1]
    return "slug" in names or any(value in world.own.values for value in rule.parts.values())


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_foreign_objects(world, name, rule):
    """What is Sam's is nothing to anybody of Olga's project, by its own address and under Olga's project."""
    if rule.need == "open" or not _names_objects(name, rule, world):
        assert rule.need in ("open", "signed-in", "researcher-somewhere")
        return
    wrong = {}
    for role in MEMBERS:
        got = outcome(name, ask(world, rule, name, world.foreign, role))
        if got != "nothing":
            wrong[role] = got
    keys = {key for key, value in rule.parts.items() if value in world.own.values and value != "evaluator"}
    if "slug" in addresses()[name][1] and keys:
        got = outcome(name, ask(world, rule, name, world.foreign, "owner", mixed=world.own))
        if got != "nothing":
            wrong["owner, foreign object under her own project"] = got
    assert not wrong
