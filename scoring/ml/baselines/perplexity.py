"""Perplexity of texts under a language model, a measure of fluency.

The model is a causal one from a folder, a saved n-gram model, or n-gram models of the references in the call.
`ppl_reference` is the perplexity of human references under a generator: how well it predicts them.

Explained in docs/explanation/evaluators/diversity-and-fluency.md#perplexity.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from evalapp.translation import gettext as _
from scoring.ml.base import Floats, Partial, Progress, Scores, get_references
from scoring.ml.baselines.words import TOKEN_OPTIONS, WordMetric
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.causal import CausalModel
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encoders.unknown import UnknownTokens
from scoring.ml.errors import InvalidOption, ScoringError
from scoring.ml.options import SCORING, encoder_arguments, flag, integer, text
from scoring.ml.signature import SignatureField, yes_no
from scoring.ml.text.word_ngrams import HEADER, WordNgrams
from scoring.ml.types import Record, check_records

# Records between two reports of progress.
_CHUNK = 2048


class CrossFit:
    """n-gram models of the references of a call; none scores a text of an item or group that it learned from.

    Groups (the split group, else the item, else the references themselves) are ordered by sha256 and assigned to
    `folds` parts in turn; the model of a part learns from the distinct references of all other parts.
    """

    def __init__(self, records: Sequence[Record], *, folds: int, order: int, tokenizer: str, lowercase: bool) -> None:
        groups = {identify_group(record) for record in records}
        ordered = sorted(
            groups, key=lambda group: hashlib.sha256(repr(group).encode("utf-8", "surrogatepass")).digest()
        )
        self.fold = {group: place % folds for place, group in enumerate(ordered)}
        self._texts: list[set[str]] = [set() for _ in range(folds)]
        for record in records:
            self._texts[self.fold[identify_group(record)]].update(get_references(record))
        self._settings = (order, tokenizer, lowercase)
        self._models: dict[int, WordNgrams | None] = {}

    def model_for(self, record: Record) -> WordNgrams | None:
        """The model that may score a record; None if there is nothing to learn from."""
        fold = self.fold[identify_group(record)]
        if fold not in self._models:
            others = set().union(*(texts for place, texts in enumerate(self._texts) if place != fold))
            order, tokenizer, lowercase = self._settings
            try:
                fitted = WordNgrams.fit(others, order=order, tokenizer=tokenizer, lowercase=lowercase)
            except ScoringError:  # references without a single word
                self._models[fold] = None
            else:
                self._models[fold] = fitted
        return self._models[fold]


class Perplexity(WordMetric):
    """max(-20, -NLL / tokens), the mean log-probability of a text's tokens; higher is more fluent, 0 is certainty.

    `perplexity` in the components is exp(-score). A system's score is the mean over its non-empty texts weighted by
    their tokens, -(sum of NLL) / (sum of tokens) where none is at -20: minus the logarithm of the corpus perplexity,
    not a mean over texts. Scores under different
    models cannot be compared: tokens differ, and `words` says how many a text has at white space.

    Without `encoder`, word n-gram models (see `scoring.ml.text.word_ngrams`) learn from the references in the call,
    only from those of other items (`CrossFit`). A text's end counts as a token. Scores then depend on the call. With
    `encoder` a causal model reads beginning-of-sequence, context (with `context`), text. An empty text gets -20, a
    perplexity of 5e8, below any text of ordinary words; and no text gets less: at -14 per letter, a single long word in
    letters that the models never saw (another script, gibberish) would otherwise dominate every mean and correlation.
    """

    component_names = ("perplexity", "tokens", "words")

    def __init__(self, entry: Entry, options: Mapping[str, OptionValue]) -> None:
        super().__init__(entry, options)
        self.cross: CrossFit | None = None
        self.ngrams: WordNgrams | None = None
        self.causal: CausalModel | None = None
        given = None if self.options["encoder"] is None else self.option_text("encoder")
        if given is not None and (Path(given) / HEADER).is_file():
            self.ngrams = WordNgrams.load(given)
            self.tokenizer = self.ngrams.tokenizer
        elif given is not None:
            self.causal = _causal(given, self.options)
        if self.options["context"] and self.causal is None:
            raise InvalidOption(self.name, "context", _("needs a causal model: give its folder as `encoder`"))

    @property
    def worst(self) -> float:
        return -20.0

    def worst_component(self, component: str) -> float:
        return float(np.exp(-self.worst)) if component == "perplexity" else 0.0

    @cached_property
    def unknown_tokens(self) -> UnknownTokens | None:
        """Finds words that a causal model does not know; n-gram models spell them out."""
        if self.causal is None:
            return None
        return UnknownTokens.from_tokenizer(self.causal.source.short_name, self.causal.tokenizer)

    def texts_read(self, record: Record) -> tuple[str, ...]:
        return (record.text, _context(record)) if self.options["context"] else (record.text,)

    @property
    def depends_on_batch(self) -> bool:
        return self.ngrams is None and self.causal is None

    def signature_fields(self) -> list[SignatureField]:
        if self.causal is not None:
            source = self.causal.source
            return [
                SignatureField("lm", "lm", f"{source.short_name}@{source.weights[:8]}"),
                SignatureField("ctx", "ctx", yes_no(bool(self.options["context"]))),
                SignatureField("ml", "ml", str(self.causal.max_length)),
                SignatureField("stride", "st", str(self.causal.stride)),
                SignatureField("dt", "dt", self.causal.dtype),
                SignatureField("attn", "at", source.attention),
            ]
        if self.ngrams is not None:
            order, case = self.ngrams.word_model.order, self.ngrams.lowercase
            train = f"saved@{self.ngrams.fingerprint[:8]}"
        else:
            order, case = self.option_int("order"), bool(self.options["lowercase"])
            train = f"references-of-other-groups/{self.options['folds']}"
        return [
            SignatureField("lm", "lm", f"kn{order}"),
            SignatureField("train", "tr", train),
            SignatureField("case", "c", "lc" if case else "mixed"),
            SignatureField("tok", "tok", self.tokenizer),
        ]

    def remarks_on(self, records: Sequence[Record]) -> tuple[str, ...]:
        return () if self.causal is not None else super().remarks_on(records)

    def identity(self, record: Record) -> Hashable:
        if self.depends_on_batch:
            return (record.text, identify_group(record), get_references(record))
        return (record.text, _context(record)) if self.options["context"] else record.text

    def undefined(self, record: Record) -> str:
        if self.options["context"] and not _context(record):
            return "no context or source"
        if not record.text.strip():
            return ""  # the worst under any model
        if self.cross is not None and self.cross.model_for(record) is None:
            return "no references of other items to learn from"
        if self.cross is None and self.depends_on_batch and not get_references(record):
            return "no references"  # of any record, if all have this reason: there is nothing to learn from
        return ""

    def evaluate(self, records: Sequence[Record], *, progress: Progress | bool | None = None) -> Scores:
        if not self.depends_on_batch or self.cross is not None:
            return super().evaluate(records, progress=progress)
        check_records(records, "score()")
        fitted = copy.copy(self)  # so that calls in several threads do not interfere
        fitted.cross = CrossFit(
            records,
            folds=self.option_int("folds"),
            order=self.option_int("order"),
            tokenizer=self.tokenizer,
            lowercase=bool(self.options["lowercase"]),
        )
        return fitted.evaluate(records, progress=progress)

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        sums, tokens = np.zeros(len(records)), np.zeros(len(records))
        for start in range(0, len(records), _CHUNK):
            chunk = records[start : start + _CHUNK]
            rows = slice(start, start + len(chunk))
            sums[rows], tokens[rows] = self._log_likelihoods(chunk)
            progress(start + len(chunk), len(records))
        values = sums / np.maximum(tokens, 1)
        # A tokenizer may find nothing in a text that is not blank.
        values[tokens == 0] = self.worst
        # No text scores below an empty one.
        values = np.maximum(values, self.worst)
        words = np.array([len(record.text.split()) for record in records], dtype=np.float64)
        with np.errstate(over="ignore"):
            return Partial(values, components={"perplexity": np.exp(-values), "tokens": tokens, "words": words})

    def system_statistics(self, records: Sequence[Record]) -> Floats:
        """(n, 2): log-likelihood and number of tokens of each text with a score."""
        result = self.evaluate(records)
        tokens = np.nan_to_num(result.components["tokens"])
        return np.column_stack([np.where(tokens > 0, result.values, 0.0) * tokens, tokens])

    def from_sums(self, sums: Floats) -> Floats:
        likelihood, tokens = sums[..., 0], sums[..., 1]
        return np.divide(likelihood, tokens, out=np.full(tokens.shape, np.nan), where=tokens > 0)

    def _log_likelihoods(self, records: Sequence[Record]) -> tuple[Floats, Floats]:
        texts = [record.text for record in records]
        if self.causal is not None:
            contexts = [_context(record) for record in records] if self.options["context"] else None
            sums, counts = self.causal.log_likelihoods(texts, contexts)
            return sums, counts.astype(np.float64)
        models = [self.ngrams or (self.cross.model_for(record) if self.cross else None) for record in records]
        sums, tokens = np.zeros(len(records)), np.zeros(len(records))
        for model in {id(model): model for model in models if model is not None}.values():
            rows = [row for row, own in enumerate(models) if own is model]
            sums[rows], tokens[rows] = model.log_likelihoods([texts[row] for row in rows])
        return sums, tokens


def ppl_reference(generator: str, records: Sequence[Record], *, context: bool = True, **options: OptionValue) -> float:
    """exp(sum of NLL / sum of tokens) of the distinct references of `records` under a generator: lower is better.

    `generator` is the folder of its causal model; `context` conditions each reference on its item's context (those
    without a context are scored alone). Options are those of `perplexity` for causal models. Raises `ScoringError`
    without any reference.
    """
    model = _causal(generator, {"max_length": None, "stride": None, "dtype": "fp32", "device": "auto",
                                "batch_tokens": None, **options})  # fmt: skip
    pairs = {(_context(r) if context else "", reference) for r in records for reference in get_references(r)}
    if not pairs:
        raise ScoringError("ppl_reference needs references: the records given have none")
    ordered = sorted(pairs)
    sums, tokens = model.log_likelihoods([text for _, text in ordered], [before for before, _ in ordered])
    return float(np.exp(-sums.sum() / max(int(tokens.sum()), 1)))


def identify_group(record: Record) -> tuple[str, ...]:
    """Return the key that a `record` shares with training texts: its split group, else its item, else its
    references."""
    return (record.group,) if record.group else (record.item,) if record.item else ("", *get_references(record))


def _context(record: Record) -> str:
    """The turns before a text, or its source, a line each and the last line closed; "" without any."""
    turns = [turn for turn in record.context if turn.strip()] or [record.source or ""]
    return "\n".join(turns) + "\n" if any(turn.strip() for turn in turns) else ""


def _causal(name: str, options: Mapping[str, OptionValue]) -> CausalModel:
    return CausalModel(find_encoder(name), **encoder_arguments(options, "max_length", "stride"))


_MODEL = "Folder of a causal model or a saved n-gram model; none: n-grams of the other items' references."
ENTRIES = (
    Entry(
        name="perplexity",
        summary="Mean log-probability of a text's tokens under a language model; n-grams of the references by default.",
        build=Perplexity,
        scale=(None, 0.0),
        identical_is_best=False,
        needs=("references",),
        options=(
            text("encoder", None, _MODEL, names_model=True),
            flag("context", False, "Score a text as the answer to its context; needs a causal model."),
            integer("order", 3, "Longest n-gram.", minimum=1),
            integer("folds", 5, "Parts of the items; a text is scored by a model of the other parts.", minimum=2),
            *TOKEN_OPTIONS[:2],
            flag("lowercase", True, "Ignore case in n-grams."),
            integer("max_length", None, "Longest window of a causal model; none is its own, up to 2,048.", minimum=2),
            integer("stride", None, "Step of the windows of a longer text; none is half a window.", minimum=1),
            *SCORING,
        ),
        system_score="corpus",
        citation="Jelinek et al. 1977, Perplexity: a measure of the difficulty of speech recognition tasks",
        papers=("jelinek-etal-1977-perplexity",),
    ),
)
