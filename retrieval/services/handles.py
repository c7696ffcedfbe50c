"""Open indexes, kept for as long as their content is the newest: one per corpus, backend and process. Everything that
searches asks here; nothing else opens an index."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings

from ..index.errors import IndexFormatError, IndexUnavailable
from ..models import Corpus
from ..selectors.corpora import condition_of
from . import elastic
from .places import index_path

if TYPE_CHECKING:
    from ..index.hits import Index

T = TypeVar("T")

#: Indexes that stay open in one process.
MOST_OPEN = 8
#: After Elasticsearch did not answer it is not asked again for so many seconds, so that pages come at once.
REST_SECONDS = 30.0


class _Kept:
    """An open index, how many are searching in it now, and whether it is to close after the last of them."""

    def __init__(self, state: str, index: Index) -> None:
        self.state, self.index = state, index
        self.users, self.retired = 0, False


_open: OrderedDict[tuple[int, str], _Kept] = OrderedDict()
_lock = threading.Lock()
_resting: dict[str, tuple[float, str]] = {}


def ask(corpus: Corpus, question: Callable[[Index], T]) -> tuple[T, str]:
    """`question(index)` for the newest content, and one line where Elasticsearch should have answered and could not:
    then the embedded index did. Raises IndexUnavailable with one line for people where neither can."""
    note = ""
    if elastic.is_used():
        try:
            return _ask_elastic(corpus, question), ""
        except IndexUnavailable as error:
            note = f"{error.why}; the built-in index answers."
    return _ask_embedded(corpus, question), note


def _ask_elastic(corpus: Corpus, question: Callable[[Index], T]) -> T:
    url = settings.ELASTICSEARCH_URL
    if corpus.elastic_revision < corpus.embedded_revision or not corpus.elastic_revision:
        raise IndexUnavailable("Elasticsearch does not hold the newest pairs yet")
    until, why = _resting.get(url, (0.0, ""))
    if time.monotonic() < until:
        raise IndexUnavailable(why)
    try:
        with _opened(corpus, "elastic", str(corpus.elastic_revision)) as index:
            return question(index)
    except IndexUnavailable as error:
        _resting[url] = (time.monotonic() + REST_SECONDS, error.why)
        raise


def _ask_embedded(corpus: Corpus, question: Callable[[Index], T]) -> T:
    if not corpus.embedded_revision:
        raise IndexUnavailable(condition_of(corpus))
    state = f"{settings.CORPORA_DIR} {corpus.embedded_revision} {corpus.version}"
    try:
        try:
            with _opened(corpus, "embedded", state) as index:
                return question(index)
        except IndexFormatError:
            forget(corpus.pk)  # a newer one may just have taken its place
            with _opened(corpus, "embedded", state) as index:
                return question(index)
    except IndexFormatError as error:
        raise IndexUnavailable("its index is damaged; build it again on its page") from error


@contextmanager
def _opened(corpus: Corpus, backend: str, state: str) -> Iterator[Index]:
    """The index that is kept open if its content is still that of `state`, else opened now. One that was replaced
    closes when nobody searches in it any more."""
    key = (corpus.pk, backend)
    with _lock:
        kept = _open.get(key)
        if kept is not None and kept.state == state:
            kept.users += 1
            _open.move_to_end(key)
        else:
            kept = None
    if kept is None:
        kept = _Kept(state, elastic.open_index(corpus) if backend == "elastic" else open_embedded(corpus))
        kept.users = 1
        with _lock:
            _retire(_open.pop(key, None))
            _open[key] = kept
            while len(_open) > MOST_OPEN:
                _retire(_open.popitem(last=False)[1])
    try:
        yield kept.index
    finally:
        with _lock:
            kept.users -= 1
            if kept.retired and not kept.users:
                kept.index.close()


def _retire(kept: _Kept | None) -> None:
    """Under the lock."""
    if kept is not None:
        kept.retired = True
        if not kept.users:
            kept.index.close()


def open_embedded(corpus: Corpus) -> Index:
    """For the caller alone, who closes it."""
    from ..index import open_index

    return open_index(index_path(corpus.pk))


def forget(corpus_id: int | None = None) -> None:
    """Let go of the indexes of a corpus, or of all, and of what is known about servers."""
    with _lock:
        for key in list(_open):
            if corpus_id in (None, key[0]):
                _retire(_open.pop(key))
        _resting.clear()
