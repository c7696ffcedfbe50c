"""Errors of an index: a damaged folder, an invalid corpus, an unavailable backend."""

from pathlib import Path


class RetrievalError(Exception):
    """Base class of the errors of this package."""


class IndexFormatError(RetrievalError):
    """Raised for a folder that is not an index, is damaged, or has another format version."""

    def __init__(self, path: str | Path, what: str) -> None:
        self.path, self.what = Path(path), what
        super().__init__(f"{path}: {what}")


class CorpusError(RetrievalError):
    """Raised for an unreadable row of a corpus; `line` counts from 1, 0 is the whole file. The index is unchanged."""

    def __init__(self, file: str, line: int, message: str) -> None:
        self.file, self.line, self.message = file, line, message
        super().__init__(f"{file}:{line}: {message}" if line else f"{file}: {message}")


class IndexUnavailable(RetrievalError):
    """Raised if the backend cannot answer now: down, rebuilding, unhealthy, or an unsupported version."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)
