"""Writes rows to Elasticsearch: whole indexes behind a name, single changes, deletion. A document's id is its row
number, so sending a row twice is harmless."""

from __future__ import annotations

import time
import unicodedata
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrieval.index import elastic_layout as layout
from retrieval.index import tokens as tokenisation
from retrieval.index.elastic import State, read_state
from retrieval.index.elastic_layout import Row
from retrieval.index.elastic_server import Access, Address, check_version, connect, reason, translate_errors
from retrieval.index.errors import IndexUnavailable

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

__all__ = ["LoadReport", "Row", "append", "drop", "rebuild", "state"]

#: Maximum rows and bytes of a request.
_ROWS, _BYTES = 2000, 8 << 20
_SENDERS = 2
#: An overloaded or absent server is asked again after .5, 1, 2, 4, 8, 8 ... seconds, for this many seconds in total.
PATIENCE = 60.0
_BUSY = frozenset({429, 502, 503, 504})
_SLOW = 600.0


@dataclass(frozen=True)
class LoadReport:
    """A loaded index: rows, seconds, version."""

    count: int
    seconds: float
    version: str


def rebuild(
    where: str,
    rows: Iterable[Row],
    *,
    language: str,
    tokenizer: str,
    version: str = "",
    shards: int = 1,
    access: Access | None = None,
    progress: Callable[[int], None] | None = None,
    patience: float = PATIENCE,
) -> LoadReport:
    """Build an index from `rows` and let it replace the current one behind the name in `where`,
    http(s)://host:9200/name.

    `language` and `tokenizer` are stored with it, and `version` (default: random) identifies its content. `shards` is
    the number of shards, `access` has the credentials, and `progress(n)` gets the number of stored rows.

    The rows go into a new index; when all are stored and counted, the name moves in one step and older indexes are
    deleted. If the rebuild fails, the old index stays in use and the next rebuild deletes the remains. Raises
    `IndexUnavailable` if the server is away for `patience` seconds or refuses."""
    began = time.monotonic()
    address = Address.parse(where, access or Access())
    version = version or uuid.uuid4().hex
    behind = f"{address.name}.{uuid.uuid4().hex[:12]}"
    loading = f"{behind}.loading"
    meta = {
        "format": layout.FORMAT,
        "version": version,
        "language": language,
        "tokenizer": tokenisation.check_tokenizer(tokenizer),
        "unicode": unicodedata.unidata_version,
    }
    with _client(address) as client:
        check_version(address.server, client)
        client.indices.create(
            index=behind, mappings=layout.mapping(meta), settings=layout.settings(shards), aliases={loading: {}}
        )
        try:
            sent = _Sender(client, address, loading, patience).send(_operations(rows, tokenizer), progress)
            slow = client.options(request_timeout=_SLOW)
            slow.indices.refresh(index=behind)
            stored = int(client.count(index=behind)["count"])
            if stored != sent:
                raise IndexUnavailable(
                    f"Elasticsearch at {address.server} has {stored:,} of the {sent:,} rows that were sent; the "
                    "previous index stays in use, load again"
                )
            slow.indices.forcemerge(index=behind, max_num_segments=1)
            client.indices.put_settings(index=behind, settings=layout.SERVING)
            client.cluster.health(index=behind, wait_for_status="yellow", timeout="30s")
        except BaseException:
            _discard(client, behind)
            raise
        _swap(client, address.name, behind, loading)
    return LoadReport(sent, time.monotonic() - began, version)


def append(
    where: str, rows: Iterable[Row], *, version: str, access: Access | None = None, patience: float = PATIENCE
) -> LoadReport:
    """Add `rows` to the index at `where`, or replace rows with the same number, and set the new `version`.

    `access` has the credentials. Raises `IndexUnavailable` if the server is away for `patience` seconds. If
    interrupted, some rows are stored under the old version; the same call completes them."""
    began = time.monotonic()
    address = Address.parse(where, access or Access())
    with _client(address) as client:
        before = read_state(client, address)
        sent = _Sender(client, address, address.name, patience).send(_operations(rows, before.tokenizer), None)
        _finish(client, before, version)
    return LoadReport(sent, time.monotonic() - began, version)


def drop(where: str, *, access: Access | None = None) -> None:
    """Delete the index at `where` and all incomplete ones under its name, with the credentials in `access`. A missing
    index is not an error."""
    address = Address.parse(where, access or Access())
    with _client(address) as client:
        for behind in _all_behind(client, address.name):
            client.options(ignore_status=404).indices.delete(index=behind)


def state(where: str, *, access: Access | None = None) -> State:
    """Return count and version of the index at `where`, read with the credentials in `access`."""
    address = Address.parse(where, access or Access())
    with _client(address) as client:
        return read_state(client, address)


# ---- indexes behind a name -----------------------------------------------------------------------------------


