"""Retrieval corpora of any size for the benchmarks: first the real (turn, next turn) pairs of dialogues, then
recombinations of their texts without duplicate pairs; and queries of the same kind."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

from benchmarks._texts import OWN

DIALOGUES = ("text_self_dialogue", "text_dailydialog_decontaminated")


def read_real_pairs(data: Path | None) -> list[tuple[str, str]]:
    """Return distinct (turn, next turn) pairs of the dialogues below `data` in order; without data, pairs of built-in
    sentences."""
    if data is None:
        return [(one, two) for one in OWN for two in OWN if one != two]
    found: dict[tuple[str, str], None] = {}
    for name in DIALOGUES:
        with gzip.open(data / name / "dialogues.jsonl.gz", "rt", encoding="utf-8") as file:
            for line in file:
                turns = [turn for turn in json.loads(line)["turns"] if turn.strip()]
                found.update(dict.fromkeys(pairwise(turns)))
    return list(found)


def recombine_pairs(pairs: list[tuple[str, str]], rng: random.Random) -> tuple[str, str]:
    """Join the beginning of a query to the end of another; take the response of a third pair."""
    one, two = rng.choice(pairs)[0].split(), rng.choice(pairs)[0].split()
    words = one[: rng.randint(0, len(one))] + two[rng.randint(0, len(two)) :]
    return " ".join(words or one), rng.choice(pairs)[1]


def make_pairs(count: int, data: Path | None, seed: int) -> Iterator[tuple[str, str]]:
    """Return `count` distinct pairs, real ones first; reproducible for the same data and seed."""
    pairs = read_real_pairs(data)
    rng = random.Random(seed)
    seen: set[int] = set()
    made = 0
    for pair in chain(pairs, iter(lambda: recombine_pairs(pairs, rng), None)):
        if made == count:
            return
        if pair is not None and hash(pair) not in seen:
            seen.add(hash(pair))
            made += 1
            yield pair


def make_corpus(path: Path, count: int, data: Path | None, seed: int) -> None:
    """Write `count` pairs as corpus.jsonl."""
    with path.open("w", encoding="utf-8") as file:
        for query, response in make_pairs(count, data, seed):
            file.write(json.dumps({"query": query, "response": response}, ensure_ascii=False) + "\n")


def make_queries(count: int, data: Path | None, seed: int) -> list[str]:
    """Return `count` query texts as from a page: three of four are recombined from two queries (and absent from corpora
    of other seeds except by chance), one of four is a real query."""
    pairs = read_real_pairs(data)
    rng = random.Random(f"queries {seed}")
    return [rng.choice(pairs)[0] if n % 4 == 3 else recombine_pairs(pairs, rng)[0] for n in range(count)]
