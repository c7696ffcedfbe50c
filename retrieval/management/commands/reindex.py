"""Rebuild the search indexes of a project's corpora, embedded or in Elasticsearch."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.errors import BadInput, EvalappError
from evalapp.common.models import Run
from evalapp.common.run_lines import follow_run
from evalapp.common.runner import execute_run

from ...models import Corpus
from ...pipelines.index import update_index
from ...pipelines.work import CommandWork
from ...selectors.corpora import get_corpus, list_corpora
from ...services.corpora import start_indexing


class Command(commands.Command):
    help = "Rebuild the search index of every corpus that a project can use; `-` for SLUG: of the shared ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--corpus", default="", metavar="NAME", help="only this corpus")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--detach", action="store_true", help="return at once; the runs go on in a worker")
        where.add_argument("--here", action="store_true", help="work in this process, without worker or queue")

    def work(self, *, slug: str, corpus: str, **options: Any) -> dict[str, Any]:
        project = None if slug == "-" else commands.find_project(slug)
        if corpus:
            rows = [get_corpus(project, corpus)]
        elif project is not None:
            rows = list(list_corpora(project).filter(revision__gt=0))
        else:
            rows = list(Corpus.objects.filter(project=None, revision__gt=0).select_related("home", "run"))
        if not rows:
            raise BadInput("There is no corpus with pairs to index. Create one: manage.py corpus add NAME FILE")
        results = []
        for row in rows:
            if project is None:
                results.append(update_index(row, CommandWork(self.say), again=True))
                continue
            run = start_indexing(corpus=row, user=None, through=project, send=not options["here"])
            assert run is not None  # there is a project
            results.append(self._see_through(run, row, options))
        return {"corpora": results}

    def _see_through(self, run: Run, corpus: Corpus, options: dict[str, Any]) -> dict[str, Any]:
        if options["here"]:
            run = execute_run(run.pk, echo=self.say if options["verbosity"] else None) or follow_run(run, self.say)
        elif not options["detach"]:
            run = follow_run(run, self.say)
        if run.state in (Run.State.FAILED, Run.State.CANCELLED):
            raise EvalappError(f"{corpus.name}: {run.error or 'the run was cancelled'}")
        return {"run": run.pk, "state": str(run.state), "corpus": corpus.name, **(run.result or {})}

    def show(self, result: dict[str, Any]) -> None:
        for row in result["corpora"]:
            if row.get("state") in Run.ACTIVE:
                self.stdout.write(f"{row['corpus']}: run {row['run']} is {row['state']}")
            else:
                self.stdout.write(f"{row['corpus']}: {row['pairs']:,} pairs are indexed")
