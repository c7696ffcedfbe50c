"""The score beside the editor of a reference that somebody is writing. Writes nothing."""

from __future__ import annotations

import json
from typing import Any

from annotation.selectors.writing import candidate_texts, check_shows_scores, get_my_desk_task, set_texts
from evalapp.common.errors import BadInput, EvalappError, Fault, TooLarge

from ..live.asking import Place, Superseded, ask_live
from .reliability import note_of, writing_request

#: Characters of a text, and candidates of one request.
LONGEST_TEXT, MOST_CANDIDATES = 100_000, 100
#: Whole numbers that a browser and Redis hold exactly.
LARGEST_TICKET = 2**53


def live_score(*, user: Any, public: str, body: bytes) -> dict[str, Any]:
    """What the writing page shows beside its editor. `body` is JSON, `{"ticket", "text", "candidates"}`, about a
    task of one's own.

    Raises `NotAllowed` in an arm without scores, `BadInput` or `TooLarge` for what is no such request.
    """
    task = get_my_desk_task(user=user, public=public)
    check_shows_scores(task)
    ticket, text, ids = _checked(body)
    nothing = {
        "ticket": ticket, "now": None, "with_text": None, "candidates": {}, "left": 0, "signature": "", "note": "",
    }  # fmt: skip
    texts = candidate_texts(task, ids) if ids else {}
    # A list that is being rated and a text that is being written do not take each other's place.
    lane = f"{user.pk}:{public}:{'text' if text.strip() else 'list'}"
    try:
        request = {
            **writing_request(task.campaign.project, task.campaign.evaluator, task.unit.item),
            "kind": "writing",
            "references": list(set_texts(task)),
            "text": text,
            "candidates": list(texts.values()),
        }
        found = ask_live(request, place=Place(lane, ticket))
    except Superseded:
        return {**nothing, "note": "superseded"}
    except EvalappError as error:
        return {**nothing, "note": note_of(error)}
    values = dict(zip(texts, found["candidates"], strict=True))
    return {
        "ticket": ticket,
        "now": found["now"],
        "with_text": found["with_text"],
        "candidates": {name: value for name, value in values.items() if value is not None},
        "left": found["left"],
        "signature": found["signature"],
        "note": "; ".join(found["notes"]),
    }


def _checked(body: bytes) -> tuple[int, str, list[str]]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadInput("The body must be JSON: an object with ticket, text and candidates.") from error
    if not isinstance(asked, dict):
        raise BadInput("The body must be a JSON object with ticket, text and candidates.")
    ticket, text, ids = asked.get("ticket", 0), asked.get("text", ""), asked.get("candidates", [])
    faults = []
    if not isinstance(ticket, int) or isinstance(ticket, bool) or not 0 <= ticket <= LARGEST_TICKET:
        faults.append(Fault("must be a whole number that grows from one request to the next", field="ticket"))
    if not isinstance(text, str):
        faults.append(Fault("must be a text", field="text"))
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        faults.append(Fault("must be a list of candidates' ids", field="candidates"))
    elif len(ids) > MOST_CANDIDATES:
        faults.append(Fault(f"at most {MOST_CANDIDATES} at a time", field="candidates"))
    if faults:
        raise BadInput("; ".join(f"{fault.field} {fault.message}" for fault in faults), faults=faults)
    if len(text) > LONGEST_TEXT:
        raise TooLarge(f"A reference has at most {LONGEST_TEXT:,} characters here; this text has {len(text):,}.")
    return ticket, text, list(dict.fromkeys(ids))
