"""The live score on the writing page."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annotation.selectors.writing import check_shows_scores, get_own_task, read_candidate_texts, set_texts
from evalapp.common.errors import BadInput, EvalappError, Fault, TooLarge

from ..live.asking import Place, Superseded, ask_live
from .reliability import describe_error, make_request

#: Maximum characters of a text, and candidates per request.
MAX_TEXT, MAX_CANDIDATES = 100_000, 100
#: Browsers and Redis represent integers exactly up to this.
LARGEST_TICKET = 2**53


def live_score(*, user: Any, public: str, body: bytes) -> dict[str, Any]:
    """Return the scores for the writing page. `body` is JSON: `{"ticket", "text", "candidates"}`.

    Raises `NotAllowed` in an arm without scores, `BadInput` or `TooLarge` for an invalid request.
    """
    task = get_own_task(user=user, public=public)
    check_shows_scores(task)
    ticket, text, ids = _read_body(body)
    nothing = {
        "ticket": ticket, "now": None, "with_text": None, "candidates": {}, "left": 0, "signature": "", "note": "",
    }  # fmt: skip
    texts = read_candidate_texts(task, ids) if ids else {}
    # Requests about the text and about the candidates do not supersede each other.
    lane = f"{user.pk}:{public}:{'text' if text.strip() else 'list'}"
    try:
        request = {
            **make_request(task.campaign.project, task.campaign.evaluator, task.unit.item),
            "kind": "writing",
            "references": list(set_texts(task)),
            "text": text,
            "candidates": list(texts.values()),
        }
        answer = ask_live(request, place=Place(lane, ticket))
    except Superseded:
        return {**nothing, "note": "superseded"}
    except EvalappError as error:
        return {**nothing, "note": describe_error(error)}
    values = dict(zip(texts, answer["candidates"], strict=True))
    return {
        "ticket": ticket,
        "now": answer["now"],
        "with_text": answer["with_text"],
        "candidates": {name: value for name, value in values.items() if value is not None},
        "left": answer["left"],
        "signature": answer["signature"],
        "note": "; ".join(answer["notes"]),
    }


class _Body(BaseModel):
    model_config = ConfigDict(strict=True)

    ticket: int = Field(0, ge=0, le=LARGEST_TICKET)
    text: str = ""
    candidates: list[str] = Field([], max_length=MAX_CANDIDATES)


def _read_body(body: bytes) -> tuple[int, str, list[str]]:
    try:
        parsed = _Body.model_validate_json(body)
    except ValidationError as error:
        faults = [Fault(fault["msg"], field=".".join(map(str, fault["loc"]))) for fault in error.errors()]
        text = _("Send a JSON object with ticket, text and candidates: %(faults)s.")
        messages = "; ".join(f"{fault.field} {fault.message}".strip() for fault in faults)
        raise BadInput(text % {"faults": messages}, faults=[fault for fault in faults if fault.field]) from error
    if len(parsed.text) > MAX_TEXT:
        text = _("A reference has at most %(limit)s characters; this text has %(n)s.")
        raise TooLarge(text % {"limit": f"{MAX_TEXT:,}", "n": f"{len(parsed.text):,}"})
    return parsed.ticket, parsed.text, list(dict.fromkeys(parsed.candidates))
