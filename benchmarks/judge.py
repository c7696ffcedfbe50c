"""Fifty annotators at once: next + submit over real HTTP, gunicorn and a temporary database. Prints JSON: pairs per
second, latencies, errors, and whether anything was lost or exceeded its overlap.

    python benchmarks/judge.py [--items 10000] [--seconds 30] [--think 0] [--database postgres|sqlite]

Everything is started here, on free ports and in a temporary folder, and stopped again; the database is durable, as in
production. Client and server share the machine. `--split` requests the next text in a separate call (like the peers);
by default a submit returns the next one. `--think` is the pause before each answer in seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SLUG, PASSWORD = "bench", "bench-annotator-password"
HEADS = ("the", "a", "one", "this", "that", "our", "their", "new", "old", "small", "large", "quiet")
NOUNS = ("model", "answer", "speaker", "question", "city", "river", "teacher", "engine", "letter", "garden", "winter")
VERBS = ("explains", "ignores", "repeats", "follows", "improves", "delays", "describes", "avoids", "answers")


def sentence(draw: random.Random, number: int) -> str:
    """About 200 characters, like the texts used to measure the peers."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) < 190:
        words += [draw.choice(HEADS), draw.choice(NOUNS), draw.choice(VERBS), draw.choice(HEADS), draw.choice(NOUNS)]
    return " ".join(words)[:192] + f" #{number:06d}"


# ---- inside Django ----------------------------------------------------------------------------------------


def prepare(items: int, users: int, overlap: int) -> dict[str, Any]:
    """A project, people with sessions, items with one output each, an open campaign."""
    import django

    django.setup()
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.hashers import make_password
    from django.contrib.sessions.backends.db import SessionStore

    from annotation.models import Item, Output, System
    from annotation.services.campaigns import create_campaign, open_campaign
    from evalapp.accounts.models import Membership, Project, User

    project = Project.objects.create(slug=SLUG, name="Benchmark")
    secret = make_password(PASSWORD)
    people = User.objects.bulk_create([User(username=f"annotator{k:03d}", password=secret) for k in range(users)])
    Membership.objects.bulk_create(
        [Membership(project=project, user=row, role="annotator", pseudonym=f"r{k:03d}") for k, row in enumerate(people)]
    )
    system = System.objects.create(project=project, name="system-under-test")
    draw = random.Random(7)
    for start in range(0, items, 10_000):
        rows = Item.objects.bulk_create(
            [
                Item(project=project, key=f"item_{k:07d}", context=["How was your day?"], group=f"g{k}")
                for k in range(start, min(items, start + 10_000))
            ]
        )
        Output.objects.bulk_create(
            [Output(project=project, item=row, system=system, text=sentence(draw, k)) for k, row in enumerate(rows)]
        )
    plan = {
        "name": "Benchmark",
        "kind": "likert",
        "overlap": overlap,
        "aspects": [{"name": "quality", "question": "How good is this text?", "low": 1, "high": 5}],
    }
    campaign = create_campaign(project=project, user=None, plan=plan)
    started = time.perf_counter()
    campaign = open_campaign(campaign=campaign, user=None, here=True)
    opened = time.perf_counter() - started
    cookies = []
    for row in people:
        session = SessionStore()
        session[SESSION_KEY] = str(row.pk)
        session[BACKEND_SESSION_KEY] = "evalapp.accounts.backends.PasswordBackend"
        session[HASH_SESSION_KEY] = row.get_session_auth_hash()
        session.create()
        cookies.append(session.session_key)
    return {"campaign": campaign.pk, "cookies": cookies, "open_seconds": round(opened, 2), "units": campaign.unit_count}


def verify(campaign: int) -> dict[str, Any]:
    """Checks the database afterwards."""
    import django

    django.setup()
    from django.db.models import Count

    from annotation.models import Assignment, Campaign, Judgement, Rating

    row = Campaign.objects.get(pk=campaign)
    held = Assignment.objects.filter(campaign=row, state__in=["open", "submitted"])
    over = held.filter(slot__isnull=False).values("unit").annotate(n=Count("pk")).filter(n__gt=row.overlap).count()
    twice = held.values("unit", "annotator", "repeat_number").annotate(n=Count("pk")).filter(n__gt=1).count()
    stored = Judgement.objects.filter(campaign=row, current=True)
    return {
        "stored": stored.count(),
        "ratings": Rating.objects.filter(project=row.project).count(),
        "extra": stored.filter(extra=True).count(),
        "units_over_overlap": over,
        "same_unit_twice_for_one_person": twice,
        "submissions": [value.hex for value in stored.values_list("submission", flat=True)],
    }


