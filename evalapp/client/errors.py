"""Exceptions of the client; all derive from `ClientError`. Errors that the server reports carry the fields of its
problem document (RFC 9457)::

    try:
        project.upload("ratings.jsonl").wait()
    except UploadFaulty as error:
        for fault in error.faults:
            print(fault)                  # ratings.jsonl:17: value must be from 1 to 5
    except ClientError as error:
        print(error)
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self


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

    @classmethod
    def from_wire(cls, row: Mapping[str, Any]) -> Self:
        """Return the fault in a JSON object `row` of the API."""
        line = row.get("line")
        return cls(
            message=str(row.get("message", "")),
            field=str(row.get("field") or ""),
            file=str(row.get("file") or ""),
            line=line if isinstance(line, int) else None,
        )


#: Number of different faults that the server stores for an upload.
KEPT_FAULTS = 1000


def _with_faults(text: str, faults: Sequence[Fault], total: int | None = None, most: int = 5) -> str:
    lines = [text, *(f"  {fault}" for fault in faults[:most])]
    # A fault may stand for many rows, so `total` counts only when the server did not store all faults.
    left = (total if total is not None and len(faults) >= KEPT_FAULTS else len(faults)) - min(most, len(faults))
    return "\n".join([*lines, f"  and {left} more"] if left > 0 else lines)


class ClientError(Exception):
    """Base class of all exceptions of the client."""


class MissingPackage(ClientError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, what: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: pip install {package}")
        self.package = package


class InvalidArgument(ClientError, ValueError):
    """An argument is invalid or cannot be sent; nothing was sent."""


class MissingFile(InvalidArgument, FileNotFoundError):
    """A file or folder does not exist, or a folder has no file to send."""


class WrongOrder(ClientError, RuntimeError):
    """Another call must come first."""


class ConnectionFailed(ClientError):
    """The connection failed or broke in all attempts."""

    def __init__(self, detail: str, *, url: str, attempts: int = 1) -> None:
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        super().__init__(f"{url}: {detail}{tried}")
        self.detail, self.url, self.attempts = detail, url, attempts


class TimedOut(ConnectionFailed):
    """The server did not answer within the time-out."""


class UnexpectedAnswer(ClientError):
    """A response that is not from this API, for example from a proxy or another program at that address."""


@contextmanager
def expecting(what: str) -> Iterator[None]:
    """Raise `UnexpectedAnswer` for errors in the block, in which a response is read as `what`: members are missing or
    have other types. Also a decorator."""
    try:
        yield
    except ClientError:
        raise
    except KeyError as error:
        raise UnexpectedAnswer(f"the server responded without {error} instead of {what}") from error
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise UnexpectedAnswer(f"the response of the server is not {what}: {error}") from error


class ApiError(ClientError):
    """An error that the server reports. `type`, `title`, `status` and `detail` are those of its problem document,
    `errors` its list of faults, `extra` its other members (for a conflict both versions)."""

    def __init__(
        self, status: int, problem: Mapping[str, Any], *, method: str = "", url: str = "", retry_after: float | None
    ) -> None:
        rows = problem.get("errors")
        known = ("type", "title", "status", "detail", "errors")
        self.status = status
        self.type = str(problem.get("type", "about:blank"))
        self.title = str(problem.get("title", ""))
        self.detail = str(problem.get("detail", ""))
        faults = rows if isinstance(rows, list) else ()
        self.errors = tuple(Fault.from_wire(row) for row in faults if isinstance(row, Mapping))
        self.extra = {key: value for key, value in problem.items() if key not in known}
        self.method, self.url, self.retry_after = method, url, retry_after
        words = ": ".join(part for part in (self.title.rstrip("."), self.detail) if part) or "no reason given"
        others = [fault for fault in self.errors if str(fault) != self.detail]
        super().__init__(_with_faults(f"{status} {words}", others))


class BadRequest(ApiError):
    """400, 413, 415, 422: the input has faults, is too large or has an unsupported type."""


class NotSignedIn(ApiError):
    """401: the token is missing, wrong, expired or revoked."""


class NotAllowed(ApiError):
    """403: the role or the scopes of the token do not allow this."""


class NotFound(ApiError):
    """404: the object does not exist, or you have no access to it."""


class Conflict(ApiError):
    """409: not possible in the current state, for example because a name is taken or a run is active."""


class TooManyRequests(ApiError):
    """429: wait for `retry_after` seconds."""


class ServerError(ApiError):
    """5xx: an error of the server."""


class Unavailable(ServerError):
    """502, 503, 504: a part of the installation is not running or busy; retry after `retry_after` seconds."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest, 401: NotSignedIn, 403: NotAllowed, 404: NotFound, 409: Conflict, 413: BadRequest,
    415: BadRequest, 422: BadRequest, 429: TooManyRequests, 502: Unavailable, 503: Unavailable, 504: Unavailable,
}  # fmt: skip


def find_error_class(status: int) -> type[ApiError]:
    """Return the exception for an HTTP `status`."""
    return _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)


class UploadFaulty(ClientError):
    """Rows of an upload have faults; nothing was stored. `faults` has the first thousand, `fault_count` is their
    number, `upload` the `Upload`."""

    def __init__(self, upload: Any) -> None:
        self.upload, self.faults, self.fault_count = upload, upload.faults, upload.fault_count
        text = f"upload {upload.id}: {upload.fault_count} faults, nothing was stored"
        super().__init__("\n".join([_with_faults(text, self.faults, self.fault_count), *upload.hints]))


class UploadCancelled(ClientError):
    """An `Upload` was cancelled while `wait` waited for it."""

    def __init__(self, upload: Any) -> None:
        self.upload = upload
        super().__init__(f"upload {upload.id} was cancelled; nothing was stored")


class RunFailed(ClientError):
    """A `Run` ended with an error; `error.run.log()` has details."""

    def __init__(self, run: Any) -> None:
        self.run, self.faults = run, run.errors
        super().__init__(_with_faults(f"run {run.id} ({run.title}) failed: {run.error}", self.faults))


class RunCancelled(ClientError):
    """A `Run` was cancelled while `wait` waited for it."""

    def __init__(self, run: Any) -> None:
        self.run = run
        super().__init__(f"run {run.id} ({run.title}) was cancelled")


class NotFinished(ClientError):
    """`wait` reached its timeout; the run or upload continues."""

    def __init__(self, what: str, seconds: float, state: str) -> None:
        super().__init__(f"{what} is still {state} after {seconds:g} s; it continues, wait for it again")
        self.state = state
