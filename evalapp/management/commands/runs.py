"""`evalapp runs [PROJECT]`: list background runs."""

from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.api.runs import RunSerializer
from evalapp.common.models import Run
from evalapp.common.queue import live_workers
from evalapp.common.run_lines import as_line


class Command(commands.Command):
    help = "List background runs, newest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", nargs="?", default="", help="Short name of a project; default: all projects")
        parser.add_argument("--active", action="store_true", help="Only waiting and running ones")
        parser.add_argument("--limit", type=int, default=20, help="Maximum number of runs (20)")

    def work(self, *, project: str, active: bool, limit: int, **_: Any) -> dict[str, Any]:
        runs = Run.objects.select_related("project", "created_by").order_by("-pk")
        if project:
            runs = runs.filter(project=commands.find_project(project))
        if active:
            runs = runs.filter(state__in=Run.ACTIVE)
        workers = [{"name": beat.name, "queues": beat.queues, "at": beat.at} for beat in live_workers()]
        self.rows = list(runs[: max(1, limit)])
        return {"runs": RunSerializer(self.rows, many=True).data, "workers": workers}

    def show(self, result: dict[str, Any]) -> None:
        for run in self.rows:
            self.stdout.write(f"{run.project.slug}  {as_line(run)}")
        if not self.rows:
            self.stdout.write("No runs.")
        if not result["workers"] and any(run.is_active for run in self.rows):
            self.stdout.write("No worker is running: start one with evalapp up, or celery -A evalapp worker.")
