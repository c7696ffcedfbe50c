"""The catalogue of all evaluators, and `load`, which makes one from a name or a saved folder."""

from __future__ import annotations

import difflib
import json
from functools import cache
from pathlib import Path
from typing import Any

from scoring.ml.base import ARTIFACT, Evaluator
from scoring.ml.baselines import (
    bertscore,
    bleu,
    bleu_star,
    chrf,
    distinct,
    embedding,
    rouge_l,
    sentinels,
    token_f1,
)
from scoring.ml.catalogue import Entry
from scoring.ml.errors import ScoringError, UnknownEvaluator

_MODULES = (
    sentinels,
    bleu,
    bleu_star,
    token_f1,
    chrf,
    rouge_l,
    distinct,
    embedding,
    bertscore,
)


@cache
def catalogue() -> tuple[Entry, ...]:
    """Everything that can be loaded by name: sentinels, then baselines."""
    return tuple(entry for module in _MODULES for entry in module.ENTRIES)


def load(name_or_folder: str | Path, **options: Any) -> Evaluator:
    """An evaluator by its catalogue name, with its options, or from a folder `save_pretrained` wrote.

    A folder may take options too; they override the saved ones. Raises `UnknownEvaluator` (with near names) and
    `InvalidOption`.
    """
    entries = {entry.name: entry for entry in catalogue()}
    name = str(name_or_folder)
    given: dict[str, Any] = {}
    saved = ""
    artifact = Path(name_or_folder) / ARTIFACT
    if name not in entries and artifact.is_file():
        name, given, saved = _read_artifact(artifact)
    if name not in entries:
        raise UnknownEvaluator(name, difflib.get_close_matches(name.lower(), entries, n=3, cutoff=0.5))
    entry = entries[name]
    evaluator = entry.build(entry, entry.parse_options({**given, **options}))
    if saved and not options and _unversioned(saved) != _unversioned(evaluator.signature):
        raise ScoringError(
            f"{name_or_folder} was saved as {saved} but would now score as {evaluator.signature}: its encoder "
            "has changed. Put the old one back, or save the evaluator anew."
        )
    return evaluator


def _unversioned(signature: str) -> str:
    return signature.rpartition("|v:")[0]


def _read_artifact(path: Path) -> tuple[str, dict[str, Any], str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return str(content["evaluator"]), dict(content["options"]), str(content["signature"])
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise ScoringError(f"{path} is not a saved evaluator: {error!r}. Save it again.") from error
