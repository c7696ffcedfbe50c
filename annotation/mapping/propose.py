"""Proposes a mapping from the names, types and values of a table's columns. Where they do not decide, it asks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any

from evalapp.translation import gettext as _

from .aligned import SCORES
from .convert import ConvertedRow, explode_row
from .mapping import FIELDS, Cells, Ids, Mapping, Turns, WrongMapping, read_mapping
from .names import (
    ASPECTS,
    MISSING,
    OUTPUT_WORDS,
    find_fields,
    find_file_role,
    name_system,
    normalize,
    read_verdict_word,
)  # fmt: skip
from .patterns import AmbiguousPattern, match_pattern
from .plan import Fault
from .presets import Preset, find_preset
from .profile import Profile, profile_columns
from .sources import Row
from .tables import Table

#: Between the parts of a column's name.
_SEPARATORS = ("_", " ", ".", "-", ": ", ":", "/", " - ")
_NAMES = frozenset(["item", "group", "system", "rater", "aspect", "system_a", "system_b", "verdict"])
_PROSE = frozenset(["context", "source", "text", "text_a", "text_b", "chosen", "rejected"])


@dataclass(frozen=True)
class Reason:
    """Why a part of the mapping is proposed. `member`: the part, as `columns.item`; `columns`: the columns in it."""

    member: str
    columns: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class Question:
    """A part of the mapping that the table does not decide: `options` to choose from (empty: any text), and the most
    likely one, if there is one. Nothing is filled in for it."""

    member: str
    message: str
    options: tuple[str, ...] = ()
    suggestion: str = ""


@dataclass
class Proposal:
    """A mapping, the reasons for it, open questions, and the columns that it does not use."""

    mapping: Mapping
    reasons: list[Reason] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def propose_mapping(table: Table) -> Proposal:
    """A mapping for a table. With open `questions` it is not complete, and `read_mapping` refuses it."""
    if (preset := find_preset(table)) is not None:
        return propose_preset(table, preset)
    return _Proposer(table).propose()


def propose_preset(table: Table, preset: Preset) -> Proposal:
    """The mapping of a preset for a table. What the file does not tell is a question."""
    mapping = preset.make_mapping(table)
    reasons = [Reason("preset", (), _("The columns are those of %(format)s.", format=_(preset.label)))]
    try:
        read_mapping(mapping.as_json())
    except WrongMapping as wrong:
        questions = [Question(fault.member, fault.message) for fault in wrong.faults]
        return Proposal(mapping, reasons, questions)
    return Proposal(mapping, reasons)


class _Proposer:
    def __init__(self, table: Table) -> None:
        self.explode: tuple[str, ...] = ()
        self.reasons: list[Reason] = []
        self.questions: list[Question] = []
        self.table = table
        self.profiles = profile_columns(table)
        self._open_lists()
        self.columns: dict[str, tuple[str, ...]] = {}
        self.outputs: list[Cells] = []
        self.ratings: list[Cells] = []
        self.constants: dict[str, str] = {}
        self.values: dict[str, dict[str, Any]] = {}
        self.turns: dict[str, Turns] = {}
        self.ids = Ids()
        self.candidates: dict[str, list[str]] = {}
        for name, profile in self.profiles.items():
            for one in find_fields(name):
                if _fits(one, profile):
                    self.candidates.setdefault(one, []).append(name)

    def _open_lists(self) -> None:
        """A column with a list of objects: each object is a row."""
        lists = tuple(name for name, profile in self.profiles.items() if profile.kind == "records")
        if len(lists) > 1:
            message = _("Several columns have lists of objects. The parts of which one are rows?")
            self.questions.append(Question("explode", message, lists))
        elif lists:
            self.explode = lists
            self.reasons.append(Reason("explode", lists, _("A list of objects: each is a row.")))
            sample = [(number, part) for number, row in self.table.sample for part in explode_row(row, lists)]
            columns = list(dict.fromkeys(name for _number, row in sample for name in row))
            self.table = self.table.with_rows(sample, columns)
            self.profiles = profile_columns(self.table)

    def propose(self) -> Proposal:
        shape = self._find_shape()
        if shape == "pairs":
            self._propose_pairs()
        elif shape == "preference":
            self._propose_preference()
        elif shape == "long":
            self._propose_long()
        elif shape == "lines":
            self._propose_lines()
        else:
            self._propose_wide()
        for note in self.table.notes:
            self.reasons.append(Reason("reading", (), note))
        mapping = Mapping(
            shape=shape, columns=self.columns, outputs=tuple(self.outputs), ratings=tuple(self.ratings),
            constants=self.constants, values=self.values, turns=self.turns, ids=self.ids, reading=self.table.reading,
            explode=self.explode,
            meta=self._propose_meta(shape),
        )  # fmt: skip
        unused = [name for name in self.table.columns if name not in self._get_used(mapping)]
        return Proposal(mapping, self.reasons, self.questions, unused)

    def _find_shape(self) -> str:
        has = self.candidates
        if self.table.format == "lines":
            return "lines"
        if {"chosen", "rejected"} <= has.keys():
            return "preference"
        if {"system_a", "system_b", "verdict"} <= has.keys():
            return "pairs"
        is_long = "system" in has and ("text" in has or "value" in has or self._list_aspects())
        if not is_long and len(has.get("text", [])) == 1 and not self._list_prose():
            is_long = True
        return "long" if is_long else "wide"

    # ---- parts --------------------------------------------------------------------------------------------

    def _choose(self, name: str, is_needed: bool = False) -> str:
        """The only column that can be the field; a question if there are several."""
        found = [one for one in self.candidates.get(name, []) if not self._is_taken(one)]
        if len(found) == 1:
            self._set(name, found[0], _("“%(column)s” is a usual name for it.", column=found[0]))
            return found[0]
        if found:
            message = _("Several columns can be the %(field)s. Which one is it?", field=name)
            self.questions.append(Question(f"columns.{name}", message, tuple(found)))
        elif is_needed:
            message = _("Which column is the %(field)s?", field=name)
            options = tuple(one for one in self.table.columns if not self._is_taken(one))
            self.questions.append(Question(f"columns.{name}", message, options))
        return ""

    def _set(self, name: str, column: str, why: str) -> None:
        self.columns[name] = (column,)
        self.reasons.append(Reason(f"columns.{name}", (column,), why))
        if self.profiles[column].kind == "messages":
            self.turns[name] = Turns("chat")

    def _is_taken(self, column: str) -> bool:
        return any(column in names for names in self.columns.values()) or any(
            column == one.column for one in (*self.outputs, *self.ratings)
        )

    def _propose_item(self, repeats: bool) -> None:
        """`repeats`: an item can have several rows."""
        for name in ("context", "source"):
            self._choose(name)
        if references := [one for one in self.candidates.get("references", []) if not self._is_taken(one)]:
            self.columns["references"] = tuple(references)
            self.reasons.append(Reason("columns.references", tuple(references), _("Usual names for references.")))
        self._choose("group")
        found = [one for one in self.candidates.get("item", []) if not self._is_taken(one)]
        fitting = [one for one in found if self.profiles[one].is_unique != repeats] if len(found) > 1 else found
        if len(found) > 1 and len(fitting) == 1:
            why = (
                _("Of the columns with ids, only this one repeats for several rows.")
                if repeats
                else _("Of the columns with ids, only this one is different in every row.")
            )
            self._set("item", fitting[0], why)
        elif found:
            self._choose("item")
        elif not repeats:
            self.ids = Ids("row")
            self.reasons.append(Reason("ids", (), _("No column has ids: rows are numbered.")))
        elif {"context", "source"} & self.columns.keys():
            self.ids = Ids("hash")
            self.reasons.append(Reason("ids", (), _("No column has ids: rows with the same input are one item.")))
        else:
            self._choose("item", is_needed=True)

    def _propose_judges(self, aspect: str) -> None:
        """Who judged, and what."""
        if not self._choose("rater") and not self.candidates.get("rater"):
            self.constants["rater"] = "unknown"
            self.reasons.append(Reason("constants.rater", (), _("No column names the raters.")))
        if aspect and not self._choose("aspect") and not self.candidates.get("aspect"):
            self.constants["aspect"] = aspect
            self.reasons.append(Reason("constants.aspect", (), _("No column names what was rated.")))

    def _propose_values(self, column: str) -> None:
        """Texts among numbers: those that say that there is none are left out, others are a question."""
        known = self.values.get("value", {})
        for text in self.profiles[column].others:
            if text.lower() in MISSING:
                known[text] = None
                self.reasons.append(Reason("values.value", (column,), _("“%(text)s” is no rating.", text=text[:80])))
            else:
                message = _("Which number is “%(text)s” in the column “%(column)s”?", text=text[:80], column=column)
                self.questions.append(Question("values.value", message))
        if known:
            self.values["value"] = known

    def _list_aspects(self) -> list[str]:
        """Columns of numbers whose names are aspects."""
        return [
            name
            for name, profile in self.profiles.items()
            if profile.kind in ("number", "numbers")
            and normalize(name.rsplit(".", 1)[-1]) in ASPECTS
            and not self._is_taken(name)
        ]

    def _list_prose(self) -> list[str]:
        """Columns of texts without a usual name."""
        named = {column for name in FIELDS["wide"] for column in self.candidates.get(name, ())}
        return [
            name
            for name, one in self.profiles.items()
            if one.is_prose and name not in named and not self._is_taken(name)
        ]

    # ---- shapes -------------------------------------------------------------------------------------------

    def _propose_long(self) -> None:
        if not self._choose("system") and not self.candidates.get("system"):
            stem = PurePath(self.table.name).stem
            message = _("Which system wrote the texts? No column names it.")
            self.questions.append(Question("constants.system", message, (), stem))
        self._choose("step")
        self._choose("text")
        self._propose_item(repeats="system" in self.columns or bool(self.explode))
        values = [one for one in self.candidates.get("value", []) if not self._is_taken(one)]
        aspects = [one for one in self._list_aspects() if one not in values]
        if len(values) == 1 and not aspects:
            self._set("value", values[0], _("Numbers under a usual name for ratings."))
            self._propose_judges(values[0])
            self._propose_values(values[0])
        elif values or aspects:
            self._propose_rated([*aspects, *values] if "aspect" not in self.candidates else aspects)
            self._propose_judges("")

    def _propose_rated(self, columns: list[str]) -> None:
        for name in columns:
            self.ratings.append(Cells(column=name, aspect=name.rsplit(".", 1)[-1]))
            self._propose_values(name)
        self.reasons.append(Reason("ratings", tuple(columns), _("Numbers under names of aspects.")))

    def _propose_wide(self) -> None:
        self._propose_item(repeats="rater" in self.candidates)
        texts = [one for one in (*self.candidates.get("text", []), *self._list_prose()) if not self._is_taken(one)]
        systems = self._propose_outputs(texts)
        numbers = [name for name, one in self.profiles.items() if one.kind == "number" and not self._is_taken(name)]
        if rated := self._propose_rating_pattern(numbers, systems):
            self._propose_judges("" if "aspect" in rated else "quality")
        elif aspects := self._list_aspects():
            message = _("Whose texts do the ratings in %(columns)s rate?", columns=", ".join(aspects))
            self.questions.append(Question("constants.system", message, tuple(systems)))
            self._propose_rated(aspects)
            self._propose_judges("")
        if not systems and not self.ratings:
            options = tuple(name for name in self.table.columns if not self._is_taken(name))
            self.questions.append(Question("outputs", _("Which columns have the outputs of systems?"), options))

    def _propose_outputs(self, texts: list[str]) -> list[str]:
        """Proposes the columns with outputs; returns the names of the systems."""
        best: tuple[str, dict[str, dict[str, str]]] = ("", {})
        for pattern in (f"{before}{{system}}{after}" for before, after in _list_affixes(texts)):
            found = _match(pattern, texts)
            if len(found) > max(len(best[1]), 1):
                best = (pattern, found)
        pattern, found = best
        if pattern:
            self.outputs.append(Cells(pattern=pattern))
            self.reasons.append(
                Reason("outputs", tuple(found), _("The names have the pattern “%(pattern)s”.", pattern=pattern))
            )
        others = [name for name in texts if name not in found and (not found or normalize(name) not in OUTPUT_WORDS)]
        if others and not found:
            self.outputs += [Cells(column=name, system=name) for name in others]
            self.reasons.append(
                Reason(
                    "outputs", tuple(others), _("Different texts in every row, without a usual name: a system each.")
                )
            )
            return others
        return [parts["system"] for parts in found.values()]

    def _propose_rating_pattern(self, numbers: list[str], systems: list[str]) -> set[str]:
        """Proposes columns of numbers that name a system; returns the parts of their pattern."""
        ranked = []
        for separator in _SEPARATORS:
            for pattern in (f"{{system}}{separator}{{aspect}}", f"{{aspect}}{separator}{{system}}"):
                found = {name: parts for name, parts in _match(pattern, numbers).items() if parts["system"] in systems}
                ranked.append((len(found), pattern, tuple(found)))
        count, pattern, names = max(ranked, key=lambda one: one[0])
        if not count:
            return set()
        if count == len(_match(pattern, numbers)):
            self.ratings.append(Cells(pattern=pattern))
        else:
            parts = _match(pattern, list(names))
            self.ratings += [Cells(column=name, **parts[name]) for name in names]
        self.reasons.append(
            Reason("ratings", names, _("Numbers, with names of the pattern “%(pattern)s”.", pattern=pattern))
        )
        for name in names:
            self._propose_values(name)
        return {"system", "aspect"}

    def _propose_pairs(self) -> None:
        for name in ("system_a", "system_b", "verdict", "text_a", "text_b"):
            self._choose(name)
        self._propose_item(repeats=True)
        self._propose_judges("preference")
        if column := next(iter(self.columns.get("verdict", ())), ""):
            self._propose_verdicts(column)

    def _propose_verdicts(self, column: str) -> None:
        texts = self.profiles[column].texts
        names = {
            text
            for side in ("system_a", "system_b")
            for one in self.columns.get(side, ())
            for text in self.profiles[one].texts
        }
        known = {}
        for text in texts:
            if text in names:
                continue
            if (verdict := read_verdict_word(text)) is not None:
                known[text] = verdict
            else:
                message = _("What does “%(text)s” in the column “%(column)s” mean?", text=text[:80], column=column)
                options = ("a", "b", "tie", "both_bad", "cannot_decide")
                self.questions.append(Question("values.verdict", message, options))
        if known:
            self.values["verdict"] = known
            meanings = ", ".join(f"{text} = {verdict}" for text, verdict in known.items())
            self.reasons.append(Reason("values.verdict", (column,), meanings))

    def _propose_preference(self) -> None:
        for name in ("chosen", "rejected"):
            self._choose(name)
        for name in ("system_a", "system_b"):
            self._choose(name)
        self._propose_item(repeats=False)
        self._propose_judges("preference")

    def _propose_lines(self) -> None:
        """Files by their names or folders."""
        found: dict[str, list[str]] = {}
        for name in self.table.columns:
            found.setdefault(find_file_role(name), []).append(name)
        for role in ("source", "context", "group"):
            if len(found.get(role, ())) == 1:
                self._set(role, found[role][0], _("A usual name of such a file."))
            elif role in found:
                message = _("Several files can be the %(field)s. Which one is it?", field=role)
                self.questions.append(Question(f"columns.{role}", message, tuple(found[role])))
        if references := tuple(found.get("references", ())):
            self.columns["references"] = references
            self.reasons.append(Reason("columns.references", references, _("Usual names of files with references.")))
        self.ids = Ids("row")
        self.reasons.append(Reason("ids", (), _("Lines are numbered.")))
        if outputs := found.get("outputs", []):
            self.outputs = [Cells(column=name, system=name_system(name)) for name in outputs]
            self.reasons.append(Reason("outputs", tuple(outputs), _("All other files: the outputs of a system each.")))
        for name in found.get("ratings", []):
            file, _cut, system = name.rpartition(":")
            aspect = PurePath(file).name.removesuffix(SCORES).rpartition(".")[2]
            self.ratings.append(Cells(column=name, system=system, aspect=aspect))
        if self.ratings:
            names = tuple(found["ratings"])
            self.reasons.append(Reason("ratings", names, _("Files of segment scores.")))
            self._propose_judges("")

    # ---- the rest -----------------------------------------------------------------------------------------

    def _propose_meta(self, shape: str) -> dict[str, tuple[str, ...]]:
        """Short texts that repeat, such as a domain, describe items."""
        if not self.columns and not self.outputs:
            return {}
        used = self._get_used(Mapping(shape, self.columns, tuple(self.outputs), tuple(self.ratings)))
        asked = {option for question in self.questions for option in question.options}
        kept = tuple(
            name
            for name, one in self.profiles.items()
            if name not in used
            and name not in asked
            and one.kind == "text"
            and not one.is_unique
            and not find_fields(name)
        )
        if kept and shape == "wide" and self.ids.source == "row":
            self.reasons.append(Reason("meta.items", kept, _("Texts that repeat: kept with the items.")))
            return {"items": kept}
        return {}

    def _get_used(self, mapping: Mapping) -> set[str]:
        used = {name for names in (*mapping.columns.values(), *mapping.meta.values()) for name in names}
        for cells in (*mapping.outputs, *mapping.ratings):
            used |= (
                {cells.column}
                if cells.column
                else set(_match(cells.pattern, [c for c in self.table.columns if c not in used]))
            )
        return used


def _fits(name: str, profile: Profile) -> bool:
    """Whether a column's cells can be the field."""
    if name in _PROSE:
        return profile.kind in ("text", "messages", "list")
    if name == "references":
        return profile.kind in ("text", "list", "messages")
    if name == "value":
        return profile.kind in ("number", "numbers")
    if name == "step":
        return profile.kind == "number"
    return profile.kind in ("text", "number")


