"""`align`: versions of a judge with their agreement, and a campaign about the most informative outputs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from annotation.services.campaigns import open_campaign
from evalapp.common import commands
from evalapp.common.run_commands import add_options, read_options
from scoring.boards.render.console import as_lines
from scoring.selectors.telling_outputs import make_history
from scoring.services.choosing import AlignmentOptions, choose_scores, create_alignment_campaign, list_proposed


class Command(commands.Command):
    help = "Show the versions of a judge and the most informative outputs to judge next; --create makes a campaign."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("evaluator", help="a judge or another evaluator with scores")
        add_options(parser, AlignmentOptions)
        parser.add_argument("--create", action="store_true", help="create the draft of the campaign")
        parser.add_argument("--open", action="store_true", help="create the campaign and let annotators in")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        given = read_options(AlignmentOptions, options)
        score_set, aspect = choose_scores(project, options["evaluator"], given.aspect)
        history = make_history(project, score_set.evaluator, aspect)
        for version in history["versions"]:
            version["test"] = [{**look, "at": look["at"].isoformat()} for look in version["test"]]
        rows = [row.as_dict() for row in list_proposed(project, options["evaluator"], given)]
        result: dict[str, Any] = {**history, "outputs": rows, "campaign": ""}
        if options["create"] or options["open"]:
            campaign = create_alignment_campaign(project=project, evaluator=options["evaluator"], options=given)
            if options["open"]:
                open_campaign(campaign=campaign, user=None, here=True)
            result["campaign"] = campaign.slug
        return result

    def show(self, result: dict[str, Any]) -> None:
        strength = "decided" if any(row["development"]["decided"] for row in result["versions"]) else "correlation"
        versions = [
            [
                row["evaluator"], row["template"], str(row["examples"]), f"{row['development']['n_outputs']:,}",
                *(_format(row["development"][name]) for name in ("alpha_with", strength, "mean_absolute")),
                *(_list_shown(row["test"], name) for name in ("alpha_with", strength)),
            ]
            for row in result["versions"]
        ]  # fmt: skip
        title = "decided pairs" if strength == "decided" else "Spearman"
        heads = [
            "version", "template", "examples", "outputs", "alpha, development", f"{title}, development",
            "mean difference", "alpha, test", f"{title}, test",
        ]  # fmt: skip
        self.stdout.write("\n".join(as_lines(heads, versions)))
        self.stdout.write(f"The test part was shown {result['looks']:,} times for these versions.")
        rows = [
            [row["item"], row["system"], f"{row['score']:.2f}", "" if row["rating"] is None else f"{row['rating']:.2f}",
             f"{row['error']:.2f}", row["reason"]]
            for row in result["outputs"]
        ]  # fmt: skip
        self.stdout.write("\n".join(as_lines(["item", "system", "score", "rating", "error", "reason"], rows)))
        if result["campaign"]:
            self.stdout.write(f"Campaign: {result['campaign']}")


def _list_shown(looks: list[dict[str, Any]], name: str) -> str:
    return "; ".join(_format(look[name]) for look in looks if look.get(name)) or "not shown"


def _format(estimate: dict[str, Any]) -> str:
    if estimate["value"] is None:
        return "-"
    if estimate["low"] is None:
        return f"{estimate['value']:.3f}"
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"
