"""Rebuild the search indexes of a project's corpora, embedded or in Elasticsearch."""

from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.errors import BadInput, EvalappError
from evalapp.common.models import Run
from evalapp.common.run_commands import RunCommand

from ...models import Corpus
from ...pipelines.index import update_index
from ...pipelines.work import CommandWork
from ...selectors.corpora import get_corpus, list_corpora
from ...services.corpora import start_indexing


class Command(RunCommand):
    help = "Rebuild the search index of every corpus that a project can use; `-` for SLUG: of the shared ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--corpus", default="", metavar="NAME", help="only this corpus")
        self.add_run_arguments(parser)

    def work(self, *, slug: str, corpus: str, **options: Any) -> dict[str, Any]:
        project = None if slug == "-" else commands.find_project(slug)
        if corpus:
            rows = [get_corpus(project, corpus)]
        elif project is not None:
            rows = list(list_corpora(project).filter(revision__gt=0))
        else:
            rows = list(Corpus.objects.filter(project=None, revision__gt=0).select_related("home", "run"))
        if not rows:
            raise BadInput("There is no corpus with pairs to index. Create one: evalapp corpus add NAME FILE")
        results = []
        for row in rows:
            if project is None:
                results.append(update_index(row, CommandWork(self.say), again=True))
                continue
            run = start_indexing(corpus=row, user=None, through=project, send=not options["here"])
            assert run is not None  # there is a project
            self.indexed = row.name
            results.append({"corpus": row.name, **self.follow(run, options)})
        return {"corpora": results}

    def explain_failure(self, run: Run) -> EvalappError:
        return EvalappError(f"{self.indexed}: {run.error or 'the run was cancelled'}")

    def show(self, result: dict[str, Any]) -> None:
        for row in result["corpora"]:
            if row.get("state") in Run.ACTIVE:
                self.stdout.write(f"{row['corpus']}: run {row['run']} is {row['state']}")
            else:
                self.stdout.write(f"{row['corpus']}: {row['pairs']:,} pairs are indexed")
