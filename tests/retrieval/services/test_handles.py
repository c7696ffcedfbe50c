"""Open indexes: shared by all searches, replaced when the content changes, closed when unused."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval.index.errors import IndexFormatError, IndexUnavailable
from retrieval.models import Corpus
from retrieval.services import handles

pytestmark = pytest.mark.usefixtures("corpora_dir")


class Index:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


@pytest.fixture
def made(monkeypatch) -> list[Any]:
    made: list[Any] = []

    def open_embedded(corpus: Corpus) -> Index:
        made.append(Index())
        return made[-1]

    monkeypatch.setattr(handles, "open_embedded", open_embedded)
    return made


def corpus(pk: int = 1, version: str = "a") -> Corpus:
    return Corpus(pk=pk, name="talk", state="ready", embedded_revision=1, version=version)


def test_one_index_serves_all_until_the_content_changes(made):
    assert handles.ask(corpus(), lambda index: index)[0] is handles.ask(corpus(), lambda index: index)[0]
    assert len(made) == 1

    def search(index: Any) -> bool:
        handles.ask(corpus(version="b"), lambda newer: newer)  # another search, meanwhile
        return index.closed

    assert handles.ask(corpus(), search) == (False, "")
    assert [index.closed for index in made] == [True, False]


def test_number_of_open_indexes_is_limited(made):
    for pk in range(handles.MOST_OPEN + 2):
        handles.ask(corpus(pk), lambda index: index)
    assert [index.closed for index in made] == [True, True] + [False] * handles.MOST_OPEN
    handles.forget()
    assert all(index.closed for index in made)


def test_replaced_folder_is_opened_again(made):
    asked = []

    def search(index: Any) -> str:
        asked.append(index)
        if len(asked) == 1:
            raise IndexFormatError("index", "a file of it is gone")
        return "found"

    assert handles.ask(corpus(), search) == ("found", "")
    with pytest.raises(IndexUnavailable, match="damaged"):
        handles.ask(corpus(), lambda index: (_ for _ in ()).throw(IndexFormatError("index", "is no index")))
