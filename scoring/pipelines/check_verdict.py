"""The verdict of a check before a training: whether the judgements can be enough, in words and as a code."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from ..selectors.training import judgements_for

if TYPE_CHECKING:
    from scoring.ml import Dataset, Entry

NOT_ENOUGH, TOO_FEW, FEW, ENOUGH, TEXTS = "not-enough", "too-few", "few", "enough", "texts"
#: Below these numbers the correlation of scores with people, measured on all of them, is uncertain by more than 0.2 and
#: 0.1 (half the 95 % interval around 0, 1.96 / sqrt(n - 3)): less than what separates most metrics from text length.
LEAST, SOME = 100, 388
#: The share of the data on which a single model, without folds, is measured: what it was neither trained nor tuned on.
UNSEEN = 0.1
#: Outputs from which the correlation of text length with ratings is given.
LEAST_FOR_LENGTH = 10


def judge_data(
    entry: Entry, dataset: Dataset, *, aspect: str | None, folds: int, options: Mapping[str, Any], examples: int
) -> dict[str, Any]:
    """Return the verdict: `code`, `text`, the number `n` of judgements of a `unit`, the uncertainty of a correlation
    with people, and the correlation of text length. `examples`: those of the training."""
    kinds = judgements_for(entry)
    if not kinds or options.get("human") == "no" or options.get("comparison") is False:
        return _judge_texts(examples)
    rated = _rate_outputs(dataset, aspect) if "ratings" in kinds else {}
    compared = [row for row in dataset.comparisons if aspect in (None, row.aspect)] if "comparisons" in kinds else []
    unit, n = ("ratings", len(rated)) if len(rated) >= len(compared) else ("comparisons", len(compared))
    code = TOO_FEW if n < LEAST else FEW if n < SOME else ENOUGH
    measured = n if folds > 1 else n * UNSEEN
    uncertain = 1.96 / math.sqrt(measured - 3) if measured > 6 else None
    result = {"code": code, "n": n, "unit": unit, "uncertainty": uncertain, "length": _correlate_length(dataset, rated)}
    return {**result, "text": _describe(result)}


def _judge_texts(examples: int) -> dict[str, Any]:
    code = TOO_FEW if examples < LEAST else TEXTS
    text = _("%(n)s examples, without judgements: too few. Expect no better than text length.")
    if code == TEXTS:
        text = _(
            "%(n)s examples. It learns without judgements, so only the leaderboard of evaluators shows whether it "
            "agrees with people."
        )
    return {"code": code, "n": examples, "unit": "examples", "text": text % {"n": f"{examples:,}"}}


def _rate_outputs(dataset: Dataset, aspect: str | None) -> dict[tuple[str, str, int | None], float]:
    """Return the mean rating of each rated output; over the aspects if none is given."""
    values: dict[tuple[str, str, int | None], list[float]] = defaultdict(list)
    for row in dataset.ratings:
        if row.item is not None and row.system is not None and aspect in (None, row.aspect):
            values[row.item, row.system, row.step].append(row.value)
    return {key: sum(given) / len(given) for key, given in values.items()}


def _correlate_length(dataset: Dataset, rated: Mapping[tuple[str, str, int | None], float]) -> float | None:
    """Return Pearson's correlation of the number of words with the mean rating; None if it is undefined."""
    import numpy as np

    from evalapp.words import split_words

    texts = {(row.item, row.system, row.step): row.text for row in dataset.outputs}
    keys = [key for key in rated if key in texts]
    if len(keys) < LEAST_FOR_LENGTH:
        return None
    lengths = np.array([len(split_words(texts[key])) for key in keys], dtype=float)
    ratings = np.array([rated[key] for key in keys])
    if not lengths.std() or not ratings.std():
        return None
    return float(np.corrcoef(lengths, ratings)[0, 1])


def _describe(verdict: Mapping[str, Any]) -> str:
    ratings = {
        TOO_FEW: _("%(n)s rated outputs: too few. Expect no better than text length."),
        FEW: _("%(n)s rated outputs: few. It may beat text length, but that may be chance."),
        ENOUGH: _("%(n)s rated outputs: enough to see whether it beats text length."),
    }
    comparisons = {
        TOO_FEW: _("%(n)s comparisons: too few. Expect no better than text length."),
        FEW: _("%(n)s comparisons: few. It may beat text length, but that may be chance."),
        ENOUGH: _("%(n)s comparisons: enough to see whether it beats text length."),
    }
    texts = ratings if verdict["unit"] == "ratings" else comparisons
    sentences = [texts[verdict["code"]] % {"n": f"{verdict['n']:,}"}]
    if verdict["uncertainty"] is not None:
        text = _("Its correlation with people will be known to ±%(value).2f.")
        sentences.append(text % {"value": verdict["uncertainty"]})
    if verdict["length"] is not None:
        sentences.append(_("Text length alone correlates with them at %(value).2f.") % {"value": verdict["length"]})
    return " ".join(sentences)
