"""ADEM (Lowe et al., ACL 2017) on frozen text vectors: training data, solution, scoring.

score(c, r, y) = (c' M y + r' N y - alpha) / beta. The original's VHRED vectors are not public; any encoder's vectors
are used instead. Several references count by their mean vector, which gives the mean of their scores.

Explained in docs/explanation/evaluators/adem.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, ClassVar, cast

import numpy as np
import torch

from evalapp.stats.agreement.normalise import RatingMethod
from evalapp.translation import gettext as _
from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, Partial, Progress, get_references
from scoring.ml.encoders.kept import cached_vectors
from scoring.ml.engine import resolve_device
from scoring.ml.errors import InvalidOption, TrainingDataError
from scoring.ml.evaluators.adem.network import AdemNetwork
from scoring.ml.evaluators.adem.ridge import GRID, Components, features, first_scale, principal_axes, solve
from scoring.ml.evaluators.unreferenced.conversations import flatten
from scoring.ml.evaluators.unreferenced.samples import TextTable
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.network import Network
from scoring.ml.signature import SignatureField
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.frame import TrainingResult, count_steps, make_artefact, make_loop_settings
from scoring.ml.training.gold import choose_aspect, collect_rated_outputs
from scoring.ml.training.job import FitJob, Plan, TrainingProgress
from scoring.ml.training.loop import train_loop
from scoring.ml.training.record import list_groups, record_groups
from scoring.ml.training.split import hold_out_groups
from scoring.ml.types import Record

LEAST = 10
#: Records scored at a time: bounds the memory of their vectors.
BLOCK = 8192


@dataclass(frozen=True)
class _Part:
    """Rated outputs with context and references; `held` marks those that choose the settings and are not learned from,
    `cut_off` says that these were taken from the training data."""

    records: list[Record]
    labels: Floats
    held: np.ndarray[Any, np.dtype[np.bool_]]
    simulated: int
    #: Number of rated outputs of the training data that are left out, by reason.
    left_out: Mapping[str, int]
    cut_off: bool = False

    def omissions(self) -> list[str]:
        """A note for each reason."""
        return [f"{n:,} rated outputs {cause}: left out." for cause, n in self.left_out.items()]


class Adem(TrainedEvaluator):
    """The evaluator."""

    network_class: ClassVar[type[Network]] = AdemNetwork

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        aspect, part = _check(job)
        learned = int((~part.held).sum())
        steps = len(GRID) if job.options["l2"] is None else 1
        if job.text("method") == "gradient":
            steps = count_steps(job, learned)
        notes = part.omissions()
        if part.cut_off:
            notes.append(_("A tenth of the groups is held out to choose the weight of the squares."))
        examples = {f"rated outputs ({aspect})": len(part.records)}
        return Plan(examples, steps, notes=tuple(notes), by_trials=True)

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        aspect, part = _check(job)
        vectors = _encode(job, part.records)
        low, high = _scale(job, aspect, part.labels[~part.held])
        taught = vectors.take(np.flatnonzero(~part.held))
        n_axes = min(job.integer("components"), job.encoder.width, max(1, 3 * len(taught.y) - 1))
        mean, axes = principal_axes(np.concatenate([taught.c, taught.r, taught.y]), n_axes)
        network = AdemNetwork.from_source(None, _sizes(job, n_axes))
        network.mean.copy_(torch.from_numpy(mean))
        network.axes.copy_(torch.from_numpy(axes))
        components = _components(network, vectors)
        products = _products(network, components.take(np.flatnonzero(~part.held)))
        alpha, beta = first_scale(products, low, high)
        network.alpha.fill_(alpha)
        network.beta.fill_(beta)
        solver = _gradient if job.text("method") == "gradient" else _ridge
        result = solver(network, job, components, part)
        groups, dev_groups = list_groups(job.train), list_groups(job.dev)
        if part.cut_off and job.text("method") == "gradient":
            dev_groups = _groups(part, part.held)
            groups = tuple(group for group in groups if group not in dev_groups)
        learned = TrainingResult(
            network.eval(),
            result,
            {"rated outputs": len(part.records)},
            groups,
            dev_groups,
            aspects=(aspect,),
            state={"low": low, "high": high},
            notes=tuple(part.omissions()),
            simulated=part.simulated,
            embedded=False,
        )
        return make_artefact(job, learned)

    @property
    def worst(self) -> float:
        """The low end of the scale it learned."""
        return float(cast(float, self.artefact.state["low"]))

    @cached_property
    def texts(self) -> UtteranceEncoder:
        """The frozen encoder."""
        return UtteranceEncoder.for_scoring(self)

    def own_fields(self) -> list[SignatureField]:
        return [
            SignatureField("pool", "pool", str(self.settings["pooling"])),
            SignatureField("ml", "ml", str(self.longest)),
            SignatureField("by", "by", str(self.settings["method"])),
        ]

    def undefined(self, record: Record) -> str:
        return super().undefined(record) or ("" if _context(record) else "no context")

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        values, cut = np.empty(len(records)), np.zeros(len(records), dtype=np.bool_)
        network = cast(AdemNetwork, self.network)
        for start in range(0, len(records), BLOCK):
            block = records[start : start + BLOCK]
            table, rows = _table(block)
            tokenized = self.texts.tokenize(table.texts, table.left)

            def tick(done: int, total: int, start: int = start, n: int = len(block)) -> None:
                progress(start + done * n // max(total, 1), len(records))

            vectors = self.texts.vectors(tokenized.encodings, tick).astype(np.float64)
            parts = _components(network, _sides(vectors, rows))
            with torch.inference_mode():
                result = network(*(_tensor(network, side) for side in parts))["value"]
            values[start : start + len(block)] = result.double().cpu().numpy()
            cut[start : start + len(block)] = [bool(tokenized.truncated[own].any()) for own in map(_flat_rows, rows)]
        return Partial(values, cut)


_Rows = tuple[int, tuple[int, ...], int]


def _context(record: Record) -> str:
    turns = [turn for turn in record.context if turn.strip()]
    return flatten(turns) if turns else (record.source or "").strip()


def _table(records: Sequence[Record]) -> tuple[TextTable, list[_Rows]]:
    """The distinct texts, and each record's rows: context, references, reply."""
    table = TextTable()
    rows = [
        (
            table.add(_context(record), left=True),
            tuple(table.add(text) for text in get_references(record)),
            table.add(record.text),
        )
        for record in records
    ]
    return table, rows


