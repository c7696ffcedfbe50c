"""`evalapp run NUMBER`: show a run with its progress, log and result, or follow it."""

import json
from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.api.runs import RunDetailSerializer
from evalapp.common.models import Run
from evalapp.common.run_lines import as_line, follow_run
from evalapp.common.selectors import log_tail


class Command(commands.Command):
    help = "Show a background run. With --follow, report until it ends; exit status 1 unless it succeeds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number", type=int)
        parser.add_argument("--follow", action="store_true", help="Report until the run ends")

    def work(self, *, number: int, follow: bool, **_: Any) -> dict[str, Any]:
        run = commands.find_run(number)
        if follow:
            run = follow_run(run, self.say)
        self.run_row = run
        failed = follow and run.state != Run.State.SUCCEEDED
        return {**RunDetailSerializer(run).data, **({"exit": 1} if failed else {})}

    def show(self, result: dict[str, Any]) -> None:
        run = self.run_row
        self.stdout.write(as_line(run))
        for fault in run.faults[:50]:
            place = ":".join(str(fault[key]) for key in ("file", "line") if fault.get(key))
            self.stdout.write(f"  {place}: {fault['message']}" if place else f"  {fault['message']}")
        if run.result:
            self.stdout.write(json.dumps(run.result, indent=2, ensure_ascii=False, default=str))
        for line in log_tail(run):
            self.stdout.write(f"  {line.at:%H:%M:%S}  {line.text}")
