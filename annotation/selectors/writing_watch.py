"""Progress of a writing campaign: accepted, edited and discarded texts, and the predicted reliability of the sets by
round, annotator and arm, with intervals over items. Attempts are read once, without texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import BooleanField, Count, ExpressionWrapper, Q
from django.utils.translation import gettext as _

from annotation.models import (
    Reference,
    WritingAttempt,
    WritingCampaign,
    WritingMember,
    WritingTask,
    WrittenReference,
)
from annotation.selectors.writing import is_taken_back
from evalapp.accounts.models import User
from evalapp.accounts.selectors import get_project, rater_names

from .attributes import read_attributes

if TYPE_CHECKING:
    from evalapp.stats.core.estimate import Estimate

RESAMPLES = 1000


class _Row(NamedTuple):
    item: int
    arm: str
    member: int
    set: int
    round: int
    decision: str
    edited: bool
    unscored: bool
    before: float | None
    after: float | None
    seconds: float | None
    has_candidate: bool
    taken_back: bool

    @property
    def is_accepted(self) -> bool:
        """Whether the text was added and not taken back by its annotator."""
        return self.decision == WritingAttempt.Decision.ACCEPT and not self.taken_back


@dataclass
class WritingRow:
    """Figures of an arm or an annotator. `items`: items with an attempt; `references`: in a set or waiting; `accepted`,
    `edited`, `dropped` and `taken_back`: attempts by outcome; `as_they_are`: accepted candidates without an edit;
    `gain`: mean gain of an accepted text, with its interval over items."""

    name: str
    arm: str = ""
    user_id: int | None = None
    items: int = 0
    references: int = 0
    attempts: int = 0
    accepted: int = 0
    edited: int = 0
    dropped: int = 0
    taken_back: int = 0
    own_texts: int = 0
    as_they_are: int = 0
    unscored: int = 0
    seconds: float = 0.0
    gain: Estimate | None = None
    done: int = 0
    skipped: int = 0
    last_at: Any = None

    @property
    def seconds_per_reference(self) -> float | None:
        return self.seconds / self.accepted if self.accepted else None

    @property
    def attempts_per_reference(self) -> float | None:
        return self.attempts / self.accepted if self.accepted else None

    def share(self, count: int) -> float | None:
        return count / self.attempts if self.attempts else None

    @property
    def shares(self) -> dict[str, float | None]:
        return {name: self.share(getattr(self, name)) for name in ("accepted", "edited", "dropped")}

    def wire(self) -> dict[str, Any]:
        names = (
            "name arm items done skipped references attempts accepted edited dropped taken_back own_texts as_they_are "
            "unscored seconds_per_reference"
        )
        return {**read_attributes(self, names), "gain": self.gain.as_dict() if self.gain else None}


@dataclass(frozen=True)
class Point:
    """Mean predicted reliability of the sets at a round, with its interval over items; `n` is the number of sets. Sets
    that stopped earlier count with their last value."""

    round: int
    mean: float
    low: float | None
    high: float | None
    n: int

    def wire(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ArmComparison:
    """The difference in growth between the sets of arms `a` and `b`: mean (last - first) predicted reliability.
    `paired`: over items that both arms wrote for."""

    a: str
    b: str
    difference: Estimate
    paired: bool

    def wire(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, "paired": self.paired, "difference": self.difference.as_dict()}


@dataclass
class WritingWatch:
    campaign: WritingCampaign
    figures: dict[str, Any] = field(default_factory=dict)
    arms: list[WritingRow] = field(default_factory=list)
    people: list[WritingRow] = field(default_factory=list)
    by_arm: dict[str, list[Point]] = field(default_factory=dict)
    by_person: dict[str, list[Point]] = field(default_factory=dict)
    comparisons: list[ArmComparison] = field(default_factory=list)

    def wire(self) -> dict[str, Any]:
        return {
            "campaign": self.campaign.pk,
            "state": self.campaign.state,
            "figures": self.figures,
            "arms": [row.wire() for row in self.arms],
            "people": [row.wire() for row in self.people],
            "by_arm": {name: [point.wire() for point in points] for name, points in self.by_arm.items()},
            "by_person": {name: [point.wire() for point in points] for name, points in self.by_person.items()},
            "comparisons": [row.wire() for row in self.comparisons],
        }


def watch(*, user: User, campaign: WritingCampaign) -> WritingWatch:
    """The figures of the campaign page. At most eight queries."""
    get_project(user=user, slug=campaign.project.slug, need="read")
    rows = _attempts(campaign)
    members = {row.pk: row for row in WritingMember.objects.filter(campaign=campaign).select_related("annotator")}
    pseudonyms = rater_names(campaign.project_id)
    counted = WrittenReference.objects.filter(campaign=campaign).values("member", "task__arm").annotate(
        n=Count("pk", filter=Q(state__in=[WrittenReference.State.SHOWN.value, WrittenReference.State.WAITING.value]))
    )  # fmt: skip
    figures = WritingWatch(campaign)
    names = {pk: pseudonyms.get(row.annotator_id, f"former member {row.number}") for pk, row in members.items()}
    for arm in campaign.options["arms"]:
        line = _line(WritingRow(arm, arm=arm), [row for row in rows if row.arm == arm])
        line.references = sum(row["n"] for row in counted if row["task__arm"] == arm)
        figures.arms.append(line)
    for pk, member in sorted(members.items()):
        line = WritingRow(
            names[pk], arm=member.arm, user_id=member.annotator_id, done=member.done, skipped=member.skipped,
            last_at=member.last_at,
        )  # fmt: skip
        line = _line(line, [row for row in rows if row.member == pk])
        line.references = sum(row["n"] for row in counted if row["member"] == pk)
        figures.people.append(line)
    figures.figures = _figures(campaign, rows, figures)
    by_rounds = campaign.in_rounds
    for arm, sets in _series(rows, lambda row: row.arm, lambda row: (row.item, row.set), by_rounds).items():
        figures.by_arm[arm] = compute_points(sets)
    for pk, sets in _series(rows, lambda row: row.member, lambda row: (row.item, row.member), by_rounds).items():
        figures.by_person[names[pk]] = compute_points(sets)
    figures.comparisons = _comparisons(campaign, rows)
    return figures


def _attempts(campaign: WritingCampaign) -> list[_Row]:
    rows = WritingAttempt.objects.filter(campaign=campaign).order_by("pk")
    has_candidate = ExpressionWrapper(Q(candidate_text__isnull=False), BooleanField())
    values = rows.annotate(has_candidate=has_candidate, taken_back=is_taken_back()).values_list(
        "task__unit__item", "task__arm", "member", "member__set", "round", "decision", "edited", "unscored",
        "score_before", "score_after", "seconds", "has_candidate", "taken_back",
    )  # fmt: skip
    return [_Row(*row) for row in values.iterator(2000)]


def _line(line: WritingRow, rows: Sequence[_Row]) -> WritingRow:
    accepted = [row for row in rows if row.is_accepted]
    line.items = len({row.item for row in rows})
    line.attempts = len(rows)
    line.accepted = len(accepted)
    line.edited = sum(row.decision == WritingAttempt.Decision.EDIT for row in rows)
    line.dropped = sum(row.decision == WritingAttempt.Decision.DROP for row in rows)
    line.taken_back = sum(row.taken_back for row in rows)
    line.own_texts = sum(not row.has_candidate for row in accepted)
    line.as_they_are = sum(row.has_candidate and not row.edited for row in accepted)
    line.unscored = sum(row.unscored for row in accepted)
    line.seconds = sum(row.seconds or 0.0 for row in rows)
    scored = [
        (row.item, row.after - row.before) for row in accepted if row.before is not None and row.after is not None
    ]
    line.gain = _mean(
        [value for _, value in scored], [item for item, _ in scored], _("no accepted text has both scores")
    )
    return line


def _figures(campaign: WritingCampaign, rows: list[_Row], figures: WritingWatch) -> dict[str, Any]:
    accepted = sum(row.is_accepted for row in rows)
    seconds = sum(row.seconds or 0.0 for row in rows)
    tasks = WritingTask.objects.filter(campaign=campaign).aggregate(
        done=Count("unit", filter=Q(state=WritingTask.State.DONE), distinct=True),
        open=Count("pk", filter=Q(state=WritingTask.State.OPEN)),
    )
    return {
        "people": len(figures.people),
        "items": campaign.unit_count,
        "items_done": tasks["done"],
        "open": tasks["open"],
        "references": sum(row.references for row in figures.people),
        "attempts": len(rows),
        "seconds_per_reference": seconds / accepted if accepted else None,
    }


# ---- growth -------------------------------------------------------------------------------------------------

#: (round, score) of a set, with ascending rounds from 0.
_Growth = list[tuple[int, float]]
_Sets = list[tuple[int, _Growth]]


def _series(
    rows: Sequence[_Row], name_of: Callable[[_Row], Any], set_of: Callable[[_Row], Hashable], by_rounds: bool
) -> dict[Any, _Sets]:
    """(item, growth) of each set, by name. The round is the number of the candidate in rounds, otherwise the number of
    the reference; round 0 is the initial set. Texts added without a score leave a gap until the next score."""
    grown: dict[Any, dict[Hashable, tuple[int, _Growth]]] = defaultdict(dict)
    written: dict[tuple[Any, Hashable], int] = defaultdict(int)
    for row in rows:
        name, key = name_of(row), set_of(row)
        known = grown[name].get(key)
        if known is None and row.before is not None:
            # The score of the initial set or, if that was empty, of the first set with a score.
            so_far = written[name, key]
            begin = 0 if not so_far else row.round if by_rounds else so_far
            known = grown[name][key] = (row.item, [(begin, row.before)])
        if not row.is_accepted:
            continue
        written[name, key] += 1
        if known is not None and row.after is not None:
            known[1].append((row.round + 1 if by_rounds else written[name, key], row.after))
    return {name: list(sets.values()) for name, sets in grown.items() if sets}


def compute_points(sets: _Sets) -> list[Point]:
    """The mean score over sets at each round, from (item, growth of the score) of each set."""
    last = max(growth[-1][0] for _item, growth in sets)
    points = []
    for moment in range(min(growth[0][0] for _item, growth in sets), last + 1):
        known = [
            (item, max(place for place in growth if place[0] <= moment)[1])
            for item, growth in sets
            if growth[0][0] <= moment
        ]
        mean = _mean([value for _item, value in known], [item for item, _value in known], _("no set has a score"))
        low, high = (mean.low, mean.high) if mean.has_interval else (None, None)
        points.append(Point(moment, mean.value, low, high, len(known)))
    return points


@dataclass(frozen=True)
class GrownSet:
    """The references of an item in a set: the initial ones, and (round, text) of the added ones, in order. Texts that a
    researcher withdrew are included; those that their annotator took back or had deleted are not. `person` is empty if
    several annotators share the set."""

    item: int
    arm: str
    person: str
    start: tuple[str, ...]
    added: tuple[tuple[int, str], ...]


def list_grown_sets(*, campaign: WritingCampaign) -> list[GrownSet]:
    """The references of each item with an attempt in each set, by round. At most five queries."""
    rows = WritingAttempt.objects.filter(campaign=campaign).order_by("pk")
    added: dict[tuple[int, int], list[tuple[int, str]]] = {}
    written: Counter[tuple[int, int]] = Counter()
    about: dict[tuple[int, int], tuple[str, int]] = {}
    for item, set_, arm, person, moment, decision, text, taken_back in rows.values_list(
        "task__unit__item", "member__set", "task__arm", "member__annotator", "round", "decision", "text",
        is_taken_back(),
    ).iterator(2000):  # fmt: skip
        texts = added.setdefault((item, set_), [])
        about[item, set_] = (arm, person)
        if decision == WritingAttempt.Decision.ACCEPT and not taken_back:
            written[item, set_] += 1
            if text:
                texts.append((moment + 1 if campaign.in_rounds else written[item, set_], text))
    start: dict[tuple[int, int], list[str]] = defaultdict(list)
    there = Reference.objects.filter(set__in={set_ for _, set_ in added}, written=None).order_by("position")
    for item, set_, text in there.values_list("item", "set", "text").iterator(2000):
        if (item, set_) in added:
            start[item, set_].append(text)
    names = rater_names(campaign.project_id)
    return [
        GrownSet(
            key[0], about[key][0], names.get(about[key][1], "") if campaign.in_rounds else "", tuple(start[key]),
            tuple(texts),
        )
        for key, texts in added.items()
    ]  # fmt: skip


def _comparisons(campaign: WritingCampaign, rows: Sequence[_Row]) -> list[ArmComparison]:
    grown = _series(rows, lambda row: row.arm, lambda row: (row.item, row.set), campaign.in_rounds)
    paired = campaign.options["assign"] == "annotator"
    comparisons = []
    for a, b in combinations([arm for arm in campaign.options["arms"] if arm in grown], 2):
        gains = [_gain_by_item(grown[name]) for name in (a, b)]
        if paired:
            shared = sorted(gains[0].keys() & gains[1].keys())
            values = [gains[0][item] - gains[1][item] for item in shared]
            difference = _mean(values, shared, _("no item has scores in both arms"))
        else:
            difference = _difference(list(gains[0].values()), list(gains[1].values()))
        comparisons.append(ArmComparison(a, b, difference, paired))
    return comparisons


def _gain_by_item(sets: _Sets) -> dict[int, float]:
    """Last minus first score by item; the mean over its sets if annotators have their own."""
    gains: dict[int, list[float]] = defaultdict(list)
    for item, growth in sets:
        gains[item].append(growth[-1][1] - growth[0][1])
    return {item: sum(values) / len(values) for item, values in gains.items()}


def _mean(values: Sequence[float], items: Sequence[int], why: str) -> Estimate:
    """The mean with a percentile interval over resampled items; `n` counts the values."""
    import numpy as np

    from evalapp.stats.core.estimate import Estimate
    from evalapp.stats.resampling.bootstrap import resampled_sums, with_interval

    if not values:
        return Estimate.undefined(why)
    numbers = np.asarray(values, dtype=np.float64)
    known, cluster = np.unique(np.asarray(items), return_inverse=True)
    point = Estimate.point(float(numbers.mean()), len(values))
    columns = np.stack([numbers, np.ones_like(numbers)], axis=1)
    sums = resampled_sums(columns, cluster, len(known), resamples=RESAMPLES, seed=0)
    return with_interval(point, sums[:, 0] / sums[:, 1], clusters={"items": len(known)})


def _difference(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Difference of the means of two groups of items, resampled independently."""
    import numpy as np

    from evalapp.stats.core.estimate import Estimate
    from evalapp.stats.resampling.bootstrap import ClusterDraws, with_interval

    if not a or not b:
        return Estimate.undefined(_("an arm has no item with scores"))
    means = [
        np.asarray(values) @ ClusterDraws(len(values), 0, stream).take(RESAMPLES) / len(values)
        for stream, values in enumerate((a, b))
    ]
    point = Estimate.point(sum(a) / len(a) - sum(b) / len(b), len(a) + len(b))
    return with_interval(point, means[0] - means[1], clusters={"items of each arm": min(len(a), len(b))})
