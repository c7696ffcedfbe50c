"""Agreement of evaluators with human comparisons, for the card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from evalapp.stats.agreement.judged import resolve_raters
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.verdicts import (
    VerdictAgreement,
    agree_on_pairs,
    chance_level,
    margins,
    share,
    verdict_pairs,
)
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml.base import Evaluator, Floats, Progress
from scoring.ml.training.gold import ComparedPair, collect_compared_pairs, output_key
from scoring.ml.training.record import Row, record_groups, score_by_aspect
from scoring.ml.types import Dataset, Record

if TYPE_CHECKING:
    from scoring.ml.evaluators.comparative.verdicts import Verdicts

Ints: TypeAlias = npt.NDArray[np.int64]
#: Folds of groups for the threshold up to which a difference of scores is a tie.
FOLDS = 5
#: The origin of an evaluator's ties: its own verdicts; a threshold from the other folds; a threshold fitted on the same
#: pairs, which is optimistic.
OWN, VALIDATED, FITTED = "own", "cross-validated", "fitted"


@runtime_checkable
class GivesVerdicts(Protocol):
    """An evaluator that compares two texts itself."""

    def judge_from_either_side(
        self, a: Sequence[Record], b: Sequence[Record], seed: int, progress: Progress | None
    ) -> Verdicts: ...


@dataclass(frozen=True)
class JudgedPairs:
    """Compared pairs of outputs for an aspect, each once: `sign` (p,) is the most frequent human verdict on the first
    text, 1 better, 0 tied, -1 worse; `group` (p,) numbers the split groups of their items. `n_split` pairs without a
    single most frequent verdict and `n_identical` pairs of equal texts are left out. `simulated` counts judgements of
    these pairs that were simulated."""

    texts: tuple[tuple[Record, Record], ...]
    sign: Ints
    group: Ints
    n_split: int
    n_identical: int
    simulated: int


def collect_pairs(dataset: Dataset, aspect: str) -> JudgedPairs:
    """Return the compared pairs of an `aspect` in a `dataset`, in an order independent of the rows. Comparisons with a
    reference, repeated judgements of a pair by the same person, and "cannot decide" do not count."""
    between = tuple(row for row in dataset.comparisons if row.aspect == aspect and row.system_b is not None)
    rows = _first_judgements(collect_compared_pairs(replace(dataset, comparisons=between), aspect))
    n_judged = len({_pair(row) for row in rows})
    rows = [row for row in rows if row.a.text != row.b.text]
    known = {output_key(record): record for row in rows for record in (row.a, row.b)}
    records = [known[key] for key in sorted(known, key=repr)]
    number = {output_key(record): place for place, record in enumerate(records)}
    pairs = verdict_pairs(
        [number[output_key(row.a)] for row in rows],
        [number[output_key(row.b)] for row in rows],
        [row.sign for row in rows],
    )
    agreed = pairs.agreed
    texts = tuple(
        (records[i], records[j])
        for i, j in zip(pairs.first[agreed].tolist(), pairs.second[agreed].tolist(), strict=True)
    )
    groups = np.array(record_groups(record for record, _ in texts), dtype=object)
    simulated = np.array([row.simulated for row in rows], dtype=np.bool_)
    return JudgedPairs(
        texts, pairs.sign[agreed], np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.int64),
        n_split=len(pairs) - len(texts), n_identical=n_judged - len(pairs),
        simulated=int((simulated & agreed[pairs.of]).sum()),
    )  # fmt: skip


def _pair(row: ComparedPair) -> frozenset[object]:
    return frozenset((output_key(row.a), output_key(row.b)))


def _first_judgements(rows: Sequence[ComparedPair]) -> list[ComparedPair]:
    """Each person's first judgement of two outputs."""
    people, place = resolve_raters({row.rater for row in rows})
    result: dict[tuple[str, frozenset[object]], ComparedPair] = {}
    for row in sorted(rows, key=lambda row: place[row.rater]):
        result.setdefault((people[row.rater], _pair(row)), row)
    return list(result.values())


def compare_with_people(
    evaluators: Sequence[Evaluator],
    dataset: Dataset,
    aspects: Sequence[str],
    *,
    seed: int = 13,
    progress: Progress | None = None,
) -> tuple[Row, ...]:
    """Return shares of correct verdicts on the compared outputs of a `dataset`, with 95 % intervals (bootstrap over
    split groups, drawn by `seed`: `n_groups`, for decided pairs `n_groups_decided`), one row per aspect and evaluator.

    `decided`: the share of pairs without a tied human verdict whose better text is found; equal scores count half,
    chance level is 1/2. `verdicts`: the share of all pairs with the correct one of three verdicts; `by_lot` is its
    chance level. Evaluators that compare give their own verdicts; for the others the higher score is the better text,
    and scores that differ by at most a threshold are tied (`ties`: the origin of the threshold). Own verdicts also have
    `coverage` and `right_if_called` (`_describe_called`). `n_pairs`, `n_decided`
    and `n_tied` are counts of human verdicts; `n_missing` pairs lack a score. Aspects without pairs have no row.

    Each of the `evaluators` reads each output or pair once for all `aspects`; evaluators of multiple aspects give a
    score per aspect. `progress(done, total)` counts records or pairs; an exception it raises ends the work.
    """
    pairs = {aspect: collect_pairs(dataset, aspect) for aspect in aspects}
    pairs = {aspect: judged for aspect, judged in pairs.items() if judged.texts}
    if not pairs:
        return ()
    of_evaluator = [judge_pairs(evaluator, pairs, seed, progress) for evaluator in evaluators]
    return tuple(
        {"evaluator": evaluator.name, "aspect": aspect, **describe_agreement(judged, *said[aspect], seed)}
        for aspect, judged in pairs.items()
        for evaluator, said in zip(evaluators, of_evaluator, strict=True)
    )


