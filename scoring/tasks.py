"""Celery tasks of this room: answer one online request. One call."""

from __future__ import annotations

from evalapp.celery import app

from .live.asking import TASK


# Not given to another worker when this one dies: whoever asked has long stopped waiting.
@app.task(name=TASK, acks_late=False)
def live(number: str) -> bool:
    from .live.answering import answer

    return answer(number)
