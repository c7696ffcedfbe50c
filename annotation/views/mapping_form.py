"""The form in which people say what the columns of a table are. It has a line for each column, and works without
script; members of the mapping that it does not show stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Values
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.mapping import Cells, Table
from annotation.mapping.left_out import list_used
from annotation.mapping.mapping import CELL_MEMBERS, FIELDS, PLACES, SCORE_FIELDS
from annotation.mapping.plan import make_plan
from annotation.mapping.presets import make_draft

Document = dict[str, Any]

#: The layouts that a person chooses from; the library's `long` and `wide` differ only in how columns are named.
LAYOUTS = (
    (
        "table",
        gettext_lazy("Outputs or ratings"),
        gettext_lazy("of one system per row, or of each in a column"),
    ),
    ("pairs", gettext_lazy("Comparisons"), gettext_lazy("two outputs per row, and which one is better")),
    ("preference", gettext_lazy("Preferences"), gettext_lazy("a chosen and a rejected text per row")),
)
_LABELS = {
    "item": gettext_lazy("Id of the item"),
    "context": gettext_lazy("Context: prompt, question or dialogue"),
    "source": gettext_lazy("Source text"),
    "references": gettext_lazy("Reference"),
    "group": gettext_lazy("Group of items"),
    "system": gettext_lazy("Name of the system"),
    "text": gettext_lazy("Output"),
    "step": gettext_lazy("Training step"),
    "rater": gettext_lazy("Rater"),
    "aspect": gettext_lazy("Name of the aspect"),
    "value": gettext_lazy("Rating"),
    "system_a": gettext_lazy("Name of the first system"),
    "system_b": gettext_lazy("Name of the second system"),
    "text_a": gettext_lazy("Output of the first system"),
    "text_b": gettext_lazy("Output of the second system"),
    "verdict": gettext_lazy("Which one is better"),
    "chosen": gettext_lazy("Chosen text"),
    "rejected": gettext_lazy("Rejected text"),
    "simulated": gettext_lazy("Whether a program judged"),
    "outputs": gettext_lazy("Outputs of the system"),
    "ratings": gettext_lazy("Ratings of"),
    "verdicts": gettext_lazy("Which one is better, by the rater"),
    "scores": gettext_lazy("Scores by another program"),
    "evaluator": gettext_lazy("Name of the metric or model"),
    "score": gettext_lazy("Score by another program"),
    "reference_set": gettext_lazy("References that a score compares with"),
    "signature": gettext_lazy("Version and settings of a score"),
    "higher_is_better": gettext_lazy("Whether a higher score is better"),
    "meta": gettext_lazy("Keep as a property of the item"),
}
_GROUPS = (
    (gettext_lazy("Items"), ("item", "context", "source", "references", "group", "meta")),
    (gettext_lazy("A column per system or aspect"), ("outputs", "ratings", "scores")),
    (gettext_lazy("One output or rating per row"), ("system", "text", "step", "rater", "aspect", "value", "simulated")),
    (gettext_lazy("One score per row"), SCORE_FIELDS),
    (
        gettext_lazy("Comparisons"),
        (
            "system_a",
            "system_b",
            "text_a",
            "text_b",
            "chosen",
            "rejected",
            "verdict",
            "verdicts",
            "rater",
            "aspect",
            "simulated",
        ),
    ),
)
#: Fields that can be the same for all rows.
_FIXED = {
    "table": ("system", "rater", "aspect", "evaluator"),
    "pairs": ("system_a", "system_b", "rater", "aspect"),
    "preference": ("system_a", "system_b", "rater", "aspect"),
}
TURN_RULES = (
    ("one", gettext_lazy("one text")),
    ("split", gettext_lazy("one turn per line")),
    ("chat", gettext_lazy("chat messages with roles")),
    ("json", gettext_lazy("a JSON list of turns")),
)
ID_SOURCES = (
    ("column", gettext_lazy("from their column")),
    ("row", gettext_lazy("number of the row")),
    ("hash", gettext_lazy("made from context and source: equal prompts are one item")),
)
#: Values of `reading.decimal`.
SIGNS = (
    ("", gettext_lazy("as the cells of a column show")),
    (".", gettext_lazy("a point where cells do not show it: 1.250 is 1.25")),
    (",", gettext_lazy("a comma where cells do not show it: 1.250 is 1250")),
)
#: Values of `make_items`.
ITEM_CHOICES = (
    ("", None, gettext_lazy("are made if the rows have their context")),
    ("yes", True, gettext_lazy("are made from the rows")),
    ("no", False, gettext_lazy("are in the project already")),
)
EXAMPLES, EXAMPLE_LENGTH = 3, 80
#: Names of a column with outputs, judgements or scores, and their fields in the form.
_NAMED = {
    "outputs": {"system": "system"},
    "ratings": {"system": "system", "aspect": "aspect", "item": "item"},
    "verdicts": {"rater": "system"},
    "scores": {"system": "system", "evaluator": "aspect"},
}
#: What a mapping states of such a column; what the form does not show stays.
_STATED = (*PLACES, "reference_set", "higher_is_better", "level", "side")
#: So many columns have a line; Django reads at most a thousand fields of a form.
MOST_COLUMNS = 200


@dataclass(frozen=True)
class ColumnLine:
    """A column with its examples, its role, and the names that go with outputs, judgements or scores. `aspect` is the
    metric of scores, and `system` the rater of verdicts, because a form has at most a thousand fields."""

    number: int
    name: str
    examples: list[str]
    role: str
    system: str = ""
    aspect: str = ""
    item: str = ""


@dataclass(frozen=True)
class MappingForm:
    """A mapping (its JSON object, maybe incomplete) and the table whose columns it is about."""

    table: Table
    document: Document

    @property
    def layout(self) -> str:
        shape = self.document.get("shape", "long")
        return "table" if shape in ("long", "wide", "lines") else shape

    @property
    def shape(self) -> str:
        return str(self.document.get("shape", "long"))

    def list_layouts(self) -> list[tuple[str, Any, Any, bool]]:
        return [(name, label, text, name == self.layout) for name, label, text in LAYOUTS]

    def list_roles(self) -> list[tuple[Any, list[tuple[str, Any]]]]:
        """(group, [(role, label)]) that a column can have in this layout."""
        known = {*FIELDS[self.shape], "meta", *list_cell_roles(self.layout)}
        groups, shown = [], set()
        for label, names in _GROUPS:
            roles = [(name, _LABELS[name]) for name in names if name in known and name not in shown]
            shown |= set(names)
            if roles:
                groups.append((label, roles))
        return groups

    def list_shown(self) -> set[str]:
        """The columns with a line: if there are too many, those that are imported first."""
        used = list_used(self.table, make_draft(self.document))
        order = sorted(self.table.columns, key=lambda name: name not in used)
        return set(order[:MOST_COLUMNS])

    def count_hidden(self) -> int:
        return max(0, len(self.table.columns) - MOST_COLUMNS)

    def list_lines(self) -> list[ColumnLine]:
        shown = self.list_shown()
        columns = [name for name in self.table.columns if name in shown]
        roles = {
            column: name
            for name, named in self.document.get("columns", {}).items()
            for column in ([named] if isinstance(named, str) else named)
        }
        roles |= dict.fromkeys(self.document.get("meta", {}).get("items", ()), "meta")
        cells = {
            column: (member, one) for member, each in expand(self.table, self.document).items() for column, one in each
        }
        examples = find_examples(self.table, columns)
        lines = []
        for number, column in enumerate(self.table.columns):
            if column not in shown:
                continue
            member, one = cells.get(column, ("", Cells()))
            role = roles.get(column, member)
            aspect = one.evaluator if role == "scores" else one.aspect
            first = one.side or one.system or (one.rater if role == "verdicts" else "")
            lines.append(ColumnLine(number, column, examples[column], role, first, aspect, one.item))
        return lines

    def list_fixed(self) -> list[tuple[str, Any, str]]:
        """(field, label, value) of fields that can be the same for all rows."""
        constants = self.document.get("constants", {})
        return [(name, _LABELS[name], constants.get(name, "")) for name in _FIXED[self.layout]]

    @property
    def turn_rule(self) -> str:
        return str(self.document.get("turns", {}).get("context", {}).get("rule", "one"))

    @property
    def id_source(self) -> str:
        return str(self.document.get("ids", {}).get("source", "column"))

    def list_turn_rules(self) -> list[tuple[str, Any, bool]]:
        rules: tuple[tuple[str, Any], ...] = TURN_RULES
        if self.turn_rule not in dict(rules):
            rules = (*rules, (self.turn_rule, self.turn_rule))
        return [(name, label, name == self.turn_rule) for name, label in rules]

    def list_id_sources(self) -> list[tuple[str, Any, bool]]:
        return [(name, label, name == self.id_source) for name, label in ID_SOURCES]

    def list_item_choices(self) -> list[tuple[str, Any, bool]]:
        return [(name, label, value == self.document.get("make_items")) for name, value, label in ITEM_CHOICES]

    def list_signs(self) -> list[tuple[str, Any, bool]]:
        stated = self.document.get("reading", {}).get("decimal", "")
        return [(name, label, name == stated) for name, label in SIGNS]

    @property
    def words(self) -> str:
        """Texts and the numbers (or verdicts) that they stand for, one a line."""
        known = self.document.get("values", {}).get(self.valued, {})
        return "\n".join(
            f"{text} = {'' if value is None else value}" for text, value in known.items() if not isinstance(value, list)
        )

    @property
    def valued(self) -> str:
        """The field whose texts have values."""
        return "value" if self.layout == "table" else "verdict"

    @property
    def encoded(self) -> str:
        return json.dumps(self.document, ensure_ascii=False)


def list_cell_roles(layout: str) -> tuple[str, ...]:
    """The roles of columns that have names of their own; of pairs, only judgements can have several columns."""
    if layout == "table":
        return tuple(name for name in CELL_MEMBERS if name != "verdicts")
    return ("ratings", "verdicts") if layout == "pairs" else ("ratings",)


def expand(table: Table, document: Document) -> dict[str, list[tuple[str, Cells]]]:
    """The columns that hold outputs, ratings and scores, with what the patterns of the mapping say of each."""
    plan = make_plan(table, make_draft({**document, "columns": document.get("columns", {})}))
    single = {column for names in ("text", "value", "score") for column in [document.get("columns", {}).get(names)]}
    return {
        member: [
            (column, one) for column, one in getattr(plan, member) if column not in single and column in table.columns
        ]
        for member in CELL_MEMBERS
    }


def find_examples(table: Table, columns: list[str]) -> dict[str, list[str]]:
    """The first different values of each column, cut to a few words."""
    found: dict[str, list[str]] = {column: [] for column in columns}
    for _number, row in table.sample[:50]:
        for column in columns:
            text = show_value(row.get(column))
            if text and len(found[column]) < EXAMPLES and text not in found[column]:
                found[column].append(text)
    return found


def show_value(value: Any, longest: int = EXAMPLE_LENGTH) -> str:
    """A value of a cell on one line; the turns of a list with ↵ between them."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        text = " ↵ ".join(value)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


