"""The smallest learned evaluator, with its encoder or on fixed features: it shows the common framework at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from scoring.ml.artefact import Artefact
from scoring.ml.base import Partial, Progress
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.engine import Batch, Engine
from scoring.ml.errors import TrainingDataError
from scoring.ml.layers.pooling import pool
from scoring.ml.network import Network
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.finetune import FinetuneSettings, finetune
from scoring.ml.training.gold import choose_aspect, collect_rated_outputs
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.training.loop import LoopSettings, train_loop
from scoring.ml.training.record import TrainingRecord, data_hash, library_versions, list_groups
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating, Record
from tests.scoring.ml.training.toy_entry import ENTRY

__all__ = ["ENTRY", "Toy", "ToyNetwork", "toy_data"]


class ToyNetwork(Network):
    def build(self, network: dict[str, Any], width: int) -> None:
        self.head = torch.nn.Linear(width or 1, 1)
        self.dropout = torch.nn.Dropout(0.2)

    def forward(self, labels: torch.Tensor | None = None, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.encoder is None:
            vectors = inputs["features"]
        else:
            vectors = pool(self.hidden(**inputs), inputs["attention_mask"], "mean")
        value = self.head(self.dropout(vectors)).squeeze(-1)
        if labels is None:
            return {"value": value}
        return {"value": value, "loss": self.note_loss(((value - labels) ** 2).mean())}


class Shuffled:
    """Batches of four rows in an order drawn for each epoch."""

    def __init__(self, ids: torch.Tensor, mask: torch.Tensor, labels: torch.Tensor, job: FitJob) -> None:
        self.ids, self.mask, self.labels, self.job = ids, mask, labels, job
        self.order = np.arange(len(labels))

    def __len__(self) -> int:
        return (len(self.labels) + 3) // 4

    def set_epoch(self, epoch: int) -> None:
        self.order = self.job.rng(f"epoch:{epoch}").permutation(len(self.labels))

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        rows = torch.from_numpy(self.order[number * 4 : number * 4 + 4])
        return {"input_ids": self.ids[rows], "attention_mask": self.mask[rows], "labels": self.labels[rows]}


class Toy(TrainedEvaluator):
    network_class = ToyNetwork

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        aspect = choose_aspect(job.name, job.train, job.aspect, ("ratings",))
        n = len(collect_rated_outputs(job.train, aspect).records)
        if n < 4:
            raise TrainingDataError(job.name, f"{n} rated outputs are too few: rate at least 4")
        return Plan({"rated outputs": n}, -(-n // 4) * job.integer("epochs"), None)

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        aspect = choose_aspect(job.name, job.train, job.aspect, ("ratings",))
        rated = collect_rated_outputs(job.train, aspect)
        labels = torch.tensor(rated.means(), dtype=torch.float32)
        torch.manual_seed(job.torch_seed("network"))
        frozen = job.flag("frozen")
        network = ToyNetwork.from_source(None if frozen else job.encoder, {})
        if frozen:
            features = torch.tensor([[len(r.text) / 10] for r in rated.records])

            def losses(epoch: int) -> Iterator[torch.Tensor]:
                for rows in np.array_split(job.rng(f"epoch:{epoch}").permutation(len(labels)), 3):
                    yield network(features=features[rows], labels=labels[rows])["loss"]

            rate = max(0.05, job.number("learning_rate"))
            settings = LoopSettings(rate, job.integer("epochs"), max_steps=job.optional_integer("max_steps"))
            found = train_loop(network, losses, settings, job, steps_per_epoch=3, evaluate=lambda _: {"loss": 1.0})
        else:
            rows = [encoding.ids for encoding in PairTokenizer(job.encoder).records(rated.records).encodings]
            longest = max(len(row) for row in rows)
            ids = torch.tensor([[*row, *([0] * (longest - len(row)))] for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
            batches = Shuffled(ids, mask, labels, job)

            def dev_loss(net: Network) -> dict[str, float]:
                return {"loss": float(net(input_ids=ids, attention_mask=mask, labels=labels)["loss"])}

            limit = job.optional_integer("max_steps")
            chosen = FinetuneSettings(job.number("learning_rate"), job.integer("epochs"), max_steps=limit, device="cpu")
            found = finetune(network, batches, chosen, job, evaluate=dev_loss)
        record = TrainingRecord(
            job.train.name, data_hash(job.train), {"rated outputs": len(labels)}, list_groups(job.train),
            list_groups(job.dev), rated.simulated, found.seconds, found.steps, found.metrics,
            versions=library_versions(), log=found.log,
        )  # fmt: skip
        return Artefact(
            job.name, job.profile, job.seed, (aspect,), job.options, {}, record, network,
            None if frozen else job.encoder, embedded=not frozen,
        )  # fmt: skip

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        network = self.network
        if network.encoder is None:
            with torch.inference_mode():
                features = torch.tensor([[len(r.text) / 10] for r in records])
                return Partial(network(features=features)["value"].double().numpy())
        source = self.artefact.encoder
        assert source is not None
        tokenizer = PairTokenizer(source)
        tokenized = tokenizer.records(records)

        def forward(batch: Batch) -> torch.Tensor:
            value: torch.Tensor = network(input_ids=batch.input_ids, attention_mask=batch.attention_mask)["value"]
            return value

        values = Engine(device=self.device, pad_id=tokenizer.pad_id).map(tokenized.encodings, forward)
        return Partial(values.double().numpy(), tokenized.truncated)


WORDS = ["cat", "dog", "sat", "on", "mat", "tea", "you", "like", "no", "yes", "ran"]


def toy_data(n_items: int = 12, seed: int = 5) -> Dataset:
    """Two systems; the rating is the number of words, with a little noise."""
    rng = np.random.default_rng(seed)
    items, outputs, ratings = [], [], []
    for number in range(n_items):
        item = f"i{number}"
        items.append(Item(item, context=(" ".join(rng.choice(WORDS, 3)),), references=("the cat",), group=f"g{number}"))
        for system in ("a", "b"):
            text = " ".join(rng.choice(WORDS, int(rng.integers(1, 6))))
            outputs.append(Output(item, system, text))
            ratings.append(Rating("r1", "fluency", float(len(text.split())), item, system, simulated=True))
    return Dataset(
        "toy", aspects=(Aspect("fluency", 1, 6),), items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings)
    )
