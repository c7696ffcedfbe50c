"""What programs and the script of the judging page send, read and checked member by member. Whether an answer fits the
form of its campaign is seen when it is stored (`judging`)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from evalapp.common.errors import BadInput, Fault

from .judging import Then


def read_answer(body: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `submit_answer` but for whose and which."""
    return {
        "submission": read_submission(body, "answer"),
        "answer": body.get("answer"),
        "note": read_text(body, "note"),
        "seconds": read_number(body, "seconds", (int, float)),
        "replaces": read_number(body, "replaces", (int,)),
        "then": read_then(body.get("next")),
    }


def read_submission(body: dict[str, Any], what: str) -> UUID:
    try:
        return UUID(str(body["submission"]))
    except (KeyError, ValueError) as error:
        fault = Fault(f"Send a UUID made for this {what}.", field="submission")
        raise BadInput("The submission number is missing or not a UUID.", faults=[fault]) from error


def read_then(value: Any) -> Then:
    if value in (None, False, ""):
        return ""
    if value is True or value == "next":
        return "next"
    if value == "ahead":
        return "ahead"
    raise BadInput("next is neither true nor ahead.", faults=[Fault("Use true or ahead.", field="next")])


def read_number(body: dict[str, Any], name: str, kinds: tuple[type, ...]) -> Any:
    value: Any = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value <= 2**31 - 1:  # type: ignore[operator]
        raise BadInput(f"{name} must be a number from 0.", faults=[Fault("Use a number from 0.", field=name)])
    return value


def read_text(body: dict[str, Any], name: str, most: int | None = None) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a text.", faults=[Fault("Use a text.", field=name)])
    if most is not None and len(value) > most:
        text = f"{name} has {len(value)} characters; {most} is the most."
        raise BadInput(text, faults=[Fault(text, field=name)])
    return value
