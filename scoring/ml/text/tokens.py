"""Tokenisers of the metrics, and texts as arrays of token numbers.

The tokenisers of BLEU (`13a`, `zh`, `char`, `none`) give the tokens of sacrebleu 2.6. Each works on one
white-space-separated word at a time, so that every distinct word is tokenised once (with `zh` once for each position at
the begin or end of its text).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evalapp.words import UNSPACED_BLOCKS

Ints: TypeAlias = npt.NDArray[np.int64]
SplitWord: TypeAlias = Callable[[str], Sequence[str]]

# The language-dependent part of mteval-v13a: all ASCII symbols but ' , - . become separate tokens ...
_SYMBOL = re.compile(r"([!-&(-+/:-@\[-`{-~])")
# ... as does a full stop or comma that is not between digits, and a dash after a digit.
_STOP_AFTER_OTHER = re.compile(r"([^0-9])([.,])")
_STOP_BEFORE_OTHER = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])(-)")
# Characters that sacrebleu's `zh` separates. Its two astral ranges are written with four-digit escapes there and so
# cover U+2001 to U+2A6D instead; kept, because equal scores matter more here than the better rule.
_ZH_RANGES = (
    (0x2001, 0x2A6D), (0x2E80, 0x2EFF), (0x2F00, 0x2FDF), (0x2FF0, 0x2FFF), (0x3000, 0x303F), (0x3100, 0x312F),
    (0x31A0, 0x31BF), (0x31C0, 0x31EF), (0x3200, 0x33FF), (0x3400, 0x4DB5), (0x4E00, 0x9FBB), (0xF900, 0xFA2D),
    (0xFA30, 0xFA6A), (0xFA70, 0xFAD9), (0xFE10, 0xFE1F), (0xFE30, 0xFE4F), (0xFF00, 0xFFEF),
)  # fmt: skip
_ZH = re.compile("([" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _ZH_RANGES) + "])")
# Scripts written without spaces, one character, one token; the half-width kana, which only a normal form would widen.
_UNSPACED = re.compile(f"[{UNSPACED_BLOCKS}\uff66-\uff9d]")


def split_13a(word: str) -> Sequence[str]:
    """The tokens of a word under mteval-v13a, as sacrebleu's `13a`."""
    if word.isalnum():
        return (word,)
    word = word.replace("<skipped>", "")
    if "&" in word:
        for entity, character in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
            word = word.replace(entity, character)
    return _split_symbols(word)


def split_zh(word: str, begins: bool = False, ends: bool = False) -> Sequence[str]:
    """Return the tokens of a `word` with each Chinese character separate, as sacrebleu's `zh`.

    Unlike `13a` it puts no space around the text: a full stop or comma at its begin (`begins`) or end (`ends`) stays
    with the adjacent digit.
    """
    return _split_symbols(_ZH.sub(r" \1 ", word), begins, ends)


def split_none(word: str) -> Sequence[str]:
    """The word itself: the text is tokenised already."""
    return (word,)


def split_unicode(word: str) -> Sequence[str]:
    """Return runs of letters, digits and their marks in a `word` of any script, without punctuation, symbols on their
    own. Letters with separate marks equal those in one character (Unicode NFC).

    Scripts without spaces (Thai, Lao, Khmer, Myanmar, Chinese, Japanese) are split into characters.

    >>> split_unicode("it's5€")
    ['it', 's5', '€']
    """
    if word.isascii() and word.isalnum():
        return (word,)
    parts: list[str] = []
    run = ""
    for character in unicodedata.normalize("NFC", word):
        category = unicodedata.category(character)[0]
        alone = category == "S" or _UNSPACED.match(character) is not None
        if category in "LNM" and not alone:
            run += character
            continue
        if run:
            parts.append(run)
            run = ""
        if alone:
            parts.append(character)
    return [*parts, run] if run else parts


def split_rouge(word: str) -> Sequence[str]:
    """Runs of `[a-z0-9]` in a lower-cased word, as the rouge-score package without stemmer."""
    return re.findall(r"[a-z0-9]+", word)


def _split_symbols(word: str, begins: bool = False, ends: bool = False) -> list[str]:
    text = _SYMBOL.sub(r" \1 ", f"{'' if begins else ' '}{word}{'' if ends else ' '}")
    text = _STOP_AFTER_OTHER.sub(r"\1 \2 ", text)
    text = _STOP_BEFORE_OTHER.sub(r" \1 \2", text)
    return _DASH_AFTER_DIGIT.sub(r"\1 \2 ", text).split()


SPLITTERS: dict[str, SplitWord] = {
    "13a": split_13a,
    "zh": split_zh,
    "char": tuple,
    "none": split_none,
    "unicode": split_unicode,
    "rouge-score": split_rouge,
}
BLEU_TOKENIZERS = ("13a", "zh", "char", "none")


def tokenizer_for(language: str) -> str:
    """The BLEU tokeniser of a language code: `zh` for Chinese, `char` without word spaces, else `13a`."""
    base = base_language(language)
    if base == "zh":
        return "zh"
    return "char" if base in ("ja", "th", "lo", "km", "my") else "13a"


