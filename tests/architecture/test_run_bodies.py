"""Every kind of run that the API can start has a typed body in the OpenAPI document, made from the dataclass that
parses the request: it accepts exactly the bodies that the schema allows."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import schemathesis
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from evalapp.common.api.run_bodies import body_name, list_public_jobs
from evalapp.common.errors import BadInput
from evalapp.common.jobs import Job, get_job
from evalapp.common.params import read_params

RUNS = "/api/v1/projects/{slug}/runs/"
#: The kinds of run that `POST projects/{slug}/runs/` starts.
KINDS = {
    "annotate", "annotate-preview", "combine", "export", "games", "import", "index", "judge", "judge-check", "plan",
    "preview-references", "reliability", "robustness", "score", "select-references", "selection", "study", "study-plan",
    "train",
}  # fmt: skip


@cache
def document() -> dict[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call, no-any-return]


def bodies(job: Job, mode: GenerationMode) -> Any:
    """Bodies of this kind, drawn from its schema or violating it."""
    operation = {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{body_name(job)}"}}},
        },
        "responses": {"202": {"description": "Queued."}},
    }
    raw = {**document(), "paths": {"/runs/": {"post": operation}}}
    return schemathesis.openapi.from_dict(raw)["/runs/"]["POST"].as_strategy(generation_mode=mode)


def as_read(job: Job, body: Any) -> Any:
    params = dict(body)
    assert params.pop("kind") == job.kind
    return read_params(job.load_params(), params)


def test_every_kind_has_a_body():
    schemas = document()["components"]["schemas"]
    mapping = schemas["RunRequest"]["discriminator"]["mapping"]
    assert set(mapping) == {job.kind for job in list_public_jobs()} == KINDS
    content = document()["paths"][RUNS]["post"]["requestBody"]["content"]
    assert {name: body["schema"] for name, body in content.items()} == {
        "application/json": {"$ref": "#/components/schemas/RunRequest"}
    }
    for kind, reference in mapping.items():
        schema = schemas[reference.rsplit("/", 1)[1]]
        assert schema["properties"]["kind"] == {"type": "string", "enum": [kind]}
        unsaid = [name for name, one in schema["properties"].items() if name != "kind" and not one["description"]]
        assert not unsaid, (kind, unsaid)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_bodies_allowed_by_the_schema_are_parsed(kind):
    job, seen = get_job(kind), []

    @settings(max_examples=40, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(bodies(job, GenerationMode.POSITIVE))
    def run(case: Any) -> None:
        seen.append(as_read(job, case.body))

    run()
    assert len(seen) >= 5


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_bodies_forbidden_by_the_schema_are_refused(kind):
    job, seen = get_job(kind), []

    @settings(max_examples=40, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(bodies(job, GenerationMode.NEGATIVE))
    def run(case: Any) -> None:
        body = case.body
        if not isinstance(body, dict) or body.get("kind") != kind:
            return  # refused before the dataclass sees it
        seen.append(body)
        with pytest.raises(BadInput):
            as_read(job, body)

    run()
    assert seen
