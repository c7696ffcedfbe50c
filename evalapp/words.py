"""Splits texts of any script into words. Counts, comparisons and searches use this one definition.

1. *Normal form*: NFKC(casefold(NFKC(text))); then U+2019, U+2018 and U+02BC become the apostrophe ', the underscore a
   space; characters of category Cf (soft hyphen, zero-width joiners, direction marks) and variation selectors vanish,
   only the zero-width space U+200B separates like a space.
   Between two letters the acute accent U+00B4 and the prime U+2032 are apostrophes as well, as many people type them;
   elsewhere an accent without a letter separates.
2. A *word* is a longest run of letters, digits, combining marks and apostrophes. Of ASCII texts these are the matches
   of `[a-z0-9']+` in the lower-cased text.
3. In the scripts that set no spaces between words (Han, Kana, Bopomofo, Thai, Lao, Khmer, Myanmar) every letter is a
   word of its own, together with the marks on it.
4. Every character of category So (emoji, pictographs) is a word; two regional indicators are one (a flag). A skin tone
   is dropped.

Everything else separates. A text of punctuation alone has no words.

`retrieval.index.tokens` is a sibling: its indexes are saved, so its tokens keep their own treatment of apostrophes
and of numbers with a full stop or comma, but the normal form and the classes of characters are those of this module.
A change of `normalise`, `UNSPACED_BLOCKS` or `character_classes` changes the format of its indexes."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

# The scripts of point 3, as blocks: Thai, Lao | Myanmar | Khmer | iteration and closing marks | Kana, Bopomofo |
# Bopomofo and Kana extensions | Han | Myanmar extensions | Kana supplements | Han extensions.
_UNSPACED_NARROW = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3040-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff"
)
UNSPACED_BLOCKS = f"{_UNSPACED_NARROW}\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
_APOSTROPHES = "\u2018\u2019\u02bc"
# Not part of `normalise`, which the saved indexes use.
_TYPED_APOSTROPHE = re.compile(r"(?<=[^\W\d_])[\u00b4\u2032](?=[^\W\d_])")
# Accents without a letter: NFKC makes a space with a combining mark of each, which would be a word.
_BARE_ACCENT = re.compile(
    "[\u00a8\u00af\u00b4\u00b8\u02d8-\u02dd\u037a\u0384\u0385\u1fbd\u1fbf-\u1fc1\u1fcd-\u1fcf\u1fdd-\u1fdf\u1fed\u1fee\u1ffd\u1ffe"
    "\u2017\u203e\u309b\u309c\uffe3]"
)
_ASCII_WORD = re.compile(r"[a-z0-9']+")
# Letters, digits and apostrophes; the normal form has no underscores.
_PLAIN_WORD = re.compile(r"[\w']+")


def split_words(text: str) -> list[str]:
    """Return the words of a text in order, in their normal form.

    >>> split_words("Don't stop, café!")
    ["don't", 'stop', 'café']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    normal = _normalise_typed(text)
    wide = max(normal, default="") > "\uffff"
    # Marks, symbols and unspaced scripts need a slower pattern; most texts in other scripts contain none.
    return (_word_pattern(wide) if _special(wide).search(normal) else _PLAIN_WORD).findall(normal)


def word_runs(text: str) -> Iterator[list[str]]:
    """Return the words of a text; those of one run of unspaced writing together, each other word alone."""
    if text.isascii():
        yield from ([word] for word in split_words(text))
        return
    normal = _normalise_typed(text)
    wide = max(normal, default="") > "\uffff"
    for run in _run_pattern(wide).findall(normal):
        yield _word_pattern(wide).findall(run)


def _normalise_typed(text: str) -> str:
    return normalise(_BARE_ACCENT.sub(" ", _TYPED_APOSTROPHE.sub("'", text)))


def normalise(text: str) -> str:
    """Return the normal form of point 1."""
    if text.isascii():
        return text.lower().replace("_", " ")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    for character in _APOSTROPHES:
        folded = folded.replace(character, "'")
    folded = folded.replace("_", " ").replace("\u200b", " ")
    return _invisible().sub("", folded)


@cache
def character_classes(wide: bool = True) -> tuple[str, str]:
    """Return combining marks and symbols (So) as the inside of a character class; unless `wide`, up to U+FFFF."""
    codes = (code for code in _codes() if wide or code <= 0xFFFF)
    categories = [(code, unicodedata.category(chr(code))) for code in codes]
    return (
        _ranges([code for code, category in categories if category[0] == "M"]),
        _ranges([code for code, category in categories if category == "So"]),
    )


@cache
def _special(wide: bool) -> re.Pattern[str]:
    return re.compile(f"[{''.join(_classes(wide))}]")


@cache
def _word_pattern(wide: bool) -> re.Pattern[str]:
    unspaced, marks, symbols = _classes(wide)
    letter = f"[{unspaced}](?<=\\w)[{marks}]*"
    return re.compile(f"{letter}|(?:[^\\W{unspaced}]+|[{marks}']+)+|{FLAG}|[{symbols}]")


@cache
def _run_pattern(wide: bool) -> re.Pattern[str]:
    unspaced, marks, symbols = _classes(wide)
    letters = f"(?:[{unspaced}](?<=\\w)[{marks}]*)+"
    return re.compile(f"{letters}|(?:[^\\W{unspaced}]+|[{marks}']+)+|{FLAG}|[{symbols}]")


def _classes(wide: bool) -> tuple[str, str, str]:
    """Return unspaced scripts, marks and symbols; unless `wide`, without code points above U+FFFF, which `re` looks
    up slowly."""
    return (UNSPACED_BLOCKS if wide else _UNSPACED_NARROW, *character_classes(wide))


@cache
def _invisible() -> re.Pattern[str]:
    formats = [code for code in _codes() if unicodedata.category(chr(code)) == "Cf"]
    return re.compile(f"[{_ranges(sorted({*formats, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), 0x034F}))}]")


def _codes() -> tuple[int, ...]:
    """Return every code point beyond ASCII that can be a mark, a symbol or a format character."""
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
