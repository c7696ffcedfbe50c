"""The metrics that need no training: trivial baselines and metrics, in the order of the catalogue. No torch here.

Every module in `baselines/` that defines `ENTRIES` is part of the catalogue.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any, cast

from scoring.ml import baselines
from scoring.ml.base import Evaluator, PairEvaluator
from scoring.ml.catalogue import Entry

#: The modules that come first in the catalogue; the others follow by name.
_FIRST = (
    "sentinels", "bleu", "token_f1", "chrf", "ter", "rouge_l", "meteor", "distinct", "perplexity", "embedding",
    "bertscore", "moverscore", "bleurt",
)  # fmt: skip


@cache
def list_metrics() -> tuple[Entry, ...]:
    """The entries of all metrics: the `ENTRIES` of every module in `baselines/`."""
    names = sorted(module.name for module in pkgutil.iter_modules(baselines.__path__))
    names.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    modules = (import_module(f"{baselines.__name__}.{name}") for name in names)
    return tuple(entry for module in modules for entry in getattr(module, "ENTRIES", ()))


def pairwise_names() -> tuple[str, ...]:
    """Names of the metrics that compare a text with one reference at a time and work without naming a model."""
    return tuple(entry.name for entry in list_metrics() if entry.pairwise and entry.loads_by_name)


def build_pairwise(name: str, options: dict[str, Any]) -> PairEvaluator:
    """Build one of `pairwise_names` by `name`; those of the `options` that it does not have are ignored."""
    entry = next(entry for entry in list_metrics() if entry.name == name)
    known = {option.name for option in entry.options}
    evaluator = build(entry, {key: value for key, value in options.items() if key in known})
    assert isinstance(evaluator, PairEvaluator)
    return evaluator


def build(entry: Entry, options: dict[str, Any]) -> Evaluator:
    """Build the evaluator of an `entry` with these `options`. Raises `InvalidOption`, and `NotTrained` for one that
    must be trained."""
    return cast(Evaluator, entry.build(entry, entry.parse_options(options)))
