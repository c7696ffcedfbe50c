"""Access to the Elasticsearch server of this installation, with address and credentials from the settings. Layout and
search are in `retrieval.index`."""

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
    """Whether this installation uses Elasticsearch."""
    return bool(settings.ELASTICSEARCH_URL)


def get_alias(corpus: Corpus) -> str:
    """The alias of the corpus on the server. The number distinguishes corpora of the same name, and a digest of the
    secret key distinguishes installations."""
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
    """Access for loading, with a long timeout."""
    from ..index.elastic_server import Access

    return Access(**_options(), timeout=60.0)


def open_index(corpus: Corpus) -> Index:
    """An index for searches, with the timeout of a page."""
    from .. import index

    return index.open_index(address(get_alias(corpus)), **_options(), timeout=float(settings.ELASTICSEARCH_TIMEOUT))


def as_rows(hits: Iterable[Hit]) -> Iterator[Row]:
    from ..index.elastic_writer import Row

    return (Row(hit.row, hit.query, hit.response, hit.meta) for hit in hits)


def rebuild(corpus: Corpus, hits: Iterable[Hit], progress: Callable[[int], None]) -> LoadReport:
    """Load all rows into a new index, which then replaces the previous one."""
    from ..index import elastic_writer

    return elastic_writer.rebuild(
        address(get_alias(corpus)), as_rows(hits), language=corpus.language, tokenizer=corpus.tokenizer,
        version=corpus.version, shards=settings.ELASTICSEARCH_SHARDS, access=access(), progress=progress,
    )  # fmt: skip


def append(corpus: Corpus, hits: Iterable[Hit]) -> None:
    """Add rows. Idempotent."""
    from ..index import elastic_writer

    elastic_writer.append(address(get_alias(corpus)), as_rows(hits), version=corpus.version, access=access())


def drop(name: str) -> None:
    from ..index import elastic_writer

    elastic_writer.drop(address(name), access=access())


def read_state(corpus: Corpus) -> State:
    from ..index import elastic_writer

    return elastic_writer.state(address(get_alias(corpus)), access=access())


def health() -> ServerHealth:
    """The state of the server; never raises."""
    from ..index import elastic_server

    return elastic_server.health(settings.ELASTICSEARCH_URL, elastic_server.Access(**_options(), timeout=3.0))
