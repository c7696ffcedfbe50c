"""The examples of the OpenAPI document: every call has one, each is valid under the schema, and each request is sent
and accepted. `make docs` (WRITE_EXAMPLES=1) writes changed ones to evalapp/common/api/examples.json."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator

from evalapp.common.api.examples import EXAMPLES, read_examples
from evalapp.common.api.run_bodies import list_public_jobs
from evalapp.common.params import read_params
from scoring.services import online
from tests.architecture.api_calls import BY_HAND, CALLS, ENDPOINTS, LIVE, RUNS, Call
from tests.architecture.routes import API, UUID, Rule
from tests.architecture.test_permissions import ROLES, ask_for_tables, place
from tests.architecture.world import World, make_world

pytestmark = [pytest.mark.django_db]
WRITE = bool(os.environ.get("WRITE_EXAMPLES"))


@cache
def document() -> dict[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call, no-any-return]


@cache
def operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Operation -> the name of its address, its method, its entry in the document."""
    found = {}
    for path, methods in document()["paths"].items():
        address = path.replace("{id}", "1").replace("{public}", UUID)
        name = resolve(re.sub(r"{\w+}", "x", address)).url_name
        for method, operation in methods.items():
            found[operation["operationId"]] = (name, method, operation)
    return found


@pytest.fixture(scope="module")
def world(django_db_setup: Any, django_db_blocker: Any, few_draws_in_module: None) -> Iterator[World]:
    with django_db_blocker.unblock(), transaction.atomic():
        made = make_world()
        for role in set(ROLES) - {"anonymous"}:
            client = Client()
            client.force_login(made.user(role))
            made.sessions[role] = client.cookies["sessionid"].value
        ask_for_tables(made)
        yield made
        transaction.set_rollback(True)


# ---- calls ------------------------------------------------------------------------------------------------


def filled(world: World, value: Any) -> Any:
    """Replaces names in braces by values of the world."""
    if isinstance(value, dict):
        return {key: filled(world, one) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(world, one) for one in value]
    if isinstance(value, str):
        return re.sub(r"^(.*){([a-z ]+)}$", lambda part: part[1] + str(world.own.values[part[2]]), value)
    return value


def send(world: World, operation: str) -> tuple[HttpResponse, Any]:
    """The answer to the call, whose effects are rolled back, and the body that was sent."""
    name, method, _ = operations()[operation]
    call = CALLS.get(operation, Call())
    rule = next(rule for rule in API[name] if rule.method == method)
    client = Client()
    client.cookies["sessionid"] = world.sessions["annotator" if rule.need in ("mine", "annotate") else "owner"]
    values = dict(world.own.values)
    with transaction.atomic():
        call.before(world)
        address = place(world, Rule(rule.need, method, {**rule.parts, **call.parts}), name, world.own)
        body = filled(world, call.body or {key: world.part(world.own, key, value) for key, value in rule.body.items()})
        options = {} if method == "get" else {"data": body, "content_type": call.content}
        answer = getattr(client, method)(address + filled(world, call.query or rule.query), **options)
        transaction.set_rollback(True)
    world.own.values.clear()
    world.own.values.update(values)
    return answer, body


@pytest.fixture
def live(monkeypatch: Any) -> None:
    """Simulates the worker of the `live` queue."""
    monkeypatch.setattr(online, "ask_live", lambda request, asker: LIVE[request.get("kind", "score")])


def list_bodies(operation: str) -> dict[str, Any]:
    return dict(operations()[operation][2].get("requestBody", {}).get("content", {}))


def list_answers(operation: str) -> dict[str, Any]:
    """Status -> schema of the successful JSON answers."""
    responses = operations()[operation][2]["responses"]
    return {
        status: response["content"]["application/json"]["schema"]
        for status, response in responses.items()
        if status[0] == "2" and "application/json" in response.get("content", {})
    }


@cache
def components() -> dict[str, Any]:
    return dict(_with_null(document()["components"]))


