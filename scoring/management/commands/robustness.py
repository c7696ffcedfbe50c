"""`robustness`: one evaluator over the kinds of texts that people wrote under constraints."""

from __future__ import annotations

import math
from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from evalapp.common.errors import BadInput
from scoring.management.following import add_set
from scoring.management.lines import as_lines
from scoring.pipelines.score import load_trained
from scoring.selectors.catalogue import get_entry, parse_options
from scoring.selectors.training import find_trained, trained_of
from scoring.selectors.written_kinds import KINDS, texts_by_kind


class Command(commands.Command):
    help = "An evaluator's scores by kind of text: of machines, and written by people under each constraint."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("evaluator", help="a name that `manage.py evaluators` lists, or what a training was called")
        parser.add_argument("--project", required=True, metavar="SLUG")
        add_set(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        from scoring.ml import ScoringError, load
        from scoring.ml.evaluators.perception.robustness import robustness

        project, name = commands.find_project(options["project"]), options["evaluator"]
        given = dict(options["settings_given"])
        kinds = texts_by_kind(project)
        if not any(records for kind, records in kinds.items() if kind != "MGE"):
            raise BadInput(
                f"{project.slug} has no texts written under a constraint. Start a writing campaign of that kind first."
            )
        try:
            if trained_of(project).filter(slug=name).exists():
                found: Any = load_trained(find_trained(project, name), given)
            else:
                found = load(name, **parse_options(get_entry(name), given))
            rows = robustness(found, kinds)
        except ScoringError as error:
            raise BadInput(str(error)) from error
        return {
            "project": project.slug,
            "evaluator": name,
            "signature": found.signature,
            "rows": [
                {"kind": row.kind, "what": KINDS[row.kind], "n": row.n}
                | {key: _number(getattr(row, key)) for key in ("score", "mean", "sd")}
                for row in rows
            ],
        }

    def show(self, found: dict[str, Any]) -> None:
        head = ["kind", "texts", "n", "score", "mean", "sd"]
        rows = [
            [row["kind"], row["what"], str(row["n"]), *(_shown(row[key]) for key in ("score", "mean", "sd"))]
            for row in found["rows"]
        ]
        self.stdout.write(f"{found['evaluator']} by kind of text, each against the item's original")
        self.stdout.write("\n".join(as_lines(head, rows, left=(0, 1))))
        self.stdout.write(found["signature"])


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
