"""Error responses of all calls in the OpenAPI document."""

from typing import Any

PROBLEM = {
    "type": "object",
    "description": "RFC 9457: the error and what to do. Some errors have further members, such as both versions.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "Ends with a code of the error reference."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message"],
                "properties": {
                    "message": {"type": "string"},
                    "field": {"type": "string"},
                    "file": {"type": "string"},
                    "line": {"type": "integer"},
                },
            },
        },
        "more_errors": {"type": "integer", "description": "Number of errors that are not listed."},
    },
}


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Document all errors (4XX) and outages (503) as problem documents (a hook of drf-spectacular)."""
    result.setdefault("components", {}).setdefault("schemas", {})["ProblemDocument"] = PROBLEM
    reference = {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
    refused = {"description": "Error with its reason.", "content": {"application/problem+json": reference}}
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            if isinstance(operation, dict) and "responses" in operation:
                for codes in ("4XX", "503"):
                    operation["responses"].setdefault(codes, refused)
                for code, response in operation["responses"].items():
                    if code[0] in "45" and "application/json" in response.get("content", {}):
                        response["content"]["application/problem+json"] = response["content"].pop("application/json")
    return result
