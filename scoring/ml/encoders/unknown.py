"""Detection of texts that an encoder cannot read: a tokenizer maps every word that it does not know to one token."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.tokenizing import encode_texts

# WordPiece does not split longer words.
_LONG_WORD = re.compile(r"\w{101}")
_TEXTS_AT_A_TIME = 1024


class Coverage(IntEnum):
    """How much of a text an encoder's tokenizer knows. A text without a known token that has a letter is unknown:
    digits and punctuation next to unknown words carry no information."""

    ALL = 0
    SOME = 1
    NONE = 2


class UnknownTokens:
    """Looks for unknown tokens in texts; `backend` is a tokenizer of the package tokenizers."""

    def __init__(self, name: str, backend: Any) -> None:
        self.name, self.backend, self.unknown = name, backend, find_unknown(backend)
        backend.no_truncation()
        backend.no_padding()
        # Treat special tokens in texts as plain text.
        backend.encode_special_tokens = True

    @classmethod
    def from_tokenizer(cls, name: str, tokenizer: Any) -> UnknownTokens:
        """For a tokenizer of transformers."""
        return cls(name, tokenizer.backend_tokenizer)

    @classmethod
    def from_folder(cls, name: str, folder: Path) -> UnknownTokens | None:
        """For an encoder's folder, read without transformers and torch; None without a tokenizer.json."""
        path = folder / "tokenizer.json"
        if not path.is_file():
            return None
        stat = path.stat()
        return _read(name, str(path), stat.st_size, stat.st_mtime_ns)

    @property
    def reason(self) -> str:
        """The reason why a text of unknown tokens has no score."""
        return f"the encoder {self.name} knows no word of it: choose one that reads this language"

    def look(self, texts: Iterable[str]) -> dict[str, Coverage]:
        """How much of each distinct text is known; blank texts are known."""
        result = dict.fromkeys(texts, Coverage.ALL)
        if self.unknown is None:
            return result
        doubtful = [text for text in result if text.strip() and not self._surely_known(text)]
        for start in range(0, len(doubtful), _TEXTS_AT_A_TIME):
            part = doubtful[start : start + _TEXTS_AT_A_TIME]
            for text, encoding in zip(part, encode_texts(self.backend, part), strict=True):
                result[text] = self._judge(encoding.ids)
        return result

    def describe(self, texts: Iterable[str], noun: str = "texts") -> str:
        """A sentence (without full stop) that counts the distinct texts with unknown words; "" if there are none."""
        known = self.look(text for text in texts if text.strip())
        n = sum(coverage != Coverage.ALL for coverage in known.values())
        if not n:
            return ""
        return (
            f"{n:,} of {len(known):,} different {noun} have words that the encoder {self.name} does not know: it "
            "cannot distinguish these words"
        )

    def _judge(self, ids: Sequence[int]) -> Coverage:
        if self.unknown not in ids:
            return Coverage.ALL
        return Coverage.SOME if self._has_letter[list(ids)].any() else Coverage.NONE

    def _surely_known(self, text: str) -> bool:
        return text.isascii() and self._knows_ascii and _LONG_WORD.search(text) is None

    @cached_property
    def _knows_ascii(self) -> bool:
        """Whether each visible ASCII character is known at the beginning of a word, inside, and repeated."""
        visible = string.ascii_letters + string.digits + string.punctuation
        encodings = encode_texts(self.backend, [f"{char} a{char}{char}" for char in visible])
        return all(self.unknown not in encoding.ids for encoding in encodings)

    @cached_property
    def _has_letter(self) -> npt.NDArray[np.bool_]:
        vocabulary = self.backend.get_vocab(with_added_tokens=True)
        values = np.zeros(max(vocabulary.values(), default=0) + 1, dtype=np.bool_)
        values[[number for token, number in vocabulary.items() if any(map(str.isalpha, token))]] = True
        values[self.unknown] = False
        return values


@lru_cache(maxsize=4)
def _read(name: str, path: str, size: int, modified: int) -> UnknownTokens:
    """Read once per size and modification time of the file."""
    from tokenizers import Tokenizer

    return UnknownTokens(name, Tokenizer.from_file(path))


def find_unknown(backend: Any) -> int | None:
    """Return the number of the unknown token of a tokenizer's `backend`; None if it knows every byte.

    The `unk_token_id` of transformers may be another token, which no text ever contains.
    """
    model = backend.model
    if hasattr(model, "unk_token"):
        number: int | None = backend.token_to_id(model.unk_token) if model.unk_token else None
        return number
    # A Unigram model has it only in its serialised form, before its vocabulary.
    said = re.search(rb'"unk_id":\s*(\d+)', model.__getstate__())
    return int(said[1]) if said else None
