"""All metrics against each other: PERM-BOTH with several coefficients, tie calibration with its pairs variant.

The peer is a plain SciPy implementation: exchange, call its coefficient for both metrics, count; on some of the pairs
and draws, with the same draws, scaled to all. CPU seconds, which other load disturbs less, and clock seconds. Equality
on the common draws is checked to 1e-9.
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
from scipy import stats

from evalapp.stats.correlation.pair_tests import PairTests, Table, build_engine
from evalapp.stats.correlation.significance import compare_all
from evalapp.stats.resampling.exchanges import SwapDraws

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
JOBS = (
    ("pearson", "none"),
    ("pearson", "item"),
    ("spearman", "none"),
    ("spearman", "item"),
    ("kendall", "none"),
    ("kendall", "item"),
    ("acc-eq", "item"),
)


def make_scores(metrics: int, outputs: int, systems: int, seed: int):
    """Metrics of decreasing quality, human means of three raters on a scale of five."""
    rng = np.random.default_rng(seed)
    item, system = np.divmod(np.arange(outputs), systems)
    quality = rng.normal(size=outputs) + 0.2 * system
    ratings = np.clip(np.round(3 + quality[:, None] + 0.7 * rng.normal(size=(outputs, 3))), 1, 5)
    scores = {f"m{k:02}": quality + (0.5 + 0.2 * k) * rng.normal(size=outputs) for k in range(metrics)}
    return scores, ratings.mean(axis=1), item, system


def timed(work):
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def by_scipy(one, two, human, item, swapped, coefficient, grouping):
    """Differences of the coefficient after each exchange."""
    measure = SCIPY[coefficient]
    rows = [np.arange(len(human))] if grouping == "none" else [np.flatnonzero(item == i) for i in np.unique(item)]
    rows = [row for row in rows if np.ptp(human[row]) > 0]
    found = []
    for exchange in swapped.T:
        a, b = np.where(exchange, two, one), np.where(exchange, one, two)
        sides = [np.mean([measure(side[row], human[row])[0] for row in rows]) for side in (a, b)]
        found.append(sides[0] - sides[1])
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--outputs", type=int, default=2000)
    parser.add_argument("--systems", type=int, default=5)
    parser.add_argument("--k", type=int, default=1000)
    parser.add_argument("--peer-draws", type=int, default=40, help="exchanges that the peer computes for a pair")
    parser.add_argument("--jobs", nargs="*", default=[" ".join(job) for job in JOBS], help="as 'pearson item'")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    given = parser.parse_args()

    scores, human, item, system = make_scores(given.metrics, given.outputs, given.systems, given.seed)
    pairs = given.metrics * (given.metrics - 1) // 2
    report = {
        "benchmark": "meta_evaluation",
        "machine": machine(),
        "metrics": given.metrics,
        "outputs": given.outputs,
        "systems": given.systems,
        "pairs": pairs,
        "k": given.k,
        "peer_draws": given.peer_draws,
        "runs": given.runs,
        "jobs": {},
    }
    for coefficient, grouping in (job.split() for job in given.jobs):
        options = {"coefficient": coefficient, "grouping": grouping}
        clock, processor, peer, ratio = [], [], [], []
        difference = None
        for _ in range(given.runs):
            found, wall, used = timed(
                lambda options=options: compare_all(
                    scores,
                    human,
                    item,
                    system,
                    tests=PairTests(k=given.k, seed=given.seed, test="perm-both", **options),
                )
            )
            clock.append(wall)
            processor.append(used)
            if coefficient in SCIPY:
                # With groups, the peer makes hundreds of calls per draw, so it gets fewer draws.
                n = given.peer_draws if grouping == "none" else max(given.peer_draws // 20, 1)
                two = np.stack([scores[name] for name in found.names[:2]], axis=1)
                table = Table(two, human, item, system, item, False)
                settings = PairTests(k=given.k, seed=given.seed, test="perm-both", **options)
                engine, _ = build_engine(table, (), settings)
                swapped = SwapDraws(given.outputs, given.seed).take(n)
                z = (table.scores - table.scores.mean(axis=0)) / table.scores.std(axis=0)
                drawn, _, taken = timed(
                    lambda z=z, t=table, s=swapped, c=coefficient, g=grouping: by_scipy(
                        z[:, 0], z[:, 1], t.human, t.item, s, c, g
                    )
                )
                difference = float(np.abs(drawn - engine(swapped, [(0, 1)])[0]).max())
                peer.append(taken / n * given.k * pairs)
                ratio.append(peer[-1] / used)
        report["jobs"][f"{coefficient} {grouping}"] = {
            "seconds": spread(clock),
            "processor_seconds": spread(processor),
            "scipy_processor_seconds_scaled": spread(peer) if peer else None,
            "times_faster_than_scipy": spread(ratio) if ratio else None,
            "largest_difference": difference,
            "ranks": len(set(found.rank)),
        }
    report["processor_seconds_all_jobs"] = sum(job["processor_seconds"]["median"] for job in report["jobs"].values())
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
