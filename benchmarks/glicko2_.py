"""Glicko-2 from a verdict table: 10,000 games for one seed and for 100 seeds together, against the glicko2 package.

The package uses the player's mu where step 5 of Glickman's paper has its phi; equality is checked with that formula
corrected, speed is compared with the original. Then 100 seeds of 20 systems on 200 items by the convergence rule. Clock
and CPU seconds, which other load disturbs less.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import glicko2
import numpy as np
from _texts import machine, spread

from evalapp.stats.ranking.glicko2_games import play_games
from evalapp.stats.ranking.skill import VerdictTable, rank_by_games


class CorrectedPlayer(glicko2.Player):
    """The package's player with the formula of step 5 as printed by Glickman."""

    def _f(self, x, delta, v, a):
        phi2, e = (self.rd / 173.7178) ** 2, math.exp(x)
        return e * (delta**2 - phi2 - v - e) / (2 * (phi2 + v + e) ** 2) - (x - a) / self._tau**2


def make_table(systems: int, items: int, seed: int) -> VerdictTable:
    """Evenly spaced systems; a verdict is the sign of their distance plus noise, small values are draws."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(-1, 1, systems)
    a, b, verdicts = [], [], []
    for i in range(systems):
        for j in range(i + 1, systems):
            found = rng.normal(strength[i] - strength[j], 1, items)
            a += [i] * items
            b += [j] * items
            verdicts += np.where(found > 0.3, 1, np.where(found < -0.3, -1, 0)).tolist()
    return VerdictTable.of([f"s{n:02}" for n in range(systems)], a, b, verdicts)


def rate_by_package(kind, n: int, one, two, score) -> list:
    players = [kind() for _ in range(n)]
    for i, j, s in zip(one, two, score, strict=True):
        a, b = (players[i].rating, players[i].rd), (players[j].rating, players[j].rd)
        players[i].update_player([b[0]], [b[1]], [s])
        players[j].update_player([a[0]], [a[1]], [1 - s])
    return players


def time_call(work):
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=20)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()

    table = make_table(options.systems, options.items, options.seed)
    rng = np.random.default_rng(options.seed)
    one = rng.integers(options.systems, size=options.games)
    two = (one + rng.integers(1, options.systems, size=options.games)) % options.systems
    score = rng.choice([0.0, 0.5, 1.0], options.games)
    rows = one.tolist(), two.tolist(), score.tolist()

    found = {name: [] for name in ("package", "one_seed", "many_seeds", "converging")}
    processor = {name: [] for name in found}
    jobs = {
        "package": lambda: rate_by_package(glicko2.Player, options.systems, *rows),
        "one_seed": lambda: rank_by_games(table, seeds=1, seed=options.seed, fixed_games=options.games),
        "many_seeds": lambda: rank_by_games(table, seeds=options.seeds, seed=options.seed, fixed_games=options.games),
        "converging": lambda: rank_by_games(table, seeds=options.seeds, seed=options.seed),
    }
    last = {}
    for _ in range(options.runs):
        for name, job in jobs.items():
            last[name], wall, used = time_call(job)
            found[name].append(wall)
            processor[name].append(used)
    small = 400
    ours = play_games(options.systems, one[:small], two[:small], score[:small])
    peers = rate_by_package(CorrectedPlayer, options.systems, *(row[:small] for row in rows))
    differences = np.abs(ours.rating / np.array([peer.rating for peer in peers]) - 1)

    def compute_ratio(name: str, share: int) -> dict:
        pairs = zip(processor["package"], processor[name], strict=True)
        return spread([package / (own / share) for package, own in pairs])

    report = {
        "benchmark": "glicko2",
        "machine": machine(),
        "games": options.games,
        "systems": options.systems,
        "items": options.items,
        "seeds": options.seeds,
        "runs": options.runs,
        "seconds": {name: spread(values) for name, values in found.items()},
        "processor_seconds": {name: spread(values) for name, values in processor.items()},
        "processor_seconds_a_seed": spread([value / options.seeds for value in processor["many_seeds"]]),
        "times_faster_than_package": {
            "one seed": compute_ratio("one_seed", 1),
            "of many": compute_ratio("many_seeds", options.seeds),
        },
        "largest_relative_difference_to_mended_package": float(differences.max()),
        "convergence": {"share": last["converging"].converged, "games": last["converging"].games},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
