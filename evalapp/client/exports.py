"""Exports: a project as interchange files in a folder, or as DataFrames."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalapp.client.addresses import check_file_name, quote_segment
from evalapp.client.errors import ClientError, InvalidArgument, expecting
from evalapp.client.progress import Callback, OnProgress, Progress, make_callback
from evalapp.client.resources import Resource
from evalapp.client.rows import need_pandas, to_frame
from evalapp.client.runs import Run
from evalapp.client.uploads import is_table

if TYPE_CHECKING:
    import pandas

#: Folders within folders in an export.
MAX_DEPTH = 3


@dataclass(repr=False)
class Export(Resource):
    """An export, as it was when last requested; `files` are known once it has succeeded."""

    _noun, _folder = "an export", "exports"

    format: str = ""
    state: str = ""
    files: tuple[dict[str, Any], ...] = ()
    error: str = ""

    def _read(self, row: Mapping[str, Any]) -> None:
        self.format, self.state = str(row["format"]), str(row["state"])
        self.files, self.error = tuple(row.get("files") or ()), str(row.get("error") or "")

    def _describe(self) -> dict[str, Any]:
        return {
            "format": self.format, "state": self.state, "files": len(self.files) or "",
            "bytes": sum(file.get("bytes") or 0 for file in self.files) or "", "error": self.error,
        }  # fmt: skip

    @property
    def run(self) -> Run:
        """The run that writes the export; each access requests it."""
        return Run.from_wire(self._session, self._session.get(f"runs/{self.id}/"))

    def wait(self, *, progress: OnProgress | None = None, timeout: float | None = None) -> Export:
        """Wait until the files are written; return the export. `progress`, `timeout` and errors: see `Run.wait`."""
        Run(self._session, self.id, title=f"export as {self.format}").wait(progress=progress, timeout=timeout)
        return self.refresh()

    def download(self, folder: str | Path, *, progress: OnProgress | None = None) -> list[Path]:
        """Write the files into `folder`, which is created if necessary, and return their paths. Waits for the export
        first. Files appear when complete and replace files of the same names. `progress` gets the bytes of each file.

        Raises `InvalidArgument`, before anything is written, if the folder has tables of another export, because both
        would be read together.
        """
        if self.state != "succeeded":
            self.wait(progress=progress)
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        with expecting("the files of an export"):
            names = {str(entry["name"]) for entry in self.files}
        others = sorted(path.name for path in target.iterdir() if is_table(path.name) and path.name not in names)
        if others:
            raise InvalidArgument(
                f"{target} holds {', '.join(others)}, not of this export: name another folder to keep tables apart"
            )
        report = make_callback(progress)
        return [self._download_file(entry, target, report) for entry in self.files]

    def delete(self) -> None:
        """Delete the files on the server. Raises `Conflict` while they are written."""
        self._session.call("DELETE", self._path)

    def _download_file(self, entry: Mapping[str, Any], target: Path, report: Callback | None) -> Path:
        with expecting("a file of an export"):
            name, size = check_file_name(str(entry["name"]), depth=MAX_DEPTH), entry.get("bytes")

        def meter(done: int, total: int | None) -> None:
            if report is not None:
                report(Progress(f"downloading {name}", done, total, "bytes"))

        path = f"exports/{self.id}/files/{'/'.join(map(quote_segment, name.split('/')))}"
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        self._session.download(path, target / name, size=size if isinstance(size, int) else None, meter=meter)
        return target / name

    def push_to_hub(
        self, name: str, *, private: bool = True, message: str = "", progress: OnProgress | None = None
    ) -> str:
        """Send the files to the Hugging Face hub as the dataset `name` ("organisation/dataset"); return its address.
        `private`, `message` and errors: see `evalapp.client.hub.push_dataset`; `progress`: see `download`.

            project.export("parquet").push_to_hub("my-lab/weekend")
        """
        from evalapp.client.hub import push_dataset

        with tempfile.TemporaryDirectory(prefix="evalapp-export-") as folder:
            self.download(folder, progress=progress)
            return push_dataset(folder, name, private=private, message=message)

    def to_pandas(self, *, progress: OnProgress | None = None) -> dict[str, pandas.DataFrame]:
        """Return table name (`items`, `outputs`, `ratings`, ...) -> DataFrame, for all tables with rows. Types are
        those of the file. `progress`: see `download`. Raises `MissingPackage` without pandas.

            ratings = project.export().to_pandas()["ratings"]
        """
        need_pandas("to_pandas()")
        if self.format not in ("jsonl", "parquet"):
            raise ClientError(
                f"an export as {self.format} is for other programs; DataFrames come from jsonl or parquet"
            )
        with tempfile.TemporaryDirectory(prefix="evalapp-export-") as folder:
            files = self.download(folder, progress=progress)
            return {path.stem: _read_table(path) for path in files if path.suffix in (".jsonl", ".parquet")}


def _read_table(path: Path) -> pandas.DataFrame:
    if path.suffix == ".parquet":
        frame: pandas.DataFrame = need_pandas("to_pandas()").read_parquet(path)
        return frame
    with path.open(encoding="utf-8") as file:
        return to_frame([json.loads(line) for line in file if line.strip()])
