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
    from retrieval.index.embedded import BuildReport
    from retrieval.index.source import Source
    from retrieval.index.writer import Progress

__all__ = [
    "CorpusError", "Hit", "Index", "IndexFormatError", "IndexUnavailable", "RetrievalError", "append", "build",
    "open_index",
]  # fmt: skip

# NumPy is imported when an index is built or opened, because importing an error class should be cheap.


def build(
    source: Source,
    folder: str | os.PathLike[str],
    *,
    language: str = "en",
    tokenizer: str | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Build an index in a folder; see `retrieval.index.embedded.build`."""
    from retrieval.index import embedded

    return embedded.build(source, folder, language=language, tokenizer=tokenizer, progress=progress)


def append(folder: str | os.PathLike[str], source: Source, *, progress: Progress | None = None) -> BuildReport:
    """Add rows to an index in a folder; see `retrieval.index.embedded.append`."""
    from retrieval.index import embedded

    return embedded.append(folder, source, progress=progress)


def open_index(where: str | os.PathLike[str], **options: Any) -> Index:
    """Open the index of a folder, or of an Elasticsearch address http(s)://host:port/name with its options.

    Raises `IndexFormatError` for a folder without a valid index, `IndexUnavailable` if the server cannot answer."""
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        from retrieval.index.elastic import open_elastic

        return open_elastic(where, **options)
    from retrieval.index.embedded import EmbeddedIndex

    return EmbeddedIndex(where, **options)
