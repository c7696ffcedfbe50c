"""The folders that `mt_metrics_eval.data.EvalSet` reads: a line per segment in every file, segments of a document
together."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from .base import ItemRows, Layout, Plan, Row, SafeNames, Side, make_prompt, make_safe_names, name_side

#: The line of a missing text, as the reader knows it.
MISSING = "[No translation supplied]"
_LINE_BREAKS = re.compile(r"[\r\n]+")


class Lines:
    """A file of lines that are written in one order and read in another."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.file: IO[bytes] = path.open("w+b", buffering=1 << 17)
        self.places = array("q", [0])

    def add(self, text: str | None) -> bool:
        """Write a text as a line. Returns whether the line is another text."""
        line = MISSING if text is None else _join_lines(text)
        self.places.append(self.places[-1] + self.file.write(line.encode("utf-8", "replace") + b"\n"))
        return text is not None and line != text

    def sort(self, order: array[int]) -> None:
        """Write the lines in `order`, and close the file."""
        self.file.flush()
        if any(place != number for number, place in enumerate(order)):
            part = self.path.with_name(self.path.name + ".part")
            with part.open("wb", buffering=1 << 17) as sorted_file:
                for place in order:
                    self.file.seek(self.places[place])
                    sorted_file.write(self.file.read(self.places[place + 1] - self.places[place]))
            part.replace(self.path)
        self.file.close()


