"""`sample`: a campaign about outputs that are drawn by the expected error of an evaluator, with known chances."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from annotation.services.campaigns import open_campaign
from evalapp.common import commands
from evalapp.common.run_commands import add_options, read_options
from scoring.services.choosing import SampleOptions, create_sample_campaign


class Command(commands.Command):
    help = (
        "Draw outputs for judgement by the expected error of an evaluator. Their chances are stored, and "
        "`systems --assist` uses them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("evaluator", help="an evaluator with scores of all outputs")
        add_options(parser, SampleOptions)
        parser.add_argument("--open", action="store_true", help="let annotators in")

    def work(self, **options: Any) -> dict[str, Any]:
        campaign = create_sample_campaign(
            project=commands.find_project(options["slug"]), evaluator=options["evaluator"],
            options=read_options(SampleOptions, options),
        )  # fmt: skip
        if options["open"]:
            open_campaign(campaign=campaign, user=None, here=True)
        return {"campaign": campaign.slug, "outputs": len(campaign.plan["outputs"]), "chosen": campaign.plan["chosen"]}

    def show(self, result: dict[str, Any]) -> None:
        chosen = result["chosen"]
        self.stdout.write(
            f"Campaign {result['campaign']}: {result['outputs']:,} outputs, batch {chosen['batch']} of "
            f"{chosen['batches']}. After its judgements: --after {result['campaign']}"
        )
