"""Gives assignments to annotators and stores their answers, for the judging page and the API. The SQL statements are in
`judging_rows`; late answers, revisions and replays are in `judging_later`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Literal
from uuid import UUID

import orjson
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.answers import NOTE_LENGTH, check_answer, is_expected, turn, turn_expected
from annotation.allocation.streams import draw
from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import Campaign, CampaignMember
from annotation.selectors.judging_sheet import Sheet, get_sheet
from annotation.selectors.own_campaigns import NotBegun, NotInvited, check_invited
from evalapp.accounts.models import User
from evalapp.accounts.roles import ROLES_FOR
from evalapp.accounts.selectors import check_token, get_project, may_enter
from evalapp.common.errors import BadInput, Conflict, Fault, NotAllowed, NotThere

from . import judging_later, judging_rows
from .judging_handout import Why, hand_out, renew_if_short
from .judging_rows import (
    Answer,
    AssignmentView,
    LockedAssignment,
    MemberContext,
    join_member,
    lock_assignment,
    lock_member,
)
from .participants import check_may_answer
from .statements import parse_moment, run, run_batch

LONGEST = 86_400.0

Then = Literal["", "next", "ahead"]
WHY_TEXT: dict[str, str | Promise] = {
    "empty": gettext_lazy("You have judged everything in this campaign. Thank you."),
    "limit": gettext_lazy("You have reached the maximum number of judgements per person. Thank you."),
    "draft": gettext_lazy("This campaign is not open yet."),
    "paused": gettext_lazy("This campaign is paused. You can still submit the text that you have open."),
    "closed": gettext_lazy("This campaign is closed."),
    "ended": gettext_lazy("You have finished this study. Thank you."),
    "full": gettext_lazy("All places of this study are taken. Thank you for your interest."),
}


class CampaignNotOpen(Conflict):
    code, title = "campaign-not-open", gettext_lazy("The campaign is not open")


@dataclass(frozen=True)
class Progress:
    """An annotator's progress. `goal` is the number of judgements that they can give; `seconds` is their total time."""

    done: int
    goal: int
    skipped: int
    seconds: float
    practised: int
    practice: int

    @property
    def mean_seconds(self) -> float | None:
        return self.seconds / self.done if self.done else None

    def wire(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "goal": self.goal,
            "skipped": self.skipped,
            "seconds": round(self.seconds, 1),
            "mean_seconds": None if self.mean_seconds is None else round(self.mean_seconds, 1),
            "practised": self.practised,
            "practice": self.practice,
        }


def make_progress(who: MemberContext | CampaignMember, sheet: Sheet) -> Progress:
    goal = max(sheet.goal, who.done)
    return Progress(who.done, goal, who.skipped, who.seconds, who.practised, sheet.practice_count)


@dataclass(frozen=True)
class NextAssignment:
    """The next assignment of an annotator, or the reason (`why`) why there is none."""

    sheet: Sheet
    progress: Progress
    shown: AssignmentView | None
    why: Why = ""

    def wire(self) -> dict[str, Any] | None:
        return None if self.shown is None else wire_assignment(self.shown, self.sheet, self.progress)


def wire_assignment(shown: AssignmentView, sheet: Sheet, progress: Progress) -> dict[str, Any]:
    """An assignment in the form that the API returns."""
    return {
        **shown.wire(),
        "campaign": sheet.campaign_id,
        "kind": sheet.kind,
        "form": orjson.Fragment(sheet.form_json),
        "progress": progress.wire(),
    }


# ---- handing out ------------------------------------------------------------------------------------------


def get_next_assignment(*, user: User, campaign_id: int, ahead: bool = False, joins: bool = True) -> NextAssignment:
    """The oldest open assignment of the annotator, or a new one; with `ahead`, the one after it. Without `joins`,
    NotBegun is raised before the first one."""
    if campaign_id >= 2**63:
        raise NotThere(_("There is no such campaign that you can see."))
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        who = lock_member(cursor, campaign_id, user.pk)
        if who is None:
            if not joins:
                raise NotBegun
            join_campaign(cursor, user=user, campaign_id=campaign_id)
            who = lock_member(cursor, campaign_id, user.pk)
            assert who is not None
        sheet = get_sheet(campaign_id, who.stamp, who.revision)
        check_right(user, who, sheet)
        run(cursor, *judging_rows.select_open(campaign_id, user.pk))
        shown, why = hand_out(cursor, who, sheet, judging_rows.fetch_assignments(cursor), ahead=ahead, now=now)
        if shown is not None:
            renew_if_short(cursor, shown, sheet, now)
    return NextAssignment(sheet, make_progress(who, sheet), shown, why)


def join_campaign(cursor: Any, *, user: User, campaign_id: int) -> None:
    """Add the user to a campaign of a project in which they may annotate."""
    if join_member(cursor, campaign_id, user.pk, lambda seed: draw(seed, "member", user.pk)):
        return
    campaign = Campaign.objects.select_related("project").filter(pk=campaign_id).first()
    if campaign is None:
        raise NotThere(_("There is no such campaign that you can see."))
    project = get_project(user=user, slug=campaign.project.slug, need="annotate")
    if project.role is None:  # type: ignore[attr-defined]
        raise NotAllowed(_("Only members of the project can judge. Join the project first."))
    check_invited(project=project, campaign=campaign)
    if campaign.state == Campaign.State.DRAFT:
        raise CampaignNotOpen(str(WHY_TEXT["draft"]))
    raise _role_refused(project.role)  # type: ignore[attr-defined]


def _role_refused(role: str) -> NotAllowed:
    return NotAllowed(_("As %(role)s of this project you may not judge. Ask an owner of the project.") % {"role": role})


