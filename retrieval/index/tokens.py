"""Token sets: what retrieval compares. One definition for queries, rows and every backend; the index, embedded or in
Elasticsearch, only ever sees the tokens made here.

1. *Normal form*: NFKC(casefold(NFKC(text))); then U+2019, U+2018 and U+02BC become the apostrophe ', the underscore a
   space; characters of category Cf (soft hyphen, zero-width joiners, direction marks) and variation selectors vanish,
   only the zero-width space U+200B separates like a space.
2. *words*: a token is a longest run of letters, digits and combining marks, in any script and direction. An
   apostrophe between two of them belongs to the run (don't), so does a full stop or comma between two decimal digits
   (3.5 and 1,000).
3. *characters*: the same, but every letter of a script that sets no spaces (Han, Kana, Bopomofo, Thai, Lao, Khmer,
   Myanmar) is a token of its own, together with the marks on it. Other scripts in between remain words.
4. In both, every character of category So (emoji, pictographs) is a token of its own; two regional indicators are one
   (a flag). A skin tone is dropped: the same emoji in another tone is the same token.

5. Of a token longer than 200 characters the first 200 count, so that every token fits every backend.

Everything else separates. A text of punctuation alone has no tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import groupby

WORDS, CHARACTERS = "words", "characters"
TOKENIZERS = (WORDS, CHARACTERS)
LONGEST = 200
# ISO 639 codes of languages written without spaces between words.
UNSPACED = frozenset(["zh", "cmn", "yue", "wuu", "nan", "hak", "gan", "hsn", "lzh", "ja", "th", "lo", "km", "my"])
# The scripts of point 3, as blocks: Thai, Lao | Myanmar | Khmer | iteration and closing marks | Kana, Bopomofo |
# Bopomofo and Kana extensions | Han | Myanmar extensions | Kana supplements | Han extensions.
_UNSPACED_BLOCKS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3040-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\U0001aff0-\U0001b16f"
    "\U00020000-\U0003ffff"
)
_APOSTROPHES = dict.fromkeys((0x2018, 0x2019, 0x02BC), "'")


def tokenizer_for(language: str) -> str:
    """`characters` for a language code written without spaces between words (zh, ja-JP, th_TH ...), else `words`."""
    base = language.strip().lower().replace("_", "-").partition("-")[0]
    return CHARACTERS if base in UNSPACED else WORDS


def normalise(text: str) -> str:
    """The normal form of point 1."""
    if text.isascii():
        return text.lower().replace("_", " ")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.translate(_replacements())


def tokens(text: str, tokenizer: str = WORDS) -> frozenset[str]:
    """The set of tokens of a text."""
    normal = normalise(text)
    return frozenset(_cut(_pattern(tokenizer, normal.isascii()).findall(normal), len(normal)))


def tokens_in_order(texts: Iterable[str], tokenizer: str = WORDS) -> list[str]:
    """The tokens of many texts, one after the other with repetitions, each text closed by a token "\\n".

    The same tokens as `tokens` finds one by one: a line end neither composes with its neighbours nor is part of a
    token, so the texts cannot touch each other.
    """
    found: list[str] = []
    ready = [text.replace("\n", " ") if text.isascii() else normalise(text.replace("\n", " ")) for text in texts]
    # ASCII texts are made normal together and have a pattern of their own, several times faster.
    for plain, group in groupby(ready, str.isascii):
        parts = [*group, ""]
        joined = "\n".join(parts)
        if plain:
            joined = normalise(joined)
        found += _cut(_pattern(tokenizer, plain, "|\n").findall(joined), max(map(len, parts)))
    return found


def check_tokenizer(name: str) -> str:
    if name not in TOKENIZERS:
        raise ValueError(f"there is no tokenizer {name!r}; choose one of {', '.join(TOKENIZERS)}")
    return name


def _cut(found: list[str], longest_text: int) -> list[str]:
    """Point 5."""
    return [token[:LONGEST] for token in found] if longest_text > LONGEST else found


@lru_cache(maxsize=16)
def _pattern(tokenizer: str, ascii_only: bool, also: str = "") -> re.Pattern[str]:
    check_tokenizer(tokenizer)
    if ascii_only:
        return re.compile(_runs("[a-z0-9]", "0-9") + also)
    marks, symbols = _classes()
    # \w is letters, digits and the underscore, which the normal form has no more.
    if tokenizer == WORDS:
        found = _runs(f"[\\w{marks}]", "\\d")
    else:
        letter = f"(?:(?![{_UNSPACED_BLOCKS}])\\w)[{marks}]*"
        found = f"[{_UNSPACED_BLOCKS}](?<=\\w)[{marks}]*|" + _runs(f"(?:{letter}|[{marks}])", "\\d")
    return re.compile(f"{found}|[\U0001f1e6-\U0001f1ff]{{2}}|[{symbols}]{also}")


def _runs(character: str, digit: str) -> str:
    """Runs of a class with apostrophes inside, and points and commas between digits."""
    inner = f"'|(?<=[{digit}])[.,](?=[{digit}])"
    return f"{character}+(?:(?:{inner}){character}+)*"


@cache
def _replacements() -> dict[int, str | None]:
    table: dict[int, str | None] = {code: None for code in _codes() if unicodedata.category(chr(code)) == "Cf"}
    table.update(dict.fromkeys((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), 0x034F)))
    table.update(_APOSTROPHES)
    table.update({0x200B: " ", ord("_"): " "})
    return table


@cache
def _classes() -> tuple[str, str]:
    """Combining marks and symbols (So), written as the inside of a character class."""
    categories = [(code, unicodedata.category(chr(code))) for code in _codes()]
    return (
        _ranges([code for code, category in categories if category[0] == "M"]),
        _ranges([code for code, category in categories if category == "So"]),
    )


def _codes() -> tuple[int, ...]:
    """Every code point beyond ASCII that can be a mark, a symbol or a format character."""
    return (*range(0x80, 0x20000), *range(0xE0000, 0xE0200))


def _ranges(codes: Sequence[int]) -> str:
    parts: list[str] = []
    start = last = codes[0]
    for code in [*codes[1:], -1]:
        if code != last + 1:
            parts.append(chr(start) if start == last else f"{chr(start)}-{chr(last)}")
            start = code
        last = code
    return "".join(parts)
