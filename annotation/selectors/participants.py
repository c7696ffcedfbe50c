"""Hired participants: what a link leads to, who holds a place, and the figures of their work."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.answers import turn
from annotation.allocation.recruitment import RecruitmentPlan, Work, agrees_with_others, suggest_pay
from annotation.models import (
    Campaign,
    CampaignMember,
    Judgement,
    Participant,
    ParticipantBan,
    Recruitment,
    Slot,
    Unit,
)
from evalapp.accounts.authentication import digest
from evalapp.accounts.models import Membership, Project, User
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere

from .judging_sheet import make_form

State = Participant.State
#: Participants that a page lists; the CSV file has all.
SHOWN = 200


def find_recruitment(*, secret: str) -> Recruitment:
    """The link of a secret, with campaign and project."""
    rows = Recruitment.objects.select_related("campaign__project").filter(digest=digest(secret))
    row = rows.filter(campaign__project__deleting_at=None).first()
    if row is None:
        raise NotThere(_("This link is not valid or incomplete. Open the study again from where you found it."))
    return row


def get_recruitment(*, user: User, pk: int, need: Need = "write") -> Recruitment:
    """A link, if the user's role in its project covers `need`."""
    row = Recruitment.objects.select_related("campaign__project").filter(pk=pk).first()
    if row is not None:
        row.campaign.project = get_project(user=user, slug=row.campaign.project.slug, need=need)
        return row
    raise NotThere(_("There is no such link for participants that you can see."))


def get_participant(*, user: User, pk: int, need: Need = "write") -> Participant:
    """A participant, if the user's role in the project covers `need`."""
    rows = Participant.objects.select_related("user", "recruitment__campaign__project")
    row = rows.filter(pk=pk).first()
    if row is None:
        raise NotThere(_("There is no such participant that you can see."))
    get_project(user=user, slug=row.recruitment.campaign.project.slug, need=need)
    return row


def get_own_participation(user: Any) -> Participant:
    """The participant whose account this is."""
    rows = Participant.objects.select_related("recruitment__campaign__project")
    row = rows.filter(user=user.pk).exclude(state=State.WITHDRAWN).first()
    if row is None:
        raise NotThere(_("You are not taking part in a study with this account."))
    return row


def find_obstacle(recruitment: Recruitment, external_id: str, *, now: datetime | None = None) -> str:
    """Why a new participant cannot begin: `banned`, `earlier` (took part by another link), `draft`, `paused`, `closed`
    or `full`. Empty if they can."""
    campaign = recruitment.campaign
    if is_banned(campaign.project_id, external_id):
        return "banned"
    if campaign.state in (Campaign.State.DRAFT, Campaign.State.PAUSED):
        return str(campaign.state)
    if campaign.state == Campaign.State.CLOSED or recruitment.closed_at:
        return "closed"
    others = Participant.objects.filter(recruitment__campaign__project=campaign.project_id, external_id=external_id)
    if recruitment.plan.only_new and others.exclude(recruitment=recruitment).exists():
        return "earlier"
    held = list_held_places(recruitment, now or timezone.now()).count()
    return "full" if held >= recruitment.places or not has_work(campaign) else ""


def is_banned(project_id: int, external_id: str) -> bool:
    return ParticipantBan.objects.filter(project=project_id, external_id=external_id).exists()


def list_held_places(recruitment: Recruitment, now: datetime) -> QuerySet[Participant]:
    """Participants who hold a place: they work within their lease, or have ended with one."""
    holders = Participant.objects.filter(recruitment=recruitment, place__isnull=False)
    return holders.exclude(state=State.WORKING, lease_until__lt=now)


def has_work(campaign: Campaign) -> bool:
    """Whether a text waits for an annotator, or may do so when a lease ends."""
    if Slot.objects.filter(campaign=campaign, state__in=[Slot.State.FREE, Slot.State.POOL]).exists():
        return True
    return campaign.assignments.filter(state="open", slot__isnull=False).exists()


# ---- figures ----------------------------------------------------------------------------------------------


