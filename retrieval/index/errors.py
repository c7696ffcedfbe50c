"""What can go wrong in an index: a damaged folder, a faulty corpus, a backend that cannot answer now."""

from __future__ import annotations

from pathlib import Path


class RetrievalError(Exception):
    """The root of the family."""


class IndexFormatError(RetrievalError):
    """A folder that is no index, is damaged, or is of another format version."""

    def __init__(self, path: str | Path, what: str) -> None:
        self.path, self.what = Path(path), what
        super().__init__(f"{path}: {what}")


class CorpusError(RetrievalError):
    """A row of a corpus that cannot be read; `line` counts from 1, 0 is the file as a whole. Nothing was changed."""

    def __init__(self, file: str, line: int, message: str) -> None:
        self.file, self.line, self.message = file, line, message
        super().__init__(f"{file}:{line}: {message}" if line else f"{file}: {message}")


class IndexUnavailable(RetrievalError):
    """The backend cannot answer now: down, rebuilding, unhealthy, or of a version that is not supported."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)
