"""METEOR as nltk defines it: unigrams aligned by word, stem and synonym, with a penalty for scattered matches.

Explained in docs/explanation/evaluators/lexical-overlap.md#meteor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from evalapp.translation import gettext as _
from scoring.ml.base import Floats, PairEvaluator, Query
from scoring.ml.baselines.words import TOKEN_OPTIONS, WordMetric
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.errors import InvalidOption
from scoring.ml.options import choice, number
from scoring.ml.signature import SignatureField
from scoring.ml.text.ngrams import index_queries
from scoring.ml.text.tokens import tokenize
from scoring.ml.text.wordnet import WordNet, find_wordnet, open_wordnet

Synonyms = Callable[[int], Iterable[int]]
_INSTALL = (
    "put WordNet into an nltk_data folder (python -m nltk.downloader wordnet), "
    "or install the system package wordnet-base"
)


class Words(NamedTuple):
    """A text as numbers of words and of stems, and the ascending positions of each."""

    words: Sequence[int]
    stems: Sequence[int]
    word_places: Mapping[int, Sequence[int]]
    stem_places: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, words: Sequence[int], stem_of: Sequence[int]) -> Words:
        """Index a text; `stem_of[w]` is the number of word w's stem."""
        stems = [stem_of[word] for word in words]
        return cls(words, stems, _places(words), _places(stems))


def align(hyp: Words, ref: Words, synonyms: Synonyms | None) -> list[tuple[int, int]]:
    """Return the matched positions (i, j) of two texts, i ascending: equal words first, then equal stems, then
    synonyms.

    In each stage the words of `hyp`, from last to first, take the last free matching word of `ref`, in nltk's order.
    The third stage knows words by their stems only, as in nltk: `synonyms(stem)` returns the stems of synonyms; None
    leaves the stage out.
    """
    partner = [-1] * len(hyp.words)
    taken: set[int] = set()
    free = []
    used: dict[int, int] = {}
    for i in range(len(partner) - 1, -1, -1):
        word = hyp.words[i]
        places = ref.word_places.get(word, ())
        turn = used.get(word, 0)
        if turn < len(places):
            used[word] = turn + 1
            partner[i] = places[-1 - turn]
            taken.add(partner[i])
        else:
            free.append(i)
    # The number of places of a stem that may still be free; later places are taken.
    left: dict[int, int] = {}
    stage: Synonyms | None
    for stage in (_itself, synonyms):
        if stage is None or len(taken) == len(ref.words):
            break
        waiting, free = free, []
        for i in waiting:
            j = -1
            for stem in stage(hyp.stems[i]):
                if stem in ref.stem_places:
                    j = max(j, _last_free(ref, stem, taken, left))
            if j < 0:
                free.append(i)
            else:
                partner[i] = j
                taken.add(j)
    return [(i, j) for i, j in enumerate(partner) if j >= 0]


def _itself(stem: int) -> tuple[int]:
    return (stem,)


def _last_free(ref: Words, stem: int, taken: set[int], left: dict[int, int]) -> int:
    """The last free place of a stem, -1 without any."""
    places = ref.stem_places[stem]
    end = left.get(stem, len(places))
    while end and places[end - 1] in taken:
        end -= 1
    left[stem] = end
    return places[end - 1] if end else -1


def count_chunks(pairs: Sequence[tuple[int, int]]) -> int:
    """Return the number of runs of matches that are adjacent, in the same order, on both sides; `pairs` is sorted.

    >>> count_chunks([(0, 0), (1, 1), (2, 5)])
    2
    """
    breaks = sum(not (after[0] == before[0] + 1 and after[1] == before[1] + 1) for before, after in pairwise(pairs))
    return breaks + 1 if pairs else 0


def _places(keys: Sequence[int]) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for position, key in enumerate(keys):
        places.setdefault(key, []).append(position)
    return places