def compute_works(campaign: Campaign, users: Collection[int]) -> dict[int, Work]:
    """The figures of the participants with these user ids, from their current answers. Six queries."""
    members = {row.annotator_id: row for row in CampaignMember.objects.filter(campaign=campaign, annotator__in=users)}
    current = Judgement.objects.filter(campaign=campaign, current=True)
    own = current.filter(annotator__in=users).exclude(assignment__unit__kind=Unit.Kind.PRACTICE)
    times: dict[int, list[float]] = defaultdict(list)
    for user, seconds in own.filter(seconds__isnull=False).order_by().values_list("annotator", "seconds"):
        times[user].append(seconds)
    controls = _count_passed(current.filter(annotator__in=users, assignment__unit__kind=Unit.Kind.CONTROL))
    practice = _count_passed(
        Judgement.objects.filter(
            campaign=campaign, annotator__in=users, version=1, assignment__unit__kind=Unit.Kind.PRACTICE
        )
    )
    agreed = _count_agreeing(campaign, users)
    return {
        user: Work(
            units=members[user].done if user in members else 0,
            seconds=members[user].seconds if user in members else 0.0,
            median_seconds=median(times[user]) if user in times else None,
            practice=campaign.practice_count,
            practice_passed=practice[user][1],
            controls=controls[user][0],
            controls_passed=controls[user][1],
            shared=agreed[user, "shared"],
            agreed=agreed[user, "agreed"],
        )
        for user in users
    }


def _count_passed(judgements: QuerySet[Judgement]) -> dict[int, tuple[int, int]]:
    """(answers, answers as expected) by user."""
    rows = judgements.order_by().values("annotator").annotate(n=Count("pk"), good=Count("pk", filter=Q(passed=True)))
    counts = {user: (n, good) for user, n, good in rows.values_list("annotator", "n", "good")}
    return defaultdict(lambda: (0, 0), counts)


def _count_agreeing(campaign: Campaign, users: Collection[int]) -> Counter[tuple[int, str]]:
    """How many answers of each user are to texts that others have judged, and how many agree with theirs."""
    normal = Judgement.objects.filter(
        campaign=campaign, current=True, assignment__unit__kind=Unit.Kind.NORMAL, assignment__repeat_number=0
    ).order_by()
    units = normal.filter(annotator__in=users).values("assignment__unit")
    rows = normal.filter(assignment__unit__in=units)
    by_question: dict[tuple[int, str], dict[int, Any]] = defaultdict(dict)
    columns = rows.values_list("annotator", "assignment__unit", "answer", "assignment__side_swapped")
    for user, unit, answer, swapped in columns:
        for name, value in turn(answer, swapped).items():
            by_question[unit, name][user] = value
    widths = {row.name: (row.high or 0) - (row.low or 0) for row in make_form(campaign).aspects}
    counts: Counter[tuple[int, str]] = Counter()
    wanted = set(users)
    for (_unit, name), answers in by_question.items():
        for user in wanted & answers.keys():
            others = [value for other, value in answers.items() if other != user]
            agrees = agrees_with_others(campaign.kind, answers[user], others, widths.get(name, 0))
            counts[user, "shared"] += agrees is not None
            counts[user, "agreed"] += bool(agrees)
    return counts


# ---- for researchers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecruitmentRow:
    """A link with the number of its participants by state; `held` counts places in use."""

    recruitment: Recruitment
    plan: RecruitmentPlan
    held: int
    states: dict[str, int]

    @property
    def free(self) -> int:
        return max(0, self.recruitment.places - self.held)

    @property
    def joined(self) -> int:
        return sum(self.states.values())

    def list_states(self) -> list[tuple[str, int]]:
        """(name, number) of the states that occur, in their order."""
        return [(str(state.label), self.states[state]) for state in State if self.states.get(state)]

    def wire(self) -> dict[str, Any]:
        row = self.recruitment
        return {
            "id": row.pk, "campaign": row.campaign_id, "label": row.label, "places": row.places, "held": self.held,
            "refusals": row.refusals, "states": {state.value: self.states.get(state, 0) for state in State},
            "settings": self.plan.as_dict(), "created_at": row.created_at, "closed_at": row.closed_at,
        }  # fmt: skip


