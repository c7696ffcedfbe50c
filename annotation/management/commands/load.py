"""Import an interchange folder in this process, without worker or queue."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.models import Upload
from annotation.parsers import KEPT_FAULTS
from annotation.services.uploads import Incoming, receive_upload
from evalapp.accounts.models import Project, User
from evalapp.accounts.services.projects import create_project
from evalapp.common import commands
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.runner import execute_run


class Command(commands.Command):
    help = "Import an interchange folder. Everything is checked first; if a row is faulty, nothing is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="Folder with items.jsonl, outputs.csv, ratings.tsv.gz, ...")
        parser.add_argument("--project", required=True, metavar="SLUG", help="Short name; created if it does not exist")
        parser.add_argument("--owner", metavar="NAME", help="User who owns the project if it is created")
        parser.add_argument("--dry-run", action="store_true", help="Check and report only")
        parser.add_argument("--replace", action="store_true", help="Replace stored rows that have the same key")
        parser.add_argument(
            "--system-kind",
            action="append",
            default=[],
            metavar="NAME=KIND",
            help="machine, human, reference or control; can be given several times",
        )

    def work(
        self,
        *,
        folder: Path,
        project: str,
        owner: str | None,
        dry_run: bool,
        replace: bool,
        system_kind: list[str],
        **_: Any,
    ) -> dict[str, Any]:
        user = commands.find_user(owner) if owner else None
        files = _files(folder)
        kinds = _kinds(system_kind)
        target = Project.objects.filter(slug=project).first()
        is_new = target is None
        if target is None:
            target = self._make(project, user)
        upload = None
        try:
            upload = receive_upload(
                project=target, user=user, files=files, dry_run=dry_run, replace=replace, system_kinds=kinds, send=False
            )
            assert upload.run is not None
            execute_run(upload.run.pk, echo=self.say)
            return _report(upload, target)
        finally:
            if is_new and (upload is None or upload.state != Upload.State.DONE):
                # The project was created for this import only.
                target.delete()

    def _make(self, slug: str, user: User | None) -> Project:
        if user is None:
            people = list(User.objects.filter(is_superuser=True, is_active=True)[:2])
            user = people[0] if len(people) == 1 else None
        if user is None:
            self.say("The project has no owner, so only administrators can see it. Set one with --owner.")
        return create_project(slug=slug, owner=user)

    def show(self, result: dict[str, Any]) -> None:
        for table, counts in result["counts"].items():
            figures = ", ".join(
                f"{counts[name]:,} {word}"
                for name, word in (
                    ("added", "added"), ("same", "unchanged"), ("replaced", "replaced"), ("faulty", "faulty"),
                )
                if counts[name]
            )  # fmt: skip
            self.stdout.write(f"{table}: {counts['rows']:,} rows ({figures or 'nothing to do'})")
        for name in result["ignored"]:
            self.stdout.write(f"ignored: {name}")
        for hint in result["hints"]:
            self.stderr.write(f"hint: {hint}")
        for fault in result["faults"]:
            place = ":".join(str(part) for part in (fault.get("file"), fault.get("line")) if part)
            self.stderr.write(f"{place}: {fault['message']}" if place else fault["message"])
        if len(result["faults"]) >= KEPT_FAULTS:
            self.stderr.write(f"Only the first faults are shown; {result['fault_count']:,} rows have faults.")
        self.stdout.write(result["summary"])


def _files(folder: Path) -> list[Incoming]:
    if not folder.is_dir():
        raise commands.WrongUsage(f"{folder} is not a folder.")
    paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not paths:
        raise BadInput(f"{folder} is empty. It needs dataset.json, items.jsonl, outputs.jsonl and so on.")
    for path in paths:
        path.open("rb").close()  # fails before anything is created
    return [Incoming(path.name, path=path) for path in paths]


def _kinds(pairs: list[str]) -> dict[str, str]:
    kinds = {}
    for pair in pairs:
        name, separator, kind = pair.rpartition("=")
        if not separator or not name:
            raise commands.WrongUsage(f"--system-kind {pair!r}: write NAME=KIND.")
        kinds[name] = kind
    return kinds


def _report(upload: Upload, project: Project) -> dict[str, Any]:
    upload.refresh_from_db()
    run = Run.objects.get(pk=upload.run_id)
    done = run.state == Run.State.SUCCEEDED
    faults = [
        {"file": fault.file, "line": fault.line, "field": fault.field, "message": fault.message}
        for fault in upload.faults.all()
    ]
    summary = run.error
    if done:
        changed = sum(counts["added"] + counts["replaced"] for counts in upload.counts.values())
        summary = (
            "Checked; nothing was stored (dry run)."
            if upload.state == Upload.State.CHECKED
            else f"Stored in {project.slug}."
            if changed
            else f"Nothing to do: all rows are already stored in {project.slug}."
        )
    return {
        "project": project.slug, "upload": upload.pk, "state": upload.state, "counts": upload.counts,
        "ignored": upload.ignored,
        "hints": upload.options.get("hints", []),
        "fault_count": upload.fault_count, "faults": faults, "summary": summary,
        "exit": 0 if done else 1,
    }  # fmt: skip
