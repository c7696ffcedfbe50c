"""The Delta table: how far a score falls when a true reply is broken or exchanged (Sinha et al. 2020, table 1).

Explained in docs/explanation/evaluators/unreferenced.md#delta-table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scoring.ml.base import Evaluator, Progress
from scoring.ml.evaluators.unreferenced.conversations import Conversation, reply_records
from scoring.ml.evaluators.unreferenced.corruption import TRIES, corrupt
from scoring.ml.evaluators.unreferenced.samples import SYNTACTIC
from scoring.ml.evaluators.unreferenced.tools import Tools
from scoring.ml.types import Record

#: The difference that a good evaluator gives each kind: none (positive), or near 1 (negative).
GROUPS = {
    "ground_truth": "semantic positive",
    "back_translation": "semantic positive",
    "rand_utt": "semantic negative",
    "model_false": "semantic negative",
    "rand_model": "semantic negative",
    "rand_back": "semantic negative",
    **dict.fromkeys(SYNTACTIC, "syntactic negative"),
}


@dataclass(frozen=True, slots=True)
class Delta:
    """One row: Delta = score(c, true reply) - score(c, changed reply) over n contexts; standard deviation with n - 1.

    `below` is the share of contexts where the changed reply scores lower.
    """

    kind: str
    group: str
    n: int
    mean: float
    sd: float
    below: float


def delta_table(
    evaluator: Evaluator,
    conversations: Sequence[Conversation],
    *,
    n: int = 1000,
    seed: int = 13,
    tools: Tools | None = None,
    progress: Progress | None = None,
) -> list[Delta]:
    """Return a row for every kind of change, over up to `n` true replies of the `conversations`, drawn by `seed` and
    scored by `evaluator`.

    `tools` make replies of a model (to the own context, `model_false`, and to another, `rand_model`) and
    back-translations (of the own reply and of another's); without them these rows are absent. Conversations should not
    be those it learned from. `progress(done, total)` counts texts. Raises ValueError if there are fewer than two
    groups.
    """
    everyone = reply_records(conversations)
    if len({record.group for record in everyone}) < 2:
        raise ValueError("a Delta table needs replies of at least two groups of conversations")
    rng = np.random.default_rng(seed)
    chosen = [everyone[int(place)] for place in np.sort(rng.permutation(len(everyone))[:n])]
    blocks = list(_changed(chosen, everyone, rng, tools or Tools()))
    records = [record for _, block in blocks for record in block if record is not None]
    values = iter(evaluator.evaluate([*chosen, *records], progress=progress).values.tolist())
    truth = np.array([next(values) for _ in chosen])
    rows = [_row("ground_truth", np.zeros(len(chosen)))]
    for kind, block in blocks:
        gaps = [true - next(values) for true, record in zip(truth, block, strict=True) if record is not None]
        rows.append(_row(kind, np.array(gaps)))
    return rows


def _row(kind: str, gaps: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Delta:
    kept = gaps[~np.isnan(gaps)]
    mean = float(kept.mean()) if kept.size else float("nan")
    sd = float(kept.std(ddof=1)) if kept.size > 1 else float("nan")
    below = float((kept > 0).mean()) if kept.size else float("nan")
    return Delta(kind, GROUPS[kind], int(kept.size), mean, sd, below)


def _changed(
    chosen: Sequence[Record], everyone: Sequence[Record], rng: np.random.Generator, tools: Tools
) -> Iterator[tuple[str, list[Record | None]]]:
    """Each kind with its changed records; None where the reply cannot be changed so."""
    by_group: dict[str, list[Record]] = {}
    for record in everyone:
        by_group.setdefault(record.group, []).append(record)
    other = [_other(record, everyone, by_group, rng) for record in chosen]
    if tools.back_translate is not None:
        yield "back_translation", _with(chosen, tools.back_translate([record.text for record in chosen]))
    yield "rand_utt", _with(chosen, [record.text for record in other])
    if tools.generate is not None:
        yield "model_false", _with(chosen, tools.generate(["\n".join(record.context) for record in chosen]))
        yield "rand_model", _with(chosen, tools.generate(["\n".join(record.context) for record in other]))
    if tools.back_translate is not None:
        yield "rand_back", _with(chosen, tools.back_translate([record.text for record in other]))
    for kind in SYNTACTIC:
        yield kind, _with(chosen, [corrupt(record.text, kind, rng, keep_identical=False) for record in chosen])


def _with(records: Sequence[Record], texts: Sequence[str | None]) -> list[Record | None]:
    return [replace(record, text=text) if text else None for record, text in zip(records, texts, strict=True)]


def _other(
    record: Record, everyone: Sequence[Record], by_group: Mapping[str, Sequence[Record]], rng: np.random.Generator
) -> Record:
    """A reply of another group, with another text if one turns up."""
    for attempt in range(100):
        result = everyone[int(rng.integers(len(everyone)))]
        if result.group != record.group and result.text != record.text:
            return result
        if attempt >= TRIES and result.group != record.group:
            return result
    # Nearly all replies are of its own group.
    rest = [reply for group, replies in by_group.items() if group != record.group for reply in replies]
    return rest[int(rng.integers(len(rest)))]
