"""Token sets for retrieval. Queries, rows and all backends use this one definition; the index, embedded or in
Elasticsearch, only receives tokens made here.

1. *Normal form*: `evalapp.words.normalise`, as of the words that metrics count (see there for what differs).
2. *words*: a token is a longest run of letters, digits and combining marks, in any script and direction. An
   apostrophe between two such characters belongs to the run (don't), as does a full stop or comma between two decimal
   digits (3.5 and 1,000).
3. *characters*: the same, but every letter of a script without spaces (Han, Kana, Bopomofo, Thai, Lao, Khmer,
   Myanmar) is a token of its own, together with the marks on it. Other scripts in between remain words.
4. In both, every character of category So (emoji, pictographs) is a token of its own; two regional indicators are one
   (a flag). A skin tone is dropped: the same emoji in another tone is the same token.

5. Of a token longer than 200 characters the first 200 count, so that every token fits every backend.

Everything else separates. A text of punctuation alone has no tokens."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

from evalapp.words import FLAG, UNSPACED_BLOCKS, character_classes
from evalapp.words import normalise as normalise

WORDS, CHARACTERS = "words", "characters"
TOKENIZERS = (WORDS, CHARACTERS)
LONGEST = 200
#: Closes a text in `tokens_in_order`.
END = "\x04"
# ISO 639 codes of languages written without spaces between words.
UNSPACED = frozenset(
    [
        "zh", "zho", "chi", "cmn", "yue", "wuu", "nan", "hak", "gan", "hsn", "lzh", "ja", "jpn", "th", "tha", "lo",
        "lao", "km", "khm", "my", "mya", "bur",
    ]
)  # fmt: skip


def choose_tokenizer(language: str) -> str:
    """Return `characters` for a language code written without spaces between words (zh, ja-JP, th_TH ...), else
    `words`."""
    base = language.strip().lower().replace("_", "-").partition("-")[0]
    return CHARACTERS if base in UNSPACED else WORDS


def explain_unicode(made: str) -> str:
    """Return why a query may be tokenised differently from rows tokenised with Unicode version `made` ("": unknown);
    "" if both versions are equal."""
    here = unicodedata.unidata_version
    if made == here:
        return ""
    return f"its rows were cut into words by Unicode {made or '(unknown)'}, queries are by {here}"


def tokens(text: str, tokenizer: str = WORDS) -> frozenset[str]:
    """Return the set of tokens of `text`; `tokenizer` is `words` or `characters`. Raises ValueError for another one.

    >>> sorted(tokens("Where are you?"))
    ['are', 'where', 'you']
    """
    return frozenset(_cut(_split(normalise(text.replace(END, " ")), check_tokenizer(tokenizer))))


def tokens_in_order(texts: Iterable[str], tokenizer: str = WORDS) -> list[str]:
    """Return the tokens of `texts` in order, with repetitions, each text followed by a token END; `tokenizer` as in
    `tokens`.

    The tokens equal those of `tokens` for each text: the control character END neither composes with its neighbours
    nor belongs to a token."""
    parts: list[str] = []
    ready = [text if text.isascii() else normalise(text) for text in texts]
    # Normalising and splitting ASCII texts together is several times faster.
    for plain, group in groupby([text.replace(END, " ") for text in ready], str.isascii):
        joined = f" {END} ".join([*group, ""])
        parts += _split(normalise(joined) if plain else joined, check_tokenizer(tokenizer))
    return _cut(parts)


def check_tokenizer(name: str) -> str:
    """Return `name`; raises ValueError if there is no such tokenizer."""
    if name not in TOKENIZERS:
        raise ValueError(f"there is no tokenizer {name!r}; choose one of {', '.join(TOKENIZERS)}")
    return name


def _cut(parts: list[str]) -> list[str]:
    """Point 5."""
    return [token[:LONGEST] for token in parts] if max(map(len, parts), default=0) > LONGEST else parts


def _split(normal: str, tokenizer: str) -> list[str]:
    """Return the tokens of a normalised text in order, with every END."""
    if not normal.isascii():
        return _pattern(tokenizer).findall(normal)
    # Points 2 to 4 for ASCII, three times as fast as the pattern: characters that belong to a token because of their
    # neighbours become control characters, all others except letters and digits become spaces, then the former are
    # restored.
    for (mark, kept), pattern in zip(_ASIDE.items(), _INNER, strict=True):
        normal = normal.replace(mark, " ")
        if kept in normal:
            normal = pattern.sub(mark, normal)
    return normal.translate(_ASCII).split()


_ASIDE = {"\x01": ".", "\x02": ",", "\x03": "'"}
_INNER = (
    re.compile(r"\.(?<=[0-9]\.)(?=[0-9])"),
    re.compile(r",(?<=[0-9],)(?=[0-9])"),
    re.compile(r"'(?<=[a-z0-9]')(?=[a-z0-9])"),
)
_ASCII = {code: chr(code) if chr(code).isalnum() else _ASIDE.get(chr(code), " ") for code in range(128)}
_ASCII[ord(END)] = END


@lru_cache(maxsize=8)
def _pattern(tokenizer: str) -> re.Pattern[str]:
    marks, symbols = character_classes()
    inner = r"'|(?<=\d)[.,](?=\d)"
    # \w is letters, digits and the underscore, which the normal form has no more.
    one, alone = f"[\\w{marks}]", ""
    if tokenizer == CHARACTERS:
        one = f"(?:(?:(?![{UNSPACED_BLOCKS}])\\w)[{marks}]*|[{marks}])"
        alone = f"[{UNSPACED_BLOCKS}](?<=\\w)[{marks}]*|"
    return re.compile(f"{alone}{one}+(?:(?:{inner}){one}+)*|{FLAG}|[{symbols}]|{END}")
