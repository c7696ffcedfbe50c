"""A process with a crowd of hired participants, by the pages of the study: `python participants_crowd.py JSON`, with
`secret`, `campaign`, `people` (numbers), `seconds` in which they arrive, `think` (seconds before each answer), and
`units`. One in five leaves in the middle; half as many people come back. One in ten opens the link in two windows of
the browser at once. Prints what each participant was told, and the acknowledged answers, as one JSON object."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from typing import Any
from uuid import uuid4

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings.test")


class Person:
    """A participant in a browser. `number` decides what they do."""

    def __init__(self, number: int, options: dict[str, Any]) -> None:
        from django.test import Client

        self.number, self.options = number, options
        self.client = Client(REMOTE_ADDR=f"10.0.{number // 250}.{number % 250 + 1}")
        self.link = f"/participate/{options['secret']}/?participant=p{number}"
        self.home = f"/my/{options['campaign']}/"
        self.sent: list[str] = []
        self.told: list[str] = []

    def ask(self, method: str, address: str, body: Any = None) -> Any:
        from django.db import connection

        try:
            return getattr(self.client, method)(address, body, follow=True)
        finally:
            connection.close()  # as at the end of a request; the test client keeps it

    def live(self) -> None:
        leaves, comes_back = self.number % 5 == 0, self.number % 10 == 0
        self.ask("get", self.link)
        if self.number % 10 == 3:
            self.open_twice()
        page = self.ask("post", self.link, {"do": "begin", "consent_version": 1})
        half = self.options["units"] // 2 if leaves else self.options["units"]
        if not self.work(page, half):
            return
        if leaves:
            self.let_lease_end()
        if comes_back:
            time.sleep(3 * self.options["think"])
            self.work(self.ask("get", self.link), self.options["units"])

    def open_twice(self) -> None:
        """Begin in a second window at the same time, with the same key of the browser."""
        from django.test import Client

        self.client.cookies["participant"] = f"browser-{self.number}"
        second = Person(self.number, self.options)
        second.client = Client(REMOTE_ADDR="10.1.0.1")
        second.client.cookies["participant"] = f"browser-{self.number}"
        thread = threading.Thread(target=second.ask, args=("post", self.link, {"do": "begin", "consent_version": 1}))
        thread.start()
        self.ask("post", self.link, {"do": "begin", "consent_version": 1})
        thread.join()

    def work(self, page: Any, units: int) -> bool:
        """Answer up to `units` texts; False if the study ended before."""
        for _ in range(units):
            if self.has_ended(page):
                return False
            shown = re.search(rb'<article class="assignment" data-id="([^"]+)"', page.content)
            assert shown, f"{page.status_code} {page.request['PATH_INFO']}"
            time.sleep(self.options["think"] * random.random() * 2)
            submission = str(uuid4())
            body = {"submission": submission, "answer.naturalness": str(1 + self.number % 6)}
            page = self.ask("post", f"{self.home}{shown[1].decode()}/", body)
            assert page.status_code == 200, page.status_code
            self.sent.append(submission.replace("-", ""))
        return not self.has_ended(page)

    def has_ended(self, page: Any) -> bool:
        """Whether the page says how the study ended for the participant, which is noted."""
        outcome = re.search(rb'data-outcome="(\w+)"', page.content)
        if outcome:
            self.told.append(outcome[1].decode())
        return outcome is not None

    def let_lease_end(self) -> None:
        """Time passes: the lease of the place and of the open text end."""
        from django.db import connection
        from django.utils import timezone

        from annotation.models import Assignment, Participant

        now = timezone.now()
        rows = Participant.objects.filter(external_id=f"p{self.number}", state="working")
        Assignment.objects.filter(annotator__in=rows.values("user"), state="open").update(lease_until=now)
        rows.update(lease_until=now)
        connection.close()
        self.told.append("leaves")


def main() -> None:
    import django

    django.setup()
    options = json.loads(sys.argv[1])
    errors: list[str] = []
    people = [Person(number, options) for number in options["people"]]
    begin = time.monotonic()

    def visit(person: Person, arrives: float) -> None:
        time.sleep(max(0.0, begin + arrives - time.monotonic()))
        try:
            person.live()
        except Exception as error:
            errors.append(f"p{person.number}: {type(error).__name__}: {error}")

    draw = random.Random(options["people"][0])
    threads = [threading.Thread(target=visit, args=(p, draw.random() * options["seconds"])) for p in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = {f"p{person.number}": person.told for person in people}
    sent = [number for person in people for number in person.sent]
    print(json.dumps({"told": told, "sent": sent, "errors": errors, "seconds": time.monotonic() - begin}))


if __name__ == "__main__":
    main()
