"""The job `search`: builds the text blocks of a large project, so that a search need not read every row."""

from typing import Any

from annotation.services.texts import prepare_search
from evalapp.common.runner import RunContext


def run(context: RunContext) -> dict[str, Any]:
    """Idempotent."""

    def tick(done: int, total: int) -> None:
        context.progress(done, total, "blocks", "Reading texts")

    return {"blocks": prepare_search(project=context.project, tick=tick)}
