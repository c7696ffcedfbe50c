"""Online scores: `{"pairs": [...]}` in, `{"signature": ..., "scores": [...]}` out, at most 64 pairs per call, 503 with
a problem document while the live worker is down. The server is scripted."""

from __future__ import annotations

import json
import math

import httpx
import pytest

from evalapp.client import Client, InvalidArgument, Record, Retry, Unavailable, UnexpectedAnswer

MOST = 64


class Live:
    """Scores a text by its length."""

    def __init__(self, *, down: int = 0, change: bool = False) -> None:
        self.down, self.change = down, change
        self.calls: list[list[dict]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", "/api/v1/evaluators/maude/score/")
        if self.down:
            self.down -= 1
            body = {"title": "A part is not running", "status": 503, "detail": "The live worker is down."}
            return httpx.Response(503, json=body, headers={"Retry-After": "0"})
        pairs = json.loads(request.content)["pairs"]
        assert len(pairs) <= MOST
        self.calls.append(pairs)
        signature = f"maude|v:{len(self.calls) if self.change else 1}"
        return httpx.Response(200, json={"signature": signature, "scores": [self.score(pair) for pair in pairs]})

    def score(self, pair: dict) -> float | None:
        if not pair["text"]:
            return None
        return len(pair["text"])


def evaluator(live: Live):
    client = Client("http://host", "t", transport=httpx.MockTransport(live), retries=Retry(times=2, first=0.001))
    return client.evaluator("maude")


def test_many_texts_are_split_into_calls():
    live = Live()
    scores = evaluator(live).score("x" * k for k in range(1, 151))
    assert [len(call) for call in live.calls] == [64, 64, 22]
    assert list(scores) == list(range(1, 151))
    assert (scores.signature, len(scores)) == ("maude|v:1", 150)


def test_texts_mappings_and_records():
    live = Live()
    record = Record("Yes.", references=("No.",), context=("Well?",))
    evaluator(live).score(["Hi.", {"text": "Ho.", "context": ["Hey?"]}, record])
    assert live.calls[0] == [
        {"context": [], "text": "Hi.", "references": []},
        {"context": ["Hey?"], "text": "Ho.", "references": []},
        {"context": ["Well?"], "text": "Yes.", "references": ["No."]},
    ]


def test_library_records_are_accepted():
    from scoring.ml import Record as LibraryRecord

    live = Live()
    evaluator(live).score([LibraryRecord(text="Yes.", context=("Well?",))])
    assert live.calls[0][0]["context"] == ["Well?"]


@pytest.mark.parametrize(
    "pair",
    [5, {}, {"text": 3}, {"text": "a", "reference": "b"}, {"text": "a", "context": "b"}, {"text": "a", "context": [3]}],
)
def test_invalid_pairs(pair):
    with pytest.raises(InvalidArgument, match=r"pair|lists of texts"):
        evaluator(Live()).score([pair])


def test_undefined_score_is_nan_and_empty_input_sends_nothing():
    live = Live()
    first, second = evaluator(live).score(["", "ab"])
    assert math.isnan(first)
    assert second == 2
    assert evaluator(live).score([]).values == ()
    assert len(live.calls) == 1


def test_worker_that_recovers_and_one_that_does_not():
    assert evaluator(Live(down=2)).score(["ab"]).values == (2.0,)
    with pytest.raises(Unavailable, match="The live worker is down"):
        evaluator(Live(down=3)).score(["ab"])


def test_evaluator_replaced_between_two_calls_is_detected():
    scores = evaluator(Live(change=True)).score(["a"] * 65)
    assert scores.signatures == ("maude|v:1", "maude|v:2")
    with pytest.raises(UnexpectedAnswer, match="several signatures"):
        _ = scores.signature


def test_answer_with_too_few_scores():
    def short(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"signature": "s", "scores": [1.0]})

    client = Client("http://host", "t", transport=httpx.MockTransport(short))
    with pytest.raises(UnexpectedAnswer, match="one score for each of 2"):
        client.evaluator("maude").score(["a", "b"])


def judging(seen: list, **changes):
    """A comparative evaluator that prefers longer texts."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", "/api/v1/evaluators/comparative/compare/")
        pairs = json.loads(request.content)["pairs"]
        seen.append(pairs)
        signs = [(len(pair["a"]) > len(pair["b"])) - (len(pair["a"]) < len(pair["b"])) for pair in pairs]
        probabilities = [{"better": 0.5 + 0.25 * sign, "tie": 0.25, "worse": 0.25 - 0.25 * sign} for sign in signs]
        body = {"signature": "comparative|x", "verdicts": signs, "probabilities": probabilities, "notes": []}
        return httpx.Response(200, json=body | changes)

    client = Client("http://host", "t", transport=httpx.MockTransport(answer))
    return client.evaluator("comparative")


def test_verdicts_come_from_a_comparative_evaluator():
    seen: list = []
    a = [Record(text, context=("c",)) for text in ("long", "a", "ab", "")] * 20
    b = [Record(text, context=("c",)) for text in ("ab", "abc", "cd", "a")] * 20
    assert judging(seen).compare(a, b) == (1, -1, 0, -1) * 20
    assert [len(call) for call in seen] == [64, 16]
    assert seen[0][0] == {"context": ["c"], "a": "long", "b": "ab"}
    found = judging(seen).judge(a[:2], b[:2])
    assert (list(found), found.probabilities[0]) == ([1, -1], (0.75, 0.25, 0.0))
    assert (len(found), found.signatures) == (2, ("comparative|x",))


def test_incomparable_input():
    comparer = judging([], verdicts=[1])
    one = Record("a", context=("c",))
    with pytest.raises(InvalidArgument, match="cannot be compared"):
        comparer.compare([one], [])
    with pytest.raises(InvalidArgument, match="one context"):
        comparer.compare([one], [Record("b", context=("other",))])
    with pytest.raises(UnexpectedAnswer, match="one verdict for each of 2 pairs"):
        comparer.compare([one, one], [one, one])


def test_options_project_reasons_and_reliability():
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((str(request.url), json.loads(request.content)))
        if request.url.path.endswith("/reliability/"):
            return httpx.Response(200, json={"signature": "ream", "reliability": 0.25 if len(seen) == 2 else None})
        return httpx.Response(200, json={"signature": "s", "scores": [None], "reasons": ["empty"], "notes": []})

    client = Client("http://host", "t", transport=httpx.MockTransport(answer))
    ream = client.evaluator("ream", project="weekend", options={"by": "skill"})
    assert ream.score([" "]).reasons == ("empty",)
    assert ream.reliability(["Well?"], ["Yes.", "No."]) == 0.25
    assert math.isnan(ream.reliability(["Well?"], []))
    assert seen[0][0] == "http://host/api/v1/evaluators/ream/score/?project=weekend"
    assert seen[0][1]["options"] == {"by": "skill"}
    assert seen[1][1] == {"context": ["Well?"], "references": ["Yes.", "No."], "options": {"by": "skill"}}
    with pytest.raises(InvalidArgument, match="lists of texts"):
        ream.reliability("Well?", ["Yes."])
