"""Export a project as an interchange folder."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.exporters.options import ALL_FORMATS, LEVELS, ExportOptions
from annotation.exporters.people import NAMINGS
from annotation.pipelines.exports import write_export
from evalapp.client.errors import ClientError
from evalapp.client.hub import push_dataset
from evalapp.common import commands
from evalapp.common.drafts import whole_folder
from evalapp.common.errors import Conflict, EvalappError
from evalapp.hub_access import allow_access
from evalapp.side_figures import collect_failures, failure_sentence


class Command(commands.Command):
    help = "Export a project as an interchange folder. Importing it with `load` recreates the project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="Short name of the project")
        parser.add_argument("folder", type=Path, help="Folder to write; it must be empty or not exist")
        parser.add_argument("--format", choices=ALL_FORMATS, default="jsonl", help="of tables, or for another program")
        parser.add_argument(
            "--level", choices=LEVELS, default="per-rater", help="judgements by rater, aggregated by output, or both"
        )
        parser.add_argument("--no-scores", action="store_true", help="leave out scores and tables")
        parser.add_argument(
            "--raters", choices=NAMINGS, default="kept",
            help="kept: uploaded ids stay unless they identify a person; pseudonyms: for all raters",
        )  # fmt: skip
        parser.add_argument("--answers", action="store_true", help="raw answers of language models that judge")
        parser.add_argument(
            "--judgements", action="store_true", help="order, sides and selection probability of each judgement"
        )
        parser.add_argument(
            "--attributes", action="store_true", help="data about individual raters, who must have consented"
        )
        parser.add_argument("--audit", action="store_true", help="the audit log of the project")
        parser.add_argument(
            "--push", default="", metavar="ORGANISATION/DATASET",
            help="also send the folder to the Hugging Face hub; log in before with `hf auth login`, or set HF_TOKEN",
        )  # fmt: skip
        parser.add_argument("--public", action="store_true", help="with --push: a new dataset is public")

    def work(
        self, *, slug: str, folder: Path, format: str, level: str, no_scores: bool, raters: str, answers: bool,
        judgements: bool, attributes: bool, audit: bool, push: str, public: bool, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        project = commands.find_project(slug)
        options = ExportOptions(
            format, level, not no_scores, raters, answers=answers, judgements=judgements, attributes=attributes,
            audit=audit,
        )  # fmt: skip
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Conflict(f"{folder} is not empty. Choose a new folder, so that old and new files do not mix.")
        shown = 0

        def tick(done: int) -> None:
            nonlocal shown
            if done - shown >= 100_000:
                shown = done
                self.say(f"{done:,} rows written")

        try:
            with collect_failures() as failed, whole_folder(folder) as draft:
                files = write_export(project, draft, options, tick)
        except OSError as error:
            raise EvalappError(f"{folder} cannot be written: {error.strerror}. No files were left there.") from error
        result = {"project": slug, "folder": str(folder), **options.as_dict(), "files": files}
        if push:
            try:
                with allow_access():
                    result["url"] = push_dataset(folder, push, private=not public)
            except ClientError as error:
                raise EvalappError(f"{folder} is complete, but was not sent. {error}") from error
        return {**result, "failed": failed} if failed else result

    def show(self, result: dict[str, Any]) -> None:
        for file in result["files"]:
            self.stdout.write(f"{file['name']}: {file['rows']:,} rows, {file['bytes']:,} bytes")
        if sentence := failure_sentence(result.get("failed", ())):
            self.stdout.write(sentence)
        self.stdout.write(f"Written to {result['folder']}.")
        if result.get("url"):
            self.stdout.write(f"Sent to {result['url']}.")
