"""Fit the default assistant: read outputs and judgements, encode new texts only, fit the folds, replace the scores.

The features of all outputs stay in a file while the texts do, so that a refit neither loads nor needs the encoder."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Avg
from django.utils import timezone

from annotation.models import Aspect, Comparison, Rating
from annotation.models.data import ORIGINAL
from evalapp.common.runner import RunContext
from scoring.boards.choices import ASSISTANT

from ..selectors import inputs
from ..selectors.assistant import count_judgements
from ..selectors.catalogue import get_entry
from ..selectors.run_results import make_score_address
from ..selectors.summaries import summarise_scores
from ..selectors.training import list_trained
from ..services.columns import cache_columns
from ..services.fits import AspectFit, store_fit
from ..services.leaderboards import renew_leaderboards
from ..services.scores import NewScore, finish_score_set
from .shared import refuse_scoring_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scoring.ml import Record
    from scoring.ml.encoders.source import EncoderSource
    from scoring.ml.evaluators.ridge.folds import FoldScores, Judged

#: Options of a trained ridge that the assistant takes over.
TAKEN = ("encoder", "pooling", "max_length")
#: Points of the first output by verdict; a comparison that could not be decided teaches nothing.
POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}
#: Compared pairs of an aspect that are learned from at most: bounds time and memory.
MOST_PAIRS = 20_000


def run(context: RunContext, *, evaluator: str, until: int) -> dict[str, Any]:
    """The job `refit`. `until`: the judgements in campaigns when it was queued; those that came since count."""
    context.progress(0, None, "outputs", "reading")
    began, n_judgements = timezone.now(), count_judgements(project=context.project)
    with refuse_scoring_errors():
        work = Refit(context)
        fits = list(work.fit_aspects())
    if not fits:
        return {"evaluator": evaluator, "aspects": [], "outputs": 0}
    context.progress(0, len(work.records), "outputs", "storing")
    fit = {"at": began.isoformat(), "judgements": n_judgements, "outputs": len(work.learned)}
    context.make_sure()
    with transaction.atomic():
        sets = store_fit(run=context.run, options=work.options, record={"fit": fit}, fits=fits)
        for score_set in sets:
            finish_score_set(
                score_set=score_set, data_hash=work.data.text, systems=[], summary=summarise_scores(score_set),
                scored_at=began,
            )  # fmt: skip
    for score_set in sets:
        cache_columns(score_set)
        context.log(f"Signature: {score_set.full_signature}")
    renew_leaderboards(project=context.project, run=context.run)
    return {
        "evaluator": evaluator,
        "aspects": [score_set.aspect for score_set in sets],
        "score_set": sets[0].pk,
        "signature": sets[0].full_signature,
        "judgements": n_judgements,
        "learned_from": len(work.learned),
        "outputs": len(work.records),
        "url": make_score_address(sets[0]),
    }


class Refit:
    """All outputs of the project, and the judgements to learn from. No part is held out, because no output is scored
    by a model that learned from its group."""

    def __init__(self, context: RunContext) -> None:
        from scoring.ml.encoders.source import find_encoder

        self.context, project = context, context.project
        references = inputs.get_reference_set(project, ORIGINAL)
        rows = [row for chunk in inputs.iterate_inputs(project, references=references) for row in chunk]
        self.output: list[int] = [row.output for row in rows]
        self.records: list[Record] = [row.record for row in rows]
        self.may_learn = [bool(record.text.strip()) for record in self.records]
        self.groups = [record.group or f"item:{record.item}" for record in self.records]
        self.options = choose_options(context)
        encoder = self.options["encoder"]
        self.source = find_encoder(None if encoder is None else str(encoder))
        self.features, self.is_cut = load_features(context, self.records, self.source, self.options)
        self.hashes = [
            inputs.input_hash((record.text, record.context, record.source, record.references))
            for record in self.records
        ]
        self.data = inputs.DataHash()
        for record, hash_of_input in zip(self.records, self.hashes, strict=True):
            self.data.add(record, hash_of_input)
        #: Rows of the outputs that some aspect was learned from.
        self.learned: set[int] = set()

    def fit_aspects(self) -> Iterator[AspectFit]:
        """Yield the scores of each aspect with enough judgements: of ratings if these suffice, or of comparisons."""
        from scoring.ml.evaluators.ridge.folds import score_by_folds

        for aspect in Aspect.objects.filter(project=self.context.project).order_by("position", "id"):
            for kind, judged in (("ratings", self._load_ratings(aspect)), ("comparisons", self._load_pairs(aspect))):
                if not len(judged.first):
                    continue
                if not self._is_enough(judged):
                    self.context.log(f"{aspect.name}: too few different {kind} ({len(judged.first):,}).")
                    continue
                self.context.progress(0, len(self.records), "outputs", "fitting")
                found = score_by_folds(self.features, judged, self.groups)
                self.learned.update(judged.rows.tolist())
                low = aspect.low if kind == "ratings" else float(found.values.min())
                worst = float(judged.labels.min()) if low is None else low
                yield self._describe(aspect.name, found, worst, (kind, len(judged.first)))
                break

    def _load_ratings(self, aspect: Aspect) -> Judged:
        """The mean ratings of outputs."""
        from scoring.ml.evaluators.ridge.folds import Judged

        means = dict(
            Rating.objects.filter(project=self.context.project, aspect=aspect, output__isnull=False)
            .order_by().values("output").annotate(mean=Avg("value")).values_list("output", "mean")
        )  # fmt: skip
        rated = [row for row, pk in enumerate(self.output) if pk in means and self.may_learn[row]]
        return Judged(np.array(rated, dtype=np.intp), np.array([means[self.output[row]] for row in rated]))

    def _load_pairs(self, aspect: Aspect) -> Judged:
        """The mean points of the first of two outputs, over raters; a random part of very many pairs."""
        from scoring.ml.evaluators.ridge.folds import Judged

        row_of = {pk: row for row, pk in enumerate(self.output) if self.may_learn[row]}
        compared = Comparison.objects.filter(
            project=self.context.project, aspect=aspect, output_b__isnull=False, verdict__in=POINTS
        )
        points: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
        for a, b, verdict in compared.order_by().values_list("output_a", "output_b", "verdict").iterator():
            if a in row_of and b in row_of:
                one, two = sorted((row_of[a], row_of[b]))
                points[one, two].append(POINTS[verdict] if one == row_of[a] else 1 - POINTS[verdict])
        pairs = sorted(points)
        if len(pairs) > MOST_PAIRS:
            self.context.log(f"{aspect.name}: {MOST_PAIRS:,} of {len(pairs):,} compared pairs are learned from.")
            pairs = random.Random(1).sample(pairs, MOST_PAIRS)
        labels = np.array([fmean(points[pair]) for pair in pairs])
        first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        return Judged(first, labels, second)

    def _is_enough(self, judged: Judged) -> bool:
        from scoring.ml.evaluators.ridge.solve import LEAST

        # Comparisons teach something unless all are ties, ratings unless all are equal.
        level = judged.labels[0] if judged.second is None else 0.5
        n_groups = len({self.groups[row] for row in judged.first.tolist()})
        return len(judged.first) >= LEAST and n_groups > 1 and bool((judged.labels != level).any())

    def _describe(self, aspect: str, found: FoldScores, worst: float, judged: tuple[str, int]) -> AspectFit:
        from scoring.ml.signature import SignatureField, render

        kind, n_judged = judged
        weights = hashlib.sha256(np.ascontiguousarray(found.values).tobytes()).hexdigest()[:8]
        fields = [
            SignatureField("encoder", "enc", f"{self.source.short_name}@{self.source.weights[:8]}"),
            SignatureField("pool", "pool", str(self.options["pooling"])),
            SignatureField("rated", "n", str(n_judged))
            if kind == "ratings"
            else SignatureField("compared", "c", str(n_judged)),
            SignatureField("folds", "f", str(len(found.penalties))),
            SignatureField("w", "w", weights),
        ]
        revision = get_entry(ASSISTANT).revision
        signature, short = (render(ASSISTANT, fields, revision, short=short) for short in (False, True))
        return AspectFit(aspect, signature, short, list(self._score(found.values, worst)))

    def _score(self, values: NDArray[np.float64], worst: float) -> Iterator[NewScore]:
        for row, record in enumerate(self.records):
            is_empty = not record.text.strip()
            value = worst if is_empty else float(values[row])
            yield NewScore(self.output[row], value, "", self.hashes[row], is_empty, bool(self.is_cut[row]))


def choose_options(context: RunContext) -> dict[str, Any]:
    """Return encoder, pooling and length of the newest trained ridge, or the defaults."""
    entry = get_entry(ASSISTANT)
    defaults = {option.name: option.default for option in entry.train_options}
    row = list_trained(context.project).filter(name=ASSISTANT).first()
    own = row.options if row is not None else {}
    return {name: own.get(name, defaults[name]) for name in TAKEN}


def load_features(
    context: RunContext, records: Sequence[Record], source: EncoderSource, options: dict[str, Any]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return features (outputs, k) and which outputs have a text that is too long, from the file of the same texts.

    If texts have changed, only new ones are encoded; the file can be deleted at any time.
    """
    folder = Path(settings.ARTEFACTS_DIR) / "columns" / str(context.project.pk) / "assistant"
    digest = hashlib.sha256(repr((source.weights, [options[name] for name in TAKEN[1:]])).encode())
    for record in records:
        parts = (record.text, record.context, record.source, record.references)
        digest.update(repr(parts).encode("utf-8", "surrogatepass"))
    path = folder / f"features-{digest.hexdigest()[:16]}.npy"
    if not path.is_file():
        encode_features(context, records, source, options, path)
    table = np.load(path, mmap_mode="r")
    return table[:, :-1], np.asarray(table[:, -1] > 0)


