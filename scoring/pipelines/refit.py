"""Fit the default assistant: read outputs and ratings, encode new texts only, fit the folds, replace the scores.

The features of all outputs stay in a file while the texts do, so that a refit neither loads nor needs the encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Avg
from django.utils import timezone

from annotation.models import Aspect, Rating
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

#: Options of a trained ridge that the assistant takes over.
TAKEN = ("encoder", "pooling", "max_length")


def run(context: RunContext, *, evaluator: str, until: int) -> dict[str, Any]:
    """The job `refit`. `until`: the judgements in rating campaigns when it was queued; those that came since count."""
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
    """All outputs of the project, and the ratings to learn from. No part is held out, because no output is scored
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
        """Yield the scores of each aspect with enough ratings."""
        from scoring.ml.evaluators.ridge.folds import score_by_folds
        from scoring.ml.evaluators.ridge.solve import LEAST

        for aspect in Aspect.objects.filter(project=self.context.project).order_by("position", "id"):
            means = dict(
                Rating.objects.filter(project=self.context.project, aspect=aspect, output__isnull=False)
                .order_by().values("output").annotate(mean=Avg("value")).values_list("output", "mean")
            )  # fmt: skip
            if not means:
                continue
            rated = [row for row, pk in enumerate(self.output) if pk in means and self.may_learn[row]]
            ratings = np.array([means[self.output[row]] for row in rated])
            if len(rated) < LEAST or len({self.groups[row] for row in rated}) < 2 or np.ptp(ratings) == 0:
                self.context.log(f"{aspect.name}: too few different ratings ({len(rated):,} outputs).")
                continue
            self.context.progress(0, len(self.records), "outputs", "fitting")
            found = score_by_folds(self.features, np.array(rated), ratings, self.groups)
            self.learned.update(rated)
            worst = float(ratings.min()) if aspect.low is None else aspect.low
            yield self._describe(aspect.name, found.values, worst, len(rated), len(found.penalties))

    def _describe(
        self, aspect: str, values: NDArray[np.float64], worst: float, n_rated: int, n_folds: int
    ) -> AspectFit:
        from scoring.ml.signature import SignatureField, render

        weights = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:8]
        fields = [
            SignatureField("encoder", "enc", f"{self.source.short_name}@{self.source.weights[:8]}"),
            SignatureField("pool", "pool", str(self.options["pooling"])),
            SignatureField("rated", "n", str(n_rated)),
            SignatureField("folds", "f", str(n_folds)),
            SignatureField("w", "w", weights),
        ]
        revision = get_entry(ASSISTANT).revision
        signature, short = (render(ASSISTANT, fields, revision, short=short) for short in (False, True))
        return AspectFit(aspect, signature, short, list(self._score(values, worst)))

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
