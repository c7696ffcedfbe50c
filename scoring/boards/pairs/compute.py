"""Compute the leaderboard of evaluators on compared pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evalapp.side_figures import FAILED, side_figure, side_note, side_value
from evalapp.stats.agreement.judged import resolve_raters
from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.multiple_tests import needed_draws
from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.significance import AllPairs, compare_verdicts
from evalapp.stats.correlation.verdicts import (
    VerdictPairs,
    agree_on_pairs,
    chance_level,
    margins,
    one_against_others,
    outcomes,
    share,
    verdict_pairs,
)
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE, Bootstrap
from evalapp.translation import gettext as _
from scoring.boards.base import Data, Progress, Settings, Table, order_evaluators
from scoring.boards.choices import RIVAL
from scoring.boards.data.columns import Comparisons, persons
from scoring.boards.metrics.by_ratings import describe_evaluator, nothing_left, tested_part
from scoring.boards.metrics.compute import load_comparisons, load_scored_on
from scoring.boards.metrics.people import Scored, ScoredSets, chosen_part, list_chosen, with_missing
from scoring.boards.metrics.ranked import Compared
from scoring.boards.metrics.significance import EARLIER, by_place, describe_ties, described, untested, usable_columns
from scoring.boards.pairs.query import PairsQuery
from scoring.boards.systems.rankings import read_draws

#: The trivial baseline of the comparison: it prefers the longer text, or the shorter one if that is right more often.
BASELINE = "length"
#: Names of the figures of a row.
DECIDED, DIFFERENCE, VERDICTS = "decided pairs", f"less {BASELINE}", "all pairs"
#: The figure of trained evaluators in a table with a trained rival.
OVER_RIVAL = f"less {RIVAL}"
#: Folds of groups for the threshold of ties.
FOLDS = 5
SEED = 13
NO_BASELINE = f"{BASELINE} has no scores on these pairs"
NO_RIVAL = f"{RIVAL} has no scores on these pairs"


def compute(data: Data, query: PairsQuery, progress: Progress | None = None) -> Table:
    """Return how often each evaluator agrees with human preferences."""
    aspect, compared = load_comparisons(data, query, turing=False)
    sets = load_scored_on(data, query, aspect, compared)
    return pairs_table(compared, sets, {**query.params, **data.draws}, aspect=aspect.name)


@dataclass(frozen=True)
class _Pairs:
    """Compared pairs: positions of both outputs in `Compared`, the human verdict, the group of the item. `all` also has
    pairs without a most frequent verdict, with all judgements and their groups."""

    first: IntArray
    second: IntArray
    sign: IntArray
    cluster: IntArray
    all: VerdictPairs
    clusters: IntArray
    kept: Comparisons

    @classmethod
    def of(cls, compared: Compared, kept: Comparisons) -> _Pairs:
        kept = _first_judgements(kept)
        order = np.argsort(compared.output)
        ids = compared.output[order]
        sides = [order[np.searchsorted(ids, side)] for side in _sides(kept)]
        pairs = verdict_pairs(sides[0], sides[1], _signs(kept))
        agreed = pairs.agreed
        cluster = np.asarray(kept.cluster, dtype=np.int64)
        return cls(
            pairs.first[agreed], pairs.second[agreed], pairs.sign[agreed], cluster[pairs.row[agreed]], pairs, cluster,
            kept,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.sign)

    def count(self) -> Table:
        """Return the counts of the pairs, and of the judgements behind them."""
        behind = self.kept.only(self.all.agreed[self.all.of])
        n_tied = int((self.sign == 0).sum())
        return {
            "n_pairs": len(self),
            "n_decided": len(self) - n_tied,
            "n_tied": n_tied,
            "n_split": len(self.all) - len(self),
            "n_outputs": len(np.union1d(self.first, self.second)),
            "n_ratings": len(behind),
            "n_raters": len(np.unique(persons(behind.rater, behind.raters))),
            "n_systems": len(np.unique(np.concatenate([behind.system_a, behind.system_b]))),
            "n_items": len(np.unique(behind.item)),
            "n_clusters": len(np.unique(self.cluster)),
            "n_simulated": int(behind.simulated.sum()),
        }


def _sides(comparisons: Comparisons) -> tuple[IntArray, IntArray]:
    if comparisons.output_a is None or comparisons.output_b is None:
        raise ValueError("comparisons without numbers of their outputs cannot be matched with scores")
    return comparisons.output_a, comparisons.output_b


def _signs(comparisons: Comparisons) -> IntArray:
    return np.where(comparisons.verdict == "a", 1, np.where(comparisons.verdict == "b", -1, 0))


def _first_judgements(comparisons: Comparisons) -> Comparisons:
    """Return the first verdict of each person on two outputs, without undecided ones and comparisons of an output with
    itself."""
    usable = (comparisons.verdict != "cannot_decide") & (comparisons.output_a != comparisons.output_b)
    comparisons = comparisons.only(usable)
    if not len(comparisons) or not comparisons.raters:
        return comparisons
    _, places = resolve_raters(comparisons.raters)
    person = persons(comparisons.rater, comparisons.raters)
    place = np.array([places[name] for name in comparisons.raters], dtype=np.int64)[comparisons.rater]
    low, high = np.sort(np.stack(_sides(comparisons)), axis=0)
    order = np.lexsort((place, person, high, low))
    keys = np.stack([low, high, person], axis=1)[order]
    again = np.zeros(len(comparisons), dtype=np.bool_)
    again[order[1:]] = (keys[1:] == keys[:-1]).all(axis=1)
    return comparisons.only(~again) if again.any() else comparisons


def agree_with_scores(comparisons: Comparisons, scores: Mapping[int, float]) -> Estimate:
    """Return the share of decided pairs that the scores by output order as people did; see `agree_on_pairs`."""
    kept = _first_judgements(comparisons)
    pairs = verdict_pairs(*_sides(kept), _signs(kept))
    first, second = ([scores.get(pk, np.nan) for pk in side.tolist()] for side in (pairs.first, pairs.second))
    draws = Bootstrap(cluster=kept.cluster[pairs.row], seed=SEED)
    return agree_on_pairs(margins(first, second), pairs.sign, folds=None, bootstrap=draws).decided


def pairs_table(compared: Compared, sets: ScoredSets, settings: Settings, *, aspect: str) -> Table:
    """Return a row for every evaluator, highest accuracy on decided pairs first.

    The figures are the share of `DECIDED` pairs that it orders like most raters (equal scores count half), the
    difference from `BASELINE` on the same pairs (`shorter`: from its reverse, if that is better), and the share of all
    pairs with the human verdict, with a threshold for ties. If a ridge was trained, every other trained evaluator has
    the difference from the best one (`OVER_RIVAL`).

    Pairs with outputs in training data do not count. `settings`: systems, references, test
    (permutation, bootstrap or none), evaluators. Intervals are 95 %, from resamples of groups of items. Pairs without a
    most frequent verdict count only in `n_split`.
    """
    kept = compared.comparisons if sets.outside.all() else compared.outside(sets.outside)
    pairs = _Pairs.of(compared, kept)
    draws = Bootstrap(**{"cluster": pairs.cluster, "seed": SEED, **read_draws(settings)})
    rows, test, shorter = _compute_rows(sets, settings, pairs, draws)
    decided = verdicts = Estimate.undefined(FAILED)
    with side_figure(_("What one person reaches against the others")):
        decided, verdicts = one_against_others(pairs.all, bootstrap=draws.with_cluster(pairs.clusters))
    lot = side_value(_("The chance level"), lambda: chance_level(pairs.sign) if len(pairs) else None, None)
    n_tied = int((pairs.sign == 0).sum())
    counted = {DECIDED: len(pairs) - n_tied, DIFFERENCE: len(pairs) - n_tied, VERDICTS: len(pairs)}
    own = [decided.as_dict(), None, verdicts.as_dict()]
    if any(len(row["cells"]) > len(counted) for row in rows):
        counted[OVER_RIVAL] = len(pairs) - n_tied
        own.append(None)
    parts = [f"pairs|folds:{FOLDS}|boot:inputs|resamples:{draws.resamples}|seed:{draws.seed}"]
    parts += [f"conf:{DEFAULT_CONFIDENCE:g}", tested_part(test), f"systems:{settings['systems']}"]
    parts += [f"references:{settings['references']}", f"aspect:{aspect}{chosen_part(settings)}"]
    return {
        "kind": "pairs",
        "aspect": aspect,
        "systems": settings["systems"],
        "references": settings["references"],
        "ratings": "",
        "coefficient": "verdicts",
        "evaluators": list_chosen(settings),
        "baseline": BASELINE,
        "shorter": shorter,
        "columns": [{"name": name, "n": n} for name, n in counted.items()],
        "test": test,
        "ceiling": own,
        "by_lot": lot,
        "signature": "|".join(parts),
        **pairs.count(),
        "n_excluded": len(compared.comparisons) - len(kept),
        "counted": compared.counted,
        "note": side_note(lambda: with_missing(_note(compared, kept, pairs, aspect, sets.learned), settings, rows)),
        "rows": sorted(rows, key=lambda row: order_evaluators(row, row["cells"][0])),
    }


def _compute_rows(
    sets: ScoredSets, settings: Settings, pairs: _Pairs, draws: Bootstrap
) -> tuple[list[Table], Table, bool]:
    """Return the rows of the evaluators, the tests between them, and whether shorter texts are better."""
    differences = [margins(one.metric[pairs.first], one.metric[pairs.second]) for one in sets.scored]
    right = [outcomes(margin, pairs.sign) for margin in differences]
    baseline = next((column for one, column in zip(sets.scored, right, strict=True) if one.evaluator == BASELINE), None)
    shorter = baseline is not None and bool(np.nansum(baseline - 0.5) < 0)
    baseline = 1.0 - baseline if shorter and baseline is not None else baseline
    names = sets.names
    tested = side_value(
        _("The tests between evaluators"),
        lambda: _tell_apart(right, names, pairs.cluster, settings, draws.seed),
        FAILED,
    )
    letters = by_place(tested, names)
    rows = []
    for place, (one, margin, column) in enumerate(zip(sets.scored, differences, right, strict=True)):
        row = _row(one, margin, column, baseline, pairs, draws)
        row["letters"], row["cluster"] = letters.get(place, ("", None))
        rows.append(row)
    _compare_with_rival(rows, sets, right, pairs.cluster, draws)
    test = described(tested, names)
    test["note"] = test["note"].replace("outputs", "pairs")
    return rows, test, shorter


def _tell_apart(
    right: Sequence[FloatArray], names: Sequence[str], cluster: IntArray, settings: Settings, seed: int
) -> AllPairs | str:
    test: Any = settings.get("test") or "permutation"
    usable = usable_columns(right, names)
    if why_not := untested(test, usable):
        return why_not
    is_earlier = test == EARLIER
    result = compare_verdicts(
        usable,
        cluster,
        tests=PairTests(test="permutation" if is_earlier else test, k=needed_draws(len(usable)), seed=seed),
    )
    return replace(result, test=EARLIER) if is_earlier else result


def _row(
    one: Scored,
    margin: FloatArray,
    right: FloatArray,
    baseline: FloatArray | None,
    pairs: _Pairs,
    draws: Bootstrap,
) -> Table:
    result = agree_on_pairs(margin, pairs.sign, folds=FOLDS, bootstrap=draws)
    less = None if one.evaluator == BASELINE else Estimate.undefined(FAILED).as_dict()
    if less is not None:
        with side_figure(_("The difference to %(baseline)s", baseline=BASELINE)):
            less = _less(right, baseline, pairs.cluster, draws, NO_BASELINE).as_dict()
    return {
        **describe_evaluator(one),
        "n": int(np.isfinite(right).sum()),
        "n_missing": result.n_missing,
        "equal": None if np.isnan(result.equal) else result.equal,
        "cells": [result.decided.as_dict(), less, describe_ties(result.calibration)],
    }


def _compare_with_rival(
    rows: Sequence[Table], sets: ScoredSets, right: Sequence[FloatArray], cluster: IntArray, draws: Bootstrap
) -> None:
    """Add the difference from the best trained ridge to the cells of trained evaluators, and no figure to the others;
    nothing if no ridge or only ridges were trained."""
    trained = [one.name if one.kind == "trained" and not one.is_sentinel else "" for one in sets.scored]
    rivals = [place for place, name in enumerate(trained) if name == RIVAL and np.isfinite(right[place]).any()]
    if not rivals or not set(trained) - {"", RIVAL}:
        return
    best = max(rivals, key=lambda place: float(np.nanmean(right[place])))
    for row, name, column in zip(rows, trained, right, strict=True):
        over = None
        if name not in ("", RIVAL):
            over = Estimate.undefined(FAILED).as_dict()
            with side_figure(_("The comparison with ridge")):
                over = _less(column, right[best], cluster, draws, NO_RIVAL).as_dict()
        row["cells"].append(over)


def _less(
    right: FloatArray, baseline: FloatArray | None, cluster: IntArray, draws: Bootstrap, unknown: str
) -> Estimate:
    """Return the difference of two shares on the pairs scored by both, with its paired interval; `unknown` is the
    reason if there are none."""
    difference = np.full(len(right), np.nan) if baseline is None else right - baseline
    used = np.isfinite(difference)
    if not used.any():
        return Estimate.undefined(unknown)
    return share(difference[used], cluster[used], draws)


def _note(compared: Compared, kept: Comparisons, pairs: _Pairs, aspect: str, learned: Mapping[str, int]) -> str:
    if not len(compared):
        return f"No output of these systems has been compared with another for {aspect}."
    if not len(kept):
        return nothing_left(len(compared), learned, what="comparison", of="compared outputs")
    if not len(pairs):
        return "No pair has a most frequent verdict."
    return "" if (pairs.sign != 0).any() else "All pairs are tied, so there is no order to predict."
