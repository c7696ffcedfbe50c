"""distinct-n: how many of the n-grams a system writes are different ones; optionally without the length bias.

Explained in docs/explanation/evaluators/diversity-and-fluency.md#distinct-n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from scoring.ml.base import Evaluator, Floats, Partial, Progress
from scoring.ml.baselines.bleu import TOKEN_OPTIONS, resolve_tokenizer
from scoring.ml.catalogue import Entry, Option, OptionValue
from scoring.ml.signature import SignatureField
from scoring.ml.text.tokens import TokenTable, token_table, unspaced_remark
from scoring.ml.types import Record


def expected_distinct(total: Floats, vocabulary: int) -> Floats:
    """V (1 - ((V - 1) / V)^C): how many different ones C uniform draws from V are expected to show."""
    return -vocabulary * np.expm1(total * np.log1p(-1.0 / vocabulary))


class Distinct(Evaluator):
    """distinct-n = U / C, U different ones among C n-grams, in 0..1.

    `score` takes each text alone, `system_score` all texts of a system together (the measure of Li et al.). With
    `expected` it is EAD = U / (V (1 - ((V - 1) / V)^C)), V the vocabulary: above 1 where more are different than
    chance expects, and without upper end where the texts have more than V different ones. A text shorter than n has no
    n-gram and gets 0.
    """

    def __init__(self, entry: Entry, options: dict[str, OptionValue], *, order: int) -> None:
        super().__init__(entry, options)
        self.order = order
        self.tokenizer = resolve_tokenizer(self.options)

    def remarks_on(self, records: Sequence[Record]) -> tuple[str, ...]:
        return unspaced_remark((record.text for record in records), self.tokenizer)

    def signature_fields(self) -> list[SignatureField]:
        fields = [
            SignatureField("case", "c", "lc" if self.options["lowercase"] else "mixed"),
            SignatureField("tok", "tok", self.tokenizer),
        ]
        if self.options["expected"]:
            fields.append(SignatureField("ead", "ead", str(self.options["vocabulary"])))
        return fields

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        table = self._table(records)
        grams = [self._grams(table, row) for row in range(len(records))]
        unique = np.array([len(set(gram)) for gram in grams], dtype=np.float64)
        total = np.array([len(gram) for gram in grams], dtype=np.float64)
        progress(len(records), len(records))
        return Partial(self._ratio(unique, total))

    def system_score(self, records: Sequence[Record]) -> float:
        """distinct-n over all texts together; nan when they hold no n-gram at all."""
        table = self._table(records)
        grams = [gram for row in range(len(records)) for gram in self._grams(table, row)]
        if not grams:
            return float("nan")
        return float(self._ratio(np.array([len(set(grams))]), np.array([len(grams)]))[0])

    def _table(self, records: Sequence[Record]) -> TokenTable:
        return token_table([r.text for r in records], self.tokenizer, bool(self.options["lowercase"]))

    def _grams(self, table: TokenTable, row: int) -> list[tuple[int, ...]]:
        tokens = table.row(row).tolist()
        return list(zip(*(tokens[start:] for start in range(self.order)), strict=False))

    def _ratio(self, unique: Floats, total: Floats) -> Floats:
        expected = self.options["expected"]
        below = expected_distinct(total, self.option_int("vocabulary")) if expected else total
        return unique / np.where(below > 0, below, 1.0)


ENTRIES = tuple(
    Entry(
        name=f"distinct-{order}",
        kind="baseline",
        summary=f"Share of different {order}-grams among all of a system's; per text within the text.",
        build=partial(Distinct, order=order),
        # Open for the sake of EAD.
        scale=(0.0, None),
        options=(
            *TOKEN_OPTIONS,
            Option(
                "expected",
                "bool",
                False,
                "Divide by the number expected by chance (EAD), against the length bias; the result may exceed 1.",
            ),
            Option(
                "vocabulary",
                "int",
                30522,
                "Vocabulary size V of EAD: how many different n-grams there can be.",
                minimum=2,
            ),
        ),
        level="system",
        system_score="corpus",
        citation="Li et al. 2016, A diversity-promoting objective function; Liu et al. 2022 (EAD)",
    )
    for order in (1, 2)
)
