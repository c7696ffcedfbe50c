"""Cancel a background run: a waiting one ends at once, a running one within seconds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.api.runs import RunSerializer
from evalapp.common.errors import NotThere
from evalapp.common.models import Run
from evalapp.common.queue import cancel_run


class Command(commands.Command):
    help = "Cancel a background run: a waiting one ends at once, a running one within seconds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number", type=int)

    def work(self, *, number: int, **_: Any) -> dict[str, Any]:
        run = Run.objects.select_related("project").filter(pk=number).first()
        if run is None:
            raise NotThere(f"There is no run {number}. See: manage.py runs")
        return dict(RunSerializer(cancel_run(run=run)).data)

    def show(self, result: dict[str, Any]) -> None:
        words = "is cancelled" if result["state"] == "cancelled" else "is asked to stop"
        self.stdout.write(f"Run {result['id']} {words}.")
