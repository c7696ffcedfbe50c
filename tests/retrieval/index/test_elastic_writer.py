"""Sending rows to a server that is busy, down, or refuses one; without a server."""

from __future__ import annotations

import pytest
from elastic_transport import ApiResponseMeta, ConnectionError, HttpHeaders, NodeConfig, ObjectApiResponse
from elasticsearch import ApiError

from retrieval.index import IndexUnavailable, elastic_writer
from retrieval.index.elastic_server import Access, Address

META = ApiResponseMeta(429, "1.1", HttpHeaders(), 0.0, NodeConfig("http", "h", 9200))
ADDRESS = Address("http://h:9200", "corpus", Access())
OPERATIONS = [[b'{"index":{"_id":"%d"}}' % number, b"{}"] for number in range(3)]


class Client:
    """Answers consecutive requests as the test specifies; an exception is raised."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.sent: list[int] = []

    def options(self, **_):
        return self

    def bulk(self, *, operations, **_):
        self.sent.append(len(operations) // 2)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        items = [
            {"index": {"status": status, **({"error": {"reason": "no"}} if status > 299 else {})}} for status in answer
        ]
        return ObjectApiResponse({"errors": max(answer) > 299, "items": items}, META)


@pytest.fixture
def pauses(monkeypatch):
    found: list[float] = []
    monkeypatch.setattr(elastic_writer.time, "sleep", found.append)
    return found


def send(client: Client, patience: float = 60) -> int:
    return elastic_writer._Sender(client, ADDRESS, "corpus", patience).send(OPERATIONS, None)  # type: ignore[arg-type]


def test_only_refused_rows_are_resent_after_growing_pauses(pauses):
    client = Client([201, 429, 429], ApiError("busy", META, {}), ConnectionError("away"), [503, 201], [200])
    assert send(client) == 3
    assert client.sent == [3, 2, 2, 2, 1]
    assert pauses == [0.5, 1.0, 2.0, 4.0]


def test_patience_ends(pauses):
    with pytest.raises(IndexUnavailable, match="is overloaded: no"):
        send(Client([429, 429, 429]), patience=0)
    assert pauses == []


def test_row_that_can_never_be_stored_is_named(pauses):
    with pytest.raises(IndexUnavailable, match=r'refused \{"index":\{"_id":"1"\}\}: no'):
        send(Client([201, 400, 201]))
    assert pauses == []