class _client:
    """Context manager of a client whose errors become `IndexUnavailable`."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def __enter__(self) -> Elasticsearch:
        self._words = translate_errors(self._address.server)
        self._words.__enter__()
        self._client = connect(self._address.server, self._address.access)
        return self._client

    def __exit__(self, *error: Any) -> bool | None:
        self._client.close()
        return self._words.__exit__(*error)


def _all_behind(client: Elasticsearch, name: str) -> list[str]:
    return sorted(client.indices.get(index=f"{name}.*", filter_path="*.mappings._meta.format").body)


def _swap(client: Elasticsearch, name: str, behind: str, loading: str) -> None:
    """Move the name in one step, then delete the other indexes."""
    former = [other for other in _all_behind(client, name) if other != behind]
    actions: list[dict[str, Any]] = [
        {"add": {"index": behind, "alias": name}},
        {"remove": {"index": behind, "alias": loading}},
    ]
    actions += [{"remove": {"index": other, "alias": name, "must_exist": False}} for other in former]
    client.indices.update_aliases(actions=actions)
    for other in former:
        _discard(client, other)


def _discard(client: Elasticsearch, behind: str) -> None:
    """Delete an unused index; if the server is away, the next rebuild deletes it."""
    import elasticsearch

    with suppress(elasticsearch.ApiError, elasticsearch.TransportError):
        client.options(ignore_status=404, max_retries=0).indices.delete(index=behind)


def _finish(client: Elasticsearch, target: State, version: str) -> None:
    client.options(request_timeout=_SLOW).indices.refresh(index=target.behind)
    meta = {
        "format": layout.FORMAT,
        "version": version,
        "language": target.language,
        "tokenizer": target.tokenizer,
        "unicode": target.unicode,  # of the rows that were there before
    }
    client.indices.put_mapping(index=target.behind, meta=meta)


# ---- sending -------------------------------------------------------------------------------------------------

Operation = list[bytes]


def _line(value: dict[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(value)


def _operations(rows: Iterable[Row], tokenizer: str) -> Iterator[Operation]:
    for row, document in layout.documents(rows, tokenizer):
        yield [b'{"index":{"_id":"%d"}}' % row.row, _line(document)]


class _Sender:
    """Sends operations in requests of moderate size, several at a time, and repeats what a busy server refused."""

    def __init__(self, client: Elasticsearch, address: Address, alias: str, patience: float) -> None:
        self._client = client.options(request_timeout=max(60.0, address.access.timeout), max_retries=0)
        self._server, self._alias, self._patience = address.server, alias, patience

    def send(self, operations: Iterable[Operation], progress: Callable[[int], None] | None) -> int:
        sent = 0
        under_way: deque[Future[int]] = deque()
        with ThreadPoolExecutor(_SENDERS) as pool:
            try:
                for batch in _batches(operations):
                    under_way.append(pool.submit(self._send, batch))
                    if len(under_way) > _SENDERS:
                        sent += under_way.popleft().result()
                        if progress:
                            progress(sent)
                while under_way:
                    sent += under_way.popleft().result()
            except BaseException:
                for future in under_way:
                    future.cancel()
                raise
        if progress:
            progress(sent)
        return sent

    def _send(self, batch: list[Operation]) -> int:
        """Send a whole batch or raise `IndexUnavailable`."""
        import elasticsearch

        count, until, pause = len(batch), time.monotonic() + self._patience, 0.5
        while True:
            lines: list[Any] = [line for operation in batch for line in operation]
            try:
                # `require_alias`, because otherwise a bulk request would create a missing index without a mapping.
                answer = self._client.bulk(
                    index=self._alias,
                    operations=lines,
                    require_alias=True,
                    filter_path="errors,items.*.status,items.*.error",
                )
                batch, why = self._refused(batch, answer.body)
            except elasticsearch.TransportError as error:
                failure: Exception = error
                why = "does not answer"
            except elasticsearch.ApiError as error:
                if error.status_code not in _BUSY:
                    raise
                failure, why = error, reason(error)
            else:
                failure = IndexUnavailable(f"Elasticsearch at {self._server} is overloaded: {why}")
            if not batch:
                return count
            if time.monotonic() + pause > until:
                raise failure
            time.sleep(pause)
            pause = min(2 * pause, 8.0)

    def _refused(self, batch: list[Operation], answer: dict[str, Any]) -> tuple[list[Operation], str]:
        """Return the operations to repeat. Raises an error naming the row if the server can never accept it."""
        if not answer.get("errors"):
            return [], ""
        again, why = [], ""
        for operation, item in zip(batch, answer["items"], strict=True):
            (result,) = item.values()
            if "error" not in result:
                continue
            why = str(result["error"].get("reason"))
            if result["status"] not in _BUSY:
                raise IndexUnavailable(f"Elasticsearch at {self._server} refused {operation[0].decode()}: {why[:300]}")
            again.append(operation)
        return again, why


def _batches(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    batch: list[Operation] = []
    size = 0
    for operation in operations:
        batch.append(operation)
        size += sum(map(len, operation))
        if len(batch) == _ROWS or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
