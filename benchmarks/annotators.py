"""Two hundred annotators who think for five seconds, for five minutes, on the processes of docker-compose.yml with
PostgreSQL, Redis, four web processes, three workers and beat, all on one machine together with the annotators.
Prints JSON: times of each kind of request, errors, the CPU cost of a judgement, the memory of each service at the
start, in the middle and at the end, and a check of the database afterwards.

    python benchmarks/annotators.py [--annotators 200] [--seconds 300] [--think 5]

They sign in by the form and then behave like browsers: they save a draft while they think, send the answer with a
submission id (one in 25 twice), get the text after the next with its confirmation, and sometimes open another page.
Targets: no error, p95 below 300 ms, flat memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._stack import cpu, machine, memory, run_django_code, start_installation
from tests.services.annotators import Behaviour, Report, run_crowd

PASSWORD = "annotator-of-the-benchmark"
OVERLAP = 3
PREPARE = """
from tests.services.annotators import make_crowd_project
print(json.dumps(make_crowd_project(items, names, password, overlap)))
"""
VERIFY = """
from tests.services.annotators import count_violations
sent = json.loads(open(path).read())
print(json.dumps(count_violations(campaign, sent)))
"""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    names = [f"annotator{k:03d}" for k in range(options.annotators)]
    expected = int(options.annotators * options.seconds / max(0.1, options.think))
    items = options.items or 100 + expected // (2 * OVERLAP) * 2
    report = Report()
    looks: list[dict[str, Any]] = []
    with start_installation(
        "web",
        "worker-cpu",
        "worker-gpu",
        "worker-train",
        "worker-live",
        "beat",
        variables={"WEB_WORKERS": str(options.workers)},
    ) as made:
        campaign = run_django_code(made, PREPARE, items=items, names=names, password=PASSWORD, overlap=OVERLAP)
        before: dict[str, float] = {}

        def look() -> None:
            looks.append({"at_s": round(time.perf_counter() - began, 1), **memory(made)})

        def started() -> None:
            nonlocal began
            began = time.perf_counter()
            before.update(cpu(made), people=time.process_time())
            # The first time early, but after each process has served all annotators once.
            for part in (0.1, 0.55, 0.97):
                timer = threading.Timer(part * options.seconds, look)
                timer.daemon = True
                timer.start()

        began = time.perf_counter()
        behaviour = Behaviour(think=options.think)
        asyncio.run(run_crowd(made.url, names, PASSWORD, campaign, options.seconds, behaviour, report, started=started))
        took = time.perf_counter() - began
        spent = {name: value - before[name] for name, value in {**cpu(made), "people": time.process_time()}.items()}
        path = made.folder / "sent.json"
        path.write_text(json.dumps(report.sent))
        found = run_django_code(made, VERIFY, campaign=campaign, path=str(path))
        traces = {name: find_errors(made.log(name)) for name in made.pids()}
    return {
        "benchmark": "annotators",
        "machine": machine(),
        "annotators": options.annotators,
        "seconds": round(took, 1),
        "think_s": options.think,
        "web_workers": options.workers,
        "items": items,
        "judgements": len(report.sent),
        "judgements_per_s": round(len(report.sent) / took, 1),
        "requests": report.summarize(),
        "errors": dict(report.errors),
        "cpu_ms_per_judgement": {name: round(1000 * s / max(1, len(report.sent)), 1) for name, s in spent.items()},
        "memory": looks,
        "growth_mb": compute_growth(looks),
        "log": {name: lines for name, lines in traces.items() if lines},
        "database": found,
    }


def find_errors(log: str) -> list[str]:
    """Return the first lines of a log that report an error, shortened."""
    lines = [line for line in log.splitlines() if '"ERROR"' in line or "Traceback" in line]
    return [line if len(line) < 600 else f"{line[:300]} ... {line[-300:]}" for line in lines[:3]]


def compute_growth(looks: list[dict[str, Any]]) -> dict[str, float]:
    """Return for each service the growth from the middle to the end, in megabytes."""
    if len(looks) < 3:
        return {}
    middle, end = looks[-2:]
    return {name: round(end[name]["mb"] - middle[name]["mb"], 1) for name in end if name != "at_s"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--think", type=float, default=5.0, help="seconds for a text, half to one and a half times")
    parser.add_argument("--workers", type=int, default=4, help="gunicorn processes")
    parser.add_argument("--items", type=int, default=0, help="default: about twice as many as will be judged")
    print(json.dumps(measure(parser.parse_args()), indent=1))


if __name__ == "__main__":
    main()
