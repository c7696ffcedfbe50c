"""Add a file or rows of a project to a retrieval corpus, list corpora, delete one."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.services.uploads import Incoming
from evalapp.accounts.models import Project
from evalapp.common import commands
from evalapp.common.errors import Conflict, EvalappError, Fault, NotThere
from evalapp.common.models import Run
from evalapp.common.run_commands import RunCommand

from ...models import Corpus
from ...pipelines.index import update_index
from ...pipelines.work import CommandWork
from ...selectors.corpora import describe_condition, get_corpus, list_corpora
from ...services.corpora import DERIVED, add_file, add_rows, create_corpus, delete_corpus


class Command(RunCommand):
    help = "Add to a retrieval corpus (created if it does not exist), list corpora, delete one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["add", "list", "delete"])
        parser.add_argument("name", nargs="?", default="", metavar="NAME")
        parser.add_argument(
            "file", nargs="?", type=Path, metavar="FILE", help="corpus.jsonl, .csv or .tsv, plain or gzip"
        )
        parser.add_argument(
            "--project", default="", metavar="SLUG", help="without it: shared by the whole installation"
        )
        parser.add_argument("--shared", action="store_true", help="shared; its runs belong to the project")
        parser.add_argument("--derive", default="", choices=list(DERIVED), help="instead of FILE: rows of the project")
        parser.add_argument("--language", default="", help="a code such as en or zh; default: the project's")
        parser.add_argument(
            "--tokenizer", default="", choices=Corpus.Tokenizer.values, help="default: depends on the language"
        )
        parser.add_argument("--licence", default="", help="shown with every candidate")
        parser.add_argument("--source", default="", help="where the pairs come from")
        self.add_run_arguments(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["project"]) if options["project"] else None
        arguments = {"list": (), "delete": ("name",), "add": ("name", "file")}[options["action"]]
        for name in ("name", "file"):
            if options[name] and name not in arguments:
                raise commands.WrongUsage(f"{options['action']} takes no {name.upper()}.")
        if options["action"] == "list":
            return {"corpora": [_row(corpus) for corpus in _listed(project)]}
        if not options["name"]:
            raise commands.WrongUsage("Name the corpus.")
        if options["action"] == "delete":
            corpus = get_corpus(project, options["name"])
            row = _row(corpus)
            delete_corpus(corpus=corpus, user=None)
            return {"deleted": row}
        return self._add(project, options)

    def _add(self, project: Project | None, options: dict[str, Any]) -> dict[str, Any]:
        file, kind = options["file"], options["derive"]
        if (file is None) == (not kind):
            raise commands.WrongUsage("Name a file, or use --derive.")
        if kind and project is None:
            raise commands.WrongUsage("--derive needs --project.")
        if file is not None and not file.is_file():
            raise commands.WrongUsage(f"{file} is not a readable file.")
        if file is not None:
            file.open("rb").close()  # fails before anything is created
        corpus, made = self._corpus(project, options)
        try:
            if file is not None:
                incoming = Incoming(file.name, path=file)
                part = add_file(corpus=corpus, user=None, file=incoming, through=project, send=not options["here"])
            else:
                assert project is not None
                part = add_rows(corpus=corpus, user=None, project=project, kind=kind, send=not options["here"])
            if corpus.run is None:  # without a project
                done = update_index(corpus, CommandWork(self.say), part=part.pk)
                return {"name": corpus.name, "made": made, "state": Run.State.SUCCEEDED.value, **done}
            return {"name": corpus.name, "made": made, **self.follow(corpus.run, options)}
        except EvalappError:
            if made and not Corpus.objects.get(pk=corpus.pk).revision and not corpus.parts.filter(state="waiting"):
                delete_corpus(corpus=corpus, user=None)
            raise

    def _corpus(self, project: Project | None, options: dict[str, Any]) -> tuple[Corpus, bool]:
        facts = {name: options[name] for name in ("language", "tokenizer", "licence", "source")}
        try:
            corpus = get_corpus(None if options["shared"] else project, options["name"])
        except NotThere:
            shared = options["shared"] or project is None
            return create_corpus(project=project, user=None, name=options["name"], shared=shared, **facts), True
        for name, given in facts.items():
            current = getattr(corpus, name)
            if given.strip() not in ("", current):
                text = f"“{corpus.name}” was created with the {name} “{current}”, which cannot change. "
                raise Conflict(text + f"Leave --{name} out, or create another corpus.")
        return corpus, False

    def explain_failure(self, run: Run) -> EvalappError:
        error = super().explain_failure(run)
        error.faults = [Fault(**row) for row in run.faults]
        return error

    def show(self, result: dict[str, Any]) -> None:
        if "corpora" in result:
            for row in result["corpora"]:
                place = row["project"] or "shared"
                self.stdout.write(f"{row['name']:<24} {place:<16} {row['count']:>12,}  {row['condition']}")
            if not result["corpora"]:
                self.stdout.write("No corpus yet. Create one: evalapp corpus add NAME FILE --project SLUG")
        elif "deleted" in result:
            self.stdout.write(f"{result['deleted']['name']} is deleted.")
        else:
            super().show(result)

    def show_result(self, result: dict[str, Any]) -> None:
        new = "" if result.get("added") is None else f", {result['added']:,} new"
        read = f"{result['name']}: {result['read']:,} pairs read{new}"
        self.stdout.write(f"{read}; {result['pairs']:,} different pairs are indexed.")


def _listed(project: Project | None) -> list[Corpus]:
    if project is not None:
        return list(list_corpora(project))
    return list(Corpus.objects.select_related("project", "run").order_by("name", "pk"))


def _row(corpus: Corpus) -> dict[str, Any]:
    return {
        "name": corpus.name,
        "project": corpus.project.slug if corpus.project else None,
        "language": corpus.language,
        "tokenizer": corpus.tokenizer,
        "state": str(corpus.state),
        "condition": describe_condition(corpus),
        "count": corpus.count,
        "bytes": corpus.bytes,
        "licence": corpus.licence,
        "source": corpus.source,
    }
