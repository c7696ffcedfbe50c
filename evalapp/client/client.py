"""The client of an installation: its address, a token, and access to everything in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from evalapp.client.addresses import parse_id, quote_segment
from evalapp.client.campaigns import Campaign
from evalapp.client.evaluators import Evaluator
from evalapp.client.projects import Project
from evalapp.client.rows import CatalogueEntry, Rows
from evalapp.client.runs import Run
from evalapp.client.session import Retry, Session
from evalapp.client.uploads import Upload

if TYPE_CHECKING:
    import httpx


class Client:
    """An installation, with the permissions of a token. Use it in a `with` block, or call `close()`. Thread-safe.

        with Client("http://localhost:8000", token) as client:
            client.project("weekend").upload("outputs.jsonl")

    `url` is like `http://host:8000`, `token` one from Account, Tokens. `timeout`, in seconds, limits each response as a
    whole; for uploads and downloads, and if it is an `httpx.Timeout`, it limits each step of the transfer instead.
    `retries` is the number of repetitions of a request after a failed connection, a time-out, 429, 502, 503 or 504,
    with growing random pauses, and only if repeating it is safe. `verify` is False, or a file of certificates.
    `transport` replaces the network in tests.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        timeout: float | httpx.Timeout = 30.0,
        retries: int | Retry = 4,
        verify: bool | str = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.session = Session(url, token, timeout=timeout, retries=retries, verify=verify, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.session.close()

    def __repr__(self) -> str:
        return f"Client({self.session.base!r})"

    def projects(self) -> Rows[Project]:
        """Return your projects, by short name."""
        return Rows(self.session, "projects/", make=lambda row: Project.from_wire(self.session, row))

    def project(self, slug: str) -> Project:
        """Return the project with the short name `slug`. Raises `NotFound` if it does not exist for you."""
        return Project.from_wire(self.session, self.session.get(f"projects/{quote_segment(slug)}/"))

    def create_project(self, slug: str, **about: Any) -> Project:
        """Create a project with the short name `slug`. `about`: name, task, lang, licence, source and notes."""
        return Project.from_wire(self.session, self.session.post("projects/", {"slug": slug, **about}))

    def run(self, number: int) -> Run:
        """Return the run with the id `number`."""
        return Run.from_wire(self.session, self.session.get(f"runs/{parse_id(number)}/"))

    def upload(self, number: int) -> Upload:
        """Return the upload with the id `number`."""
        return Upload.from_wire(self.session, self.session.get(f"uploads/{parse_id(number)}/"))

    def campaign(self, number: int) -> Campaign:
        """Return the campaign with the id `number`, for users who may read it."""
        return Campaign.from_wire(self.session, self.session.get(f"campaigns/{parse_id(number)}/"))

    def judge(self, campaign: int) -> Campaign:
        """Return the campaign with the id `campaign` for annotators, who only see its assignments. Sends no request."""
        return Campaign(self.session, parse_id(campaign))

    def catalogue(self) -> list[CatalogueEntry]:
        """Return the evaluators that can be applied or trained, with options and requirements."""
        return cast(list[CatalogueEntry], self.session.results("evaluators/"))

    def evaluator(
        self, slug: str, *, project: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Evaluator:
        """Return an evaluator for online scores. `slug` is a name of the catalogue or of a trained evaluator; `project`
        is needed if several projects have one of that name. `options` are those of scoring."""
        return Evaluator(self.session, slug, project=project, options=options)
