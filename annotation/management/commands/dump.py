"""Export a project as an interchange folder."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.exporters.formats import FORMATS
from annotation.pipelines.exports import write_folder
from evalapp.common import commands
from evalapp.common.errors import Conflict


class Command(commands.Command):
    help = "Export a project as an interchange folder; `load` of it gives an equal project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="Short name of the project")
        parser.add_argument("folder", type=Path, help="Folder to write; it must be empty or not exist")
        parser.add_argument("--format", choices=FORMATS, default="jsonl")

    def work(self, *, slug: str, folder: Path, format: str, **_: Any) -> dict[str, Any]:
        project = commands.find_project(slug)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Conflict(f"{folder} is not empty. Name a new folder, so that old and new files do not mix.")
        folder.mkdir(parents=True, exist_ok=True)
        shown = 0

        def tick(done: int) -> None:
            nonlocal shown
            if done - shown >= 100_000:
                shown = done
                self.say(f"{done:,} rows written")

        files = write_folder(project, folder, format, tick)
        return {"project": slug, "folder": str(folder), "format": format, "files": files}

    def show(self, result: dict[str, Any]) -> None:
        for file in result["files"]:
            self.stdout.write(f"{file['name']}: {file['rows']:,} rows, {file['bytes']:,} bytes")
        self.stdout.write(f"Written to {result['folder']}.")
