"""Krippendorff's alpha of a million ratings: point estimates against the krippendorff package, and 1,000 resamples.

Ours reads long columns (unit, value); the package is given its finished matrix of raters by units, which it wants, so
making that matrix is not in its time. Rows come sorted by unit, as files are, and once shuffled. Then the interval from
1,000 resamples of units, of clusters of units, and for a slider of 101 values, where units hardly repeat each other.
Seconds on the clock, and of the processor, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import krippendorff
import numpy as np
from _texts import machine, spread

from evalapp.stats import krippendorff_alpha

SCALES = ("nominal", "ordinal", "interval", "ratio")


def make_ratings(units: int, raters: int, values: int, seed: int) -> np.ndarray:
    """Raters by units: a true value, each rater off by at most a step of a short scale, or an eighth of a slider."""
    rng = np.random.default_rng(seed)
    truth, reach = rng.integers(1, values + 1, units), max(values // 8, 1)
    return np.clip(truth + rng.integers(-reach, reach + 1, (raters, units)), 1, values).astype(float)


def timed(work, runs: int):
    wall, processor, result = [], [], None
    for _ in range(runs):
        begin, used = time.perf_counter(), time.process_time()
        result = work()
        wall.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
    return result, wall, processor


def points(given: argparse.Namespace, values: int, shuffled: bool) -> dict:
    """Both point estimates of the same ratings, run by run, on every scale."""
    data = make_ratings(given.ratings // given.raters, given.raters, values, given.seed)
    unit, value = np.repeat(np.arange(data.shape[1]), given.raters), data.T.ravel().copy()
    if shuffled:
        order = np.random.default_rng(given.seed).permutation(len(unit))
        unit, value = unit[order], value[order]
    found = {}
    for scale in SCALES:
        ours, wall, processor = timed(lambda s=scale: krippendorff_alpha(unit, value, scale=s, resamples=0), given.runs)
        peer, peer_wall, peer_processor = timed(
            lambda s=scale: krippendorff.alpha(reliability_data=data, level_of_measurement=s), given.runs
        )
        found[scale] = {
            "seconds": spread(wall),
            "peer_seconds": spread(peer_wall),
            "processor_seconds": spread(processor),
            "peer_processor_seconds": spread(peer_processor),
            "times_faster": spread([p / o for p, o in zip(peer_wall, wall, strict=True)]),
            "times_less_processor": spread([p / max(o, 1e-4) for p, o in zip(peer_processor, processor, strict=True)]),
            "difference": abs(ours.value - float(peer)),
        }
    return found


def resampled(given: argparse.Namespace) -> dict:
    """Seconds of alpha with its interval."""
    found = {}
    for name, values, raters in (("5 points", 5, given.raters), ("slider of 101", 101, 3)):
        data = make_ratings(given.ratings // raters, raters, values, given.seed)
        unit, value = np.repeat(np.arange(data.shape[1]), raters), data.T.ravel().copy()
        cases = {scale: {"scale": scale} for scale in SCALES[: 4 if values == 5 else 3]}
        if values == 5:
            cases["interval, clusters of 10 units"] = {"scale": "interval", "cluster": unit // 10}
        for case, settings in cases.items():
            estimate, wall, processor = timed(
                partial(krippendorff_alpha, unit, value, resamples=given.resamples, seed=given.seed, **settings), 1
            )
            found[f"{name}, {case}"] = {
                "seconds": wall[0],
                "processor_seconds": processor[0],
                "alpha": [estimate.value, estimate.low, estimate.high],
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--raters", type=int, default=5)
    parser.add_argument("--values", type=int, nargs="+", default=[5, 11])
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=13)
    given = parser.parse_args()
    report = {
        "benchmark": "agreement",
        "machine": machine(),
        "ratings": given.ratings,
        "raters": given.raters,
        "runs": given.runs,
        "seed": given.seed,
        "point": {
            f"{values} values, {order}": points(given, values, order == "shuffled")
            for values in given.values
            for order in ("sorted by unit", "shuffled")
        },
        "resamples": given.resamples,
        "interval": resampled(given),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
