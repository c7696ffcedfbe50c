"""100 refits of the default assistant while 2,000 outputs are judged; vectors are given, 50 judgements between refits.

Each refit fits five models by group, each with its own penalty, and scores all outputs; half of the groups are the test
part, which is not learned from. The peer is RidgeCV of scikit-learn in the same folds, at every twentieth refit: it
leaves out single rows instead of groups. Prints JSON.

    OMP_NUM_THREADS=1 python benchmarks/refits.py [--outputs 2000] [--refits 100]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from _texts import machine, spread
from sklearn.linear_model import RidgeCV

from scoring.ml.evaluators.ridge.features import SIDES, Rows, build_features
from scoring.ml.evaluators.ridge.folds import FOLDS, Judged, deal_folds, score_by_folds
from scoring.ml.evaluators.ridge.solve import GRID
from scoring.ml.types import Record

WIDTH, SYSTEMS = 384, 4


def make_records(n: int) -> list[Record]:
    """Outputs of four systems, with a context and two references for each item."""
    return [
        Record(
            text=f"output {k} " * (1 + k % 5), context=(f"context {k // SYSTEMS}",), item=f"i{k // SYSTEMS}",
            references=tuple(f"reference {r} of {k // SYSTEMS}" for r in range(2)), system=f"s{k % SYSTEMS}",
        )
        for k in range(n)
    ]  # fmt: skip


def fit_peer(features: Any, rated: Any, ratings: Any, groups: list[str]) -> Any:
    """Return the scores of all outputs by RidgeCV, cross-fitted in the same folds."""
    folds = deal_folds([groups[row] for row in rated.tolist()])
    fold = np.array([folds.get(name, -1) for name in groups])
    by_model = np.empty((len(features), FOLDS))
    for number in range(FOLDS):
        rows, labels = rated[fold[rated] != number], ratings[fold[rated] != number]
        own = features[rows]
        mean, deviation = own.mean(axis=0), own.std(axis=0)
        standard = (own - mean) / deviation
        model = RidgeCV(alphas=np.array(GRID) * (standard**2).sum(axis=1).mean()).fit(standard, labels)
        by_model[:, number] = model.predict((features - mean) / deviation)
    own = np.take_along_axis(by_model, np.maximum(fold, 0)[:, None], axis=1)[:, 0]
    return np.where(fold >= 0, own, by_model.mean(axis=1))


def measure(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result, and seconds by the clock and of the processor."""
    began, used = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - began, time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--outputs", type=int, default=2_000)
    parser.add_argument("--refits", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    records = make_records(options.outputs)
    rows = Rows(records)
    features = build_features(rng.normal(size=(len(rows.table.texts), WIDTH)), rows, SIDES[:2]).astype(np.float32)
    groups = [record.item for record in records]
    truth = features[:, :20].sum(axis=1) * 5 + rng.normal(size=len(features))
    # Every output is judged once before any is judged again.
    order = np.concatenate(
        [rng.permutation(options.outputs) for _ in range(1 + 50 * options.refits // options.outputs)]
    )
    is_test = np.array([int(name[1:]) % 2 for name in groups], dtype=bool)
    seconds, cpu, peer, ratio, agreement = [], [], [], [], []
    for number in range(1, options.refits + 1):
        judged = order[: 50 * number]
        judged = judged[~is_test[judged]]
        rated, counts = np.unique(judged, return_counts=True)
        ratings = truth[rated] + rng.normal(size=len(rated)) / np.sqrt(counts)
        found, clock, used = measure(lambda: score_by_folds(features, Judged(rated, ratings), groups))  # noqa: B023
        seconds.append(clock)
        cpu.append(used)
        if number % 20 == 0:
            other, _, theirs = measure(lambda: fit_peer(features, rated, ratings, groups))  # noqa: B023
            peer.append(theirs)
            ratio.append(theirs / used)
            agreement.append(float(np.corrcoef(found.values, other)[0, 1]))
    print(json.dumps({
        "outputs": options.outputs, "features": features.shape[1], "refits": options.refits,
        "learned_from": len(rated), "clock_seconds": spread(seconds), "processor_seconds": spread(cpu),
        "below_1_second_of_processor": sum(one < 1 for one in cpu), "peer_processor_seconds": spread(peer),
        "ratio": spread(ratio), "least_correlation_with_peer": min(agreement), "machine": machine(),
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
