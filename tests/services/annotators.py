"""Simulated annotators who use the server like browsers: they sign in by the form, prefetch the next text, save drafts
while they think, send answers with a submission number until confirmed, and sometimes visit another page. For tests and
measurements; uses only HTTP. `found_in_database` checks the database afterwards, in a process with Django."""

from __future__ import annotations

import asyncio
import collections
import http.client
import json
import random
import re
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode, urlsplit

_ARTICLE = re.compile(r"<article\b[^>]*>")
_DATA = re.compile(r'data-([\w-]+)="([^"]*)"')
_CHOICE = re.compile(r'name="answer\.([^"]+)"\s+value="([^"]*)"')
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


def _ids(text: str) -> list[str]:
    return [dict(_DATA.findall(article))["id"] for article in _ARTICLE.findall(text)]


@dataclass
class Report:
    """The observations of all annotators. `times`: seconds of each request by kind; `sent`: submission number -> (text,
    answer), only confirmed ones."""

    times: dict[str, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    errors: collections.Counter[str] = field(default_factory=collections.Counter)
    troubles: collections.Counter[str] = field(default_factory=collections.Counter)
    sent: dict[str, tuple[str, Any]] = field(default_factory=dict)
    handed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return sum(map(len, self.times.values()))

    def spreads(self) -> dict[str, dict[str, float]]:
        return {kind: spread(values) for kind, values in sorted(self.times.items())}


def spread(values: list[float]) -> dict[str, float]:
    """n and milliseconds: median, 95th and 99th percentile, maximum."""
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)

    if not ordered:
        return {"n": 0}
    return {"n": len(ordered), "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99), "max_ms": at(1.0)}


@dataclass(frozen=True)
class Habit:
    """`think`: mean seconds per text; `patient`: an unresponsive server is retried, as by the page's outbox, and not an
    error; `finish`: after the time limit they continue without thinking until nothing is left; `again`: one in this
    number of answers is sent twice; `pages`: one in this number of texts is followed by another page."""

    think: float = 5.0
    patient: bool = False
    finish: bool = False
    again: int = 25
    pages: int = 20


class Refused(Exception):
    """A response that a browser could not continue from."""


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    location: str


class Line:
    """One person's connection and cookies, with the standard library: this takes a quarter of the CPU time of a
    convenient client, and people share the machine with the measured server."""

    #: Seconds without a request after which a browser would also close its connection.
    IDLE = 5.0

    def __init__(self, base: str) -> None:
        parts = urlsplit(base)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._used = 0.0
        self.cookies: dict[str, str] = {}

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Answer:
        if time.monotonic() - self._used > self.IDLE:
            self._connection.close()
        sent = {**headers, "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        try:
            self._connection.request(method, url, body, sent)
            answer = self._connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        self._used = time.monotonic()
        for line in answer.headers.get_all("Set-Cookie", ()):
            self.cookies |= {name: one.value for name, one in SimpleCookie(line).items()}
        return Answer(answer.status, text, answer.headers.get("Location", ""))


class Annotator:
    def __init__(self, base: str, name: str, password: str, campaign: int, habit: Habit, report: Report) -> None:
        self.name, self.password, self.campaign, self.habit, self.report = name, password, campaign, habit, report
        self.home = f"/my/{campaign}/"
        self._draw = random.Random(name)
        self._line = Line(base)

    def close(self) -> None:
        self._line.close()

    # ---- requests -----------------------------------------------------------------------------------------

    async def _ask(
        self, kind: str, method: str, url: str, *, good: tuple[int, ...] = (200,), form: Any = None, data: Any = None
    ) -> Answer | None:
        """The response; None if a patient client must retry. `form` is sent as a form, `data` as JSON."""
        headers, body = {}, None
        if form is not None:
            headers, body = {"Content-Type": "application/x-www-form-urlencoded"}, urlencode(form).encode()
        elif data is not None:
            token = self._line.cookies.get("csrftoken", "")
            headers = {"X-CSRFToken": token, "Accept": "application/json", "Content-Type": "application/json"}
            body = json.dumps(data).encode()
        began = time.perf_counter()
        try:
            answer = await asyncio.to_thread(self._line.ask, method, url, headers, body)
        except (OSError, http.client.HTTPException) as error:
            self._trouble(f"{kind}: {type(error).__name__}")
            return None
        self.report.times[kind].append(time.perf_counter() - began)
        if answer.status in good:
            return answer
        if answer.status >= 500:
            self._trouble(f"{kind}: {answer.status}")
            return None
        self.report.errors[f"{kind}: {answer.status} {answer.text[:160]!r}"] += 1
        raise Refused(kind)

    def _trouble(self, words: str) -> None:
        (self.report.troubles if self.habit.patient else self.report.errors)[words] += 1

    async def _until(self, *arguments: Any, **more: Any) -> Answer:
        """Retries with growing pauses until the server answers."""
        pause = 0.25
        while (answer := await self._ask(*arguments, **more)) is None:
            await asyncio.sleep(pause * self._draw.uniform(0.5, 1.0))
            pause = min(5.0, 2 * pause)
        return answer

    async def sign_in(self) -> None:
        page = await self._until("sign-in page", "GET", "/account/sign-in/")
        token = _TOKEN.search(page.text)
        assert token, "the page of signing in has no form"
        form = {"username": self.name, "password": self.password, "csrfmiddlewaretoken": token[1]}
        await self._until("sign in", "POST", "/account/sign-in/", form=form, good=(302,))

    # ---- work ---------------------------------------------------------------------------------------------

    async def work(self, end: Callable[[], bool]) -> None:
        """Works until the end, or until nothing is left."""
        text: str | None = None
        ahead: str | None = None
        try:
            await asyncio.sleep(self._draw.random() * self.habit.think)
            while self.habit.finish or not end():
                if text is None:
                    text, ahead = (await self._until("first text", "GET", self.home)).text, None
                article = _ARTICLE.search(text)
                if article is None:
                    return  # all is done
                card = dict(_DATA.findall(article[0]))
                self.report.handed.append((self.name, card["id"]))
                choices = [(name, value) for name, value in _CHOICE.findall(text) if name != "note"]
                text, ahead = await self._judge(card, choices, ahead, 0.0 if end() else self.habit.think)
                if self.habit.pages and not self._draw.randrange(self.habit.pages):
                    await self._look_around()
        except Refused:
            return

    async def _judge(
        self, card: dict[str, str], choices: list[tuple[str, str]], ahead: str | None, think: float
    ) -> tuple[str | None, str | None]:
        """Thinks, saves the draft, sends the answer; returns the prefetched text and the one from the confirmation
        (none: must be requested; empty: nothing is left)."""
        began = time.perf_counter()
        if ahead is None:
            found = await self._ask("next text", "GET", f"{self.home}next/?after={card['id']}", good=(200, 204))
            ahead = None if found is None else found.text
        think *= self._draw.uniform(0.5, 1.5)
        answer = {name: float(value) for name, value in [self._draw.choice(choices)]}
        if think > 1.5:
            await asyncio.sleep(max(0.0, 0.6 * think - (time.perf_counter() - began)))
            draft = {"version": int(card["draft-version"]), "draft": {"answer": answer, "note": ""}}
            await self._ask("draft", "PATCH", card["draft-url"], data=draft)
        await asyncio.sleep(max(0.0, think - (time.perf_counter() - began)))
        number = uuid.uuid4()
        body = {"submission": str(number), "answer": answer, "note": "", "seconds": round(think, 1)}
        if ahead:
            body["next"] = "ahead"
        more: str | None = None
        for _ in range(1 if self._draw.randrange(self.habit.again) else 2):  # sent twice: confirmed twice, stored once
            confirmed = await self._until("submit", "POST", card["submit-url"], data=body)
            self.report.sent[number.hex] = (card["id"], answer)
            more = json.loads(confirmed.text).get("html")
        if ahead and more and _ids(ahead) == _ids(more):
            more = None
        return ahead or None, more

    async def _look_around(self) -> None:
        page = self._draw.choice(["/my/", f"{self.home}guidelines/", f"{self.home}back/"])
        answer = await self._ask("other page", "GET", page, good=(200, 302))
        if answer is not None and answer.status == 302:
            await self._ask("other page", "GET", answer.location)


async def crowd(
    base: str, names: list[str], password: str, campaign: int, seconds: float, habit: Habit, report: Report,
    *, signing: int = 8, started: Callable[[], None] = lambda: None, stop: Callable[[], bool] = lambda: False,
) -> None:  # fmt: skip
    """All sign in (`signing` at once), then all work for the given seconds. `started` is called when the clock
    starts."""
    # All may send a request at the same moment.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(names)))
    people = [Annotator(base, name, password, campaign, habit, report) for name in names]
    door = asyncio.Semaphore(signing)

    async def enter(one: Annotator) -> None:
        async with door:
            await one.sign_in()

    try:
        await asyncio.gather(*(enter(one) for one in people))
        started()
        end = time.perf_counter() + seconds
        await asyncio.gather(*(one.work(lambda: stop() or time.perf_counter() >= end) for one in people))
    finally:
        for one in people:
            one.close()


# ---- inside Django ----------------------------------------------------------------------------------------


def make_house(items: int, names: list[str], password: str, overlap: int, slug: str = "crowd") -> int:
    """A project with people, texts of two systems and an open campaign; returns the campaign's number."""
    from django.contrib.auth.hashers import make_password

    from annotation.models import Item, Output, Reference, ReferenceSet, System
    from annotation.services.campaigns import create_campaign, open_campaign
    from evalapp.accounts.models import Membership, Project, User

    project = Project.objects.create(slug=slug, name="Crowd")
    secret = make_password(password)
    people = User.objects.bulk_create([User(username=name, password=secret) for name in names])
    Membership.objects.bulk_create(
        [Membership(project=project, user=row, role="annotator", pseudonym=f"p-{row.username}") for row in people]
    )
    systems = [System.objects.create(project=project, name=f"system-{name}") for name in "ab"]
    original = ReferenceSet.objects.get_or_create(project=project, name="original")[0]
    draw = random.Random(13)
    for start in range(0, items, 5_000):
        rows = Item.objects.bulk_create(
            [
                Item(project=project, key=f"item-{k:06d}", context=[_sentence(draw)], group=f"g{k}")
                for k in range(start, min(items, start + 5_000))
            ]
        )
        Reference.objects.bulk_create(
            [Reference(set=original, item=row, position=0, text=_sentence(draw)) for row in rows]
        )
        Output.objects.bulk_create(
            [
                Output(project=project, item=row, system=system, text=_sentence(draw))
                for row in rows
                for system in systems
            ]
        )
    plan = {
        "name": "Crowd", "kind": "likert", "overlap": overlap, "guidelines": "Read the text. Judge it.",
        "aspects": [{"name": "quality", "question": "How good is this text?", "low": 1, "high": 5}],
    }  # fmt: skip
    campaign = create_campaign(project=project, user=None, plan=plan)
    return open_campaign(campaign=campaign, user=None, here=True).pk


_WORDS = ("the", "a", "our", "this", "model", "answer", "speaker", "river", "letter", "explains", "ignores", "repeats")


def _sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(_WORDS, k=draw.randint(8, 40)))


def found_in_database(campaign: int, sent: dict[str, Any]) -> dict[str, int]:
    """The number of violations of each promise, all zero if everything holds, and `stored`."""
    from django.db.models import Count

    from annotation.models import Assignment, Campaign, Judgement, Rating, Slot

    row = Campaign.objects.get(pk=campaign)
    found = {
        number.hex: (public, answer)
        for number, public, answer in Judgement.objects.filter(campaign=row).values_list(
            "submission", "assignment__public", "answer"
        )
    }
    held = Assignment.objects.filter(campaign=row, state__in=["open", "submitted"])
    counted = held.filter(slot__isnull=False)
    taken = Slot.objects.filter(campaign=row, state="taken").count()
    over = counted.values("unit").annotate(n=Count("pk")).filter(n__gt=row.overlap)
    twice = held.values("unit", "annotator", "repeat_number").annotate(n=Count("pk")).filter(n__gt=1)
    stored = Judgement.objects.filter(campaign=row, current=True)
    once = stored.values("assignment").annotate(n=Count("pk")).filter(n__gt=1)
    return {
        "stored": len(found),
        "lost": sum(number not in found for number in sent),
        "changed": sum(tuple(found.get(number, tuple(mine))) != tuple(mine) for number, mine in sent.items()),
        "doubled": once.count(),
        "over_overlap": over.count(),
        "twice_for_one": twice.count(),
        "slots_wrong": abs(taken - counted.values("slot").distinct().count()),
        "without_rating": abs(stored.count() - Rating.objects.filter(judgement__in=stored).count()),
        "extra": stored.filter(extra=True).count(),
    }