def check_right(user: User, who: MemberContext, sheet: Sheet) -> None:
    if who.role not in ROLES_FOR["annotate"]:
        raise _role_refused(who.role)
    if not who.every_campaign and not may_enter(
        user=user, project_id=sheet.project_id, campaign=f"judging:{who.campaign_id}"
    ):
        raise NotInvited
    token = getattr(user, "api_token", None)
    if token is not None:
        project: Any = SimpleNamespace(pk=sheet.project_id, slug=sheet.project_slug)
        check_token(token, project, "annotate")


# ---- answering --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Submitted:
    """A stored answer, with the next assignment if it was requested. `extra` is not sent to the annotator, because it
    would identify control units."""

    public: str
    version: int
    extra: bool
    created_at: datetime
    sheet: Sheet
    progress: Progress
    feedback: dict[str, Any] | None = None
    next: AssignmentView | None = None
    why: Why = ""
    repeated: bool = field(default=False)  # the same submission was received before

    def wire(self) -> dict[str, Any]:
        following = None if self.next is None else wire_assignment(self.next, self.sheet, self.progress)
        return {
            "id": self.public,
            "state": "submitted",
            "version": self.version,
            "saved_at": self.created_at,
            "feedback": self.feedback,
            "progress": self.progress.wire(),
            "next": following,
            "why": self.why,
        }


def submit_answer(
    *,
    user: User,
    public: str,
    submission: UUID,
    answer: Any,
    note: str = "",
    seconds: float | None = None,
    replaces: int | None = None,
    then: Then = "",
    campaign_id: int | None = None,
) -> Submitted:
    """Store an answer. The same `submission` again returns the first result. A revision gives the version that it
    `replaces`. `then` requests the next assignment in the same transaction. If `campaign_id` is given, it must match
    the assignment's campaign."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            now = timezone.now()
            assignment = lock_assignment(cursor, public, user.pk)
            if assignment is None or campaign_id not in (None, assignment.who.campaign_id):
                raise NotThere(_("There is no such assignment of yours."))
            sheet = get_sheet(assignment.who.campaign_id, assignment.who.stamp, assignment.who.revision)
            check_right(user, assignment.who, sheet)
            if assignment.who.hired:
                check_may_answer(user, submission)
            checked = check_submission(assignment, sheet, submission, answer, note, seconds, replaces, now)
            return _store(cursor, assignment, sheet, checked, then, now)
    except IntegrityError as error:
        # The submission id is already in use: a concurrent request, or an id used for something else.
        conflict = judging_later.find_submission_conflict(submission, user, answer, note)
        if conflict is None:
            raise
        raise conflict from error


def check_submission(
    assignment: LockedAssignment, sheet: Sheet, submission: UUID, answer: Any, note: str, seconds: float | None,
    replaces: int | None, now: datetime,
) -> Answer:  # fmt: skip
    shown, problems = check_answer(sheet.form, answer)
    if len(note) > NOTE_LENGTH:
        problems.append(("note", _("The note is longer than %(n)d characters.") % {"n": NOTE_LENGTH}))
    if not is_storable(note):
        problems.append(("note", UNSTORABLE))
    if problems:
        faults = [Fault(message, field=where) for where, message in problems]
        several = _("The answer has %(n)d errors.") % {"n": len(faults)}
        raise BadInput(faults[0].message if len(faults) == 1 else several, faults=faults)
    plain = turn(shown, assignment.swapped)
    body = [assignment.public, shown, note, replaces or 0]
    if seconds is None:
        seconds = (now - parse_moment(assignment.opened_at)).total_seconds()
    return Answer(
        submission=submission.hex,
        shown=shown,
        plain=plain,
        body_hash=hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        note=note,
        seconds=min(max(float(seconds), 0.0), LONGEST),
        replaces=replaces or None,
        passed=is_expected(sheet.kind, assignment.expected, plain) if assignment.expected else None,
    )


def _store(
    cursor: Any, assignment: LockedAssignment, sheet: Sheet, answer: Answer, then: Then, now: datetime
) -> Submitted:
    who, version, extra, moment, repeated = assignment.who, assignment.version + 1, False, now, False
    if assignment.state == "open" and not answer.replaces and judging_rows.take_answer(cursor, assignment, now):
        statements = [
            judging_rows.insert_judgement(assignment, answer, version, now),
            *judging_later.make_results(assignment, sheet, answer),
            judging_rows.count_done(assignment, answer.seconds, now),
        ]
        if then:
            statements.append(judging_rows.select_open(who.campaign_id, who.user_id))
        run_batch(cursor, statements)
        judging_later.note_done(assignment, answer)
    else:
        version, extra, moment, repeated = judging_later.store_other(cursor, assignment, sheet, answer, now)
        if then:
            run(cursor, *judging_rows.select_open(who.campaign_id, who.user_id))
    shown: AssignmentView | None = None
    why: Why = ""
    if then:
        shown, why = hand_out(
            cursor, who, sheet, judging_rows.fetch_assignments(cursor), ahead=then == "ahead", now=now
        )
    return Submitted(
        public=assignment.public,
        version=version,
        extra=extra,
        created_at=moment,
        sheet=sheet,
        progress=make_progress(who, sheet),
        feedback=make_feedback(assignment, answer),
        next=shown,
        why=why,
        repeated=repeated,
    )


def make_feedback(assignment: LockedAssignment, answer: Answer) -> dict[str, Any] | None:
    """The expected answer of a practice unit with its reason; None for other units."""
    if assignment.unit_kind != "practice" or not isinstance(assignment.expected, Mapping):
        return None
    return {
        "passed": answer.passed,
        "expected": turn_expected(assignment.expected, assignment.swapped),
        "why": assignment.why,
    }
