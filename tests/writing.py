"""Writing campaigns for tests, made through the services, with fake hooks: a text with the word “good” raises the
reliability of a set by 0.125, “bad” lowers it by 0.125, any other has no effect."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import uuid4

import pytest

from annotation.models import WritingCampaign
from annotation.services import hooks
from annotation.services.campaigns import create_writing, open_campaign
from annotation.services.hooks import Candidate, Candidates, Reliability
from annotation.services.writing_answers import Outcome
from annotation.services.writing_attempts import submit_attempt
from annotation.services.writing_handout import get_next_task
from annotation.services.writing_view import TaskView
from tests.cast import Cast
from tests.factories import make_items

EVALUATOR, CORPUS = "ream-1", "replies"


class FakePorts:
    """`down` makes the evaluator unresponsive; `asked` counts the calls; `before_answer` runs during a call."""

    def __init__(self) -> None:
        self.down = self.no_candidates = False
        self.asked = 0
        self.before_answer: Any = None

    def reliability(
        self, *, project: Any, evaluator: str, item: Any, sets: list[tuple[str, ...]], timeout: float | None = None
    ) -> Reliability:
        self.asked += 1
        if self.before_answer is not None:
            call, self.before_answer = self.before_answer, None
            call()
        if self.down:
            return Reliability((None,) * len(sets), note="The worker is not running.")
        values = [0.125 * sum(("good" in text) - ("bad" in text) for text in texts) for texts in sets]
        return Reliability(tuple(values), signature="fake|1")

    def candidates(
        self, *, project: Any, corpus: str, item: Any, k: int = 100, turns: int | None = None,
        exclude: Collection[str] = (), text: str | None = None,
    ) -> Candidates:  # fmt: skip
        if self.no_candidates:
            return Candidates(note="The corpus is being built.")
        rows = [
            Candidate(f"A {word} reply {n}.", f"Question {n}?", 0.5 - n / 10, {"corpus": corpus, "row": n})
            for n, word in enumerate(("good", "plain", "bad"))
        ]
        return Candidates(tuple(row for row in rows if row.text not in exclude)[:k])


def replace_hooks(monkeypatch: pytest.MonkeyPatch, **providers: Any) -> None:
    """Replaces hooks of reference writing (`find_candidates`, `list_corpora`, ...) until the end of the test."""
    for name, provider in providers.items():
        monkeypatch.setattr(getattr(hooks, name), "target", provider)


def fill_ports(monkeypatch: pytest.MonkeyPatch) -> FakePorts:
    fake = FakePorts()
    replace_hooks(
        monkeypatch,
        find_candidates=fake.candidates,
        list_corpora=lambda project: [(CORPUS, "Replies")],
        predict_reliability=fake.reliability,
        list_reliability_evaluators=lambda project: [(EVALUATOR, "REAM 1")],
    )
    return fake


def draft_writing(cast: Cast, items: int = 2, references: int = 1, **plan: Any) -> WritingCampaign:
    make_items(cast.project, items, references)
    whole = {"name": "More replies", "evaluator": EVALUATOR, "corpus": CORPUS, **plan}
    return create_writing(user=cast.researcher, project=cast.project, plan=whole)


def start_writing(cast: Cast, items: int = 2, references: int = 1, **plan: Any) -> WritingCampaign:
    return open_campaign(user=cast.researcher, campaign=draft_writing(cast, items, references, **plan))


def start_constraint(cast: Cast, constraint: str, items: int = 1, **options: Any) -> WritingCampaign:
    return start_writing(
        cast, items, kind="constraint", evaluator="", corpus="", options={"constraint": constraint, **options}
    )


def open_task_view(user: Any, campaign: WritingCampaign) -> TaskView:
    return get_next_task(user=user, campaign_id=campaign.pk)


def send(user: Any, view: TaskView, text: str, **more: Any) -> Outcome:
    return submit_attempt(user=user, public=view.public, text=text, **{"submission": uuid4(), **more})
