"""Addresses: of an installation, of objects below it, and names of files that the server gives."""

from pathlib import Path
from urllib.parse import quote, urlsplit

from evalapp.client.errors import InvalidArgument, UnexpectedAnswer
from evalapp.client.json_lines import BAD_SURROGATE

PREFIX = "/api/v1/"
#: Largest id of a row.
MAX_ID = 2**63 - 1


def quote_segment(text: object) -> str:
    """Return `text` escaped as a segment of a URL. Raises `InvalidArgument` for an empty text, `.` and `..`."""
    if str(text) in ("", ".", ".."):
        raise InvalidArgument(f"{str(text)!r} is not a name")
    try:
        return quote(str(text), safe="")
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"the name {BAD_SURROGATE}") from error


def parse_id(number: object) -> int:
    """Return `number` as the id of a run, upload or campaign. Raises `InvalidArgument` for other values."""
    try:
        value = int(number)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"{number!r} is not an id; pass the `id` of a response") from error
    if not 0 <= value <= MAX_ID or (isinstance(number, float) and number != value):
        raise InvalidArgument("the number is not an id; pass the `id` of a response")
    return value


def check_file_name(name: str, depth: int = 1) -> str:
    """Return `name` if it has at most `depth` segments and stays in its folder. Raises `UnexpectedAnswer` otherwise."""
    parts = name.split("/")
    if len(parts) > depth or not all(part and part == Path(part).name and part[0] != "." for part in parts):
        raise UnexpectedAnswer(f"the server names a file {name!r}, which is no plain file name")
    return name


def parse_base_url(url: str) -> str:
    """Return `http://host:8000` for `url`, which may also be an address of the API. Raises `InvalidArgument` for other
    texts."""
    try:
        parts = urlsplit(url.strip())
    except ValueError as error:
        raise InvalidArgument(f"{url!r} is not an address: {error}; write it as http://127.0.0.1:8000") from error
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidArgument(f"{url!r} is not the address of an installation; write it as http://127.0.0.1:8000")
    path = parts.path.partition(PREFIX.rstrip("/"))[0].rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"