def _flat_rows(rows: _Rows) -> list[int]:
    return [rows[0], *rows[1], rows[2]]


def _sides(vectors: Floats, rows: Sequence[_Rows]) -> Components:
    references = np.stack([vectors[list(own)].mean(axis=0) for _, own, _ in rows])
    return Components(vectors[[row[0] for row in rows]], references, vectors[[row[2] for row in rows]])


def _tensor(network: AdemNetwork, side: Floats) -> torch.Tensor:
    return torch.from_numpy(side).to(network.M.device, network.M.dtype)


def _components(network: AdemNetwork, vectors: Components) -> Components:
    with torch.inference_mode():
        result = [network.components(_tensor(network, side)).double().cpu().numpy() for side in vectors]
    return Components(*result)


def _products(network: AdemNetwork, parts: Components) -> Floats:
    with torch.inference_mode():
        result = network.products(*network.readable(*(_tensor(network, side) for side in parts)))
    return np.asarray(result.double().cpu().numpy())


def _sizes(job: FitJob, n_axes: int) -> dict[str, Any]:
    l2 = job.options["l2"]
    return {
        "vector": job.encoder.width,
        "components": n_axes,
        "affine": job.flag("affine"),
        "inputs": job.text("inputs"),
        "l1": job.number("l1"),
        "l2": 0.01 if l2 is None else float(cast(float, l2)),
    }