# ---- the annotators ---------------------------------------------------------------------------------------


async def share(base: str, plan: dict[str, Any], numbers: list[int], seconds: float, think: float, split: bool) -> dict:
    """The annotators in a client process, in a closed loop."""
    import httpx

    plain = httpx.create_ssl_context(verify=False)  # not needed, and one per person would cost a second of CPU
    times: dict[str, list[float]] = {"next": [], "submit": []}
    errors: collections.Counter[str] = collections.Counter()
    sent: list[str] = []
    inside = 0
    used = time.process_time()
    end = time.perf_counter() + seconds

    async def annotator(number: int) -> None:
        nonlocal inside
        draw = random.Random(number)
        token = "b" * 32
        async with httpx.AsyncClient(
            base_url=base,
            timeout=60,
            verify=plain,
            cookies={"sessionid": plan["cookies"][number], "csrftoken": token},
            headers={"X-CSRFToken": token},
        ) as client:
            await asyncio.sleep(draw.random() * min(think, 1.0))
            address = f"/api/v1/campaigns/{plan['campaign']}/next/"
            assignment: dict | None = None
            while time.perf_counter() < end:
                try:
                    if assignment is None:
                        started = time.perf_counter()
                        answer = await client.post(address)
                        times["next"].append(time.perf_counter() - started)
                        if answer.status_code == 204:
                            return
                        answer.raise_for_status()
                        assignment = answer.json()
                    if think:
                        await asyncio.sleep(think)
                    number_of_answer = uuid.uuid4().hex
                    body = {"submission": number_of_answer, "answer": {"quality": draw.randint(1, 5)}, "seconds": think}
                    if not split:
                        body["next"] = True
                    started = time.perf_counter()
                    answer = await client.post(f"/api/v1/assignments/{assignment['id']}/submit/", json=body)
                    now = time.perf_counter()
                    times["submit"].append(now - started)
                    answer.raise_for_status()
                    sent.append(number_of_answer)
                    inside += now <= end
                    assignment = None if split else answer.json()["next"]
                except httpx.HTTPError as error:
                    errors[f"{type(error).__name__}: {error}"[:200]] += 1
                    assignment = None
                    await asyncio.sleep(0.05)

    await asyncio.gather(*(annotator(number) for number in numbers))
    return {
        "times": times,
        "errors": dict(errors),
        "sent": sent,
        "inside": inside,
        "cpu": time.process_time() - used,
    }


