"""`annotate`: let an evaluator choose references into a named reference set."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from annotation.models.data import ORIGINAL
from evalapp.common import commands
from evalapp.common.models import Run
from scoring.management.following import add_where, see_through
from scoring.services.annotating import STARTS, AnnotateWishes, start_annotation


class Command(commands.Command):
    help = "Automatic reference annotation (REAM) into a named reference set."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--evaluator", required=True, metavar="A", help="what a training of ream was called")
        parser.add_argument("--mix", default="", metavar="B", help="a second one: the union of what both choose")
        parser.add_argument(
            "--candidates", default="withheld", metavar="SOURCE",
            help="corpus:NAME, outputs (of systems: the set then holds what is judged), or withheld (default: the "
            "item's own further references)",
        )  # fmt: skip
        parser.add_argument("--references", default=ORIGINAL, metavar="SET", help="the set an item begins with")
        parser.add_argument("--start", default="one", choices=list(STARTS), help="one of its references, or all")
        parser.add_argument(
            "--max", type=int, default=10, metavar="N", help="references of an item, the first included"
        )
        parser.add_argument("--min-gain", type=float, default=0.0, metavar="X", help="what one must add to be taken")
        parser.add_argument(
            "--greedy", action="store_true", help="take the best of all each time, not the first that helps"
        )
        parser.add_argument("--seed", type=int, default=13, metavar="N")
        parser.add_argument("--per-item", type=int, default=100, metavar="N", help="candidates looked at for an item")
        parser.add_argument("--turns", type=int, default=None, metavar="N", help="of a corpus: ask by the last N turns")
        parser.add_argument("--system", action="append", default=[], dest="systems", metavar="SYSTEM",
                            help="of outputs: only this system's; may be repeated")  # fmt: skip
        parser.add_argument("--item", action="append", default=[], dest="items", metavar="KEY",
                            help="only this item; may be repeated")  # fmt: skip
        parser.add_argument("--sample", type=int, default=None, metavar="N", help="only N items, drawn by the seed")
        parser.add_argument("--controls", action="store_true", help="also write SET-raw and SET-random")
        parser.add_argument("--into", required=True, metavar="SET", help="the name of the new set")
        add_where(parser)

    def work(self, **options: Any) -> dict[str, Any]:
        names = AnnotateWishes.__dataclass_fields__
        given = {name: options[name] for name in names}
        given |= {name: tuple(given[name]) for name in ("systems", "items")}
        run = start_annotation(
            project=commands.find_project(options["slug"]), wishes=AnnotateWishes(**given), send=not options["here"]
        )
        return see_through(run, options, self.say)

    def show(self, found: dict[str, Any]) -> None:
        if found["state"] in Run.ACTIVE:
            self.stdout.write(f"Run {found['run']} is {found['state']}. Follow it with: manage.py run {found['run']}")
            return
        means = [found["mean_before"], found["mean_after"]]
        grown = "" if None in means else f", predicted reliability {means[0]:.3f} -> {means[1]:.3f}"
        self.stdout.write(
            f"{found['references']}: {found['n_references']:,} references of {found['items']:,} items, "
            f"{found['added']:,} of them chosen from {found['looked_at']:,} candidates{grown}."
        )
        others = [name for name in found["sets"] if name != found["references"]]
        if others:
            self.stdout.write(f"Beside it: {', '.join(others)}.")
