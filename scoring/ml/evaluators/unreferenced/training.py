"""Training data of an unreferenced evaluator: samples over one store of texts, and the batches of each epoch.

`samples.py` draws the samples of an epoch; the evaluator is in `frame.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import torch

from evalapp.translation import gettext as _
from scoring.ml.encoders.kept import cached_vectors
from scoring.ml.encodings import Encodings, Ints
from scoring.ml.engine import resolve_device
from scoring.ml.evaluators.unreferenced.conversations import Conversation, Sets, prepare
from scoring.ml.evaluators.unreferenced.network import Examples, Store, TokenStore, UnreferencedNetwork, VectorStore
from scoring.ml.evaluators.unreferenced.outputs import collect_outputs
from scoring.ml.evaluators.unreferenced.samples import (
    KINDS,
    GeneratedTexts,
    Replies,
    SampleOptions,
    Samples,
    TextTable,
    cut_batches,
    draw_replies,
    make_samples,
    select_contexts,
)
from scoring.ml.evaluators.unreferenced.tools import Tools, make_texts
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder, pad_contexts
from scoring.ml.network import Network
from scoring.ml.training.job import FitJob, TrainingProgress

#: Texts that are tokenised between two reports.
LOT = 8192
SIZES = (
    "down", "hidden", "layers", "bidirectional", "pool_zeros", "difference", "embedding", "cell", "decoder", "dropout",
    "loss", "margin", "inputs",
)  # fmt: skip


@dataclass(frozen=True)
class TrainingTexts:
    """Both parts as samples over one store of texts."""

    train: Samples
    dev: Samples
    store: Store
    n_texts: int


def network_sizes(job: FitJob) -> dict[str, Any]:
    """Return the sizes of the network of a `job`."""
    sizes: dict[str, Any] = {name: job.options[name] for name in SIZES if name in job.options}
    return {**sizes, "vector": job.encoder.width, "vocabulary": int(job.encoder.config.get("vocab_size", 0))}


def prepare_texts(network: type[UnreferencedNetwork], job: FitJob, sets: Sets, tools: Tools) -> TrainingTexts:
    """Return both `sets` of a `job` as samples over one store of texts, which the `network` reads; `tools` make further
    texts."""
    table = TextTable()
    kinds = KINDS[job.text("negatives")]
    parts: list[Samples] = []
    for name, conversations in (("train", sets.train), ("dev", sets.dev)):
        made = _made_texts(job, conversations, tools, kinds, name)
        made = replace(made, outputs=collect_outputs(job, sets, name))
        parts.append(
            make_samples(
                conversations,
                table,
                SampleOptions(
                    kinds,
                    flat=network.flat,
                    variants=job.integer("variants") if name == "train" else 1,
                    keep_identical=job.flag("keep_identical"),
                ),
                rng=lambda purpose, name=name: job.rng(f"{name}:{purpose}"),  # type: ignore[misc]
                made=made,
                tick=job.report_phase(f"breaking replies ({name})"),
            )
        )
    store, parts = _make_store(network, job, table, parts)
    return TrainingTexts(parts[0], parts[1], store, len(table))


def _made_texts(
    job: FitJob, conversations: Sequence[Conversation], tools: Tools, kinds: Sequence[str], name: str
) -> GeneratedTexts:
    """Replies of the generator and back-translations for up to `pool_size` places of the conversations."""
    keys = [(number, turn) for number, one in enumerate(conversations) for turn in range(one.first, len(one.turns))]
    size = job.integer("pool_size") if name == "train" else job.integer("pool_size") // 4
    chosen = np.sort(job.rng(f"{name}:pool").permutation(len(keys))[: max(size, 1)])
    places = [keys[int(place)] for place in chosen]

    def kept(texts: Sequence[str]) -> dict[tuple[int, int], str]:
        prepared = (prepare(text, job.flag("lower_case")) for text in texts)
        return {place: text for place, text in zip(places, prepared, strict=True) if text}

    generated: dict[tuple[int, int], str] = {}
    if tools.generate is not None and "model_false" in kinds:
        contexts = ["\n".join(conversations[number].turns[:turn]) for number, turn in places]
        generated = kept(make_texts(tools.generate, contexts, job, f"generating replies ({name})"))
    back: dict[tuple[int, int], str] = {}
    if tools.back_translate is not None and ("rand_back" in kinds or job.number("paraphrased") > 0):
        replies = [conversations[number].turns[turn] for number, turn in places]
        back = kept(make_texts(tools.back_translate, replies, job, f"translating back ({name})"))
    return GeneratedTexts(generated, back)


def _make_store(
    network: type[UnreferencedNetwork], job: FitJob, table: TextTable, parts: Sequence[Samples]
) -> tuple[Store, list[Samples]]:
    """The texts as vectors or tokens, and the samples with rows among them."""
    encoder = UtteranceEncoder.for_training(job)
    device = resolve_device(job.text("train_device"))
    encodings = _tokenized(encoder, table, job)
    result = list(parts)
    if network.reads == "tokens":
        return TokenStore(encodings, device), result
    if job.options.get("pad_attended"):
        for place, part in enumerate(parts):
            encodings, rows = pad_contexts(
                encodings, part.context_rows, part.starts, part.lengths, encoder.tokenizing.pad_id
            )
            starts = np.cumsum(part.lengths) - part.lengths
            result[place] = replace(part, context_rows=rows, starts=starts, shared=False)
    elif job.options.get("bidirectional"):
        result = [replace(part, shared=False) for part in parts]

    dtype: Literal["fp16", "fp32"] = "fp32" if job.text("cache_dtype") == "fp32" else "fp16"
    vectors = cached_vectors(encoder, encodings, job.texts, dtype, job.report_phase("encoding"))
    return VectorStore(vectors, device), result


def _tokenized(encoder: UtteranceEncoder, table: TextTable, job: FitJob) -> Encodings:
    lots = []
    for start in range(0, len(table), LOT):
        end = min(start + LOT, len(table))
        lots.append(encoder.tokenize(table.texts[start:end], table.left[start:end]).encodings)
        job.report(TrainingProgress(end, len(table), phase="reading texts"))
    return Encodings.join(lots)


def missing_kinds(samples: Samples) -> list[str]:
    """Return notes on kinds of false replies that were not available for the `samples`."""
    notes = []
    if "rand_utt" in samples.kinds and "model_false" not in samples.kinds:
        notes.append(_("Neither a generator nor own_outputs: it saw no replies of models as false ones."))
    if "rand_utt" in samples.kinds and "rand_back" not in samples.kinds:
        notes.append(_("No translators and no paraphraser were named: it saw no replies in other words."))
    return notes


class Epochs:
    """The losses of each epoch, and the metrics on the held-out part."""

    def __init__(self, job: FitJob, prepared: TrainingTexts) -> None:
        self.job, self.prepared = job, prepared
        shared = prepared.train.shared and job.options.get("batches") == "conversations"
        self.whole = shared
        self.sort = not job.options.get("pool_zeros", False)
        self.batch_size = job.integer("batch_size")
        self.steps = max(1, -(-len(prepared.train) // self.batch_size))
        self.dev_replies = self._drawn(prepared.dev, "dev", 0.0)

    def losses(self, network: UnreferencedNetwork, epoch: int) -> Iterator[torch.Tensor]:
        """The loss of each batch of an epoch."""
        samples = self.prepared.train
        replies = self._drawn(samples, f"epoch:{epoch}", self.job.number("paraphrased"))
        order = self.job.rng(f"order:{epoch}")
        for examples in cut_batches(samples, self.batch_size, order, whole=self.whole, sort=self.sort):
            yield self._run(network, samples, replies, examples)["loss"]

    def evaluate(self, network: Network) -> Mapping[str, float]:
        """Metrics on the held-out part: loss, mean score of true and of false replies, and the share of false replies
        that score below their true one."""
        samples, replies = self.prepared.dev, self.dev_replies
        losses, sizes, parts, order = [], [], [], []
        batches = cut_batches(samples, self.batch_size, self.job.rng("dev:order"), whole=self.whole, sort=True)
        for number, examples in enumerate(batches):
            result = self._run(cast(UnreferencedNetwork, network), samples, replies, examples)
            losses.append(float(result["loss"]))
            sizes.append(self._counted(replies, examples))
            parts.append(result["logits"].float().cpu().numpy())
            order.append(examples)
            self.job.report(TrainingProgress(number + 1, len(batches), phase="evaluating"))
        scores = 1 / (1 + np.exp(-np.concatenate(parts).astype(np.float64)))
        counted = replies.weights[np.concatenate(order)] > 0
        false = counted & (replies.targets < 0.5)
        true = counted & (replies.targets > 0.5)
        below = (scores < scores[:, :1]) & false
        return {
            "loss": float(np.average(losses, weights=sizes)),
            "true": float(scores[true].mean()),
            "false": float(scores[false].mean()) if false.any() else float("nan"),
            "below": float(below.sum() / false.sum()) if false.any() else float("nan"),
        }

    def _counted(self, replies: Replies, examples: Ints) -> float:
        """The total weight of the replies that the loss averages: hinge averages over false replies."""
        weights = replies.weights[examples]
        if self.job.text("loss") == "hinge":
            weights = weights[:, replies.targets < 0.5]
        return float(weights.sum())

    def _drawn(self, samples: Samples, purpose: str, paraphrased: float) -> Replies:
        weight = self.job.options["positive_weight"]
        return draw_replies(
            samples,
            self.job.rng(f"replies:{purpose}"),
            positive_weight=None if weight is None else float(cast(float, weight)),
            paraphrased=paraphrased,
            keep_identical=self.job.flag("keep_identical"),
        )

    def _run(
        self, network: UnreferencedNetwork, samples: Samples, replies: Replies, examples: Ints
    ) -> dict[str, torch.Tensor]:
        store = self.prepared.store
        device = store.device
        contexts = select_contexts(samples, examples)
        distinct, places = np.unique(replies.rows[examples], return_inverse=True)
        return network(
            Examples(
                store.take(contexts.rows),
                torch.from_numpy(contexts.lengths),
                torch.from_numpy(contexts.owner).to(device),
                torch.from_numpy(contexts.position).to(device),
            ),
            store.take(distinct),
            torch.from_numpy(places.reshape(len(examples), -1)).to(device),
            torch.from_numpy(replies.targets).to(device),
            torch.from_numpy(replies.weights[examples]).to(device),
        )
