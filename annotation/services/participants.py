"""Hired participants on their way: they enter by a link, hold a place while they work, and end.

Locks are taken in this order: the member's row of the campaign, then the link's row, which serialises who gets a place.
Rows of other participants are only changed if nobody has locked them."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.recruitment import RecruitmentPlan, list_failed_rules, read_question_answers
from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import Campaign, ConsentText, Judgement, Participant, Recruitment
from annotation.selectors.judging_sheet import Sheet
from annotation.selectors.own_campaigns import make_campaign_key
from annotation.selectors.participants import compute_works, find_obstacle
from evalapp.accounts.authentication import digest
from evalapp.accounts.models import Project, User
from evalapp.accounts.roles import Role
from evalapp.accounts.services import add_member
from evalapp.accounts.services.members import ALPHABET
from evalapp.common.errors import BadInput, Conflict, Fault, NotAllowed

from .campaign_events import record_participant_end
from .judging_rows import AssignmentView, MemberContext

State = Participant.State
REMARK_LENGTH = 2_000
OBSTACLES: dict[str, str | Promise] = {
    "banned": gettext_lazy(
        "You cannot take part in this study. If you think this is a mistake, contact the researchers."
    ),
    "earlier": gettext_lazy(
        "You have taken part in another study of the same researchers, so you cannot take part in this one."
    ),
    "draft": gettext_lazy("This study has not started yet. Please open the link again later."),
    "paused": gettext_lazy("This study is paused. Please open the link again later."),
    "closed": gettext_lazy("This study has ended. Thank you for your interest."),
    "full": gettext_lazy("All places of this study are taken. Thank you for your interest."),
}  # fmt: skip


class CannotJoin(NotAllowed):
    """A new participant cannot begin; `obstacle` is the reason."""

    title = gettext_lazy("You cannot take part now")

    def __init__(self, obstacle: str) -> None:
        super().__init__(str(OBSTACLES[obstacle]))
        self.obstacle = obstacle


class OtherBrowser(NotAllowed):
    title = gettext_lazy("This participant id is in use in another browser")

    def __init__(self) -> None:
        super().__init__(
            _(
                "This study was begun with your participant id in another browser. Continue in that browser. If it was "
                "not you, contact the researchers."
            )
        )


class ConsentChanged(Conflict):
    title = gettext_lazy("The text has changed")


@dataclass(frozen=True)
class Applicant:
    """What a browser sends with a link: the participant's id, further parameters, and its own key."""

    external_id: str
    meta: dict[str, str]
    browser: str


@dataclass(frozen=True)
class Entry:
    """What an applicant filled in before the first text."""

    consent_version: int
    answers: Mapping[str, str]
    may_export: bool = False


# ---- entering ---------------------------------------------------------------------------------------------


def find_participant(recruitment: Recruitment, applicant: Applicant) -> Participant | None:
    """The participant with this id, if the browser may continue as them. OtherBrowser if it may not; None if there is
    no participant with this id yet."""
    row = Participant.objects.filter(recruitment=recruitment, external_id=applicant.external_id).first()
    if row is not None and not recruitment.plan.any_browser and not is_own_browser(row, applicant):
        raise OtherBrowser
    return row


def is_own_browser(participant: Participant, applicant: Applicant) -> bool:
    """Whether the participant began in this browser."""
    return bool(applicant.browser) and constant_time_compare(participant.browser, digest(applicant.browser))


def join_study(*, recruitment: Recruitment, applicant: Applicant, entry: Entry) -> Participant:
    """Give a new participant a place and an account that opens this campaign only. The same browser and id again gets
    the same participant."""
    free_failed_places(recruitment)
    with transaction.atomic():
        recruitment = Recruitment.objects.select_for_update().get(pk=recruitment.pk)
        known = find_participant(recruitment, applicant)
        if known is not None:
            return known
        now, plan = timezone.now(), recruitment.plan
        if obstacle := find_obstacle(recruitment, applicant.external_id, now=now):
            raise CannotJoin(obstacle)
        consent = check_consent(recruitment, entry.consent_version)
        answers = _check_answers(plan, entry)
        place = _take_place(recruitment, now)
        if place is None:
            raise CannotJoin("full")
        return Participant.objects.create(
            recruitment=recruitment,
            user=_create_account(recruitment),
            external_id=applicant.external_id,
            browser=digest(applicant.browser),
            meta=applicant.meta,
            place=place,
            lease_until=now + timedelta(minutes=plan.lease_minutes),
            consent=consent,
            consented_at=now,
            answers=answers,
            may_export=bool(answers) and plan.ask_export and entry.may_export,
            joined_at=now,
        )


