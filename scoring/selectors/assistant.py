"""The default assistant of a project: `ridge`, fitted to the judgements so far and again while people judge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum
from django.utils.translation import gettext as _

from annotation.models import Campaign, CampaignMember
from evalapp.accounts.models import Project
from scoring.boards.choices import ASSISTANT

from ..models import Evaluator

#: Judgements after which it is fitted again.
EVERY = 50
#: Campaigns that it learns from: about outputs, without references.
KINDS = (Campaign.Kind.LIKERT, Campaign.Kind.PAIRWISE)


@dataclass(frozen=True)
class Fit:
    """The last fit: when it began, judgements in campaigns until then, judged outputs that it learned from."""

    at: datetime
    n_judgements: int
    n_outputs: int

    def describe(self) -> str:
        """Return two sentences: what the assistant is, and its last fit."""
        text = _(
            "%(name)s, the default assistant, is a regression on text vectors, fitted again every %(every)s "
            "judgements; no output is scored by a model that has learned from its group. Last fit: %(when)s, "
            "after %(judgements)s judgements in campaigns, from %(outputs)s judged outputs."
        )
        return text % {
            "name": ASSISTANT, "every": EVERY, "when": f"{self.at:%Y-%m-%d %H:%M} UTC",
            "judgements": f"{self.n_judgements:,}", "outputs": f"{self.n_outputs:,}",
        }  # fmt: skip


def explain_unfitted(project: Project) -> str:
    """Return how the assistant gets its scores, for a table that lacks them."""
    text = _(
        "%(name)s, the default assistant, has no scores here yet. It is fitted after every %(every)s judgements in "
        "campaigns, or now: %(command)s."
    )
    return text % {"name": ASSISTANT, "every": EVERY, "command": f"evalapp score {ASSISTANT} --project {project.slug}"}


def find_assistant(project: Project) -> Evaluator | None:
    """Return the row of the assistant, None before its first fit."""
    row = Evaluator.objects.filter(project=project, slug=ASSISTANT).first()
    return row if row is not None and row.is_assistant else None


def find_fit(project: Project) -> Fit | None:
    """Return the last fit, None without one; scores that came with an import have none."""
    row = find_assistant(project)
    known: Any = row.record.get("fit") if row is not None else None
    return Fit(datetime.fromisoformat(known["at"]), known["judgements"], known["outputs"]) if known else None


def count_judgements(**campaign: Any) -> int:
    """Return the number of judgements in the campaigns that fit the conditions, from the members' counters."""
    conditions = {f"campaign__{name}": value for name, value in campaign.items()}
    members = CampaignMember.objects.filter(campaign__kind__in=KINDS, **conditions)
    return members.aggregate(n=Sum("done"))["n"] or 0
