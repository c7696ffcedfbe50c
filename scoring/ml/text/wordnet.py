"""Synonyms from WordNet's own database files (wndb(5WN)): index, data and exception lists; nothing is downloaded."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

_PARTS = ("noun", "verb", "adj", "adv")
# Detachment rules of morphy(7WN): ending of an inflected word, ending of its base form.
_ENDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
             ("men", "man"), ("ies", "y")),
    "verb": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}  # fmt: skip
_PREFIXES = ("", "share", "lib")


def find_wordnet() -> Path | None:
    """The folder or zip of a WordNet on this machine, None without one.

    Looked for in WNSEARCHDIR, in the data folders of nltk (NLTK_DATA and its usual places), and where Debian's
    package wordnet-base puts it.
    """
    candidates = [Path(os.environ["WNSEARCHDIR"])] if os.environ.get("WNSEARCHDIR") else []
    data = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    data.append(Path.home() / "nltk_data")
    data += [Path(sys.prefix) / prefix / "nltk_data" for prefix in _PREFIXES]
    data += [Path("/usr") / part / "nltk_data" for part in ("share", "local/share", "lib", "local/lib")]
    for folder in data:
        candidates += [folder / "corpora" / "wordnet", folder / "corpora" / "wordnet.zip"]
    candidates.append(Path("/usr/share/wordnet"))
    return next((path for path in candidates if (path / "data.noun").is_file() or path.is_file()), None)


class WordNet:
    """The database at a folder, or at a zip that holds `wordnet/`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the index and data files."""
        digest = hashlib.sha256()
        for part in _PARTS:
            digest.update(self._read(f"index.{part}"))
            digest.update(self._data[part])
        return digest.hexdigest()

    def synonyms(self, word: str) -> frozenset[str]:
        """The single words that share a sense with any base form of a lower-case word, as WordNet spells them.

        The base forms of a part of speech are those of its exception list, or else what the detachment rules
        give, each if WordNet has it, and the word itself if WordNet has it.
        """
        names: set[str] = set()
        for part in _PARTS:
            for offset in {o for base in self._bases(word, part) for o in self._index[part][base]}:
                names.update(self._names(part, offset))
        return frozenset(names)

    def _bases(self, word: str, part: str) -> set[str]:
        forms = self._exceptions[part].get(word)
        if forms is None:
            forms = [word[: -len(old)] + new for old, new in _ENDINGS[part] if word.endswith(old)]
        return {form for form in (word, *forms) if form in self._index[part]}

    def _names(self, part: str, offset: int) -> Iterator[str]:
        """The single words of a sense: `offset file type count word id word id ...`, the count in hexadecimal."""
        data = self._data[part]
        fields = data[offset : data.index(b"|", offset)].split()
        for place in range(4, 4 + 2 * int(fields[3], 16), 2):
            # Some adjectives end in a mark of their syntactic position: "former(a)".
            name = fields[place].decode("utf-8").partition("(")[0]
            if "_" not in name:
                yield name

    @cached_property
    def _index(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """Offsets of the senses of every single word, by part of speech."""
        index: dict[str, dict[str, tuple[int, ...]]] = {}
        for part in _PARTS:
            words: dict[str, tuple[int, ...]] = {}
            for line in self._read(f"index.{part}").decode("utf-8").splitlines():
                word, _, rest = line.partition(" ")
                if word and "_" not in word:  # the licence's lines begin with a space
                    fields = rest.split()
                    words[word] = tuple(int(field) for field in fields[-int(fields[1]) :])
            index[part] = words
        return index

    @cached_property
    def _exceptions(self) -> dict[str, dict[str, list[str]]]:
        tables: dict[str, dict[str, list[str]]] = {}
        for part in _PARTS:
            lines = (line.split() for line in self._read(f"{part}.exc").decode("utf-8").splitlines())
            tables[part] = {line[0]: line[1:] for line in lines if line}
        return tables

    @cached_property
    def _data(self) -> dict[str, bytes]:
        return {part: self._read(f"data.{part}") for part in _PARTS}

    def _read(self, name: str) -> bytes:
        if self.path.is_file():
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(f"wordnet/{name}")
        return (self.path / name).read_bytes()


@lru_cache(maxsize=2)
def open_wordnet(path: Path) -> WordNet:
    """The database at a path, read once a process."""
    return WordNet(path)
