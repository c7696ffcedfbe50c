"""Campaigns of a project in an export, as anonymous figures, and its rater filters. Imported campaigns are exported
unchanged."""

from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from django.db.models import Count, Q

from annotation.models import (
    Campaign,
    CampaignAspect,
    CampaignMember,
    ItemFlag,
    Judgement,
    Participant,
    RaterFilter,
    Recruitment,
    Unit,
    WritingAttempt,
    WritingCampaign,
    WritingMember,
    WrittenReference,
)
from annotation.parsers import canonical
from annotation.selectors.imported_campaigns import list_imported_campaigns
from evalapp.accounts.models import Project

Row = dict[str, Any]
#: Settings of links that readers of a data set need; codes and return addresses are secrets of the study.
_EXPORTED_SETTINGS = (
    "questions", "pass_mark", "min_controls", "min_seconds", "min_agreement", "replace_failed", "pay", "pay_failed",
    "pay_screened", "bonus", "bonus_controls", "currency",
)  # fmt: skip


def rows(project: Project, raters: Callable[[str], str]) -> Iterator[tuple[str, Row]]:
    """(table, row) of `filters` and `campaigns`, by name."""
    for one in sorted(RaterFilter.objects.filter(project=project), key=lambda row: row.name):
        yield "filters", _filter(one, raters)
    imported = list_imported_campaigns(project)
    work: tuple[tuple[Any, Callable[[Any], Row]], ...] = ((Campaign, _count_judging), (WritingCampaign, _count_writing))
    for model, count in work:
        for row in model.objects.filter(project=project).exclude(state=Campaign.State.DRAFT):
            about = canonical({**_describe_plan(row), **count(row)})
            imported[row.slug] = {"campaign": row.slug, "kind": row.kind, "told": about}
    for name in sorted(imported):
        yield "campaigns", imported[name]


def _filter(row: RaterFilter, raters: Callable[[str], str]) -> Row:
    return {
        "name": row.name, "raters": sorted(raters(rater) for rater in row.raters), "reason": row.reason,
        "created_at": row.created_at.isoformat(),
        "withdrawn_at": row.withdrawn_at.isoformat() if row.withdrawn_at else None,
    }  # fmt: skip


def _describe_plan(row: Any) -> Row:
    return {
        "name": row.name, "state": row.state, "guidelines": row.guidelines, "seed": row.seed, "options": row.options,
        "opened": row.opened_at.date().isoformat() if row.opened_at else None,
        "closed": row.closed_at.date().isoformat() if row.closed_at else None, "units": row.unit_count,
        "most_per_annotator": row.max_per_annotator, "plan": row.plan,
    }  # fmt: skip


def _count_judging(row: Campaign) -> Row:
    asked = CampaignAspect.objects.filter(campaign=row).select_related("aspect").order_by("position")
    current = Judgement.objects.filter(campaign=row, current=True)
    normal = Q(assignment__unit__kind=Unit.Kind.NORMAL)
    control = Q(assignment__unit__kind=Unit.Kind.CONTROL)
    counts = current.aggregate(
        judgements=Count("pk", filter=normal), repeats=Count("pk", filter=normal & Q(assignment__repeat_number__gt=0)),
        late=Count("pk", filter=Q(extra=True)), control_answers=Count("pk", filter=control),
        controls_failed=Count("pk", filter=control & Q(passed=False)),
        adaptive=Count("pk", filter=normal & Q(assignment__propensity__isnull=False)),
    )  # fmt: skip
    seconds = list(current.filter(normal, seconds__isnull=False).order_by().values_list("seconds", flat=True))
    members = CampaignMember.objects.filter(campaign=row)
    return {
        **counts, "overlap": row.overlap, "practice_units": row.practice_count, "control_units": row.control_count,
        "aspects": [
            {
                "name": one.aspect.name, "question": one.question, "low": one.low, "high": one.high, "step": one.step,
                "labels": one.labels,
            }
            for one in asked
        ],
        "annotators": members.filter(done__gt=0).count(),
        "skipped": sum(members.values_list("skipped", flat=True)),
        "flags": ItemFlag.objects.filter(campaign=row).count(),
        "median_seconds": round(median(seconds), 1) if seconds else None,
        "hours": round(sum(seconds) / 3600, 2) if seconds else None,
        **_describe_recruitments(row),
    }  # fmt: skip


def _describe_recruitments(row: Campaign) -> Row:
    """How participants were hired, without anything about single ones; nothing for campaigns without."""
    links = []
    for link in Recruitment.objects.filter(campaign=row).order_by("pk"):
        states = Counter(link.participants.values_list("state", flat=True))
        plan = link.plan.as_dict()
        links.append({
            "places": link.places, "participants": {state: states[state] for state in Participant.State.values},
            "refused": link.refusals,
            "consent_texts": list(link.consent_texts.order_by("version").values("version", "text")),
            **{name: plan[name] for name in _EXPORTED_SETTINGS},
        })  # fmt: skip
    return {"recruitment": links} if links else {}


def _count_writing(row: WritingCampaign) -> Row:
    members = WritingMember.objects.filter(campaign=row)
    seconds = sum(members.values_list("seconds", flat=True))
    return {
        "annotators": members.filter(done__gt=0).count(),
        "skipped": sum(members.values_list("skipped", flat=True)),
        "attempts": WritingAttempt.objects.filter(campaign=row).count(),
        "written": WrittenReference.objects.filter(campaign=row, reference__isnull=False).count(),
        "evaluator": row.evaluator, "corpus": row.corpus, "hours": round(seconds / 3600, 2) if seconds else None,
        "start_set": row.start_set.name if row.start_set else None,
        "target_set": row.target_set.name if row.target_set else None,
    }  # fmt: skip