def _check(job: FitJob) -> tuple[str, _Part]:
    """The aspect and the training data. Raises `TrainingDataError` and `InvalidOption`."""
    if job.text("inputs") != "both" and not job.flag("affine"):
        raise InvalidOption(job.name, "affine", _("must be true where not all inputs are read: nothing would vary"))
    aspect = choose_aspect(job.name, job.train, job.aspect, ("ratings",))
    method = cast(RatingMethod, job.text("ratings"))
    records, labels, held, simulated = [], [], [], 0
    left_out: Counter[str] = Counter()
    for dataset, is_dev in ((job.train, False), (job.dev, True)):
        if dataset is None:
            continue
        rated = collect_rated_outputs(dataset, aspect, method)
        simulated += 0 if is_dev else rated.simulated
        for record, label in zip(rated.records, rated.means(), strict=True):
            lack = _lack(record)
            if not lack:
                records.append(record)
                labels.append(float(label))
                held.append(is_dev)
            elif not is_dev:
                left_out[lack] += 1
    part = _Part(records, np.array(labels), np.array(held, dtype=np.bool_), simulated, left_out)
    _enough(job, aspect, part)
    return aspect, part if part.held.any() else _hold_out(part, job)


def _lack(record: Record) -> str:
    """The reason why a rated output cannot be learned from; empty if it can."""
    if not record.text.strip():
        return "are empty"
    if get_references(record):
        return "" if _context(record) else "have no context"
    return "have no reference" if _context(record) else "have neither context nor reference"


def _too_few(aspect: str, part: _Part, n: int) -> str:
    """The error if only `n` outputs are left, with the way out."""
    if not n and not part.left_out:
        return f"no output has a rating of {aspect!r}, and it does not learn from ratings of dialogues: rate outputs."
    of_others = " and ".join(f"{lost:,} {cause}" for cause, lost in part.left_out.items())
    others = f" Of the other rated outputs {of_others}." if of_others else ""
    more = "Rate more outputs"
    if set(part.left_out) - {"are empty"}:
        more += ", or add references and contexts to their items"
    return (
        f"{n} outputs have a text, a rating of {aspect!r}, a context and a reference; {LEAST} are the least.{others} "
        f"{more}."
    )


def _enough(job: FitJob, aspect: str, part: _Part) -> None:
    taught = ~part.held
    n = int(taught.sum())
    if n < LEAST:
        raise TrainingDataError(job.name, _too_few(aspect, part, n))
    labels = part.labels[taught]
    if not np.isfinite(labels).all():
        text = _("ratings of %(aspect)r are not all numbers: correct or remove them")
        raise TrainingDataError(job.name, text, aspect=aspect)
    if labels.min() == labels.max():
        text = _("every rating of %(aspect)r is %(rating)s: there is nothing to learn")
        raise TrainingDataError(job.name, text, aspect=aspect, rating=f"{labels[0]:g}")
    if len(_groups(part, taught)) < 2:
        text = _("all rated outputs belong to the same group: rate outputs of different items")
        raise TrainingDataError(job.name, text)


def _hold_out(part: _Part, job: FitJob) -> _Part:
    groups = record_groups(part.records)
    held_out = hold_out_groups(groups, job.seed)
    held = np.array([group in held_out for group in groups])
    return replace(part, held=held, cut_off=True)


