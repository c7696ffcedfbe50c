"""The worker side of online scores: load the evaluator or take it from memory, compute, answer. The least recently
used models are unloaded first."""

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
from django.utils.translation import gettext as _

from .asking import STATE_KEY, answer_key, ask_key, connect
from .bounds import NEVER, REFERENCES_SLICE, Deadline, TooLate, evaluate_in_time
from .libraries import load_libraries

if TYPE_CHECKING:
    from scoring.ml import Evaluator, Record
    from scoring.ml.evaluators.ream.live import LiveReliability

log = logging.getLogger(__name__)

#: An answer that has not been collected expires after this time.
ANSWER_SECONDS = 10
LOADING_SECONDS = 120


#: A failed load is not repeated for this long, so that typing does not trigger it at every key.
FAILED_SECONDS = 20
#: Time spent on the references and candidates of a request, short enough that later requests do not wait.
TURN_SECONDS = 0.25
#: Reason beside a null score that is infinite, which JSON cannot hold.
INFINITE = "its score is infinite"

#: Deliver the answer if the client still waits.
_GIVE = """
if redis.call('DEL', KEYS[1]) == 1 then
  redis.call('RPUSH', KEYS[2], ARGV[1])
  redis.call('EXPIRE', KEYS[2], ARGV[2])
end
"""


@dataclass(slots=True)
class Warm:
    """An evaluator in memory, with its state for reference sets that are being written."""

    evaluator: Evaluator
    writing: LiveReliability | None = None


class WarmModels:
    """The most recently used evaluators, newest last. A folder that has changed is loaded again."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: OrderedDict[str, Warm] = OrderedDict()
        self.failed: dict[str, tuple[float, Exception]] = {}

    def get(self, source: Mapping[str, str], options: Mapping[str, Any], loading: Callable[[], None]) -> Evaluator:
        """Return the evaluator of a catalogue name or of a folder below ARTEFACTS_DIR.

        `loading` is called before a load. A failed load raises the same error again for `FAILED_SECONDS`.
        """
        return self._warm(source, options, loading).evaluator

    def get_writing(
        self, source: Mapping[str, str], options: Mapping[str, Any], loading: Callable[[], None]
    ) -> LiveReliability:
        """Return the evaluator's rating of reference sets. Raises `ScoringError` if it has none."""
        warm = self._warm(source, options, loading)
        if warm.writing is None:
            from scoring.ml.evaluators.ream.live import LiveReliability

            warm.writing = LiveReliability(warm.evaluator)
        return warm.writing

    def _warm(self, source: Mapping[str, str], options: Mapping[str, Any], loading: Callable[[], None]) -> Warm:
        from scoring.ml import ArtefactError, ScoringError, load
        from scoring.ml.registry import get_entry
        from scoring.ml.shipped import SHIPPED

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
            if folder is not None or source["name"] in SHIPPED or "encoder" in get_entry(source["name"]).needs:
                load_libraries()  # the start-up thread may still be loading them
            if folder is not None and not stamp:
                text = _("Its folder is missing. Restore it from a backup, or train it again.")
                raise ArtefactError(source.get("slug", source["folder"]), text)
            result = Warm(load(folder if folder is not None else source["name"], **options))
        except ScoringError as error:
            self.failed[key] = (time.monotonic() + FAILED_SECONDS, error.with_traceback(None))
            raise
        self.kept[key] = result
        while len(self.kept) > self.limit:
            self.kept.popitem(last=False)
        return result


def _stamp(folder: Path) -> int:
    path = folder / "evaluator.json"
    return path.stat().st_mtime_ns if path.is_file() else 0


_models: list[WarmModels] = []


def warm_models() -> WarmModels:
    """Return the models of this process."""
    if not _models:
        _models.append(WarmModels(settings.LIVE_MODELS))
    return _models[0]


