"""Put a failed or cancelled run back into the queue."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.api.runs import RunSerializer
from evalapp.common.errors import NotThere
from evalapp.common.models import Run
from evalapp.common.queue import retry_run


class Command(commands.Command):
    help = "Put a failed or cancelled run back into the queue."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number", type=int)

    def work(self, *, number: int, **_: Any) -> dict[str, Any]:
        run = Run.objects.select_related("project").filter(pk=number).first()
        if run is None:
            raise NotThere(f"There is no run {number}. See: manage.py runs")
        return dict(RunSerializer(retry_run(run=run)).data)

    def show(self, result: dict[str, Any]) -> None:
        self.stdout.write(f"Run {result['id']} waits in the queue again.")
