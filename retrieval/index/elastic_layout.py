"""How a corpus lies in Elasticsearch: the mapping, one document a row, and its terms.

A query's tokens are terms of a row, and so is their number, in a field of its own: what a row shares with a text and
how long it is can both be summed by one disjunction. The rows of a sample also have terms "bucket token", where the
bucket is a range of token counts (single counts up to 12, then ranges growing by an eighth). Every analysis happens in
Python; the server sees keywords and numbers, needs no script and no module beyond its core.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from retrieval.index import tokens as tokenisation
from retrieval.index.hits import response_key

#: Raised when documents of older programs can no longer be searched; an index of another one must be made anew.
FORMAT = 2
#: Longest page of hits the server is asked for.
WINDOW = 50_000
#: Every 16th row (by a hash of its number) stands in the sample a search looks at first.
SAMPLE = 16
_SINGLE, _GROWTH, _FIRSTS = 12, 1.125, 120
#: Rows that are cut into tokens together, and the characters that close such a part earlier.
_ROWS, _CHARACTERS = 500, 1_000_000


def _bucket_starts() -> tuple[int, ...]:
    starts = list(range(1, _SINGLE + 1))
    while len(starts) < _FIRSTS:
        starts.append(max(starts[-1] + 1, int(starts[-1] * _GROWTH)))
    return tuple(starts)


_STARTS = _bucket_starts()


class Bucket(NamedTuple):
    """Token counts first..last, both included."""

    number: int
    first: int
    last: int


def bucket_of(length: int) -> int:
    return bisect_right(_STARTS, length) - 1


def buckets(low: int, high: int) -> list[Bucket]:
    """The buckets that hold lengths from `low` to `high` (at least 1)."""
    if high < max(low, 1):
        return []
    last = bucket_of(high)
    return [
        Bucket(number, _STARTS[number], _STARTS[number + 1] - 1 if number + 1 < len(_STARTS) else high)
        for number in range(bucket_of(max(low, 1)), last + 1)
    ]


def term(bucket: int, token: str) -> str:
    return f"{bucket} {token}"


def reply(response: str) -> str:
    """The term that responses have in common which count as the same."""
    return hashlib.blake2b(response_key(response).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def sampled(row: int) -> bool:
    return (row * 2654435761) & 0xFFFFFFFF < (1 << 32) // SAMPLE


class Row(NamedTuple):
    """One row as it is loaded: `row` is its number in the corpus, the same as in `Hit`."""

    row: int
    query: str
    response: str
    meta: dict[str, Any] | None = None


def document(row: Row, own: Iterable[str], others: Iterable[str]) -> dict[str, Any]:
    """What is sent for a row; `own` are the tokens of its query, `others` those of its response, with repetitions."""
    mine = dict.fromkeys(own)
    every = list(mine | dict.fromkeys(others))
    found: dict[str, Any] = {
        "row": row.row,
        "length": len(mine),
        "of_length": str(len(mine)),
        "tokens": list(mine),
        "words": every,
        "size": len(every),
        "reply": reply(row.response),
        "query": row.query,
        "response": row.response,
    }
    if row.meta is not None:
        found["meta"] = row.meta
    if mine and sampled(row.row):
        prefix = term(bucket_of(len(mine)), "")
        found["sample"] = [prefix + token for token in mine]
    return found


def documents(rows: Iterable[Row], tokenizer: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Every row with what is sent for it. Texts are cut into tokens many at a time, which takes a third of the time."""
    for some in _together(rows):
        found = tokenisation.tokens_in_order((text for row in some for text in row[1:3]), tokenizer)
        start = 0
        for row in some:
            middle = found.index(tokenisation.END, start)
            end = found.index(tokenisation.END, middle + 1)
            yield row, document(row, found[start:middle], found[middle + 1 : end])
            start = end + 1


def _together(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in lists of moderate size, whatever the length of their texts."""
    some: list[Row] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row.query) + len(row.response)
        if len(some) == _ROWS or size >= _CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some


def mapping(meta: dict[str, Any]) -> dict[str, Any]:
    """The explicit mapping; a field that is not here is refused by the server."""
    listed = {"type": "keyword", "doc_values": False}
    kept = {"type": "keyword", "doc_values": False, "index": False}
    sorted_by = {"index": False}
    return {
        "dynamic": "strict",
        "_meta": meta,
        "_source": {"includes": ["query", "response", "meta"]},
        "properties": {
            "row": sorted_by | {"type": "long"},
            "length": sorted_by | {"type": "integer"},
            "of_length": listed,
            "tokens": listed,
            "sample": listed,
            "words": listed,
            "size": sorted_by | {"type": "integer"},
            "reply": listed,
            "query": kept,
            "response": kept,
            "meta": {"type": "object", "enabled": False},
        },
    }


def settings(shards: int) -> dict[str, Any]:
    """Settings of an index while it is loaded. Filters are not cached: no two searches share one. What was
    acknowledged is on the disk, so that a load goes on where a server that was killed had stopped."""
    return {
        "number_of_shards": shards,
        "number_of_replicas": 0,
        "refresh_interval": "-1",
        "queries.cache.enabled": False,
        "max_result_window": WINDOW,
    }


#: Settings of an index that serves: what is written shows, and a second node holds a copy where there is one.
SERVING: dict[str, Any] = {
    "refresh_interval": None,
    "auto_expand_replicas": "0-1",
}


def texts(source: dict[str, Any]) -> tuple[str, str, dict[str, Any] | None]:
    """Query, response and meta of a stored document."""
    return source["query"], source["response"], source.get("meta")
