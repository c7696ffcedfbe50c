"""Models of retrieval: corpora, their parts, and pending changes for Elasticsearch."""

from .corpora import Corpus, CorpusPart, OutboxRow

__all__ = ["Corpus", "CorpusPart", "OutboxRow"]
