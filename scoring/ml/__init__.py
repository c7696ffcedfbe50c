"""Evaluators of generated text as a library: no Django, no database, torch only when an encoder is used.

from scoring.ml import catalogue, load, read_dataset
scores = load("bleu-star").score(read_dataset("folder").outputs_with_context())
"""

from __future__ import annotations

from scoring.ml.base import Evaluator, PairEvaluator, Query, Scores
from scoring.ml.catalogue import Entry, Option
from scoring.ml.dataset import read_dataset
from scoring.ml.errors import DatasetError, EncoderError, InvalidOption, ScoringError, UnknownEvaluator
from scoring.ml.registry import catalogue, load
from scoring.ml.types import Comparison, Dataset, Dialogue, Item, Output, Rating, Record, System

__all__ = [
    "Comparison",
    "Dataset",
    "DatasetError",
    "Dialogue",
    "EncoderError",
    "Entry",
    "Evaluator",
    "InvalidOption",
    "Item",
    "Option",
    "Output",
    "PairEvaluator",
    "Query",
    "Rating",
    "Record",
    "Scores",
    "ScoringError",
    "System",
    "UnknownEvaluator",
    "catalogue",
    "load",
    "read_dataset",
]
