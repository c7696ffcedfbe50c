"""Scores of whole dialogues, and scores by the length of their contexts. Plain functions of records and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalapp.stats.correlation.coefficients import spearman
from scoring.ml.base import Evaluator, Progress
from scoring.ml.types import Dialogue, Record

#: Upper ends of the bins of context length in turns; the last bin is open.
BINS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class DialogueScore:
    """The mean over the scored turns of a dialogue, nan without any; `turns` are their numbers, from 0."""

    id: str
    system: str | None
    value: float
    turns: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ContextBin:
    """Scores whose contexts have `low` to `high` turns (None = any number); `spearman` with people, if given."""

    low: int
    high: int | None
    n: int
    mean: float
    sd: float
    spearman: float | None = None


def scored_turns(dialogue: Dialogue, speaker: str | None = None) -> list[int]:
    """The turns a dialogue is scored by: those of `speaker` (where speakers are known) that answer something."""
    known = len(dialogue.speakers) == len(dialogue.turns) and speaker is not None
    return [
        place
        for place, turn in enumerate(dialogue.turns)
        if place and turn.strip() and (not known or dialogue.speakers[place] == speaker)
    ]


def score_dialogues(
    evaluator: Evaluator,
    dialogues: Sequence[Dialogue],
    *,
    speaker: str | None = None,
    progress: Progress | None = None,
) -> list[DialogueScore]:
    """Return the score of each of the `dialogues` by an `evaluator`: the mean over the model's turns (Sinha et al.
    2020, section 5).

    The model is `speaker`; by default the dialogue's own `system` if a speaker has its name, else every turn counts.
    All turns of all dialogues are scored in one call; `progress(done, total)` counts turns.
    """
    turns = []
    for dialogue in dialogues:
        model = speaker
        if model is None and dialogue.system in dialogue.speakers:
            model = dialogue.system
        turns.append(scored_turns(dialogue, model))
    records = [
        # The group is what a cross-fitted evaluator knows a dialogue by that it learned from.
        Record(dialogue.turns[place], context=dialogue.turns[:place], item=dialogue.id, group=dialogue.id)
        for dialogue, places in zip(dialogues, turns, strict=True)
        for place in places
    ]
    values = iter(evaluator.evaluate(records, progress=progress).values.tolist()) if records else iter(())
    result = []
    for dialogue, places in zip(dialogues, turns, strict=True):
        own = np.array([next(values) for _ in places])
        defined = own[~np.isnan(own)]
        mean = float(defined.mean()) if defined.size else float("nan")
        result.append(DialogueScore(dialogue.id, dialogue.system, mean, tuple(places), tuple(own.tolist())))
    return result


def context_bins(
    records: Sequence[Record],
    values: npt.ArrayLike,
    human: npt.ArrayLike | None = None,
    *,
    bins: Sequence[int] = BINS,
) -> list[ContextBin]:
    """Return mean, SD (n - 1) and Spearman's coefficient with `human` of the `values` (n,) of `records`, by number of
    turns in the context.

    `bins` are the upper ends; undefined values and empty bins are left out.
    """
    scores = np.asarray(values, dtype=np.float64)
    people = None if human is None else np.asarray(human, dtype=np.float64)
    lengths = np.array([sum(1 for turn in record.context if turn.strip()) for record in records])
    rows: list[ContextBin] = []
    low = 1
    for high in (*bins, None):
        inside = (lengths >= low) & ~np.isnan(scores) & (True if high is None else lengths <= high)
        if inside.any():
            chosen = scores[inside]
            sd = float(chosen.std(ddof=1)) if chosen.size > 1 else float("nan")
            rank = None
            if people is not None and chosen.size > 2:
                rank = spearman(chosen, people[inside]).value
            rows.append(ContextBin(low, high, int(chosen.size), float(chosen.mean()), sd, rank))
        low = (high or low) + 1
    return rows