def answer(number: str) -> bool:
    """Answer a request unless its client has given up. Returns whether it was executed.

    Computing stops when the client stops waiting, because other requests are queued behind this one.
    """
    client = connect(settings.REDIS_URL)
    raw = client.get(ask_key(number))
    # The request expires when its client stops waiting; -1: no expiry, -2: gone.
    left: Any = client.pttl(ask_key(number))
    if raw is None or left == -2:
        return False

    request = json.loads(raw)
    check = Deadline(None if left < 0 else left / 1000)
    name = str(request["source"].get("slug") or request["source"].get("name"))
    loaded: list[str] = []

    def loading() -> None:
        loaded.append(name)
        client.set(STATE_KEY, f"loading {name}", ex=LOADING_SECONDS)

    try:
        body = execute(request, loading, check)
    except TooLate:
        log.info("online scores by %s cancelled: the client stopped waiting", name)
        return True
    finally:
        if loaded:
            client.delete(STATE_KEY)
    client.eval(_GIVE, 2, ask_key(number), answer_key(number), json.dumps(body), ANSWER_SECONDS)
    return True


def execute(request: Mapping[str, Any], loading: Callable[[], None], check: Deadline = NEVER) -> dict[str, Any]:
    """Return the body of the answer: the result of the request's kind, or `{"error", "detail"}`.

    Raises `TooLate` when `check` does, but never during a load, so that the next request finds the evaluator loaded.
    """
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
        return {"error": "unavailable", "detail": _hide_folder(error, request["source"])}
    except ScoringError as error:
        return {"error": "bad-input", "detail": _hide_folder(error, request["source"])}
    except TooLate:
        raise
    except Exception as error:
        # Last resort of this process: the client learns that it failed, the log has the details.
        log.exception("an online request failed")
        text = _("Unexpected error (%(kind)s). The server log has the details.")
        return {"error": "unavailable", "detail": text % {"kind": type(error).__name__}}


def _hide_folder(error: Exception, source: Mapping[str, str]) -> str:
    """Replace the server folder in the message by the evaluator's name."""
    if "folder" not in source:
        return str(error)
    place = str(Path(settings.ARTEFACTS_DIR) / source["folder"])
    return str(error).replace(place, source.get("slug", source["folder"]))


def score_pairs(evaluator: Evaluator, pairs: Sequence[Mapping[str, Any]], check: Deadline = NEVER) -> dict[str, Any]:
    """Return `signature`, `scores` (null: undefined), a reason for each and `notes` on the whole request."""
    from scoring.ml import Record

    records = [
        Record(pair["text"], tuple(pair.get("references", ())), tuple(pair.get("context", ()))) for pair in pairs
    ]
    in_time = evaluate_in_time(evaluator, records, check)
    values = in_time.values.tolist()
    folds = len(getattr(evaluator, "members", ()))
    # Online texts belong to no item, so no model has seen their group: all folds are averaged.
    notes = [_("Each score is the mean over the models of all %(n)d folds.") % {"n": folds}] if folds else []
    return {
        "signature": in_time.signature,
        "scores": [_finite(value) for value in values],
        "reasons": [
            INFINITE if math.isinf(value) else reason for value, reason in zip(values, in_time.reasons, strict=True)
        ],
        "notes": [*notes, *in_time.notes],
    }


def _finite(value: float | None) -> float | None:
    """Return the value, or None where JSON cannot hold it."""
    return value if value is not None and math.isfinite(value) else None


