"""Reads and checks the members of request bodies from the API and from the scripts of the annotation pages. Whether an
answer fits the campaign's form is checked when it is stored (`judging`)."""

from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput, Fault

from .judging import Then


def read_answer(body: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `submit_answer` except `user` and `public`."""
    return {
        "submission": read_submission(body),
        "answer": body.get("answer"),
        "note": read_text(body, "note"),
        "seconds": read_number(body, "seconds", (int, float)),
        "replaces": read_number(body, "replaces", (int,)),
        "then": read_then(body.get("next")),
    }


def read_submission(body: dict[str, Any]) -> UUID:
    try:
        return UUID(str(body["submission"]))
    except (KeyError, ValueError) as error:
        fault = Fault(_("Send a new UUID for each submission."), field="submission")
        raise BadInput(_("The submission id is missing or not a UUID."), faults=[fault]) from error


def read_then(value: Any) -> Then:
    if value in (None, False, ""):
        return ""
    if value is True or value == "next":
        return "next"
    if value == "ahead":
        return "ahead"
    raise BadInput.for_field("next", _("next must be true, “next” or “ahead”."))


def read_number(body: dict[str, Any], name: str, kinds: tuple[type, ...]) -> Any:
    value: Any = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value <= 2**31 - 1:  # type: ignore[operator]
        raise BadInput.for_field(name, _("%(name)s must be a number of at least 0.") % {"name": name})
    return value


def read_flag(body: dict[str, Any], name: str) -> bool | None:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadInput.for_field(name, _("%(name)s must be true or false.") % {"name": name})
    return value


def read_version(body: dict[str, Any]) -> int:
    """The version of the draft that a new draft follows."""
    version: int | None = read_number(body, "version", (int,))
    if version is None:
        fault = Fault(_("Send the version of the draft that this one follows, 0 for the first."), field="version")
        raise BadInput(_("The version is missing."), faults=[fault])
    return version


def read_text(body: dict[str, Any], name: str, most: int | None = None) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadInput.for_field(name, _("%(name)s must be a text.") % {"name": name})
    if most is not None and len(value) > most:
        message = _("%(name)s has %(n)s characters; the maximum is %(most)s.")
        message %= {"name": name, "n": f"{len(value):,}", "most": f"{most:,}"}
        raise BadInput.for_field(name, message)
    return value
