"""TER: the edits that turn a text into its reference, in per cent of the reference's words.

Explained in docs/explanation/evaluators/lexical-overlap.md#ter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scoring.ml.base import Evaluator, Floats, Partial, Progress, get_references
from scoring.ml.catalogue import Entry
from scoring.ml.options import flag
from scoring.ml.signature import SignatureField, yes_no
from scoring.ml.text.edit_rate import Distances, count_edits
from scoring.ml.types import Record

_PUNCTUATION = str.maketrans("", "", '.,?:;!"()')


class Ter(Evaluator):
    """The negative translation edit rate in per cent, so that higher is better: 0 for a text equal to a reference, -100
    for an empty one, and below -100 for texts with more edits than the reference has words.

    Edits are insertions, deletions, substitutions and shifts of words, to the reference that needs the fewest; they are
    divided by the mean length of the references. Source: Snover et al. 2006; equal to sacrebleu 2.6.
    """

    @property
    def worst(self) -> float:
        return -100.0

    def signature_fields(self) -> list[SignatureField]:
        return [
            SignatureField("nrefs", "#", "var"),
            SignatureField("case", "c", "lc" if self.options["lowercase"] else "mixed"),
            SignatureField("tok", "t", "tercom"),
            SignatureField("norm", "nr", "no"),
            SignatureField("punct", "pn", yes_no(not self.options["no_punct"])),
            SignatureField("asian", "as", "no"),
        ]

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        return Partial(self._rate(self._count(records, progress)))

    def system_statistics(self, records: Sequence[Record]) -> Floats:
        """(n, 3): edits, mean length of the references, 1. Zeros without references."""
        rows = np.zeros((len(records), 3))
        defined = [place for place, record in enumerate(records) if not self.undefined(record)]
        rows[defined, :2] = self._count([records[place] for place in defined])
        rows[defined, 2] = 1
        return rows

    def from_sums(self, sums: Floats) -> Floats:
        return np.where(sums[..., 2] > 0, self._rate(sums), np.nan)

    def _rate(self, sums: Floats) -> Floats:
        edits, length = sums[..., 0], sums[..., 1]
        rate = np.divide(edits, length, out=np.asarray(edits > 0, dtype=np.float64), where=length > 0)
        return -100.0 * rate + 0.0  # no negative zero

    def _count(self, records: Sequence[Record], progress: Progress | None = None) -> Floats:
        """(n, 2): edits and mean length of the references."""
        counts = np.zeros((len(records), 2))
        known: dict[str, Distances] = {}
        for row, record in enumerate(records):
            words = self._split(record.text)
            references = get_references(record)
            for text in references:
                if text not in known:
                    known[text] = Distances(self._split(text))
            distances = [known[text] for text in references]
            counts[row] = (
                min(count_edits(words, one) for one in distances), sum(one.size for one in distances) / len(distances),
            )  # fmt: skip
            if progress is not None:
                progress(row + 1, len(records))
        return counts

    def _split(self, text: str) -> list[str]:
        text = text.lower() if self.options["lowercase"] else text
        return (text.translate(_PUNCTUATION) if self.options["no_punct"] else text).split()


ENTRIES = (
    Entry(
        name="ter",
        summary="Negative translation edit rate: insertions, deletions, substitutions and shifts of words.",
        build=Ter,
        scale=(None, 0.0),
        needs=("references",),
        options=(
            flag("lowercase", True, "Ignore case."),
            flag("no_punct", False, 'Remove . , ? : ; ! " ( and ).'),
        ),
        system_score="corpus",
        citation="Snover et al. 2006, A study of translation edit rate with targeted human annotation",
        papers=("snover-etal-2006-study", "post-2018-call"),
    ),
)