def _with_null(schema: Any) -> Any:
    """OpenAPI 3.0 as JSON schema: `nullable` adds a type."""
    if isinstance(schema, list):
        return [_with_null(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _with_null(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain


def faults_in(value: Any, schema: dict[str, Any]) -> list[str]:
    validator = jsonschema_rs.Draft202012Validator({**_with_null(schema), "components": components()})
    return [f"{'/'.join(map(str, one.instance_path))}: {one.message[:200]}" for one in validator.iter_errors(value)]


def cut(value: Any) -> Any:
    """Shortened for reading: the first two entries of a list. Secrets and the host of the test are replaced."""
    if isinstance(value, dict):
        return {key: "SECRET" if key == "token" else cut(one) for key, one in value.items()}
    if isinstance(value, list):
        return [cut(one) for one in value[:2]]
    if isinstance(value, str):
        text = value.replace("http://testserver", "https://evalapp.example.org")
        return re.sub(r"/(invitations|reports|participate)/[\w-]{20,}/", r"/\1/SECRET/", text)
    return value


def is_same_shape(stored: dict[str, Any], one: dict[str, Any]) -> bool:
    """Whether the answer still has the members of the stored one; numbers and times differ in each test."""

    def shape(example: dict[str, Any]) -> Any:
        answer = example.get("response")
        rows = answer.get("results") if isinstance(answer, dict) else None
        first = rows[0] if isinstance(rows, list) and rows else None
        return [sorted(part) if isinstance(part, dict) else part is None for part in (answer, first)]

    return stored.keys() == one.keys() and stored["status"] == one["status"] and shape(stored) == shape(one)


CASES = [operation for operation in sorted(operations()) if operation not in BY_HAND]


@pytest.fixture(scope="module")
def written() -> Iterator[dict[str, Any]]:
    """The file that `WRITE_EXAMPLES=1` writes; examples written by hand stay."""
    made = dict(BY_HAND)
    yield made
    if WRITE:
        made["trained_create"]["response"] = made["runs_create"]["response"]
        lines = [f"{json.dumps(name)}: {json.dumps(made[name], ensure_ascii=False)}" for name in sorted(made)]
        EXAMPLES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@pytest.mark.parametrize("operation", CASES)
@pytest.mark.usefixtures("live")
def test_call_succeeds_and_matches_its_example(operation, world, written, settings):
    settings.WEBHOOK_HOSTS = frozenset({"hooks.example.org"})
    body = RUNS["score"] | {"kind": "score"} if operation == "runs_create" else None
    if body:
        CALLS.setdefault(operation, Call(body))
    answer, sent = send(world, operation)
    assert 200 <= answer.status_code < 300, answer.content[:500]
    status = str(answer.status_code)
    said = operations()[operation][2]["responses"]
    assert status in said
    one: dict[str, Any] = {"status": status}
    if list_bodies(operation):
        one["requests"] = {kind: {"kind": kind, **more} for kind, more in RUNS.items()} if body else {"request": sent}
        if operation in CALLS and CALLS[operation].content != "application/json":
            one["content"] = CALLS[operation].content
    if status in list_answers(operation):
        whole = answer.json()
        assert not faults_in(whole, list_answers(operation)[status])
        one["response"] = cut(whole)
    stored = read_examples().get(operation, {})
    names_objects = re.search(r"{[a-z ]+}", json.dumps(CALLS.get(operation, Call()).body))
    same = is_same_shape(stored, one) and (names_objects or stored.get("requests") == one.get("requests"))
    written[operation] = stored if same else one
    assert same or WRITE, "The example is out of date: run `make docs`"


# ---- content of the document ------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", sorted(operations()))
def test_every_call_has_an_example(operation):
    """A request example where there is a body, an answer example where success has one; each matches its schema."""
    _, _, said = operations()[operation]
    found = {media: body.get("examples", {}) for media, body in list_bodies(operation).items()}
    assert not found or any(found.values())
    for media, examples in found.items():
        for example in examples.values():
            if media == "application/json":
                assert not faults_in(example["value"], list_bodies(operation)[media]["schema"])
    answers = {
        status: said["responses"][status]["content"]["application/json"].get("examples")
        for status in list_answers(operation)
    }
    assert not answers or any(answers.values())
    for status, examples in answers.items():
        for example in (examples or {}).values():
            assert not faults_in(example["value"], list_answers(operation)[status])


def test_every_kind_of_run_has_a_parsed_example():
    """The next test checks whether the names in it exist."""
    examples = list_bodies("runs_create")["application/json"]["examples"]
    assert set(examples) == {job.kind for job in list_public_jobs()} == set(RUNS)
    for job in list_public_jobs():
        body = dict(examples[job.kind]["value"])
        assert body.pop("kind") == job.kind
        read_params(job.load_params(), body)


@pytest.mark.parametrize("kind", sorted(RUNS))
def test_each_run_example_is_accepted_or_refused_with_a_message(kind, world, settings):
    settings.JUDGE_ENDPOINTS = ENDPOINTS
    client = Client()
    client.cookies["sessionid"] = world.sessions["owner"]
    with transaction.atomic():
        body = {"kind": kind, **RUNS[kind]}
        answer = client.post("/api/v1/projects/alpha/runs/", body, content_type="application/json")
        transaction.set_rollback(True)
    assert answer.status_code in (202, 400, 404, 409), answer.content
    if answer.status_code != 202:
        assert "The request has faults." not in answer.json()["detail"]
    assert answer.status_code == 202 or kind not in ("export", "judge-check", "score")
