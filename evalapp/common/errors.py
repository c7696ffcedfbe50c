"""Errors for users. Pages, API and commands show the same error, each in its own form. The message says what is wrong
and what to do; details are fields."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Fault:
    """An error in an input: its place and how to correct it. `line` counts from 1."""

    message: str
    field: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part not in ("", None))
        return f"{place}: {self.message}" if place else self.message

    def as_dict(self) -> dict:
        return {key: value for key, value in asdict(self).items() if value not in ("", None)}


class EvalappError(Exception):
    """An error that the user can correct. `status` is its HTTP status, `code` its type in the API."""

    status = 400
    code = "error"
    title: Any = _("The request failed")

    def __init__(self, detail: str, *, faults: Sequence[Fault] = (), **extra: object) -> None:
        self.detail = str(detail)  # it may be translated lazily
        super().__init__(self.detail)
        self.faults = list(faults)
        self.extra = extra  # additional members of the problem document, JSON-ready

    @classmethod
    def for_field(cls, field: str, message: str, **extra: object) -> Self:
        """Return an error about one field of a request."""
        return cls(message, faults=[Fault(message, field=field)], **extra)

    @classmethod
    def from_faults(cls, faults: Sequence[Fault]) -> Self:
        return cls(" ".join(fault.message for fault in faults), faults=faults)

    @property
    def unmentioned_faults(self) -> list[Fault]:
        """The faults that `detail` does not contain."""
        return [fault for fault in self.faults if str(fault) not in self.detail]


class BadInput(EvalappError):
    code, title = "bad-input", _("The input has faults")


class SignInFirst(EvalappError):
    status, code, title = 401, "not-authenticated", _("You are not signed in")


class TooSlow(EvalappError):
    status, code, title = 408, "too-slow", _("The upload was too slow")


class LengthMissing(EvalappError):
    status, code, title = 411, "length-missing", _("The length of the upload is missing")


class TooLarge(EvalappError):
    status, code, title = 413, "too-large", _("The upload is too large")


class Unsupported(EvalappError):
    status, code, title = 415, "unsupported", _("Unsupported content type")


class NotAllowed(EvalappError):
    status, code, title = 403, "not-allowed", _("Your role does not allow this")


class NotThere(EvalappError):
    status, code, title = 404, "not-found", _("Not found")


class Conflict(EvalappError):
    status, code, title = 409, "conflict", _("Not possible in the current state")


class InProgress(Conflict):
    code, title = "in-progress", _("The same request is still in progress")


class KeyReused(Conflict):
    code, title = "key-reused", _("The idempotency key was used for another request")


class TooMany(EvalappError):
    status, code, title = 429, "too-many", _("Too many requests")


class Unavailable(EvalappError):
    status, code, title = 503, "unavailable", _("A part of the installation is not running")


class NoRoom(EvalappError):
    status, code, title = 507, "no-room", _("The server is out of disk space")


class Busy(Unavailable):
    """A part is running but busy; `wait` is the number of seconds after which to retry."""

    code, title = "busy", _("This part of the installation is busy")