def _groups(part: _Part, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[str, ...]:
    """The split groups of the records, sorted."""
    return tuple(sorted(set(record_groups(compress(part.records, rows)))))


def _scale(job: FitJob, aspect: str, labels: Floats) -> tuple[float, float]:
    """The ends of the aspect's scale, or of the labels if those exceed it. Standardised ratings and ranks always use
    the ends of the labels, although a wide scale could contain them."""
    for one in job.train.aspects if job.text("ratings") == "raw" else ():
        if one.name != aspect or one.minimum is None or one.maximum is None:
            continue
        if one.minimum <= labels.min() and labels.max() <= one.maximum:
            return one.minimum, one.maximum
    return float(labels.min()), float(labels.max())


def _encode(job: FitJob, records: Sequence[Record]) -> Components:
    encoder = UtteranceEncoder.for_training(job)
    table, rows = _table(records)
    encodings = encoder.tokenize(table.texts, table.left).encodings
    vectors = cached_vectors(encoder, encodings, job.texts, "fp32", job.report_phase("encoding"))
    return _sides(np.asarray(vectors, dtype=np.float64), rows)


def _ridge(network: AdemNetwork, job: FitJob, parts: Components, part: _Part) -> FinetuneResult:
    """Solve for both matrices together with each penalty of the grid; the best on the held-out part wins.

    If the held-out part was taken from the training data, the chosen penalty is solved for again with all data.
    """
    import time

    began = time.monotonic()
    taught, held = np.flatnonzero(~part.held), np.flatnonzero(part.held)
    asked = job.options["l2"]
    grid = GRID if asked is None else (float(cast(float, asked)),)
    readable = _readable(network, parts)
    log: list[Mapping[str, Any]] = []
    for number, weight in enumerate(grid):
        change = _solved(network, readable, part, taught, weight)
        error = _error(network, readable, part, held, change)
        # Without steps: these are errors of penalties, not the curve of a loss.
        log.append({"l2": weight, "dev_loss": error})
        job.report(TrainingProgress(number + 1, len(grid), phase="training", metrics={"loss": error}))
    best = min(log, key=lambda row: float(row["dev_loss"]))
    rows = np.arange(len(part.labels)) if part.cut_off else taught
    size = network.M.shape[0]
    change = _solved(network, readable, part, rows, float(best["l2"]))
    for matrix, delta in zip((network.M, network.N), change.reshape(2, size, size), strict=True):
        matrix.data += torch.from_numpy(delta).to(matrix.dtype)
    metrics = {"loss": float(best["dev_loss"]), "l2": float(best["l2"])}
    return FinetuneResult(tuple(log), metrics, len(grid), time.monotonic() - began)


def _readable(network: AdemNetwork, parts: Components) -> Components:
    result = network.readable(*(torch.from_numpy(side) for side in parts))
    return Components(*(side.numpy() for side in result))


def _start(network: AdemNetwork, parts: Components) -> Floats:
    """(n,) the products with both matrices as identity."""
    return np.asarray(((parts.c + parts.r) * parts.y).sum(axis=1))


def _solved(network: AdemNetwork, parts: Components, part: _Part, rows: Any, weight: float) -> Floats:
    """The change of both matrices, concatenated."""
    own = parts.take(rows)
    wanted = part.labels[rows] * float(network.beta) + float(network.alpha) - _start(network, own)
    return solve(own, wanted, weight)


def _error(network: AdemNetwork, parts: Components, part: _Part, rows: Any, change: Floats) -> float:
    own = parts.take(rows)
    products = _start(network, own) + features(own) @ change
    return float(np.mean(((products - float(network.alpha)) / float(network.beta) - part.labels[rows]) ** 2))


def _gradient(network: AdemNetwork, job: FitJob, parts: Components, part: _Part) -> FinetuneResult:
    device = resolve_device(job.text("train_device"))
    torch.nn.Module.to(network, device)
    sides = [_tensor(network, side) for side in parts]
    labels = torch.from_numpy(part.labels).to(device, torch.float32)
    taught, held = np.flatnonzero(~part.held), np.flatnonzero(part.held)
    steps = -(-len(taught) // job.integer("batch_size"))

    def compute_loss(network: AdemNetwork, rows: Any) -> torch.Tensor:
        return cast(torch.Tensor, network(*(side[rows] for side in sides), labels=labels[rows])["loss"])

    def losses(epoch: int) -> Iterator[torch.Tensor]:
        for rows in np.array_split(job.rng(f"epoch:{epoch}").permutation(taught), steps):
            yield compute_loss(network, rows)

    def evaluate(network: Network) -> Mapping[str, float]:
        value = network(*(side[held] for side in sides))["value"]
        return {"loss": float(((value - labels[held]) ** 2).mean())}

    loop = train_loop(network, losses, make_loop_settings(job), job, steps_per_epoch=steps, evaluate=evaluate)
    torch.nn.Module.to(network, "cpu")
    return loop
