"""Connections to an Elasticsearch server: addresses, credentials, health, and translated errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from retrieval.index.errors import IndexUnavailable

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

MAJOR = 8
#: Part of an index's own name: `corpus` is the alias, `corpus.3f9a...` the index behind it.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,199}")


@dataclass(frozen=True)
class Access:
    """Credentials and timeout. `ca_certs`: file with the server's certificate authority; an API key takes precedence
    over user name and password."""

    username: str = ""
    password: str = ""
    api_key: str = ""
    ca_certs: str = ""
    timeout: float = 10.0


@dataclass(frozen=True)
class Address:
    """A server and the name of an index on it; user name and password are removed from the address."""

    server: str
    name: str
    access: Access

    @classmethod
    def parse(cls, where: str, access: Access) -> Address:
        """Read `where`, an address http(s)://[user:password@]host:9200/name. Its credentials are used unless `access`
        has its own. Raises ValueError for other texts."""
        server, _, name = where.rstrip("/").rpartition("/")
        if not urlsplit(server).hostname or not _NAME.fullmatch(name):
            shown = _without_password(where)
            raise ValueError(
                f"{shown!r} is not the address of an index; write http://host:9200/name, with lower-case letters, "
                "digits, - and _"
            )
        shown, access = _split(server, access)
        return cls(shown, name, access)


def _split(server: str, access: Access) -> tuple[str, Access]:
    """Return the address without user and password, which move to the access unless it has its own."""
    parts = urlsplit(server)
    if parts.username and not access.username and not access.api_key:
        access = replace(access, username=unquote(parts.username), password=unquote(parts.password or ""))
    return _without_password(server), access


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def connect(server: str, access: Access) -> Elasticsearch:
    """Return a client for `server` with the credentials in `access`, without sending a request. Raises
    `IndexUnavailable` if the certificate file is missing."""
    from elasticsearch import Elasticsearch
    from elasticsearch.serializer import OrjsonSerializer

    options: dict[str, Any] = {}
    if access.api_key:
        options["api_key"] = access.api_key
    elif access.username:
        options["basic_auth"] = (access.username, access.password)
    if access.ca_certs and server.startswith("https:"):
        if not Path(access.ca_certs).is_file():
            raise IndexUnavailable(f"there is no file {access.ca_certs} with the server's certificate authority")
        options["ca_certs"] = access.ca_certs
    server, _ = _split(server, access)
    parts = urlsplit(server)
    if not parts.port:
        server = server.replace(parts.netloc, f"{parts.netloc}:{443 if parts.scheme == 'https' else 9200}", 1)
    return Elasticsearch(
        server,
        request_timeout=access.timeout,
        retry_on_timeout=False,
        max_retries=1,
        serializer=OrjsonSerializer(),
        **options,
    )


# ---- errors ------------------------------------------------------------------------------------------------


@contextmanager
def translate_errors(server: str) -> Iterator[None]:
    """Turn client errors into `IndexUnavailable` with a message that names `server`. Errors with a specific meaning
    (missing index, conflict) are handled inside the block."""
    import elasticsearch

    try:
        yield
    except elasticsearch.UnsupportedProductError as error:
        raise IndexUnavailable(f"the server at {server} is not Elasticsearch {MAJOR}; check the address") from error
    except elasticsearch.ConnectionTimeout as error:
        raise IndexUnavailable(f"Elasticsearch at {server} did not answer in time") from error
    except elasticsearch.TransportError as error:
        raise IndexUnavailable(
            f"nothing answers at {server} ({_cause(error)}); start it or check the address"
        ) from error
    except elasticsearch.AuthenticationException as error:
        raise IndexUnavailable(f"Elasticsearch at {server} rejects this user name, password or key") from error
    except elasticsearch.AuthorizationException as error:
        raise IndexUnavailable(f"Elasticsearch at {server} denies this user access: {reason(error)}") from error
    except elasticsearch.ApiError as error:
        raise IndexUnavailable(_describe_error(server, error)) from error


def _describe_error(server: str, error: Any) -> str:
    status = error.meta.status if error.meta else 0
    if status == 429:
        return f"Elasticsearch at {server} is overloaded; try again in a moment"
    if status in {502, 503, 504}:
        return f"Elasticsearch at {server} cannot answer now: {reason(error)}"
    if "media_type" in str(error.error) or "compatible" in reason(error):
        return f"Elasticsearch at {server} has another version than {MAJOR}; install version {MAJOR}"
    return f"Elasticsearch at {server} refused ({status}): {reason(error)}"


def reason(error: Any) -> str:
    """Return the server's explanation in an error, shortened."""
    body = error.body if isinstance(error.body, dict) else {}
    details = body.get("error", {})
    if isinstance(details, dict):
        causes = details.get("root_cause") or [details]
        text = str(causes[0].get("reason") or details.get("reason") or details.get("type") or error)
    else:
        text = str(details or error)
    return text[:300]


def _cause(error: Any) -> str:
    inner = error.errors[0] if getattr(error, "errors", ()) else error
    text = str(getattr(inner, "message", "") or inner)
    return text.rpartition(": ")[2].strip("')\" ")[:200] or type(inner).__name__


# ---- health ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServerHealth:
    """Health of a server. `message` is one line for people; `ok`: it can be used."""

    reachable: bool
    ok: bool
    message: str
    version: str = ""
    status: str = ""


def read_version(client: Elasticsearch) -> str:
    """Return the version of the node that `client` reaches; "" if its user is not allowed to see it. `GET /` is tried
    second, because the minimal distribution does not answer it."""
    import elasticsearch

    try:
        answer = client.nodes.info(node_id="_local", metric="http", filter_path="nodes.*.version")
        return next((str(node["version"]) for node in answer.get("nodes", {}).values()), "")
    except (elasticsearch.AuthorizationException, elasticsearch.NotFoundError):
        pass
    try:
        return str(client.info()["version"]["number"])
    except (elasticsearch.AuthorizationException, elasticsearch.NotFoundError, KeyError, TypeError):
        return ""


def check_version(server: str, client: Elasticsearch) -> str:
    """Return the version that `client` reads; raises `IndexUnavailable`, naming `server`, if it is not supported."""
    version = read_version(client)
    if version and version.partition(".")[0] != str(MAJOR):
        raise IndexUnavailable(f"Elasticsearch at {server} is {version}; version {MAJOR} is needed")
    return version


def health(url: str, access: Access | None = None) -> ServerHealth:
    """Return version and cluster state of the server at `url`; connection errors are part of the result.

    `url` can contain user name and password, unless `access` has them; the message never shows them."""
    server, access = _split(url.rstrip("/"), access or Access())
    version = ""
    try:
        client = connect(server, access)
    except IndexUnavailable as error:
        return ServerHealth(False, False, error.why)
    try:
        with translate_errors(server):
            version = check_version(server, client)
            cluster = client.cluster.health(filter_path="status,number_of_nodes,unassigned_primary_shards")
    except IndexUnavailable as error:
        reached = not error.why.startswith("nothing answers") and "did not answer in time" not in error.why
        return ServerHealth(reached, False, error.why, version)
    finally:
        client.close()
    status = str(cluster.get("status", "unknown"))
    text = f"Elasticsearch {version or '(version unknown)'} at {server} is {status}"
    if status == "red":
        text += ": part of the data is missing; look at its log and at GET _cluster/allocation/explain"
    return ServerHealth(True, status in {"green", "yellow"}, text, version, status)