# ---- what was sent ----------------------------------------------------------------------------------------------


def read_form(sent: QueryDict, table: Table, base: Document) -> Document:
    """The mapping that a sent form describes; what the form does not show is taken from `base`."""
    layout = sent.get("layout", "table")
    roles = {
        column: (number, sent[f"role-{number}"])
        for number, column in enumerate(table.columns)
        if f"role-{number}" in sent
    }
    before = expand(table, base)
    stated = {name for name in _FIXED["table"] if sent.get(f"fixed-{name}", "").strip()}
    stated |= {role for _number, role in roles.values()}
    cells: dict[str, list[Document]] = {
        member: [_write_cell(column, one) for column, one in before[member] if column not in roles]
        for member in CELL_MEMBERS
    }
    kept = {name: [column for column in list_names(names) if column not in roles]
            for name, names in base.get("columns", {}).items()}  # fmt: skip
    named = {name: names for name, names in kept.items() if names}
    meta = [column for column in base.get("meta", {}).get("items", ()) if column not in roles]
    for column, (number, role) in roles.items():
        if role in cells:
            is_side = layout in ("pairs", "preference") and role == "ratings"
            read = _read_rated_side if is_side else _read_cell
            cells[role].append(read(sent, number, column, role, stated, dict(before[role])))
        elif role == "meta":
            meta.append(column)
        elif role:
            named.setdefault(role, []).append(column)
    document = {name: value for name, value in base.items() if name not in ("columns", *CELL_MEMBERS)}
    shape = layout if layout in ("pairs", "preference") else _name_shape(base, cells)
    known = FIELDS[shape]
    document["shape"] = shape
    if columns := {name: names[0] if len(names) == 1 else names for name, names in named.items() if name in known}:
        document["columns"] = columns
    for member in list_cell_roles(layout):
        if cells[member]:
            document[member] = _keep_pattern(base, member, before[member], cells[member])
    fixed = {name: sent.get(f"fixed-{name}", "").strip() for name in _FIXED.get(layout, ())}
    others = {name: text for name, text in base.get("constants", {}).items() if name in known and name not in fixed}
    _put(
        document, "constants", {**others, **{name: text for name, text in fixed.items() if text and name not in named}}
    )
    _put(document, "meta", {**base.get("meta", {}), "items": meta})
    _put(document, "ids", {**base.get("ids", {}), "source": sent.get("ids", "column")}, {"source": "column"})
    _put(document, "reading", {**base.get("reading", {}), "decimal": sent.get("decimal", "")})
    make_items = {name: value for name, value, _label in ITEM_CHOICES}.get(sent.get("items", ""))
    if make_items is None:
        document.pop("make_items", None)
    else:
        document["make_items"] = make_items
    _read_turns(sent, document, base)
    _read_values(sent, document, base, layout)
    return document


