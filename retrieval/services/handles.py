"""Open indexes, kept for as long as their content is the newest: one per corpus and process. Everything that searches
asks here; nothing else opens an index."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings

from ..index.errors import IndexFormatError, IndexUnavailable
from ..models import Corpus
from ..selectors.corpora import condition_of
from . import outbox
from .places import index_path

if TYPE_CHECKING:
    from ..index.hits import Index

T = TypeVar("T")

#: Indexes that stay open in one process.
MOST_OPEN = 8
#: After a server did not answer it is not asked again for so many seconds, so that pages come at once.
REST_SECONDS = 5.0

_open: OrderedDict[int, tuple[str, Index]] = OrderedDict()
_lock = threading.Lock()
_resting: dict[str, tuple[float, str]] = {}


def ask(corpus: Corpus, question: Callable[[Index], T]) -> T:
    """`question(index)` for the newest index of the corpus. Raises IndexUnavailable with one line for people."""
    url = settings.ELASTICSEARCH_URL
    until, why = _resting.get(url, (0.0, ""))
    if outbox.uses_elastic() and time.monotonic() < until:
        raise IndexUnavailable(why)
    try:
        try:
            return question(open_corpus(corpus))
        except IndexFormatError:
            # A newer one may just have taken its place.
            forget(corpus.pk)
            return question(open_corpus(corpus))
    except IndexFormatError as error:
        raise IndexUnavailable("its index is damaged; build it again on its page") from error
    except IndexUnavailable as error:
        if outbox.uses_elastic() and corpus.elastic_revision:
            _resting[url] = (time.monotonic() + REST_SECONDS, error.why)
        raise


def open_corpus(corpus: Corpus) -> Index:
    """The index that holds the newest content there is. Raises IndexUnavailable while there is none."""
    state = _state(corpus)
    with _lock:
        kept = _open.get(corpus.pk)
        if kept is not None and kept[0] == state:
            _open.move_to_end(corpus.pk)
            return kept[1]
    index = _open_index(corpus)
    with _lock:
        # Whoever still searches in the one before holds it; it closes when the last of them lets go.
        _open[corpus.pk] = (state, index)
        _open.move_to_end(corpus.pk)
        while len(_open) > MOST_OPEN:
            _open.popitem(last=False)
    return index


def _state(corpus: Corpus) -> str:
    """Changes with every index that takes the place of another."""
    revision = corpus.elastic_revision if outbox.uses_elastic() else corpus.embedded_revision
    if not revision:
        raise IndexUnavailable(_why_not(corpus))
    return f"{settings.ELASTICSEARCH_URL} {settings.CORPORA_DIR} {revision} {corpus.version} {corpus.indexed_at}"


def _why_not(corpus: Corpus) -> str:
    if corpus.state == Corpus.State.READY:
        return "it is not in the present search engine yet; build its index again on its page"
    return condition_of(corpus)


def _open_index(corpus: Corpus) -> Index:
    from ..index import open_index

    if outbox.uses_elastic():
        from .elastic import address_of, options

        return open_index(address_of(corpus), **options())
    return open_index(index_path(corpus.pk))


def forget(corpus_id: int | None = None) -> None:
    """Let go of the index of a corpus, or of all, and of what is known about servers."""
    with _lock:
        if corpus_id is None:
            _open.clear()
        else:
            _open.pop(corpus_id, None)
        _resting.clear()
