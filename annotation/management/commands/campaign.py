"""Create judging and writing campaigns from a plan, or a list of plans, in a JSON file, and open them."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.allocation.writing_plan import KINDS as WRITING_KINDS
from annotation.models import Campaign
from annotation.services.campaign_work import CampaignWork
from annotation.services.judging_plans import JUDGING
from annotation.services.writing_plans import WRITING
from evalapp.accounts.models import Project, User
from evalapp.common import commands
from evalapp.common.errors import BadInput


class Command(commands.Command):
    help = "Create campaigns from plans in a JSON file. An existing campaign with the same short name stays unchanged."
    fields_are_arguments = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="SLUG", help="Project of the campaigns")
        parser.add_argument("plan", type=Path, metavar="PLAN.json", help="A plan, or a list of plans")
        parser.add_argument("--open", action="store_true", help="Also open the campaigns")
        parser.add_argument("--as", dest="by", metavar="NAME", help="User who is stored as the creator")

    def work(self, *, project: str, plan: Path, open: bool, by: str | None, **_: Any) -> dict[str, Any]:
        target = commands.find_project(project)
        user = commands.find_user(by) if by else None
        return {"project": project, "campaigns": [self._create(target, user, row, open) for row in _read(plan)]}

    def _create(self, project: Project, user: User | None, raw: Any, opened: bool) -> dict[str, Any]:
        is_writing = isinstance(raw, dict) and raw.get("kind") in WRITING_KINDS
        work: CampaignWork[Any, Any] = WRITING if is_writing else JUDGING
        campaign = work.model.objects.filter(project=project, slug=work.parse_plan(raw).slug).first()
        exists = campaign is not None
        if campaign is None:
            campaign = work.create(project=project, user=user, plan=raw)
        if opened and campaign.state == Campaign.State.DRAFT:
            campaign = work.open(campaign, user, here=True)
        units = "items to write for" if is_writing else "units"
        self.say(f"{campaign.slug}: {'kept' if exists else 'made'}, {campaign.state}, {campaign.unit_count} {units}")
        result = {"id": campaign.pk, "slug": campaign.slug, "state": str(campaign.state), "kept": exists}
        if is_writing:
            return result | {"kind": str(campaign.kind), "items": campaign.unit_count}
        return result | {"units": campaign.unit_count, "slots": campaign.unit_count * campaign.overlap}


def _read(path: Path) -> list[Any]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise commands.WrongUsage(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON in UTF-8: {error}.") from error
    return raw if isinstance(raw, list) else [raw]
