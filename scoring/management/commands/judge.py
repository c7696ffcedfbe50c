"""`judge`: let a language model at a configured endpoint or in a configured folder judge every output."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common.commands import find_project
from evalapp.common.models import Run
from evalapp.common.run_commands import read_options
from scoring.management.job_command import JobCommand
from scoring.services.judges import JudgeOptions, start_check


class Command(JobCommand):
    kind = "judge"
    own = ("endpoint",)
    help = (
        "Let a language model judge the outputs of a project. Answers are stored: a second run asks only for what is "
        "missing."
    )

    def add_first(self, parser: CommandParser) -> None:
        super().add_first(parser)
        parser.add_argument("endpoint", help="an endpoint in JUDGE_ENDPOINTS")
        parser.add_argument("--check", action="store_true", help="only show requests, tokens, cost, time and 3 prompts")

    def start(self, *, send: bool, **options: Any) -> Run:
        if not options["check"]:
            return super().start(send=send, **options)
        project = find_project(options["slug"])
        return start_check(project=project, options=read_options(JudgeOptions, options), send=send)

    def show_result(self, result: dict[str, Any]) -> None:
        if "prompts" in result:
            self._show_check(result)
            return
        self.stdout.write(
            f"{result['evaluator']}: {result['outputs']:,} outputs scored, {result['undefined']:,} undefined, "
            f"{result['without_answer']:,} without answer."
        )
        self.stdout.write(
            f"  {result['answers']:,} answers by {result['model']}, {result['stored']:,} stored before, "
            f"{result['failed']:,} failed; {result['prompt_tokens']:,} + {result['completion_tokens']:,} tokens, "
            f"cost {result['cost']:.4f}"
        )
        if result["stopped"] == "time":
            self.stdout.write("  stopped when the time was over; run it again to continue")
        elif result["stopped"]:
            self.stdout.write("  stopped by the budget; run it again with a larger one to continue")
        for reason, count in result.get("why_undefined", {}).items():
            self.stdout.write(f"  {count:,} undefined: {reason}")
        if result.get("pairs"):
            self.stdout.write(
                f"  {result['pairs']:,} pairs in both orders: {result['orders_disagree']:,} disagree and are ties; "
                f"first text better {result['first_better']:,} times, second {result['second_better']:,}"
            )
        if attacked := result.get("injections"):
            self.stdout.write(
                f"  injection: {attacked['changed']:,} of {attacked['rated']:,} changed the rating by more than 1"
            )
        if result.get("controls"):
            self.stdout.write(f"  {result['controls']:,} texts have control tokens of chat models, made harmless")
        self.stdout.write(result["signature"])

    def _show_check(self, result: dict[str, Any]) -> None:
        for k, prompt in enumerate(result["prompts"], 1):
            self.stdout.write(f"--- prompt {k} ---\n{prompt}")
        self.stdout.write(
            f"--- {result['requests']:,} requests to {result['endpoint']} ({result['model']}), {result['stored']:,} "
            f"answers stored; about {result['prompt_tokens']:,} + {result['completion_tokens']:,} tokens, cost "
            f"{result['cost']:.4f}, {result['seconds']:.0f} s"
        )
        if not result["may_send"]:
            self.stdout.write("Texts of this project may not leave this installation; its settings allow it.")
        if not result["within_budget"]:
            self.stdout.write("This exceeds the budget or the minutes: the run would stop early.")
