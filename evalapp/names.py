"""Characters allowed in names of people, projects, campaigns, systems and aspects. Does not import Django.

A name is one line that reads as it is stored. Control characters and line breaks are refused (they end a comment or
a row in an export), and so are characters that change the text direction or are invisible, because they make
different names look alike. Joiners and variation selectors are allowed where they change the appearance, as in many
Persian and Sinhala names and in emoji."""

import re
import unicodedata
from functools import lru_cache
from typing import Any

from evalapp.translation import gettext as _

#: Invisible characters that Unicode does not class as "format" (Cf): fillers, joiners, variation selectors, blanks.
_INVISIBLE = frozenset(
    [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0]
    + [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
)
#: Control, format (bidi and zero-width characters among them), half of a surrogate pair, line and paragraph separator.
_REFUSED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def find_hidden(name: str) -> list[str]:
    r"""Return the characters of `name` that names may not contain, each once, as `U+202E RIGHT-TO-LEFT OVERRIDE`.

    >>> find_hidden("owner\u200b")
    ['U+200B ZERO WIDTH SPACE']
    """
    hidden = dict.fromkeys(name[place] for place in sorted(find_hidden_places(name)))
    return [f"U+{ord(c):04X} {unicodedata.name(c, _describe(c))}" for c in hidden]


def find_hidden_places(name: str) -> set[int]:
    """Return the positions of the characters in `name`."""
    if name.isascii() and name.isprintable():
        return set()
    places = {place for place, character in enumerate(name) if is_hidden(character)}
    if any(_is_joiner(name[place]) for place in places):
        places -= {match.start() for match in _compile_meaningful().finditer(name)}
    return places


def is_hidden(character: str) -> bool:
    """Return whether a character ends a line, is a control character, or is invisible."""
    return unicodedata.category(character) in _REFUSED or ord(character) in _INVISIBLE


def _is_joiner(character: str) -> bool:
    """Return whether it is a joiner or a variation selector, which change the appearance of their neighbours."""
    return character in "\u200c\u200d\u180b\u180c\u180d\u180f\ufe0f" or 0xE0100 <= ord(character) < 0xE01F0


#: Where joiners and variation selectors change what is seen. A1, A2 and B are the rules of Unicode Standard Annex 31,
#: section 2.3.1 (revision 37), the sequences of emoji those of Unicode Technical Standard 51.
_MEANINGFUL = r"""(?xV1)
      # A1: a non-joiner between letters that would join.
      (?<= [\p{Joining_Type=D}\p{Joining_Type=L}] \p{Joining_Type=T}* ) \u200c
      (?=  \p{Joining_Type=T}* [\p{Joining_Type=D}\p{Joining_Type=R}] )
      # A2: a non-joiner after a virama, before a letter.
    | (?<= \p{L} \p{M}* \p{ccc=Virama} [\p{Mn}--\p{ccc=0}]* ) \u200c (?= [\p{Mn}--\p{ccc=0}]* \p{L} )
      # B: a joiner after a virama, not before a dependent vowel.
    | (?<= \p{L} \p{M}* \p{ccc=Virama} [\p{Mn}--\p{ccc=0}]* ) \u200d (?! \p{InSC=Vowel_Dependent} )
      # Bengali ra with ya-phalaa (The Unicode Standard, section 12.2).
    | (?<= \u09b0 ) \u200d (?= \u09cd \u09af )
      # Emoji: joined to the next one, drawn in colour, keys such as 1 in a box.
    | (?<= \p{ExtPict} [\ufe0f\p{EMod}]* ) \u200d (?= \p{ExtPict} )
    | (?<= [\p{Emoji}--\p{EMod}--[0-9\#*]] ) \ufe0f
    | (?<= [0-9\#*] ) \ufe0f (?= \u20e3 )
      # Variants of ideographs, such as those of Japanese family names, and of Mongolian letters.
    | (?<= \p{Ideographic} ) [\U000e0100-\U000e01ef]
    | (?<= [\p{Script=Mongolian}&&\p{L}] ) [\u180b-\u180d\u180f]
"""


@lru_cache(maxsize=1)
def _compile_meaningful() -> Any:
    """Return the pattern; compiled on first use, because importing the Unicode properties takes a tenth of a second."""
    import regex

    return regex.compile(_MEANINGFUL)


#: Embeddings, overrides and isolates of direction, which reorder the text after the name.
_DIRECTIONS = frozenset([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def explain_breaking(name: str) -> str:
    """Return what is wrong with the characters of a name that rows refer to, such as a system's or an item's; "" if
    nothing is. Joiners and direction marks belong to the spelling of some languages and are allowed."""
    if name.isprintable():
        return ""
    breaking = [c for c in name if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or ord(c) in _DIRECTIONS]
    shown = ", ".join(find_hidden("".join(breaking))[:3])
    text = _("a line break, a control character or a change of direction (%(shown)s). Remove it.")
    return text % {"shown": shown} if breaking else ""


def explain_line(text: str) -> str:
    """Return what is wrong with the characters of a single-line text, such as a licence; "" if nothing is."""
    why = explain_breaking(text)
    return _("The text contains %(reason)s") % {"reason": why} if why else ""


#: The form of a language tag (RFC 5646): a language of letters, then script, region or variants.
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")


def explain_language(tag: str) -> str:
    """Return what is wrong with a language tag, its characters or its form; "" if nothing is, or if it is empty.

    >>> explain_language("pt-BR"), explain_language("zz123")[:22]
    ('', '“zz123” is not a langu')
    """
    if not tag or _LANGUAGE.fullmatch(tag):
        return ""
    text = _("“%(tag)s” is not a language tag. Write one such as en, de or pt-BR; und if there is none.")
    return explain_hidden(tag) or text % {"tag": tag}


def explain_hidden(name: str) -> str:
    """Return what is wrong with the characters of `name` and how to correct it; "" if nothing is."""
    hidden = find_hidden(name)
    if not hidden:
        return ""
    shown = ", ".join(hidden[:3]) + (", ..." if len(hidden) > 3 else "")
    return _("Names cannot contain line breaks, control characters or invisible characters. Remove: %(shown)s.") % {
        "shown": shown
    }


def _describe(character: str) -> str:
    known = {"\n": "LINE FEED", "\r": "CARRIAGE RETURN", "\t": "TAB", "\x00": "NULL"}
    return known.get(character, "CONTROL CHARACTER")


_NUMBER = re.compile(r"([0-9]+)")
#: What ends a name, begins a number and escapes these three where a name of old data holds them, in this order.
_END, _BEGIN, _ESCAPE = "\1\2\3"
_ESCAPES = {ord(character): _ESCAPE + character for character in _END + _BEGIN + _ESCAPE}
#: A count as a character: "@" for none, "A" for one.
_NONE = ord("@")
_NATURAL = re.compile(rf"(?:{_ESCAPE}.|[^0-9\0-{_ESCAPE}]|{_BEGIN}[^\0-?][0-9]*)*(?:{_END}.+)?", re.DOTALL)


def natural_key(name: str) -> str:
    """Return a sort key by which `q2` comes before `q10`: numbers compare by value, everything else by code point.
    Different names have different keys. Databases that compare by code point or UTF-8 byte give the same order.

    >>> sorted(["q10", "q2", "q02", "q1"], key=natural_key)
    ['q1', 'q2', 'q02', 'q10']
    """
    if not name.isprintable():
        name = name.translate(_ESCAPES)
    parts = _NUMBER.split(name)
    zeros = ""
    for place in range(1, len(parts), 2):
        digits = parts[place].lstrip("0")
        zeros += chr(_NONE + len(parts[place]) - (len(digits) or 1))
        # More digits are a greater number; equal counts compare digit by digit.
        parts[place] = _BEGIN + chr(_NONE + len(digits)) + digits
    if zeros.strip("@"):
        # Names that differ only in leading zeros: fewer zeros first.
        parts += (_END, zeros)
    return "".join(parts)


def is_natural_key(text: str) -> bool:
    """Return whether `natural_key` can have returned it: a name with a number is not its own key."""
    return _NATURAL.fullmatch(text) is not None


def strip_hidden(name: str) -> str:
    """Return `name` without those characters, for names that are not typed, such as names of uploaded files."""
    hidden = find_hidden_places(name)
    return "".join(c for place, c in enumerate(name) if place not in hidden) if hidden else name


def strip_invisible(name: str) -> str:
    """Return `name` without all invisible characters, allowed or not, for comparing names."""
    return "".join(c for c in name if not is_hidden(c))


#: Cyrillic, Greek, Armenian and two Latin letters, by the Latin letters that they resemble.
_LATIN = str.maketrans(
    "\u0430\u0410\u0412\u0432\u0441\u0421\u0501\u0435\u0415\u0451\u0401\u043d\u041d\u04bb\u0456\u0406\u0457\u0407"
    "\u0458\u0408\u043a\u041a\u043c\u041c\u043e\u041e\u0440\u0420\u0455\u0405\u0442\u0422\u0443\u0423\u0445\u0425"
    "\u051b\u051d\u0475\u04cf\u04c0"
    "\u03b1\u0391\u0392\u03b5\u0395\u0397\u03b9\u0399\u03ba\u039a\u039c\u039d\u03bf\u039f\u03c1\u03a1\u03c4\u03a4"
    "\u03bd\u03c5\u03a5\u03c7\u03a7\u0396\u03f3\u0570\u0585\u057d\u0251\u0261\u0131",
    "aAB" "bcCdeE\u00eb\u00cbhHhiI\u00ef\u00cf"
    "jJkKmMoOpPsStTyYxX"
    "qwvlI"
    "aABeEHiIkKMNoOpPtT"
    "vuYxXZjhouagi",
)  # fmt: skip
_STROKES = str.maketrans("I10", "llo")


def fold_confusables(name: str) -> frozenset[str]:
    """Return the keys of a user name: two names that share a key differ at most in capitals and in letters or digits
    that look alike. A capital I has two keys, that of i and that of l.

    >>> fold_confusables("OTTO") & fold_confusables("отто")
    frozenset({'otto'})
    """
    plain = unicodedata.normalize("NFKC", strip_invisible(name))
    latin = plain.translate(_LATIN)
    return frozenset(text.casefold() for text in (plain, latin, latin.translate(_STROKES)))
