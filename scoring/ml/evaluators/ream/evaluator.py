"""Scoring with `ream`: reliability of reference sets, selection of references, and the plan of a training."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from evalapp.stats.agreement.normalise import RatingMethod
from evalapp.translation import gettext as _
from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, PairEvaluator, Partial, Progress, Query, get_references
from scoring.ml.errors import InvalidOption, InvalidRecords, ScoringError, TrainingDataError
from scoring.ml.evaluators.ream import contrast, training
from scoring.ml.evaluators.ream.annotate import Annotation, Search, choose_references
from scoring.ml.evaluators.ream.gold import TEST_SIZES, count_sets
from scoring.ml.evaluators.ream.network import ReamNetwork
from scoring.ml.evaluators.ream.report import ReliabilityReport, measure_preference, report
from scoring.ml.evaluators.ream.trainer import ReamTraining, build_metric, check_metric_options
from scoring.ml.evaluators.ream.vectors import PairEncoder, Reading, make_encoder, resolve_layer
from scoring.ml.network import check_architecture
from scoring.ml.signature import SignatureField, text_hash
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.checks import describe_truncation
from scoring.ml.training.frame import count_steps, probe_rows
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.types import Dataset, Item, Record

#: Pairs of references whose attention is computed at once.
MOST_PAIRS = 1 << 16


class Ream(TrainedEvaluator):
    """s(q, R) in (-1, 1): the predicted Pearson correlation, over answers to query q, of a multi-reference metric with
    references R and human ratings. `score` is that metric with the references that it selects from the item's (or all).

    Gao et al. 2021; docs/explanation/evaluators/ream.md.
    """

    network_class = ReamNetwork
    component_names = ("reliability", "n_references")

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        aspect = training.find_aspect(job)
        queries = contrast.find_queries(job)
        check_metric_options(job)
        layer = resolve_layer(job.encoder, job.integer("layer"))
        if job.flag("tune_encoder"):
            check_architecture(job.encoder)
            if layer != job.encoder.n_layers:
                raise InvalidOption(job.name, "layer", _("must be -1 where the encoder learns"))
            if job.text("pairing") != "joint":
                raise InvalidOption(job.name, "pairing", _("must be joint where the encoder learns"))
        if job.encoder.width % job.integer("heads"):
            message = _("must divide the encoder's width, %(width)s")
            raise InvalidOption(job.name, "heads", message, width=job.encoder.width)
        items = training.find_items(job, aspect)
        sizes = training.parse_sizes(job)
        pairs = sum(len(item.references) + job.integer("foreign") for item in (*items, *queries))
        sets = sum(count_sets(1, len(item.references), {*sizes}, job.integer("combinations")) for item in items)
        if not sets and aspect is not None:
            message = _("no item has %(sizes)s references, the least of sizes=%(asked)s: add references")
            raise TrainingDataError(job.name, message, sizes=min(sizes), asked=job.text("sizes"))
        steps = count_steps(job, sets) + job.integer("pretrain") * -(-len(queries) // job.integer("batch_size"))
        few = sum(len(item.outputs) < 6 for item in items)
        notes = []
        if few:
            message = _("%(few)s items have fewer than 6 rated outputs: their reliabilities are very noisy")
            notes.append(message % {"few": few})
        n_empty = sum(not text.strip() for item in items for text in item.outputs)
        if n_empty:
            message = _("%(n_empty)s rated outputs are empty: they have the metric's worst score")
            notes.append(message % {"n_empty": f"{n_empty:,}"})
        reader = make_encoder(job.encoder, Reading.from_options(job.encoder, job.options), device="cpu")
        listed = items or queries
        some = [listed[place] for place in probe_rows(len(listed))]
        truncated = reader.find_truncated([replace(item.query, text=item.references[0]) for item in some])
        notes += describe_truncation(truncated, "pairs of query and reference", f"{reader.max_length} tokens")
        examples = {"items": len(items), "reference sets": sets, "pairs to encode": pairs}
        examples |= {"queries for contrast": len(queries)} if queries else {}
        return Plan(examples, steps, notes=tuple(notes), by_trials=True)

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        return ReamTraining(job, training.find_aspect(job)).run()

    @cached_property
    def metric(self) -> PairEvaluator:
        """The multi-reference metric whose reliability is predicted, for the language of the training data."""
        device = str(self.options["device"])
        return build_metric(self.settings, device, str(self.artefact.state.get("lang", "")))

    @cached_property
    def pair_encoder(self) -> PairEncoder:
        """Computes vectors of a query and a reference; caches the last 20,000 pairs."""
        return make_encoder(
            self.source,
            Reading.from_options(self.source, self.settings),
            device=self.device,
            batch_tokens=self.batch_tokens,
            encoder=self.network.encoder if self.settings["tune_encoder"] else None,
        )

    def own_fields(self) -> list[SignatureField]:
        settings = self.settings
        return [
            SignatureField("metric", "m", str(settings["metric"])),
            SignatureField("mw", "mw", text_hash([self.metric.signature])),
            *([SignatureField("pairing", "pg", "separate")] if settings.get("pairing") == "separate" else []),
            SignatureField("layer", "L", str(settings["layer"])),
            SignatureField("pool", "pl", str(settings["pooling"])),
            SignatureField("gat", "g", f"{settings['attention_kind']}x{settings['heads']}"),
            SignatureField("ml", "ml", str(settings["max_length"])),
            SignatureField("use", "u", str(self.options["use"])),
        ]

    def reliability(
        self, context: Sequence[str] | str, references: Sequence[str], *, source: str | None = None
    ) -> float:
        """s(q, R) of a query (a text or dialogue turns) and its references, independent of their order. Raises
        `ScoringError` without references."""
        turns = (context,) if isinstance(context, str) else tuple(context)
        return float(self.reliabilities(Record("", context=turns, source=source), [references])[0])

    def reliabilities(self, query: Record, sets: Sequence[Sequence[str]]) -> Floats:
        """(n,) s(q, R) of multiple reference sets for a query; the text of `query` is ignored. Texts read before need
        no pass of the encoder. Blank and repeated references do not count."""
        if any(isinstance(texts, str) for texts in sets):
            raise InvalidRecords("references are a list of texts, not one text")
        cleaned = [list(dict.fromkeys(text for text in texts if text.strip())) for texts in sets]
        if any(not texts for texts in cleaned):
            raise ScoringError("a reliability needs at least one reference that is not blank")
        texts = list(dict.fromkeys(text for each in cleaned for text in each))
        place = {text: row for row, text in enumerate(texts)}
        vectors, _ = self.pair_encoder.vectors([replace(query, text=text, references=()) for text in texts])
        return self._read(vectors, [[place[text] for text in each] for each in cleaned])

    def annotate(
        self,
        items: Sequence[Item],
        candidates: Sequence[Sequence[str]],
        *,
        start: str = "one",
        seed: int | None = None,
        progress: Progress | None = None,
        **search: Any,
    ) -> list[Annotation]:
        """The references to select from each item's candidates, with the trace of every decision (Gao et al. 2021).

        `search`: `most=10`, `min_gain=0.0` and `greedy=False`, as in `Search`. `start`: `one` random reference of the
        item (the paper) or `all`. Raises ValueError unless there is a list of candidates for each item.
        """
        if len(items) != len(candidates):
            raise ValueError(f"{len(items)} items but {len(candidates)} lists of candidates")
        result = []
        for number, (item, texts) in enumerate(zip(items, candidates, strict=True)):
            rng = _item_rng(self.artefact.seed if seed is None else seed, item.id)
            own = [text for text in item.references if text.strip()]
            if start == "one" and own:
                own = [own[int(rng.integers(len(own)))]]
            query = item.make_record()

            def read(ahead: Sequence[str], query: Record = query) -> None:
                self.pair_encoder.vectors([replace(query, text=text) for text in ahead])

            def judge(sets: Sequence[Sequence[str]], query: Record = query) -> list[float]:
                return cast("list[float]", self.reliabilities(query, sets).tolist())

            result.append(choose_references(item.id, own, texts, judge, Search(**search), rng=rng, read=read))
            if progress is not None:
                progress(number + 1, len(items))
        return result

    def report(
        self, data: Dataset, *, sizes: Sequence[int] = TEST_SIZES, per_size: int = 1, seed: int | None = None
    ) -> ReliabilityReport:
        """Predicted against gold reliability on reference sets of other data, by default one set of each of the paper's
        test sizes per item; sizes that an item cannot fill are left out.

        Raises `ScoringError` if no set of the data has a gold reliability.
        """
        drawn = self.artefact.seed if seed is None else seed
        if not self.aspects:
            raise ScoringError("it has learned by contrast alone, no ratings of an aspect; ask for its preference")
        method = cast(RatingMethod, str(self.settings["ratings"]))
        items = training.query_items(data, self.aspects[0], method)
        with tempfile.TemporaryDirectory(prefix="evalapp-report-") as folder:
            job = FitJob(self.entry, data, None, self.artefact.profile, self.settings, drawn, Path(folder))
            prepared = training.Preparer(job, self.metric, self.pair_encoder).prepare(items, "test") if items else None
            gold = prepared.gold if prepared else []
            samples, without = training.draw_samples(gold, sizes, per_size, job.rng("test sets"))
            if prepared is None or not samples:
                wanted = ", ".join(map(str, sizes))
                raise ScoringError(
                    f"no set of {wanted} references has a reliability here: it takes three or more outputs of an item "
                    f"that people rated differently for {self.aspects[0]}, and as many references"
                )
            return report(self.network, prepared, samples, job.rng("test perturbations"), without)

    def preference(self, data: Dataset, *, seed: int | None = None) -> dict[str, float]:
        """How often it prefers a set of an item's own references to the same set with an answer to another query, by
        kind, `add` and `replace`; three sets of each item of other `data`. No ratings are needed.

        Raises `ScoringError` for fewer than two items with references.
        """
        with tempfile.TemporaryDirectory(prefix="evalapp-preference-") as folder:
            drawn = self.artefact.seed if seed is None else seed
            job = FitJob(self.entry, data, None, self.artefact.profile, self.settings, drawn, Path(folder))
            queries = contrast.list_queries(data, job.rng("queries"))
            if len(queries) < 2:
                raise ScoringError("a preference needs two items with a query and references")
            prepared = training.Preparer(job, self.metric, self.pair_encoder).prepare(queries, "preference")
            return measure_preference(self.network, prepared, job.rng("preference"))

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        groups: dict[Any, list[int]] = {}
        for row, record in enumerate(records):
            groups.setdefault((record.context, record.source, get_references(record)), []).append(row)
        queries, reliabilities, sizes = [], [], []
        truncated = np.zeros(len(records), dtype=np.bool_)
        for done, rows in enumerate(groups.values()):
            first = records[rows[0]]
            kept, value = self._kept(first)
            pairs = [replace(first, text=text, references=()) for text in kept]
            truncated[rows] = self.pair_encoder.vectors(pairs)[1].any()
            queries.append(Query([records[row].text for row in rows], kept))
            reliabilities.append(value)
            sizes.append(len(kept))
            progress(done, len(groups))
        matrices = self.metric.all_pairs(queries)
        values, reliable, counts = np.empty(len(records)), np.empty(len(records)), np.empty(len(records))
        for rows, matrix, value, size in zip(groups.values(), matrices, reliabilities, sizes, strict=True):
            values[rows] = matrix.max(axis=1)
            reliable[rows], counts[rows] = value, size
        progress(len(groups), len(groups))
        return Partial(values, truncated, {"reliability": reliable, "n_references": counts})

    @property
    def worst(self) -> float:
        """The metric's score of an empty text."""
        return self.metric.worst

    @property
    def depends_on_batch(self) -> bool:
        """Whether the metric's score depends on the call, for example through word rarity."""
        return self.metric.depends_on_batch

    def worst_component(self, component: str) -> float:
        return -1.0 if component == "reliability" else 0.0

    def _kept(self, record: Record) -> tuple[list[str], float]:
        """The references used from a record's, selected greedily from the most reliable one, and their reliability."""
        texts = list(dict.fromkeys(get_references(record)))
        query = replace(record, text="", references=())
        if self.options["use"] == "all" or len(texts) == 1:
            return texts, float(self.reliabilities(query, [texts])[0])
        result = choose_references(
            record.item, [], sorted(texts), lambda sets: self.reliabilities(query, sets).tolist(),
            Search(len(texts), greedy=True), rng=np.random.default_rng(0),
        )  # fmt: skip
        kept = [text for text in texts if text in set(result.references)]
        return kept, result.reliability

    def _read(self, vectors: Any, sets: Sequence[Sequence[int]]) -> Floats:
        net = cast(ReamNetwork, self.network)
        x = torch.from_numpy(vectors).to(self.device, next(net.parameters()).dtype)
        parts: list[list[int]] = []
        for numbers in training.group_by_size(sets):
            most = max(1, MOST_PAIRS // len(sets[numbers[0]]) ** 2)
            parts += [numbers[at : at + most] for at in range(0, len(numbers), most)]
        groups = [torch.tensor([list(sets[number]) for number in part], device=x.device) for part in parts]
        read = net.forward_edges if self.options["attention"] == "pyg" else net
        with torch.inference_mode():
            scores = read(x, groups).double().cpu().numpy()
        return np.asarray(scores[np.argsort(np.concatenate(parts))])


def _item_rng(seed: int, item: str) -> np.random.Generator:
    """A generator per item, so that an item's candidates are visited in the same order whatever the other items."""
    import hashlib

    digest = hashlib.sha256(f"{seed}:annotate:{item}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))
