"""Make campaigns of judging or of reference writing from a plan (or a list of plans) in a JSON file, and open them."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.allocation.writing_plan import KINDS as WRITING_KINDS
from annotation.allocation.writing_plan import read_writing_plan
from annotation.models import Campaign, WritingCampaign
from annotation.services.campaigns import create_campaign, create_writing, open_campaign
from annotation.services.judging_plans import JUDGING
from evalapp.accounts.models import Project
from evalapp.common import commands
from evalapp.common.errors import BadInput


class Command(commands.Command):
    help = "Make campaigns from a plan in a JSON file; a campaign of the same short name is kept as it is."
    fields_are_arguments = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="SLUG", help="Project to judge or write in")
        parser.add_argument("plan", type=Path, metavar="PLAN.json", help="A plan, or a list of plans")
        parser.add_argument("--open", action="store_true", help="Choose the texts or items, and let annotators in")
        parser.add_argument("--as", dest="by", metavar="NAME", help="User who is named as its maker")

    def work(self, *, project: str, plan: Path, open: bool, by: str | None, **_: Any) -> dict[str, Any]:
        target = commands.find_project(project)
        user = commands.find_user(by) if by else None
        campaigns = []
        for row in _read(plan):
            writing = isinstance(row, dict) and row.get("kind") in WRITING_KINDS
            campaigns.append((self._make_writing if writing else self._make)(target, user, row, open))
        return {"project": project, "campaigns": campaigns}

    def _make(self, project: Project, user: Any, raw: Any, opened: bool) -> dict[str, Any]:
        parsed = JUDGING.parse_plan(raw)
        campaign = Campaign.objects.filter(project=project, slug=parsed.slug).first()
        kept = campaign is not None
        if campaign is None:
            campaign = create_campaign(project=project, user=user, plan=raw)
        if opened and campaign.state == Campaign.State.DRAFT:
            campaign = open_campaign(campaign=campaign, user=user, here=True)
        self.say(f"{campaign.slug}: {'kept' if kept else 'made'}, {campaign.state}, {campaign.unit_count} units")
        return {
            "id": campaign.pk,
            "slug": campaign.slug,
            "state": str(campaign.state),
            "kept": kept,
            "units": campaign.unit_count,
            "slots": campaign.unit_count * campaign.overlap,
        }

    def _make_writing(self, project: Project, user: Any, raw: Any, opened: bool) -> dict[str, Any]:
        plan, _ = read_writing_plan(raw)
        # A plan with faults is nobody's: making it says what they are.
        campaign = WritingCampaign.objects.filter(project=project, slug=plan.slug).first() if plan else None
        kept = campaign is not None
        if campaign is None:
            campaign = create_writing(project=project, user=user, plan=raw)
        if opened and campaign.state == WritingCampaign.State.DRAFT:
            campaign = open_campaign(campaign=campaign, user=user)
        self.say(
            f"{campaign.slug}: {'kept' if kept else 'made'}, {campaign.state}, {campaign.unit_count} items to write for"
        )
        return {
            "id": campaign.pk,
            "slug": campaign.slug,
            "kind": str(campaign.kind),
            "state": str(campaign.state),
            "kept": kept,
            "items": campaign.unit_count,
        }


def _read(path: Path) -> list[Any]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise commands.WrongUsage(f"{path} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInput(f"{path} is not JSON in UTF-8: {error}.") from error
    return raw if isinstance(raw, list) else [raw]
