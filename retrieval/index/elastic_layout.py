"""Layout of a corpus in Elasticsearch: the mapping, one document per row, and its terms.

The tokens of a query are terms of its row, and so is their number in a separate field, so one disjunction can sum
shared tokens and length. Rows of a sample also have terms "bucket token", where the bucket is a range of token
counts (single counts up to 12, then ranges growing by an eighth). All analysis happens in Python; the server stores
keywords and numbers and needs no scripts or modules."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from retrieval.index import tokens as tokenisation
from retrieval.index.hits import make_response_key

#: Layout version: increase it when older documents become unsearchable; such indexes must be rebuilt.
FORMAT = 2
#: Maximum number of hits per request.
WINDOW = 50_000
#: Every 16th row (by a hash of its number) is in the sample that a search estimates from.
SAMPLE = 16
_SINGLE, _GROWTH, _FIRSTS = 12, 1.125, 120
#: Maximum rows and characters that are tokenised together.
_ROWS, _CHARACTERS = 500, 1_000_000


def _bucket_starts() -> tuple[int, ...]:
    starts = list(range(1, _SINGLE + 1))
    while len(starts) < _FIRSTS:
        starts.append(max(starts[-1] + 1, int(starts[-1] * _GROWTH)))
    return tuple(starts)


_STARTS = _bucket_starts()


class Bucket(NamedTuple):
    """A range of token counts, first..last inclusive."""

    number: int
    first: int
    last: int


def find_bucket(length: int) -> int:
    """Return the number of the bucket for `length` tokens."""
    return bisect_right(_STARTS, length) - 1


def buckets(low: int, high: int) -> list[Bucket]:
    """Return the buckets for lengths from `low` to `high` (at least 1)."""
    if high < max(low, 1):
        return []
    last = find_bucket(high)
    return [
        Bucket(number, _STARTS[number], _STARTS[number + 1] - 1 if number + 1 < len(_STARTS) else high)
        for number in range(find_bucket(max(low, 1)), last + 1)
    ]


def term(bucket: int, token: str) -> str:
    """Return the term of a `token` in the sample for a `bucket`."""
    return f"{bucket} {token}"


def reply(response: str) -> str:
    """Return the term of a `response`, the same for responses that count as equal."""
    return hashlib.blake2b(make_response_key(response).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def sampled(row: int) -> bool:
    """Return whether the row with number `row` is in the sample."""
    return (row * 2654435761) & 0xFFFFFFFF < (1 << 32) // SAMPLE


class Row(NamedTuple):
    """One row to load: `row` is its number in the corpus, as in `Hit`."""

    row: int
    query: str
    response: str
    meta: dict[str, Any] | None = None


def document(row: Row, own: Iterable[str], others: Iterable[str]) -> dict[str, Any]:
    """Return the document of a row; `own` are the tokens of its query, `others` those of its response, with
    repetitions."""
    mine = dict.fromkeys(own)
    every = list(mine | dict.fromkeys(others))
    content: dict[str, Any] = {
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
        content["meta"] = row.meta
    if mine and sampled(row.row):
        prefix = term(find_bucket(len(mine)), "")
        content["sample"] = [prefix + token for token in mine]
    return content


def documents(rows: Iterable[Row], tokenizer: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield each of `rows` with its document, tokenised by `tokenizer`. Tokenising many texts together takes a third of
    the time."""
    for some in _together(rows):
        in_order = tokenisation.tokens_in_order((text for row in some for text in row[1:3]), tokenizer)
        start = 0
        for row in some:
            middle = in_order.index(tokenisation.END, start)
            end = in_order.index(tokenisation.END, middle + 1)
            yield row, document(row, in_order[start:middle], in_order[middle + 1 : end])
            start = end + 1


def _together(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield lists of rows of moderate size, whatever the length of their texts."""
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
    """Return the explicit mapping with `meta` about the index; the server rejects other fields."""
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
    """Return the settings of an index with `shards` shards during loading. Filters are not cached, because no two
    searches share one. Acknowledged rows are on disk, so loading can continue after the server was killed."""
    return {
        "number_of_shards": shards,
        "number_of_replicas": 0,
        "refresh_interval": "-1",
        "queries.cache.enabled": False,
        "max_result_window": WINDOW,
    }


#: Settings of an index in use: new rows become visible, and a second node holds a replica if there is one.
SERVING: dict[str, Any] = {
    "refresh_interval": None,
    "auto_expand_replicas": "0-1",
}


def texts(source: dict[str, Any]) -> tuple[str, str, dict[str, Any] | None]:
    """Return query, response and meta of the `source` of a document."""
    return source["query"], source["response"], source.get("meta")
