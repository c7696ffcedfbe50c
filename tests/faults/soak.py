"""`make soak`: everything at once for half an hour on the processes of docker-compose.yml. People judge; a program
uploads valid and invalid tables and requests scores and exports; backups are made meanwhile; every so often a worker is
killed, Redis is stopped, started or emptied, the clock process dies. At the end, remaining work may finish, and every
promise is checked by counting. Prints a report as JSON; exits with 1 if a promise is broken.

    python tests/faults/soak.py [--minutes 30] [--annotators 40] [--seed 13]
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import random
import re
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import httpx  # noqa: E402

from benchmarks._stack import inside, installation, machine, memory  # noqa: E402
from tests.services.annotators import Habit, Report, crowd  # noqa: E402

PASSWORD, OVERLAP = "annotator-of-the-soak", 3
WORKERS = ("worker-cpu", "worker-gpu", "worker-live")
#: How often a run may lose its worker; the third time it fails and says so.
LOSSES = 3
EVALUATORS = ("length", "overlap", "bleu-4", "chrf", "rouge-l")
PREPARE = """
from tests.services.annotators import make_house
from evalapp.accounts.models import Membership, Project, User
from evalapp.accounts.services import create_token
campaign = make_house(items, names, password, overlap)
owner = User.objects.create_user(username="olga", password=password, is_superuser=True)
Membership.objects.create(project=Project.objects.get(), user=owner, role="owner", pseudonym="p-olga")
print(json.dumps([campaign, create_token(user=owner, name="soak", scopes=["read", "write", "manage"], days=1)[1]]))
"""
#: Checks made when everything has come to rest.
COUNT = """
from django.db.models import Count, F
from django.utils.timezone import now
from annotation.models import Item, Upload
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from tests.services.annotators import found_in_database
sent = json.loads(open(path).read())
runs = [
    {**row, "created_at": row["created_at"].timestamp(), "finished_at": (row["finished_at"] or now()).timestamp()}
    for row in Run.objects.values("pk", "kind", "state", "attempt", "error", "title", "created_at", "finished_at")
]
print(json.dumps({
    "judging": found_in_database(campaign, sent),
    "runs": runs,
    "rows": dict(Project.objects.filter(slug="tables").annotate(n=Count("items")).values_list("slug", "n")),
    "keys_twice": Item.objects.values("project", "key").annotate(n=Count("pk")).filter(n__gt=1).count(),
    "uploads": {str(pk): state for pk, state in Upload.objects.values_list("pk", "state")},
}))
"""
ENDED = {"succeeded", "failed", "cancelled"}


class Soak:
    def __init__(self, made: Any, options: argparse.Namespace, campaign: int, token: str) -> None:
        self.made, self.options, self.campaign = made, options, campaign
        self.headers = {"Authorization": f"Bearer {token}"}
        self.ended = threading.Event()
        self.faults: list[str] = []
        self.counts: collections.Counter[str] = collections.Counter()
        self.uploads: dict[int, tuple[str, int]] = {}  # number -> (required final state, rows)
        self.exports: list[int] = []
        self.scores: list[int] = []
        self.backups: list[Path] = []
        self.looks: list[dict[str, Any]] = []
        self.struck: list[tuple[float, str]] = []
        self.given_up: dict[int, str] = {}
        self.report = Report()
        self.draw = random.Random(options.seed)
        self.breaking = threading.Lock()  # nothing is killed during a check

    def fault(self, words: str) -> None:
        self.faults.append(words)
        print(f"soak | {words}", file=sys.stderr, flush=True)

    def api(self, method: str, path: str, **more: Any) -> Any:
        """The answer; a refusal or a server error counts as a failure, because the web process and the database are
        never killed here."""
        headers = {**self.headers, **more.pop("headers", {})}
        began = time.perf_counter()
        answer = httpx.request(
            method, f"{self.made.url}/api/v1/{path}", headers=headers, timeout=120, trust_env=False, **more
        )
        kind = re.sub(r"\d+/", "", path.partition("?")[0]).rstrip("/").rpartition("/")[2]
        self.report.times[f"api {method} {kind}"].append(time.perf_counter() - began)
        if answer.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer.json()

    # ---- concurrent activities ----------------------------------------------------------------------------

    def people(self) -> None:
        names = [f"annotator{k:03d}" for k in range(self.options.annotators)]
        seconds = 60.0 * self.options.minutes
        habit = Habit(think=self.options.think, patient=True)
        asyncio.run(
            crowd(self.made.url, names, PASSWORD, self.campaign, seconds, habit, self.report, stop=self.ended.is_set)
        )

    def upload(self, number: int) -> None:
        """A new table each time; every third has one invalid row and must leave nothing."""
        rows = [f"table{number:05d}-{k},text {k}" for k in range(self.options.rows)]
        faulty = number % 3 == 2
        if faulty:
            rows[len(rows) // 2] = "one cell alone"
        body = "\ufeffid,source\r\n" + "\r\n".join(rows) + "\r\n"
        upload = self.api(
            "POST", "projects/tables/uploads/?kind=items", content=body.encode(), headers={"Content-Type": "text/csv"}
        )
        self.uploads[upload["id"]] = ("faulty", 0) if faulty else ("done", len(rows))

    def score(self, number: int) -> None:
        name = EVALUATORS[number % len(EVALUATORS)]
        self.scores.append(self.api("POST", "projects/crowd/runs/", json={"kind": "score", "evaluator": name})["id"])

    def export(self, number: int) -> None:
        wishes = {"format": ("jsonl", "csv")[number % 2]}
        self.exports.append(self.api("POST", "projects/crowd/exports/", json=wishes)["id"])

    def backup(self, number: int) -> None:
        path = self.made.folder / f"backup-{number}.zip"
        done = self.made.manage("backup", str(path), "--json", seconds=1200)
        if done.returncode:
            raise RuntimeError(f"backup: {done.stderr[-500:]}")
        self.backups.append(path)

    def strike(self, number: int) -> None:
        """Kills a part, which its restart policy brings back."""
        made, what = self.made, self.draw.choice([*WORKERS, "worker-cpu", "redis", "flush", "beat"])
        with self.breaking:
            if what == "flush":
                import redis

                redis.Redis.from_url(made.redis_url, password=made.secret("redis_password")).flushall()
            else:
                made.kill(what)
                time.sleep(self.draw.uniform(0.0, 3.0))
                made.start(what, seconds=180)
        self.counts[f"struck {what}"] += 1
        self.struck.append((time.time(), what))

    def look(self, number: int) -> None:
        with self.breaking:
            self.looks.append({"at_s": round(time.monotonic() - self.began), **memory(self.made)})

    def every(self, seconds: float, what: Callable[[int], None]) -> threading.Thread:
        """Repeats it until the end; an exception is recorded and does not stop it."""

        def loop() -> None:
            number = 0
            while not self.ended.wait(seconds * (0.3 if number == 0 else 1.0)):
                try:
                    what(number)
                    self.counts[what.__name__] += 1
                except Exception as error:
                    self.fault(f"{what.__name__}: {type(error).__name__}: {error}")
                    traceback.print_exc()
                number += 1

        thread = threading.Thread(target=loop, name=what.__name__)
        thread.start()
        return thread

    def run(self) -> None:
        whole = 60.0 * self.options.minutes
        self.began = time.monotonic()
        self.api("POST", "projects/", json={"slug": "tables", "name": "Tables", "task": "dialogue"})
        jobs: list[tuple[float, Callable[[int], None]]] = [
            (8, self.upload), (12, self.score), (15, self.export), (20, self.strike), (whole / 4, self.backup),
            (whole / 12, self.look),
        ]  # fmt: skip
        threads = [self.every(seconds, what) for seconds, what in jobs]
        try:
            self.people()
        finally:
            self.ended.set()
            for thread in threads:
                thread.join()
        self.rest()

    def rest(self) -> None:
        """Waits until no run is active; a run that never ends is a failure."""
        until = time.monotonic() + 120 + 30 * self.options.minutes
        waiting: dict[int, str] = {}
        while time.monotonic() < until:
            waiting = {}
            for number in [*self.scores, *self.exports]:
                state = self.api("GET", f"runs/{number}/")["state"]
                if state not in ENDED:
                    waiting[number] = state
            for number in self.uploads:
                state = self.api("GET", f"uploads/{number}/")["state"]
                if state in {"received", "checking"}:
                    waiting[-number] = state
            if not waiting:
                return
            time.sleep(2)
        self.fault(f"runs that never end: {waiting}")

    # ---- promises -----------------------------------------------------------------------------------------

    def check(self) -> dict[str, Any]:
        path = self.made.folder / "sent.json"
        path.write_text(json.dumps(self.report.sent))
        found = inside(self.made, COUNT, campaign=self.campaign, path=str(path))
        judging = found["judging"]
        stored = judging.pop("stored")
        if stored < len(self.report.sent) or any(judging.values()):
            self.fault(f"judging: {judging}, {stored} stored of {len(self.report.sent)} confirmed")
        for kind, number in self.report.errors.items():
            self.fault(f"an annotator was refused: {kind} ({number} times)")
        for number, (state, _) in self.uploads.items():
            if found["uploads"][str(number)] != state:
                self.fault(f"upload {number} is {found['uploads'][str(number)]}, not {state}")
        rows = sum(rows for _, rows in self.uploads.values())
        if found["rows"].get("tables", 0) != rows or found["keys_twice"]:
            self.fault(f"{found['rows']} rows and {found['keys_twice']} twice where uploads stored {rows}")
        for run in found["runs"]:
            if run["kind"] != "import" and run["state"] != "succeeded":
                words = f"run {run['pk']} ({run['title']}) {run['state']}: {run['error']}"
                if self.was_unlucky(run):
                    self.given_up[run["pk"]] = words
                else:
                    self.fault(words)
        for number in self.exports:
            self.check_export(number)
        for backup in self.backups:
            done = self.made.manage("restore", str(backup), "--check", seconds=1200)
            if done.returncode:
                self.fault(f"{backup.name}: {done.stderr[-300:]}")
        doctor = json.loads(self.made.manage("doctor", "--json").stdout or "{}")
        for row in doctor.get("checks", []):
            if "audit" in row["name"] and row["state"] == "missing":
                self.fault(f"doctor: {row['name']}: {row['found']}")
        for name in WORKERS:
            _, died, words = self.made.log(name).partition("Unrecoverable error")
            if died:
                self.fault(f"{name} ended by itself: {words[:600]}")
        log = self.made.log("web")
        if "Traceback" in log:
            self.fault(f"{log.count('Traceback')} traces in the log of web: {log.partition('Traceback')[2][:600]}")
        # Folders that Python creates for the processes of a worker are removed with it.
        left = [str(path) for path in (self.made.folder / "data/tmp").iterdir() if not path.name.startswith("pymp-")]
        left += [str(path) for path in (self.made.folder / "data/staging").glob("*")]
        if left:
            self.fault(f"left behind: {left[:5]}")
        attempts = collections.Counter(run["attempt"] for run in found["runs"])
        return {"stored": stored, "runs": len(found["runs"]), "runs_by_attempts": dict(sorted(attempts.items()))}

    def was_unlucky(self, run: dict[str, Any]) -> bool:
        """Its worker was killed as often as a run may lose it: then it must fail with that reason."""
        during = [what for at, what in self.struck if run["created_at"] <= at <= run["finished_at"]]
        return run["state"] == "failed" and "was lost" in run["error"] and sum(w in WORKERS for w in during) >= LOSSES

    def check_export(self, number: int) -> None:
        if number in self.given_up:
            return
        export = self.api("GET", f"exports/{number}/")
        if not export.get("archive"):
            self.fault(f"export {number} has no archive: {export['state']}")
            return
        with tempfile.TemporaryFile() as file:
            with httpx.stream(
                "GET", export["archive"], headers=self.headers, timeout=120, trust_env=False, follow_redirects=True
            ) as answer:
                for part in answer.iter_bytes():
                    file.write(part)
            with zipfile.ZipFile(file) as archive:
                if archive.testzip() is not None or not archive.namelist():
                    self.fault(f"export {number} is damaged")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    names = [f"annotator{k:03d}" for k in range(options.annotators)]
    items = 50 + int(options.annotators * 60 * options.minutes / options.think / OVERLAP)
    with installation("web", *WORKERS, "beat") as made:
        campaign, token = inside(made, PREPARE, items=items, names=names, password=PASSWORD, overlap=OVERLAP)
        soak = Soak(made, options, campaign, token)
        soak.run()
        found = soak.check()
        if options.keep:
            for path in made.folder.glob("*.log"):
                (options.keep / path.name).write_bytes(path.read_bytes())
    growth = {}
    if len(soak.looks) >= 3:
        middle, end = soak.looks[len(soak.looks) // 2], soak.looks[-1]
        growth = {
            name: round(end[name]["mb"] - middle[name]["mb"], 1) for name in end if name in middle and name != "at_s"
        }
    return {
        "soak_minutes": options.minutes,
        "seed": options.seed,
        "machine": machine(),
        "annotators": options.annotators,
        "confirmed": len(soak.report.sent),
        **found,
        "done": dict(sorted(soak.counts.items())),
        "requests": soak.report.spreads(),
        "troubles": dict(soak.report.troubles),
        "memory": soak.looks,
        "growth_mb_second_half": growth,
        "given_up": sorted(soak.given_up.values()),
        "faults": soak.faults,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--annotators", type=int, default=40)
    parser.add_argument("--think", type=float, default=5.0)
    parser.add_argument("--rows", type=int, default=2000, help="of each uploaded table")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--keep", type=Path, help="a folder for the logs of all processes")
    report = measure(parser.parse_args())
    print(json.dumps(report, indent=1))
    return 1 if report["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
