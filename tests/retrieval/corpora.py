"""Corpora for tests, made through the services as people would make them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from annotation.services.uploads import Incoming
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from retrieval.models import Corpus
from retrieval.services.corpora import add_file, create_corpus

#: Jaccard of the query with "where are you going": 1, 3/5, 1/6, 0.
PAIRS = (
    ("Where are you going?", "To the lake."),
    ("Where are you now?", "At home."),
    ("Are they late?", "They always are."),
    ("Nice weather!", "Indeed."),
    ("where are you going", "To the hills behind the station."),
)


def as_jsonl(pairs: Iterable[tuple[str, str]]) -> bytes:
    rows = ({"query": query, "response": response} for query, response in pairs)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def incoming(content: bytes, name: str = "corpus.jsonl") -> Incoming:
    return Incoming(name, [content])


def execute(corpus: Corpus) -> Run:
    corpus.refresh_from_db()
    run = execute_run(corpus.run_id)
    assert run is not None
    corpus.refresh_from_db()
    return run


def make_corpus(project: Project, name: str = "talk", pairs: Iterable[tuple[str, str]] = PAIRS, **facts: Any) -> Corpus:
    """A corpus with a finished index."""
    corpus = create_corpus(project=project, user=None, name=name, **facts)
    add_file(corpus=corpus, user=None, file=incoming(as_jsonl(pairs)), through=project, send=False)
    run = execute(corpus)
    assert run.state == Run.State.SUCCEEDED, run.error
    return corpus
