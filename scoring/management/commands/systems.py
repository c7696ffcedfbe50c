"""`systems`: the leaderboard of systems, from people's ratings or comparisons or from an evaluator."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from scoring.management.lines import as_lines, filter_line, interval
from scoring.selectors.leaderboards import (
    COVARIATES,
    METHODS,
    MODELS,
    PER,
    RATINGS,
    SUBSETS,
    WEIGHTS,
    SystemsQuery,
    parse_query,
)
from scoring.services.leaderboards import get_leaderboard
from scoring.tables import effects_of


class Command(commands.Command):
    help = "Leaderboard of systems, from people's ratings or comparisons or from an evaluator."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="default: the first one that was judged")
        parser.add_argument(
            "--method", choices=list(METHODS), help="default: mean rating, where there are only comparisons win rate"
        )
        parser.add_argument("--ratings", default="raw", choices=list(RATINGS))
        parser.add_argument("--systems", default="all", choices=list(SUBSETS))
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")
        parser.add_argument("--campaign", default="", metavar="SLUG", help="only what was judged in this campaign")
        parser.add_argument(
            "--weights", default="none", choices=list(WEIGHTS),
            help="propensity: comparisons of adaptively chosen pairs count by 1 / the chance of their pair",
        )  # fmt: skip
        parser.add_argument(
            "--covariates", default="none", choices=list(COVARIATES),
            help="of bradley-terry, davidson and rao-kupper: what the model adjusts for besides the systems",
        )  # fmt: skip
        parser.add_argument("--per", default="judgement", choices=list(PER), help="of m1: what counts as one")
        parser.add_argument("--by", default="", metavar="EVALUATOR", help="rank by an evaluator's scores instead")
        parser.add_argument("--references", default="original", metavar="SET", help="with --by: the reference set")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        query = parse_query(SystemsQuery, options, project)
        board = get_leaderboard(project=project, query=query)
        return {**board.table, "computed_at": board.computed_at.isoformat()}

    def show(self, found: dict[str, Any]) -> None:
        by = found["by"] or f"people, {found['aspect']}"
        self.stdout.write(f"Systems of {found['project']} by {by} ({found['method']})")
        if found.get("campaign"):
            self.stdout.write(f"Only what was judged in the campaign {found['campaign']}.")
        if found.get("filter"):
            self.stdout.write(filter_line(found["filter"]))
        if found["n_simulated"]:
            self.stdout.write("Simulated judgements are among these figures.")
        model = found["method"] in MODELS
        compared = any("win" in row["shares"] for row in found["rows"])
        rows = [
            [
                _place(row),
                row["label"],
                row["kind"],
                interval(row, 0 if model else 3),
                str(row["n"]),
                str(row["n_ratings"]),
                *([_shares(row["shares"])] if compared else []),
                row["note"],
            ]
            for row in found["rows"]
        ]
        head = [
            "rank",
            "system",
            "kind",
            "rating" if model else "value",
            "outputs",
            "games" if compared else "judgements",
        ]
        head += [*(["win / tie / loss %"] if compared else []), ""]
        if rows:
            self.stdout.write("\n".join(as_lines(head, rows, left=(0, 1, 2, len(head) - 1))))
        for group in found["groups"]:
            self.stdout.write(f"Cannot be told apart: {', '.join(group)}")
        for sentence in [
            *effects_of(found),
            *found.get("findings", []),
            (found["extras"].get("connectivity") or {}).get("note"),
        ]:
            if sentence:
                self.stdout.write(sentence)
        if found["note"]:
            self.stdout.write(found["note"])
        self.stdout.write(found["signature"])


def _shares(shares: dict[str, float]) -> str:
    if "win" not in shares:
        return "-"
    tie = shares["tie"] + shares.get("both_bad", 0.0)
    return " / ".join(f"{100 * share:.0f}" for share in (shares["win"], tie, shares["loss"]))


def _place(row: dict[str, Any]) -> str:
    if row["rank"] is None:
        return "-"
    low, high = row["rank_low"], row["rank_high"]
    return str(low) if low == high else f"{low}-{high}"
