"""Training pairs that need no judgement: people's texts against generated ones, later checkpoints against earlier.

Nothing is enumerated: pairs are drawn, so that memory grows with the number of texts, not of pairs. Pairs from people's
judgements are in `human.py`.

Explained in docs/explanation/evaluators/comparative.md#strong-pairs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from evalapp.translation import gettext as _
from scoring.ml.errors import TrainingDataError
from scoring.ml.training.job import RowTracker, without_progress
from scoring.ml.types import Dataset, Record

Target: TypeAlias = tuple[float, float, float]
#: Targets of the first text against the second: worse, tie, better.
WORSE_TARGET: Target = (1.0, 0.0, 0.0)
TIE_TARGET: Target = (0.0, 1.0, 0.0)
BETTER_TARGET: Target = (0.0, 0.0, 1.0)
#: Without dev losses, both of two checkpoints beyond this share of all training are "almost converged".
CONVERGED_SHARE = 0.8
#: With dev losses: within this share of the least one.
CONVERGED_LOSS = 0.01
#: The curriculum begins at the least margin plus this and ends at this progress.
CURRICULUM_WIDTH, CURRICULUM_END = 0.70, 0.80
_ATTEMPTS = 20


class Pair(NamedTuple):
    """Two texts and how the first compares with the second: a distribution over worse, tie, better."""

    a: Record
    b: Record
    target: Target

    def mirrored(self) -> Pair:
        """The same pair with the sides exchanged."""
        return Pair(self.b, self.a, (self.target[2], self.target[1], self.target[0]))


def smooth_target(target: Target, smoothing: float, tie: bool) -> Target:
    """Return label smoothing of a `target`: (1 - e) target + e / k, e = `smoothing`, k the number of classes: 3, or 2
    without `tie`."""
    share = smoothing / (3 if tie else 2)
    worse, equal, better = ((1 - smoothing) * part + share for part in target)
    return (worse, equal if tie else 0.0, better)


def _grouped(records: Sequence[Record]) -> dict[str, list[int]]:
    of_item: dict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        of_item[record.item].append(place)
    return dict(of_item)


def _differ(records: Sequence[Record], places: Iterable[int]) -> bool:
    return len({records[place].text for place in places}) > 1


def _pick(rng: np.random.Generator, n: int) -> int:
    return int(rng.integers(n))


@dataclass(frozen=True)
class Samples:
    """Texts by origin: `real` were written by people (references, and outputs of human and reference systems),
    `generated` by machines; blank texts and controls are in neither."""

    real: tuple[Record, ...]
    generated: tuple[Record, ...]

    @classmethod
    def of(cls, dataset: Dataset, track: RowTracker = without_progress) -> Samples:
        """The texts of a dataset, every distinct reference of an item once."""
        kinds = {system.id: system.kind for system in dataset.systems}
        real: dict[tuple[str, str], Record] = {}
        generated: list[Record] = []
        for item in track(dataset.items):
            for text in item.references:
                if text.strip():
                    real.setdefault((item.id, text), item.make_record(text, "reference"))
        for record in track(dataset.outputs_with_context()):
            kind = kinds.get(record.system, "machine")
            plain = replace(record, references=())
            if record.text.strip() and kind in ("human", "reference"):
                real.setdefault((record.item, record.text), plain)
            elif record.text.strip() and kind == "machine":
                generated.append(plain)
        return cls(tuple(real.values()), tuple(generated))


class StrongPairs:
    """Real against generated texts (better, worse), and ties within each.

    The three classes (two without ties) are equally frequent, however often texts repeat. Half of the ties are real
    against real, half generated against generated from one checkpoint of a single system; if one kind lacks two
    different texts, only the other occurs. `same_context` is the share of pairs within one item, if items hold both
    texts; a checkpoint has one text per item, so generated ties cross contexts.
    """

    def __init__(self, samples: Samples, *, same_context: float, tie: bool) -> None:
        self.real, self.generated = samples.real, samples.generated
        self.same_context, self.tie = same_context, tie
        self._real_of, self._generated_of = _grouped(self.real), _grouped(self.generated)
        self._both = [item for item in self._real_of if item in self._generated_of]
        self._several = [item for item, places in self._real_of.items() if _differ(self.real, places)]
        makers: dict[tuple[str, int | None], list[int]] = defaultdict(list)
        for place, record in enumerate(self.generated):
            makers[(record.system, record.step)].append(place)
        self._makers = [places for places in makers.values() if _differ(self.generated, places)]
        self._real_tie = _differ(self.real, range(len(self.real)))
        self._ties = tie and (self._real_tie or bool(self._makers))

    def __bool__(self) -> bool:
        return bool(self.real) and bool(self.generated)

    def draw(self, rng: np.random.Generator, n: int, progress: float = 1.0) -> list[Pair]:
        """n pairs; `progress` has no effect."""
        return [self._one(rng) for _ in range(n)]

    def _one(self, rng: np.random.Generator) -> Pair:
        # The kind of pair is drawn only once: redrawing it for repeated texts would make that kind rarer.
        kind = _pick(rng, 3 if self._ties else 2)
        draw = self._decisive if kind < 2 else self._choose_tie(rng)
        for _attempt in range(_ATTEMPTS):
            pair = draw(rng)
            if pair.a.text != pair.b.text:
                return pair.mirrored() if kind == 1 else pair
        # People and machines wrote the same text.
        return pair._replace(target=TIE_TARGET) if self.tie else pair

    def _decisive(self, rng: np.random.Generator) -> Pair:
        if self._both and rng.random() < self.same_context:
            item = self._both[_pick(rng, len(self._both))]
            reals, generated = self._real_of[item], self._generated_of[item]
            return Pair(
                self.real[reals[_pick(rng, len(reals))]],
                self.generated[generated[_pick(rng, len(generated))]],
                BETTER_TARGET,
            )
        real = self.real[_pick(rng, len(self.real))]
        return Pair(real, self.generated[_pick(rng, len(self.generated))], BETTER_TARGET)

    def _choose_tie(self, rng: np.random.Generator) -> Callable[[np.random.Generator], Pair]:
        if self._makers and (not self._real_tie or rng.random() < 0.5):
            return self._generated_tie
        return self._tie_of_people

    def _generated_tie(self, rng: np.random.Generator) -> Pair:
        places = self._makers[_pick(rng, len(self._makers))]
        one, two = rng.choice(len(places), 2, replace=False).tolist()
        return Pair(self.generated[places[one]], self.generated[places[two]], TIE_TARGET)

    def _tie_of_people(self, rng: np.random.Generator) -> Pair:
        if self._several and rng.random() < self.same_context:
            places = self._real_of[self._several[_pick(rng, len(self._several))]]
            one, two = rng.choice(len(places), 2, replace=False).tolist()
            return Pair(self.real[places[one]], self.real[places[two]], TIE_TARGET)
        one, two = _pick(rng, len(self.real)), _pick(rng, len(self.real))
        return Pair(self.real[one], self.real[two], TIE_TARGET)


@dataclass(frozen=True)
class Rung:
    """Two checkpoints of a system that may be paired: the later one is better; `margin` is their distance."""

    system: str
    earlier: int
    later: int
    margin: float


def margin_floor(progress: float, least: float) -> float:
    """least + 0.70 (1 - min(1, progress / 0.8)): distant checkpoints first, all allowed ones from 0.8 on."""
    return least + CURRICULUM_WIDTH * (1 - min(1.0, progress / CURRICULUM_END))


def converged_steps(steps: Sequence[int], losses: Mapping[int, float] | None) -> frozenset[int]:
    """Return the "almost converged" checkpoints among `steps`: all from the first whose dev loss is within 1 % of the
    minimum.

    Without dev `losses`, those beyond 0.8 of the last step.
    """
    ordered = sorted(steps)
    if not losses:
        return frozenset(step for step in ordered if step > CONVERGED_SHARE * ordered[-1])
    known = [step for step in ordered if step in losses]
    if not known:
        return frozenset()
    least = min(losses[step] for step in known)
    first = next(step for step in known if losses[step] <= least + CONVERGED_LOSS * abs(least))
    return frozenset(step for step in known if step >= first)


class WeakPairs:
    """Texts of a later checkpoint against texts of an earlier one of the same system.

    Checkpoints are paired if they are at least `margin` of the last step apart and not both almost converged. With
    `curriculum`, only pairs at least `margin_floor` apart are drawn at a given progress, or the most distant ones if
    there are none. Dev losses are in the system's meta as {"dev_losses": {step: loss}}.
    """

    def __init__(
        self,
        dataset: Dataset,
        samples: Samples,
        *,
        margin: float,
        curriculum: bool,
        same_context: float,
        smoothing: float,
        tie: bool,
    ) -> None:
        self.margin, self.curriculum, self.same_context = margin, curriculum, same_context
        self._target = smooth_target(BETTER_TARGET, smoothing, tie)
        metas = {system.id: system.meta for system in dataset.systems}
        self._texts: dict[tuple[str, int], dict[str, Record]] = defaultdict(dict)
        for record in samples.generated:
            if record.step is not None:
                self._texts[(record.system, record.step)][record.item] = record
        steps: dict[str, list[int]] = defaultdict(list)
        for system, step in self._texts:
            steps[system].append(step)
        #: Steps of each system that has any.
        self.steps: dict[str, list[int]] = {system: sorted(own) for system, own in steps.items()}
        self.rungs: dict[str, list[Rung]] = {}
        for system, own in self.steps.items():
            rungs = _rungs(system, own, margin, _losses(system, metas.get(system, {})))
            if rungs:
                self.rungs[system] = rungs
        self._systems = sorted(self.rungs)
        self._shared: dict[Rung, list[str]] = {
            rung: [i for i in self._texts[(system, rung.later)] if i in self._texts[(system, rung.earlier)]]
            for system, rungs in self.rungs.items()
            for rung in rungs
        }

    def __bool__(self) -> bool:
        return bool(self.rungs)

    def draw(self, rng: np.random.Generator, n: int, progress: float = 1.0) -> list[Pair]:
        """n pairs as the curriculum allows them at `progress`, from 0 to 1."""
        floor = margin_floor(progress, self.margin) if self.curriculum else self.margin
        allowed = {system: self.at_least(system, floor) for system in self._systems}
        return [self._one(rng, allowed) for _ in range(n)]

    def at_least(self, system: str, floor: float) -> list[Rung]:
        """The rungs of a system with at least the distance `floor`, or its most distant ones."""
        rungs = self.rungs[system]
        reach = min(floor, max(rung.margin for rung in rungs))
        return [rung for rung in rungs if rung.margin >= reach]

    def _one(self, rng: np.random.Generator, allowed: Mapping[str, list[Rung]]) -> Pair:
        for attempt in range(_ATTEMPTS):
            rungs = allowed[self._systems[_pick(rng, len(self._systems))]]
            rung = rungs[_pick(rng, len(rungs))]
            later, earlier = self._texts[(rung.system, rung.later)], self._texts[(rung.system, rung.earlier)]
            shared = self._shared[rung]
            if shared and rng.random() < self.same_context:
                item = shared[_pick(rng, len(shared))]
                pair = Pair(later[item], earlier[item], self._target)
            else:
                ours, theirs = list(later.values()), list(earlier.values())
                pair = Pair(ours[_pick(rng, len(ours))], theirs[_pick(rng, len(theirs))], self._target)
            if pair.a.text != pair.b.text or attempt == _ATTEMPTS - 1:
                break
        return pair.mirrored() if rng.random() < 0.5 else pair


def _losses(system: str, meta: Mapping[str, object]) -> dict[int, float] | None:
    """The dev losses in a system's meta; a loss that is not finite counts as unknown."""
    said = meta.get("dev_losses")
    if said is None:
        return None
    try:
        result = {int(step): float(loss) for step, loss in said.items()}  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        text = _('dev_losses of %(system)s must be numbers by training step, such as {"100": 2.5}, not %(said)r')
        raise TrainingDataError("comparative", text, system=system, said=said) from None
    return {step: loss for step, loss in result.items() if math.isfinite(loss)} or None


def _rungs(system: str, steps: Sequence[int], margin: float, losses: Mapping[int, float] | None) -> list[Rung]:
    last = max(steps)
    if last <= 0 or len(steps) < 2:
        return []
    late = converged_steps(steps, losses)
    result = []
    for place, earlier in enumerate(steps):
        for later in steps[place + 1 :]:
            distance = (later - earlier) / last
            if distance >= margin - 1e-12 and not (earlier in late and later in late):
                result.append(Rung(system, earlier, later, distance))
    return result
