"""An index in Elasticsearch 8 with the same hits in the same order as the embedded one. `elastic_layout` defines the
documents, `elastic_search` finds the best, `elastic_writer` loads rows."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from retrieval.index import elastic_layout as layout
from retrieval.index import tokens as tokenisation
from retrieval.index.elastic_search import CLAUSES, Search
from retrieval.index.elastic_server import Access, Address, check_version, connect, translate_errors
from retrieval.index.errors import IndexUnavailable
from retrieval.index.hits import Hit, jaccard, take

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

MOST = 20_000
_ANSWER = "hits.hits._id,hits.hits._score,hits.hits._source,hits.hits.fields,hits.hits.sort"
_ANSWERS = ",".join(f"responses.{part}" for part in (*_ANSWER.split(","), "error", "status"))


@dataclass(frozen=True)
class State:
    """State of an index: rows, version set by the last writer, tokenizer, and Unicode version of the tokens ("":
    unknown)."""

    count: int
    version: str
    language: str
    tokenizer: str
    behind: str
    unicode: str = ""


def read_state(client: Elasticsearch, address: Address) -> State:
    """Return the state of the index behind the name in `address`, read with `client`. Raises `IndexUnavailable` if it
    is missing, red, or of another format."""
    import elasticsearch

    try:
        indices = client.indices.get(index=address.name, filter_path="*.mappings._meta")
        behind, about = next(iter(indices.items())) if indices else ("", {})
        meta = about.get("mappings", {}).get("_meta", {})
        status = client.cluster.health(index=address.name, filter_path="status,unassigned_shards").body
        if status.get("status") == "red":
            raise IndexUnavailable(
                f"the index {address.name} at {address.server} is red: {status.get('unassigned_shards')} of its parts "
                "are missing; look at the server's log, or rebuild it with `evalapp reindex`"
            )
        count = int(client.count(index=address.name)["count"])
    except elasticsearch.NotFoundError as error:
        raise IndexUnavailable(_missing(client, address)) from error
    if meta.get("format") != layout.FORMAT:
        raise IndexUnavailable(
            f"the index {address.name} at {address.server} was made by another version of this program; rebuild it "
            "with `evalapp reindex`"
        )
    return State(count, meta["version"], meta["language"], meta["tokenizer"], behind, meta.get("unicode", ""))


def _missing(client: Elasticsearch, address: Address) -> str:
    if client.indices.exists(index=f"{address.name}.*", allow_no_indices=False):
        return f"the index {address.name} at {address.server} is being built; try again when that is done"
    return f"there is no index {address.name} at {address.server}; build it with `evalapp reindex`"


class ElasticIndex:
    """An index in Elasticsearch; see `retrieval.index.hits.Index`.

    `refresh()` reads count and version again. Returns at most MOST hits. If rows were tokenised with another version
    of Unicode, searches work but emit a `UserWarning`. Every method raises `IndexUnavailable` if the server cannot
    answer; the next call tries again, so an index opened before a restart of the server continues to work."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client = connect(address.server, address.access)
        try:
            with translate_errors(address.server):
                check_version(address.server, self._client)
            self.refresh()
        except BaseException:
            self._client.close()
            raise

    def refresh(self) -> None:
        """Read count, version and tokenizer again."""
        with self._answering():
            state = read_state(self._client, self._address)
            self._usual_longest = self._longest()
        self.count, self.version = state.count, state.version
        self.language, self.tokenizer = state.language, state.tokenizer
        self._cut = partial(tokenisation.tokens, tokenizer=tokenisation.check_tokenizer(state.tokenizer))
        if note := tokenisation.explain_unicode(state.unicode):
            where = f"the index {self._address.name} at {self._address.server}"
            warnings.warn(f"{where}: {note}; rebuild it with `evalapp reindex`", stacklevel=2)

    def tokens(self, text: str) -> frozenset[str]:
        """Return the token set of `text`, by which texts are compared."""
        return self._cut(text)

    def search(self, text: str, k: int = 100, *, distinct: bool = False, exclude: Collection[str] = ()) -> list[Hit]:
        """Return the best `k` rows by Jaccard similarity to `text`; `exclude` as in `Index.search`. With `distinct`,
        responses already taken are excluded from the next round, so that thousands of equal responses cost one round
        instead of thousands of rows."""
        wanted = self.tokens(text)
        k = min(k, MOST)
        taken: list[Hit] = []
        if not wanted or k <= 0:
            return taken
        search = Search(self._ask, self.tokens, self._longest, wanted, self.count, self._usual_longest)
        barred = {layout.reply(response) for response in exclude}
        with self._answering():
            while len(taken) < k:
                missing = k - len(taken)
                size = min(missing + missing // 4 + 10, MOST) if distinct else missing
                hits = search.best(size, sorted(barred))
                taken += take(hits, missing, distinct=distinct)
                if not distinct or len(hits) < size:
                    break
                barred.update(layout.reply(hit.response) for hit in hits)
        return taken

    def find(self, text: str, k: int = 20) -> list[Hit]:
        """Return the first `k` rows that contain all tokens of `text`, those with the fewest other tokens first."""
        wanted = self.tokens(text)
        k = min(k, MOST)
        taken: list[Hit] = []
        if not wanted or k <= 0:
            return taken
        # The server limits the tokens per query; the remaining ones are checked in the returned rows.
        asked = sorted(wanted, key=lambda token: (-len(token), token))[:CLAUSES]
        body: dict[str, Any] = {
            "query": {"bool": {"filter": [{"term": {"words": token}} for token in asked]}},
            "sort": [{"size": "asc"}, {"row": "asc"}],
            "size": k,
            "track_total_hits": False,
        }
        with self._answering():
            while True:
                (hits,) = self._ask([body])
                for hit in hits:
                    query, response, meta = layout.texts(hit["_source"])
                    every = self.tokens(query) | self.tokens(response)
                    if wanted <= every:
                        value = jaccard(len(wanted), len(wanted), len(every))
                        taken.append(Hit(int(hit["_id"]), value, query, response, meta))
                if len(hits) < k or len(taken) >= k:
                    return taken[:k]
                body["search_after"] = hits[-1]["sort"]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> ElasticIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- the server ----------------------------------------------------------------------------------------------

    @contextmanager
    def _answering(self) -> Iterator[None]:
        import elasticsearch

        with translate_errors(self._address.server):
            try:
                yield
            except elasticsearch.NotFoundError as error:
                raise IndexUnavailable(_missing(self._client, self._address)) from error

    def _ask(self, bodies: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """Send all searches in one request. A partial result raises, because part of the index is unavailable."""
        name = self._address.name
        if len(bodies) == 1:
            answer = self._client.search(
                index=name, body=bodies[0], filter_path=_ANSWER, allow_partial_search_results=False
            )
            return [_hits(answer.body)]
        header = {"index": name, "allow_partial_search_results": False}
        searches = [part for body in bodies for part in (header, body)]
        responses = self._client.msearch(searches=searches, filter_path=_ANSWERS).body["responses"]
        for answer in responses:
            if answer.get("status") == 404:
                raise IndexUnavailable(_missing(self._client, self._address))
            if "error" in answer:
                raise IndexUnavailable(
                    f"Elasticsearch at {self._address.server} could not search {name}: "
                    f"{answer['error'].get('reason') or answer['error'].get('type')}"
                )
        return [_hits(answer) for answer in responses]

    def _longest(self) -> int:
        """Return the current number of tokens of the longest query."""
        answer = self._client.search(
            index=self._address.name, size=0, aggregations={"longest": {"max": {"field": "length"}}},
            filter_path="aggregations", allow_partial_search_results=False,
        )  # fmt: skip
        return int(answer["aggregations"]["longest"]["value"] or 0)


def _hits(answer: dict[str, Any]) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = answer.get("hits", {}).get("hits", [])
    return hits


def open_elastic(
    where: str,
    *,
    username: str = "",
    password: str = "",
    api_key: str = "",
    ca_certs: str = "",
    timeout: float = 10.0,
) -> ElasticIndex:
    """Open the index at the address `where`, http(s)://host:9200/name.

    `api_key` takes precedence over `username` and `password`; `ca_certs` is the file of the server's certificate
    authority, `timeout` in seconds. Raises `IndexUnavailable` if the server cannot answer."""
    return ElasticIndex(Address.parse(where, Access(username, password, api_key, ca_certs, timeout)))
