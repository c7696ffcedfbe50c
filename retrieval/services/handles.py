"""Open indexes, one per corpus, backend and process, which stay open while their content is current. All searches go
through `ask`."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings

from evalapp.translation import gettext as _

from ..index.errors import IndexFormatError, IndexUnavailable
from ..models import Corpus
from ..selectors.corpora import describe_condition
from . import elastic
from .places import index_path

if TYPE_CHECKING:
    from ..index.hits import Index

T = TypeVar("T")

#: The maximum number of open indexes in a process.
MOST_OPEN = 8
#: The time without further requests after Elasticsearch did not answer, so that pages do not wait.
REST_SECONDS = 30.0


class _OpenIndex:
    """An open index with its number of running searches. A retired index closes after the last one."""

    def __init__(self, state: str, index: Index) -> None:
        self.state, self.index = state, index
        self.users, self.retired = 0, False


_open: OrderedDict[tuple[int, str], _OpenIndex] = OrderedDict()
_lock = threading.Lock()
_resting: dict[str, tuple[float, str]] = {}


def ask(corpus: Corpus, question: Callable[[Index], T]) -> tuple[T, str]:
    """Return `question(index)` for the current content, and a note if the embedded index answered because Elasticsearch
    could not. Raises IndexUnavailable with a message for users if neither can answer."""
    note = ""
    if elastic.is_used():
        try:
            return _ask_elastic(corpus, question), ""
        except IndexUnavailable as error:
            note = _("%(reason)s; the built-in index answers.", reason=error.why)
    return _ask_embedded(corpus, question), note


def _ask_elastic(corpus: Corpus, question: Callable[[Index], T]) -> T:
    url = settings.ELASTICSEARCH_URL
    if corpus.elastic_revision < corpus.embedded_revision or not corpus.elastic_revision:
        raise IndexUnavailable(_("Elasticsearch does not have the newest pairs yet"))
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
        raise IndexUnavailable(describe_condition(corpus))
    state = f"{settings.CORPORA_DIR} {corpus.embedded_revision} {corpus.version}"
    try:
        try:
            with _opened(corpus, "embedded", state) as index:
                return question(index)
        except IndexFormatError:
            forget(corpus.pk)  # it may just have been replaced by a newer one
            with _opened(corpus, "embedded", state) as index:
                return question(index)
    except IndexFormatError as error:
        raise IndexUnavailable(_("its index is damaged; rebuild it on the page of the corpus")) from error


@contextmanager
def _opened(corpus: Corpus, backend: str, state: str) -> Iterator[Index]:
    """The open index if its content is that of `state`; otherwise open it. A replaced index closes after its last
    search."""
    key = (corpus.pk, backend)
    with _lock:
        entry = _open.get(key)
        if entry is not None and entry.state == state:
            entry.users += 1
            _open.move_to_end(key)
        else:
            entry = None
    if entry is None:
        entry = _OpenIndex(state, elastic.open_index(corpus) if backend == "elastic" else open_embedded(corpus))
        entry.users = 1
        with _lock:
            _retire(_open.pop(key, None))
            _open[key] = entry
            while len(_open) > MOST_OPEN:
                _retire(_open.popitem(last=False)[1])
    try:
        yield entry.index
    finally:
        with _lock:
            entry.users -= 1
            if entry.retired and not entry.users:
                entry.index.close()


def _retire(entry: _OpenIndex | None) -> None:
    """Close the index, now or after its last search. The caller holds the lock."""
    if entry is not None:
        entry.retired = True
        if not entry.users:
            entry.index.close()


def open_embedded(corpus: Corpus) -> Index:
    """Open the embedded index; the caller closes it."""
    from ..index import open_index

    return open_index(index_path(corpus.pk))


def forget(corpus_id: int | None = None) -> None:
    """Close the indexes of a corpus (None: of all corpora), and forget failures of servers."""
    with _lock:
        for key in list(_open):
            if corpus_id in (None, key[0]):
                _retire(_open.pop(key))
        _resting.clear()
