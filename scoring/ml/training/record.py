"""The record of a training: data, groups, counts, curve, agreement with people. The card is written from it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from evalapp.stats.correlation.coefficients import COEFFICIENTS
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml.base import Evaluator, Floats, Progress
from scoring.ml.signature import VERSION
from scoring.ml.training.gold import collect_rated_outputs
from scoring.ml.training.job import RowTracker, without_progress
from scoring.ml.types import Dataset, Record

Row = Mapping[str, Any]
#: Prefix of a split group that consists of a single item.
OWN = "item:"
#: Hexadecimal digits of a content hash. With 100,000 items on each side, a collision has a chance of 1 in 30,000.
CONTENT_DIGITS = 12


@dataclass(frozen=True)
class TrainingRecord:
    """Plain values only. `groups` are the split groups of the training data (`dev_groups`: those that chose its epoch
    or options), so that scores of training items can be marked. `items` are their items that shared a group with
    others, in case one is moved later; `contents` the content hashes of their items and dialogues (`hash_content`), by
    which other data are matched. `correlations` with ratings and `verdicts` on comparisons (`compare_with_people`) are
    measured on the held-out part; `elsewhere` on sets that played no part in its training, each row with its `data`.
    `log` is the training curve."""

    dataset: str
    data_hash: str
    examples: Mapping[str, int]
    groups: tuple[str, ...]
    dev_groups: tuple[str, ...]
    simulated_judgements: int
    seconds: float
    steps: int
    metrics: Mapping[str, float]
    notes: tuple[str, ...] = ()
    correlations: tuple[Row, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    log: tuple[Row, ...] = ()
    items: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    verdicts: tuple[Row, ...] = ()
    #: The evaluator whose weights the training began with: name, hash of the weights, data and their hash.
    init: Mapping[str, str] | None = None
    elsewhere: tuple[Row, ...] = ()
    #: The further sets it learned from: `name`, numbers of `groups`, `dev_groups`, and groups `left_out` because their
    #: content is held out.
    sets: tuple[Row, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """All fields except those with a file of their own: log, groups, items and contents."""
        content = asdict(self)
        for key in ("log", "groups", "dev_groups", "items", "contents"):
            del content[key]
        return content


def list_groups(dataset: Dataset | None) -> tuple[str, ...]:
    """Return the split groups of a `dataset`, sorted; an item or dialogue without a group is its own."""
    if dataset is None:
        return ()
    groups = {name_group(item.group, item.id) for item in dataset.items}
    return tuple(sorted(groups | {f"dialogue:{dialogue.id}" for dialogue in dataset.dialogues}))


def name_group(group: str, item: str) -> str:
    """The name of an item's split group, as in `Dataset.split`."""
    return group or f"{OWN}{item}"


def record_groups(records: Iterable[Record]) -> list[str]:
    """The split group of each of the `records`."""
    return [name_group(record.group, record.item) for record in records]


def list_grouped_items(record: TrainingRecord, *datasets: Dataset | None) -> tuple[str, ...]:
    """The items of the data, sorted, that belong to one of the record's groups without naming it."""
    groups = {*record.groups, *record.dev_groups}
    result = (item for dataset in datasets if dataset is not None for item in dataset.items)
    return tuple(sorted({item.id for item in result if item.group in groups}))


def hash_content(context: Sequence[str], source: str | None, item: str) -> str:
    """A short hash of an item's content, independent of its name: the turns of its context and its source. An item
    without either is identified by its name."""
    if not any(text.strip() for text in (*context, source or "")):
        return _named(item)
    digest = hashlib.sha256()
    for turn in context:
        _add(digest, turn)
    return _ended(digest, source or "")


def hash_contents(record: TrainingRecord, *datasets: Dataset | None) -> tuple[str, ...]:
    """The content hashes of the training data, sorted: of the items in the record's groups, and of every beginning of
    their dialogues, which other data may have as an item's context."""
    groups = {*record.groups, *record.dev_groups}
    result: set[str] = set()
    for dataset in datasets:
        if dataset is None:
            continue
        seen = (item for item in dataset.items if name_group(item.group, item.id) in groups)
        result.update(hash_content(item.context, item.source, item.id) for item in seen)
        for dialogue in dataset.dialogues:
            if f"dialogue:{dialogue.id}" in groups:
                result.update(hash_beginnings(dialogue.turns))
    return tuple(sorted(result))


