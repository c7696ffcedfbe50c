"""A real Elasticsearch that is stopped and restarted: in the middle of a session and of a load."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

import pytest

from evalapp.ops.processes import Family
from retrieval.index import IndexUnavailable, open_index
from retrieval.index.elastic_server import Access, health
from retrieval.index.elastic_writer import Row, rebuild
from tests.services import servers
from tests.services.installing import ServerUnavailable

ROWS = 6000


@pytest.fixture
def folder():
    """A folder that the server's own user may enter."""
    made = Path(tempfile.mkdtemp(prefix="evalapp-restart-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def rows(word: str, count: int):
    return (Row(number, f"{word} number {number}", f"answer {number}") for number in range(count))


@pytest.mark.promise("index")
@pytest.mark.slow
@pytest.mark.server("elasticsearch")
def test_server_stops_and_returns(folder):
    with Family() as family:
        try:
            url = servers.start("elasticsearch", family, folder)
        except ServerUnavailable as error:
            pytest.skip(f"no Elasticsearch of its own: {error}")
        where = f"{url}/corpus"
        rebuild(where, rows("old", 100), language="en", tokenizer="words", access=Access(timeout=60))
        session = open_index(where, timeout=30)
        before = session.search("old number 7")
        said, starting = [], []

        def start() -> None:
            starting.append(servers.start_elasticsearch(family, folder / "elasticsearch"))

        starter = threading.Thread(target=start)

        def stopped_in_the_middle():
            for row in rows("new", ROWS):
                if row.row == ROWS - 1000:  # earlier requests have arrived or are in transit
                    family.end()
                    with pytest.raises(IndexUnavailable) as error:
                        session.search("old number 7")
                    said.append(error.value.why)
                    said.append(health(url).message)
                    starter.start()
                yield row

        loaded = rebuild(
            where, stopped_in_the_middle(), language="en", tokenizer="words", access=Access(timeout=60), patience=300
        )
        starter.join()
        assert starting == [url]
        assert all(line.startswith("nothing answers at http://127.0.0.1") for line in said)
        assert len(said) == 2
        # The load continued where the server had stopped; the session that stayed open sees its rows.
        assert loaded.count == ROWS
        assert len(before) == 100
        hits = session.search("new number 7", 5)
        assert hits[0].query == "new number 7"
        assert [hit.row for hit in hits] == [7, 0, 1, 2, 3]
        session.refresh()
        assert (session.count, session.version) == (ROWS, loaded.version)
