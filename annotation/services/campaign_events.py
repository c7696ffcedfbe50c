"""Events of campaigns for webhooks and mails.

Completion and failed control items are found by looking at what is stored, not while an answer is stored: the last two
answers may arrive at once, and judging needs no further queries."""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from annotation.models import (
    Assignment,
    Campaign,
    CampaignMember,
    Judgement,
    Participant,
    Slot,
    Unit,
    WritingCampaign,
    WritingMember,
    WrittenReference,
)
from annotation.selectors.campaigns_watch import count_open_slots
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import rater_names
from evalapp.events.services.recording import is_recorded, list_unrecorded, record_event

log = logging.getLogger(__name__)

#: Campaigns in which nobody worked for this time have no new events. After an outage of the workers for less than
#: this, nothing is missing.
RECENT = timedelta(days=7)


def find_campaign_events() -> None:
    """Record campaigns that are complete, and annotators who fail control items."""
    recent = _list_active(Campaign, CampaignMember, timezone.now() - RECENT)
    _find_complete(recent)
    _find_failed_controls(recent)


def _list_active(model: Any, members: Any, since: datetime) -> QuerySet:
    """Return the opened campaigns in which somebody has worked since then."""
    active = members.objects.filter(campaign=OuterRef("pk"), last_at__gte=since)
    rows = model.objects.filter(Exists(active), project__deleting_at=None).exclude(state=Campaign.State.DRAFT)
    return rows.select_related("project").order_by("pk")


def _find_complete(recent: QuerySet[Campaign]) -> None:
    slots = Slot.objects.filter(campaign=OuterRef("pk"))
    held = Assignment.objects.filter(campaign=OuterRef("pk"), state=Assignment.State.OPEN, slot__isnull=False)
    # With adaptive pair selection, the pool keeps the pairs that were not needed.
    is_begun = Q(begun_count__gte=F("unit_count")) | ~Exists(slots.filter(state=Slot.State.POOL))
    complete = recent.filter(is_begun, ~Exists(slots.filter(state=Slot.State.FREE)), ~Exists(held), unit_count__gt=0)
    # Answers that are removed later let it become complete again.
    campaigns = {f"judging:{campaign.pk}:{campaign.removed_count}": campaign for campaign in complete}
    projects = {key: campaign.project for key, campaign in campaigns.items()}
    for key in list_unrecorded(kind="campaign.complete", keys=projects):
        campaign = campaigns[key]
        annotators = CampaignMember.objects.filter(campaign=campaign, done__gt=0).count()
        data = {"answers": campaign.unit_count * campaign.overlap, "annotators": annotators}
        _record(campaign, "campaign.complete", key, data)


def _find_failed_controls(recent: QuerySet[Campaign]) -> None:
    from evalapp.stats.agreement.raters import fails_controls  # numpy

    campaigns = {campaign.pk: campaign for campaign in recent.filter(control_count__gt=0)}
    judged = Judgement.objects.filter(
        campaign__in=campaigns, current=True, passed__isnull=False, assignment__unit__kind=Unit.Kind.CONTROL
    )
    counts = (
        judged.order_by().values("campaign", "annotator").annotate(n=Count("pk"), failed=Count("pk", Q(passed=False)))
    )
    failing = {f"judging:{row['campaign']}:{row['annotator']}": row for row in counts
               if fails_controls(row["failed"], row["n"])}  # fmt: skip
    projects = {key: campaigns[row["campaign"]].project for key, row in failing.items()}
    for key in list_unrecorded(kind="controls.failed", keys=projects):
        row = failing[key]
        campaign = campaigns[row["campaign"]]
        rater = rater_names(campaign.project_id).get(row["annotator"])
        _record(campaign, "controls.failed", key, {"rater": rater, "failed": row["failed"], "controls": row["n"]})


def _describe(campaign: Campaign | WritingCampaign) -> dict[str, Any]:
    return {"id": campaign.pk, "slug": campaign.slug, "name": campaign.name, "kind": campaign.kind}


def _record(campaign: Campaign, kind: str, key: str, data: dict[str, Any]) -> None:
    record_event(
        project=campaign.project,
        kind=kind,
        key=key,
        path=reverse("annotation:campaign", args=[campaign.project.slug, campaign.pk]),
        data={"campaign": _describe(campaign), **data},
    )


def record_participant_end(person: Participant, state: str) -> None:
    """Record that a hired participant has finished, in the caller's transaction, which goes on without the event if it
    cannot be recorded: the participant's answers and code are worth more."""
    campaign = person.recruitment.campaign
    try:
        with transaction.atomic():
            _record(campaign, "participant.finished", "", {"participant": person.pk, "state": state})
    except Exception:
        if transaction.get_rollback():
            raise  # the connection is lost, and the caller's changes with it
        log.exception("the end of participant %s is not reported", person.pk)


# ---- the week -----------------------------------------------------------------------------------------------


def report_week(start: datetime, end: datetime) -> None:
    """Record the progress of a week for each project in which somebody has judged or written. Idempotent."""
    judging = _group(_list_active(Campaign, CampaignMember, start))
    writing = _group(_list_active(WritingCampaign, WritingMember, start))
    for project in {**judging, **writing}:
        key = start.strftime("%G-W%V")
        if is_recorded(project=project, kind="progress.weekly", key=key):
            continue
        campaigns = [
            *(_report_judging(campaign, start, end) for campaign in judging.get(project, ())),
            *(_report_writing(campaign, start, end) for campaign in writing.get(project, ())),
        ]
        if any(row["answers_in_week"] for row in campaigns):
            record_event(
                project=project, kind="progress.weekly", key=key, path=reverse("project", args=[project.slug]),
                data={"from": start.date().isoformat(), "to": (end - timedelta(days=1)).date().isoformat(),
                      "campaigns": campaigns},
            )  # fmt: skip


def _group(campaigns: QuerySet) -> dict[Project, list[Any]]:
    groups: dict[Project, list[Any]] = {}
    for campaign in campaigns:
        groups.setdefault(campaign.project, []).append(campaign)
    return groups


def _report_judging(campaign: Campaign, start: datetime, end: datetime) -> dict[str, Any]:
    counted = Judgement.objects.filter(
        campaign=campaign, current=True, extra=False, created_at__gte=start, created_at__lt=end,
        assignment__slot__isnull=False,
    )  # fmt: skip
    taken = Slot.objects.filter(campaign=campaign, state=Slot.State.TAKEN).count()
    opened = sum(n for n, _ in count_open_slots(campaign).values())
    return {
        **_describe(campaign), "answers_in_week": counted.count(), "answers": max(0, taken - opened),
        "planned": campaign.unit_count * campaign.overlap,
    }  # fmt: skip


def _report_writing(campaign: WritingCampaign, start: datetime, end: datetime) -> dict[str, Any]:
    states = [WrittenReference.State.SHOWN, WrittenReference.State.WAITING]
    written = WrittenReference.objects.filter(campaign=campaign, state__in=states)
    return {
        **_describe(campaign), "answers_in_week": written.filter(created_at__gte=start, created_at__lt=end).count(),
        "answers": written.count(), "planned": None,
    }  # fmt: skip
