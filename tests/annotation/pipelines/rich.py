"""A project that covers everything texts and keys can contain."""

from __future__ import annotations

from typing import Any

from tests.taking import COMPARISONS, ITEMS, OUTPUTS, RATINGS, WHOLE

RICH: dict[str, Any] = {
    **WHOLE,
    "systems.jsonl": [{"id": "é", "kind": "human", "meta": {"b": 1, "a": [1.0, 2.5]}}],
    "items.jsonl": [
        *ITEMS,
        {"id": "Z", "context": ["\u2028 \\ \" \t"], "group": "h", "references": ["a\r\nb"],
         "meta": {"z": 4.0, "big": 10**25}},
        {"id": "é", "context": [], "source": "ß\nß", "group": "h", "references": []},
    ],
    "outputs.jsonl": [*OUTPUTS, {"item": "Z", "system": "s", "text": "=1+1, \"x\"\r\ny", "step": 5},
                      {"item": "Z", "system": "s", "text": "", "step": 40}, {"item": "é", "system": "é", "text": "e"}],
    "ratings.jsonl": [*RATINGS, {"item": "Z", "system": "s", "step": 40, "rater": "r", "aspect": "quality", "value": 1,
                                 "simulated": True, "confidence": 0.5},
                      {"dialogue": "d", "rater": "r", "aspect": "quality", "value": 5}],
    "comparisons.jsonl": [*COMPARISONS, {**COMPARISONS[0], "system_b": {"reference": 1}, "verdict": "cannot_decide"},
                          {"item": "Z", "system_a": "s", "step_a": 40, "system_b": "s", "step_b": 5, "rater": "r",
                           "aspect": "quality", "verdict": "both_bad"}],
    "dialogues.jsonl": [{"id": "d", "turns": ["x", "y"], "speakers": ["A", "B"], "system": "s", "topic": "films"}],
    "corpus.jsonl": [{"query": "b", "response": "1"}, {"query": "a", "response": "2"}, {"query": "b", "response": "1"}],
}  # fmt: skip