def hash_beginnings(turns: Sequence[str]) -> Iterator[str]:
    """The hash of the first turn, of the first two turns and so on, as `hash_content` gives them, in one pass."""
    digest, is_blank = hashlib.sha256(), True
    for turn in turns:
        _add(digest, turn)
        is_blank = is_blank and not turn.strip()
        if not is_blank:
            yield _ended(digest, "")


def _add(digest: Any, text: str) -> None:
    # The length prefix makes different divisions into turns differ.
    raw = text.encode("utf-8", "surrogatepass")
    digest.update(b"%d:" % len(raw) + raw)


def _ended(digest: Any, source: str) -> str:
    whole = digest.copy()
    whole.update(b"source:" + source.encode("utf-8", "surrogatepass"))
    return str(whole.hexdigest())[:CONTENT_DIGITS]


def _named(item: str) -> str:
    return hashlib.sha256(f"{OWN}{item}".encode("utf-8", "surrogatepass")).hexdigest()[:CONTENT_DIGITS]


def data_hash(dataset: Dataset, track: RowTracker = without_progress) -> str:
    """Return a short hash of all rows of a `dataset` that training may read, independent of their order: texts,
    judgements, scales, and systems with kind and dev losses. `track` reports progress."""
    # 1 and 1.0 are the same end of a scale.
    scales = [
        ("aspect", row.name, *(None if end is None else float(end) for end in (row.minimum, row.maximum)))
        for row in dataset.aspects
    ]
    rows: tuple[object, ...] = (
        *scales, *dataset.systems, *dataset.items, *dataset.outputs, *dataset.ratings, *dataset.comparisons,
        *dataset.dialogues,
    )  # fmt: skip
    total = 0
    for row in track(rows):
        digest = hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).digest()
        total = (total + int.from_bytes(digest[:16], "big")) % (1 << 128)
    return f"{total:032x}"[:12]


def library_versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"scoring.ml": VERSION, "python": platform.python_version(), **_installed()}


@cache
def _installed() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "transformers", "numpy")}


def correlate_with_people(
    evaluators: Sequence[Evaluator],
    dataset: Dataset,
    aspects: Sequence[str],
    *,
    seed: int = 13,
    progress: Progress | None = None,
) -> tuple[Row, ...]:
    """Return segment-level coefficients on a `dataset` with 95 % intervals (bootstrap over `n_groups` split groups,
    drawn by `seed`), one row per aspect and evaluator.

    Each of the `evaluators` scores each output once for all `aspects`; evaluators of multiple aspects give a score per
    aspect. `progress(done, total)` counts scored records; an exception it raises ends the work.
    """
    rated = {aspect: collect_rated_outputs(dataset, aspect) for aspect in aspects}
    rated = {aspect: outputs for aspect, outputs in rated.items() if len(outputs.records) >= 3}
    if not rated:
        return ()
    scores = [
        score_by_aspect(evaluator, {a: outputs.records for a, outputs in rated.items()}, progress)
        for evaluator in evaluators
    ]
    rows: list[Row] = []
    for aspect, judged in rated.items():
        human = judged.means()
        item = np.array([record.item for record in judged.records], dtype=object)
        system = np.array([record.system for record in judged.records], dtype=object)
        cluster = np.array(record_groups(judged.records), dtype=object)
        for evaluator, values in zip(evaluators, scores, strict=True):
            correlations = correlate(
                values[aspect],
                human,
                item,
                system,
                bootstrap=Bootstrap(cluster=cluster, seed=seed),
                settings=CorrelationSettings(level="segment"),
            )
            row: dict[str, Any] = {"evaluator": evaluator.name, "aspect": aspect, "n_groups": correlations.n_clusters}
            for kind in COEFFICIENTS:
                row[kind] = correlations[kind].as_dict()
            rows.append(row)
    return tuple(rows)


def score_by_aspect(
    evaluator: Evaluator, records: Mapping[str, Sequence[Record]], progress: Progress | None
) -> dict[str, Floats]:
    """Return the scores of an `evaluator` for the `records` of each aspect; `progress(done, total)` counts records."""
    if evaluator.depends_on_batch:
        return {aspect: evaluator.evaluate(rows, progress=progress).values for aspect, rows in records.items()}
    place = {
        record: number for number, record in enumerate(dict.fromkeys(r for rows in records.values() for r in rows))
    }
    result = evaluator.evaluate(list(place), progress=progress)
    many = evaluator.entry.aspect == "many"
    return {
        aspect: (result.components[aspect] if many else result.values)[[place[record] for record in rows]]
        for aspect, rows in records.items()
    }
