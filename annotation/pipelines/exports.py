"""Writes a project as an interchange folder: into the exports folder with an archive for download, or anywhere for the
command `dump`."""

import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from annotation.exporters import campaigns, canonical, traces, writing
from annotation.exporters.aggregated import Aggregator
from annotation.exporters.card import write_card
from annotation.exporters.datasheet import write_datasheet
from annotation.exporters.facts import Facts
from annotation.exporters.formats import Writer, writer
from annotation.exporters.layouts import LAYOUTS, get_layout, group_by_item
from annotation.exporters.layouts.readme import write_readme
from annotation.exporters.options import ExportOptions
from annotation.exporters.people import naming
from annotation.parsers import encode_document
from annotation.selectors.data import count_rows
from annotation.services import hooks
from annotation.services.exports import get_draft_folder, get_export_folder, remove_drafts, sweep_temporary_exports
from evalapp.accounts.models import Project
from evalapp.common.params import read_params
from evalapp.common.runner import RunContext
from evalapp.side_figures import collect_failures

Tick = Callable[[int], None]
#: Tables of judgements by individual raters, and those that depend on them.
_PER_RATER = frozenset({"ratings", "comparisons", "filters"})


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `export`. A second attempt starts over. Each attempt writes its own folder, which becomes the export at
    the end, so that a worker that was believed dead cannot damage its successor's files."""
    options = read_params(ExportOptions, params)
    remove_drafts(context.run.pk)
    sweep_temporary_exports()
    folder = get_draft_folder(context.run)
    folder.mkdir(parents=True)
    total = count_rows(context.project)

    def prepare(done: int, of: int) -> None:
        context.progress(done, of, "tables", "Computing tables")

    def tick(done: int) -> None:
        context.progress(done, max(total, done), "rows", "Writing")

    try:
        with collect_failures() as failed:
            files = write_export(context.project, folder, options, tick, prepare)
        archive = folder / f"{context.project.slug}-{options.format}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            for file in files:
                context.check()
                zipped.write(folder / file["name"], f"{context.project.slug}/{file['name']}")
        size = archive.stat().st_size
        context.make_sure()
        shutil.rmtree(get_export_folder(context.run), ignore_errors=True)
        folder.rename(get_export_folder(context.run))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    url = f"/projects/{context.project.slug}/exports/"
    return {
        **options.as_dict(),
        "files": files,
        "archive": archive.name,
        "bytes": size,
        "url": url,
        **({"failed": failed} if failed else {}),
    }


def write_export(
    project: Project,
    folder: Path,
    options: ExportOptions,
    tick: Tick,
    prepare: Callable[[int, int], None] = lambda done, of: None,
) -> list[dict[str, Any]]:
    """Write everything that the options ask for. Returns name, rows and bytes of each file, dataset.json first."""
    if options.format in LAYOUTS:
        return _write_layout(project, folder, options, tick)
    if options.scores:
        hooks.prepare_export(project=project, tick=prepare)
    facts = Facts()
    documents: dict[str, str] = {}
    with canonical.one_moment():
        called = naming(project, options.raters)
        head = canonical.make_dataset_document(Project.objects.get(pk=project.pk))
        documents["dataset.json"] = encode_document(head)
        files = _write_tables(folder, options.format, _rows(project, options, called, facts), tick)
        if options.scores and options.per_rater:
            for name, document in hooks.make_exported_documents(project=project, raters=called).items():
                documents[name] = encode_document(document)
    documents["README.md"] = ""  # its position in the list of files
    documents["DATASHEET.md"] = write_datasheet(head, facts, options)
    # Last, because it lists what could not be computed.
    documents["README.md"] = write_card(head, facts, options, [file["name"] for file in files])
    written = [_write_document(folder, name, text) for name, text in documents.items()]
    return [written[0], *files, *written[1:]]


def _write_layout(project: Project, folder: Path, options: ExportOptions, tick: Tick) -> list[dict[str, Any]]:
    """Write the files of another program, and README.md with what they hold. Returns them, README.md last."""
    kind = get_layout(options.format)
    with canonical.one_moment():
        project = Project.objects.get(pk=project.pk)
        plan = canonical.make_plan(project)
        parts: list[Iterable[tuple[str, dict[str, Any]]]] = [canonical.rows(project, naming(project, options.raters))]
        if kind.has_scores:
            parts.append(hooks.read_exported_rows(project=project))
        layout = kind(folder, plan)
        try:
            for done, _ in enumerate(group_by_item(_chained(*parts), layout), 1):
                if done % 1000 == 0:
                    tick(done)
            layout.close()
        except BaseException:
            layout.abort()
            raise
    files = {**layout.files, "README.md": 0}
    (folder / "README.md").write_text(write_readme(plan, layout), encoding="utf-8", newline="\n")
    return [{"name": name, "rows": rows, "bytes": (folder / name).stat().st_size} for name, rows in files.items()]


def _rows(
    project: Project, options: ExportOptions, called: Callable[[str], str], facts: Facts
) -> Iterator[tuple[str, dict[str, Any]]]:
    aggregator = Aggregator()
    parts: Iterable[tuple[str, dict[str, Any]]] = _chained(
        canonical.rows(project, called), campaigns.rows(project, called)
    )
    for table, row in parts:
        if not options.attributes:
            row = writing.remove_times(table, row)
        facts.take(table, row)
        if options.aggregated:
            yield from _seen(aggregator.take(table, row), facts)
        if options.per_rater or table not in _PER_RATER:
            yield table, row
    yield from _seen(aggregator.rest(), facts)
    if options.scores:
        yield from _seen(hooks.read_exported_rows(project=project), facts)
    if options.answers:
        yield from _seen(hooks.read_exported_answers(project=project), facts)
    if options.judgements:
        yield from _seen(traces.judgements(project, individual=options.attributes), facts)
    if options.attributes:
        yield from _seen(traces.raters(project, called), facts)
    if options.audit:
        yield from _seen(traces.audit(project), facts)


def _seen(rows: Iterable[tuple[str, dict[str, Any]]], facts: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    for table, row in rows:
        facts.take(table, row)
        yield table, row


def _chained(*parts: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in parts:
        yield from part


def write_folder(project: Project, folder: Path, format: str, tick: Tick) -> list[dict[str, Any]]:
    """Write `dataset.json` and the tables of uploaded and judged data only."""
    with canonical.one_moment():
        head = encode_document(canonical.make_dataset_document(Project.objects.get(pk=project.pk)))
        files = _write_tables(folder, format, canonical.rows(project), tick)
    return [_write_document(folder, "dataset.json", head), *files]


def _write_tables(
    folder: Path, format: str, rows: Iterable[tuple[str, dict[str, Any]]], tick: Tick
) -> list[dict[str, Any]]:
    writers: dict[str, Writer] = {}
    done = 0
    try:
        for table, row in rows:
            if table not in writers:
                writers[table] = writer(format, folder, table)
            writers[table].write(row)
            done += 1
            if done % 1000 == 0:
                tick(done)
    finally:
        for made in writers.values():
            made.close()
    tick(done)
    return [
        {"name": made.path.name, "rows": made.rows, "bytes": made.path.stat().st_size}
        for _, made in sorted(writers.items())
    ]


def _write_document(folder: Path, name: str, text: str) -> dict[str, Any]:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="\n")
    return {"name": name, "rows": int(name == "dataset.json"), "bytes": path.stat().st_size}
