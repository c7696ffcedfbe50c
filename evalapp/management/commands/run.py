"""One run: how far, its log, its result; or follow it to its end."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.api.runs import RunDetailSerializer
from evalapp.common.errors import NotThere
from evalapp.common.models import Run
from evalapp.common.run_lines import as_line, follow_run
from evalapp.common.selectors import log_tail


class Command(commands.Command):
    help = "Show one background run. With --follow: until it ends; exit 1 if it failed or was cancelled."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number", type=int)
        parser.add_argument("--follow", action="store_true", help="Stay until it ends")

    def work(self, *, number: int, follow: bool, **_: Any) -> dict[str, Any]:
        run = Run.objects.select_related("project", "created_by").filter(pk=number).first()
        if run is None:
            raise NotThere(f"There is no run {number}. See: manage.py runs")
        if follow:
            run = follow_run(run, self.say)
        self.run_row = run
        unhappy = follow and run.state != Run.State.SUCCEEDED
        return {**RunDetailSerializer(run).data, **({"exit": 1} if unhappy else {})}

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
