"""Fit the default assistant while people judge.

Refits are found by looking at what is stored, not while an answer is stored: several answers may pass the boundary at
once, and judging needs no further queries. A failed refit leaves the former scores as they are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import CampaignMember, Comparison, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run
from scoring.boards.choices import ASSISTANT

from ..selectors.assistant import EVERY, KINDS, count_judgements
from ..selectors.inputs import count_outputs

#: Projects in which nobody has judged for this time are not looked at.
RECENT = timedelta(days=1)
#: Scores are replaced in one transaction, which must stay short while people judge.
MOST_OUTPUTS = 20_000


def queue_refits() -> None:
    """Queue a refit in each project with `EVERY` more judgements since the last one, whether that succeeded or not, or
    with fewer, because a campaign was deleted."""
    judged = CampaignMember.objects.filter(
        campaign__project=OuterRef("pk"), campaign__kind__in=KINDS, last_at__gte=timezone.now() - RECENT
    )
    for project in Project.objects.filter(Exists(judged), deleting_at=None).order_by("pk"):
        last = Run.objects.filter(project=project, kind="refit").order_by("-pk").first()
        until = count_judgements(project=project)
        if until < EVERY or (last is not None and (last.is_active or until // EVERY == last.params["until"] // EVERY)):
            continue
        if not explain_refusal(project):
            _enqueue(project, None, until, send=True)


def start_refit(*, project: Project, user: Any = None, send: bool = True) -> Run:
    """Queue a refit, or return the active one. Raises `BadInput` if there is nothing to fit, or too much."""
    active = Run.objects.filter(project=project, kind="refit", state__in=Run.ACTIVE, cancel_requested=False).first()
    if active is not None:
        return active
    if reason := explain_refusal(project):
        raise BadInput.for_field("evaluator", reason)
    return _enqueue(project, user, count_judgements(project=project), send=send)


def explain_refusal(project: Project) -> str:
    """Return why the assistant cannot be fitted here; empty if it can."""
    from scoring.ml import ScoringError
    from scoring.ml.encoders.source import find_encoder_folder
    from scoring.ml.errors import need_package

    rated = Rating.objects.filter(project=project, output__isnull=False)
    if not rated.exists() and not Comparison.objects.filter(project=project, output_b__isnull=False).exists():
        text = _("%(name)s learns from ratings and comparisons of outputs: upload some, or open a campaign.")
        return text % {"name": ASSISTANT}
    if count_outputs(project) > MOST_OUTPUTS:
        text = _("The assistant is fitted in projects with at most %(most)s outputs. Train %(name)s instead.")
        return text % {"most": f"{MOST_OUTPUTS:,}", "name": ASSISTANT}
    try:
        need_package("torch", ASSISTANT)
        find_encoder_folder()
    except ScoringError as error:
        return str(error)
    return ""


def _enqueue(project: Project, user: Any, until: int, *, send: bool) -> Run:
    """Queue the refit; two processes that ask for the same judgements get the same run."""
    return enqueue_run(
        kind="refit", project=project, user=user, params={"evaluator": ASSISTANT, "until": until},
        title=gettext_noop("Fit %(name)s") % {"name": ASSISTANT}, send=send,
    )  # fmt: skip
