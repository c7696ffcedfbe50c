"""The body of `POST projects/{slug}/runs/` in the OpenAPI document: a schema per kind of run, generated from the
dataclass that reads it."""

from typing import Any

from evalapp.common.jobs import Job, all_jobs
from evalapp.common.params import params_schema


def list_public_jobs() -> list[Job]:
    """Return the kinds of run that clients may start."""
    return [job for job in all_jobs() if job.request]


def body_name(job: Job) -> str:
    return "".join(part.capitalize() for part in job.kind.replace("_", "-").split("-")) + "RunRequest"


def add_run_bodies(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Define `RunRequest` as one of the bodies, by `kind` (a hook of drf-spectacular)."""
    schemas = result["components"]["schemas"]
    references = {}
    for job in list_public_jobs():
        kind = {"type": "string", "enum": [job.kind]}
        schemas[body_name(job)] = {"description": job.help, **params_schema(job.load_params(), kind=kind)}
        references[job.kind] = f"#/components/schemas/{body_name(job)}"
    schemas["RunRequest"] = {
        "oneOf": [{"$ref": reference} for reference in references.values()],
        "discriminator": {"propertyName": "kind", "mapping": references},
    }
    return result
