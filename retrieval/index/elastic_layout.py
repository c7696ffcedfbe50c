"""How a corpus lies in Elasticsearch: the mapping, one document a row, and the terms that carry length and token.

A query's tokens are indexed as terms "bucket token", where the bucket is a range of token counts (single counts up to
12, then ranges growing by an eighth). So the list of documents behind a term holds rows of about one length only, and
a search can demand another number of shared tokens for each length. Every analysis happens in Python; the server sees
keywords and numbers, needs no script and no module beyond its core.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from retrieval.index.hits import response_key

#: Raised when documents of older programs can no longer be searched; an index of another one must be made anew.
FORMAT = 1
#: Longest page of hits the server is asked for.
WINDOW = 50_000
#: Every 16th row (by a hash of its number) stands in the sample a search looks at first.
SAMPLE = 16
_SINGLE, _GROWTH, _FIRSTS = 12, 1.125, 120


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


def document(row: Row, tokens: Callable[[str], frozenset[str]]) -> dict[str, Any]:
    """What is sent for a row."""
    own = sorted(tokens(row.query))
    every = sorted(tokens(row.response).union(own))
    bucket = bucket_of(len(own)) if own else 0
    terms = [term(bucket, token) for token in own]
    found: dict[str, Any] = {
        "row": row.row,
        "length": len(own),
        "terms": terms,
        "words": every,
        "size": len(every),
        "reply": reply(row.response),
        "query": row.query,
        "response": row.response,
    }
    if row.meta is not None:
        found["meta"] = row.meta
    if sampled(row.row):
        found["sample"] = terms
    return found


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
            "length": {"type": "integer"},
            "terms": listed,
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


def lines(rows: Iterable[Row], tokens: Callable[[str], frozenset[str]]) -> Iterable[tuple[str, dict[str, Any]]]:
    """(document id, document). The id is the row number, so that sending a row again changes nothing."""
    for row in rows:
        yield str(row.row), document(row, tokens)
