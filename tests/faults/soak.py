"""`make soak`: everything at once for half an hour on the processes of docker-compose.yml. Annotators judge; a program
uploads valid and invalid tables and requests scores and exports; backups are made; from time to time a worker is
killed, Redis is restarted or emptied, or the beat process dies. At the end, remaining runs may finish, and all promises
are checked by counting. Prints a report as JSON; exits with 1 if a promise is broken.

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

from benchmarks._stack import machine, memory, run_django_code, start_installation  # noqa: E402
from tests.services.annotators import Behaviour, Report, run_crowd  # noqa: E402

PASSWORD, OVERLAP = "annotator-of-the-soak", 3
WORKERS = ("worker-cpu", "worker-gpu", "worker-train", "worker-live")
#: A run that loses its worker this often fails.
LOSSES = 3
EVALUATORS = ("length", "overlap", "bleu-4", "chrf", "rouge-l")
PREPARE = """
from tests.services.annotators import make_crowd_project
from evalapp.accounts.models import Membership, Project, User
from evalapp.accounts.services import create_token
campaign = make_crowd_project(items, names, password, overlap)
owner = User.objects.create_user(username="olga", password=password, is_superuser=True)
Membership.objects.create(project=Project.objects.get(), user=owner, role="owner", pseudonym="p-olga")
print(json.dumps([campaign, create_token(user=owner, name="soak", scopes=["read", "write", "manage"], days=1)[1]]))
"""
#: Counts made when all runs have ended.
COUNT = """
from django.db.models import Count, F
from django.utils.timezone import now
from annotation.models import Item, Upload
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from tests.services.annotators import count_violations
sent = json.loads(open(path).read())
runs = [
    {**row, "created_at": row["created_at"].timestamp(), "finished_at": (row["finished_at"] or now()).timestamp()}
    for row in Run.objects.values("pk", "kind", "state", "attempt", "error", "title", "created_at", "finished_at")
]
print(json.dumps({
    "judging": count_violations(campaign, sent),
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
        self.memory: list[dict[str, Any]] = []
        self.breakdowns: list[tuple[float, str]] = []
        self.given_up: dict[int, str] = {}
        self.report = Report()
        self.draw = random.Random(options.seed)
        self.breaking = threading.Lock()  # nothing is killed while memory is measured

    def report_fault(self, message: str) -> None:
        self.faults.append(message)
        print(f"soak | {message}", file=sys.stderr, flush=True)

    def api(self, method: str, path: str, **more: Any) -> Any:
        """Return the response. Any error status is a failure, because the web process and the database are never
        killed."""
        headers = {**self.headers, **more.pop("headers", {})}
        started = time.perf_counter()
        response = httpx.request(
            method, f"{self.made.url}/api/v1/{path}", headers=headers, timeout=120, trust_env=False, **more
        )
        kind = re.sub(r"\d+/", "", path.partition("?")[0]).rstrip("/").rpartition("/")[2]
        self.report.times[f"api {method} {kind}"].append(time.perf_counter() - started)
        if response.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text[:300]}")
        return response.json()

    # ---- concurrent activities ----------------------------------------------------------------------------

    def run_annotators(self) -> None:
        names = [f"annotator{k:03d}" for k in range(self.options.annotators)]
        seconds = 60.0 * self.options.minutes
        behaviour = Behaviour(think=self.options.think, patient=True)
        asyncio.run(
            run_crowd(
                self.made.url, names, PASSWORD, self.campaign, seconds, behaviour, self.report, stop=self.ended.is_set
            )
        )

    def upload(self, number: int) -> None:
        """Upload a new table; every third has one invalid row and must store nothing."""
        rows = [f"table{number:05d}-{k},text {k}" for k in range(self.options.rows)]
        faulty = number % 3 == 2
        if faulty:
            rows[len(rows) // 2] = "only one cell"
        body = "\ufeffid,source\r\n" + "\r\n".join(rows) + "\r\n"
        upload = self.api(
            "POST", "projects/tables/uploads/?kind=items", content=body.encode(), headers={"Content-Type": "text/csv"}
        )
        self.uploads[upload["id"]] = ("faulty", 0) if faulty else ("done", len(rows))

    def score(self, number: int) -> None:
        name = EVALUATORS[number % len(EVALUATORS)]
        self.scores.append(self.api("POST", "projects/crowd/runs/", json={"kind": "score", "evaluator": name})["id"])

    def export(self, number: int) -> None:
        options = {"format": ("jsonl", "csv")[number % 2]}
        self.exports.append(self.api("POST", "projects/crowd/exports/", json=options)["id"])

    def backup(self, number: int) -> None:
        path = self.made.folder / f"backup-{number}.zip"
        done = self.made.manage("backup", str(path), "--json", seconds=1200)
        if done.returncode:
            raise RuntimeError(f"backup: {done.stderr[-500:]}")
        self.backups.append(path)

    def break_part(self, number: int) -> None:
        """Kill a part and start it again, or empty the queue."""
        made, part = self.made, self.draw.choice([*WORKERS, "worker-cpu", "redis", "flush", "beat"])
        with self.breaking:
            if part == "flush":
                import redis

                redis.Redis.from_url(made.redis_url, password=made.secret("redis_password")).flushall()
            else:
                made.kill(part)
                time.sleep(self.draw.uniform(0.0, 3.0))
                made.start(part, seconds=180)
        self.counts[f"struck {part}"] += 1
        self.breakdowns.append((time.time(), part))

    def record_memory(self, number: int) -> None:
        with self.breaking:
            self.memory.append({"at_s": round(time.monotonic() - self.began), **memory(self.made)})

    def repeat(self, seconds: float, action: Callable[[int], None]) -> threading.Thread:
        """Repeat the action until the end; an exception is recorded and does not stop it."""

        def loop() -> None:
            number = 0
            while not self.ended.wait(seconds * (0.3 if number == 0 else 1.0)):
                try:
                    action(number)
                    self.counts[action.__name__] += 1
                except Exception as error:
                    self.report_fault(f"{action.__name__}: {type(error).__name__}: {error}")
                    traceback.print_exc()
                number += 1

        thread = threading.Thread(target=loop, name=action.__name__)
        thread.start()
        return thread

    def run(self) -> None:
        total = 60.0 * self.options.minutes
        self.began = time.monotonic()
        self.api("POST", "projects/", json={"slug": "tables", "name": "Tables", "task": "dialogue"})
        jobs: list[tuple[float, Callable[[int], None]]] = [
            (8, self.upload), (12, self.score), (15, self.export), (20, self.break_part), (total / 4, self.backup),
            (total / 12, self.record_memory),
        ]  # fmt: skip
        threads = [self.repeat(seconds, action) for seconds, action in jobs]
        try:
            self.run_annotators()
        finally:
            self.ended.set()
            for thread in threads:
                thread.join()
        self.wait_for_runs()

    def wait_for_runs(self) -> None:
        """Wait until no run is active; a run that never ends is a fault."""
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
        self.report_fault(f"runs that never end: {waiting}")

    # ---- promises -----------------------------------------------------------------------------------------

    def check(self) -> dict[str, Any]:
        path = self.made.folder / "sent.json"
        path.write_text(json.dumps(self.report.sent))
        counts = run_django_code(self.made, COUNT, campaign=self.campaign, path=str(path))
        judging = counts["judging"]
        stored = judging.pop("stored")
        if stored < len(self.report.sent) or any(judging.values()):
            self.report_fault(f"judging: {judging}, {stored} stored of {len(self.report.sent)} confirmed")
        for kind, number in self.report.errors.items():
            self.report_fault(f"an annotator got an error: {kind} ({number} times)")
        for number, (state, _) in self.uploads.items():
            if counts["uploads"][str(number)] != state:
                self.report_fault(f"upload {number} is {counts['uploads'][str(number)]}, not {state}")
        rows = sum(rows for _, rows in self.uploads.values())
        if counts["rows"].get("tables", 0) != rows or counts["keys_twice"]:
            self.report_fault(f"{counts['rows']} rows, {counts['keys_twice']} of them twice; uploads have {rows}")
        for run in counts["runs"]:
            if run["kind"] != "import" and run["state"] != "succeeded":
                message = f"run {run['pk']} ({run['title']}) {run['state']}: {run['error']}"
                if self.lost_all_workers(run):
                    self.given_up[run["pk"]] = message
                else:
                    self.report_fault(message)
        for number in self.exports:
            self.check_export(number)
        for backup in self.backups:
            done = self.made.manage("restore", str(backup), "--check", seconds=1200)
            if done.returncode:
                self.report_fault(f"{backup.name}: {done.stderr[-300:]}")
        doctor = json.loads(self.made.manage("doctor", "--json").stdout or "{}")
        for row in doctor.get("checks", []):
            if "audit" in row["name"] and row["state"] == "missing":
                self.report_fault(f"doctor: {row['name']}: {row['found']}")
        for name in WORKERS:
            _, died, message = self.made.log(name).partition("Unrecoverable error")
            if died:
                self.report_fault(f"{name} ended by itself: {message[:600]}")
        log = self.made.log("web")
        if "Traceback" in log:
            self.report_fault(
                f"{log.count('Traceback')} traces in the log of web: {log.partition('Traceback')[2][:600]}"
            )
        # Python removes the folders of multiprocessing (pymp-*) when the worker ends.
        left = [str(path) for path in (self.made.folder / "data/tmp").iterdir() if not path.name.startswith("pymp-")]
        left += [str(path) for path in (self.made.folder / "data/staging").glob("*")]
        if left:
            self.report_fault(f"left behind: {left[:5]}")
        attempts = collections.Counter(run["attempt"] for run in counts["runs"])
        return {"stored": stored, "runs": len(counts["runs"]), "runs_by_attempts": dict(sorted(attempts.items()))}

    def lost_all_workers(self, run: dict[str, Any]) -> bool:
        """Return whether workers were killed so often during the run that it had to fail with this reason."""
        parts = [part for at, part in self.breakdowns if run["created_at"] <= at <= run["finished_at"]]
        losses = sum(part in WORKERS for part in parts)
        return run["state"] == "failed" and "was lost" in run["error"] and losses >= LOSSES

    def check_export(self, number: int) -> None:
        if number in self.given_up:
            return
        export = self.api("GET", f"exports/{number}/")
        if not export.get("archive"):
            self.report_fault(f"export {number} has no archive: {export['state']}")
            return
        with tempfile.TemporaryFile() as file:
            with httpx.stream(
                "GET", export["archive"], headers=self.headers, timeout=120, trust_env=False, follow_redirects=True
            ) as response:
                for part in response.iter_bytes():
                    file.write(part)
            with zipfile.ZipFile(file) as archive:
                if archive.testzip() is not None or not archive.namelist():
                    self.report_fault(f"export {number} is damaged")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    names = [f"annotator{k:03d}" for k in range(options.annotators)]
    items = 50 + int(options.annotators * 60 * options.minutes / options.think / OVERLAP)
    with start_installation("web", *WORKERS, "beat") as made:
        campaign, token = run_django_code(made, PREPARE, items=items, names=names, password=PASSWORD, overlap=OVERLAP)
        soak = Soak(made, options, campaign, token)
        soak.run()
        counts = soak.check()
        if options.keep:
            for path in made.folder.glob("*.log"):
                (options.keep / path.name).write_bytes(path.read_bytes())
    compute_growth = {}
    if len(soak.memory) >= 3:
        middle, end = soak.memory[len(soak.memory) // 2], soak.memory[-1]
        compute_growth = {
            name: round(end[name]["mb"] - middle[name]["mb"], 1) for name in end if name in middle and name != "at_s"
        }
    return {
        "soak_minutes": options.minutes,
        "seed": options.seed,
        "machine": machine(),
        "annotators": options.annotators,
        "confirmed": len(soak.report.sent),
        **counts,
        "done": dict(sorted(soak.counts.items())),
        "requests": soak.report.summarize(),
        "troubles": dict(soak.report.retried_errors),
        "memory": soak.memory,
        "growth_mb_second_half": compute_growth,
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
