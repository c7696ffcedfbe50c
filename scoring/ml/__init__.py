"""Evaluators of generated text as a library: no Django, no database, torch only when an encoder is used.

from scoring.ml import catalogue, fit, load, read_dataset
scores = load("bleu-star").score(read_dataset("folder").outputs_with_context())
"""

from __future__ import annotations

from scoring.ml.base import Evaluator, PairEvaluator, Query, Scores
from scoring.ml.catalogue import Entry, Option
from scoring.ml.dataset import read_dataset
from scoring.ml.errors import (
    ArtefactError,
    DatasetError,
    EncoderError,
    InvalidOption,
    InvalidRecords,
    NotTrained,
    ScoringError,
    TrainingDataError,
    UnknownEvaluator,
)
from scoring.ml.registry import catalogue, load
from scoring.ml.training.cross_fit import cross_fit
from scoring.ml.training.fit import fit, plan
from scoring.ml.training.job import Plan, TrainingProgress
from scoring.ml.types import Comparison, Dataset, Dialogue, Item, Output, Rating, Record, System

__all__ = [
    "ArtefactError",
    "Comparison",
    "Dataset",
    "DatasetError",
    "Dialogue",
    "EncoderError",
    "Entry",
    "Evaluator",
    "InvalidOption",
    "InvalidRecords",
    "Item",
    "NotTrained",
    "Option",
    "Output",
    "PairEvaluator",
    "Plan",
    "Query",
    "Rating",
    "Record",
    "Scores",
    "ScoringError",
    "System",
    "TrainingDataError",
    "TrainingProgress",
    "UnknownEvaluator",
    "catalogue",
    "cross_fit",
    "fit",
    "load",
    "plan",
    "read_dataset",
]
