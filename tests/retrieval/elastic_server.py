"""A server in memory instead of Elasticsearch: only the calls that the app makes through `retrieval.services.elastic`.
The real server is tested in `pipelines/test_elastic_server.py`."""

from __future__ import annotations

import time
import unicodedata
from types import SimpleNamespace
from typing import Any

import pytest

from retrieval.index.errors import IndexUnavailable
from retrieval.index.hits import take
from retrieval.index.tokens import tokens
from retrieval.services import elastic

WHY = "nothing answers at http://127.0.0.1:9 (Connection refused); start it or check the address"


class Server:
    """`rows[name]`: stored rows. `down`: nothing answers. `asked`: total number of requests."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {}
        self.down = False
        self.asked = 0
        self.sent = 0
        self.unicode = unicodedata.unidata_version

    def answer(self) -> None:
        self.asked += 1
        if self.down:
            raise IndexUnavailable(WHY)

    def rebuild(self, corpus: Any, hits: Any, progress: Any) -> None:
        self.answer()
        rows = list(hits)
        self.sent += len(rows)
        progress(len(rows))
        self.rows[elastic.get_alias(corpus)] = rows

    def append(self, corpus: Any, hits: Any) -> None:
        self.answer()
        rows = list(hits)
        self.sent += len(rows)
        held = {row.row: row for row in [*self.rows[elastic.get_alias(corpus)], *rows]}
        self.rows[elastic.get_alias(corpus)] = list(held.values())

    def drop(self, name: str) -> None:
        self.answer()
        self.rows.pop(name, None)

    def read_state(self, corpus: Any) -> SimpleNamespace:
        self.answer()
        held = self.rows.get(elastic.get_alias(corpus))
        if held is None:
            raise IndexUnavailable("there is no such index")
        return SimpleNamespace(
            count=len(held), language=corpus.language, tokenizer=corpus.tokenizer, unicode=self.unicode
        )

    def health(self) -> SimpleNamespace:
        return SimpleNamespace(ok=not self.down, message=WHY if self.down else "green")

    def open_index(self, corpus: Any) -> Opened:
        self.answer()
        return Opened(self, elastic.get_alias(corpus), corpus.tokenizer)


class Opened:
    """Counts and sorts every row."""

    def __init__(self, server: Server, name: str, tokenizer: str) -> None:
        self.server, self.name, self.tokenizer = server, name, tokenizer

    def search(self, text: str, k: int = 100, *, distinct: bool = False, exclude: Any = ()) -> list[Any]:
        self.server.answer()
        wanted = tokens(text, self.tokenizer)
        found = []
        for row in self.server.rows[self.name]:
            own = tokens(row.query, self.tokenizer)
            if wanted & own:
                found.append(row._replace(jaccard=len(wanted & own) / len(wanted | own)))
        found.sort(key=lambda hit: (-hit.jaccard, hit.row))
        return take(found, k, distinct=distinct, exclude=exclude)

    def close(self) -> None:
        self.server.asked += 0


def start_server(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Server:
    """Makes the installation use this server as Elasticsearch."""
    settings.ELASTICSEARCH_URL = "http://127.0.0.1:9"
    server = Server()
    for name in ("rebuild", "append", "drop", "read_state", "health", "open_index"):
        monkeypatch.setattr(elastic, name, getattr(server, name))
    return server


def quickly(began: float, seconds: float = 2.0) -> bool:
    return time.monotonic() - began < seconds
