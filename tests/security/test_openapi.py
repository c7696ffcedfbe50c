"""The OpenAPI document fuzzed by schemathesis, signed in and not: whatever is sent, the answer is one that the document
describes, and never a server error. More examples: FUZZ=200 (what `make fuzz` does)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from schemathesis import checks
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks as openapi

from evalapp.accounts import limits
from evalapp.accounts.services import create_token
from tests.architecture.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.promise("api-fuzz")]
EXAMPLES = int(os.environ.get("FUZZ", "2"))
FUZZING = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
CHECKS = (
    checks.not_a_server_error,
    openapi.status_code_conformance,
    openapi.content_type_conformance,
    openapi.response_headers_conformance,
    openapi.response_schema_conformance,
)


@pytest.fixture(scope="module")
def world(django_db_setup: Any, django_db_blocker: Any) -> Iterator[World]:
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_world()
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def schema(world: World) -> Any:
    """With what is there as examples of the parts of addresses, so that calls arrive somewhere."""
    from drf_spectacular.generators import SchemaGenerator

    raw = SchemaGenerator().get_schema(request=None, public=True)
    values = world.own.values
    known = {"slug": world.own.project.slug, "evaluator": values["trained"]}
    for path, operations in raw["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and parameter["name"] in known:
                    parameter["schema"] = {"type": "string", "enum": [known[parameter["name"]], "x"]}
                if parameter["in"] == "path" and parameter["name"] == "pk":
                    parameter["schema"] = {"type": "integer", "enum": _numbers(path, values)}
    found = schemathesis.openapi.from_dict(raw)
    found.app = get_wsgi_application()
    return found


def _numbers(path: str, values: dict[str, Any]) -> list[int]:
    there = {
        "campaigns/": "campaign", "writing/": "writing campaign", "runs/": "run", "uploads/": "upload",
        "exports/": "export", "members/": "member", "invitations/": "invitation", "tokens/": "token", "items/": "item",
        "systems/": "system", "flags/": "flag",
    }  # fmt: skip
    return [next((values[name] for part, name in there.items() if part in path), 1), 999_999]


@pytest.mark.parametrize("who", ["owner", "nobody"])
def test_every_call_answers_as_the_document_says(world, schema, who, monkeypatch):
    for name in ("TOKEN_FAILURES", "LINK_FAILURES"):
        monkeypatch.setattr(limits, name, limits.Limit(name, 10**6, 300))
    _, secret = create_token(user=world.cast.owner, name="fuzz", scopes=["manage", "annotate"])
    headers = {"Authorization": f"Bearer {secret}"} if who == "owner" else {}
    wrong: list[str] = []
    asked = 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            try:
                with transaction.atomic():
                    answer = case.call(headers=headers)
                    transaction.set_rollback(True)
                case.validate_response(answer, checks=CHECKS)
            except FailureGroup as group:
                wrong.extend(f"{case.method} {case.formatted_path}: {error}"[:600] for error in group.exceptions)

        ask()
        if who == "nobody" and EXAMPLES < 10 and asked > 150:
            break
    assert asked > 100
    assert not wrong, f"{len(wrong)} of {asked}\n" + "\n\n".join(wrong[:25])
