"""Simulated annotators who use the server like browsers: they sign in by the form, prefetch the next text, save drafts
while they think, send answers with a submission number until confirmed, and sometimes visit another page. For tests and
measurements; uses only HTTP. `count_violations` checks the database afterwards, in a process with Django."""

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
    """The observations of all annotators. `times`: seconds of the requests by kind; `sent`: submission id -> (text,
    answer) of confirmed answers; `displayed_texts`: (annotator, text)."""

    times: dict[str, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    errors: collections.Counter[str] = field(default_factory=collections.Counter)
    retried_errors: collections.Counter[str] = field(default_factory=collections.Counter)
    sent: dict[str, tuple[str, Any]] = field(default_factory=dict)
    displayed_texts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return sum(map(len, self.times.values()))

    def summarize(self) -> dict[str, dict[str, float]]:
        return {kind: summarize_times(values) for kind, values in sorted(self.times.items())}


def summarize_times(values: list[float]) -> dict[str, float]:
    """Return n, and in milliseconds the median, 95th and 99th percentile and maximum of seconds."""
    ordered = sorted(values)

    def quantile(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)

    if not ordered:
        return {"n": 0}
    return {
        "n": len(ordered),
        "p50_ms": quantile(0.5),
        "p95_ms": quantile(0.95),
        "p99_ms": quantile(0.99),
        "max_ms": quantile(1.0),
    }


@dataclass(frozen=True)
class Behaviour:
    """`think`: mean seconds per text; `patient`: requests to an unresponsive server are retried, as by the outbox of
    the page, and are no errors; `finish`: after the time limit, continue without thinking until nothing is left;
    `resend`: one in this number of answers is sent twice; `pages`: one in this number of texts is followed by another
    page."""

    think: float = 5.0
    patient: bool = False
    finish: bool = False
    resend: int = 25
    pages: int = 20


class UnexpectedResponse(Exception):
    """A response that a browser could not continue from."""


@dataclass(frozen=True)
class Response:
    status: int
    text: str
    location: str


class BrowserConnection:
    """Connection and cookies of an annotator, with the standard library: it takes a quarter of the CPU time of httpx,
    and annotators share the machine with the measured server."""

    #: Seconds without a request after which a browser closes its connection.
    IDLE = 5.0

    def __init__(self, base: str) -> None:
        parts = urlsplit(base)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._used = 0.0
        self.cookies: dict[str, str] = {}

    def close(self) -> None:
        self._connection.close()

    def request(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Response:
        if time.monotonic() - self._used > self.IDLE:
            self._connection.close()
        all_headers = {**headers, "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        try:
            self._connection.request(method, url, body, all_headers)
            response = self._connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        self._used = time.monotonic()
        for line in response.headers.get_all("Set-Cookie", ()):
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
        return Response(response.status, text, response.headers.get("Location", ""))


class Annotator:
    def __init__(
        self, base: str, name: str, password: str, campaign: int, behaviour: Behaviour, report: Report
    ) -> None:
        self.name, self.password, self.behaviour, self.report = name, password, behaviour, report
        self.home = f"/my/{campaign}/"
        self._random = random.Random(name)
        self._connection = BrowserConnection(base)

    def close(self) -> None:
        self._connection.close()

    # ---- requests -----------------------------------------------------------------------------------------

    async def _request(
        self, kind: str, method: str, url: str, *, good: tuple[int, ...] = (200,), form: Any = None, data: Any = None
    ) -> Response | None:
        """Return the response; None if a patient client must retry. `form` is sent as a form, `data` as JSON."""
        headers, body = {}, None
        if form is not None:
            headers, body = {"Content-Type": "application/x-www-form-urlencoded"}, urlencode(form).encode()
        elif data is not None:
            token = self._connection.cookies.get("csrftoken", "")
            headers = {"X-CSRFToken": token, "Accept": "application/json", "Content-Type": "application/json"}
            body = json.dumps(data).encode()
        started = time.perf_counter()
        try:
            response = await asyncio.to_thread(self._connection.request, method, url, headers, body)
        except (OSError, http.client.HTTPException) as error:
            self._record_failure(f"{kind}: {type(error).__name__}")
            return None
        self.report.times[kind].append(time.perf_counter() - started)
        if response.status in good:
            return response
        if response.status >= 500:
            self._record_failure(f"{kind}: {response.status}")
            return None
        self.report.errors[f"{kind}: {response.status} {response.text[:160]!r}"] += 1
        raise UnexpectedResponse(kind)

    def _record_failure(self, words: str) -> None:
        (self.report.retried_errors if self.behaviour.patient else self.report.errors)[words] += 1

    async def _request_until_answered(self, *arguments: Any, **options: Any) -> Response:
        """Retry with growing pauses until the server answers."""
        pause = 0.25
        while (response := await self._request(*arguments, **options)) is None:
            await asyncio.sleep(pause * self._random.uniform(0.5, 1.0))
            pause = min(5.0, 2 * pause)
        return response

    async def sign_in(self) -> None:
        page = await self._request_until_answered("sign-in page", "GET", "/account/sign-in/")
        token = _TOKEN.search(page.text)
        assert token, "the sign-in page has no form"
        form = {"username": self.name, "password": self.password, "csrfmiddlewaretoken": token[1]}
        await self._request_until_answered("sign in", "POST", "/account/sign-in/", form=form, good=(302,))

    # ---- work ---------------------------------------------------------------------------------------------

    async def work(self, end: Callable[[], bool]) -> None:
        """Judge texts until `end` returns True, or until nothing is left."""
        text: str | None = None
        prefetched: str | None = None
        try:
            await asyncio.sleep(self._random.random() * self.behaviour.think)
            await self._begin()
            while self.behaviour.finish or not end():
                if text is None:
                    response = await self._request_until_answered("first text", "GET", self.home)
                    text, prefetched = response.text, None
                article = _ARTICLE.search(text)
                if article is None:
                    return  # all texts are judged
                card = dict(_DATA.findall(article[0]))
                self.report.displayed_texts.append((self.name, card["id"]))
                choices = [(name, value) for name, value in _CHOICE.findall(text) if name != "note"]
                think = 0.0 if end() else self.behaviour.think
                text, prefetched = await self._judge(card, choices, prefetched, think)
                if self.behaviour.pages and not self._random.randrange(self.behaviour.pages):
                    await self._open_other_page()
        except UnexpectedResponse:
            return

    async def _begin(self) -> None:
        """Read the guidelines and, on the first visit, begin."""
        page = await self._request_until_answered("guidelines", "GET", f"{self.home}guidelines/")
        token = _TOKEN.search(page.text)
        if "data-begin" in page.text and token:
            form = {"csrfmiddlewaretoken": token[1]}
            await self._request_until_answered("begin", "POST", f"{self.home}guidelines/", form=form, good=(302,))

    async def _judge(
        self, card: dict[str, str], choices: list[tuple[str, str]], prefetched: str | None, think: float
    ) -> tuple[str | None, str | None]:
        """Think, save the draft and send the answer; return the prefetched text and the one from the confirmation
        (None: must be requested; empty: nothing is left)."""
        started = time.perf_counter()
        if prefetched is None:
            response = await self._request("next text", "GET", f"{self.home}next/?after={card['id']}", good=(200, 204))
            prefetched = None if response is None else response.text
        think *= self._random.uniform(0.5, 1.5)
        answer = {name: float(value) for name, value in [self._random.choice(choices)]}
        if think > 1.5:
            await asyncio.sleep(max(0.0, 0.6 * think - (time.perf_counter() - started)))
            draft = {"version": int(card["draft-version"]), "draft": {"answer": answer, "note": ""}}
            await self._request("draft", "PATCH", card["draft-url"], data=draft)
        await asyncio.sleep(max(0.0, think - (time.perf_counter() - started)))
        submission = uuid.uuid4()
        body = {"submission": str(submission), "answer": answer, "note": "", "seconds": round(think, 1)}
        if prefetched:
            body["next"] = "ahead"
        following: str | None = None
        # An answer that is sent twice is confirmed twice and stored once.
        for _ in range(1 if self._random.randrange(self.behaviour.resend) else 2):
            response = await self._request_until_answered("submit", "POST", card["submit-url"], data=body)
            self.report.sent[submission.hex] = (card["id"], answer)
            following = json.loads(response.text).get("html")
        if prefetched and following and _ids(prefetched) == _ids(following):
            following = None
        return prefetched or None, following

    async def _open_other_page(self) -> None:
        page = self._random.choice(["/my/", f"{self.home}guidelines/", f"{self.home}back/"])
        response = await self._request("other page", "GET", page, good=(200, 302))
        if response is not None and response.status == 302:
            await self._request("other page", "GET", response.location)


async def run_crowd(
    base: str, names: list[str], password: str, campaign: int, seconds: float, behaviour: Behaviour, report: Report,
    *, sign_ins: int = 8, started: Callable[[], None] = lambda: None, stop: Callable[[], bool] = lambda: False,
) -> None:  # fmt: skip
    """Sign in all annotators (`sign_ins` at once), then let them work for the given seconds. `started` is called when
    this time starts."""
    # One thread each, because all may send a request at the same moment.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(names)))
    annotators = [Annotator(base, name, password, campaign, behaviour, report) for name in names]
    semaphore = asyncio.Semaphore(sign_ins)

    async def sign_in(annotator: Annotator) -> None:
        async with semaphore:
            await annotator.sign_in()

    try:
        await asyncio.gather(*map(sign_in, annotators))
        started()
        end = time.perf_counter() + seconds
        await asyncio.gather(*(each.work(lambda: stop() or time.perf_counter() >= end) for each in annotators))
    finally:
        for annotator in annotators:
            annotator.close()


# ---- inside Django ----------------------------------------------------------------------------------------


def make_crowd_project(items: int, names: list[str], password: str, overlap: int, slug: str = "crowd") -> int:
    """Create a project with annotators, texts of two systems and an open campaign; return the id of the campaign."""
    from django.contrib.auth.hashers import make_password

    from annotation.models import Item, Output, Reference, ReferenceSet, System
    from annotation.services.campaigns import create_campaign, open_campaign
    from evalapp.accounts.models import Membership, Project, User

    project = Project.objects.create(slug=slug, name="Crowd")
    password_hash = make_password(password)
    users = User.objects.bulk_create([User(username=name, password=password_hash) for name in names])
    Membership.objects.bulk_create(
        [Membership(project=project, user=row, role="annotator", pseudonym=f"p-{row.username}") for row in users]
    )
    systems = [System.objects.create(project=project, name=f"system-{name}") for name in "ab"]
    original = ReferenceSet.objects.get_or_create(project=project, name="original")[0]
    rng = random.Random(13)
    for start in range(0, items, 5_000):
        rows = Item.objects.bulk_create(
            [
                Item(project=project, key=f"item-{k:06d}", context=[_sentence(rng)], group=f"g{k}")
                for k in range(start, min(items, start + 5_000))
            ]
        )
        Reference.objects.bulk_create(
            [Reference(set=original, item=row, position=0, text=_sentence(rng)) for row in rows]
        )
        Output.objects.bulk_create(
            [
                Output(project=project, item=row, system=system, text=_sentence(rng))
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


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(8, 40)))


def count_violations(campaign: int, sent: dict[str, Any]) -> dict[str, int]:
    """Return the number of violations of each promise, all zero if there are none, and the number of stored answers."""
    from django.db.models import Count

    from annotation.models import Assignment, Campaign, Judgement, Rating, Slot

    row = Campaign.objects.get(pk=campaign)
    stored = {
        submission.hex: (public, answer)
        for submission, public, answer in Judgement.objects.filter(campaign=row).values_list(
            "submission", "assignment__public", "answer"
        )
    }
    assignments = Assignment.objects.filter(campaign=row, state__in=["open", "submitted"])
    with_slot = assignments.filter(slot__isnull=False)
    taken_slots = Slot.objects.filter(campaign=row, state="taken").count()
    over_overlap = with_slot.values("unit").annotate(n=Count("pk")).filter(n__gt=row.overlap)
    repeated = assignments.values("unit", "annotator", "repeat_number").annotate(n=Count("pk")).filter(n__gt=1)
    current = Judgement.objects.filter(campaign=row, current=True)
    doubled = current.values("assignment").annotate(n=Count("pk")).filter(n__gt=1)
    return {
        "stored": len(stored),
        "lost": sum(submission not in stored for submission in sent),
        "changed": sum(tuple(stored.get(key, tuple(answer))) != tuple(answer) for key, answer in sent.items()),
        "doubled": doubled.count(),
        "over_overlap": over_overlap.count(),
        "twice_for_one": repeated.count(),
        "slots_wrong": abs(taken_slots - with_slot.values("slot").distinct().count()),
        "without_rating": abs(current.count() - Rating.objects.filter(judgement__in=current).count()),
        "extra": current.filter(extra=True).count(),
    }
