"""distinct-n: the share of distinct n-grams among those of a system; optionally without the length bias.

Explained in docs/explanation/evaluators/diversity-and-fluency.md#distinct-n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from scoring.ml.base import Floats, Partial, Progress
from scoring.ml.baselines.words import TOKEN_OPTIONS, WordMetric
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.options import flag, integer
from scoring.ml.signature import SignatureField
from scoring.ml.types import Record


def expected_distinct(total: Floats, vocabulary: int) -> Floats:
    """Return V (1 - ((V - 1) / V)^C), the expected number of distinct values among C uniform draws from V.

    `total` (n,) are the numbers of draws C, `vocabulary` is V.
    """
    return -vocabulary * np.expm1(total * np.log1p(-1.0 / vocabulary))


class Distinct(WordMetric):
    """distinct-n = U / C, U distinct ones among C n-grams, in 0..1.

    `score` takes each text alone, `system_score` all texts of a system together (the measure of Li et al.). With
    `expected` it is EAD = U / (V (1 - ((V - 1) / V)^C)), V the vocabulary: above 1 if more are distinct than expected
    by chance, and without upper end if the texts have more than V distinct ones. A text shorter than n has no n-gram
    and gets 0.
    """

    def __init__(self, entry: Entry, options: dict[str, OptionValue], *, order: int) -> None:
        super().__init__(entry, options)
        self.order = order

    def signature_fields(self) -> list[SignatureField]:
        fields = [
            SignatureField("case", "c", "lc" if self.options["lowercase"] else "mixed"),
            SignatureField("tok", "tok", self.tokenizer),
        ]
        if self.options["expected"]:
            fields.append(SignatureField("ead", "ead", str(self.options["vocabulary"])))
        return fields

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        grams = self._grams(records)
        unique = np.array([len(set(gram)) for gram in grams], dtype=np.float64)
        total = np.array([len(gram) for gram in grams], dtype=np.float64)
        progress(len(records), len(records))
        return Partial(self._ratio(unique, total))

    def score_system(self, records: Sequence[Record]) -> float:
        """distinct-n over all texts together; nan when they hold no n-gram at all."""
        grams = [gram for text in self._grams(records) for gram in text]
        if not grams:
            return float("nan")
        return float(self._ratio(np.array([len(set(grams))]), np.array([len(grams)]))[0])

    def _grams(self, records: Sequence[Record]) -> list[list[tuple[int, ...]]]:
        table = self.tokenize([record.text for record in records])
        texts = [table.row(row).tolist() for row in range(len(records))]
        return [list(zip(*(text[start:] for start in range(self.order)), strict=False)) for text in texts]

    def _ratio(self, unique: Floats, total: Floats) -> Floats:
        expected = self.options["expected"]
        below = expected_distinct(total, self.option_int("vocabulary")) if expected else total
        return unique / np.where(below > 0, below, 1.0)


ENTRIES = tuple(
    Entry(
        name=f"distinct-{order}",
        summary=f"Share of different {order}-grams among all of a system's; per text within the text.",
        build=partial(Distinct, order=order),
        # EAD may exceed 1.
        scale=(0.0, None),
        options=(
            *TOKEN_OPTIONS,
            flag(
                "expected",
                False,
                "Divide by the number expected by chance (EAD), against the length bias; the result may exceed 1.",
            ),
            integer(
                "vocabulary", 30522, "Vocabulary size V of EAD: how many different n-grams there can be.", minimum=2
            ),
        ),
        level="system",
        system_score="corpus",
        citation="Li et al. 2016, A diversity-promoting objective function; Liu et al. 2022 (EAD)",
        papers=("li-etal-2016-diversity", "liu-etal-2022-rethinking"),
    )
    for order in (1, 2)
)
