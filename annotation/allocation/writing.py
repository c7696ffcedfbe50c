"""The rules of reference writing: what becomes of a text that is sent (accept, edit, drop), who gets which arm and
group, in which order candidates are shown, when a round goes on. Scores come from the caller; nothing is stored here.

The table (Gao et al. 2021, interactive annotation), for each candidate of the arm *scores*:

| relevant | improved | action |
|---|---|---|
| yes | yes | kept as it is |
| no | yes | edited; accepted when the edited text still improves the set |
| yes or no | no | edited; accepted when it improves the set |

After `max_attempts` edited texts without acceptance the candidate is dropped. Sending a candidate as it is, the first
time, is no edit. A text of one's own counts as edited from the start."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .streams import draw

Arm = Literal["scores", "control", "candidates"]
Decision = Literal["accept", "edit", "drop", "wait"]
Why = Literal["", "irrelevant", "no-gain", "no-score", "limit"]

ARMS: tuple[Arm, ...] = ("scores", "control", "candidates")


@dataclass(frozen=True)
class Rules:
    """What an arm enforces. `min_gain`: the score must grow by more than this (0: the paper's rule)."""

    arm: Arm
    max_attempts: int = 3
    min_gain: float = 0.0
    own_text: bool = True


@dataclass(frozen=True)
class Tried:
    """What has been sent for this candidate before: whether as it is, and how many edited texts."""

    as_it_is: bool = False
    edits: int = 0


@dataclass(frozen=True)
class Attempt:
    """A text that is sent. `candidate` is None for a text of one's own; `relevant` is what the annotator says of the
    candidate (None: not said, which for a candidate sent as it is means yes). `before` and `after` are the scores of
    the set without and with the text, None where there is none; `empty` says that the set has no reference yet, hence
    no score. `unscored`: the annotator chose to add it without a score."""

    text: str
    candidate: str | None = None
    relevant: bool | None = None
    before: float | None = None
    after: float | None = None
    empty: bool = False
    unscored: bool = False

    @property
    def is_edited(self) -> bool:
        return self.candidate is None or squeeze(self.text) != squeeze(self.candidate)


@dataclass(frozen=True)
class Verdict:
    """`improved` is None where no score decided. `counted`: the attempt used up one of the edits. `left`: edits that
    remain for this candidate; 0 once it is closed. *wait* stores nothing and uses nothing up."""

    decision: Decision
    improved: bool | None
    counted: bool
    left: int
    why: Why = ""

    @property
    def closes(self) -> bool:
        """Whether the candidate is dealt with."""
        return self.decision in ("accept", "drop")


def squeeze(text: str) -> str:
    """Without what no reader sees: NFC, runs of white space as one blank."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def same_text(text: str) -> str:
    """The form in which two references count as one: NFKC, case folded, white space squeezed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def is_allowed(rules: Rules, attempt: Attempt) -> bool:
    """Whether the arm lets the annotator write this at all: the arm *candidates* takes candidates as they are, and a
    text of one's own needs `own_text`."""
    if rules.arm == "candidates":
        return not attempt.is_edited
    return rules.own_text or attempt.candidate is not None


def has_improved(rules: Rules, attempt: Attempt) -> bool | None:
    """Whether the score grew by more than `min_gain`; None without both scores. The first reference of an empty set
    has nothing to be compared with."""
    if attempt.before is None or attempt.after is None:
        return None
    return attempt.after - attempt.before > rules.min_gain


def judge_attempt(rules: Rules, tried: Tried, attempt: Attempt) -> Verdict:
    """What becomes of the text. Raises ValueError where `is_allowed` says no, or the candidate was closed before."""
    if not is_allowed(rules, attempt):
        raise ValueError("this arm does not take such a text")
    if tried.edits >= rules.max_attempts:
        raise ValueError("this candidate was dropped before")
    counted = attempt.is_edited or tried.as_it_is
    improved = has_improved(rules, attempt) if rules.arm == "scores" else None
    if rules.arm == "candidates":
        decision: Decision = "drop" if attempt.relevant is False else "accept"
        return Verdict(decision, None, counted, 0, "irrelevant" if decision == "drop" else "")
    why = _objection(rules, attempt, improved)
    if why == "no-score":
        return Verdict("wait", None, False, rules.max_attempts - tried.edits, why)
    if not why:
        return Verdict("accept", improved, counted, 0)
    left = rules.max_attempts - tried.edits - counted
    if left <= 0:
        return Verdict("drop", improved, counted, 0, "limit")
    return Verdict("edit", improved, counted, left, why)


def _objection(rules: Rules, attempt: Attempt, improved: bool | None) -> Why:
    """Why the text cannot be added as it stands; empty when it can."""
    if rules.arm == "scores" and not attempt.empty:
        if improved is None and not attempt.unscored:
            return "no-score"
        if improved is False:
            return "no-gain"
    if attempt.relevant is False and not attempt.is_edited:
        return "irrelevant"
    return ""


# ---- who gets what ----------------------------------------------------------------------------------------


def arm_at(seed: int, arms: Sequence[str], place: int, stream: str) -> str:
    """The arm of the person, group or item at `place` (0, 1, 2, ...). Places are cut into blocks of as many as there
    are arms; each block holds every arm once, in an order of its own: after any number of places no arm has been given
    twice more often than another."""
    block, within = divmod(place, len(arms))
    return sorted(arms, key=lambda arm: (draw(seed, "arm", stream, block, arm), arm))[within]


def group_at(place: int, size: int) -> int:
    """The group of the person who came at `place`: the first `size` people are group 0, the next group 1."""
    return place // size


def shown_order(seed: int, key: str, count: int) -> list[int]:
    """The order in which the `count` candidates of item `key` are shown in rounds: a permutation of 0 .. count - 1,
    the same for every group."""
    return sorted(range(count), key=lambda place: (draw(seed, "shown", key, place), place))


@dataclass(frozen=True)
class Place:
    """Where a member of a group stands: the number of the item in the campaign's order, how many rounds of it they
    have dealt with, and whether they are there (their lease has not passed)."""

    item: int
    dealt: int
    present: bool = True


def waits_for(own: Place, others: Iterable[Place]) -> int:
    """For how many of the group somebody waits who has dealt with `own.dealt` rounds and wants the next: for those
    present who are still in the round just dealt with, or, at the beginning of an item, in the item before it. Who is
    further behind was absent when the others went on, and comes after them at their own pace; nobody waits for them,
    and the hindmost waits for nobody."""
    return sum(
        other.present
        and (
            (other.item == own.item and other.dealt == own.dealt - 1)
            or (own.dealt == 0 and other.item == own.item - 1)
        )
        for other in others
    )  # fmt: skip
