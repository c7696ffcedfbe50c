"""The door of the client: an address, a token, and what can be reached with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from evalapp.client.campaigns import Campaign
from evalapp.client.evaluators import Evaluator
from evalapp.client.projects import Project
from evalapp.client.rows import CatalogueEntry, Rows
from evalapp.client.runs import Run
from evalapp.client.session import Retry, Session, segment, whole
from evalapp.client.uploads import Upload

if TYPE_CHECKING:
    import httpx


class Client:
    """One installation as one person sees it. Use it in a `with` block, or call `close()`.

    `url` is `http://host:8000`, `token` one made under Account, Tokens. `timeout`, in seconds, holds for every single
    answer as a whole, from its request to its last byte; for uploads and downloads, and where it is an `httpx.Timeout`,
    for each step of the transfer, so that it may last as long as it goes on. `retries` says how often a request is
    sent again after a failed connection, a time-out, 429, 502, 503 or 504, with growing, jittered pauses, and only if
    sending it twice does no harm. `verify` is False, or a file of certificates, for an installation with a certificate
    of its own. It may be shared among threads.
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
        self.session.close()

    def __repr__(self) -> str:
        return f"Client({self.session.base!r})"

    def projects(self) -> Rows[Project]:
        """The projects you are a member of, by short name."""
        return Rows(self.session, "projects/", make=lambda row: Project.from_wire(self.session, row))

    def project(self, slug: str) -> Project:
        """Raises NotFound when it is not there, or not yours to see."""
        return Project.from_wire(self.session, self.session.get(f"projects/{segment(slug)}/"))

    def create_project(self, slug: str, **about: Any) -> Project:
        """A new project of yours; name, task, lang, licence, source and notes say what it is about."""
        return Project.from_wire(self.session, self.session.post("projects/", {"slug": slug, **about}))

    def run(self, number: int) -> Run:
        return Run.from_wire(self.session, self.session.get(f"runs/{whole(number)}/"))

    def upload(self, number: int) -> Upload:
        return Upload.from_wire(self.session, self.session.get(f"uploads/{whole(number)}/"))

    def campaign(self, number: int) -> Campaign:
        """A campaign by its number, for those who may read it."""
        return Campaign.from_wire(self.session, self.session.get(f"campaigns/{whole(number)}/"))

    def judge(self, campaign: int) -> Campaign:
        """The same for annotators, who see no more of it than their assignments: nothing is asked yet."""
        return Campaign(self.session, whole(campaign))

    def catalogue(self) -> list[CatalogueEntry]:
        """What can be applied or trained by name, with options and needs."""
        return cast(list[CatalogueEntry], self.session.results("evaluators/"))

    def evaluator(
        self, slug: str, *, project: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Evaluator:
        """For online scores: a name of the catalogue, or of a trained one, of that project if several have it."""
        return Evaluator(self.session, slug, project=project, options=options)
