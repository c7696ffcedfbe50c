"""Parsers of request bodies."""

from __future__ import annotations

import hashlib
from typing import IO, Any

from rest_framework import parsers
from rest_framework.exceptions import ParseError


class JSONParser(parsers.JSONParser):
    """Refuses JSON that is nested more deeply than Python's recursion limit."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error


class HashedStream:
    """A request body that the view reads directly; on request it is hashed at the same time."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest: Any = None

    def start_hash(self) -> HashedStream:
        self._digest = hashlib.sha256()
        return self

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size)
        if self._digest is not None:
            self._digest.update(chunk)
        return chunk

    def finish_hash(self) -> str:
        """Read to the end and return the hash of everything."""
        while self.read(1 << 16):
            pass
        return str(self._digest.hexdigest())
