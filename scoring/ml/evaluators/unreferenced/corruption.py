"""Replies that are broken on purpose: dropped, shuffled and repeated words (Sinha et al. 2020, section 3.2).

Pure functions of a text and a generator. Words are separated by spaces; a text written without spaces in a
script that sets none (Chinese, Japanese, Thai ...) or in Korean letters is taken letter by letter.

Explained in docs/explanation/evaluators/unreferenced.md#false-replies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from evalapp.words import UNSPACED_BLOCKS

DROP = 0.5
#: How often a broken reply that equals the true one is drawn again.
TRIES = 5
_UNSPACED = re.compile(f"[{UNSPACED_BLOCKS}\uac00-\ud7af]")
Corruption: TypeAlias = Callable[[Sequence[str], np.random.Generator], list[str]]


def drop_words(words: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Drop each of the `words` with probability .5, drawn by `rng`. If all would be dropped they are shuffled; an empty
    text becomes "word"."""
    if not words:
        return ["word"]
    kept = [word for word, stays in zip(words, rng.random(len(words)) >= DROP, strict=True) if stays]
    return kept or shuffle_words(words, rng)


def shuffle_words(words: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return all `words` in random order, drawn by `rng`."""
    return [words[place] for place in rng.permutation(len(words))]


def repeat_word(words: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Repeat one of the first two `words`, drawn by `rng`, from its place to the end; the length stays."""
    if not words:
        return []
    place = int(rng.integers(min(2, len(words))))
    return [*words[:place], *[words[place]] * (len(words) - place)]


CORRUPTIONS: dict[str, Corruption] = {
    "word_drop": drop_words,
    "word_order": shuffle_words,
    "word_repeat": repeat_word,
}


def split_words(text: str) -> tuple[list[str], str]:
    """The words of a text and what joins them again."""
    words = text.split()
    if len(words) == 1 and len(text) > 1 and _UNSPACED.search(text):
        return list(words[0]), ""
    return words, " "


def corrupt(text: str, kind: str, rng: np.random.Generator, *, keep_identical: bool) -> str | None:
    """Return a `text` broken in one way: `kind` is a key of `CORRUPTIONS`, `rng` draws.

    A result that equals the text is drawn again up to five times, then None is returned; with `keep_identical` it is
    returned, as in the released code.
    """
    words, joint = split_words(text)
    broken = CORRUPTIONS[kind]
    for _ in range(1 if keep_identical else 1 + TRIES):
        result = joint.join(broken(words, rng))
        if keep_identical or (result != text and result):
            return result
        if len(words) < 2:
            return None
    return None