def judge_pairs(
    evaluator: Evaluator, pairs: Mapping[str, JudgedPairs], seed: int, progress: Progress | None = None
) -> dict[str, tuple[Floats, Ints | None]]:
    """Return the margin of the first text of each of the `pairs` (p,), by aspect: of its scores, or p(better) -
    p(worse) of an evaluator that compares; and such an evaluator's own verdicts (p,), else None."""
    if isinstance(evaluator, GivesVerdicts):
        return _own_verdicts(evaluator, pairs, seed, progress)
    return _differences(evaluator, pairs, progress)


def _own_verdicts(
    evaluator: GivesVerdicts, pairs: Mapping[str, JudgedPairs], seed: int, progress: Progress | None
) -> dict[str, tuple[Floats, Ints | None]]:
    """The preference for the first text of each aspect's pairs, and the verdicts."""
    distinct = dict.fromkeys(pair for judged in pairs.values() for pair in judged.texts)
    place = {pair: number for number, pair in enumerate(distinct)}
    verdicts = evaluator.judge_from_either_side([a for a, _ in place], [b for _, b in place], seed, progress)
    lean = margins(verdicts.probabilities[:, 2], verdicts.probabilities[:, 0])
    signs = np.asarray(verdicts.signs, dtype=np.int64)
    rows = {aspect: [place[pair] for pair in own.texts] for aspect, own in pairs.items()}
    return {aspect: (lean[own], signs[own]) for aspect, own in rows.items()}


def _differences(
    evaluator: Evaluator, pairs: Mapping[str, JudgedPairs], progress: Progress | None
) -> dict[str, tuple[Floats, Ints | None]]:
    """The first text's score minus the second's, for each aspect's pairs."""
    records = {
        aspect: list(dict.fromkeys(record for pair in judged.texts for record in pair))
        for aspect, judged in pairs.items()
    }
    scores = score_by_aspect(evaluator, records, progress)
    differences: dict[str, tuple[Floats, Ints | None]] = {}
    for aspect, judged in pairs.items():
        place = {record: number for number, record in enumerate(records[aspect])}
        sides = np.array([(place[a], place[b]) for a, b in judged.texts])
        differences[aspect] = (margins(scores[aspect][sides[:, 0]], scores[aspect][sides[:, 1]]), None)
    return differences


def describe_agreement(pairs: JudgedPairs, margin: Floats, signs: Ints | None, seed: int) -> dict[str, Any]:
    """Return the figures of `compare_with_people` for an aspect from the result of `judge_pairs`."""
    result = agree_on_pairs(margin, pairs.sign, folds=FOLDS, bootstrap=Bootstrap(cluster=pairs.group, seed=seed))
    called: dict[str, Any] = {}
    if signs is None:
        verdicts, ties = _by_threshold(result)
    else:
        right = (signs == pairs.sign).astype(np.float64)
        verdicts, ties = share(right, pairs.group, Bootstrap(seed=seed)), OWN
        called = _describe_called(pairs, signs, right, seed)
    n_tied, known = int((pairs.sign == 0).sum()), np.isfinite(margin)
    return {
        "n_groups": len(np.unique(pairs.group[known])),
        "n_groups_decided": len(np.unique(pairs.group[known & (pairs.sign != 0)])),
        "n_pairs": len(pairs.sign),
        "n_decided": len(pairs.sign) - n_tied,
        "n_tied": n_tied,
        "n_split": pairs.n_split,
        "n_identical": pairs.n_identical,
        "n_missing": result.n_missing,
        "simulated": pairs.simulated,
        "by_lot": chance_level(pairs.sign),
        "ties": ties,
        "decided": result.decided.as_dict(),
        "verdicts": verdicts.as_dict(),
        **called,
    }


def _describe_called(pairs: JudgedPairs, signs: Ints, right: Floats, seed: int) -> dict[str, Any]:
    """Of the pairs that people decided: `coverage`, the share that the evaluator calls better or worse, and
    `right_if_called`, its accuracy there."""
    decided = pairs.sign != 0
    called = decided & (signs != 0)
    draws = Bootstrap(seed=seed)
    return {
        "coverage": share((signs != 0)[decided].astype(np.float64), pairs.group[decided], draws).as_dict(),
        "right_if_called": share(right[called], pairs.group[called], draws).as_dict(),
    }


def _by_threshold(agreement: VerdictAgreement) -> tuple[Estimate, str]:
    """The cross-validated share, or the fitted one if there are too few groups."""
    validated = agreement.calibration.cross_validated
    if validated is not None and validated.is_defined:
        return validated, VALIDATED
    return agreement.calibration.accuracy, FITTED
