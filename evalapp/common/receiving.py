"""How the files of a request are received: into a temporary file, which goes at once where there is no room for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.core.files.uploadhandler import TemporaryFileUploadHandler


class UploadHandler(TemporaryFileUploadHandler):
    """Django leaves half a file to the garbage collector, which keeps a full disk full for who knows how long."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        with self._or_nothing():
            super().receive_data_chunk(raw_data, start)

    def file_complete(self, file_size: int) -> Any:
        with self._or_nothing():
            return super().file_complete(file_size)

    @contextlib.contextmanager
    def _or_nothing(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            with contextlib.suppress(OSError):  # closing writes what is still in memory, which fails once more
                self.upload_interrupted()
            raise
