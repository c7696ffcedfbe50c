"""The answering side, in the worker of the queue `live`: load the evaluator or take the warm one, compute, answer.
Models that were not asked for longest make room for others."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from .asking import STATE_KEY, answer_key, ask_key, connect
from .bounds import NEVER, REFERENCES_SLICE, Deadline, TooLate, evaluate_in_time
from .libraries import load_libraries

if TYPE_CHECKING:
    from scoring.ml import Evaluator, Record
    from scoring.ml.evaluators.ream.live import LiveReliability

log = logging.getLogger(__name__)

#: Nobody waits longer for an answer that has come; then it goes.
ANSWER_SECONDS = 10
LOADING_SECONDS = 120


#: What could not be loaded is not tried again at every key that somebody presses.
FAILED_SECONDS = 20
#: So long references and candidates are read for one request; whoever waits behind it should not notice.
TURN_SECONDS = 0.25
#: Why a score is null that is defined, though by no number.
INFINITE = "its score is infinite"

#: The answer goes to whoever still waits for it.
_GIVE = """
if redis.call('DEL', KEYS[1]) == 1 then
  redis.call('RPUSH', KEYS[2], ARGV[1])
  redis.call('EXPIRE', KEYS[2], ARGV[2])
end
"""


@dataclass(slots=True)
class Warm:
    """An evaluator in memory, and what it knows of sets that are being written."""

    evaluator: Evaluator
    writing: LiveReliability | None = None


class WarmModels:
    """The evaluators last asked for, most recent last. A folder that was written anew is loaded anew."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: OrderedDict[str, Warm] = OrderedDict()
        self.failed: dict[str, tuple[float, Exception]] = {}

    def get(self, source: Mapping[str, str], options: Mapping[str, Any], loading: Callable[[], None]) -> Evaluator:
        """The evaluator of a catalogue name or of a folder below ARTEFACTS_DIR; `loading` is called before one is
        loaded. One that could not be loaded raises the same error again for some seconds."""
        return self._warm(source, options, loading).evaluator

    def get_writing(
        self, source: Mapping[str, str], options: Mapping[str, Any], loading: Callable[[], None]
    ) -> LiveReliability:
        """What rates sets of references with that evaluator. Raises `ScoringError` where it does not do that."""
        warm = self._warm(source, options, loading)
        if warm.writing is None:
            from scoring.ml.evaluators.ream.live import LiveReliability

            warm.writing = LiveReliability(warm.evaluator)
        return warm.writing

    def _warm(self, source: Mapping[str, str], options: Mapping[str, Any], loading: Callable[[], None]) -> Warm:
        from scoring.ml import ArtefactError, ScoringError, load
        from scoring.ml.registry import get_entry

        folder = Path(settings.ARTEFACTS_DIR) / source["folder"] if "folder" in source else None
        stamp = _stamp(folder) if folder else 0
        key = json.dumps([dict(source), dict(options), stamp], sort_keys=True)
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        now = time.monotonic()
        self.failed = {each: row for each, row in self.failed.items() if row[0] > now}
        if key in self.failed:
            raise self.failed[key][1]
        loading()
        try:
            if folder is not None or "encoder" in get_entry(source["name"]).needs:
                load_libraries()  # the thread that began with the worker may be at it
            if folder is not None and not stamp:
                text = "its folder is gone. Put it back from a backup, or train it again"
                raise ArtefactError(source.get("slug", source["folder"]), text)
            found = Warm(load(folder if folder is not None else source["name"], **options))
        except ScoringError as error:
            self.failed[key] = (time.monotonic() + FAILED_SECONDS, error.with_traceback(None))
            raise
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
    """Answer a request if somebody still waits for it; whether it was executed. It ends when whoever asked has stopped
    waiting, for others wait behind it."""
    client = connect(settings.REDIS_URL)
    raw = client.get(ask_key(number))
    # What was asked is kept for as long as its asker waits; -1 is for ever, -2 no more.
    left: Any = client.pttl(ask_key(number))
    if raw is None or left == -2:
        return False

    request = json.loads(raw)
    check = Deadline(None if left < 0 else left / 1000)
    name = str(request["source"].get("slug") or request["source"].get("name"))
    told: list[str] = []

    def loading() -> None:
        told.append(name)
        client.set(STATE_KEY, f"loading {name}", ex=LOADING_SECONDS)

    try:
        body = execute(request, loading, check)
    except TooLate:
        log.info("online scores by %s were given up: they took longer than anybody waits", name)
        return True
    finally:
        if told:
            client.delete(STATE_KEY)
    client.eval(_GIVE, 2, ask_key(number), answer_key(number), json.dumps(body), ANSWER_SECONDS)
    return True


