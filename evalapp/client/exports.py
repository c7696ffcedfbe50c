"""Exports: a project as interchange files in a folder, or as DataFrames."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalapp.client.errors import ClientError, InvalidArgument, expecting
from evalapp.client.rows import need_pandas, to_frame
from evalapp.client.runs import OnProgress, Progress, Run
from evalapp.client.session import Session, plain_name, segment
from evalapp.client.uploads import is_table

if TYPE_CHECKING:
    import pandas


@dataclass
class Export:
    """An export as it was when last asked for; `files` are known once it has succeeded."""

    _session: Session = field(repr=False, compare=False)
    id: int
    format: str = ""
    state: str = ""
    files: tuple[dict[str, Any], ...] = ()
    error: str = ""

    @classmethod
    @expecting("an export")
    def from_wire(cls, session: Session, row: Mapping[str, Any]) -> Export:
        export = cls(session, int(row["id"]))
        export._take(row)
        return export

    @expecting("an export")
    def _take(self, row: Mapping[str, Any]) -> None:
        self.format, self.state = str(row["format"]), str(row["state"])
        self.files, self.error = tuple(row.get("files") or ()), str(row.get("error") or "")

    def refresh(self) -> Export:
        self._take(self._session.get(f"exports/{self.id}/"))
        return self

    @property
    def run(self) -> Run:
        """The run that writes it, asked for anew."""
        return Run.from_wire(self._session, self._session.get(f"runs/{self.id}/"))

    def wait(self, *, progress: OnProgress | None = None, timeout: float | None = None) -> Export:
        """Wait until the files are there. Raises as `Run.wait` does."""
        Run(self._session, self.id, title=f"export as {self.format}").wait(progress=progress, timeout=timeout)
        return self.refresh()

    def download(self, folder: str | Path, *, progress: OnProgress | None = None) -> list[Path]:
        """Write the files into `folder`, which is made if need be; returns their paths. A file appears when it is
        whole; files of the same names are replaced. Waits for the export first if need be.

        Raises InvalidArgument, before anything is written, where the folder has tables that are not of this export:
        those of another format or project would be read together with it.
        """
        if self.state != "succeeded":
            self.wait(progress=progress)
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        with expecting("the files of an export"):
            mine = {str(entry["name"]) for entry in self.files}
        others = sorted(path.name for path in target.iterdir() if is_table(path.name) and path.name not in mine)
        if others:
            raise InvalidArgument(
                f"{target} holds {', '.join(others)}, not of this export: name another folder, lest tables mix"
            )
        return [self._fetch(entry, target, progress) for entry in self.files]

    def _fetch(self, entry: Mapping[str, Any], target: Path, progress: OnProgress | None) -> Path:
        with expecting("a file of an export"):
            name, size = plain_name(str(entry["name"])), entry.get("bytes")

        def meter(done: int, total: int | None) -> None:
            if progress is not None:
                progress(Progress(f"downloading {name}", done, total, "bytes"))

        path = f"exports/{self.id}/files/{segment(name)}"
        self._session.download(path, target / name, size=size if isinstance(size, int) else None, meter=meter)
        return target / name

    def to_pandas(self, *, progress: OnProgress | None = None) -> dict[str, pandas.DataFrame]:
        """One DataFrame for each table that has rows, by name: `items`, `outputs`, `ratings`, ... Values keep the
        types they have in the file; nothing is guessed. Raises MissingPackage without pandas."""
        need_pandas("to_pandas()")
        if self.format not in ("jsonl", "parquet"):
            raise ClientError(
                f"an export as {self.format} is for other programs; DataFrames come from jsonl or parquet"
            )
        with tempfile.TemporaryDirectory(prefix="evalapp-export-") as folder:
            files = self.download(folder, progress=progress)
            return {path.stem: _read(path) for path in files if path.suffix in (".jsonl", ".parquet")}


def _read(path: Path) -> pandas.DataFrame:
    if path.suffix == ".parquet":
        frame: pandas.DataFrame = need_pandas("to_pandas()").read_parquet(path)
        return frame
    with path.open(encoding="utf-8") as file:
        return to_frame([json.loads(line) for line in file if line.strip()])
