"""`meta`: the leaderboard of evaluators: how well each follows people's ratings or comparisons."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalapp.common import commands
from scoring.management.lines import as_lines, excluded_line, filter_line, interval, stale_lines
from scoring.selectors.leaderboards import (
    COEFFICIENTS,
    COMPARED,
    EARLIER,
    GROUPINGS,
    LEVELS,
    PEOPLE,
    RATINGS,
    SHAPES,
    SUBSETS,
    TESTS,
    UNDEFINED,
    EnhancedQuery,
    EvaluatorsQuery,
    parse_query,
)
from scoring.services.leaderboards import get_leaderboard
from scoring.tables import cells_of, columns_of, letters_caption, remarks_of


class Command(commands.Command):
    help = "Leaderboard of evaluators: correlation with people's ratings or comparisons, with intervals."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the project")
        parser.add_argument("--aspect", default="", metavar="A", help="default: the first one that was rated")
        parser.add_argument("--level", choices=list(LEVELS), help="default: segment; of comparisons system")
        parser.add_argument("--grouping", default="none", choices=list(GROUPINGS))
        parser.add_argument(
            "--undefined", default="drop", choices=list(UNDEFINED),
            help="groups in which an evaluator's scores are all equal: left out, or counted as 0",
        )  # fmt: skip
        parser.add_argument("--systems", default="all", choices=list(SUBSETS))
        parser.add_argument("--filter", default="", metavar="NAME", help="leave out the raters of this named filter")
        parser.add_argument(
            "--references", default=["original"], nargs="+", metavar="SET",
            help="the reference set; several are compared side by side, each with the first",
        )  # fmt: skip
        parser.add_argument(
            "--people", choices=list(PEOPLE),
            help="what evaluators are compared with: ratings, or the systems' values that comparisons give (default: "
            "ratings, where there are only comparisons win rate)",
        )  # fmt: skip
        parser.add_argument(
            "--evaluators", default=[], nargs="+", metavar="EVALUATOR",
            help="compare only these: no other makes a row, is tested or leaves out what it learned from, sentinels no "
            "less than others (default: all)",
        )  # fmt: skip
        parser.add_argument("--ratings", default="raw", choices=list(RATINGS))
        parser.add_argument(
            "--coefficient", default="pearson", choices=list(COMPARED), help="what evaluators are tested and ordered by"
        )
        parser.add_argument(
            "--test", default="permutation", choices=list(TESTS),
            type=lambda name: {EARLIER: "permutation"}.get(name, name),
            help="adjusted by Holm over all pairs; permutation exchanges whole systems at the system level, groups of "
            "items at the others",
        )  # fmt: skip

        further = parser.add_mutually_exclusive_group()
        further.add_argument(
            "--slices", nargs="?", const="", default=None, metavar="KEY",
            help="by part of the items: a key of their meta (default: the first that parts them)",
        )  # fmt: skip
        further.add_argument("--aspects", action="store_true", help="every aspect side by side")
        further.add_argument(
            "--pairs", action="store_true", help="how often each is right on pairs that people compared"
        )
        further.add_argument("--matrix", action="store_true", help="evaluators against each other, over all outputs")

    def work(self, **options: Any) -> dict[str, Any]:
        project = commands.find_project(options["slug"])
        kind = "slices" if options["slices"] is not None else "aspects" if options["aspects"] else ""
        kind = kind or ("matrix" if options["matrix"] else "pairs" if options["pairs"] else "")
        if kind:
            given = {**options, "references": options["references"][0], "key": options["slices"] or ""}
            query = parse_query(SHAPES[kind], given, project)
            board = get_leaderboard(project=project, query=query)
            return {**board.table, "computed_at": board.computed_at.isoformat()}
        several = len(options["references"]) > 1
        if several and options["people"] not in (None, "ratings"):
            raise commands.WrongUsage("One reference set at a time with --people: name one after --references.")
        options["references"] = ",".join(options["references"])
        query = parse_query(EnhancedQuery if several else EvaluatorsQuery, options, project)
        board = get_leaderboard(project=project, query=query)
        return {**board.table, "computed_at": board.computed_at.isoformat()}

    def show(self, found: dict[str, Any]) -> None:
        if found["kind"] in ("slices", "matrix", "aspects"):
            self._show_cells(found)
            return
        if found["kind"] == "pairs":
            self._show_pairs(found)
            return
        if found["kind"] == "enhanced":
            self._show_by_set(found)
            return
        self.stdout.write(
            f"Evaluators of {found['project']}: {found['aspect']}, {found['level']} level, systems {found['systems']}"
        )
        if found["people"] != "ratings":
            name = PEOPLE[found["people"]]
            self.stdout.write(
                f"People's scores of {found['n_systems']} systems: {name}, {found['n_ratings']:,} judgements"
            )
        if found["note"]:
            self.stdout.write(found["note"])
        self._show_what_counts(found)
        extra = [name for name in ("accuracy", "pa", "spa", "calibrated") if found["rows"] and name in found["rows"][0]]
        rows = [
            [
                row["evaluator"] + (" (sentinel)" if row["is_sentinel"] else ""),
                *(interval(row[name]) for name in (*COEFFICIENTS, *extra)),
                row["letters"],
                str(row["n"]),
                row["pearson"]["note"] or row["note"],
            ]
            for row in found["rows"]
        ]
        if found["n_excluded"]:
            self.stdout.write(
                f"Compared on {found['n_outputs']:,} outputs; {found['n_excluded']:,} are left out, since some "
                f"evaluator learned from their groups.{' On all of them:' if found['people'] == 'ratings' else ''}"
            )
        if found["n_excluded"] and found["people"] == "ratings":
            whole = [
                [row["evaluator"], *(interval(row["whole"][name]) for name in COEFFICIENTS), str(row["whole"]["n"])]
                for row in found["rows"]
                if row["whole"]
            ]
            self.stdout.write("\n".join(as_lines(["evaluator", *COEFFICIENTS, "n"], whole)))
            self.stdout.write("On what no evaluator learned from:")
        head = ["evaluator", *COEFFICIENTS, *extra, "letters", "n", ""]
        self.stdout.write("\n".join(as_lines(head, rows, left=(0, len(head) - 3, len(head) - 1))))
        self._show_test(found)
        if found.get("population"):
            self.stdout.write(f"Intervals: about {found['population']}. {found.get('coverage', '')}".rstrip())
        ceiling = found["ceiling"]
        if ceiling["value"] is not None:
            self.stdout.write(f"Noise ceiling of {found['coefficient']}: {interval(ceiling)}.")
        self.stdout.write(found["signature"])

    def _show_what_counts(self, found: dict[str, Any]) -> None:
        """What a reader must know before the figures: what was left out by wish, simulated or out of date."""
        self._show_chosen(found)
        if found.get("filter"):
            self.stdout.write(filter_line(found["filter"]))
        if found["n_simulated"]:
            self.stdout.write("Simulated judgements are among these figures.")
        self._show_counted(found)
        self._show_stale(found)

    def _show_counted(self, found: dict[str, Any]) -> None:
        for sentence in found.get("counted", []):
            self.stdout.write(sentence)

    def _show_test(self, found: dict[str, Any]) -> None:
        """What the letters mean, or why there are none."""
        test = found["test"]
        if not test["names"]:
            self.stdout.write(f"Nothing was tested ({test['signature']}). {test['note']}".rstrip())
            return
        caption = letters_caption(found)
        self.stdout.write(caption)
        for line in (test["note"], test.get("changed", "")):
            if line and line not in caption:
                self.stdout.write(f"{line}.")
        self.stdout.write(test["signature"])

    def _show_chosen(self, found: dict[str, Any]) -> None:
        if found["evaluators"]:
            self.stdout.write(f"Only chosen evaluators are compared: {', '.join(found['evaluators'])}.")

    def _show_stale(self, found: dict[str, Any]) -> None:
        for line in stale_lines(found):
            self.stdout.write(line)

    def _show_cells(self, found: dict[str, Any]) -> None:
        """A line for every evaluator, a figure for every column; intervals stand in the JSON and on the page."""
        self._show_chosen(found)
        self._show_counted(found)
        self._show_stale(found)
        for line in excluded_line(found):
            self.stdout.write(line)
        names = columns_of(found)
        rows: dict[str, list[str]] = {row["evaluator"]: [] for row in found["rows"]}
        for row, _, estimate, _ in cells_of(found):
            rows[row].append("" if estimate is None else _p(estimate["value"]))
        lines = [[name, *cells] for name, cells in rows.items()]
        self.stdout.write("\n".join(as_lines(["evaluator", *names], lines)))
        for remark in remarks_of(found):
            self.stdout.write(remark)
        if found["note"]:
            self.stdout.write(found["note"])
        self.stdout.write(found["signature"])

    def _show_pairs(self, found: dict[str, Any]) -> None:
        """A line for every evaluator with its three figures and their intervals."""
        self.stdout.write(
            f"Evaluators of {found['project']} on {found['n_pairs']:,} compared pairs ({found['n_decided']:,} decided, "
            f"{found['n_tied']:,} tied): {found['aspect']}, systems {found['systems']}"
        )
        self._show_what_counts(found)
        if found["n_excluded"]:
            self.stdout.write(
                f"{found['n_excluded']:,} comparisons are left out, since some evaluator learned from their groups."
            )
        shown = [(row, row["evaluator"] + (" (sentinel)" if row["is_sentinel"] else "")) for row in found["rows"]]
        cells = [
            [name, *("" if cell is None else interval(cell) for cell in row["cells"]), row["letters"], str(row["n"])]
            for row, name in shown
        ]
        if found["ceiling"][0]["value"] is not None:
            own = ["" if cell is None else interval(cell) for cell in found["ceiling"]]
            cells.append(["one person, by the others", *own, "", str(found["ceiling"][0]["n"])])
        head = ["evaluator", *columns_of(found), "letters", "n"]
        self.stdout.write("\n".join(as_lines(head, cells, left=(0, len(head) - 2))))
        self._show_test(found)
        if found.get("shorter"):
            self.stdout.write("People prefer the shorter text here: less length is less the share of the shorter one.")
        if found["by_lot"] is not None:
            self.stdout.write(f"By lot: 0.500 of decided pairs, {found['by_lot']:.3f} of all at best.")
        if found["n_split"]:
            self.stdout.write(f"Without a verdict that most people gave, counted nowhere: {found['n_split']:,} pairs.")
        if found["note"]:
            self.stdout.write(found["note"])
        self.stdout.write(found["signature"])

    def _show_by_set(self, found: dict[str, Any]) -> None:
        """A line for every evaluator and set; differences are to the first set that was named."""
        self.stdout.write(
            f"Evaluators of {found['project']} by reference set: {found['aspect']}, {found['level']} level"
        )
        if found["n_simulated"]:
            self.stdout.write("Simulated ratings are among these figures.")
        self._show_chosen(found)
        self._show_counted(found)
        self._show_stale(found)
        for line in excluded_line(found):
            self.stdout.write(line)
        sizes = {row["name"]: row["per_item"] for row in found["sets"]}
        lines = []
        for row in found["rows"]:
            to_first = {d["a"]: d for d in row["differences"] if d["b"] == found["baseline"]}
            for name, cell in row["cells"].items():
                size = sizes.get(name)
                shown = to_first.get(name)
                lines.append(
                    [
                        row["evaluator"], name, "-" if size is None else f"{size:.1f}",
                        *(interval(cell[c]) for c in ("pearson", "kendall")), str(cell["n"]),
                        "" if shown is None else interval(shown), "" if shown is None else _p(shown["p"]),
                        "" if shown is None else _p(shown["p_holm"]), "" if shown is None else _p(shown["williams"]),
                    ]
                )  # fmt: skip
        head = ["evaluator", "references", "per item", "pearson", "kendall", "n"]
        head += [f"minus {found['baseline']}", "p", "p Holm", "p Williams"]
        self.stdout.write("\n".join(as_lines(head, lines, left=(0, 1))))
        if found["note"]:
            self.stdout.write(found["note"])
        self.stdout.write(found["signature"])


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
