"""Retrieval of (query, response) pairs by exact Jaccard similarity of token sets. The package does not import Django.

build("corpus.jsonl", "folder", language="en")
index = open_index("folder")                    # or "http(s)://host:9200/name": Elasticsearch, the same answers
for hit in index.search("where are you going", k=100): hit.jaccard, hit.query, hit.response"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from retrieval.index.errors import CorpusError, IndexFormatError, IndexUnavailable, RetrievalError
from retrieval.index.hits import Hit, Index

if TYPE_CHECKING:
    from retrieval.index.embedded import append, build

__all__ = [
    "CorpusError", "Hit", "Index", "IndexFormatError", "IndexUnavailable", "RetrievalError", "append", "build",
    "open_index",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import `append` and `build` on first use: they need NumPy, and importing an error class should be cheap."""
    if name in ("append", "build"):
        from retrieval.index import embedded

        return getattr(embedded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open_index(where: str | os.PathLike[str], **options: Any) -> Index:
    """Open an index for searches.

    `where` is the folder of an embedded index, or the address http(s)://host:port/name of one in Elasticsearch;
    `options` are those of `retrieval.index.elastic.open_elastic` (username, password, api_key, ca_certs, timeout in
    seconds).

    Raises `IndexFormatError` for a folder without a valid index, `IndexUnavailable` if the server cannot answer.

        with open_index("folder") as index:
            hits = index.search("where are you going", k=10)
    """
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        from retrieval.index.elastic import open_elastic

        return open_elastic(where, **options)
    from retrieval.index.embedded import EmbeddedIndex

    return EmbeddedIndex(where, **options)
