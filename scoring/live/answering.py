"""The answering side, in the worker of the queue `live`: load the evaluator or take the warm one, compute, answer.
Models that were not asked for longest make room for others."""

from __future__ import annotations

import json
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from .asking import STATE_KEY, answer_key, ask_key, connect

if TYPE_CHECKING:
    from scoring.ml import Evaluator

log = logging.getLogger(__name__)

#: Nobody waits longer for an answer that has come; then it goes.
ANSWER_SECONDS = 10
LOADING_SECONDS = 120


class WarmModels:
    """The evaluators last asked for, most recent last. A folder that was written anew is loaded anew."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: OrderedDict[str, Evaluator] = OrderedDict()

    def get(self, source: Mapping[str, str], options: Mapping[str, Any], loading: Callable[[], None]) -> Evaluator:
        """The evaluator of a catalogue name or of a folder below ARTEFACTS_DIR; `loading` is called before one is
        loaded."""
        from scoring.ml import load

        folder = Path(settings.ARTEFACTS_DIR) / source["folder"] if "folder" in source else None
        stamp = _stamp(folder) if folder else 0
        key = json.dumps([dict(source), dict(options), stamp], sort_keys=True)
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        loading()
        found = load(folder if folder is not None else source["name"], **options)
        self.kept[key] = found
        while len(self.kept) > self.limit:
            self.kept.popitem(last=False)
        return found


def _stamp(folder: Path) -> int:
    path = folder / "evaluator.json"
    return path.stat().st_mtime_ns if path.is_file() else 0


_models: list[WarmModels] = []


def warm_models() -> WarmModels:
    """Those of this process."""
    if not _models:
        _models.append(WarmModels(settings.LIVE_MODELS))
    return _models[0]


def answer(number: str) -> bool:
    """Answer a request if somebody still waits for it; whether it was executed."""
    client = connect(settings.REDIS_URL)
    raw = client.get(ask_key(number))
    if raw is None:
        return False

    request = json.loads(raw)
    name = str(request["source"].get("slug") or request["source"].get("name"))

    def loading() -> None:
        client.set(STATE_KEY, f"loading {name}", ex=LOADING_SECONDS)

    try:
        body = execute(request, loading)
    finally:
        client.delete(STATE_KEY)
    if client.exists(ask_key(number)):
        with client.pipeline() as pipe:
            pipe.rpush(answer_key(number), json.dumps(body))
            pipe.expire(answer_key(number), ANSWER_SECONDS)
            pipe.delete(ask_key(number))
            pipe.execute()
    return True


def execute(request: Mapping[str, Any], loading: Callable[[], None]) -> dict[str, Any]:
    """The body of the answer: what `score_pairs` or `rate_references` found, or `{"error", "detail"}`."""
    from scoring.ml import ArtefactError, EncoderError, ScoringError

    try:
        evaluator = warm_models().get(request["source"], request.get("options", {}), loading)
        if request["kind"] == "reliability":
            return rate_references(evaluator, request["context"], request["references"])
        return score_pairs(evaluator, request["pairs"])
    except (ArtefactError, EncoderError) as error:
        return {"error": "unavailable", "detail": str(error)}
    except ScoringError as error:
        return {"error": "bad-input", "detail": str(error)}
    except Exception as error:
        # The border of this process: whoever waits learns that it failed, the log has the rest.
        log.exception("an online request failed")
        return {
            "error": "unavailable",
            "detail": f"Unexpected error ({type(error).__name__}). The log has the details.",
        }


def score_pairs(evaluator: Evaluator, pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`signature`, `scores` (null: undefined), `reasons` beside them, and `notes` on all of them."""
    from scoring.ml import Record

    records = [
        Record(pair["text"], tuple(pair.get("references", ())), tuple(pair.get("context", ()))) for pair in pairs
    ]
    found = evaluator.evaluate(records)
    return {
        "signature": found.signature,
        "scores": [None if math.isnan(value) else float(value) for value in found.values],
        "reasons": list(found.reasons),
        "notes": list(found.notes),
    }


def rate_references(evaluator: Evaluator, context: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """`signature` and `reliability` of a set of references for a context, of evaluators that have it (REAM); of a
    cross-fitted one the mean over its models, none of which saw this set."""
    members: Sequence[Any] = getattr(evaluator, "members", None) or [evaluator]
    if hasattr(evaluator, "reliability"):
        members = [evaluator]
    if not all(hasattr(member, "reliability") for member in members):
        detail = f"{evaluator.name} says nothing about the reliability of references."
        return {"error": "bad-input", "detail": detail}
    values = [float(member.reliability(tuple(context), tuple(references))) for member in members]
    value = sum(values) / len(values)
    return {"signature": evaluator.signature, "reliability": None if math.isnan(value) else value}
