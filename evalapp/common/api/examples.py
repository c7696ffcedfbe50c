"""Examples of requests and responses in the OpenAPI document. They are real calls, written by `make docs`;
tests/architecture/test_api_examples.py sends every request again and compares."""

import json
from functools import cache
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).with_name("examples.json")


@cache
def read_examples() -> dict[str, dict[str, Any]]:
    """Return operation -> `requests` (name -> body), `content` (their media type), `status` and `response`."""
    examples: dict[str, dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the examples to the OpenAPI document (a hook of drf-spectacular)."""
    examples = read_examples()
    for operations in result["paths"].values():
        for operation in operations.values():
            example = examples.get(operation["operationId"], {})
            bodies = operation.get("requestBody", {}).get("content", {})
            responses = operation["responses"].get(example.get("status"), {}).get("content", {})
            if (body := bodies.get(example.get("content", "application/json"))) and "requests" in example:
                body["examples"] = {name: {"value": value} for name, value in example["requests"].items()}
            if "application/json" in responses and "response" in example:
                responses["application/json"]["examples"] = {"answer": {"value": example["response"]}}
    return result
