"""Training and scoring of all unreferenced evaluators: from conversations to samples, batches, losses and scores.

The networks are in modules of their own; training data are in `training.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import torch

from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, Partial, Progress
from scoring.ml.encodings import Encodings, Ints
from scoring.ml.engine import resolve_device
from scoring.ml.evaluators.unreferenced import conversations
from scoring.ml.evaluators.unreferenced.losses import check_loss
from scoring.ml.evaluators.unreferenced.network import Store, TokenStore, UnreferencedNetwork, VectorStore
from scoring.ml.evaluators.unreferenced.outputs import collect_outputs, join_groups
from scoring.ml.evaluators.unreferenced.planning import check, get_sets
from scoring.ml.evaluators.unreferenced.samples import TextTable
from scoring.ml.evaluators.unreferenced.tools import get_tools
from scoring.ml.evaluators.unreferenced.training import Epochs, missing_kinds, network_sizes, prepare_texts
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder, pad_contexts
from scoring.ml.signature import SignatureField
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.frame import TrainingResult, make_artefact, make_loop_settings
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.training.loop import train_loop
from scoring.ml.types import Record

#: Records scored at a time: bounds the memory of their vectors.
BLOCK = 8192
#: Replies compared at a time.
ROWS = 2048


class UnreferencedEvaluator(TrainedEvaluator):
    """Base of MAUDE and its rivals: learns from conversations only, scores a reply by its context only."""

    network_class: ClassVar[type[UnreferencedNetwork]]

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        """Counts and steps; see `planning.check`. Raises `InvalidOption` for options the loss does not read."""
        check_loss(job)
        return check(job, reads=cls.network_class.reads)

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        """Negatives, vectors, then the network; everything made on the way is kept in the job's folder."""
        sets = get_sets(job)
        prepared = prepare_texts(cls.network_class, job, sets, get_tools(job))
        torch.manual_seed(job.torch_seed("network"))
        network = cls.network_class.from_source(None, network_sizes(job))
        device = resolve_device(job.text("train_device"))
        torch.nn.Module.to(network, device)
        training = Epochs(job, prepared)
        settings = make_loop_settings(job, max_grad_norm=job.number("max_grad_norm"))
        loop = train_loop(
            network, lambda epoch: training.losses(network, epoch), settings, job,
            steps_per_epoch=training.steps, evaluate=training.evaluate,
        )  # fmt: skip
        torch.nn.Module.to(network, "cpu")
        examples = {
            "conversations": len(sets.train),
            "true replies": len(prepared.train),
            "held-out true replies": len(prepared.dev),
            "distinct texts": prepared.n_texts,
        }
        learned = TrainingResult(
            network,
            loop,
            examples,
            join_groups(conversations.groups_in(sets.train), collect_outputs(job, sets, "train")),
            join_groups(conversations.groups_in(sets.dev), collect_outputs(job, sets, "dev")),
            state={"negatives": list(prepared.train.kinds)},
            notes=(*sets.notes, *missing_kinds(prepared.train), *cls.limits),
            embedded=False,
        )
        return make_artefact(job, learned)

    #: Limits that the card names.
    limits: ClassVar[tuple[str, ...]] = (
        "It was not trained on human judgements: it separates true replies from corrupted ones and from replies of "
        "other dialogues. The published MAUDE agreed with people on PersonaChat-like dialogues only (DialEvalMetrics, "
        "2021); trust it only on data where it was compared with human ratings.",
        "Scores crowd near 1 and 0: compare ranks, not distances.",
    )

    @classmethod
    def fixture_records(cls, job: FitJob) -> Sequence[Record]:
        """Outputs where there are any, else true replies of the conversations."""
        result = super().fixture_records(job)
        return result or conversations.reply_records(get_sets(job).dev)

    @cached_property
    def utterances(self) -> UtteranceEncoder:
        """The frozen encoder."""
        return UtteranceEncoder.for_scoring(self)

    @property
    def judge(self) -> UnreferencedNetwork:
        """The network, on its device."""
        return cast(UnreferencedNetwork, self.network)

    def own_fields(self) -> list[SignatureField]:
        fields = []
        if "pooling" in self.settings:
            fields.append(SignatureField("pool", "pool", str(self.settings["pooling"])))
        return [
            *fields,
            SignatureField("len", "len", str(self.longest)),
            SignatureField("neg", "neg", str(len(cast("list[str]", self.artefact.state["negatives"])))),
            SignatureField("case", "c", "lc" if self.settings["lower_case"] else "mixed"),
        ]

    def prepared(self, text: str) -> str:
        """A text as the network reads it."""
        return conversations.prepare(text, bool(self.settings["lower_case"]))

    def undefined(self, record: Record) -> str:
        lower = bool(self.settings["lower_case"])
        if self.settings["inputs"] == "text" or conversations.context_turns(record, lower):
            return ""
        return "no context: there is nothing the text answers"

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        values, cut = np.empty(len(records)), np.zeros(len(records), dtype=np.bool_)
        for start in range(0, len(records), BLOCK):
            block = records[start : start + BLOCK]

            def tick(done: int, total: int, start: int = start, n: int = len(block)) -> None:
                progress(start + done * n // max(total, 1), len(records))

            values[start : start + len(block)], cut[start : start + len(block)] = self._measure_block(block, tick)
        return Partial(values, cut)

    def _measure_block(
        self, records: Sequence[Record], tick: Callable[[int, int], object]
    ) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
        lower, inputs = bool(self.settings["lower_case"]), self.settings["inputs"]
        number: dict[tuple[str, ...], int] = {}
        table = TextTable()
        owner, replies = np.empty(len(records), dtype=np.int64), np.empty(len(records), dtype=np.int64)
        for place, record in enumerate(records):
            turns = ("",) if inputs == "text" else conversations.context_turns(record, lower)
            owner[place] = number.setdefault(turns, len(number))
            replies[place] = table.add("" if inputs == "context" else conversations.prepare(record.text, lower))
        flat = self.network_class.flat
        contexts = [
            [table.add(conversations.flatten(turns), left=True)] if flat else [table.add(turn) for turn in turns]
            for turns in number
        ]
        tokenized = self.utterances.tokenize(table.texts, table.left)
        lengths = np.array([len(rows) for rows in contexts], dtype=np.int64)
        rows = np.array([row for context in contexts for row in context], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        was_cut = np.logical_or.reduceat(tokenized.truncated[rows], starts)
        encodings = tokenized.encodings
        if self.settings.get("pad_attended"):
            pad = self.utterances.tokenizing.pad_id
            encodings, rows = pad_contexts(encodings, rows, starts, lengths, pad)
        store = self._store(encodings, tick)
        with torch.inference_mode():
            c = self._context_vectors(store, rows, starts, lengths)
            values = self._compare(store, c, owner, replies)
        tick(1, 1)
        return values, was_cut[owner] | tokenized.truncated[replies]

    def _store(self, encodings: Encodings, tick: Callable[[int, int], object]) -> Store:
        if self.network_class.reads == "tokens":
            return TokenStore(encodings, self.device)
        return VectorStore(self.utterances.vectors(encodings, tick), self.device)

    def _context_vectors(self, store: Store, rows: Ints, starts: Ints, lengths: Ints) -> torch.Tensor:
        """(contexts, size), computed in batches of like length."""
        size = store.encodings.lengths[rows] if isinstance(store, TokenStore) else lengths
        order = np.argsort(size, kind="stable")
        parts: list[torch.Tensor] = []
        for start in range(0, len(order), ROWS // 8):
            places = order[start : start + ROWS // 8]
            flat = np.concatenate([rows[starts[p] : starts[p] + lengths[p]] for p in places])
            n = torch.from_numpy(lengths[places])
            owner = torch.arange(len(places), device=self.device)
            parts.append(self.judge.chosen_contexts(store.take(flat), n, owner, n.to(self.device)))
        result = torch.empty_like(torch.cat(parts))
        result[torch.from_numpy(order).to(self.device)] = torch.cat(parts)
        return result

    def _compare(self, store: Store, c: torch.Tensor, owner: Ints, replies: Ints) -> Floats:
        """(records,) scores, in batches of like length."""
        order = np.argsort(store.encodings.lengths[replies], kind="stable") if isinstance(store, TokenStore) else None
        places = np.arange(len(replies)) if order is None else order
        values = np.empty(len(replies))
        for start in range(0, len(places), ROWS):
            part = places[start : start + ROWS]
            distinct, inverse = np.unique(replies[part], return_inverse=True)
            h = self.judge.replies(store.take(distinct))[torch.from_numpy(inverse).to(self.device)]
            logits = self.judge.logits(c[torch.from_numpy(owner[part]).to(self.device)], h)
            values[part] = torch.sigmoid(logits.double()).cpu().numpy()
        return values
