"""`agreement`: how far people agree, for every aspect or for one in detail."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from evalapp.side_figures import failure_sentence
from scoring.management.lines import as_lines, filter_line, interval
from scoring.rater_columns import cells_of, columns_of
from scoring.selectors.leaderboards import JUDGED, RATINGS, SCALES, AgreementQuery, parse_query
from scoring.services.leaderboards import get_leaderboard


class Command(commands.Command):
    help = "Agreement among people: every aspect, or one in detail with its raters."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="one aspect in detail; default: a line for each")
        parser.add_argument("--judged", default="", choices=["", *JUDGED], help="with --aspect: one way of judging")
        parser.add_argument("--campaign", default="", metavar="C", help="only what was judged in this campaign")
        parser.add_argument(
            "--scale", default="auto", choices=list(SCALES), help="default: ratings interval, verdicts nominal"
        )
        parser.add_argument(
            "--ratings", default="raw", choices=list(RATINGS),
            help="as given, z-scores per rater (z-shrunk: shrunk towards all raters), or ranks within item and rater",
        )  # fmt: skip
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        query = parse_query(AgreementQuery, options)
        if query.aspect:
            from scoring.selectors.agreement import choose_asked

            query = AgreementQuery(**{**vars(query), "judged": choose_asked(project, query).judged})
        board = get_leaderboard(project=project, query=query)
        return {**board.table, "computed_at": board.computed_at.isoformat()}

    def show(self, found: dict[str, Any]) -> None:
        of = f" in {found['campaign']}" if found["campaign"] else ""
        self.stdout.write(f"Agreement in {found['project']}{of}" + (f": {found['aspect']}" if found["aspect"] else ""))
        if found.get("filter"):
            self.stdout.write(filter_line(found["filter"]))
        if found["n_simulated"]:
            self.stdout.write("Simulated judgements are among these figures.")
        if found["ratings"] != "raw":
            self.stdout.write(f"Ratings: {RATINGS[found['ratings']]}")
        if found["note"]:
            self.stdout.write(found["note"])
        if sentence := failure_sentence(found.get("failed", ())):
            self.stdout.write(sentence)
        if found["rows"]:
            self._show_one(found) if found["aspect"] else self._show_all(found)
        self.stdout.write(found["signature"])

    def _show_all(self, found: dict[str, Any]) -> None:
        names = list({f["name"]: f["label"] for row in found["rows"] for f in row["coefficients"]})
        lines = []
        for row in found["rows"]:
            by_name = {f["name"]: f for f in row["coefficients"]}
            what = [row["aspect"], row["source"] or JUDGED[row["judged"]].lower()]
            figures = [interval(by_name[name]) if name in by_name else "-" for name in names]
            counts = [str(row[name]) for name in ("n_units", "n_shared", "n_raters", "n_judgements")]
            reasons = [by_name["alpha"]["note"]] if by_name["alpha"]["value"] is None else [""]
            lines.append([*what, *figures, *counts, *reasons])
        head = ["aspect", "judged in", *names, "units", "shared", "raters", "judgements", ""]
        self.stdout.write("\n".join(as_lines(head, lines, left=(0, 1, len(head) - 1))))

    def _show_one(self, found: dict[str, Any]) -> None:
        self.stdout.write(
            f"{found['n_judgements']:,} judgements of {found['n_units']:,} units by {found['n_raters']:,} raters"
        )
        rows = [[row["label"], interval(row), str(row["n"]), row["note"]] for row in found["rows"]]
        self.stdout.write("\n".join(as_lines(["coefficient", "value", "n", ""], rows, left=(0, 3))))
        shares = ", ".join(f"{row['value']}: {100 * row['share']:.0f} %" for row in found["prevalence"])
        self.stdout.write(f"answers: {shares}")
        for note in found["notes"]:
            self.stdout.write(note)
        raters = found.get("raters", [])
        if raters:
            head = ["rater", "judged", *(column.label.lower() for column in columns_of(raters)), "look, because"]
            lines = [
                [
                    row["rater"],
                    str(row["n"]),
                    *(cell["text"] for cell in cells_of(row, raters)),
                    " ".join(row["reasons"]),
                ]
                for row in raters
            ]
            self.stdout.write("\n".join(as_lines(head, lines, left=(0, len(head) - 1))))
