"""Every call may be refused: the OpenAPI document says once how that looks, instead of each view for itself."""

from __future__ import annotations

from typing import Any

PROBLEM = {
    "type": "object",
    "description": "RFC 9457: what went wrong and what to do. Further members carry facts, such as both versions.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "Ends in one of the codes of the reference."},
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
        "more_errors": {"type": "integer", "description": "How many more there were."},
    },
}


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular: every refusal (4XX) and outage (503) is a problem document."""
    result.setdefault("components", {}).setdefault("schemas", {})["ProblemDocument"] = PROBLEM
    reference = {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
    refused = {"description": "Refused; the document says why.", "content": {"application/problem+json": reference}}
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            if isinstance(operation, dict) and "responses" in operation:
                for codes in ("4XX", "503"):
                    operation["responses"].setdefault(codes, refused)
                for code, response in operation["responses"].items():
                    if code[0] in "45" and "application/json" in response.get("content", {}):
                        response["content"]["application/problem+json"] = response["content"].pop("application/json")
    return result