def describe_recruitment(row: Recruitment) -> RecruitmentRow:
    return _describe([row])[0]


def list_recruitments(campaign: Campaign) -> list[RecruitmentRow]:
    """The links of a campaign, newest first. Two queries."""
    rows = Recruitment.objects.filter(campaign=campaign).select_related("campaign__project").order_by("-pk")
    return _describe(list(rows))


def _describe(rows: list[Recruitment]) -> list[RecruitmentRow]:
    now = timezone.now()
    people = Participant.objects.filter(recruitment__in=rows).order_by()
    lapsed = Q(state=State.WORKING, lease_until__lt=now)
    states: dict[int, Counter[str]] = defaultdict(Counter)
    held: Counter[int] = Counter()
    counts = people.values("recruitment", "state").annotate(
        n=Count("pk"), gone=Count("pk", filter=lapsed), places=Count("place", filter=~lapsed)
    )
    for row in counts:
        link = row["recruitment"]
        states[link][row["state"]] += row["n"] - row["gone"]
        states[link][State.LEFT.value] += row["gone"]
        held[link] += row["places"]
    return [RecruitmentRow(row, row.plan, held[row.pk], states[row.pk]) for row in rows]


def list_bans(project: Project) -> QuerySet[ParticipantBan]:
    return ParticipantBan.objects.filter(project=project).select_related("created_by").order_by("external_id")


#: Rules that a participant can fail, for pages.
RULE_LABELS = {
    "controls": gettext_lazy("controls"),
    "speed": gettext_lazy("speed"),
    "agreement": gettext_lazy("agreement"),
}


def list_payments(row: Recruitment, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """What is owed to each participant and why, in the order of joining: `PAY_COLUMNS`, id, further parameters (`meta`)
    and labels for pages."""
    plan, now = row.plan, timezone.now()
    people = list(row.participants.select_related("consent").order_by("pk")[:limit])
    works = compute_works(row.campaign, [person.user_id for person in people])
    project = row.campaign.project_id
    names = dict(Membership.objects.filter(project=project, user__in=works).values_list("user", "pseudonym"))
    bans = set(ParticipantBan.objects.filter(project=project).values_list("external_id", flat=True))
    browsers = Counter(row.participants.exclude(browser="").values_list("browser", flat=True))
    for person in people:
        work = works[person.user_id]
        state = (
            "left"
            if person.state == State.WORKING and person.lease_until and person.lease_until < now
            else person.state
        )
        # A place that was paid for stays paid when the participant withdraws the answers.
        pay, bonus = suggest_pay(plan, "passed" if state == "withdrawn" and person.place else state, work)
        yield {
            "id": person.pk, "participant": person.external_id, "rater": names.get(person.user_id, ""),
            "state": str(state), "state_label": State(state).label, "failed_rules": " ".join(person.failed_rules),
            "failed_labels": ", ".join(str(RULE_LABELS[name]) for name in person.failed_rules), "units": work.units,
            "minutes": round(work.seconds / 60, 1), "median_seconds": _round(work.median_seconds, 1),
            "practice_share": _round(work.practice_share, 3), "controls": work.controls,
            "controls_as_expected": _round(work.controls_share, 3), "shared_texts": work.shared,
            "agreement": _round(work.agreement, 3), "pay": pay, "bonus": bonus, "currency": plan.currency,
            "code": get_code(person, plan), "consent_version": person.consent.version if person.consent else None,
            "consented_at": person.consented_at, "joined_at": person.joined_at, "ended_at": person.ended_at,
            "other_ids_in_browser": max(0, browsers[person.browser] - 1), "banned": person.external_id in bans,
            "remark": person.remark, "meta": person.meta,
        }  # fmt: skip


def get_code(person: Participant, plan: RecruitmentPlan) -> str:
    """The completion code of a participant who has ended; empty for others."""
    ended = person.state in (State.PASSED, State.FAILED, State.SCREENED)
    return (person.code or plan.get_outcome(person.state).code) if ended else ""


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
