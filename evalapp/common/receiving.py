"""Receive the files of a request into temporary files."""

import contextlib
from collections.abc import Iterator
from typing import Any

from django.core.files.uploadhandler import TemporaryFileUploadHandler


class UploadHandler(TemporaryFileUploadHandler):
    """Removes the temporary file at once if the disk is full. Django leaves it to the garbage collector."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        with self._cleanup():
            super().receive_data_chunk(raw_data, start)

    def file_complete(self, file_size: int) -> Any:
        with self._cleanup():
            return super().file_complete(file_size)

    @contextlib.contextmanager
    def _cleanup(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            with contextlib.suppress(OSError):  # closing flushes the buffer, which fails again
                self.upload_interrupted()
            raise