def compare_pairs(evaluator: Evaluator, pairs: Sequence[Mapping[str, Any]], check: Deadline = NEVER) -> dict[str, Any]:
    """Compare pairs of texts with an evaluator that can compare.

    Returns `signature`, `verdicts` (1: a is better, -1: b, 0: neither), `probabilities` of better, tie and worse,
    `swap_consistency` (share of pairs whose verdict reverses with the order; null if only one order was read) and
    `notes`. A cross-fitted evaluator averages the probabilities of its models.
    """
    from scoring.ml import Record

    members: Sequence[Any] = getattr(evaluator, "members", None) or [evaluator]
    if not all(hasattr(member, "judge") for member in members):
        detail = _("%(name)s scores single texts and cannot compare; choose an evaluator trained as comparative.")
        return {"error": "bad-input", "detail": detail % {"name": evaluator.name}}
    from scoring.ml.evaluators.comparative.verdicts import average_thresholds, decide_signs

    a, b = (
        [Record(pair[side], context=tuple(pair.get("context", ()))) for pair in pairs] for side in ("a", "b")
    )  # fmt: skip
    result = [member.judge(a, b, progress=check) for member in members]
    probabilities = sum(each.probabilities for each in result) / len(result)
    if not all(map(math.isfinite, probabilities.ravel().tolist())):
        detail = _("The training of %(name)s failed: its probabilities are not numbers. Train it again.")
        return {"error": "bad-input", "detail": detail % {"name": evaluator.name}}
    consistent = [each.swap_consistency for each in result if each.swap_consistency is not None]
    cut = int(sum(each.truncated for each in result).astype(bool).sum())
    text = _("%(n)d of %(all)d pairs exceeded the length limit and were truncated.")
    notes = [text % {"n": cut, "all": len(pairs)}] if cut else []
    if evaluator.unknown_tokens is not None:
        unknown = evaluator.unknown_tokens.describe(text for one in (*a, *b) for text in (one.text, *one.context))
        notes += [unknown] if unknown else []
    return {
        "signature": evaluator.signature,
        "verdicts": decide_signs(probabilities, average_thresholds([each.threshold for each in result])).tolist(),
        "probabilities": [
            {"better": better, "tie": tie, "worse": worse} for worse, tie, better in probabilities.tolist()
        ],
        "swap_consistency": sum(consistent) / len(consistent) if consistent else None,
        "notes": notes,
    }


def rate_references(
    evaluator: Evaluator, context: Sequence[str], references: Sequence[str], check: Deadline = NEVER
) -> dict[str, Any]:
    """Return `signature` and `reliability` of a reference set for a context, for evaluators that rate them (REAM).

    A cross-fitted evaluator averages over its models, none of which has seen this set.
    """
    members: Sequence[Any] = getattr(evaluator, "members", None) or [evaluator]
    if hasattr(evaluator, "reliability"):
        members = [evaluator]
    if not all(hasattr(member, "reliability") for member in members):
        detail = _("%(name)s does not rate the reliability of references.") % {"name": evaluator.name}
        return {"error": "bad-input", "detail": detail}
    filled = [text for text in references if text.strip()]
    values = []
    for member in members:
        # References read before cost next to nothing, and the deadline is checked between the parts.
        for start in range(0, len(filled) - REFERENCES_SLICE, REFERENCES_SLICE):
            check()
            member.reliability(tuple(context), tuple(filled[start : start + REFERENCES_SLICE]))
        check()
        values.append(float(member.reliability(tuple(context), tuple(references))))
    return {"signature": evaluator.signature, "reliability": _finite(sum(values) / len(values))}


def rate_writing(rated: LiveReliability, request: Mapping[str, Any]) -> dict[str, Any]:
    """Rate a reference set that is being written.

    Returns `signature`, the values `now` and `with_text`, `candidates` (a value each, in their order; null: not rated),
    `left` (number of candidates not reached in time) and `notes`.
    """
    end = time.monotonic() + TURN_SECONDS
    candidates = request.get("candidates", [])
    result = rated.write(
        _query(request), request["references"], request.get("text", ""), candidates, lambda: time.monotonic() < end
    )
    return {
        "signature": rated.signature,
        "now": _finite(result.now),
        "with_text": _finite(result.with_text),
        "candidates": [_finite(result.candidates.get(text)) for text in candidates],
        "left": result.left,
        "notes": list(result.notes),
    }


def rate_sets(rated: LiveReliability, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return `signature` and `values` of multiple reference sets of an item; null for an empty set."""
    values = rated.rate(_query(request), request["sets"])
    return {"signature": rated.signature, "values": [_finite(value) for value in values]}


def _query(request: Mapping[str, Any]) -> Record:
    from scoring.ml import Record

    item = request["item"]
    return Record(
        "", context=tuple(item["context"]), source=item["source"], item=item["key"], group=item["group"]
    )  # fmt: skip
