"""Records and settings for Argilla 2: rate an output, or compare two texts. The most frequent stored judgement is a
suggestion."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from annotation.exporters.aggregated import select_first_judgements
from annotation.parsers import canonical, encode_document
from annotation.parsers.writer import encode_plain

from .base import ItemRows, Layout, Plan, Row, list_loads, make_messages, map_outputs, name_side
from .label_studio import CHOICES, JsonArray

#: Ratings in Argilla are whole numbers in this range.
LOWEST, HIGHEST = 0, 10


class Argilla(Layout):
    """`rating.records.json` with `rating.settings.json`, and the same for comparisons: a dataset of Argilla each."""

    title = "Argilla: records with suggestions, and the settings of a dataset for each kind of record"
    lost = "items without outputs, properties (`meta`), dialogues, and repeated judgements of a rater"

    def __init__(self, folder: Path, plan: Plan) -> None:
        super().__init__(folder, plan)
        scales = {one["name"]: _list_values(one["min"], one["max"]) for one in plan.aspects if one["min"] is not None}
        self.values = {name: values for name, values in scales.items() if values}
        self.names = _name_questions(one["name"] for one in plan.aspects)
        compared = [one["name"] for one in plan.aspects if one["name"] in plan.compared]
        self.rating = JsonArray(self, "rating.records.json") if self.values else None
        self.comparison = JsonArray(self, "comparison.records.json") if compared else None
        if self.values:
            questions = [
                _question(self.names[name], name, "rating", options=[{"value": value} for value in values])
                for name, values in self.values.items()
            ]
            self._write_settings("rating", ("text",), questions, ("item", "system"))
        if compared:
            options = [{"value": key, "text": text} for key, text in CHOICES.items()]
            questions = [
                _question(self.names[name], name, "label_selection", options=options, visible_options=len(options))
                for name in compared
            ]
            self._write_settings("comparison", ("text_a", "text_b"), questions, ("item", "system_a", "system_b"))
        self.notes += [
            f"`{name}` has no question, because Argilla's ratings are whole numbers from {LOWEST} to {HIGHEST}."
            for name, values in scales.items()
            if not values
        ]

    def _write_settings(self, kind: str, texts: Iterable[str], questions: list[Row], metadata: Iterable[str]) -> None:
        fields = [_field("context", "chat", required=False)] if self.plan.has_turns else []
        fields += [_field("source", "text", required=False), *(_field(name, "text", required=True) for name in texts)]
        terms = [
            {"name": name, "title": name, "visible_for_annotators": False, "settings": {"type": "terms"}}
            for name in metadata
        ]
        document = {
            "guidelines": None, "questions": questions, "fields": fields, "vectors": [], "metadata": terms,
            "allow_extra_metadata": True, "distribution": {"strategy": "overlap", "min_submitted": 1}, "mapping": None,
        }  # fmt: skip
        self.add_document(f"{kind}.settings.json", encode_document(document))

    def take_item(self, rows: ItemRows) -> None:
        item = rows.item
        about: Row = {"context": make_messages({**item, "source": None})} if item["context"] else {}
        about["source"] = item["source"] or ""
        named = {"item": item["id"], "group": item["group"] or "", "references": item["references"]}
        if self.rating is not None:
            judged: dict[Any, list[Row]] = {}
            for row in rows.ratings:
                judged.setdefault((row["system"], row.get("step")), []).append(row)
            for side, text in rows.texts().items():
                metadata = {**named, "system": name_side(side)}
                self.rating.add(
                    self._make_record(f"{item['id']}/{name_side(side)}", {**about, "text": text}, metadata,
                                      judged.get(side, ()))
                )  # fmt: skip
        if self.comparison is not None:
            texts = rows.name_texts()
            for (a, b), verdicts in rows.pair_up().items():
                given = [{"rater": rater, "aspect": aspect, "value": value} for rater, aspect, value in verdicts]
                fields = {**about, "text_a": texts[a], "text_b": texts[b]}
                metadata = {**named, "system_a": a, "system_b": b}
                self.comparison.add(self._make_record(f"{item['id']}/{a}/{b}", fields, metadata, given))

    def _make_record(self, key: str, fields: Row, metadata: Row, rows: Iterable[Row]) -> Row:
        """A record. Argilla refuses responses by others than its own users, so the judgements are a text in the
        metadata."""
        first: dict[str, list[Row]] = {}
        for row in rows:
            first.setdefault(row["aspect"], []).append(row)
        judged = [row for same in first.values() for row in select_first_judgements(same)]
        judgements = [{name: canonical(row[name]) for name in ("rater", "aspect", "value")} for row in judged]
        return {
            "id": key, "fields": fields, "metadata": {**metadata, "judgements": encode_plain(judgements)},
            "suggestions": self._suggest(judged), "responses": {}, "vectors": {},
        }  # fmt: skip

    def _suggest(self, rows: Iterable[Row]) -> Row:
        """The most frequent judgement of each aspect with its share of the raters, if there is one."""
        by_aspect: dict[str, list[Row]] = {}
        for row in rows:
            by_aspect.setdefault(row["aspect"], []).append(row)
        suggestions = {}
        for aspect, given in by_aspect.items():
            counts = Counter(canonical(row["value"]) for row in given)
            (value, most), *others = counts.most_common(2)
            is_option = isinstance(value, str) or value in self.values.get(aspect, ())
            if is_option and not (others and others[0][1] == most):
                n = counts.total()
                suggestions[self.names[aspect]] = {"value": value, "agent": f"{n} raters", "score": most / n}
        return suggestions

    def close(self) -> None:
        for array in filter(None, (self.rating, self.comparison)):
            array.close()
        if self.rating is None and self.comparison is None:
            self.notes.append("There are no records, because no aspect has a scale or comparisons.")
            return
        self.notes += [
            'Load a dataset with `settings = rg.Settings.from_json("rating.settings.json")`, `dataset = '
            "rg.Dataset(name=NAME, settings=settings)`, `dataset.create()` and "
            '`dataset.records.from_json("rating.records.json")`.',
            "A suggestion is the most frequent judgement, with its share of the raters as score. Every judgement is in "
            "the metadata (`judgements`), because Argilla refuses responses by others than its own users.",
        ]
        self._write_mappings()

    def _write_mappings(self) -> None:
        """The mappings with which the records are imported again."""
        rows, has_turns = "metadata.judgements", self.plan.has_turns
        judged = {"rater": f"{rows}.rater", "aspect": f"{rows}.aspect"}
        if self.rating is not None:
            columns = {"item": "metadata.item", "system": "metadata.system", **judged, "value": f"{rows}.value"}
            self.add_mapping("outputs", map_outputs("metadata", "fields", has_turns, "text"))
            self.add_mapping("ratings", {"shape": "long", "columns": columns, "explode": [rows]})
        if self.comparison is not None:
            document = map_outputs("metadata", "fields", has_turns, "text_a", "text_b")
            document["columns"] |= {**judged, "verdict": f"{rows}.value"}
            self.add_mapping("comparisons", {**document, "explode": [rows]})
        self.notes += list_loads(self, "rating.records.json", "comparison.records.json")

    def abort(self) -> None:
        for array in filter(None, (self.rating, self.comparison)):
            array.file.close()


def _list_values(low: float, high: float) -> list[int]:
    """The whole numbers of a scale; empty if Argilla has no such scale."""
    whole = low == int(low) and high == int(high) and LOWEST <= low < high <= HIGHEST
    return list(range(int(low), int(high) + 1)) if whole else []


def _name_questions(names: Iterable[str]) -> dict[str, str]:
    """Names as Argilla accepts them: small letters, digits, `-` and `_`."""
    names = list(names)
    plain = [re.sub(r"[^a-z0-9_-]+", "_", name.lower()).strip("_-") or "aspect" for name in names]
    numbered = [
        f"{name}_{plain[:place].count(name) + 1}" if name in plain[:place] else name for place, name in enumerate(plain)
    ]
    return dict(zip(names, numbered, strict=True))


def _question(name: str, title: str, kind: str, **settings: Any) -> Row:
    return {
        "name": name, "title": title, "description": None, "required": True, "type": kind,
        "settings": {"type": kind, **settings},
    }  # fmt: skip


def _field(name: str, kind: str, *, required: bool) -> Row:
    return {
        "name": name, "title": name, "description": None, "required": required, "type": kind,
        "settings": {"type": kind, "use_markdown": False},
    }  # fmt: skip
