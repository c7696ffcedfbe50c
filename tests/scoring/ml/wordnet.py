"""Writes a WordNet of a dozen senses in the format of wndb(5WN)."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import nltk
import pytest
from nltk.corpus.reader.wordnet import WordNetCorpusReader

# Part of speech: senses, each a list of words as the data file spells them.
SENSES = {
    "noun": [["dog", "domestic_dog", "hound"], ["goose"], ["cat"], ["church"], ["glass"], ["spectacle"], ["man"],
             ["wolf"], ["dog", "frank"], ["S"]],
    "verb": [["run", "sprint"], ["run", "flow"], ["dog", "chase"]],
    "adj": [["fast", "quick"], ["former(a)", "previous"]],
    "adv": [["fast", "quickly"]],
}  # fmt: skip
EXCEPTIONS = {
    "noun": "geese goose\nglasses glass spectacle\n",
    "verb": "ran run\nrunning run\n",
    "adj": "quicker quick\n",
    "adv": "",
}
LICENCE = "  1 WordNet 3.0 Copyright of nobody: a tiny database for tests.  \n"


def write_wordnet(folder: Path) -> Path:
    """All files that a WordNet parser reads, including nltk's."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, senses in SENSES.items():
        symbol = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}[part]
        data, index = LICENCE, defaultdict(list)
        for number, words in enumerate(senses):
            offset = len(data)
            listed = " ".join(f"{word} 0" for word in words)
            frames = " 00" if part == "verb" else ""
            data += f"{offset:08d} {number % 3:02d} {symbol} {len(words):02x} {listed} 000{frames} | a gloss  \n"
            for word in words:
                index[word.partition("(")[0].lower()].append(offset)
        lines = [
            f"{word} {symbol} {len(offsets)} 1 @ {len(offsets)} 0 {' '.join(f'{o:08d}' for o in offsets)}  \n"
            for word, offsets in sorted(index.items())
        ]
        (folder / f"data.{part}").write_text(data, encoding="utf-8")
        (folder / f"index.{part}").write_text(LICENCE + "".join(lines), encoding="utf-8")
        (folder / f"{part}.exc").write_text(EXCEPTIONS[part], encoding="utf-8")
    (folder / "lexnames").write_text("".join(f"{n:02d}\tfile{n}\t1\n" for n in range(3)), encoding="utf-8")
    (folder / "cntlist.rev").write_text("", encoding="utf-8")
    (folder / "index.sense").write_text("", encoding="utf-8")
    return folder


def nltk_reader(folder: Path) -> WordNetCorpusReader:
    """nltk's parser of the same files in a folder corpora/wordnet; it refuses any outside its data path."""
    data = str(folder.parent.parent)
    if data not in nltk.data.path:
        nltk.data.path.append(data)
    with pytest.warns(UserWarning, match="multilingual"):
        return WordNetCorpusReader(str(folder), None)