def client(out: Any, *arguments: Any) -> None:
    out.put(asyncio.run(share(*arguments)))


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {"n": 0}

    def at(share_below: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share_below * len(ordered)))], 1)

    return {"n": len(ordered), "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99), "max_ms": at(1.0)}


def drive(base: str, plan: dict[str, Any], options: argparse.Namespace, think: float) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    groups = [list(range(k, options.users, options.procs)) for k in range(options.procs)]
    children = [
        context.Process(target=client, args=(out, base, plan, group, options.seconds, think, options.split))
        for group in groups
    ]
    for child in children:
        child.start()
    parts = [out.get() for _ in children]
    for child in children:
        child.join()
    errors = sum((collections.Counter(part["errors"]) for part in parts), collections.Counter())
    return {
        "pairs_per_s": round(sum(part["inside"] for part in parts) / options.seconds, 1),
        "next": spread([value for part in parts for value in part["times"]["next"]]),
        "submit": spread([value for part in parts for value in part["times"]["submit"]]),
        "errors": sum(errors.values()),
        "error_kinds": dict(errors.most_common(5)),
        "client_cpu_s": sum(part["cpu"] for part in parts),
        "sent": [number for part in parts for number in part["sent"]],
    }


# ---- the servers ------------------------------------------------------------------------------------------


def run_in_django(env: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Runs this file in a process with Django."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def gunicorn(options: argparse.Namespace, port: int) -> list[str]:
    return [
        sys.executable, "-m", "gunicorn", "evalapp.wsgi:application", "--bind", f"127.0.0.1:{port}", "--preload",
        "--workers", str(options.workers), "--worker-class", "evalapp.ops.web.Worker",
        "--threads", str(options.threads),
        "--timeout", "60", "--keep-alive", "15", "--log-level", "warning", "--no-control-socket",
    ]  # fmt: skip


def cpu_seconds(pids: dict[str, int]) -> dict[str, float]:
    """CPU seconds used so far by each process tree: the cost of a pair, independent of other load on the machine."""
    import psutil

    found = {}
    for name, pid in pids.items():
        tree = [psutil.Process(pid)]
        tree += tree[0].children(recursive=True)
        times = [row.cpu_times() for row in tree if row.is_running()]
        found[name] = sum(row.user + row.system + row.children_user + row.children_system for row in times)
    return found


def postgres_pid(url: str) -> int:
    """The postmaster that listens at `url`."""
    import psutil

    port = int(url.rsplit(":", 1)[1].split("/")[0])
    me = psutil.Process()
    for child in me.children():
        if any(row.laddr.port == port for row in child.net_connections() if row.status == psutil.CONN_LISTEN):
            return child.pid
    raise SystemExit(f"no child of this process listens on port {port}")


def warm_up(base: str, plan: dict[str, Any], workers: int) -> None:
    """Lets every worker load its code before the clock starts, as in a running installation."""
    import httpx

    for number in range(20 * workers):
        cookie = plan["cookies"][number % len(plan["cookies"])]
        address = f"{base}/api/v1/assignments/?campaign={plan['campaign']}"
        httpx.get(address, cookies={"sessionid": cookie}, timeout=60).raise_for_status()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    from evalapp.ops.ports import answers, find_free_port, wait_until
    from evalapp.ops.processes import Family
    from tests.services.run import start_servers

    names = ["postgres"] if options.database == "postgres" else []
    with tempfile.TemporaryDirectory(prefix="evalapp-judge-") as folder, start_servers(names, durable=True) as servers:
        if names and "TEST_DATABASE_URL" not in servers:
            raise SystemExit("PostgreSQL is unavailable here; use --database sqlite")
        env = {**os.environ, "EVALAPP_DATA": folder, "DJANGO_SETTINGS_MODULE": "evalapp.settings"}
        env.pop("DATABASE_URL", None)
        if names:
            env["DATABASE_URL"] = servers["TEST_DATABASE_URL"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], env=env, cwd=ROOT, check=True, **quiet)
        plan = run_in_django(env, "prepare", str(options.items), str(options.users), str(options.overlap))
        port = find_free_port()
        with Family() as family, Path(folder, "web.log").open("wb") as log:
            web = family.spawn("web", gunicorn(options, port), env=env, cwd=ROOT, output=log)
            if not wait_until(lambda: answers("127.0.0.1", port), 30):
                raise SystemExit(Path(folder, "web.log").read_text()[-2000:])
            warm_up(f"http://127.0.0.1:{port}", plan, options.workers)
            pids = {"web": web.pid} | ({"database": postgres_pid(env["DATABASE_URL"])} if names else {})
            rounds = []
            for think in [value for value in options.think for _ in range(options.repeat)]:
                before = cpu_seconds(pids)
                row = drive(f"http://127.0.0.1:{port}", plan, options, think)
                pairs = max(1, row["submit"]["n"])
                spent = {name: value - before[name] for name, value in cpu_seconds(pids).items()}
                spent["client"] = row.pop("client_cpu_s")
                row["cpu_ms_per_pair"] = {name: round(1000 * value / pairs, 2) for name, value in spent.items()}
                rounds.append(row)
        found = run_in_django(env, "verify", str(plan["campaign"]))
    stored = set(found.pop("submissions"))
    acknowledged = [number for row in rounds for number in row.pop("sent")]
    for think, row in zip([t for t in options.think for _ in range(options.repeat)], rounds, strict=True):
        row["think_s"] = think
    rates = sorted(row["pairs_per_s"] for row in rounds if not row["think_s"])
    return {
        "benchmark": "judge",
        "items": options.items,
        "users": options.users,
        "overlap": options.overlap,
        "database": options.database,
        "calls_per_pair": 2 if options.split else 1,
        "workers": options.workers,
        "threads": options.threads,
        "seconds": options.seconds,
        "open_seconds": plan["open_seconds"],
        "rounds": rounds,
        "pairs_per_s": {"min": rates[0], "median": rates[len(rates) // 2], "max": rates[-1]} if rates else None,
        "acknowledged": len(acknowledged),
        "lost": sum(number not in stored for number in acknowledged),
        **found,
    }


def main() -> None:
    if sys.argv[1:2] == ["prepare"]:
        print(json.dumps(prepare(*map(int, sys.argv[2:5]))))
        return
    if sys.argv[1:2] == ["verify"]:
        print(json.dumps(verify(int(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--overlap", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--think", type=float, nargs="+", default=[0.0], help="seconds before each answer")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--database", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--split", action="store_true", help="next and submit as two calls")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--procs", type=int, default=1, help="client processes")
    print(json.dumps(measure(parser.parse_args()), indent=1))


if __name__ == "__main__":
    main()
