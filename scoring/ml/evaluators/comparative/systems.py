"""Results that follow from verdicts on pairs: comparisons of texts, and ratings of systems by Glicko-2."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from evalapp.stats.ranking.glicko2 import TieRule
from evalapp.stats.ranking.skill import SkillRatings, VerdictTable, rank_by_games
from scoring.ml.base import Progress
from scoring.ml.errors import InvalidCall
from scoring.ml.evaluators.comparative.verdicts import Floats, Outcome, Signs, Verdicts, expected_scores
from scoring.ml.types import Record, check_records

Systems: TypeAlias = Mapping[str, Sequence[Record]]


@dataclass(frozen=True)
class Encounters:
    """Texts of systems against each other, each pair once: row k compares the text of `systems[first[k]]` for
    `items[k]` with that of `systems[second[k]]`. `scores` (n,) are the game scores of the first; None if verdicts are
    counted."""

    systems: tuple[str, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    items: tuple[str, ...]
    verdicts: Verdicts
    scores: Floats | None = None

    @property
    def table(self) -> VerdictTable:
        """The verdicts by pair of systems."""
        return VerdictTable.of(self.systems, self.first, self.second, self.verdicts.signs, self.scores)


class PairJudge(ABC):
    """Comparisons and ratings for classes that implement `judge`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the catalogue."""

    @property
    @abstractmethod
    def mirrors(self) -> bool:
        """Whether swapping the texts always reverses the verdict."""

    @property
    @abstractmethod
    def outcome(self) -> Outcome:
        """The outcome of a comparison in scores and ratings."""

    @property
    @abstractmethod
    def tie_rule(self) -> TieRule:
        """The meaning of a draw in skill ratings; without effect for expected outcomes, which are never draws."""

    @abstractmethod
    def judge(self, a: Sequence[Record], b: Sequence[Record], *, progress: Progress | None = None) -> Verdicts:
        """The verdicts on a[i] against b[i] with probabilities, swap consistency and truncation."""

    def compare(self, a: Sequence[Record], b: Sequence[Record], *, progress: Progress | None = None) -> Signs:
        """(n,) 1 if a[i] is better than b[i], -1 if it is worse, 0 if neither. `judge` returns more."""
        return self.judge(a, b, progress=progress).signs

    def counted(self, verdicts: Verdicts) -> Floats | None:
        """The game scores of the first texts, from 0 to 1; None if verdicts are counted."""
        return expected_scores(verdicts.probabilities) if self.outcome == "expected" else None

    def judge_from_either_side(
        self, a: Sequence[Record], b: Sequence[Record], seed: int, progress: Progress | None
    ) -> Verdicts:
        """As `judge`. If pairs are read in one direction only, half, drawn by seed, are read from the other
        side: otherwise a text's place would depend on system names or the order of rows."""
        if self.mirrors:
            return self.judge(a, b, progress=progress)
        turned = np.random.default_rng(seed).random(len(a)) < 0.5
        sides = [(y, x) if turn else (x, y) for x, y, turn in zip(a, b, turned.tolist(), strict=True)]
        result = self.judge([x for x, _ in sides], [y for _, y in sides], progress=progress)
        return replace(
            result,
            signs=np.where(turned, -result.signs, result.signs).astype(np.int8),
            probabilities=np.where(turned[:, None], result.probabilities[:, ::-1], result.probabilities),
        )

    def encounters(
        self,
        systems: Systems,
        *,
        max_items: int | None = None,
        seed: int = 13,
        progress: Progress | None = None,
    ) -> Encounters:
        """Compare every system with every other on their common items, each pair of texts once.

        At most `max_items` items that at least two systems have, drawn by seed, the same for all. Raises `InvalidCall`
        for fewer than two systems, a system with two texts for an item, or if no two systems share an item.
        """
        if not isinstance(systems, Mapping):
            message = f"takes the records of each system by its name, {{name: [...]}}, not {type(systems).__name__}"
            raise InvalidCall(self.name, "rank", message)
        names = sorted(systems)
        if len(names) < 2:
            raise InvalidCall(self.name, "rank", f"needs at least two systems, found {len(names)}")
        texts = {name: _by_item(self.name, name, systems[name]) for name in names}
        times = Counter(item for own in texts.values() for item in own)
        items = drawn_items([item for item, n in times.items() if n > 1], max_items, seed)
        rows: list[tuple[int, int, str]] = []
        a: list[Record] = []
        b: list[Record] = []
        for i, one in enumerate(names):
            for j, other in enumerate(names[i + 1 :], start=i + 1):
                for item in items:
                    if item in texts[one] and item in texts[other]:
                        rows.append((i, j, item))
                        a.append(texts[one][item])
                        b.append(texts[other][item])
        if not rows:
            message = "needs outputs for the same items: no two systems share an item"
            raise InvalidCall(self.name, "rank", message)
        first, second, of = zip(*rows, strict=True)
        verdicts = self.judge_from_either_side(a, b, seed, progress)
        return Encounters(tuple(names), first, second, of, verdicts, self.counted(verdicts))

    def verdict_table(
        self,
        systems: Systems,
        *,
        max_items: int | None = None,
        seed: int = 13,
        progress: Progress | None = None,
    ) -> VerdictTable:
        """The verdicts of `encounters` by pair of systems."""
        return self.encounters(systems, max_items=max_items, seed=seed, progress=progress).table

    def rank(
        self,
        systems: Systems,
        *,
        seeds: int = 100,
        seed: int = 13,
        max_items: int | None = None,
        max_games: int | None = None,
        progress: Progress | None = None,
    ) -> SkillRatings:
        """Glicko-2 ratings of systems from their outputs: verdicts once, then `seeds` simulations.

        Game scores and the tie rule follow the options. Raises as `encounters`.
        """
        table = self.verdict_table(systems, max_items=max_items, seed=seed, progress=progress)
        return rank_by_games(table, seeds=seeds, seed=seed, tie=self.tie_rule, max_games=max_games)


def drawn_items(items: Iterable[str], most: int | None, seed: int) -> list[str]:
    """The items, sorted; at most `most`, drawn by seed."""
    result = sorted(items)
    if most is None or len(result) <= most:
        return result
    chosen = np.random.default_rng(seed).choice(len(result), most, replace=False)
    return [result[place] for place in sorted(chosen.tolist())]


def _by_item(evaluator: str, system: str, records: Sequence[Record]) -> dict[str, Record]:
    check_records(records, "rank()")
    result: dict[str, Record] = {}
    for record in records:
        if record.item in result:
            message = f"takes one text for an item: system {system!r} has two texts for item {record.item!r}"
            raise InvalidCall(evaluator, "rank", f"{message}: make two systems of it")
        result[record.item] = record
    return result
