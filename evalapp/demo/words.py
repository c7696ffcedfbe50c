"""Words of the demonstration texts: splitting, joining, content words, and slots in place of names and values.
Used by the systems and by the rater model; the product's own tokenisers live elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from evalapp.demo.texts import read_json

_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|[.,?!:;]")
_CLOSED = frozenset(".,?!:;")
_SENTENCE_END = frozenset(".?!")

#: Values that the systems may copy from the representation instead of learning them, as placeholder words.
COPIED = {"name": "Xname", "near": "Xnear", "food": "Xfood", "area": "Xarea"}

FUNCTION_WORDS = frozenset(read_json("words.json")["function"].split())


def split_words(text: str) -> list[str]:
    """Words and sentence marks, in the case of the text."""
    return _TOKEN.findall(text)


def content_words(text: str) -> list[str]:
    """Lower-cased words that carry content, without sentence marks and without a plural or verbal s."""
    words = [word.lower() for word in split_words(text) if word not in _CLOSED]
    return [stem(word) for word in words if word not in FUNCTION_WORDS]


def stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def mid_sentence_capitals(texts: Iterable[str]) -> frozenset[str]:
    """Words that keep their capital inside a sentence: names, days, languages."""
    found: set[str] = set()
    for text in texts:
        before = "."
        for word in split_words(text):
            if before not in _SENTENCE_END and word[0].isupper():
                found.add(word)
            before = word
    return frozenset(found)


def lower_starts(words: Sequence[str], capitals: frozenset[str]) -> list[str]:
    """The words with sentence starts in lower case, unless they would have a capital anywhere."""
    out: list[str] = []
    before = "."
    for word in words:
        keep = before not in _SENTENCE_END or word in capitals
        out.append(word if keep else word[0].lower() + word[1:])
        before = word
    return out


def join_words(words: Sequence[str]) -> str:
    """A text with capitals at sentence starts, no space before marks, and a mark at the end."""
    out = ""
    start = True
    for word in words:
        piece = word[0].upper() + word[1:] if start else word
        out += piece if word in _CLOSED or not out else " " + piece
        start = word in _SENTENCE_END
    out = out.rstrip(",:; ")
    return out if out and out[-1] in _SENTENCE_END else out + "."


def slot_pattern(value: str) -> re.Pattern[str]:
    """The value as whole words, in any case, with spaces or hyphens between its words."""
    return re.compile(r"\b" + r"[ -]".join(map(re.escape, value.split())) + r"\b", re.IGNORECASE)


def without_slots(text: str, slots: Mapping[str, str]) -> str:
    """The text with the values of copied attributes replaced by their placeholders."""
    for attribute, placeholder in COPIED.items():
        if attribute in slots:
            text = slot_pattern(slots[attribute]).sub(placeholder, text)
    return text


def with_slots(text: str, slots: Mapping[str, str]) -> str:
    """The inverse of `without_slots`, with the values of another representation."""
    for attribute, placeholder in COPIED.items():
        if attribute in slots:
            text = text.replace(placeholder, slots[attribute])
    return text[0].upper() + text[1:]