def rouge_tokenizer_for(language: str) -> str:
    """ROUGE's tokeniser of a language code: the tokens of the rouge-score package for English, else `unicode`."""
    return "rouge-score" if base_language(language) == "en" else "unicode"


def base_language(language: str) -> str:
    """The language of a tag, without script and region: `en` of `en_GB`."""
    return language.strip().lower().replace("_", "-").partition("-")[0]


def is_mostly(text: str, letters: re.Pattern[str]) -> bool:
    """Whether more than half of a text's letters match."""
    n_letters = sum(map(str.isalpha, text))
    return len([letter for letter in letters.findall(text) if letter.isalpha()]) * 2 > n_letters


def unspaced_remark(texts: Iterable[str], tokenizer: str) -> tuple[str, ...]:
    """A remark if `tokenizer` splits at spaces and texts are written without any, so that whole phrases are tokens."""
    if tokenizer not in ("13a", "none"):
        return ()
    n = sum(not text.isascii() and is_mostly(text, _UNSPACED) for text in texts)
    if not n:
        return ()
    return (
        f"{n} texts are written without spaces between words, but are split at spaces ({tokenizer}): set `lang` to "
        "their language, or tokenize=char",
    )


def clean(text: str, tokenizer: str, lowercase: bool = False) -> str:
    """Normalise the whole line `text` as sacrebleu does before tokenising by `tokenizer`; `lowercase` ignores case."""
    text = (text.lower() if lowercase else text).rstrip()
    if tokenizer == "13a" and "\n" in text:
        return text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    return text


def tokenize(text: str, tokenizer: str, lowercase: bool = False) -> list[str]:
    """Return the tokens of a `text`. `tokenizer` is a key of `SPLITTERS`; `lowercase` ignores case.

    >>> tokenize("Well, yes.", "13a", lowercase=True)
    ['well', ',', 'yes', '.']
    """
    split, words = SPLITTERS[tokenizer], clean(text, tokenizer, lowercase).split()
    if tokenizer != "zh":
        return [token for word in words for token in split(word)]
    last = len(words) - 1
    return [token for place, word in enumerate(words) for token in split_zh(word, place == 0, place == last)]


@dataclass(frozen=True, slots=True)
class TokenTable:
    """Texts as token numbers: text i is `ids[starts[i] : starts[i] + lengths[i]]`; ids < `size`."""

    ids: Ints
    starts: Ints
    lengths: Ints
    size: int

    def row(self, index: int) -> Ints:
        """The token numbers of a text."""
        return self.ids[self.starts[index] : self.starts[index] + self.lengths[index]]


def token_table(texts: Sequence[str], tokenizer: str, lowercase: bool = False) -> TokenTable:
    """Tokenise `texts` by `tokenizer`, with `lowercase` in lower case; equal tokens have equal numbers across the
    table."""
    words = _Words(SPLITTERS[tokenizer])
    look_up = words.__getitem__
    at_edges = {
        edges: _Words(partial(split_zh, begins=edges[0], ends=edges[1]), words.numbers)
        for edges in ((True, False), (False, True), (True, True))
    }
    flat: list[int] = []
    ends: list[int] = []
    for text in texts:
        result = clean(text, tokenizer, lowercase).split()
        if tokenizer == "zh" and result:
            first, *others = result
            flat.extend(at_edges[True, not others][first])
            flat.extend(chain.from_iterable(map(look_up, others[:-1])))
            flat.extend(at_edges[False, True][others[-1]] if others else ())
        else:
            flat.extend(chain.from_iterable(map(look_up, result)))
        ends.append(len(flat))
    return _table(np.array(flat, dtype=np.int64), ends, len(words.numbers))


def sequence_table(sequences: Sequence[Sequence[str]]) -> TokenTable:
    """Return a table of `sequences`, texts that are token lists already; equal tokens have equal numbers."""
    numbers: dict[str, int] = {}
    flat = [numbers.setdefault(token, len(numbers)) for token in chain.from_iterable(sequences)]
    ends = np.cumsum([len(sequence) for sequence in sequences]).tolist()
    return _table(np.array(flat, dtype=np.int64), ends, len(numbers))


def character_table(texts: Sequence[str]) -> TokenTable:
    """Return a table of `texts` as code points, without white space."""
    bare = ["".join(text.split()) for text in texts]
    joined = "".join(bare).encode("utf-32-le", "surrogatepass")
    ids = np.frombuffer(joined, dtype="<u4").astype(np.int64)
    return _table(ids, np.cumsum([len(text) for text in bare]).tolist(), 0x110000)


def _table(ids: Ints, ends: Sequence[int], size: int) -> TokenTable:
    stops = np.array(ends, dtype=np.int64)
    lengths = np.diff(stops, prepend=0)
    return TokenTable(ids, stops - lengths, lengths, max(size, 1))


class _Words(dict[str, tuple[int, ...]]):
    """The token numbers of each distinct word, found when it is first asked for."""

    def __init__(self, split: SplitWord, numbers: dict[str, int] | None = None) -> None:
        super().__init__()
        self.split = split
        self.numbers: dict[str, int] = {} if numbers is None else numbers

    def __missing__(self, word: str) -> tuple[int, ...]:
        numbers = self.numbers
        result = tuple(numbers.setdefault(token, len(numbers)) for token in self.split(word))
        self[word] = result
        return result
