"""The comparative evaluators of all folds as one; each pair is compared by models that did not see its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from evalapp.stats.ranking.glicko2 import TieRule
from scoring.ml.base import Progress, shift_progress
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.evaluators.comparative.evaluator import Comparative
from scoring.ml.evaluators.comparative.systems import PairJudge
from scoring.ml.evaluators.comparative.verdicts import Outcome, Verdicts, average_thresholds, decide_signs
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.types import Record, check_records


class CrossFittedComparative(CrossFitted, PairJudge):
    """A pair is judged by the mean probabilities of the models that saw neither text's group; by those of all models if
    each saw one of them, for example for texts of two folds."""

    def __init__(
        self, entry: Entry, members: Sequence[TrainedEvaluator], options: Mapping[str, OptionValue] | None = None
    ) -> None:
        judges = cast("Sequence[Comparative]", members)
        if len({judge.outcome for judge in judges}) > 1:
            # If the training began before outcomes were noted and ended after, all models count verdicts.
            members = [type(judge)(entry, judge.artefact, {**judge.options, "outcome": "verdict"}) for judge in judges]
        super().__init__(entry, members, options)

    @property
    def judges(self) -> tuple[Comparative, ...]:
        """The models, typed."""
        return cast("tuple[Comparative, ...]", self.members)

    @property
    def mirrors(self) -> bool:
        return all(judge.mirrors for judge in self.judges)

    @property
    def outcome(self) -> Outcome:
        return self.judges[0].outcome

    @property
    def tie_rule(self) -> TieRule:
        return self.judges[0].tie_rule

    @property
    def remarks(self) -> tuple[str, ...]:
        if self.options["by"] != "skill":
            return ()
        return ("each fold's texts were rated among themselves, so ratings of two folds say little of each other",)

    def judge(self, a: Sequence[Record], b: Sequence[Record], *, progress: Progress | None = None) -> Verdicts:
        """As each model's; `swap_consistency` is the mean over the readings of all models."""
        rows = self._assign_rows(a, b)
        probabilities, times = np.zeros((len(a), 3)), np.zeros(len(a))
        truncated = np.zeros(len(a), dtype=np.bool_)
        consistent, read = 0.0, 0
        done, total = 0, sum(len(own) for own in rows)
        for judge, own in zip(self.judges, rows, strict=True):
            if not own and len(a):
                continue
            report = None if progress is None else shift_progress(progress, done, total)
            result = judge.judge([a[row] for row in own], [b[row] for row in own], progress=report)
            probabilities[own] += result.probabilities
            times[own] += 1
            truncated[own] |= result.truncated
            if result.swap_consistency is not None:
                consistent, read = consistent + result.swap_consistency * len(own), read + len(own)
            done += len(own)
        probabilities /= np.maximum(times, 1)[:, None]
        threshold = average_thresholds([judge.threshold for judge in self.judges])
        return Verdicts(
            decide_signs(probabilities, threshold), probabilities, consistent / read if read else None, truncated,
            threshold,
        )  # fmt: skip

    def _assign_rows(self, a: Sequence[Record], b: Sequence[Record]) -> list[list[int]]:
        """The pairs that each model judges. Raises `InvalidOption` for lists of different lengths, as a model does."""
        check_records(a, "compare()")
        check_records(b, "compare()")
        if len(a) != len(b):
            self.judges[0].judge(a, b)
        rows: list[list[int]] = [[] for _ in self.judges]
        for place, (one, other) in enumerate(zip(a, b, strict=True)):
            both = set(self.unseen(one)) & set(self.unseen(other))
            for number in both or range(len(self.judges)):
                rows[number].append(place)
        return rows