def _match(pattern: str, columns: list[str]) -> dict[str, dict[str, str]]:
    try:
        return match_pattern(pattern, columns)
    except AmbiguousPattern:
        return {}


def _list_affixes(columns: list[str]) -> list[tuple[str, str]]:
    """Texts before or after the name of a system in the names of columns: `output_` in `output_gpt`."""
    found = []
    for column in columns:
        for separator in _SEPARATORS:
            first, cut, rest = column.partition(separator)
            if cut and rest and normalize(first) in OUTPUT_WORDS:
                found.append((first + separator, ""))
            start, cut, last = column.rpartition(separator)
            if cut and start and normalize(last) in OUTPUT_WORDS:
                found.append(("", separator + last))
    return list(dict.fromkeys(found))


def describe_proposal(proposal: Proposal, rows: list[tuple[int, Row, list[ConvertedRow | Fault]]]) -> dict[str, Any]:
    """A proposal and its preview as plain values, for JSON. `rows`: from `preview_rows`."""
    return {
        "mapping": proposal.mapping.as_json(),
        "reasons": [asdict(reason) for reason in proposal.reasons],
        "questions": [asdict(question) for question in proposal.questions],
        "unused": proposal.unused,
        "rows": [_describe_row(*row) for row in rows],
    }


def _describe_row(number: int, row: Row, results: list[ConvertedRow | Fault]) -> dict[str, Any]:
    converted = [{"table": one.table, "values": one.values} for one in results if isinstance(one, ConvertedRow)]
    faults = [{"column": one.column, "message": str(one)} for one in results if isinstance(one, Fault)]
    return {"row": number, "original": row, "converted": converted, "faults": faults}
