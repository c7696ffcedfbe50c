"""Bodies of requests to the API."""

from __future__ import annotations

import hashlib
from typing import IO, Any

from rest_framework import parsers
from rest_framework.exceptions import ParseError


class JSONParser(parsers.JSONParser):
    """Refuses what is nested deeper than Python can follow, instead of failing at it."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error


class Passing:
    """A body that its reader takes straight from the wire; hashed meanwhile for who wants that."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest: Any = None

    def watched(self) -> Passing:
        self._digest = hashlib.sha256()
        return self

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size)
        if self._digest is not None:
            self._digest.update(chunk)
        return chunk

    def rest(self) -> str:
        """Read to the end; the hash of the whole."""
        while self.read(1 << 16):
            pass
        found: str = self._digest.hexdigest()
        return found
