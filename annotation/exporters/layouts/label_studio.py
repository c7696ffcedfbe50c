"""Tasks for Label Studio with their labelling configurations: rate an output, or compare two texts. Stored judgements
are annotations of the tasks."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from annotation.exporters.aggregated import select_first_judgements
from annotation.mapping.records import CONTROLS
from annotation.parsers import canonical, encode_row

from .base import (
    ItemRows,
    Layout,
    Plan,
    Row,
    list_loads,
    make_messages,
    make_safe_names,
    map_outputs,
    name_side,
)

#: The choices of a comparison; the first member of each is stored in the answers.
CHOICES = {
    "a": "The first is better", "b": "The second is better", "tie": "Equally good", "both_bad": "Both bad",
    "cannot_decide": "Cannot decide",
}  # fmt: skip
#: The most stars of a rating; other scales are numbers.
MAX_STARS = 10


class LabelStudio(Layout):
    """`rating.json` with `rating.xml`, and `comparison.json` with `comparison.xml`: a project of Label Studio each."""

    title = "Label Studio: tasks with annotations, and a labelling configuration for each kind of task"
    lost = "items without outputs, properties (`meta`), dialogues, and repeated judgements of a rater"

    def __init__(self, folder: Path, plan: Plan) -> None:
        super().__init__(folder, plan)
        rated = [one for one in plan.aspects if one["min"] is not None and one["max"] is not None]
        self.scales = {one["name"]: (one["min"], one["max"]) for one in rated}
        self.controls = make_safe_names(one["name"] for one in plan.aspects)
        #: The aspects whose controls have other names, by control. Tasks carry them, so that they can be read alone.
        self.aspects = {name: aspect for aspect, name in self.controls.items() if name != aspect}
        compared = [one["name"] for one in plan.aspects if one["name"] in plan.compared]
        self.rating = JsonArray(self, "rating.json") if rated else None
        self.comparison = JsonArray(self, "comparison.json") if compared else None
        if rated:
            controls = [self._write_scale(name) for name in self.scales]
            self.add_document("rating.xml", self._configure([("text", "")], controls))
        if compared:
            texts = [("text_a", "First"), ("text_b", "Second")]
            self.add_document(
                "comparison.xml", self._configure(texts, [self._write_choices(name) for name in compared])
            )

    def _configure(self, texts: Iterable[tuple[str, str]], controls: Iterable[str]) -> str:
        lines = ["<View>"]
        if self.plan.has_turns:
            lines.append(
                '  <Paragraphs name="context" value="$context" layout="dialogue" nameKey="role" textKey="content"/>'
            )
        lines.append('  <Text name="source" value="$source"/>')
        for name, title in texts:
            lines += [f"  <Header value={quoteattr(title)}/>"] if title else []
            lines.append(f'  <Text name="{name}" value="${name}"/>')
        return "\n".join([*lines, *controls, "</View>"]) + "\n"

    def _write_scale(self, aspect: str) -> str:
        low, high = self.scales[aspect]
        names = f'name={quoteattr(self.controls[aspect])} toName="text"'
        tag = (
            f'<Rating {names} maxRating="{high:g}"/>'
            if self._has_stars(aspect)
            else (f'<Number {names} min="{low:g}" max="{high:g}" step="any"/>')
        )
        return f"  <Header value={quoteattr(aspect)}/>\n  {tag}"

    def _has_stars(self, aspect: str) -> bool:
        low, high = self.scales[aspect]
        is_whole = low == 1 and high == int(high) and aspect not in self.plan.fractional
        return bool(is_whole and high <= MAX_STARS)

    def _write_choices(self, aspect: str) -> str:
        choices = "".join(f"<Choice alias={quoteattr(key)} value={quoteattr(text)}/>" for key, text in CHOICES.items())
        tag = f'<Choices name={quoteattr(self.controls[aspect])} toName="text_a" choice="single-radio">'
        return f"  <Header value={quoteattr(aspect)}/>\n  {tag}{choices}</Choices>"

    def take_item(self, rows: ItemRows) -> None:
        item = rows.item
        about = {
            "item": item["id"], "group": item["group"], "context": make_messages({**item, "source": None}),
            "source": item["source"] or "", "references": item["references"],
            **({CONTROLS: self.aspects} if self.aspects else {}),
        }  # fmt: skip
        if self.rating is not None:
            judged: dict[Any, list[Row]] = {}
            for row in rows.ratings:
                judged.setdefault((row["system"], row.get("step")), []).append(row)
            for side, text in rows.texts().items():
                data = {**about, "system": name_side(side), "text": text}
                self.rating.add({"data": data, "annotations": self._annotate(judged.get(side, ()), "text")})
        if self.comparison is not None:
            texts = rows.name_texts()
            for (a, b), verdicts in rows.pair_up().items():
                data = {**about, "system_a": a, "system_b": b, "text_a": texts[a], "text_b": texts[b]}
                given = [{"rater": rater, "aspect": aspect, "value": value} for rater, aspect, value in verdicts]
                self.comparison.add({"data": data, "annotations": self._annotate(given, "text_a")})

    def _annotate(self, rows: Iterable[Row], of: str) -> list[Row]:
        """An annotation for each rater. Label Studio refuses annotations that are `completed_by` others than its own
        users, so the rater is in the regions' notes."""
        by_rater: dict[str, list[Row]] = {}
        by_aspect: dict[str, list[Row]] = {}
        for row in rows:
            by_aspect.setdefault(row["aspect"], []).append(row)
        for aspect, given in by_aspect.items():
            for row in select_first_judgements(given):
                kind, value = self._make_value(aspect, row["value"], of)
                control = self.controls[aspect]
                result = {"id": f"{control}-{len(by_rater)}", "from_name": control, "to_name": of, "type": kind}
                by_rater.setdefault(row["rater"], []).append(
                    {**result, "value": value, "meta": {"text": [row["rater"]]}}
                )
        return [{"result": results, "was_cancelled": False} for _, results in sorted(by_rater.items())]

    def _make_value(self, aspect: str, value: Any, of: str) -> tuple[str, Row]:
        if of != "text":
            return "choices", {"choices": [value]}
        return ("rating", {"rating": canonical(value)}) if self._has_stars(aspect) else ("number", {"number": value})

    def close(self) -> None:
        for array in filter(None, (self.rating, self.comparison)):
            array.close()
        self.notes += [
            "In Label Studio, create a project, paste the `.xml` file as labelling configuration, and import the "
            "`.json` file.",
            "The rater of an annotation is in the notes of its regions (`meta.text`), because Label Studio refuses "
            "annotations by others than its own users.",
        ]
        self._write_mappings()
        if self.rating is None and self.comparison is None:
            self.notes.append("There are no tasks, because no aspect has a scale or comparisons.")

    def _write_mappings(self) -> None:
        """The mappings with which the tasks are imported again."""
        explode, result = ["annotations", "annotations.result"], "annotations.result"
        judged = {"item": "data.item", "rater": f"{result}.meta.text.0", "aspect": f"{result}.from_name"}
        values = {"values": {"aspect": self.aspects}} if self.aspects else {}
        if self.rating is not None:
            columns = [{"column": f"{result}.value.rating"}, {"column": f"{result}.value.number"}]
            self.add_mapping("outputs", map_outputs("data", "data", True, "text"))
            self.add_mapping("ratings", {"shape": "long", "columns": {**judged, "system": "data.system"},
                                         "ratings": columns, "explode": explode, **values})  # fmt: skip
        if self.comparison is not None:
            document = map_outputs("data", "data", True, "text_a", "text_b")
            document["columns"] |= {**judged, "verdict": f"{result}.value.choices.0"}
            self.add_mapping("comparisons", {**document, "explode": explode, **values})
        self.notes += list_loads(self, "rating.json", "comparison.json")

    def abort(self) -> None:
        for array in filter(None, (self.rating, self.comparison)):
            array.file.close()


class JsonArray:
    """A file with a list of objects, one per line."""

    def __init__(self, layout: Layout, name: str) -> None:
        self.layout, self.name, self.file = layout, name, layout.open(name)
        self.file.write("[")

    def add(self, row: Row) -> None:
        self.file.write(("\n" if not self.layout.files[self.name] else ",\n") + encode_row(row))
        self.layout.files[self.name] += 1

    def close(self) -> None:
        self.file.write("\n]\n")
        self.file.close()
