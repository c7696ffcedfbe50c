"""The resources that an installation needs: memory of each process of docker-compose.yml when idle and when working,
and the disk space of outputs, scores, judgements, an export and a backup on PostgreSQL. Prints JSON;
docs/operations/sizing.md is based on it.

    python benchmarks/sizing.py [--outputs 100000] [--judgements 2000]

Shared memory is counted once (proportional set size); `peak` is the maximum of samples every half second. The workers
do the work sequentially: an upload, two baselines, BERTScore of a part, an export, a backup, an online score that keeps
the encoder warm.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx

from benchmarks._stack import cpu, machine, memory, run_django_code, start_installation

SYSTEMS = 10
PREPARE = """
from evalapp.accounts.models import User
from evalapp.accounts.services import create_token
owner = User.objects.create_user(username="olga", password="owner-of-the-benchmark", is_superuser=True)
print(json.dumps(create_token(user=owner, name="sizing", scopes=["read", "write", "manage"], days=1)[1]))
"""
BYTES = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("VACUUM")
    cursor.execute("SELECT pg_database_size(current_database())")
    print(json.dumps(cursor.fetchone()[0]))
"""
JUDGE = """
from uuid import uuid4
from annotation.services.campaigns import create_campaign, open_campaign
from annotation.services.judging import get_next_assignment, submit_answer
from evalapp.accounts.models import Membership, Project, User
project = Project.objects.get(slug="sizing")
user = User.objects.create_user(username="anna")
Membership.objects.create(project=project, user=user, role="annotator", pseudonym="p-anna")
aspect = {"name": "grade", "question": "How good?", "low": 1, "high": 5}
plan = {"name": "Sizing", "kind": "likert", "overlap": 1, "aspects": [aspect]}
campaign = open_campaign(campaign=create_campaign(project=project, user=None, plan=plan), user=None, here=True)
shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
for _ in range(count):
    more = {"public": shown.public, "submission": uuid4(), "answer": {"grade": 3}}
    shown = submit_answer(user=user, then="next", **more).next
print(json.dumps(campaign.unit_count))
"""
WORDS = [f"{a}{b}" for a in ("ba", "do", "ki", "lu", "me", "no", "ra", "si") for b in ("n", "r", "st", "t", "m", "l")]


class Watch:
    """The peak memory of each service during an action."""

    def __init__(self, made: Any) -> None:
        self.made, self.rows = made, []

    def during(self, name: str, what: Callable[[], Any]) -> Any:
        over, peaks = threading.Event(), {}

        def look() -> None:
            while not over.wait(0.5):
                for service, sizes in memory(self.made).items():
                    peaks[service] = max(peaks.get(service, 0.0), sizes["mb"])

        before, started = cpu(self.made), time.perf_counter()
        watching = threading.Thread(target=look)
        watching.start()
        try:
            found = what()
        finally:
            over.set()
            watching.join()
        spent = {service: round(value - before[service], 1) for service, value in cpu(self.made).items()}
        seconds = round(time.perf_counter() - started, 1)
        row = {
            "work": name,
            "seconds": seconds,
            "peak_mb": peaks,
            "cpu_s": {k: v for k, v in spent.items() if v >= 0.5},
        }
        self.rows.append(row)
        return found


def write_tables(items: int) -> dict[str, str]:
    """Contexts of two turns, one reference, outputs of 12 words on average: typical dialogue data."""
    draw = random.Random(13)

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(6, 18)))

    rows = [{"id": f"item-{k:07d}", "context": [text(), text()], "references": [text()]} for k in range(items)]
    outputs = [{"item": row["id"], "system": f"system-{s}", "text": text()} for row in rows for s in range(SYSTEMS)]
    return {
        "items.jsonl": "\n".join(map(json.dumps, rows)) + "\n",
        "outputs.jsonl": "\n".join(map(json.dumps, outputs)) + "\n",
    }


