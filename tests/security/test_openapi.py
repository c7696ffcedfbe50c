"""Schemathesis tests the OpenAPI document with all its checks, signed in and not: bodies allowed by the document are
accepted, forbidden ones are refused, every response is described, nothing works without a token, deleted objects are
gone. The suite runs all edge cases of a sample of operations and a few draws of each operation; FUZZ=100 runs
everything (as `make fuzz` does)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import connections, transaction
from drf_spectacular.generators import SchemaGenerator
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.transport.wsgi import WSGITransport

from evalapp.accounts import limits
from evalapp.accounts.services import create_token
from tests.architecture.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.promise("api-fuzz")]
EXAMPLES = int(os.environ.get("FUZZ", "1"))
EVERY = 1 if EXAMPLES >= 10 else 10
#: Two only find cases in sequences of calls (`use_after_free`, `ensure_resource_availability`: the stateful phase), and
#: one only with several users (`object_level_authorization`): `tests/architecture/test_permissions.py` requests foreign
#: objects with every role.
ALL = {
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection", "positive_data_acceptance", "missing_required_header",
    "unsupported_method", "allow_header_conformance", "use_after_free", "ensure_resource_availability",
    "ignored_auth", "object_level_authorization",
}  # fmt: skip
OF_THE_NETWORK = {"max_redirects", "verify", "cert", "proxies", "allow_redirects", "stream"}
#: Well-formed requests that are nevertheless refused (400), because a schema cannot express the rule. Operation ->
#: reason.
BEYOND_THE_SCHEMA = {
    "POST /api/v1/projects/{slug}/campaigns/": "a plan names items and systems of the project; its parts must agree",
    "PATCH /api/v1/campaigns/{id}/": "a plan, see above; most of it is fixed once the campaign has been opened",
    "POST /api/v1/projects/{slug}/writing/": "the options there are depend on the kind",
    "PATCH /api/v1/writing/{id}/": "a plan is fixed once the campaign has been opened",
    "POST /api/v1/projects/{slug}/corpora/": "a name that is not taken, and text in it",
    "POST /api/v1/projects/{slug}/corpora/{name}/parts/": "the content of the text",
    "POST /api/v1/projects/{slug}/evaluators/trained/": "the names and content of the files",
    "POST /api/v1/projects/{slug}/uploads/": "the names and content of the files",
    "POST /api/v1/projects/{slug}/invitations/": "a landing is an address of this site",
    "POST /api/v1/projects/{slug}/webhooks/": "a host that the administrator allows",
    "PATCH /api/v1/webhooks/{id}/": "a host that the administrator allows",
    "POST /api/v1/projects/{slug}/rater-filters/": "its raters have judged here",
    "POST /api/v1/projects/{slug}/reference-sets/": "two different sets, and a name that is not taken",
    "POST /api/v1/projects/{slug}/runs/": "the members depend on the kind, and name what the project has",
    "POST /api/v1/projects/{slug}/scores/": "evaluators that are installed or trained here",
    "POST /api/v1/projects/{slug}/snapshots/": "the parameters of a table depend on its kind",
    "GET /api/v1/projects/{slug}/agreement/": "ranks have no categories; what has been judged",
    "GET /api/v1/projects/{slug}/power/": "a pilot of what has been judged",
    "DELETE /api/v1/projects/{slug}/": "the confirmation is the name of the project",
    "POST /api/v1/projects/": "a name has letters a to z, digits and hyphens",
    **{
        f"GET /api/v1/projects/{{slug}}/leaderboards/{name}/": "values that exclude each other; what has been judged"
        for name in ("systems", "evaluators", "matrix", "slices", "aspects", "pairs")
    },
}


@dataclass
class Findings:
    cases: int = 0
    ran: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def take(self, recorder: Any) -> None:
        self.cases += len(recorder.cases)
        for number, nodes in recorder.checks.items():
            case = recorder.cases[number].value
            for node in nodes:
                self.ran[node.name] += 1
                if node.failure_info is None and str(node.status) != "error":
                    continue
                if node.name == "positive_data_acceptance" and (
                    case.operation.label in BEYOND_THE_SCHEMA or "cursor" in (case.query or {})
                ):
                    continue  # a cursor is opaque: only one from a response is valid
                found = recorder.interactions.get(number)
                answer = found.response if found else None
                self.wrong.append(
                    f"{node.name}: {case.method} {case.formatted_path} {case.query} {str(case.body)[:300]}\n"
                    f"  {answer and answer.status_code} {answer and answer.content[:300]}\n"
                    f"  {node.failure_info and node.failure_info.failure}"
                )


@pytest.fixture(scope="module")
def world(django_db_setup: Any, django_db_blocker: Any, few_draws_in_module: None) -> Iterator[World]:
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_world()
        transaction.set_rollback(True)


@pytest.fixture
def explore(world: World, monkeypatch: Any) -> Callable[..., Findings]:
    for name in ("TOKEN_FAILURES", "LINK_FAILURES"):
        monkeypatch.setattr(limits, name, limits.Limit(name, 10**6, 300))
    plain = WSGITransport.send

    def send(self: WSGITransport, case: Any, **given: Any) -> Any:
        """Probes without credentials also pass the arguments of the network transport."""
        return plain(self, case, **{name: value for name, value in given.items() if name not in OF_THE_NETWORK})

    monkeypatch.setattr(WSGITransport, "send", send)

    def run(phase: str, headers: dict[str, str], every: int, examples: int = EXAMPLES) -> Findings:
        phases = {name: {"enabled": name == phase} for name in ("examples", "coverage", "fuzzing", "stateful")}
        config = SchemathesisConfig.from_dict(
            {
                "seed": 1,
                "cache": {"enabled": False},
                "headers": headers,
                "workers": 1,
                "continue-on-failure": True,
                "generation": {"max-examples": examples, "deterministic": True, "no-shrink": True},
                "phases": phases,
            }
        )
        schema = schemathesis.openapi.from_dict(document(world), config=config)
        return carry_out(schema.include(one_in(every)), phase)

    return run


def document(world: World) -> dict[str, Any]:
    """With existing objects as parts of addresses, so that calls reach a view."""
    raw: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    values = world.own.values
    known = {"slug": world.own.project.slug, "evaluator": values["trained"]}
    for path, operations in raw["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and parameter["name"] in known:
                    parameter["schema"] = {"type": "string", "enum": [known[parameter["name"]]]}
                if parameter["in"] == "path" and parameter["name"] == "id":
                    parameter["schema"] = {"type": "integer", "enum": [_number(path, values)]}
    return raw


def _number(path: str, values: dict[str, Any]) -> int:
    there = {
        "campaigns/": "campaign", "writing/": "writing campaign", "runs/": "run", "uploads/": "upload",
        "exports/": "export", "members/": "member", "invitations/": "invitation", "tokens/": "token", "items/": "item",
        "systems/": "system", "flags/": "flag", "written/": "written",
    }  # fmt: skip
    return next((int(values[name]) for part, name in there.items() if part in path), 1)


def one_in(every: int) -> Callable[..., bool]:
    """A reproducible sample of the operations."""
    return lambda context: crc32(context.operation.label.encode()) % every == 0


def carry_out(schema: Any, phase: str) -> Findings:
    """Runs everything in one transaction: each call is rolled back, or each sequence of calls in the stateful phase."""
    found, inner = Findings(), get_wsgi_application()
    here, points = connections["default"], []
    if phase == "stateful":
        _undo_by_sequence(schema, points)

    def app(environ: Any, start: Any) -> list[bytes]:
        connections["default"] = here  # the engine calls from another thread
        if not points:
            points.append(transaction.savepoint())
        try:
            return [b"".join(inner(environ, start))]
        finally:
            if phase != "stateful":
                transaction.savepoint_rollback(points.pop())

    schema.app = app
    here.inc_thread_sharing()
    try:
        for event in from_schema(schema).execute():
            assert not isinstance(event, events.NonFatalError | events.FatalError), event
            if isinstance(event, events.ScenarioFinished):
                found.take(event.recorder)
    finally:
        here.dec_thread_sharing()
    return found


def _undo_by_sequence(schema: Any, points: list[str]) -> None:
    build = schema.build_state_machine

    def building(**given: Any) -> Any:
        class Undone(build(**given)):  # type: ignore[misc]
            def teardown(self) -> None:
                super().teardown()
                if points:
                    transaction.savepoint_rollback(points.pop())

        return Undone

    schema.build_state_machine = building


def bearer(world: World) -> dict[str, str]:
    _, secret = create_token(user=world.cast.owner, name="fuzz", scopes=["manage", "annotate"])
    return {"Authorization": f"Bearer {secret}"}


def say(found: Findings) -> str:
    return f"{len(found.wrong)} of {found.cases}\n" + "\n\n".join(found.wrong[:25])


def test_no_check_is_left_out():
    load_all_checks()
    assert set(CHECKS.get_all_names()) == ALL


@pytest.mark.parametrize(("phase", "every"), [("coverage", EVERY), ("fuzzing", 1)])
def test_every_call_by_an_owner_matches_the_document(world, explore, phase, every):
    found = explore(phase, bearer(world), every)
    assert found.cases > 100
    assert not found.wrong, say(found)
    assert {name for name in ALL if found.ran[name]} == ALL


def test_sequences_of_calls_match_the_document(world, explore):
    found = explore("stateful", bearer(world), 1, max(EXAMPLES // 5, 2))
    assert found.cases > 10
    assert not found.wrong, say(found)


def test_anonymous_refusals_match_the_document(world, explore):
    found = explore("fuzzing", {}, 2 if EVERY > 1 else 1)
    assert found.cases > 50
    assert not found.wrong, say(found)
