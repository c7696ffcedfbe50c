"""Bootstrap intervals of all coefficients for a large number of evaluators: Pearson, Spearman, Kendall b and c over all
outputs.

Evaluators go through `correlate` two at a time, in threads. The peer calls SciPy's coefficients in a loop over
resamples, on a few of the same draws, scaled to all; equality on these draws is checked. Clock and CPU seconds, and the
maximum resident size.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from _texts import machine, spread
from meta_evaluation import make_scores, timed
from scipy import stats

from evalapp.stats.correlation.coefficients import ALL_COEFFICIENTS
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate, resample_correlation
from evalapp.stats.resampling.bootstrap import Bootstrap, ClusterDraws

SCIPY = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
    "kendall-c": partial(stats.kendalltau, variant="c"),
}


def compute_by_scipy(metric, human, item, draws):
    """All coefficients in some resamples of items, and their CPU seconds."""
    order = np.argsort(item, kind="stable")
    starts = np.searchsorted(item[order], np.arange(len(draws)))
    ends = np.append(starts[1:], len(item))
    begin = time.process_time()
    found = []
    for column in draws.T.astype(int):
        rows = np.concatenate([order[starts[i] : ends[i]] for i in np.repeat(np.arange(len(draws)), column)])
        found.append([SCIPY[name](metric[rows], human[rows])[0] for name in ALL_COEFFICIENTS])
    return np.array(found), time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluators", type=int, default=30)
    parser.add_argument("--outputs", type=int, default=10_000)
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--peer-draws", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()

    scores, human, item, system = make_scores(options.evaluators, options.outputs, options.systems, options.seed)

    def compute_metric(metric):
        return correlate(
            metric,
            human,
            item,
            system,
            settings=CorrelationSettings(coefficients=ALL_COEFFICIENTS),
            bootstrap=Bootstrap(resamples=options.resamples, seed=options.seed),
        )

    def compute_all():
        with ThreadPoolExecutor(options.threads) as pool:
            return list(pool.map(compute_metric, scores.values()))

    clock, processor, peer, ratio = [], [], [], []
    for _ in range(options.runs):
        _, wall, used = timed(compute_all)
        clock.append(wall)
        processor.append(used)
        draws = ClusterDraws(int(item.max()) + 1, options.seed).take(options.peer_draws)
        theirs, taken = compute_by_scipy(scores["m00"], human, item, draws)
        peer.append(taken / options.peer_draws * options.resamples * options.evaluators)
        ratio.append(peer[-1] / used)
    ours = [
        resample_correlation(
            scores["m00"],
            human,
            item,
            system,
            settings=CorrelationSettings(coefficients=(name,)),
            bootstrap=Bootstrap(resamples=options.peer_draws, seed=options.seed),
        )[1]
        for name in ALL_COEFFICIENTS
    ]
    report = {
        "benchmark": "bootstrap",
        "machine": machine(),
        "evaluators": options.evaluators,
        "outputs": options.outputs,
        "resamples": options.resamples,
        "coefficients": list(ALL_COEFFICIENTS),
        "threads": options.threads,
        "runs": options.runs,
        "seconds": spread(clock),
        "processor_seconds": spread(processor),
        "scipy_processor_seconds_scaled": spread(peer),
        "times_faster_than_scipy": spread(ratio),
        "largest_difference": float(np.abs(theirs - np.stack(ours, axis=1)).max()),
        "most_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
