"""The page on which references are written, without candidates and score, which are loaded afterwards: over real HTTP,
gunicorn and a temporary database, no live worker. Prints JSON: p50, p95, CPU time of the web process per page.

    python benchmarks/reference_page.py [--references 10 200] [--requests 40]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _texts import machine
from _writing import WritingInstallation, sign_in_client, start_writing_installation

AIM_MS = 150


def ask(found: WritingInstallation, requests: int) -> dict[str, Any]:
    """Each person's page in turn; the first requests load code and fill caches."""
    import httpx

    times: list[float] = []
    used = 0.0
    for person in found.people:
        with sign_in_client(found, person, httpx.Client) as client:
            path = f"/my/writing/{person['campaign']}/{person['public']}/"
            for number in range(requests + 3):
                if number == 3:
                    used -= found.cpu_seconds()["web"]
                started = time.perf_counter()
                answer = client.get(path)
                if number >= 3:
                    times.append(1000 * (time.perf_counter() - started))
                if answer.status_code != 200 or person["public"] not in answer.text:
                    raise SystemExit(f"{path} answered {answer.status_code}: {answer.text[:500]}")
            used += found.cpu_seconds()["web"]
    return {
        "n": len(times),
        "p50_ms": round(statistics.median(times), 1),
        "p95_ms": round(statistics.quantiles(times, n=20)[-1], 1),
        "max_ms": round(max(times), 1),
        "cpu_ms_each": round(1000 * used / len(times), 1),
        "bytes": len(answer.content),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="an interchange folder; without it own sentences")
    parser.add_argument("--references", type=int, nargs="+", default=[10, 200], help="in the set of the item")
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    pages = {}
    for references in options.references:
        with start_writing_installation(2, references, options.seed, options.data, live=False) as found:
            pages[f"{references} references"] = ask(found, options.requests)
    print(
        json.dumps(
            {"benchmark": "reference page", "machine": machine(), "pages": pages, "aim_p95_ms": AIM_MS}, indent=1
        )
    )


if __name__ == "__main__":
    main()