class Program:
    """The API requests of a program."""

    def __init__(self, made: Any, token: str) -> None:
        self.base, self.headers = f"{made.url}/api/v1/", {"Authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, **more: Any) -> Any:
        answer = httpx.request(method, self.base + path, headers=self.headers, timeout=600, trust_env=False, **more)
        if answer.status_code >= 400:
            raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()

    def until(self, path: str, good: str, bad: set[str]) -> dict[str, Any]:
        while True:
            found = self.ask("GET", path)
            if found["state"] == good:
                return found
            if found["state"] in bad:
                raise SystemExit(f"{path}: {found}")
            time.sleep(0.5)

    def run(self, path: str, **wishes: Any) -> dict[str, Any]:
        number = self.ask("POST", path, json=wishes)["id"]
        return self.until(f"runs/{number}/", "succeeded", {"failed", "cancelled"})


def measure(options: argparse.Namespace) -> dict[str, Any]:
    disk: dict[str, float] = {}
    with start_installation("web", "worker-cpu", "worker-gpu", "worker-train", "worker-live", "beat") as made:
        token = run_django_code(made, PREPARE)
        program, watch = Program(made, token), Watch(made)
        program.ask("GET", "projects/")
        time.sleep(5)
        idle = memory(made)
        size = run_django_code(made, BYTES)
        disk["empty database"] = size

        def grown(name: str) -> None:
            nonlocal size
            now = run_django_code(made, BYTES)
            disk[name], size = now - size, now

        program.ask("POST", "projects/", json={"slug": "sizing", "name": "Sizing", "task": "dialogue"})
        files = write_tables(options.outputs // SYSTEMS)
        disk["upload"] = sum(map(len, files.values()))

        def upload() -> None:
            parts = [("file", (name, text.encode())) for name, text in files.items()]
            number = program.ask("POST", "projects/sizing/uploads/", files=parts)["id"]
            program.until(f"uploads/{number}/", "done", {"faulty", "failed"})

        watch.during("upload", upload)
        grown("outputs with their items")
        runs = "projects/sizing/runs/"
        for name in ("bleu-4", "chrf"):
            watch.during(name, lambda name=name: program.run(runs, kind="score", evaluator=name))
        grown("two sets of scores")
        units = watch.during("campaign and judgements", lambda: run_django_code(made, JUDGE, count=options.judgements))
        grown("campaign with its judgements")
        watch.during("export", lambda: program.run("projects/sizing/exports/", format="jsonl"))
        exports = (made.folder / "data/exports").rglob("*")
        disk["export, as files and as one archive"] = sum(path.stat().st_size for path in exports if path.is_file())
        backup = made.folder / "backup"
        done = watch.during("backup", lambda: made.manage("backup", str(backup), "--json", seconds=3600))
        if done.returncode == 0:
            disk["backup"] = backup.stat().st_size
        watch.during("online score", lambda: online(program))
        watch.during("bertscore", lambda: bertscore(program))
        time.sleep(5)
        after = memory(made)
    return {
        "benchmark": "sizing",
        "machine": machine(),
        "outputs": options.outputs,
        "judgements": options.judgements,
        "units": units,
        "idle_mb": {name: row["mb"] for name, row in idle.items()},
        "processes": {name: row["processes"] for name, row in idle.items()},
        "after_mb": {name: row["mb"] for name, row in after.items()},
        "work": watch.rows,
        "disk_bytes": disk,
    }


def online(program: Program) -> None:
    """Request an online score; the first may take longer than a page would wait, because the model is loaded."""
    pairs = [{"text": "I am fine, thank you.", "references": ["Fine, thanks.", "Good."]}] * 16
    until = time.monotonic() + 300
    while time.monotonic() < until:
        address = f"{program.base}evaluators/bertscore/score/"
        answer = httpx.post(address, headers=program.headers, json={"pairs": pairs}, timeout=60, trust_env=False)
        if answer.status_code == 200:
            return
        time.sleep(1)
    raise SystemExit(f"no online score: {answer.status_code} {answer.text[:300]}")


def bertscore(program: Program) -> None:
    """For a small separate project: the encoder takes the same memory for a few texts as for many."""
    program.ask("POST", "projects/", json={"slug": "few", "name": "Few", "task": "dialogue"})
    parts = [("file", (name, text.encode())) for name, text in write_tables(20).items()]
    number = program.ask("POST", "projects/few/uploads/", files=parts)["id"]
    program.until(f"uploads/{number}/", "done", {"faulty", "failed"})
    program.run("projects/few/runs/", kind="score", evaluator="bertscore")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=int, default=100_000)
    parser.add_argument("--judgements", type=int, default=2000)
    print(json.dumps(measure(parser.parse_args()), indent=1))


if __name__ == "__main__":
    main()
