"""An open-vocabulary word n-gram model: interpolated Kneser-Ney over words, over characters below them.

    P_k(w | h) = max(c(h w) - D_k, 0) / c(h) + D_k N(h) / c(h) * P_{k-1}(w | h without its first word)

c(h w) is how often h w occurs at the highest order and after the beginning of a text, elsewhere the number of
different words before it; c(h) is the sum of c(h w) over w, N(h) how many w have c(h w) > 0. D_k = n_1 / (n_1 + 2 n_2)
from the numbers of grams with c = 1 and 2, at most .9, and .5 where no gram has c = 1. A history that was never seen
leaves P_{k-1}. P_0 of a word is the product of its characters' probabilities, its end included, in the same model of
characters, trained on the distinct words; that one ends in 1 / 1,114,113 for every code point and the end. So every
word has a probability, and all strings together have 1. Sources: Kneser & Ney 1995, Chen & Goodman 1998.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.errors import ScoringError
from scoring.ml.text.tokens import tokenize

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
BEGIN, END, UNKNOWN = 0, 1, -1
CHARACTER_ORDER = 4
CODE_POINTS = 0x110000
HEADER, ARRAYS = "word_ngrams.json", "word_ngrams.safetensors"


class KneserNey:
    """Counts of n-grams over token numbers; sequences begin with BEGIN and end with END.

    `keys[k]` are the sorted numbers (prefix's number * size + last token) of the grams of k + 1 tokens, `counts[k]`
    their c(h w). A token below 0 is unknown.
    """

    def __init__(self, size: int, keys: Sequence[Ints], counts: Sequence[Floats]) -> None:
        self.size, self.keys, self.counts = size, list(keys), list(counts)
        self.totals: list[Floats] = []
        self.types: list[Floats] = []
        self.discounts: list[float] = []
        n_prefixes = 1
        for level, count in zip(self.keys, self.counts, strict=True):
            prefix = level // size
            self.totals.append(np.bincount(prefix, count, n_prefixes).astype(np.float64))
            self.types.append(np.bincount(prefix, count > 0, n_prefixes).astype(np.float64))
            ones, twos = int((count == 1).sum()), int((count == 2).sum())
            self.discounts.append(min(ones / (ones + 2 * twos), 0.9) if ones else 0.5)
            n_prefixes = len(level)

    @property
    def order(self) -> int:
        """The longest gram."""
        return len(self.keys)

    @classmethod
    def fit(cls, sequences: Sequence[Sequence[int]], size: int, order: int) -> KneserNey:
        """Count the n-grams of sequences that include BEGIN and END; tokens are below `size`."""
        tokens, _, left = _flatten(sequences)
        keys: list[Ints] = []
        counts: list[Floats] = []
        number = np.zeros(len(tokens), dtype=np.int64)  # of the gram of k tokens that begins here
        begins = np.zeros(1, dtype=np.bool_)
        for k in range(order):
            starts = np.flatnonzero(left > k)
            if not len(starts):  # no sequence is that long; the longest gram is a whole sequence then
                break
            level, first, numbers, raw = np.unique(
                number[starts] * size + tokens[starts + k], return_index=True, return_inverse=True, return_counts=True
            )
            if k:
                # Count the distinct tokens that precede the n-gram without its first token.
                before = np.bincount(number[starts[first] + 1], minlength=len(keys[-1])).astype(np.float64)
                counts[-1] = np.where(begins, counts[-1], before)
            keys.append(level)
            counts.append(raw.astype(np.float64))
            begins = tokens[starts[first]] == BEGIN
            if k == 0:
                counts[0][level == BEGIN] = 0.0  # the beginning of a text is never scored
            number = np.full(len(tokens), -1, dtype=np.int64)
            number[starts] = numbers
        return cls(size, keys, counts)

    def log_probabilities(self, sequences: Sequence[Sequence[int]], base: Floats) -> Floats:
        """The log-probability of every token but the BEGINs, sequences end to end; `base` is log P_0 of each."""
        tokens, inside, left = _flatten(sequences)
        asked = np.flatnonzero(inside > 0)
        values = base.copy()
        number = np.zeros(len(tokens), dtype=np.int64)
        for k in range(self.order):
            # Here `number` is that of the k tokens from each place on: the histories.
            deep = inside[asked] >= k
            start = asked[deep] - k
            history = number[start]
            gram = np.full(len(tokens), -1, dtype=np.int64)
            places = np.flatnonzero(left > k)
            gram[places] = self._look_up(k, number[places], tokens[places + k])
            seen = history >= 0
            total = np.where(seen, self.totals[k][history], 0.0)
            seen = total > 0
            own = gram[start]
            count = np.where(own >= 0, self.counts[k][own], 0.0)[seen]
            total, history = total[seen], history[seen]
            rows = np.flatnonzero(deep)[seen]
            with np.errstate(divide="ignore"):
                direct = np.log(np.maximum(count - self.discounts[k], 0.0) / total)
                lower = np.log(self.discounts[k] * self.types[k][history] / total) + values[rows]
            values[rows] = np.logaddexp(direct, lower)
            number = gram
        return values

    def _look_up(self, k: int, prefix: Ints, last: Ints) -> Ints:
        """The numbers of grams by prefix and last token, -1 for one never seen."""
        keys = self.keys[k]
        wanted = prefix * self.size + last
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        known = (prefix >= 0) & (last >= 0) & (keys[place] == wanted)
        return np.where(known, place, -1)


class WordNgrams:
    """A model of texts: n-grams of words (by `tokenizer`), and of characters for unseen words."""

    def __init__(
        self, *, words: Sequence[str], characters: Sequence[str], word_model: KneserNey, character_model: KneserNey,
        tokenizer: str, lowercase: bool, n_texts: int,
    ) -> None:  # fmt: skip
        self.words, self.characters = list(words), list(characters)
        self.word_model, self.character_model = word_model, character_model
        self.tokenizer, self.lowercase, self.n_texts = tokenizer, lowercase, n_texts
        self._word_number = {word: number + 2 for number, word in enumerate(self.words)}
        self._character_number = {character: number + 2 for number, character in enumerate(self.characters)}

    @classmethod
    def fit(cls, texts: Iterable[str], *, order: int = 3, tokenizer: str = "13a", lowercase: bool = True) -> WordNgrams:
        """Train on texts; blank ones are skipped. Their order does not matter.

        Raises `ScoringError` when there is no word in them.
        """
        lines = [tokens for text in texts if (tokens := tokenize(text, tokenizer, lowercase))]
        if not lines:
            raise ScoringError("an n-gram model needs texts to learn from: there is no word in those given")
        words = sorted(set(chain.from_iterable(lines)))
        characters = sorted(set(chain.from_iterable(words)))
        number = {word: place + 2 for place, word in enumerate(words)}
        letter = {character: place + 2 for place, character in enumerate(characters)}
        return cls(
            words=words,
            characters=characters,
            word_model=KneserNey.fit([_framed(line, number) for line in lines], len(words) + 2, order),
            character_model=KneserNey.fit(
                [_framed(word, letter) for word in words], len(characters) + 2, CHARACTER_ORDER
            ),
            tokenizer=tokenizer,
            lowercase=lowercase,
            n_texts=len(lines),
        )

    def log_likelihoods(self, texts: Sequence[str]) -> tuple[Floats, Ints]:
        """(n,) the log-probability of each text, its end included, and (n,) its tokens with the end."""
        lines = [tokenize(text, self.tokenizer, self.lowercase) for text in texts]
        if not lines:
            return np.zeros(0), np.zeros(0, dtype=np.int64)
        place = {word: row for row, word in enumerate(dict.fromkeys(chain.from_iterable(lines)))}
        spelled = self._spell(list(place))
        lengths = np.array([len(line) + 1 for line in lines], dtype=np.int64)
        base = np.full(int(lengths.sum()), -np.inf)  # an end is not a string and has no P_0
        ends = np.cumsum(lengths) - 1
        inner = np.ones(len(base), dtype=np.bool_)
        inner[ends] = False
        base[inner] = spelled[[place[word] for line in lines for word in line]]
        result = self.word_model.log_probabilities([_framed(line, self._word_number) for line in lines], base)
        return np.add.reduceat(result, ends - lengths + 1), lengths

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything a probability depends on."""
        digest = hashlib.sha256(json.dumps(self._header(), ensure_ascii=True, sort_keys=True).encode())
        for name, array in sorted(self._arrays().items()):
            digest.update(name.encode() + array.tobytes())
        return digest.hexdigest()

    def save(self, folder: str | Path) -> None:
        """Write the model as `word_ngrams.json` and `word_ngrams.safetensors`."""
        from safetensors.numpy import save_file

        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / HEADER).write_text(json.dumps(self._header(), ensure_ascii=False) + "\n", encoding="utf-8")
        save_file(self._arrays(), str(path / ARRAYS))

    @classmethod
    def load(cls, folder: str | Path) -> WordNgrams:
        """A model that `save` wrote. Raises `ScoringError` for anything else."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        path = Path(folder)
        try:
            header = json.loads((path / HEADER).read_text(encoding="utf-8"))
            arrays = load_file(str(path / ARRAYS))
            words, characters = header["words"], header["characters"]
            return cls(
                words=words,
                characters=characters,
                word_model=_model(arrays, "word", int(header["order"]), len(words) + 2),
                character_model=_model(arrays, "character", int(header["character_order"]), len(characters) + 2),
                tokenizer=str(header["tokenizer"]),
                lowercase=bool(header["lowercase"]),
                n_texts=int(header["n_texts"]),
            )
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise ScoringError(f"{path} holds no n-gram model of texts: {error!r}. Save it again.") from error

    def _spell(self, words: Sequence[str]) -> Floats:
        """log P_0 of words: their characters' and their end's log-probabilities."""
        if not words:
            return np.zeros(0)
        lengths = np.array([len(word) + 1 for word in words])
        base = np.full(int(lengths.sum()), -np.log(CODE_POINTS + 1))
        result = self.character_model.log_probabilities([_framed(w, self._character_number) for w in words], base)
        return np.add.reduceat(result, np.cumsum(lengths) - lengths)

    def _header(self) -> dict[str, Any]:
        return {
            "order": self.word_model.order,
            "character_order": self.character_model.order,
            "tokenizer": self.tokenizer,
            "lowercase": self.lowercase,
            "n_texts": self.n_texts,
            "words": self.words,
            "characters": self.characters,
        }

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, model in (("word", self.word_model), ("character", self.character_model)):
            for k, (keys, counts) in enumerate(zip(model.keys, model.counts, strict=True)):
                arrays[f"{name}.{k}.keys"], arrays[f"{name}.{k}.counts"] = keys, counts
        return arrays


def _model(arrays: Mapping[str, npt.NDArray[Any]], name: str, order: int, size: int) -> KneserNey:
    keys = [arrays[f"{name}.{k}.keys"].astype(np.int64) for k in range(order)]
    return KneserNey(size, keys, [arrays[f"{name}.{k}.counts"].astype(np.float64) for k in range(order)])


def _framed(tokens: Iterable[str], number: Mapping[str, int]) -> list[int]:
    return [BEGIN, *(number.get(token, UNKNOWN) for token in tokens), END]


def _flatten(sequences: Sequence[Sequence[int]]) -> tuple[Ints, Ints, Ints]:
    """Tokens end to end; how far each is from the beginning of its sequence; how many there are from it on."""
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    tokens = np.fromiter(chain.from_iterable(sequences), np.int64, int(lengths.sum()))
    inside = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return tokens, inside, np.repeat(lengths, lengths) - inside
