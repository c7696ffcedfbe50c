"""A process with annotators who do everything at once, for `test_claims`:

    python claims_storm.py CAMPAIGN ACTIONS SEED NAME...

Each annotator works in two tabs: claims, drafts, answers, answers twice, sends the same submission with another body,
corrects, skips, and returns to texts shown long ago, while the clock of the process jumps back and forth. Prints the
acknowledged answers, and all errors that annotators must not see, as one JSON object.

All annotators judge by one rule: the text that sorts first is better. So a swapped verdict, or one from a rejected
body, is visible in the stored rows.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

JUMPS = (0, 31, 95, -45, 60 * 24 * 400)  # minutes from the true time


class Crowd:
    """The shared state of all tabs of the process."""

    def __init__(self, campaign: int, acts: int) -> None:
        self.campaign, self.left, self.lock = campaign, iter(range(acts)), threading.Lock()
        self.sent: dict[str, str] = {}  # submission -> acknowledged assignment
        self.errors: list[str] = []
        self.seen: Counter[str] = Counter()
        self.slowest = 0.0

    def measure(self, action: Callable[[], Any]) -> Any:
        started = time.monotonic()
        try:
            return action()
        finally:
            self.slowest = max(self.slowest, time.monotonic() - started)


def choose_verdict(shown: Any) -> str:
    first, second = shown.texts
    return "a" if first < second else "b"


def get_opposite(value: str) -> str:
    return "b" if value == "a" else "a"


class Tab(threading.Thread):
    """A browser tab of an annotator. `shown_texts` keeps earlier texts, as in a tab that stays open."""

    def __init__(self, crowd: Crowd, user: Any, seed: str) -> None:
        super().__init__()
        self.crowd, self.user, self.random = crowd, user, random.Random(seed)
        self.shown_texts: list[Any] = []

    def run(self) -> None:
        from django.db import connection

        from evalapp.common.errors import Conflict

        acts = [self.claim, self.draft, self.answer, self.answer_twice, self.another_body, self.correct, self.skip]
        weights = [7, 5, 6, 3, 2, 1, 0.3]
        try:
            while next(self.crowd.left, None) is not None:
                act = self.claim if not self.shown_texts else self.random.choices(acts, weights)[0]
                try:
                    self.crowd.measure(act)
                    self.crowd.seen[act.__name__] += 1
                except Conflict as error:
                    self.crowd.seen[error.code] += 1
                    if "yours" not in error.extra and act != self.skip:
                        raise  # a conflict must report both versions
                    if error.code == "stale-answer" and self.shown_texts:
                        self.shown_texts.pop(0)
        except Exception as error:
            self.crowd.errors.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    def claim(self) -> None:
        from annotation.services.judging import get_next_assignment

        ahead = self.random.random() < 0.4
        shown = get_next_assignment(user=self.user, campaign_id=self.crowd.campaign, ahead=ahead).shown
        if shown is not None:
            self.shown_texts = [*self.shown_texts[-3:], shown]

    def draft(self) -> None:
        from annotation.services.judging_acts import StaleDraft, save_draft

        shown = self.random.choice(self.shown_texts)
        draft = {"answer": {"pairwise-quality": choose_verdict(shown)}, "by": self.random.random()}
        try:
            shown.draft_version = save_draft(
                user=self.user, public=shown.public, version=shown.draft_version, draft=draft
            ).version
        except StaleDraft as error:
            shown.draft_version = error.extra["stored"]["version"]  # type: ignore[index]
            raise

    def submit(self, shown: Any, number: uuid.UUID, value: str, replaces: int | None = None) -> Any:
        from annotation.services.judging import submit_answer

        done = submit_answer(
            user=self.user, public=shown.public, submission=number, answer={"pairwise-quality": value},
            replaces=replaces, then=self.random.choice(("", "next", "ahead")),
        )  # fmt: skip
        assert value == choose_verdict(shown), "a body that must be rejected was accepted"
        if replaces is None or done.version > replaces:  # otherwise nothing was corrected or stored
            with self.crowd.lock:
                self.crowd.sent[number.hex] = shown.public
        if done.next is not None:
            self.shown_texts = [*self.shown_texts[-3:], done.next]
        shown.version = done.version
        if self.random.random() < 0.7 and shown in self.shown_texts:
            self.shown_texts.remove(shown)
        return done

    def answer(self) -> None:
        shown = self.random.choice(self.shown_texts)
        self.submit(shown, uuid.uuid4(), choose_verdict(shown))

    def answer_twice(self) -> None:
        """A double click: both clicks get the same response, or the same conflict."""
        shown, number = self.random.choice(self.shown_texts), uuid.uuid4()
        first = self.submit(shown, number, choose_verdict(shown))
        again = self.submit(shown, number, choose_verdict(shown))
        assert again.repeated
        assert (again.version, again.extra, again.created_at) == (first.version, first.extra, first.created_at)

    def another_body(self) -> None:
        import pytest

        from annotation.services.judging_later import SubmissionConflict

        shown, number = self.random.choice(self.shown_texts), uuid.uuid4()
        self.submit(shown, number, choose_verdict(shown))
        with pytest.raises(SubmissionConflict) as caught:
            self.submit(shown, number, get_opposite(choose_verdict(shown)))
        both = caught.value.extra
        assert both["stored"]["answer"] == {"pairwise-quality": choose_verdict(shown)}  # type: ignore[index]
        assert both["yours"]["answer"] == {"pairwise-quality": get_opposite(choose_verdict(shown))}  # type: ignore[index]

    def correct(self) -> None:
        shown = self.random.choice(self.shown_texts)
        self.submit(shown, uuid.uuid4(), choose_verdict(shown), replaces=shown.version or 1)

    def skip(self) -> None:
        from annotation.services.judging_acts import skip_assignment

        skip_assignment(user=self.user, public=self.random.choice(self.shown_texts).public)


def shift_clock(until: threading.Event, seed: int) -> None:
    """Shift the clock of this process by a different amount every tenth of a second."""
    from django.utils import timezone

    original, rng, minutes = timezone.now, random.Random(seed), [0]
    timezone.now = lambda: original() + timedelta(minutes=minutes[0])  # type: ignore[assignment]
    while not until.wait(0.1):
        minutes[0] = rng.choice(JUMPS)


def main() -> None:
    import django

    django.setup()
    from django.db import connection

    from evalapp.accounts.models import User

    campaign, acts, seed, names = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    users = list(User.objects.filter(username__in=names))
    connection.close()
    crowd, finished = Crowd(campaign, acts), threading.Event()
    clock = threading.Thread(target=shift_clock, args=(finished, seed))
    clock.start()
    tabs = [Tab(crowd, user, f"{seed} {user.username} {tab}") for user in users for tab in range(2)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    finished.set()
    clock.join()
    print(json.dumps({"sent": crowd.sent, "errors": crowd.errors, "seen": crowd.seen, "slowest": crowd.slowest}))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings.test")
    main()
