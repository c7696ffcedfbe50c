"""Krippendorff's alpha of a million ratings: point estimates against the krippendorff package, and 1,000 resamples.

Our function reads long columns (unit, value), the form of files. The package needs a matrix of raters by units, or a
table of units by values. So it is timed twice: with its finished matrix, and from the same columns (unit, rater, value)
including the conversion, by the fastest plain NumPy method (a matrix by assignment, a table by one count) or pandas'
pivot. Units and raters are already numbers from 0. Rows are sorted by unit, and once shuffled; runs of both alternate.
Then the interval from 1,000 resamples of units, of clusters of units, and for a slider with 101 values, where units
rarely repeat each other. Seconds of clock and CPU time, which other load disturbs less.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import krippendorff
import numpy as np
import pandas
from _texts import machine, spread

from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.resampling.bootstrap import Bootstrap

SCALES = ("nominal", "ordinal", "interval", "ratio")


def make_ratings(units: int, raters: int, values: int, seed: int) -> np.ndarray:
    """Raters by units: a true value, with each rater off by at most one step of a short scale, or an eighth of a
    slider."""
    rng = np.random.default_rng(seed)
    truth, reach = rng.integers(1, values + 1, units), max(values // 8, 1)
    return np.clip(truth + rng.integers(-reach, reach + 1, (raters, units)), 1, values).astype(float)


class Rows(NamedTuple):
    """Ratings in long form."""

    unit: np.ndarray
    rater: np.ndarray
    value: np.ndarray


class Times(NamedTuple):
    """Clock and CPU seconds."""

    clock: float
    processor: float


def time_call(work) -> tuple[Any, Times]:
    begin, used = time.perf_counter(), time.process_time()
    result = work()
    return result, Times(time.perf_counter() - begin, time.process_time() - used)


def to_long_form(data: np.ndarray, order: np.ndarray | None) -> Rows:
    raters, units = data.shape
    columns = np.repeat(np.arange(units), raters), np.tile(np.arange(raters), units), data.T.ravel().copy()
    return Rows(*(column if order is None else column[order] for column in columns))


def build_matrix_by_assignment(rows: Rows) -> np.ndarray:
    """The package's matrix."""
    data = np.full((int(rows.rater.max()) + 1, int(rows.unit.max()) + 1), np.nan)
    data[rows.rater, rows.unit] = rows.value
    return data


def build_table_by_count(rows: Rows, values: int) -> np.ndarray:
    """The package's table of units by values."""
    places = rows.unit * values + rows.value.astype(np.int64) - 1
    return np.bincount(places, minlength=(int(rows.unit.max()) + 1) * values).reshape(-1, values)


def build_matrix_by_pivot(rows: Rows) -> np.ndarray:
    """The package's matrix, by pandas."""
    return pandas.DataFrame(rows._asdict()).pivot(index="unit", columns="rater", values="value").to_numpy().T


def compare_points(options: argparse.Namespace, values: int, shuffled: bool) -> dict:
    """Point estimates of the same ratings, run by run, on every scale."""
    data = make_ratings(options.ratings // options.raters, options.raters, values, options.seed)
    rows = to_long_form(data, np.random.default_rng(options.seed).permutation(data.size) if shuffled else None)
    made: dict[str, list[Times]] = {}
    for _ in range(options.runs):
        for name, way in {
            "assignment": build_matrix_by_assignment,
            "count": partial(build_table_by_count, values=values),
            "pivot": build_matrix_by_pivot,
        }.items():
            result, times = time_call(partial(way, rows))
            made.setdefault(name, []).append(times)
            if name == "count":
                table = result
            else:
                assert np.array_equal(result, data)
    found: dict[str, dict] = {
        "seconds to make what the package wants": {name: get_seconds(made[name]) for name in made}
    }
    domain = np.arange(1.0, values + 1)
    for scale in SCALES:
        ours, peer, counted = [], [], []
        for _ in range(options.runs):
            own, times = time_call(
                partial(krippendorff_alpha, rows.unit, rows.value, scale=scale, bootstrap=Bootstrap(resamples=0))
            )
            ours.append(times)
            theirs, times = time_call(partial(krippendorff.alpha, data, level_of_measurement=scale))
            peer.append(times)
            other, times = time_call(
                partial(krippendorff.alpha, value_counts=table, value_domain=domain, level_of_measurement=scale)
            )
            counted.append(times)
        from_columns = {
            "numpy assignment": add_times(made["assignment"], peer),
            "numpy count": add_times(made["count"], counted),
            "pandas pivot": add_times(made["pivot"], peer),
        }
        found[scale] = {
            "ours": get_seconds(ours),
            "package, finished matrix": {**get_seconds(peer), "times_faster": compute_ratios(peer, ours)},
            "package, from the columns": {
                name: {**get_seconds(times), "times_faster": compute_ratios(times, ours)}
                for name, times in from_columns.items()
            },
            "difference": max(abs(own.value - float(theirs)), abs(own.value - float(other))),
        }
    return found


def add_times(one: list[Times], two: list[Times]) -> list[Times]:
    return [Times(a.clock + b.clock, a.processor + b.processor) for a, b in zip(one, two, strict=True)]


def get_seconds(times: list[Times]) -> dict:
    return {name: spread([getattr(each, name) for each in times]) for name in Times._fields}


def compute_ratios(theirs: list[Times], ours: list[Times]) -> dict:
    """How many times as long the others take, run by run."""
    pairs = list(zip(theirs, ours, strict=True))
    return {
        "clock": spread([their.clock / own.clock for their, own in pairs]),
        "processor": spread([their.processor / max(own.processor, 1e-4) for their, own in pairs]),
    }


def time_intervals(options: argparse.Namespace) -> dict:
    """Seconds for alpha with its interval."""
    found = {}
    for name, values, raters in (("5 points", 5, options.raters), ("slider of 101", 101, 3)):
        data = make_ratings(options.ratings // raters, raters, values, options.seed)
        unit, value = np.repeat(np.arange(data.shape[1]), raters), data.T.ravel().copy()
        cases = {scale: (scale, None) for scale in SCALES[: 4 if values == 5 else 3]}
        if values == 5:
            cases["interval, clusters of 10 units"] = ("interval", unit // 10)
        for case, (scale, cluster) in cases.items():
            estimate, times = time_call(
                partial(
                    krippendorff_alpha,
                    unit,
                    value,
                    scale=scale,
                    bootstrap=Bootstrap(cluster=cluster, resamples=options.resamples, seed=options.seed),
                )
            )
            found[f"{name}, {case}"] = {
                **times._asdict(),
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
    options = parser.parse_args()
    report = {
        "benchmark": "agreement",
        "machine": machine(),
        "ratings": options.ratings,
        "raters": options.raters,
        "runs": options.runs,
        "seed": options.seed,
        "point": {
            f"{values} values, {order}": compare_points(options, values, order == "shuffled")
            for values in options.values
            for order in ("sorted by unit", "shuffled")
        },
        "resamples": options.resamples,
        "interval": time_intervals(options),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
