"""Assisted means of 100 systems x 10,000 outputs, a tenth judged: weights, joint covariance, intervals, and ranks from
1,000 resamples of groups. Without a peer: ppi-python estimates one mean at a time, without groups and ranks. Prints
JSON.

    python benchmarks/assisted.py [--systems 100] [--outputs 10000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from _texts import machine, spread

from evalapp.stats.assisted.means import estimate_means, rank_by_assisted_mean


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--outputs", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    n = options.systems * options.outputs
    system = np.repeat(np.arange(options.systems), options.outputs)
    item = np.tile(np.arange(options.outputs), options.systems)
    score = rng.normal(size=n)
    rating = 0.5 * score + rng.normal(size=n) + 0.01 * system
    human = np.where(rng.random(n) < 0.1, rating, np.nan)
    seconds, cpu = [], []
    for _ in range(options.repeats):
        began, used = time.perf_counter(), time.process_time()
        ranking = rank_by_assisted_mean(estimate_means(human, score, item, system))
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    assert len(ranking.systems) == options.systems
    print(json.dumps({
        "systems": options.systems, "outputs": options.outputs, "judged": int(np.isfinite(human).sum()),
        "seconds": spread(seconds), "cpu_seconds": spread(cpu), "machine": machine(),
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
