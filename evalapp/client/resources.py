"""Base class of the objects that the API returns by id."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from evalapp.client.errors import expecting
from evalapp.client.session import Session
from evalapp.markup import shorten, write_html_table


@dataclass
class Resource:
    """An object as it was when last requested; `refresh` requests it again. `raw` has all members of the response."""

    _session: Session = field(repr=False, compare=False)
    id: int
    raw: dict[str, Any] = field(default_factory=dict, repr=False, kw_only=True)
    #: Noun for error messages, and folder of the address below /api/v1/.
    _noun: ClassVar[str] = ""
    _folder: ClassVar[str] = ""

    @classmethod
    def from_wire(cls, session: Session, row: Mapping[str, Any]) -> Self:
        """Return the object in a JSON object `row` of the API; `session` is used for further requests."""
        with expecting(cls._noun):
            resource = cls(session, int(row["id"]))
        resource._update(row)
        return resource

    def _describe(self) -> dict[str, Any]:
        """The members that identify the object, without empty ones in its descriptions."""
        return {}

    def __repr__(self) -> str:
        parts = [shorten(str(value)) for value in self._describe().values() if value not in ("", None)]
        return f"<{type(self).__name__} {self.id}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        rows = [(name, value) for name, value in self._describe().items() if value not in ("", None)]
        return write_html_table((type(self).__name__, self.id), rows)

    @property
    def _path(self) -> str:
        return f"{self._folder}/{self.id}/"

    def refresh(self) -> Self:
        """Request the object again; return it."""
        return self._fetch(None)

    def _fetch(self, until: float | None) -> Self:
        self._update(self._session.get(self._path, until=until))
        return self

    def _update(self, row: Mapping[str, Any]) -> None:
        with expecting(self._noun):
            self.raw.update(row)
            self._read(row)

    def _read(self, row: Mapping[str, Any]) -> None:
        raise NotImplementedError(type(self).__name__)
