"""The metrics that need no training: trivial baselines and metrics, in the order of the catalogue. No torch here."""

from __future__ import annotations

from typing import Any

from scoring.ml.base import Evaluator, PairEvaluator
from scoring.ml.baselines import (
    bertscore,
    bleu,
    bleu_star,
    bleurt,
    chrf,
    distinct,
    embedding,
    meteor,
    moverscore,
    perplexity,
    rouge_l,
    sentinels,
    token_f1,
)
from scoring.ml.catalogue import Entry

_MODULES = (
    sentinels,
    bleu,
    bleu_star,
    token_f1,
    chrf,
    rouge_l,
    meteor,
    distinct,
    perplexity,
    embedding,
    bertscore,
    moverscore,
    bleurt,
)
METRICS: tuple[Entry, ...] = tuple(entry for module in _MODULES for entry in module.ENTRIES)


def pairwise_names() -> tuple[str, ...]:
    """Names of the metrics that compare a text with one reference at a time and work without naming a model."""
    return tuple(entry.name for entry in METRICS if entry.pairwise and entry.loads_by_name)


def build_pairwise(name: str, options: dict[str, Any]) -> PairEvaluator:
    """Build one of `pairwise_names`; options that it does not have are ignored."""
    entry = next(entry for entry in METRICS if entry.name == name)
    known = {option.name for option in entry.options}
    evaluator = build(entry, {key: value for key, value in options.items() if key in known})
    assert isinstance(evaluator, PairEvaluator)
    return evaluator


def build(entry: Entry, options: dict[str, Any]) -> Evaluator:
    """Build the evaluator of an entry. Raises `InvalidOption`, and `NotTrained` for one that must be trained."""
    evaluator: Evaluator = entry.build(entry, entry.parse_options(options))
    return evaluator
