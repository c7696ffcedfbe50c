"""Progress of a judging campaign: by annotator and unit, times, flags, control units, sides, agreement so far, and the
latest judgements. A few queries that do not read texts."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import isnan
from statistics import median
from typing import Any, Literal

from django.db import connection
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.allocation.answers import turn
from annotation.models import (
    Assignment,
    Campaign,
    CampaignMember,
    ItemFlag,
    Judgement,
    Slot,
    Unit,
)
from evalapp.accounts.models import Membership
from evalapp.accounts.selectors import former_pseudonyms

from .attributes import read_attributes

#: Times and sides use the latest judgements only; agreement and the quality page use more. So the cost is bounded.
LATEST = 2_000
LATEST_FOR_AGREEMENT = 20_000
#: The relations that describe what was judged.
_JUDGED = tuple(f"assignment__unit__{name}" for name in ("item", "output_a__system", "output_b__system", "reference"))


@dataclass
class AnnotatorRow:
    """An annotator; `left` and `right` count the sides that they chose in comparisons, as shown."""

    user_id: int
    name: str
    pseudonym: str
    done: int
    skipped: int
    open: int
    seconds: float
    last_at: Any
    median_seconds: float | None = None
    controls: int = 0
    controls_failed: int = 0
    left: int = 0
    right: int = 0


@dataclass
class CampaignProgress:
    """Counts of slots: `slots` in the plan, `done` answered, `open` assigned, and `lapsed` assigned with an expired
    lease. `units_by_answers[k]` is the number of units with k answers."""

    campaign: Campaign
    units: int
    slots: int
    done: int
    open: int
    lapsed: int
    extra: int
    units_by_answers: dict[int, int]
    units_complete: int
    annotators: list[AnnotatorRow]
    median_seconds: float | None
    open_flags: int
    agreement: list[dict[str, Any]] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.done / self.slots if self.slots else 0.0

    def wire(self) -> dict[str, Any]:
        names = "units units_complete slots done open lapsed extra median_seconds open_flags agreement"
        annotator_names = "done skipped open median_seconds last_at controls controls_failed left right"
        return {
            **read_attributes(self, names),
            "state": self.campaign.state,
            "units_by_answers": {str(k): n for k, n in sorted(self.units_by_answers.items())},
            "share": round(self.share, 4),
            "annotators": [
                {**read_attributes(row, annotator_names), "rater": row.pseudonym, "seconds": round(row.seconds, 1)}
                for row in self.annotators
            ],
        }


def watch_campaign(campaign: Campaign, *, with_figures: bool = True) -> CampaignProgress:
    """The figures of the campaign page. Ten queries at any size. Without `with_figures`, agreement and units by answers
    are left out, because their cost grows with the campaign."""
    taken = Slot.objects.filter(campaign=campaign, state=Slot.State.TAKEN).count()
    open_slots = count_open_slots(campaign)
    opened = sum(n for n, _ in open_slots.values())
    judgements = read_latest_judgements(campaign, LATEST)
    progress = CampaignProgress(
        campaign=campaign,
        units=campaign.unit_count,
        slots=campaign.unit_count * campaign.overlap,
        done=max(0, taken - opened),
        open=opened,
        lapsed=sum(lapsed for _, lapsed in open_slots.values()),
        extra=Judgement.objects.filter(campaign=campaign, extra=True, current=True).count(),
        units_by_answers={},
        units_complete=0,
        annotators=_annotators(campaign, judgements, open_slots),
        median_seconds=_median([row[2] for row in judgements if row[2] is not None]),
        open_flags=ItemFlag.objects.filter(campaign=campaign, resolved_at=None).count(),
    )
    if with_figures:
        add_figures(progress, judgements if len(judgements) < LATEST else None)
    return progress


def add_figures(progress: CampaignProgress, judgements: list[tuple] | None = None) -> None:
    """Add agreement and units by answers. `judgements`: all judgements, if they have been read already."""
    campaign = progress.campaign
    if judgements is None:
        judgements = read_latest_judgements(campaign, LATEST_FOR_AGREEMENT)
    progress.units_by_answers = units_by_answers(campaign)
    progress.units_complete = sum(n for k, n in progress.units_by_answers.items() if k >= campaign.overlap)
    progress.agreement = compute_agreement(campaign, judgements)


def count_open_slots(campaign: Campaign) -> dict[int, tuple[int, int]]:
    """Assigned slots by annotator, with the number of slots whose lease has expired. Uses the partial index of open
    assignments by member, which requires the state as a literal; the plus stops SQLite from using the index by
    campaign."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT held.annotator_id, held.lease_until < %s FROM annotation_campaignmember member
 JOIN annotation_assignment held ON held.annotator_id = member.annotator_id AND +held.campaign_id = member.campaign_id
 AND held.state = 'open' AND held.slot_id IS NOT NULL WHERE member.campaign_id = %s""",
            [connection.ops.adapt_datetimefield_value(now), campaign.pk],
        )
        open_slots: dict[int, tuple[int, int]] = {}
        for user, lapsed in cursor.fetchall():
            n, gone = open_slots.get(user, (0, 0))
            open_slots[user] = (n + 1, gone + int(lapsed))
    return open_slots


def units_by_answers(campaign: Campaign) -> dict[int, int]:
    """The number of units with k answers, for each k; counted by the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT answers, COUNT(*) FROM (
 SELECT COUNT(*) AS answers FROM annotation_assignment
 WHERE campaign_id = %s AND slot_id IS NOT NULL AND state = 'submitted' GROUP BY unit_id) AS units GROUP BY answers""",
            [campaign.pk],
        )
        counts = dict(cursor.fetchall())
    without = campaign.unit_count - sum(counts.values())
    return {**counts, 0: without} if without > 0 else counts


def read_latest_judgements(campaign: Campaign, limit: int) -> list[tuple]:
    """The latest judgements: annotator, answer, seconds, unit, repeat number, unit kind, passed, swapped, item,
    extra."""
    rows = Judgement.objects.filter(campaign=campaign, current=True).order_by("-pk")
    return list(
        rows.values_list(
            "annotator_id",
            "answer",
            "seconds",
            "assignment__unit_id",
            "assignment__repeat_number",
            "assignment__unit__kind",
            "passed",
            "assignment__side_swapped",
            "assignment__unit__item_id",
            "extra",
        )[:limit]
    )


def _median(values: list[float]) -> float | None:
    return round(median(values), 1) if values else None


def _annotators(
    campaign: Campaign, judgements: list[tuple], open_slots: dict[int, tuple[int, int]]
) -> list[AnnotatorRow]:
    checks = {
        user: (total, failed)
        for user, total, failed in Judgement.objects.filter(
            campaign=campaign, current=True, passed__isnull=False, assignment__unit__kind=Unit.Kind.CONTROL
        )
        .values("annotator")
        .annotate(total=Count("pk"), failed=Count("pk", filter=Q(passed=False)))
        .values_list("annotator", "total", "failed")
    }
    times: dict[int, list[float]] = defaultdict(list)
    sides: dict[int, Counter] = defaultdict(Counter)
    for user, answer, seconds, *_rest in judgements:
        if seconds is not None:
            times[user].append(seconds)
        if campaign.kind != Campaign.Kind.LIKERT:
            sides[user].update(answer.values())
    rows = []
    members = list(_list_named_members(campaign).select_related("annotator").order_by("-done", "pk"))
    joined = sorted(members, key=lambda member: member.pk)
    names = _fill_names(campaign, {member.annotator_id: member.pseudonym for member in joined})
    for member in members:
        user = member.annotator_id
        total, failed = checks.get(user, (0, 0))
        rows.append(
            AnnotatorRow(
                user_id=user,
                name=str(member.annotator),
                pseudonym=names[user],
                done=member.done,
                skipped=member.skipped,
                open=open_slots.get(user, (0, 0))[0],
                seconds=member.seconds,
                last_at=member.last_at,
                median_seconds=_median(times[user]),
                controls=total,
                controls_failed=failed,
                left=sides[user]["a"],
                right=sides[user]["b"],
            )
        )
    return rows


def compute_agreement(campaign: Campaign, judgements: list[tuple]) -> list[dict[str, Any]]:
    """Krippendorff's alpha by aspect over the latest normal judgements that count, with the sides as in the unit. An
    undefined value is None, with the reason in `note`."""
    from evalapp.stats.planning.watching import agreement

    from .judging_sheet import make_form

    normal = [row for row in judgements if row[5] == Unit.Kind.NORMAL and not row[4] and not row[9]]
    scale: Literal["interval", "nominal"] = "interval" if campaign.kind == Campaign.Kind.LIKERT else "nominal"
    estimates: list[dict[str, Any]] = []
    for aspect in make_form(campaign).aspects:
        units, items, values = [], [], []
        for _user, answer, _seconds, unit, _repeat, _kind, _passed, swapped, item, _extra in normal:
            value = turn(answer, swapped).get(aspect.name)
            if value is not None:
                units.append(unit)
                items.append(item)
                values.append(value if scale == "interval" else str(value))
        if not units:
            empty = {"alpha": None, "low": None, "high": None, "n": 0, "note": _("no answers yet")}
            estimates.append({"aspect": aspect.name, "scale": scale, **empty})
            continue
        estimate = agreement(campaign.kind, values, units, items)  # type: ignore[arg-type]
        bounds = {"alpha": estimate.value, "low": estimate.low, "high": estimate.high}
        estimates.append(
            {
                "aspect": aspect.name,
                "scale": scale,
                **{name: None if isnan(value) else round(float(value), 4) for name, value in bounds.items()},
                "n": int(estimate.n),
                "note": estimate.note,
            }
        )
    return estimates


def list_latest_judgements(campaign: Campaign) -> QuerySet[Judgement]:
    """Current versions of answers with what was judged; order by `-pk`."""
    return list_judgements(campaign).filter(current=True).select_related("annotator", *_JUDGED)


def list_judgements(campaign: Campaign) -> QuerySet[Judgement]:
    """Every version of every answer; order by `-pk`."""
    return Judgement.objects.filter(campaign=campaign).select_related(*_JUDGED)


def list_unit_progress(campaign: Campaign) -> QuerySet[Unit]:
    """Normal units with `answers` and `held`, counted for the units of the page only. With adaptive pair selection,
    only started units: the others may never be judged."""

    def counted(state: Any) -> Coalesce:
        rows = Assignment.objects.filter(unit=OuterRef("pk"), state=state, slot__isnull=False).order_by()
        return Coalesce(Subquery(rows.values("unit").annotate(n=Count("pk")).values("n")), 0)

    units = Unit.objects.filter(campaign=campaign, kind=Unit.Kind.NORMAL)
    if campaign.plan.get("players"):
        units = units.filter(propensity__isnull=False)
    return units.select_related("item", "output_a__system", "output_b__system", "reference").annotate(
        answers=counted(Assignment.State.SUBMITTED), held=counted(Assignment.State.OPEN)
    )


def get_pseudonyms(campaign: Campaign) -> dict[int, str]:
    """Rater ids by user id. Deleted accounts have a numbered name instead."""
    return _fill_names(
        campaign, dict(_list_named_members(campaign).order_by("pk").values_list("annotator_id", "pseudonym"))
    )


def _list_named_members(campaign: Campaign) -> Any:
    """Members of a campaign with their pseudonyms; null for former members of the project."""
    membership = Membership.objects.filter(project=campaign.project_id, user=OuterRef("annotator"))
    return CampaignMember.objects.filter(campaign=campaign).annotate(
        pseudonym=Subquery(membership.values("pseudonym")[:1])
    )


def _fill_names(campaign: Campaign, names: dict[int, str | None]) -> dict[int, str]:
    """Fill in missing names. `names` is in the order of joining, so that numbers never change."""
    if all(names.values()):
        return {user: str(name) for user, name in names.items()}
    former = former_pseudonyms(campaign.project_id)
    unknown = {user: f"former member {number}" for number, user in enumerate(names, 1)}
    return {user: name or former.get(user, unknown[user]) for user, name in names.items()}
