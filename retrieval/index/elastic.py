"""An index in Elasticsearch 8, with the same answers in the same order as the embedded one. How rows lie there is
`elastic_layout`, how the best are found `elastic_search`, how they get there `elastic_writer`."""

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
from retrieval.index.elastic_server import Access, Address, check_version, connect, in_our_words
from retrieval.index.errors import IndexUnavailable
from retrieval.index.hits import Hit, jaccard, take

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

MOST = 20_000
_ANSWER = "hits.hits._id,hits.hits._score,hits.hits._source,hits.hits.fields,hits.hits.sort"
_ANSWERS = ",".join(f"responses.{part}" for part in (*_ANSWER.split(","), "error", "status"))


@dataclass(frozen=True)
class State:
    """What is known of an index: rows, the version its last writer gave it, how its texts are cut into tokens, and by
    which version of Unicode (empty: not known)."""

    count: int
    version: str
    language: str
    tokenizer: str
    behind: str
    unicode: str = ""


def read_state(client: Elasticsearch, address: Address) -> State:
    """The state of the index that serves under the name."""
    import elasticsearch

    try:
        found = client.indices.get(index=address.name, filter_path="*.mappings._meta")
        behind, about = next(iter(found.items())) if found else ("", {})
        meta = about.get("mappings", {}).get("_meta", {})
        status = client.cluster.health(index=address.name, filter_path="status,unassigned_shards").body
        if status.get("status") == "red":
            raise IndexUnavailable(
                f"the index {address.name} at {address.server} is red: {status.get('unassigned_shards')} of its parts "
                "are missing; look at the server's log, or build it anew with `manage.py reindex`"
            )
        count = int(client.count(index=address.name)["count"])
    except elasticsearch.NotFoundError as error:
        raise IndexUnavailable(_missing(client, address)) from error
    if meta.get("format") != layout.FORMAT:
        raise IndexUnavailable(
            f"the index {address.name} at {address.server} was made by another version of this program; build it anew "
            "with `manage.py reindex`"
        )
    return State(count, meta["version"], meta["language"], meta["tokenizer"], behind, meta.get("unicode", ""))


def _missing(client: Elasticsearch, address: Address) -> str:
    if client.indices.exists(index=f"{address.name}.*", allow_no_indices=False):
        return f"the index {address.name} at {address.server} is being built; try again when that is done"
    return f"there is no index {address.name} at {address.server}; build it with `manage.py reindex`"


class ElasticIndex:
    """See `retrieval.index.hits.Index`. `refresh()` reads count and version anew. At most MOST hits at a time. An index
    whose rows were cut into tokens by another version of Unicode answers, with a `UserWarning`.

    Every method raises IndexUnavailable when the server cannot answer; the next call asks it again, so an index that
    was opened before the server was restarted goes on working.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client = connect(address.server, address.access)
        try:
            with in_our_words(address.server):
                check_version(address.server, self._client)
            self.refresh()
        except BaseException:
            self._client.close()
            raise

    def refresh(self) -> None:
        with self._answering():
            state = read_state(self._client, self._address)
            self._usual_longest = self._longest()
        self.count, self.version = state.count, state.version
        self.language, self.tokenizer = state.language, state.tokenizer
        self._cut = partial(tokenisation.tokens, tokenizer=tokenisation.check_tokenizer(state.tokenizer))
        if note := tokenisation.unicode_note(state.unicode):
            where = f"the index {self._address.name} at {self._address.server}"
            warnings.warn(f"{where}: {note}; build it anew with `manage.py reindex`", stacklevel=2)

    def tokens(self, text: str) -> frozenset[str]:
        """The token set both sides are compared by."""
        return self._cut(text)

    def search(self, text: str, k: int = 100, *, distinct: bool = False, exclude: Collection[str] = ()) -> list[Hit]:
        """See `Index.search`. With `distinct`, rows whose responses were taken are barred from the next round, so that
        thousands of equal responses cost one round, not thousands of rows."""
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
        """See `Index.find`: rows that contain all tokens, those with the fewest others first."""
        wanted = self.tokens(text)
        k = min(k, MOST)
        taken: list[Hit] = []
        if not wanted or k <= 0:
            return taken
        # More tokens than the server takes at once: the rest is looked for in the rows that come.
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
        """Gives the connections back."""
        self._client.close()

    def __enter__(self) -> ElasticIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- the server ----------------------------------------------------------------------------------------------

    @contextmanager
    def _answering(self) -> Iterator[None]:
        import elasticsearch

        with in_our_words(self._address.server):
            try:
                yield
            except elasticsearch.NotFoundError as error:
                raise IndexUnavailable(_missing(self._client, self._address)) from error

    def _ask(self, bodies: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """One request for all; a server that could search only part of the index is one that cannot answer."""
        name = self._address.name
        if len(bodies) == 1:
            answer = self._client.search(
                index=name, body=bodies[0], filter_path=_ANSWER, allow_partial_search_results=False
            )
            return [_hits(answer.body)]
        header = {"index": name, "allow_partial_search_results": False}
        searches = [part for body in bodies for part in (header, body)]
        found = self._client.msearch(searches=searches, filter_path=_ANSWERS).body["responses"]
        for answer in found:
            if answer.get("status") == 404:
                raise IndexUnavailable(_missing(self._client, self._address))
            if "error" in answer:
                raise IndexUnavailable(
                    f"Elasticsearch at {self._address.server} could not search {name}: "
                    f"{answer['error'].get('reason') or answer['error'].get('type')}"
                )
        return [_hits(answer) for answer in found]

    def _longest(self) -> int:
        """Tokens of the longest query, now."""
        found = self._client.search(
            index=self._address.name, size=0, aggregations={"longest": {"max": {"field": "length"}}},
            filter_path="aggregations", allow_partial_search_results=False,
        )  # fmt: skip
        return int(found["aggregations"]["longest"]["value"] or 0)


def _hits(answer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.get("hits", {}).get("hits", [])
    return found


def open_elastic(
    where: str,
    *,
    username: str = "",
    password: str = "",
    api_key: str = "",
    ca_certs: str = "",
    timeout: float = 10.0,
) -> ElasticIndex:
    """Opens the index of an address http(s)://host:9200/name, or raises IndexUnavailable."""
    return ElasticIndex(Address.parse(where, Access(username, password, api_key, ca_certs, timeout)))
