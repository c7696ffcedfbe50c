"""Davidson and Bradley-Terry from columns of a million comparisons of 100 systems, with sandwich intervals and ranks,
against choix and a general optimiser.

Ours is the complete `rank_by_comparisons`: coding of names and verdicts, check of links, fit, sandwich, rank sets.
choix has no ties and gets the decided comparisons as a prepared list of (winner, loser). The reference is SciPy's BFGS
on the same likelihood with its gradient. Clock and CPU seconds, which other load disturbs less.
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
from scipy.optimize import minimize

from evalapp.stats.ranking.bradley_terry import ELO, ELO_ZERO
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons


def draw(systems: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Davidson's model, nu = e^-1/2, strengths with standard deviation 1/2."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 0.5, systems)
    a = rng.integers(systems, size=n)
    b = (a + rng.integers(1, systems, size=n)) % systems
    eta = theta[a] - theta[b]
    parts = np.exp(np.stack([eta / 2, np.full(n, -0.5), -eta / 2], axis=1))
    ends = (parts / parts.sum(axis=1, keepdims=True)).cumsum(axis=1)
    return a, b, np.array(["a", "tie", "b"])[(rng.random(n)[:, None] > ends).sum(axis=1)]


def reference(a: np.ndarray, b: np.ndarray, verdict: np.ndarray, k: int) -> np.ndarray:
    """Davidson's theta by a general optimiser, from counts per ordered pair."""
    counts = np.stack(
        [np.bincount(k * a + b, weights=verdict == v, minlength=k * k) for v in ("a", "tie", "b")], axis=1
    )
    one, two = np.divmod(np.arange(k * k), k)

    def objective(beta: np.ndarray) -> tuple[float, np.ndarray]:
        eta = beta[one] - beta[two]
        parts = np.exp(np.stack([eta / 2, np.full(k * k, beta[k]), -eta / 2], axis=1))
        chance = parts / parts.sum(axis=1, keepdims=True)
        left = counts - counts.sum(axis=1, keepdims=True) * chance
        by_eta = (left[:, 0] - left[:, 2]) / 2
        gradient = np.bincount(one, by_eta, k) - np.bincount(two, by_eta, k)
        scale = counts.sum()
        return -(counts * np.log(chance)).sum() / scale, -np.append(gradient, left[:, 1].sum()) / scale

    found = minimize(objective, np.zeros(k + 1), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 2000})
    return found.x[:k] - found.x[:k].mean()


def timed(work):
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--comparisons", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    given = parser.parse_args()

    a, b, verdict = draw(given.systems, given.comparisons, given.seed)
    names = np.array([f"system-{k:03}" for k in range(given.systems)])
    item = np.random.default_rng([given.seed, 1]).integers(given.comparisons // 100 + 1, size=given.comparisons)
    decided = verdict != "tie"
    one, two, won = a[decided], b[decided], verdict[decided]
    wins = list(zip(np.where(won == "a", one, two).tolist(), np.where(won == "a", two, one).tolist(), strict=True))
    jobs = {
        "davidson": lambda: rank_by_comparisons(
            PairwiseComparisons(a, b, verdict), model=ComparisonModel(method="davidson")
        ),
        "davidson, names, clusters of items": lambda: rank_by_comparisons(
            PairwiseComparisons(names[a], names[b], verdict, item=item), model=ComparisonModel(method="davidson")
        ),
        "rao-kupper": lambda: rank_by_comparisons(
            PairwiseComparisons(a, b, verdict), model=ComparisonModel(method="rao-kupper")
        ),
        "bradley-terry": lambda: rank_by_comparisons(PairwiseComparisons(a, b, verdict)),
        "bradley-terry, decided": lambda: rank_by_comparisons(PairwiseComparisons(one, two, won)),
        "choix.ilsr_pairwise, decided": lambda: choix.ilsr_pairwise(given.systems, wins),
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    processor: dict[str, list[float]] = {name: [] for name in jobs}
    last = {}
    for _ in range(given.runs):
        for name, job in jobs.items():
            last[name], wall, used = timed(job)
            seconds[name].append(wall)
            processor[name].append(used)

    def read_theta(name: str) -> np.ndarray:
        rows = sorted(last[name].systems, key=lambda row: row.system)
        return (np.array([row.estimate.value for row in rows]) - ELO_ZERO) / ELO

    def ratios(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
        ours = times["bradley-terry, decided"]
        return {
            name: spread([their / own for their, own in zip(times[name], ours, strict=True)])
            for name in jobs
            if name.startswith("choix")
        }

    theirs = np.asarray(last["choix.ilsr_pairwise, decided"])
    report = {
        "benchmark": "comparisons",
        "machine": machine(),
        "load": round(os.getloadavg()[0], 1),
        "systems": given.systems,
        "comparisons": given.comparisons,
        "decided": int(decided.sum()),
        "runs": given.runs,
        "seconds": {name: spread(values) for name, values in seconds.items()},
        "processor_seconds": {name: spread(values) for name, values in processor.items()},
        "times_faster_than": {"clock": ratios(seconds), "processor": ratios(processor)},
        "largest_difference_to_optimiser": float(
            np.abs(read_theta("davidson") - reference(a, b, verdict, given.systems)).max()
        ),
        "largest_difference_to_choix": float(
            np.abs(read_theta("bradley-terry, decided") - (theirs - theirs.mean())).max()
        ),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
