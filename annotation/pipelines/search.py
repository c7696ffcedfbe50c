"""The job `search`: the text blocks of a large project, so that searching it need not read every row."""

from __future__ import annotations

from typing import Any

from annotation.services.texts import prepare_search
from evalapp.common.runner import RunContext


def run(context: RunContext) -> dict[str, Any]:
    """May run any number of times."""

    def tick(done: int, total: int) -> None:
        context.progress(done, total, "blocks", "Reading texts")

    return {"blocks": prepare_search(project=context.project, tick=tick)}
