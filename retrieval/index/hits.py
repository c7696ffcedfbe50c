"""Hits, the interface of all backends, and the selection of k distinct responses.

Both backends give the same hits in the same order, because both compute the same two definitions from the token sets
of `retrieval.index.tokens`. With T the tokens of the text, Q of a row's query, A of its query and response together:

- `search`: rows with T & Q not empty, by Jaccard |T & Q| / |T | Q|, highest first, ties by ascending row.
- `find`: rows with T <= A (every token of the text occurs in query or response), by Jaccard |T| / |A|, highest first,
  that is the fewest tokens in A first; ties by ascending row.

A text without tokens has no hits in either."""

import unicodedata
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, Protocol


class Hit(NamedTuple):
    """One matching row. `row` is its position in the corpus without exact duplicates, in the file's order."""

    row: int
    jaccard: float
    query: str
    response: str
    meta: dict[str, Any] | None = None


class Index(Protocol):
    """A searchable corpus of (query, response) pairs. `version` changes with every change of its content."""

    language: str
    tokenizer: str
    count: int
    version: str

    def tokens(self, text: str) -> frozenset[str]:
        """Return the token set of `text`, by which texts are compared."""

    def search(self, text: str, k: int = 100, *, distinct: bool = False, exclude: Collection[str] = ()) -> list[Hit]:
        """Return the best `k` rows for `text`; with `distinct` the best `k` with different responses.

        Responses equal to one of `exclude` are skipped. The list is empty for k <= 0, and shorter than `k` if the
        corpus has no more matching rows."""

    def find(self, text: str, k: int = 20) -> list[Hit]:
        """Return the best `k` rows that contain every token of `text`."""

    def close(self) -> None:
        """Release files, maps and connections; the index cannot be used afterwards."""


def jaccard(common: int, one: int, other: int) -> float:
    """Return common / (one + other - common), the Jaccard index of two sets of sizes `one` and `other`.

    These floats order exactly like the fractions: two different fractions with denominators below 2**26 differ by more
    than 2**-52, each is rounded by at most 2**-54, and equal fractions round to the same float.

    >>> jaccard(2, 3, 3)
    0.5
    """
    union = one + other - common
    return common / union if union else 0.0


def make_response_key(text: str) -> str:
    """Return the form of `text` in which equal responses are compared: NFKC, case-folded, white space collapsed."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(text.casefold().split())


def take(hits: Iterable[Hit], k: int, *, distinct: bool = False, exclude: Collection[str] = ()) -> list[Hit]:
    """Return the first `k` of an ordered stream of `hits`, with `distinct` and `exclude` as in `Index.search`. Reads no
    further than needed."""
    taken: list[Hit] = []
    if k <= 0:
        return taken
    seen = {make_response_key(text) for text in exclude}
    for hit in hits:
        if distinct or seen:
            key = make_response_key(hit.response)
            if key in seen:
                continue
            if distinct:
                seen.add(key)
        taken.append(hit)
        if len(taken) == k:
            break
    return taken
