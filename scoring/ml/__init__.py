"""Evaluators of generated text as a library: no Django, no database, torch only when an encoder is used.

from scoring.ml import catalogue, fit, load, read_dataset
scores = load("bleu-star").score(read_dataset("folder").outputs_with_context())
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scoring.ml.base import Evaluator, PairEvaluator, Partial, Query, Scores
from scoring.ml.catalogue import Entry, Option
from scoring.ml.errors import (
    ArtefactError,
    DatasetError,
    EncoderError,
    HubError,
    InvalidOption,
    InvalidRecords,
    NotTrained,
    ScoringError,
    TrainingDataError,
    UnknownEvaluator,
)
from scoring.ml.registry import catalogue, from_pretrained, load
from scoring.ml.signature import SignatureField
from scoring.ml.types import Comparison, Dataset, Dialogue, Item, Output, Rating, Record, System

if TYPE_CHECKING:
    from scoring.ml.dataset import read_dataset
    from scoring.ml.training.cross_fit import cross_fit
    from scoring.ml.training.fit import fit, plan
    from scoring.ml.training.job import Plan, TrainingProgress

#: Names that are imported when they are first used: scoring with a metric needs neither training nor SciPy.
_LATER = {
    "Plan": "training.job",
    "TrainingProgress": "training.job",
    "cross_fit": "training.cross_fit",
    "fit": "training.fit",
    "plan": "training.fit",
    "read_dataset": "dataset",
}

__all__ = [
    "ArtefactError",
    "Comparison",
    "Dataset",
    "DatasetError",
    "Dialogue",
    "EncoderError",
    "Entry",
    "Evaluator",
    "HubError",
    "InvalidOption",
    "InvalidRecords",
    "Item",
    "NotTrained",
    "Option",
    "Output",
    "PairEvaluator",
    "Partial",
    "Plan",
    "Query",
    "Rating",
    "Record",
    "Scores",
    "ScoringError",
    "SignatureField",
    "System",
    "TrainingDataError",
    "TrainingProgress",
    "UnknownEvaluator",
    "catalogue",
    "cross_fit",
    "fit",
    "from_pretrained",
    "load",
    "plan",
    "read_dataset",
]


def __dir__() -> list[str]:
    return [*globals(), *_LATER]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
