"""Rows of the retrieval room: corpora, the parts they were made of, and what Elasticsearch has yet to be told."""

from .corpora import Corpus, CorpusPart, OutboxRow

__all__ = ["Corpus", "CorpusPart", "OutboxRow"]
