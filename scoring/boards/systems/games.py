"""From an evaluator's verdicts on pairs of texts to the leaderboard of systems by simulated games, as plain values, and
how far its order is people's. Tables of what people or scores say of systems are in `tables`."""

from __future__ import annotations

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
from evalapp.stats.ranking.systems import Ranking, rank_by_mean
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Comparisons, Ratings, Units
from scoring.boards.systems.rankings import Table, by_wins, compared_within, systems_table

#: What the order of the systems is compared with people's by; values of ratings have no meaning beyond their order.
COEFFICIENTS: tuple[Coefficient, ...] = ("spearman", "kendall")
_VERDICT = np.array(["b", "tie", "a"])


@dataclass(frozen=True)
class Met:
    """Columns of equal length, one row per pair of texts: numbers of their units, the item and its group, `sign` 1
    where the first is better, -1 where the second is, 0 where neither. `in_training` rows are about items that the
    evaluator learned from; `n_truncated` pairs had a text that was cut; `swap_consistency` is the share of pairs whose
    verdict turns round with them, None where each was read one way. `score` is what a game counts for the first, from
    0 to 1; None where it counts the verdict."""

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
    """Systems by Glicko-2 from an evaluator's verdicts, simulated `seeds` times: the table of systems, each row with
    `sd`, how far its rating differs between simulations. Its shares are those of verdicts, whatever the games count.
    `settings`: by, systems (a subset), ratings, items (the most that were drawn). `evaluator` describes it (slug,
    signature) and stands in the table."""
    labels = np.array([unit.label for unit in met.units.units])
    judged = read_judgements(
        PairwiseComparisons(labels[met.first], labels[met.second], _VERDICT[met.sign + 1], item=met.item),
        cluster=met.cluster,
    )
    played = rank_by_games(build_verdict_table(judged, met.score), seeds=seeds, seed=seed, tie=tie)
    used = f"{played.signature.removeprefix('method:glicko2|')}|items:{settings['items']}|ranks:firth"
    ranking = build_games_ranking(judged, played, used)
    numbers = {unit.label: number for number, unit in enumerate(met.units.units)}
    nobody, nothing = np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)
    table = systems_table(settings, _numbered(ranking, numbers), met.units, nobody, nothing, aspect="")
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


def _numbered(ranking: Ranking, numbers: Mapping[str, int]) -> Ranking:
    """With the units' numbers in place of their labels."""
    return replace(ranking, systems=tuple(replace(row, system=numbers[str(row.system)]) for row in ranking.systems))


def _findings(met: Met, played: SkillRatings, n_learned: int) -> list[str]:
    n_items = len(set(met.item))
    found = [f"{len(met):,} verdicts on texts for {n_items:,} items, each pair of texts compared once."]
    if met.score is not None:
        found.append("A game counts what is expected of it: the probability of a win and half of that of a tie.")
    if met.swap_consistency is not None:
        found.append(f"{met.swap_consistency:.1%} of the verdicts turn round when the two texts change places.")
    if met.n_truncated:
        found.append(f"In {met.n_truncated:,} of the pairs a text was too long for the evaluator and was cut.")
    rest = "" if played.converged == 1 else " In the others they ended at the most that are played."
    found.append(
        f"The games came to rest in {played.converged:.0%} of {played.seeds:,} simulations, after {played.games:,.0f} "
        f"games on average.{rest}"
    )
    found.append(GLICKO_RANKS)
    if n_learned:
        found.append(
            f"{n_learned:,} of the verdicts are on items that it learned from: there it may know the systems from its "
            "training."
        )
    return found


def agreement_with_people(table: Mapping[str, Any], said: Ratings | Comparisons, *, aspect: str) -> list[Table]:
    """How far the order of a table of systems is people's: by their mean rating of each system, or its share of
    comparisons won. Simulated judgements are nobody's opinion: they make a row of their own, marked `simulated`."""
    rated = isinstance(said, Ratings)
    value = {row["label"]: row["value"] for row in table["rows"] if row["value"] is not None}
    scores = {code: value[unit.label] for code, unit in enumerate(said.units.units) if unit.label in value}
    found = []
    for simulated in (False, True):
        if isinstance(said, Ratings):
            kept: Any = said.only(said.simulated == simulated)
        else:
            within = compared_within(said, table["systems"], turing=False)
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
        found.append(
            {
                "aspect": aspect,
                "judged_by": "ratings" if rated else "comparisons",
                "simulated": simulated,
                "n_judgements": len(kept),
                "n_systems": figures[COEFFICIENTS[0]].n,
                **{name: estimate.as_dict() for name, estimate in figures.items()},
            }
        )
    return found
