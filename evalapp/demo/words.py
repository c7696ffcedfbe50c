"""Split and join the demonstration texts, find content words, and replace values by slots. Used by the systems and the
rater model only."""

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
    """Return words and punctuation, in the case of the text."""
    return _TOKEN.findall(text)


def content_words(text: str) -> list[str]:
    """Return lower-cased content words, without punctuation and final s."""
    words = [word.lower() for word in split_words(text) if word not in _CLOSED]
    return [stem(word) for word in words if word not in FUNCTION_WORDS]


def stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def mid_sentence_capitals(texts: Iterable[str]) -> frozenset[str]:
    """Return words with a capital within sentences: names, days, languages."""
    capitals: set[str] = set()
    for text in texts:
        before = "."
        for word in split_words(text):
            if before not in _SENTENCE_END and word[0].isupper():
                capitals.add(word)
            before = word
    return frozenset(capitals)


def lower_starts(words: Sequence[str], capitals: frozenset[str]) -> list[str]:
    """Return the words with sentence starts in lower case, except those in `capitals`."""
    out: list[str] = []
    before = "."
    for word in words:
        keep = before not in _SENTENCE_END or word in capitals
        out.append(word if keep else word[0].lower() + word[1:])
        before = word
    return out


def join_words(words: Sequence[str]) -> str:
    """Return a text with capitals at sentence starts, no space before punctuation, and a final mark."""
    out = ""
    start = True
    for word in words:
        piece = word[0].upper() + word[1:] if start else word
        out += piece if word in _CLOSED or not out else " " + piece
        start = word in _SENTENCE_END
    out = out.rstrip(",:; ")
    return out if out and out[-1] in _SENTENCE_END else out + "."


def slot_pattern(value: str) -> re.Pattern[str]:
    """Return a pattern for the value as whole words, ignoring case, with spaces or hyphens between its words."""
    return re.compile(r"\b" + r"[ -]".join(map(re.escape, value.split())) + r"\b", re.IGNORECASE)


def without_slots(text: str, slots: Mapping[str, str]) -> str:
    """Replace the values of copied attributes by placeholders."""
    for attribute, placeholder in COPIED.items():
        if attribute in slots:
            text = slot_pattern(slots[attribute]).sub(placeholder, text)
    return text


def with_slots(text: str, slots: Mapping[str, str]) -> str:
    """Replace placeholders by the values in `slots`."""
    for attribute, placeholder in COPIED.items():
        if attribute in slots:
            text = text.replace(placeholder, slots[attribute])
    return text[0].upper() + text[1:]
