"""Files of other tools, written after the public descriptions of their formats, and what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotation.mapping import Mapping, Table, open_table

FILES = Path(__file__).parent / "files"
SYSTEM = {"constants": {"system": "model-a"}}
#: File: (preset or "", what the file does not tell, numbers of items, outputs, ratings and comparisons).
FORMATS: dict[str, tuple[str, dict[str, Any], tuple[int, int, int, int]]] = {
    # Without a preset: by the names and the content of the columns.
    "wide.csv": ("", {}, (3, 6, 0, 0)),
    "wide_semicolon.csv": ("", {}, (3, 6, 0, 0)),
    "long.csv": ("", {}, (2, 4, 16, 0)),
    "prompt_response.jsonl": ("", {}, (3, 6, 0, 0)),
    "preference_messages.jsonl": ("", {}, (3, 6, 6, 3)),
    "alpaca_outputs.json": ("alpaca-eval-outputs", {}, (3, 3, 0, 0)),
    # The fourth output was not compared.
    "alpaca_annotations.json": ("alpaca-eval-annotations", {}, (3, 6, 0, 3)),
    "mt_bench/question.jsonl": ("mt-bench-questions", {}, (4, 0, 0, 0)),
    "mt_bench/model_answer/gpt-4.jsonl": ("mt-bench-answers", {}, (0, 4, 0, 0)),
    # One of eight judgements has no score (-1), one of four pairs an error.
    "mt_bench/model_judgment/gpt-4_single.jsonl": ("mt-bench-scores", {}, (0, 0, 7, 0)),
    "mt_bench/model_judgment/gpt-4_pair.jsonl": ("mt-bench-pairs", {}, (0, 0, 0, 3)),
    "arena_battles.json": ("arena", {}, (4, 8, 0, 4)),
    "arena_votes.csv": ("arena-votes", {}, (3, 6, 0, 3)),
    "messages.jsonl": ("chat-messages", SYSTEM, (3, 3, 0, 0)),
    "chosen_rejected.jsonl": ("marked-preferences", {}, (2, 4, 0, 2)),
    "samples_gsm8k_2026-01-12T10-11-12.000001.jsonl": ("lm-evaluation-harness", SYSTEM, (3, 3, 6, 0)),
    # Two prompts, two models, two aspects, and two workers whose assignments were not rejected.
    "mturk.csv": ("mturk", {}, (2, 4, 16, 0)),
    "google_forms.csv": ("google-forms", {}, (0, 0, 16, 0)),
    # Two finished responses with eight questions.
    "qualtrics.csv": ("qualtrics", {}, (0, 0, 16, 0)),
    # Two of three responses were submitted.
    "limesurvey.csv": ("limesurvey", {}, (0, 0, 16, 0)),
    # Three cancelled annotations, and one without a choice.
    "label_studio_pairwise.json": ("label-studio-pairs", {}, (3, 6, 0, 5)),
    "label_studio_rating.json": ("label-studio-ratings", {}, (2, 4, 16, 0)),
    "argilla.json": ("argilla", {}, (2, 4, 8, 0)),
    # Two of eight responses are discarded.
    "argilla_feedback.jsonl": ("argilla", {}, (2, 4, 12, 0)),
    "potato.jsonl": ("potato", SYSTEM, (4, 4, 8, 0)),
    "potato_annotated_instances.tsv": ("potato", SYSTEM, (4, 4, 8, 0)),
    "prodigy_choice.jsonl": ("prodigy-pairs", {}, (2, 4, 0, 3)),
    "doccano.jsonl": ("doccano", {"constants": {"rater": "ann", "aspect": "fluency"}}, (2, 4, 4, 0)),
    # Two contexts, two responses, six aspects, three annotators.
    "usr.json": ("usr", {}, (2, 4, 72, 0)),
    # The fifth entry rates a whole dialogue.
    "fed.json": ("turn-ratings", {}, (2, 4, 32, 0)),
    "dialeval.json": ("parallel-lists", {}, (2, 4, 4, 0)),
}


def open_file(name: str, mapping: Mapping | None = None) -> Table:
    """The table in a test file, read as a mapping says."""
    return open_table(FILES / name, reading=None if mapping is None else mapping.reading)
