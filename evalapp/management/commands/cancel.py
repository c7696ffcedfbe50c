"""`evalapp cancel NUMBER`: cancel a background run."""

from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.api.runs import RunSerializer
from evalapp.common.queue import cancel_run


class Command(commands.Command):
    help = "Cancel a background run: a waiting one ends at once, a running one within seconds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number", type=int)

    def work(self, *, number: int, **_: Any) -> dict[str, Any]:
        return dict(RunSerializer(cancel_run(run=commands.find_run(number))).data)

    def show(self, result: dict[str, Any]) -> None:
        state = "is cancelled" if result["state"] == "cancelled" else "is being cancelled"
        self.stdout.write(f"Run {result['id']} {state}.")