class Meteor(WordMetric, PairEvaluator):
    """F (1 - gamma (chunks / m)^beta) of the m aligned tokens, best reference; in 0..1.

    P = m / |hyp|, R = m / |ref|, F = P R / (alpha P + (1 - alpha) R); alpha .9, beta 3, gamma .5. Texts are
    lower-cased. Equal to nltk's METEOR on the same tokens (see `align`); not the Java METEOR 1.5, which knows
    paraphrases and other weights. Without WordNet data only words and stems match; signature and notes say so.
    Source: Banerjee & Lavie 2005; Lavie & Agarwal 2007.
    """

    def __init__(self, entry: Entry, options: Mapping[str, OptionValue]) -> None:
        super().__init__(entry, options)
        asked = self.option_text("synonyms")
        path = None if asked == "none" else find_wordnet()
        if asked == "wordnet" and path is None:
            text = _("needs WordNet, which this machine does not have; %(install)s")
            raise InvalidOption(self.name, "synonyms", text, install=_INSTALL)
        self.wordnet: WordNet | None = None if path is None else open_wordnet(path)

    @property
    def remarks(self) -> tuple[str, ...]:
        if self.wordnet is None and self.options["synonyms"] == "auto":
            return (f"without synonyms, because no WordNet was found: {_INSTALL}",)
        return ()

    def signature_fields(self) -> list[SignatureField]:
        synonyms = "none" if self.wordnet is None else f"wordnet@{self.wordnet.fingerprint[:8]}"
        return [
            SignatureField("nrefs", "#", "var"),
            SignatureField("case", "c", "lc"),
            SignatureField("tok", "tok", self.tokenizer),
            SignatureField("stem", "st", "porter"),
            SignatureField("syn", "syn", synonyms),
            *(SignatureField(key, key[0], f"{self.option_float(key):g}") for key in ("alpha", "beta", "gamma")),
        ]

    def pair_matrices(self, queries: Sequence[Query]) -> Iterator[Floats]:
        texts, rows = index_queries(queries)
        vocabulary = _Vocabulary()
        lines = [vocabulary.number_words(tokenize(text.lower(), self.tokenizer)) for text in texts]
        stem_of = vocabulary.stems()
        tokens = [Words.of(line, stem_of) for line in lines]
        synonyms = None if self.wordnet is None else vocabulary.synonyms(self.wordnet)
        for hyps, refs in rows:
            matrix = [[self._value(tokens[hyp], tokens[ref], synonyms) for ref in refs] for hyp in hyps]
            yield np.array(matrix, dtype=np.float64).reshape(len(hyps), len(refs))

    def _value(self, hyp: Words, ref: Words, synonyms: Synonyms | None) -> float:
        pairs = align(hyp, ref, synonyms)
        if not pairs:
            return 0.0
        alpha = self.option_float("alpha")
        precision, recall = len(pairs) / len(hyp.words), len(pairs) / len(ref.words)
        f_mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
        scatter = count_chunks(pairs) / len(pairs)
        return f_mean * (1 - self.option_float("gamma") * scatter ** self.option_float("beta"))


class _Vocabulary:
    """Numbers the words and stems of a call."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number_words(self, words: Sequence[str]) -> list[int]:
        return [self.numbers.setdefault(word, len(self.numbers)) for word in words]

    def stems(self) -> list[int]:
        """The number of each word's stem; a stem that is no word gets a number after all words."""
        stem = _porter()
        return [self.numbers.setdefault(stem(word), len(self.numbers)) for word in list(self.numbers)]

    def synonyms(self, wordnet: WordNet) -> Synonyms:
        """The numbers of a stem's synonyms among the words and stems of the call."""
        names = list(self.numbers)

        @cache
        def look_up(number: int) -> tuple[int, ...]:
            return tuple(self.numbers[name] for name in wordnet.synonyms(names[number]) if name in self.numbers)

        return look_up


@cache
def _porter() -> Callable[[str], str]:
    """Porter's stemmer with nltk's extensions; nltk is imported on first use because that takes a while."""
    from nltk.stem.porter import PorterStemmer

    return cast("Callable[[str], str]", cache(PorterStemmer().stem))


ENTRIES = (
    Entry(
        name="meteor",
        summary="Words aligned by form, stem and synonym, with a penalty for scattered matches; best reference. "
        "Identical texts of n words reach its maximum, 1 − gamma / n^beta, which is less than 1.",
        build=Meteor,
        scale=(0.0, 1.0),
        identical_is_best=False,
        needs=("references",),
        options=(
            choice(
                "synonyms",
                ("auto", "wordnet", "none"),
                "auto: those of WordNet if this machine has it; wordnet: fail without it; none: words and stems only.",
            ),
            *TOKEN_OPTIONS[:2],
            number("alpha", 0.9, "Weight of recall in F, 0 to 1.", minimum=0, maximum=1),
            number("beta", 3.0, "Power of the penalty for scattered matches.", minimum=0),
            number("gamma", 0.5, "Weight of that penalty.", minimum=0, maximum=1),
        ),
        citation="Banerjee & Lavie 2005, METEOR: an automatic metric for MT evaluation; Lavie & Agarwal 2007",
        papers=("banerjee-lavie-2005-meteor", "lavie-agarwal-2007-meteor"),
    ),
)
