"""Import an interchange folder, or tables by a mapping, in this process, without worker or queue."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.mapping import describe_proposal, open_table, preview_rows, propose_mapping
from annotation.mapping.aligned import list_folder
from annotation.models import Upload
from annotation.parsers import KEPT_FAULTS, Limits, StopReading, read_document
from annotation.services.uploads import Incoming, receive_upload
from evalapp.accounts.models import Project, User
from evalapp.accounts.services.projects import create_project
from evalapp.common import commands
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.runner import execute_run


class Command(commands.Command):
    help = (
        "Import an interchange folder, or a table of any layout by a mapping. Everything is checked first; if a row is "
        "faulty, nothing is stored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "folder",
            type=Path,
            help="Folder with items.jsonl, outputs.csv, ratings.tsv.gz, ...; or a table, with --map or --propose",
        )
        parser.add_argument("--project", metavar="SLUG", help="Short name; created if it does not exist")
        parser.add_argument("--map", type=Path, metavar="FILE", help="JSON file with the mapping of the columns")
        parser.add_argument(
            "--propose",
            action="store_true",
            help="Only print a mapping for the table; with --map write it to that file, which must not exist",
        )
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
        project: str | None,
        map: Path | None,
        propose: bool,
        owner: str | None,
        dry_run: bool,
        replace: bool,
        system_kind: list[str],
        **_: Any,
    ) -> dict[str, Any]:
        if propose:
            return _propose(folder, map)
        if not project:
            raise commands.WrongUsage("Name the project: --project SLUG.")
        user = commands.find_user(owner) if owner else None
        mapping = None if map is None else _read_map(map)
        files = _files(folder, is_mapped=mapping is not None)
        kinds = _kinds(system_kind)
        target = Project.objects.filter(slug=project).first()
        is_new = target is None
        if target is None:
            target = self._make(project, user)
        upload = None
        try:
            upload = receive_upload(
                project=target, user=user, files=files, dry_run=dry_run, replace=replace, system_kinds=kinds,
                mapping=mapping, send=False,
            )  # fmt: skip
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
        if "mapping" in result:
            self._show_proposal(result)
            return
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

    def _show_proposal(self, result: dict[str, Any]) -> None:
        """The mapping on stdout, so that it can be saved; everything else on stderr."""
        self.stdout.write(json.dumps(result["mapping"], ensure_ascii=False, indent=2))
        for reason in result["reasons"]:
            columns = ", ".join(reason["columns"])
            self.stderr.write(f"{reason['member']}{f' ({columns})' if columns else ''}: {reason['message']}")
        for one in result["left_out"]:
            example = f" ({one['example']})" if one["example"] else ""
            self.stderr.write(f"not imported: {one['column']}{example}: {one['message']}")
        for one in result["rows"]:
            self.stderr.write(f"row {one['row']}:")
            for row in one["converted"]:
                self.stderr.write(f"  {row['table']}: {json.dumps(row['values'], ensure_ascii=False)}")
            for fault in one["faults"]:
                self.stderr.write(f"  {fault['column']}: {fault['message']}")
        for question in result["questions"]:
            options = f" One of: {', '.join(question['options'])}." if question["options"] else ""
            self.stderr.write(f"? {question['member']}: {question['message']}{options}")
        if result["questions"]:
            self.stderr.write("Answer the questions in the mapping before you load the table.")


def _files(folder: Path, is_mapped: bool) -> list[Incoming]:
    if is_mapped and folder.is_file():
        return [Incoming(folder.name, path=folder)]
    if is_mapped and folder.is_dir():
        return [Incoming(file.name, path=folder / file.name) for file in list_folder(folder)]
    if not folder.is_dir():
        hint = " To import a table, add --map FILE; --propose prints a mapping." if folder.is_file() else ""
        raise commands.WrongUsage(f"{folder} is not a folder.{hint}")
    paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not paths:
        raise BadInput(f"{folder} is empty. It needs dataset.json, items.jsonl, outputs.jsonl and so on.")
    for path in paths:
        path.open("rb").close()  # fails before anything is created
    return [Incoming(path.name, path=path) for path in paths]


def _read_map(path: Path) -> dict[str, Any]:
    """The JSON object of a mapping file."""
    try:
        with path.open("rb") as raw:
            return read_document(raw, Limits())
    except StopReading as stop:
        raise BadInput(f"{path}: {stop.message}") from stop


def _propose(path: Path, target: Path | None) -> dict[str, Any]:
    """A proposed mapping with its reasons, and the first rows in both forms. The mapping is written to `target`."""
    if target is not None and target.exists():
        raise commands.WrongUsage(f"{target} exists already. Name another file for the mapping.")
    try:
        table = open_table(path)
        proposal = propose_mapping(table)
        rows = preview_rows(table, proposal.mapping)
    except StopReading as stop:
        raise BadInput(f"{path}{f':{stop.line}' if stop.line else ''}: {stop.message}") from stop
    result = describe_proposal(proposal, rows)
    if target is not None:
        draft = target.with_name(f"{target.name}.part")
        draft.write_text(json.dumps(result["mapping"], ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        draft.rename(target)
    return result


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
