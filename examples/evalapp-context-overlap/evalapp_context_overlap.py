"""A metric for evalapp: the share of an output's words that occur in its context or source."""

import numpy as np

from evalapp.ml import Entry, Evaluator, Partial
from evalapp.words import split_words


class ContextOverlap(Evaluator):
    """score = |words of the output that occur in context or source| / |words of the output|, in 0..1."""

    def signature_fields(self):
        return []

    def undefined(self, record):
        return "" if record.context or record.source else "no context or source"

    def identity(self, record):
        return record.text, record.context, record.source

    def measure(self, records, progress):
        return Partial(np.array([self.share(record) for record in records]))

    def share(self, record):
        known = set(split_words(" ".join([*record.context, record.source or ""])))
        words = split_words(record.text)
        return sum(word in known for word in words) / max(len(words), 1)


ENTRIES = [
    Entry(
        name="context-overlap",
        summary="Share of the output's words that occur in its context or source.",
        build=ContextOverlap,
        scale=(0.0, 1.0),
        needs=("context",),
        identical_is_best=False,
    )
]