def _name_shape(base: Document, cells: Values[str, list[Document]]) -> str:
    if base.get("shape") == "lines":
        return "lines"
    return "wide" if any(cells.values()) else "long"


def list_names(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _write_cell(column: str, cells: Cells) -> Document:
    return {"column": column, **{name: text for name in _STATED if (text := getattr(cells, name))}}


def _read_cell(
    sent: QueryDict, number: int, column: str, role: str, stated: set[str], before: dict[str, Cells]
) -> Document:
    """Outputs, ratings or scores in a column. Without other names, the column's name is that of the system; for ratings
    it is that of the aspect, and for scores that of the metric, unless all rows have the same one."""
    fields = _NAMED[role].items()
    parts = {name: text for name, field in fields if (text := sent.get(f"{field}-{number}", "").strip())}
    if role == "scores" and "evaluator" not in {*parts, *stated}:
        parts["evaluator"] = column
    if not parts:
        usual = (
            "rater" if role == "verdicts" else "aspect" if role == "ratings" and "aspect" not in stated else "system"
        )
        parts = {usual: column}
    kept = _write_cell(column, before[column]) if column in before else {}
    shown = {*_NAMED["ratings"], *_NAMED["scores"], *_NAMED[role]}
    return {"column": column, **parts, **{name: text for name, text in kept.items() if name not in shown}}


def _read_rated_side(
    sent: QueryDict, number: int, column: str, role: str, stated: set[str], before: dict[str, Cells]
) -> Document:
    """Ratings of an output in a pair: the field for the system has its side."""
    cell = _read_cell(sent, number, column, role, stated | {"aspect"}, before)
    side = str(cell.pop("system", "")).lower()
    aspect = sent.get(f"aspect-{number}", "").strip()
    return {**cell, "aspect": aspect or column, **({"side": side} if side in ("a", "b") else {})}


def _keep_pattern(
    base: Document, member: str, before: list[tuple[str, Cells]], cells: list[Document]
) -> list[Document]:
    """The patterns of `base`, if they say the same as what was sent."""
    same = sorted(sorted(_write_cell(column, one).items()) for column, one in before)
    return list(base[member]) if same == sorted(sorted(one.items()) for one in cells) else cells


def _read_turns(sent: QueryDict, document: Document, base: Document) -> None:
    turns = {
        name: rule for name, rule in base.get("turns", {}).items() if name in (*FIELDS[document["shape"]], "outputs")
    }
    before = turns.get("context", {})
    rule = sent.get("turns", "one")
    if rule != before.get("rule", "one"):
        turns["context"] = {"rule": rule}
    if turns.get("context", {}).get("rule", "one") == "one":
        turns.pop("context", None)
    _put(document, "turns", turns)


def _read_values(sent: QueryDict, document: Document, base: Document, layout: str) -> None:
    field = "value" if layout == "table" else "verdict"
    shown = ("value", "verdict") if layout == "table" else ("verdict",)  # pairs have ratings of each side as well
    values = {name: texts for name, texts in base.get("values", {}).items() if name not in shown}
    scale = {name: value for name, value in base.get("values", {}).get(field, {}).items() if isinstance(value, list)}
    texts: dict[str, Any] = dict(scale)
    for line in sent.get("values", "").splitlines():
        text, separator, value = line.rpartition("=")
        if separator and text.strip():
            texts[text.strip()] = _read_value(value.strip(), field)
    _put(document, "values", {**values, field: texts} if texts else values)


def _read_value(value: str, field: str) -> Any:
    if not value:
        return None
    if field == "value":
        try:
            number = float(value)
        except ValueError:
            return value
        return int(number) if number.is_integer() else number
    return value


def _put(document: Document, name: str, value: Document, usual: Document | None = None) -> None:
    """Set a member, or remove it if it is empty or as usual."""
    value = {key: one for key, one in value.items() if one not in ("", [], {})}
    if value and value != usual:
        document[name] = value
    else:
        document.pop(name, None)


#: A part of a list in a mapping, such as `ratings[0].pattern`.
_PART = re.compile(r"(outputs|ratings|verdicts|scores)\[(\d{1,6})\]")
_MEMBERS = {
    "ids": gettext_lazy("Ids of items"),
    "values": gettext_lazy("Words and their values"),
    "reading": gettext_lazy("How the file is read"),
    "only": gettext_lazy("Rows that are imported"),
    "split": gettext_lazy("Cells with several parts"),
    "explode": gettext_lazy("Columns with lists"),
    "turns": gettext_lazy("The context is"),
    "shape": gettext_lazy("The rows contain"),
    "outputs": gettext_lazy("Outputs"),
    "ratings": gettext_lazy("Ratings"),
    "verdicts": gettext_lazy("Verdicts"),
    "scores": gettext_lazy("Scores by other programs"),
}


def describe_member(member: str, document: Document) -> str:
    """The place of a fault in a mapping, in the words of the form; of a column with its name."""
    if part := _PART.match(member):
        cells = document.get(part[1], [])
        cell = cells[int(part[2])] if int(part[2]) < len(cells) else {}
        names = {"member": _MEMBERS[part[1]], "column": cell.get("column") or cell.get("pattern") or part[2]}
        return _("%(member)s in “%(column)s”") % names
    first, _cut, name = member.partition(".")
    label = _MEMBERS.get(first) if first not in ("columns", "constants") else _LABELS.get(name.partition(".")[0])
    return str(label) if label is not None else name or member
