"""Every address, role and object (own and foreign) against the table in `routes`. An address without a line fails, and
so does a line without an address."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from evalapp.accounts import limits
from evalapp.accounts.models import ApiToken
from evalapp.accounts.roles import ROLES_FOR
from evalapp.accounts.services import create_token
from evalapp.settings.oidc_providers import OidcProvider
from tests.architecture.routes import API, PAGES, Rule
from tests.architecture.world import Side, World, make_world
from tests.evalapp.accounts.oidc_server import CLIENT, SECRET, oidc_server

pytestmark = [pytest.mark.django_db, pytest.mark.promise("walk")]

ROLES = ("owner", "researcher", "annotator", "viewer", "participant", "stranger", "anonymous")
MEMBERS = ROLES[:5]
RULES = {**PAGES, **API}
METHODS = ("get", "post", "put", "patch", "delete")
#: Statuses that mean: permitted, but invalid.
NOT_LIKE_THIS = {400, 409, 413, 415, 422}


@cache
def addresses() -> dict[str, tuple[URLPattern, set[str]]]:
    """Every named address with its pattern and the names of its parts."""
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


def test_addresses_and_lines_match():
    assert sorted(RULES) == sorted(addresses())


def test_every_api_method_has_a_line():
    missing = []
    for name in API:
        view = addresses()[name][0].callback
        offered = {method for method in METHODS if hasattr(view.cls, method)}
        missing += [f"{name}: {method}" for method in offered - {rule.method for rule in API[name]}]
    assert not missing


# ---- the walk ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(django_db_setup: Any, django_db_blocker: Any, few_draws_in_module: None) -> Iterator[World]:
    """Created once; the effects of a request are rolled back."""
    with django_db_blocker.unblock(), transaction.atomic(), oidc_server() as server:
        provider = OidcProvider("uni", "Uni", server.issuer, CLIENT, SECRET)
        made = make_world()
        for role in set(ROLES) - {"anonymous"}:
            client = Client()
            client.force_login(made.user(role))
            made.sessions[role] = client.cookies["sessionid"].value
        ask_for_tables(made)
        with override_settings(OIDC_PROVIDERS={"uni": provider}):
            yield made
        transaction.set_rollback(True)


def ask_for_tables(world: World) -> None:
    """The owner opens every table once so that it is cached. Requests are rolled back and would compute it each
    time."""
    client = Client()
    client.cookies["sessionid"] = world.sessions["owner"]
    for name, rules in RULES.items():
        if name.startswith(("scoring:", "api-leaderboard", "api-agreement", "api-snapshot-comparison")):
            for rule in rules:
                if rule.method == "get":
                    client.get(place(world, rule, name, world.own) + rule.query)


def place(world: World, rule: Rule, name: str, side: Side, mixed: Side | None = None) -> str:
    """The address with its parts from `side`; with `mixed`, the project comes from the other side."""
    kwargs = {}
    for part in addresses()[name][1]:
        of = mixed if mixed is not None and part == "slug" else side
        kwargs[part] = world.part(of, part, rule.parts.get(part))
    return reverse(name, kwargs=kwargs)


def ask(
    world: World,
    rule: Rule,
    name: str,
    side: Side,
    role: str,
    mixed: Side | None = None,
    token: str = "",
) -> HttpResponse:
    """One request, signed in or with a token."""
    client = Client(raise_request_exception=True, headers={"Authorization": f"Bearer {token}"} if token else None)
    if role in world.sessions:
        client.cookies["sessionid"] = world.sessions[role]
    options: dict[str, Any] = {}
    if rule.method != "get":
        options = {"data": {key: world.part(side, key, value) for key, value in rule.body.items()}}
        if name in API:
            options["content_type"] = "application/json"
    with transaction.atomic():
        answer = getattr(client, rule.method)(place(world, rule, name, side, mixed) + rule.query, **options)
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
    if rule.need == "hired":
        return {"in"} if role == "participant" else {"nothing"}
    if rule.need == "researcher-somewhere":
        return {"in"} if role in ("owner", "researcher", "stranger") else {"no"}
    if rule.need == "mine":
        return {"in"} if role == "annotator" else {"no", "nothing"}
    if role == "stranger":
        return {"nothing"}
    if role == "participant":  # tests/annotation/test_participants.py opens their own campaign
        return {"in"} if rule.need == "member" else {"no", "nothing"}
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
    """Whether the address refers to an object in a project."""
    names = addresses()[name][1]
    return "slug" in names or any(value in world.own.values for value in rule.parts.values())


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_foreign_objects(world, name, rule):
    """Sam's objects are invisible to everyone in Olga's project, at their own address and under Olga's project."""
    if rule.need == "open" or not _names_objects(name, rule, world):
        assert rule.need in ("open", "signed-in", "researcher-somewhere", "hired")
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


# ---- methods and tokens -----------------------------------------------------------------------------------


def test_no_address_takes_an_unlisted_method(world):
    """Methods outside the table are refused, even to the owner."""
    wrong = []
    for name, rules in RULES.items():
        taken = {rule.method for rule in rules}
        for method in [method for method in (*METHODS, "trace") if method not in taken]:
            rule = Rule(rules[0].need, method, rules[0].parts)
            status = ask(world, rule, name, world.own, "owner").status_code
            wrong += [f"{method} {name}: {status}"] if status != 405 else []
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def tokens(world: World) -> dict[str, str]:
    """The owner's tokens: a read-only one, an expired one, and one of another project."""
    made = {
        "read": create_token(user=world.cast.owner, name="read", scopes=["read"]),
        "expired": create_token(user=world.cast.owner, name="old", scopes=["manage"]),
        "foreign": create_token(user=world.cast.owner, name="f", scopes=["manage"], project=world.foreign.project),
    }
    ApiToken.objects.filter(pk=made["expired"][0].pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    return {name: secret for name, (_, secret) in made.items()}


#: Calls open to every account that a token may use only with the scope “manage”.
MANAGING = {"api-token-list"}


def _by_token(name: str, rule: Rule, kind: str) -> set[str]:
    if rule.need == "open":
        return {"in", "sign in"}
    if kind == "expired":
        return {"sign in"}
    if kind == "foreign":
        return {"in", "no", "nothing"} if rule.need == "signed-in" else {"no", "nothing"}
    if rule.need in ("read", "member"):
        return {"in"}
    if rule.need == "signed-in":
        return {"no", "nothing"} if name in MANAGING else {"in"}
    return {"no", "nothing"}


@pytest.mark.parametrize("kind", ["read", "expired", "foreign"])
def test_tokens_restrict_every_call(world, tokens, kind, monkeypatch):
    """The owner's own calls with a read-only token, an expired token and a token of another project."""
    monkeypatch.setattr(limits, "TOKEN_FAILURES", limits.Limit("token", 10_000, 300))
    wrong = []
    for name, rules in API.items():
        for rule in rules:
            answer = ask(world, rule, name, world.own, "anonymous", token=tokens[kind])
            got = "sign in" if answer.status_code == 401 else outcome(name, answer)
            if got not in _by_token(name, rule, kind):
                wrong.append(f"{rule.method} {name}: {got} {answer.content[:80]!r}")
    assert wrong == []


def test_token_opens_no_page(world, tokens):
    """Tokens are for the API; pages ignore them."""
    wrong = []
    for name, rules in PAGES.items():
        for rule in rules:
            if rule.need != "open":
                got = outcome(name, ask(world, rule, name, world.own, "anonymous", token=tokens["read"]))
                wrong += [f"{rule.method} {name}: {got}"] if got != "sign in" else []
    assert wrong == []