def encode_features(
    context: RunContext, records: Sequence[Record], source: EncoderSource, options: dict[str, Any], path: Path
) -> None:
    """Write the features of the records to `path`, and remove the file of the texts before."""
    from scoring.ml.encoders.kept import cached_vectors
    from scoring.ml.evaluators.ridge.features import Rows, build_features
    from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder

    folder = path.parent
    encoder = UtteranceEncoder(source, pooling=options["pooling"], max_length=options["max_length"])
    rows = Rows(records)
    sides = rows.list_sides()
    tokenized = encoder.tokenize(rows.table.texts, rows.table.left)

    def tick(done: int, total: int) -> None:
        context.progress(done, total, "texts", "encoding")

    vectors = cached_vectors(encoder, tokenized.encodings, folder, "fp32", tick)
    features = build_features(np.asarray(vectors, dtype=np.float64), rows, sides)
    is_cut = [bool(tokenized.truncated[rows.list_texts(row, sides)].any()) for row in range(len(records))]
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.save(file, np.column_stack([features, is_cut]).astype(np.float32))
    part.replace(path)
    used = Path(cast("np.memmap[Any, Any]", vectors).filename or "").stem
    for other in folder.iterdir():
        if other != path and not other.name.startswith(used):
            other.unlink(missing_ok=True)
