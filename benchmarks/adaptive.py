"""The next adaptively chosen pair of 100 systems: updating the ratings after one more judgement, gains of all pairs,
the draw. Milliseconds of clock and CPU time, which other load disturbs less.

For comparison, the same choice with ratings refitted from the rows by choix, as software without a stored state must
do.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import choix
import numpy as np
from _texts import machine, spread

from evalapp.stats.planning.adaptive import PairState, choose_pair


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--before", type=int, default=2000, help="judgements before the first choice measured")
    parser.add_argument("--choices", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()

    found = {}
    for goal in ("ranking", "best"):
        clock, processor = [], []
        for run in range(options.runs):
            rng = np.random.default_rng([options.seed, run])
            theta, state, rows = rng.normal(size=options.systems), PairState(options.systems), []
            ours: list[tuple[float, float]] = []
            for number in range(options.before + options.choices):
                floor = 1.0 if number < options.before else 0.2
                wall, used = time.perf_counter(), time.process_time()
                pair = choose_pair(state, rng, floor=floor, goal=goal)
                if number >= options.before:
                    ours.append((time.perf_counter() - wall, time.process_time() - used))
                won = rng.random() < 1 / (1 + np.exp(theta[pair.b] - theta[pair.a]))
                state.add(pair.a, pair.b, float(won))
                rows.append((pair.a, pair.b) if won else (pair.b, pair.a))
            times = 1000 * np.array(ours)
            clock.append(np.percentile(times[:, 0], [50, 95]))
            processor.append(np.percentile(times[:, 1], [50, 95]))
        wall, used = time.perf_counter(), time.process_time()
        choix.ilsr_pairwise(options.systems, rows, alpha=0.01)
        found[goal] = {
            "clock_ms": {name: spread([row[k] for row in clock]) for k, name in enumerate(("p50", "p95"))},
            "processor_ms": {name: spread([row[k] for row in processor]) for k, name in enumerate(("p50", "p95"))},
            "choix_refit_ms": {
                "clock": 1000 * (time.perf_counter() - wall), "processor": 1000 * (time.process_time() - used)
            },
        }  # fmt: skip
    report = {"benchmark": "adaptive", "machine": machine(), "load": round(os.getloadavg()[0], 1), **vars(options)}
    print(json.dumps(report | {"goals": found}, indent=1))


if __name__ == "__main__":
    main()
