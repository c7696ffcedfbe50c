"""Examples of requests and answers in the OpenAPI document. They are real calls:
tests/architecture/test_api_examples.py sends every request again and compares; `make docs` writes the file."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).with_name("examples.json")


@cache
def read_examples() -> dict[str, dict[str, Any]]:
    """By operation: `requests` (name -> body), `content` (their media type), `status` and `response`."""
    found: dict[str, dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return found


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular."""
    known = read_examples()
    for operations in result["paths"].values():
        for operation in operations.values():
            one = known.get(operation["operationId"], {})
            bodies = operation.get("requestBody", {}).get("content", {})
            answers = operation["responses"].get(one.get("status"), {}).get("content", {})
            if (body := bodies.get(one.get("content", "application/json"))) and "requests" in one:
                body["examples"] = {name: {"value": value} for name, value in one["requests"].items()}
            if "application/json" in answers and "response" in one:
                answers["application/json"]["examples"] = {"answer": {"value": one["response"]}}
    return result