def execute(request: Mapping[str, Any], loading: Callable[[], None], check: Deadline = NEVER) -> dict[str, Any]:
    """The body of the answer: what the function of its kind found, or `{"error", "detail"}`. Raises `TooLate` when
    `check` does, never while an evaluator is being loaded: then whoever asks next finds it warm."""
    from scoring.ml import ArtefactError, EncoderError, ScoringError

    try:
        if request["kind"] in ("writing", "sets"):
            rated = warm_models().get_writing(request["source"], request.get("options", {}), loading)
            check()
            item = request["item"]
            near = (item["key"], *item.get("beside", ()))
            rated.regroup(dict.fromkeys(near, item["group"]) if item.get("is_own") else {})
            return rate_writing(rated, request) if request["kind"] == "writing" else rate_sets(rated, request)
        evaluator = warm_models().get(request["source"], request.get("options", {}), loading)
        check()
        if request["kind"] == "reliability":
            return rate_references(evaluator, request["context"], request["references"], check)
        if request["kind"] == "compare":
            return compare_pairs(evaluator, request["pairs"], check)
        return score_pairs(evaluator, request["pairs"], check)
    except (ArtefactError, EncoderError) as error:
        return {"error": "unavailable", "detail": _placeless(error, request["source"])}
    except ScoringError as error:
        return {"error": "bad-input", "detail": _placeless(error, request["source"])}
    except TooLate:
        raise
    except Exception as error:
        # The border of this process: whoever waits learns that it failed, the log has the rest.
        log.exception("an online request failed")
        return {
            "error": "unavailable",
            "detail": f"Unexpected error ({type(error).__name__}). The log has the details.",
        }


def _placeless(error: Exception, source: Mapping[str, str]) -> str:
    """Where an evaluator stands on the server is not for everybody who may ask it."""
    if "folder" not in source:
        return str(error)
    place = str(Path(settings.ARTEFACTS_DIR) / source["folder"])
    return str(error).replace(place, source.get("slug", source["folder"]))


def score_pairs(evaluator: Evaluator, pairs: Sequence[Mapping[str, Any]], check: Deadline = NEVER) -> dict[str, Any]:
    """`signature`, `scores` (null: undefined), `reasons` beside them, and `notes` on all of them."""
    from scoring.ml import Record

    records = [
        Record(pair["text"], tuple(pair.get("references", ())), tuple(pair.get("context", ()))) for pair in pairs
    ]
    found = evaluate_in_time(evaluator, records, check)
    values = found.values.tolist()
    folds = len(getattr(evaluator, "members", ()))
    return {
        "signature": found.signature,
        "scores": [_finite(value) for value in values],
        "reasons": [
            INFINITE if math.isinf(value) else reason for value, reason in zip(values, found.reasons, strict=True)
        ],
        # What is asked here belongs to no item, so that no model has seen its group.
        "notes": [*([f"each score is the mean of the models of all {folds} folds"] if folds else []), *found.notes],
    }


def _finite(value: float | None) -> float | None:
    """JSON has no other numbers."""
    return value if value is not None and math.isfinite(value) else None


