"""`evalapp retry NUMBER`: return a failed or cancelled run to the queue."""

from argparse import ArgumentParser
from typing import Any

from evalapp.common import commands
from evalapp.common.api.runs import RunSerializer
from evalapp.common.queue import retry_run


class Command(commands.Command):
    help = "Return a failed or cancelled run to the queue."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number", type=int)

    def work(self, *, number: int, **_: Any) -> dict[str, Any]:
        return dict(RunSerializer(retry_run(run=commands.find_run(number))).data)

    def show(self, result: dict[str, Any]) -> None:
        self.stdout.write(f"Run {result['id']} is in the queue again.")
