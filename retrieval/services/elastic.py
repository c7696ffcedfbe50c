"""The Elasticsearch of this installation: its address and credentials out of the settings, and the few things the room
asks of it. How pairs lie there and are searched is `retrieval.index`'s business."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.crypto import salted_hmac

if TYPE_CHECKING:
    from ..index.elastic_server import Access, ServerHealth
    from ..index.elastic_writer import LoadReport, Row, State
    from ..index.hits import Hit, Index
    from ..models import Corpus

_UNFIT = re.compile(r"[^a-z0-9-]+")


def is_used() -> bool:
    """Whether Elasticsearch is to answer for this installation."""
    return bool(settings.ELASTICSEARCH_URL)


def name_of(corpus: Corpus) -> str:
    """The name under which the server knows the corpus. The number keeps two of the same name apart, a digest of the
    secret key two installations on one server."""
    installation = salted_hmac("retrieval.elastic", "installation", algorithm="sha256").hexdigest()[:8]
    return f"evalapp-{installation}-{corpus.pk}-{_UNFIT.sub('-', corpus.name.lower()).strip('-')}"


def address(name: str) -> str:
    return f"{settings.ELASTICSEARCH_URL.rstrip('/')}/{name}"


def _options() -> dict[str, Any]:
    return {
        "username": settings.ELASTICSEARCH_USERNAME,
        "password": settings.ELASTICSEARCH_PASSWORD,
        "api_key": settings.ELASTICSEARCH_API_KEY,
        "ca_certs": settings.ELASTICSEARCH_CA_CERTS,
    }


def access() -> Access:
    """For loading, which may take the server a while."""
    from ..index.elastic_server import Access

    return Access(**_options(), timeout=60.0)


def open_index(corpus: Corpus) -> Index:
    """For searches, with the time a page waits."""
    from .. import index

    return index.open_index(address(name_of(corpus)), **_options(), timeout=float(settings.ELASTICSEARCH_TIMEOUT))


def as_rows(hits: Iterable[Hit]) -> Iterator[Row]:
    from ..index.elastic_writer import Row

    return (Row(hit.row, hit.query, hit.response, hit.meta) for hit in hits)


def rebuild(corpus: Corpus, hits: Iterable[Hit], progress: Callable[[int], None]) -> LoadReport:
    """All rows into an index of its own, which then takes the place of the one before."""
    from ..index import elastic_writer

    return elastic_writer.rebuild(
        address(name_of(corpus)), as_rows(hits), language=corpus.language, tokenizer=corpus.tokenizer,
        version=corpus.version, shards=settings.ELASTICSEARCH_SHARDS, access=access(), progress=progress,
    )  # fmt: skip


def append(corpus: Corpus, hits: Iterable[Hit]) -> None:
    """Rows beside those that are there; the same row again changes nothing."""
    from ..index import elastic_writer

    elastic_writer.append(address(name_of(corpus)), as_rows(hits), version=corpus.version, access=access())


def drop(name: str) -> None:
    from ..index import elastic_writer

    elastic_writer.drop(address(name), access=access())


def state_of(corpus: Corpus) -> State:
    from ..index import elastic_writer

    return elastic_writer.state(address(name_of(corpus)), access=access())


def health() -> ServerHealth:
    """Never raises."""
    from ..index import elastic_server

    return elastic_server.health(settings.ELASTICSEARCH_URL, elastic_server.Access(**_options(), timeout=3.0))