def compare_pairs(evaluator: Evaluator, pairs: Sequence[Mapping[str, Any]], check: Deadline = NEVER) -> dict[str, Any]:
    """`signature`, `verdicts` (1: a is better, -1: b, 0: neither), `probabilities` of better, tie and worse,
    `swap_consistency` (the share of pairs whose verdict turns round with the order; null where they were read in one
    order) and `notes`, of evaluators that compare. Of a cross-fitted one by the mean probabilities of its models."""
    from scoring.ml import Record

    members: Sequence[Any] = getattr(evaluator, "members", None) or [evaluator]
    if not all(hasattr(member, "judge") for member in members):
        detail = f"{evaluator.name} scores single texts and compares none; choose one trained as comparative."
        return {"error": "bad-input", "detail": detail}
    from scoring.ml.evaluators.comparative.verdicts import signs_of

    a, b = (
        [Record(pair[side], context=tuple(pair.get("context", ()))) for pair in pairs] for side in ("a", "b")
    )  # fmt: skip
    found = [member.judge(a, b, progress=check) for member in members]
    probabilities = sum(each.probabilities for each in found) / len(found)
    if not all(map(math.isfinite, probabilities.ravel().tolist())):
        detail = f"{evaluator.name} gives probabilities that are no numbers: its training failed. Train it again."
        return {"error": "bad-input", "detail": detail}
    consistent = [each.swap_consistency for each in found if each.swap_consistency is not None]
    cut = int(sum(each.truncated for each in found).astype(bool).sum())
    notes = [f"{cut} of {len(pairs)} pairs were longer than it reads and were cut"] if cut else []
    if evaluator.unknown_tokens is not None:
        said = evaluator.unknown_tokens.describe(text for one in (*a, *b) for text in (one.text, *one.context))
        notes += [said] if said else []
    return {
        "signature": evaluator.signature,
        "verdicts": signs_of(probabilities).tolist(),
        "probabilities": [
            {"better": better, "tie": tie, "worse": worse} for worse, tie, better in probabilities.tolist()
        ],
        "swap_consistency": sum(consistent) / len(consistent) if consistent else None,
        "notes": notes,
    }


def rate_references(
    evaluator: Evaluator, context: Sequence[str], references: Sequence[str], check: Deadline = NEVER
) -> dict[str, Any]:
    """`signature` and `reliability` of a set of references for a context, of evaluators that have it (REAM); of a
    cross-fitted one the mean over its models, none of which saw this set."""
    members: Sequence[Any] = getattr(evaluator, "members", None) or [evaluator]
    if hasattr(evaluator, "reliability"):
        members = [evaluator]
    if not all(hasattr(member, "reliability") for member in members):
        detail = f"{evaluator.name} says nothing about the reliability of references."
        return {"error": "bad-input", "detail": detail}
    filled = [text for text in references if text.strip()]
    values = []
    for member in members:
        # What it has read before costs it next to nothing, and between the parts it can be told to end.
        for start in range(0, len(filled) - REFERENCES_SLICE, REFERENCES_SLICE):
            check()
            member.reliability(tuple(context), tuple(filled[start : start + REFERENCES_SLICE]))
        check()
        values.append(float(member.reliability(tuple(context), tuple(references))))
    return {"signature": evaluator.signature, "reliability": _finite(sum(values) / len(values))}


def rate_writing(rated: LiveReliability, request: Mapping[str, Any]) -> dict[str, Any]:
    """`signature`, `now`, `with_text` and `candidates` (a value each, in their order; null: not rated) of a set of
    references that somebody writes, `left` (how many candidates were not reached in time) and `notes`."""
    end = time.monotonic() + TURN_SECONDS
    candidates = request.get("candidates", [])
    found = rated.write(
        _query(request), request["references"], request.get("text", ""), candidates, lambda: time.monotonic() < end
    )
    return {
        "signature": rated.signature,
        "now": _finite(found.now),
        "with_text": _finite(found.with_text),
        "candidates": [_finite(found.candidates.get(text)) for text in candidates],
        "left": found.left,
        "notes": list(found.notes),
    }


def rate_sets(rated: LiveReliability, request: Mapping[str, Any]) -> dict[str, Any]:
    """`signature` and `values` of several sets of references for one item, null of an empty one."""
    values = rated.rate(_query(request), request["sets"])
    return {"signature": rated.signature, "values": [_finite(value) for value in values]}


def _query(request: Mapping[str, Any]) -> Record:
    from scoring.ml import Record

    item = request["item"]
    return Record(
        "", context=tuple(item["context"]), source=item["source"], item=item["key"], group=item["group"]
    )  # fmt: skip
