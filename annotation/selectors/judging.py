"""Reads for annotators: their campaigns, assignments and answers. Never the name of a system, another person's
answer or the expected answer of a control unit."""

from datetime import datetime
from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.allocation.answers import turn_expected
from annotation.models import Assignment, Campaign, CampaignMember, Judgement
from evalapp.accounts.models import User
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere

from .judging_sheet import Sheet
from .own_campaigns import OwnCampaign, check_invited, own_campaigns


def list_my_campaigns(*, user: User) -> list[OwnCampaign[Campaign, CampaignMember]]:
    """The opened judging campaigns that `user` may work in, newest first."""
    return own_campaigns(Campaign, CampaignMember, user=user)


def get_own_assignment(*, user: User, public: str) -> Assignment:
    """An assignment of the user, if they may still annotate in its project."""
    row = (
        Assignment.objects.select_related("campaign__project", "unit")
        .filter(public=public, annotator_id=user.pk or 0)
        .first()
    )
    if row is None:
        raise NotThere(_("There is no such assignment of yours."))
    project = get_project(user=user, slug=row.campaign.project.slug, need="annotate")
    check_invited(project=project, campaign=row.campaign)
    return row


def list_own_assignments(*, user: User, campaign: Campaign, states: tuple[str, ...] = ()) -> QuerySet[Assignment]:
    """The user's assignments in a campaign with their current answers. Order by `-order_number, -pk` uses an index."""
    current = Judgement.objects.filter(current=True)
    rows = (
        Assignment.objects.own(user)
        .filter(campaign=campaign)
        .select_related("unit__item", "unit__output_a", "unit__output_b", "unit__reference")
        .prefetch_related(Prefetch("judgements", current, to_attr="current_judgements"))
    )
    return rows.filter(state__in=states) if states else rows


def filter_by_state(rows: QuerySet[Assignment], state: str) -> QuerySet[Assignment]:
    """The rows of `list_own_assignments` that are shown to be in `state`; all rows if it is empty."""
    waiting = Q(state__in=[Assignment.State.OPEN, Assignment.State.EXPIRED])
    if state == Assignment.State.OPEN:
        return rows.filter(waiting, lease_until__gt=timezone.now())
    if state == Assignment.State.EXPIRED:
        return rows.filter(waiting, lease_until__lte=timezone.now())
    return rows.filter(state=state) if state else rows


def get_shown_state(state: str, lease_until: datetime) -> str:
    """The state of an assignment as the annotator sees it. Open or expired depends on the lease only, because control
    units have no slot that they could lose."""
    if state not in ("open", "expired"):
        return state
    return "open" if lease_until > timezone.now() else "expired"


def find_previous_assignment(*, user: User, campaign: Campaign, before: int | None = None) -> Assignment | None:
    """The last answered assignment, or the last one before order number `before`."""
    rows = list_own_assignments(user=user, campaign=campaign, states=(Assignment.State.SUBMITTED.value,))
    if before is not None:
        rows = rows.filter(order_number__lt=before)
    return rows.order_by("-order_number", "-pk").first()


def order_texts(row: Assignment) -> list[str]:
    """The texts of an assignment, in the order of the page."""
    unit = row.unit
    second = unit.output_b.text if unit.output_b else unit.reference.text if unit.reference else None
    if second is None:
        return [unit.output_a.text]
    return [second, unit.output_a.text] if row.side_swapped else [unit.output_a.text, second]


def wire_own(row: Assignment, sheet: Sheet | None = None) -> dict[str, Any]:
    """A row of `list_own_assignments` in the form that the API returns."""
    judgement = row.current_judgements[0] if row.current_judgements else None  # type: ignore[attr-defined]
    practice = row.unit.kind == "practice"
    feedback = None
    if practice and judgement is not None and row.unit.expected:
        expected = turn_expected(row.unit.expected, row.side_swapped)
        feedback = {"passed": judgement.passed, "expected": expected, "why": row.unit.why}
    result = {
        "id": row.public,
        "campaign": row.campaign_id,
        "number": row.order_number,
        "state": get_shown_state(row.state, row.lease_until),
        "version": row.version,
        "practice": practice,
        "context": row.unit.item.context,
        "source": row.unit.item.source,
        "texts": [{"id": name, "text": text} for name, text in zip("ab", order_texts(row), strict=False)],
        "draft": row.draft,
        "draft_version": row.draft_version,
        "lease_until": row.lease_until,
        "answer": judgement.answer if judgement else None,
        "note": judgement.note if judgement else "",
        "saved_at": judgement.created_at if judgement else None,
        "feedback": feedback,
    }
    if sheet is not None:
        result |= {"kind": sheet.kind, "form": sheet.shown_form()}
    return result