class MtMetricsEval(Layout):
    """`sources`, `documents`, `references`, `system-outputs`, `human-scores` and `metric-scores`."""

    title = "Folders of mt-metrics-eval: system outputs, human scores and metric scores"
    lost = "raters, comparisons, dialogues, properties (`meta`), and turns of contexts, which are part of the source"
    has_scores = True

    def __init__(self, folder: Path, plan: Plan) -> None:
        super().__init__(folder, plan)
        lang = str(plan.head["lang"] or "und").partition("-")[0]
        self.pair = f"{lang}-{lang}"
        safe = make_safe_names(map(name_side, plan.sides))
        self.systems: dict[Side, str] = {side: safe[name_side(side)] for side in plan.sides}
        self.renamed = {name: new for name, new in safe.items() if name != new}
        #: Ids and groups, which the program does not read.
        self.items = self._make(f"items/{self.pair}.ids.txt")
        self.item_groups = self._make(f"items/{self.pair}.groups.txt")
        self.sources = self._make(f"sources/{self.pair}.txt")
        names = [f"ref{_letter(number)}" for number in range(plan.n_references)]
        self.references = {name: self._make(f"references/{self.pair}.{name}.txt") for name in names}
        self.outputs = {
            side: self._make(f"system-outputs/{self.pair}/{name}.txt") for side, name in self.systems.items()
        }
        aspects = [aspect["name"] for aspect in plan.aspects if aspect["name"] in plan.rated]
        self.aspects = make_safe_names(aspects)
        self.means = {(aspect, side): array("d") for aspect in aspects for side in plan.sides}
        self.documents = Lines(folder / f"documents/{self.pair}.docs")
        #: The names of groups and domains there, and the domain of each group, which is that of its first item.
        self.groups, self.domains = SafeNames(), SafeNames()
        self.group_domains: dict[str, tuple[int, str]] = {}
        #: For each item the number of its group, and a hash of its id, which takes less memory. Scores come in the
        #: order of items, so that each is found behind the one `at` which the last was.
        self.group_numbers, self.keys, self.at = array("q"), array("q"), 0
        #: Texts with line breaks, and lines for texts that do not exist.
        self.joined = self.missing = 0
        self.scored: dict[Side, array[float]] = {}
        self.score_set: Row = {}
        self.score_sets: dict[str, Row] = {}
        self.order: array[int] | None = None
        self.metrics: set[str] = set()

    def _make(self, name: str) -> Lines:
        self.files[name] = self.plan.n_items
        return Lines(self.folder / name)

    def _list_files(self) -> list[Lines]:
        files = [self.items, self.item_groups, self.sources, self.documents]
        return [*files, *self.references.values(), *self.outputs.values()]

    def take_item(self, rows: ItemRows) -> None:
        item, texts, means = rows.item, rows.texts(), rows.means()
        self.keys.append(hash(item["id"]))
        self._add_document(item)
        lines: list[tuple[Lines, str | None]] = [
            (self.items, item["id"]), (self.item_groups, item["group"] or ""), (self.sources, make_prompt(item)),
        ]  # fmt: skip
        for number, file in enumerate(self.references.values()):
            lines.append((file, item["references"][number] if number < len(item["references"]) else None))
        lines += [(file, texts.get(side)) for side, file in self.outputs.items()]
        self.missing += sum(text is None for _, text in lines)
        self.joined += sum([file.add(text) for file, text in lines])
        for (aspect, side), values in self.means.items():
            row = means.get((side, aspect))
            values.append(math.nan if row is None else row["mean"])

    def _add_document(self, item: Row) -> None:
        group, domain = item["group"] or item["id"], (item.get("meta") or {}).get("domain")
        domain = self.domains[domain if isinstance(domain, str) and domain.strip() else "all"]
        number, domain = self.group_domains.setdefault(group, (len(self.group_domains), domain))
        self.group_numbers.append(number)
        self.documents.add(f"{domain} {self.groups[group]}")

    def take_row(self, table: str, row: Row) -> None:
        if table == "score_sets":
            self.score_sets[row["id"]] = row
        elif table == "scores":
            if row["set"] != self.score_set.get("id"):
                self._end_set()
                self.score_set = self.score_sets[row["set"]]
                self.scored = {side: array("d", [math.nan]) * len(self.keys) for side in self.systems}
                self.at = 0
            self.at = self.keys.index(hash(row["item"]), self.at)
            if row["value"] is not None:
                self.scored[row["system"], row["step"]][self.at] = row["value"]

    def _sort(self) -> array[int]:
        """Sort the lines by document, in the order of the first item of each, and write the ratings."""
        if self.order is not None:
            return self.order
        self.order = array("q", sorted(range(len(self.keys)), key=self.group_numbers.__getitem__))
        for file in self._list_files():
            file.sort(self.order)
        self.files[f"documents/{self.pair}.docs"] = len(self.keys)
        for aspect, name in self.aspects.items():
            values = {side: self.means[aspect, side] for side in self.systems}
            self._write_scores(f"human-scores/{self.pair}.{name}", values)
        return self.order

    def _write_scores(
        self, name: str, values: dict[Side, array[float]], whole: Mapping[Side, float | None] | None = None
    ) -> None:
        """Write scores of segments, and those of systems: `whole` if the evaluator has them, otherwise means."""
        assert self.order is not None
        means = []
        with self.open(f"{name}.seg.score") as file:
            for side, numbers in values.items():
                system = self.systems[side]
                for place in self.order:
                    file.write(f"{system}\t{_number(numbers[place])}\n")
                known = [number for number in numbers if not math.isnan(number)]
                mean = (whole or {}).get(side)
                if mean is None:
                    mean = math.fsum(known) / len(known) if known else math.nan
                means.append(f"{system}\t{_number(mean)}\n")
        self.files[f"{name}.seg.score"] = len(values) * len(self.order)
        self.add_document(f"{name}.sys.score", "".join(means), len(means))

    def _end_set(self) -> None:
        """Write the scores of a set that are complete: the reader accepts no missing score of a metric."""
        self._sort()
        row = self.score_set
        if not row:
            return
        missing = sum(math.isnan(number) for numbers in self.scored.values() for number in numbers)
        if missing:
            self.notes.append(f"{row['id']} is left out, because {missing:,} outputs have no score by it.")
        elif row["references"] not in ("", "original"):
            self.notes.append(f"{row['id']} is left out, because its references are not in the folder.")
        else:
            name = row["evaluator"] + (f"-{row['aspect']}" if row["aspect"] else "")
            used = "src" if not row["references"] else "all" if len(self.references) != 1 else "refA"
            base = make_safe_names([*sorted(self.metrics), name])[name]
            self.metrics.add(base)
            whole = {(one["system"], one.get("step")): one["value"] for one in row["systems"]}
            self._write_scores(f"metric-scores/{self.pair}/{base}-{used}", self.scored, whole)

    def close(self) -> None:
        self._end_set()
        if self.joined:
            self.notes.append(f"{self.joined:,} texts have line breaks, which became blanks.")
        if self.missing:
            self.notes.append(f"{self.missing:,} lines are `{MISSING}`; when imported, this is their text.")
        self.notes += [f"The system `{name}` is `{new}`." for name, new in self.renamed.items()]
        self.notes.append(
            f"Read it with `EvalSet(NAME, '{self.pair}', True, info, path=FOLDER)`, where NAME is the folder in FOLDER "
            "and `info` is a `MetaInfo` with the standard reference and scores. Scores of systems are means over "
            "segments."
        )
        self._write_mapping()

    def _write_mapping(self) -> None:
        """The mapping with which the folder is imported again; the rater of mean ratings is `mean`."""
        names = {name: f"references/{self.pair}.{name}.txt" for name in self.references}
        columns: Row = {
            "item": f"items/{self.pair}.ids.txt", "group": f"items/{self.pair}.groups.txt",
            "source": f"sources/{self.pair}.txt", **({"references": list(names.values())} if names else {}),
        }  # fmt: skip
        outputs = [
            {"column": f"system-outputs/{self.pair}/{name}.txt", "system": name_side(side)}
            for side, name in self.systems.items()
        ]
        ratings = [
            {"column": f"human-scores/{self.pair}.{name}.seg.score:{system}", "system": name_side(side),
             "aspect": aspect, "rater": "mean"}
            for aspect, name in self.aspects.items() for side, system in self.systems.items()
        ]  # fmt: skip
        self.add_mapping("folder", {"shape": "lines", "columns": columns, "outputs": outputs, "ratings": ratings})
        self.notes.append("`load FOLDER --map FOLDER/folder.mapping.json` imports items, outputs and mean ratings.")

    def abort(self) -> None:
        for file in self._list_files():
            file.file.close()


def _join_lines(text: str) -> str:
    """The text on one line, as Python reads lines."""
    return _LINE_BREAKS.sub(" ", text)


def _number(value: float) -> Any:
    return "None" if math.isnan(value) else repr(value)


def _letter(number: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
