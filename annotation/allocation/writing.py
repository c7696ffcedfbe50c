"""The rules of reference writing: the decision on a text (accept, edit, drop), the assignment of arms and groups, the
order of candidates, and when a round ends. Scores come from the caller; nothing is stored here.

The rules for each candidate in the arm *scores* (Gao et al. 2021, interactive annotation):

| relevant | improved | action | |---|---|---| | yes | yes | accepted as it is | | no | yes | edited; accepted if the
edited text still improves the set | | yes or no | no | edited; accepted if it improves the set |

After `max_attempts` edited texts without acceptance the candidate is discarded. Submitting a candidate as it is, the
first time, is not an edit. An own text counts as edited from the start."""

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
    """The rules of an arm. `min_gain`: the score must grow by more than this (0 in the paper)."""

    arm: Arm
    max_attempts: int = 3
    min_gain: float = 0.0
    own_text: bool = True


@dataclass(frozen=True)
class EarlierAttempts:
    """Earlier attempts for the candidate: whether it was submitted as it is, and the number of edited texts."""

    as_it_is: bool = False
    edits: int = 0


@dataclass(frozen=True)
class Attempt:
    """A submitted text. `candidate` is None for an own text. `relevant` is the annotator's answer on the candidate
    (None: no answer, which means yes if it is submitted as it is). `before` and `after` are the scores of the set
    without and with the text, or None. `empty`: the set has no reference yet, hence no score. `unscored`: the annotator
    adds the text without a score."""

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
    """The decision on a text. `improved` is None if no score was used. `counted`: the attempt used up one of the edits.
    `left`: edits that remain for this candidate; 0 once it is finished. *wait* stores nothing and uses up nothing."""

    decision: Decision
    improved: bool | None
    counted: bool
    left: int
    why: Why = ""

    @property
    def closes(self) -> bool:
        """Whether the candidate is finished."""
        return self.decision in ("accept", "drop")


def squeeze(text: str) -> str:
    """The text in NFC, with runs of white space as a single space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def same_text(text: str) -> str:
    """The form in which two references count as equal: NFKC, case folded, white space squeezed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def is_allowed(rules: Rules, attempt: Attempt) -> bool:
    """Whether the arm accepts the text: the arm *candidates* accepts only unedited candidates, and an own text needs
    `own_text`."""
    if rules.arm == "candidates":
        return not attempt.is_edited
    return rules.own_text or attempt.candidate is not None


def has_improved(rules: Rules, attempt: Attempt) -> bool | None:
    """Whether the score grew by more than `min_gain`; None without both scores. The first reference of an empty set has
    nothing to be compared with."""
    if attempt.before is None or attempt.after is None:
        return None
    return attempt.after - attempt.before > rules.min_gain


def judge_attempt(rules: Rules, tried: EarlierAttempts, attempt: Attempt) -> Verdict:
    """The decision on a text. Raises ValueError if `is_allowed` is false, or if the candidate was finished before."""
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
    """The reason why the text cannot be added unchanged; empty if it can."""
    if rules.arm == "scores" and not attempt.empty:
        if improved is None and not attempt.unscored:
            return "no-score"
        if improved is False:
            return "no-gain"
    if attempt.relevant is False and not attempt.is_edited:
        return "irrelevant"
    return ""


# ---- who gets what ----------------------------------------------------------------------------------------


def choose_arm(seed: int, arms: Sequence[str], place: int, stream: str) -> str:
    """The arm of the annotator, group or item at `place` (0, 1, 2, ...). Places are divided into blocks with one place
    per arm, in random order, so that the counts of arms never differ by more than one."""
    block, within = divmod(place, len(arms))
    return sorted(arms, key=lambda arm: (draw(seed, "arm", stream, block, arm), arm))[within]


def choose_group(place: int, size: int) -> int:
    """The group of the annotator at `place`: the first `size` annotators are group 0, the next group 1."""
    return place // size


def draw_order(seed: int, key: str, count: int) -> list[int]:
    """The order in which the `count` candidates of item `key` are shown in rounds: a permutation of 0 .. count - 1, the
    same for all groups."""
    return sorted(range(count), key=lambda place: (draw(seed, "shown", key, place), place))


@dataclass(frozen=True)
class GroupPosition:
    """The position of a member of a group: the number of the item in the campaign's order, the number of finished
    rounds, and whether they are present (their lease has not expired)."""

    item: int
    dealt: int
    present: bool = True


def waits_for(own: GroupPosition, others: Iterable[GroupPosition]) -> int:
    """The number of group members that an annotator with `own.dealt` finished rounds waits for: those present who are
    still in the round just finished or, at the start of an item, in the previous item. Members further behind were
    absent when the others continued; they follow at their own pace, and no one waits for them."""
    return sum(
        other.present
        and (
            (other.item == own.item and other.dealt == own.dealt - 1)
            or (own.dealt == 0 and other.item == own.item - 1)
        )
        for other in others
    )  # fmt: skip
