"""The small family of domain errors. Each carries its facts as fields and says the way out in its text;
pages, API and commands render the same error in their own form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input: where it is and what to do. `line` counts from 1."""

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
    """A mistake or a state that the person can do something about. `status` is its HTTP status."""

    status = 400
    code = "error"
    title = "That did not work"

    def __init__(self, detail: str, *, faults: Sequence[Fault] = (), **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.faults = list(faults)
        self.extra = extra  # further members of the problem document, JSON-ready

    @property
    def untold(self) -> list[Fault]:
        """The faults that the detail does not say in the same words."""
        return [fault for fault in self.faults if str(fault) not in self.detail]


class BadInput(EvalappError):
    code, title = "bad-input", "The input has faults"


class SignInFirst(EvalappError):
    status, code, title = 401, "not-authenticated", "You are not signed in"


class TooSlow(EvalappError):
    status, code, title = 408, "too-slow", "The upload came too slowly"


class LengthMissing(EvalappError):
    status, code, title = 411, "length-missing", "The length of the upload is missing"


class TooLarge(EvalappError):
    status, code, title = 413, "too-large", "The upload is too large"


class Unsupported(EvalappError):
    status, code, title = 415, "unsupported", "This kind of content is not read here"


class NotAllowed(EvalappError):
    status, code, title = 403, "not-allowed", "Your role does not allow this"


class NotThere(EvalappError):
    status, code, title = 404, "not-found", "Nothing is there"


class Conflict(EvalappError):
    status, code, title = 409, "conflict", "Something is in the way"


class InProgress(Conflict):
    code, title = "in-progress", "The same request is still being worked on"


class KeyReused(Conflict):
    code, title = "key-reused", "This idempotency key belongs to another request"


class TooMany(EvalappError):
    status, code, title = 429, "too-many", "Too many requests"


class Unavailable(EvalappError):
    status, code, title = 503, "unavailable", "A part of the installation is not running"


class NoRoom(EvalappError):
    status, code, title = 507, "no-room", "The server has no room for this"


class Busy(Unavailable):
    """It runs and is at something else: `wait` says in how many seconds to ask again."""

    code, title = "busy", "This part of the installation is busy"
