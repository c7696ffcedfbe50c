"""Leaderboard of systems by simulated games from an evaluator's verdicts, and its correlation with human rankings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.coefficients import Coefficient
from evalapp.stats.correlation.ranking_correlation import correlate_with_ranking
from evalapp.stats.ranking.comparisons import GLICKO_RANKS, build_games_ranking, build_verdict_table
from evalapp.stats.ranking.glicko2 import TieRule
from evalapp.stats.ranking.judgements import PairwiseComparisons, read_judgements
from evalapp.stats.ranking.skill import SkillRatings, rank_by_games
from evalapp.stats.ranking.systems import rank_by_mean
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Comparisons, Ratings, Units
from scoring.boards.systems.rankings import Table, by_wins, compared_within, number_units, systems_table

#: Coefficients of ranks, because ratings by games have no meaning beyond their order.
COEFFICIENTS: tuple[Coefficient, ...] = ("spearman", "kendall")
_VERDICT = np.array(["b", "tie", "a"])


@dataclass(frozen=True)
class Met:
    """Verdicts as columns of equal length, one row per pair of texts.

    `sign` is 1 if the first is better, -1 if the second is, else 0. `in_training` marks items in the training data;
    `n_truncated` counts pairs with a truncated text. `swap_consistency` is the share of pairs whose verdict reverses
    with their order, None if each was read in one order. `score` is the outcome of a game for the first, from 0 to 1;
    None if the outcome is the verdict.
    """

    units: Units
    first: IntArray
    second: IntArray
    sign: IntArray
    item: Sequence[str]
    cluster: Sequence[str]
    in_training: Sequence[bool]
    n_truncated: int = 0
    swap_consistency: float | None = None
    score: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.sign)


def systems_by_games(
    met: Met, settings: Mapping[str, Any], *, evaluator: Mapping[str, Any], tie: TieRule, seeds: int, seed: int
) -> Table:
    """Return systems by Glicko-2 ratings from an evaluator's verdicts, simulated `seeds` times.

    Each row has `sd`, the standard deviation of the rating between simulations; shares are those of verdicts.
    `settings`: by, systems (a subset), ratings, items (the maximum sample). `evaluator` (slug, signature) is part of
    the table.
    """
    labels = np.array([unit.label for unit in met.units.units])
    judged = read_judgements(
        PairwiseComparisons(labels[met.first], labels[met.second], _VERDICT[met.sign + 1], item=met.item),
        cluster=met.cluster,
    )
    played = rank_by_games(build_verdict_table(judged, met.score), seeds=seeds, seed=seed, tie=tie)
    used = f"{played.signature.removeprefix('method:glicko2|')}|items:{settings['items']}|ranks:firth"
    ranking = build_games_ranking(judged, played, used)
    nobody, nothing = np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)
    table = systems_table(settings, number_units(ranking, met.units), met.units, nobody, nothing, aspect="")
    n_learned = int(sum(met.in_training))
    table |= {
        "method": "glicko2",
        "scale": [None, None],
        "evaluator": {**evaluator, "n_in_training": n_learned},
        "findings": _findings(met, played, n_learned),
    }
    table["extras"] |= {
        "verdicts": len(met), "swap_consistency": met.swap_consistency, "truncated": met.n_truncated, "seeds": seeds
    }  # fmt: skip
    names = judged.labels.tolist()
    spread = {names[int(row.system)]: row.sd for row in played.systems}
    for row in table["rows"]:
        row["sd"] = None if math.isnan(spread[row["label"]]) else spread[row["label"]]
    return table


def _findings(met: Met, played: SkillRatings, n_learned: int) -> list[str]:
    n_items = len(set(met.item))
    result = [f"{len(met):,} verdicts on texts for {n_items:,} items, each pair of texts compared once."]
    if met.score is not None:
        result.append("The outcome of a game is its expectation: the probability of a win plus half that of a tie.")
    if met.swap_consistency is not None:
        result.append(f"{met.swap_consistency:.1%} of the verdicts reverse when the two texts are swapped.")
    if met.n_truncated:
        result.append(f"In {met.n_truncated:,} pairs a text was too long for the evaluator and was truncated.")
    rest = "" if played.converged == 1 else " The others stopped at the maximum number of games."
    result.append(
        f"Ratings converged in {played.converged:.0%} of {played.seeds:,} simulations, after {played.games:,.0f} games "
        f"on average.{rest}"
    )
    result.append(GLICKO_RANKS)
    if n_learned:
        result.append(f"{n_learned:,} verdicts are on items in its training data, where it may know the systems.")
    return result


def agreement_with_people(table: Mapping[str, Any], judged: Ratings | Comparisons, *, aspect: str) -> list[Table]:
    """Return the rank correlation of a table of systems with human judgements: mean ratings or win rates. Simulated
    judgements have a separate row, marked `simulated`."""
    rated = isinstance(judged, Ratings)
    value = {row["label"]: row["value"] for row in table["rows"] if row["value"] is not None}
    scores = {code: value[unit.label] for code, unit in enumerate(judged.units.units) if unit.label in value}
    result = []
    for simulated in (False, True):
        if isinstance(judged, Ratings):
            kept: Any = judged.only(judged.simulated == simulated)
        else:
            within = compared_within(judged, table["systems"], turing=False)
            kept = within.only(within.simulated == simulated)
        if not len(kept):
            continue
        if rated:
            ranking = rank_by_mean(kept.value, kept.item, kept.system, bootstrap=Bootstrap(resamples=0))
        else:
            ranking = by_wins(kept, resamples=0)
        figures: dict[str, Estimate] = {
            name: correlate_with_ranking(scores, ranking, coefficient=name) for name in COEFFICIENTS
        }
        if parts := (ranking.extras.get("connectivity") or {}).get("note"):
            figures = {name: replace(one, note=one.note or parts) for name, one in figures.items()}
        result.append(
            {
                "aspect": aspect,
                "judged_by": "ratings" if rated else "comparisons",
                "simulated": simulated,
                "n_judgements": len(kept),
                "n_systems": figures[COEFFICIENTS[0]].n,
                **{name: estimate.as_dict() for name, estimate in figures.items()},
            }
        )
    return result
