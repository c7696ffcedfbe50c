"""Training data of the classifier: human and machine texts in context, and their selection for an epoch.

Explained in docs/explanation/evaluators/adversarial.md#training.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from scoring.ml.encodings import Ints
from scoring.ml.types import Dataset, Record


@dataclass(frozen=True)
class Texts:
    """`records[i]` was written by a person where `labels[i]` is 1, by the machine of that name where it is 0.

    `n_same` machines' texts equal what a person wrote in the same context and `n_repeated` repeat a text of people, or
    of the same machine, in the same context: neither is among the records.
    """

    records: list[Record]
    labels: npt.NDArray[np.float32]
    n_same: int
    n_repeated: int

    @property
    def n_people(self) -> int:
        """The number of human texts."""
        return int((self.labels > 0.5).sum())

    @property
    def n_machines(self) -> int:
        """The number of machine texts."""
        return len(self.labels) - self.n_people

    def rows_by_system(self) -> list[Ints]:
        """The rows of each machine, in the order of their names."""
        rows: dict[str, list[int]] = {}
        for row in np.flatnonzero(self.labels < 0.5).tolist():
            rows.setdefault(self.records[row].system, []).append(row)
        return [np.array(rows[name], dtype=np.int64) for name in sorted(rows)]


def collect_texts(dataset: Dataset) -> Texts:
    """Return the texts of a `dataset`: references and outputs of human and reference systems against outputs of
    machines; controls are neither.

    A machine text that equals a human text in the same context, white space aside, would be in both classes: it is left
    out.
    """
    kinds = {system.id: system.kind for system in dataset.systems}
    people: dict[Hashable, Record] = {}
    machines: dict[Hashable, Record] = {}
    n_same = n_read = 0
    for item in dataset.items:
        for text in filter(str.strip, item.references):
            n_read += 1
            record = item.make_record(text)
            people.setdefault(_key(record), record)
    outputs = [
        (kinds.get(record.system, "machine"), replace(record, references=()))
        for record in dataset.outputs_with_context()
        if record.text.strip()
    ]
    for kind, bare in outputs:
        if kind not in ("machine", "control"):
            n_read += 1
            people.setdefault(_key(bare), bare)
    for kind, bare in outputs:
        if kind != "machine":
            continue
        if _key(bare) in people:
            n_same += 1
        else:
            n_read += 1
            machines.setdefault((bare.system, _key(bare)), bare)
    records = [*people.values(), *machines.values()]
    labels = np.array([1] * len(people) + [0] * len(machines), dtype=np.float32)
    return Texts(records, labels, n_same, n_read - len(records))


def rows_of_epoch(texts: Texts, *, balance: str, systems_alike: bool, rng: np.random.Generator) -> Ints:
    """Return the rows of `texts` that an epoch reads.

    `balance` weight takes all rows; draw takes the same number of each class, drawn by `rng`, and with `systems_alike`
    the same number from each machine.
    """
    if balance == "weight":
        return np.arange(len(texts.records))
    n = min(texts.n_people, texts.n_machines)
    people = rng.permutation(np.flatnonzero(texts.labels > 0.5))[:n]
    if systems_alike:
        machines = _in_turn([rng.permutation(rows) for rows in texts.rows_by_system()], n, rng)
    else:
        machines = rng.permutation(np.flatnonzero(texts.labels < 0.5))[:n]
    return np.concatenate([people, machines])


def row_weights(texts: Texts, *, balance: str, systems_alike: bool) -> npt.NDArray[np.float32]:
    """Return (n,) the weight of each of the `texts` in the loss, 1 on average; all ones with `balance` draw.

    With `balance` weight both classes have the same total weight; with `systems_alike` so have all machines.
    """
    weights = np.ones(len(texts.records), dtype=np.float32)
    if balance == "draw":
        return weights
    half = len(weights) / 2
    weights[texts.labels > 0.5] = half / max(texts.n_people, 1)
    of_system = texts.rows_by_system()
    for rows in of_system:
        weights[rows] = half / len(of_system) / len(rows) if systems_alike else half / texts.n_machines
    return weights


def _in_turn(queues: list[Ints], n: int, rng: np.random.Generator) -> Ints:
    """`n` rows, one of each queue in turn, the queues in random order; empty ones are skipped."""
    queues = [queues[int(place)] for place in rng.permutation(len(queues))]
    turns = np.concatenate([np.arange(len(queue)) for queue in queues])
    order = np.argsort(turns, kind="stable")
    return np.concatenate(queues)[order][:n]


def _key(record: Record) -> Hashable:
    return (_plain(record.text), record.context, record.source)


def _plain(text: str) -> str:
    return " ".join(text.split())


def balanced_log_loss(labels: Iterable[float], probabilities: Iterable[float]) -> float:
    """Return the mean over both classes of the mean -log of the probability of the true class; nan with one class only.

    `labels` are 1 for a human text, `probabilities` those of a human text.
    """
    y = np.asarray(list(labels)) > 0.5
    p = np.clip(np.asarray(list(probabilities), dtype=float), 1e-6, 1 - 1e-6)
    if y.all() or not y.any():
        return float("nan")
    return float((-np.log(p[y]).mean() - np.log(1 - p[~y]).mean()) / 2)