def check_consent(recruitment: Recruitment, version: int) -> ConsentText | None:
    """The consent text that was agreed to; ConsentChanged if another one is valid by now."""
    latest = recruitment.consent_texts.order_by("-version").first()
    if version != (latest.version if latest else 0):
        raise ConsentChanged(_("The text was changed while you were reading it. Please read it again."))
    return latest


def _check_answers(plan: RecruitmentPlan, entry: Entry) -> dict[str, Any]:
    answers, problems = read_question_answers(plan.questions, entry.answers)
    if not is_storable(answers):
        problems.append(("", UNSTORABLE))
    if problems:
        faults = [Fault(message, field=name) for name, message in problems]
        raise BadInput(_("Please answer the marked questions."), faults=faults)
    return answers


def _create_account(recruitment: Recruitment) -> User:
    """An account without password, and its membership, limited to the campaign."""
    campaign = recruitment.campaign
    user = User(username=f"participant-{make_code(16)}", is_participant=True)
    user.set_unusable_password()
    user.save()
    member = add_member(project=campaign.project, user=user, role=Role.ANNOTATOR, actor=user)
    member.campaigns = [make_campaign_key(campaign)]
    member.save(update_fields=["campaigns"])
    return user


def make_code(length: int) -> str:
    """A random text that cannot be guessed, without characters that are easily confused."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def count_refusal(*, recruitment: Recruitment) -> None:
    """Count a person who did not consent. Nothing else is stored about them."""
    Recruitment.objects.filter(pk=recruitment.pk).update(refusals=F("refusals") + 1)


# ---- places -----------------------------------------------------------------------------------------------


def _take_place(recruitment: Recruitment, now: datetime) -> int | None:
    """The lowest free place, after releasing those of participants who left. The caller holds the link's lock."""
    gone = Participant.objects.filter(recruitment=recruitment, state=State.WORKING, lease_until__lt=now).order_by("pk")
    if connection.features.has_select_for_update_skip_locked:
        gone = gone.select_for_update(skip_locked=True, of=("self",))
    Participant.objects.filter(pk__in=list(gone.values_list("pk", flat=True))).update(state=State.LEFT, place=None)
    holders = Participant.objects.filter(recruitment=recruitment, place__isnull=False)
    held = set(holders.values_list("place", flat=True))
    return next((place for place in range(1, recruitment.places + 1) if place not in held), None)


def admit(
    who: MemberContext, sheet: Sheet, assignments: list[AssignmentView], now: datetime
) -> Literal["", "ended", "full"]:
    """Renew the place of a participant who asks for a text, or say why they get none. The caller holds the lock of the
    member. After the last practice item, too few expected answers screen the participant out."""
    person = Participant.objects.select_related("recruitment").filter(user=who.user_id).first()
    if person is None or person.has_ended:
        return "ended"
    if who.campaign_state != Campaign.State.OPEN:
        return ""
    plan = person.recruitment.plan
    if not _hold_place(person, plan, now):
        return "full"
    practised = who.practised >= sheet.practice_count and not any(row.is_practice for row in assignments)
    if plan.pass_mark is not None and sheet.practice_count and practised and not who.given:
        good = Judgement.objects.filter(
            campaign=who.campaign_id, annotator=who.user_id, version=1, passed=True, assignment__unit__kind="practice"
        ).count()
        if good / sheet.practice_count < plan.pass_mark:
            _end(person, plan, State.SCREENED.value, now)
            return "ended"
    return ""


def _hold_place(person: Participant, plan: RecruitmentPlan, now: datetime) -> bool:
    """Renew the lease of the place. A participant who comes back after it was released gets another one, if any."""
    until = now + timedelta(minutes=plan.lease_minutes)
    rows = Participant.objects.filter(pk=person.pk)
    if rows.filter(state=State.WORKING).update(lease_until=until):
        return True
    recruitment = Recruitment.objects.select_for_update(of=("self",)).get(pk=person.recruitment_id)
    place = _take_place(recruitment, now)
    if place is None:
        return False
    return bool(rows.filter(state=State.LEFT).update(state=State.WORKING, place=place, lease_until=until))


def is_screening(who: MemberContext, assignments: list[AssignmentView]) -> bool:
    """Whether the practice of a participant still goes on, so that nothing is handed out ahead of its answers."""
    return not who.given and any(row.is_practice for row in assignments)


def check_may_answer(user: User, submission: UUID | None = None) -> None:
    """Conflict if a participant has ended, except for an answer that was received before."""
    person = Participant.objects.filter(user=user).first()
    if person is None or not person.has_ended:
        return
    if submission is None or not Judgement.objects.filter(submission=submission, annotator=user).exists():
        raise Conflict(_("You have finished this study, so answers can no longer be sent or changed."))


# ---- ending -----------------------------------------------------------------------------------------------


def end_participation(who: MemberContext, now: datetime) -> Literal["ended", "full"]:
    """End the work of a participant for whom no text is left: passed or failed by the rules of the link. Without any
    answer, their place is released. The caller holds the lock of the member."""
    person = Participant.objects.select_related("recruitment__campaign").get(user=who.user_id)
    plan = person.recruitment.plan
    if not who.done:
        rows = Participant.objects.filter(pk=person.pk, state=State.WORKING)
        rows.update(state=State.LEFT, place=None, lease_until=None)
        return "full"
    work = compute_works(person.recruitment.campaign, [who.user_id])[who.user_id]
    person.failed_rules = list_failed_rules(plan, work)
    _end(person, plan, (State.FAILED if person.failed_rules else State.PASSED).value, now)
    return "ended"


def _end(person: Participant, plan: RecruitmentPlan, state: str, now: datetime) -> None:
    releases = state == State.SCREENED or (state == State.FAILED and plan.replace_failed)
    changes = {
        "state": state, "ended_at": now, "failed_rules": person.failed_rules, "lease_until": None,
        "code": make_code(10).upper() if plan.personal_codes else "", **({"place": None} if releases else {}),
    }  # fmt: skip
    if Participant.objects.filter(pk=person.pk, state=State.WORKING).update(**changes):
        record_participant_end(person, state)
    if state == State.FAILED and plan.replace_failed:
        # In a transaction of its own: this one may hold a lock on the project that others hold, too.
        transaction.on_commit(lambda: free_failed_places(person.recruitment), robust=True)


def free_failed_places(recruitment: Recruitment) -> None:
    """Set aside the answers of participants who failed, so that others judge their texts."""
    from .participant_answers import set_aside_answers

    failed = Participant.objects.filter(
        recruitment=recruitment, state=State.FAILED, place__isnull=True, set_aside=False
    )
    for person in failed.order_by("pk"):
        set_aside_answers(person)


def save_remark(*, participant: Participant, text: str) -> None:
    """Store what a participant wants to tell the researchers."""
    if len(text) > REMARK_LENGTH:
        raise BadInput.for_field("remark", _("Please write at most %(n)d characters.") % {"n": REMARK_LENGTH})
    if not is_storable(text):
        raise BadInput.for_field("remark", UNSTORABLE)
    Participant.objects.filter(pk=participant.pk).exclude(state=State.WITHDRAWN).update(remark=text.strip())


def close_accounts(*, project: Project) -> None:
    """Close the accounts of a project's participants before it is deleted; they are for nothing else."""
    User.objects.filter(participant__recruitment__campaign__project=project).update(is_active=False)
