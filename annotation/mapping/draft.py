"""A mapping while it is proposed, with reasons, and questions about what the table does not decide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from evalapp.translation import gettext as _

from .cell_names import shorten_cells
from .left_out import explode_table
from .mapping import Cells, Ids, Mapping, Turns
from .names import MISSING, REMARKS, find_fields, find_scale, guess_numbers, normalize
from .numbers import read_begin
from .profile import MOST_LABEL_WORDS, MOST_LABELS, Profile, profile_columns
from .tables import Table

_PROSE = frozenset(["context", "source", "text", "text_a", "text_b", "chosen", "rejected"])
_MOST_ID_WORDS = 4
#: A rating with the best possible one, as `4/5`.
_OUT_OF = re.compile(r"\d{1,9}(?:[.,]\d{1,9})?\s?/\s?(\d{1,9})")


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


class Draft:
    """The parts of a mapping that are known so far. `candidates`: by field, the columns with its usual names."""

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
        self.verdicts: list[Cells] = []
        self.scores: list[Cells] = []
        self.constants: dict[str, str] = {}
        self.values: dict[str, dict[str, Any]] = {}
        self.turns: dict[str, Turns] = {}
        self.ids = Ids()
        self.meta: tuple[str, ...] = ()
        self.only: dict[str, tuple[str, ...]] = {}
        self.candidates: dict[str, list[str]] = {}
        for name, profile in self.profiles.items():
            for one in find_fields(name):
                if fits(one, profile):
                    self.candidates.setdefault(one, []).append(name)
        self._find_targets()

    def _find_targets(self) -> None:
        """A column `target` beside one of systems has their translations if no column is named as one of outputs."""
        references = self.candidates.get("references", [])
        targets = [name for name in references if normalize(name) == "target"]
        if targets and "system" in self.candidates and "text" not in self.candidates:
            self.candidates["text"] = targets
            self.candidates["references"] = [name for name in references if name not in targets]

    def _open_lists(self) -> None:
        """A column with a list of objects: each object is a row."""
        lists = tuple(name for name, profile in self.profiles.items() if profile.kind == "records")
        if len(lists) > 1:
            self.ask("explode", _("Several columns have lists of objects. The parts of which one are rows?"), lists)
        elif lists:
            self.explode = lists
            self.explain("explode", lists, _("A list of objects: each is a row."))
            self.table = explode_table(self.table, lists)
            self.profiles = profile_columns(self.table)

    def make_mapping(self, shape: str) -> Mapping:
        return Mapping(
            shape=shape, columns=self.columns, outputs=tuple(self.outputs), ratings=tuple(self.ratings),
            verdicts=tuple(self.verdicts), scores=tuple(self.scores), constants=self.constants, values=self.values,
            turns=self.turns, ids=self.ids,
            reading=self.table.reading, explode=self.explode, only=self.only,
            meta={"items": self.meta} if self.meta else {},
        )  # fmt: skip

    # ---- parts --------------------------------------------------------------------------------------------

    def ask(self, member: str, message: str, options: Iterable[str] = (), suggestion: str = "") -> None:
        self.questions.append(Question(member, message, tuple(options), suggestion))

    def explain(self, member: str, columns: Iterable[str], message: str) -> None:
        self.reasons.append(Reason(member, tuple(columns), message))

    def list_free(self, name: str) -> list[str]:
        """The columns that can still be a field."""
        return [one for one in self.candidates.get(name, []) if not self.is_taken(one)]

    def choose(self, name: str, is_needed: bool = False) -> str:
        """The only column that can be the field; a question if there are several."""
        found = self.list_free(name)
        if len(found) == 1:
            self.set(name, found[0], _("“%(column)s” is a usual name for it.", column=found[0]))
            return found[0]
        if found:
            self.ask(f"columns.{name}", _("Several columns can be the %(field)s. Which one is it?", field=name), found)
        elif is_needed:
            options = [one for one in self.table.columns if not self.is_taken(one)]
            self.ask(f"columns.{name}", _("Which column is the %(field)s?", field=name), options)
        return ""

    def set(self, name: str, column: str, why: str) -> None:
        self.columns[name] = (column,)
        self.explain(f"columns.{name}", (column,), why)
        if self.profiles[column].kind == "messages":
            self.turns[name] = Turns("chat")

    def is_taken(self, column: str) -> bool:
        return any(column in names for names in self.columns.values()) or any(
            column == one.column for one in (*self.outputs, *self.ratings, *self.verdicts, *self.scores)
        )

    def set_outputs(self, cells: Sequence[Cells], why: str) -> None:
        self.outputs += cells
        self.explain("outputs", [one.column for one in cells], why)

    def set_ratings(self, cells: Sequence[Cells], why: str) -> None:
        self.ratings += cells
        self.explain("ratings", [one.column for one in cells], why)
        self.propose_values([one.column for one in cells])

    def set_scores(self, cells: Sequence[Cells], why: str) -> None:
        self.scores += cells
        self.explain("scores", [one.column for one in cells], why)

    def shorten(self) -> None:
        """Replaces columns of outputs and ratings by patterns that say the same."""
        named = {name for names in (*self.columns.values(), self.meta, self.only) for name in names}
        free = [name for name in self.table.columns if name not in named]
        outputs = {one.column for one in self.outputs}
        self.outputs = shorten_cells(self.outputs, free)
        if any(one.side for one in self.ratings):
            return
        self.ratings = shorten_cells(self.ratings, [name for name in free if name not in outputs])

    def propose_judges(self, aspect: str) -> None:
        """Who judged, and what."""
        judged = [*self.ratings, *self.verdicts]
        if judged and all(one.rater for one in judged):
            pass
        elif not self.choose("rater") and not self.candidates.get("rater"):
            self.constants["rater"] = "unknown"
            self.explain("constants.rater", (), _("No column names the raters."))
        if aspect and not self.choose("aspect") and not self.candidates.get("aspect"):
            self.constants["aspect"] = aspect
            self.explain("constants.aspect", (), _("No column names what was rated."))

    def propose_values(self, columns: Sequence[str]) -> None:
        """The numbers of words in columns of ratings: none for those that say so, and those of a usual scale or at
        their beginning; others are a question."""
        known = self.values.get("value", {})
        for column in columns:
            profile = self.profiles[column]
            for text in profile.list_words():
                if text.lower() in MISSING and text not in known:
                    known[text] = None
                    self.explain("values.value", (column,), _("“%(text)s” is no rating.", text=text[:80]))
            labels = [text for text in profile.list_labels() if text not in known]
            if len(bests := {match[1]: text for text in labels if (match := _OUT_OF.fullmatch(text))}) > 1:
                message = _("“%(column)s” has ratings out of %(bests)s, such as %(texts)s. State the number of each on "
                            "one scale.", column=column, bests=", ".join(bests),
                            texts=", ".join(bests.values()))  # fmt: skip
                self.ask("values.value", message)
                continue
            begins = {text: read_begin(text) for text in labels}
            numbers = (
                begins if labels and None not in begins.values() else find_scale(labels) if len(labels) > 1 else None
            )
            if numbers:
                known.update(numbers)
                meanings = _shorten(f"{text} = {number}" for text, number in numbers.items())
                self.explain("values.value", (column,), _("Numbers of the words: %(meanings)s.", meanings=meanings))
            elif labels:
                listed = _shorten(f"“{text[:80]}”" for text in labels)
                likely = guess_numbers(labels) or {}
                self.ask(
                    "values.value",
                    _("Which numbers are the words in the column “%(column)s”? %(texts)s", column=column, texts=listed),
                    suggestion=", ".join(f"{word} = {number}" for word, number in likely.items()),
                )
        if known:
            self.values["value"] = known


def _shorten(texts: Iterable[str]) -> str:
    """The first texts of a list."""
    first = list(islice(texts, MOST_LABELS + 1))
    return ", ".join([*first[:MOST_LABELS], *(["…"] if len(first) > MOST_LABELS else [])])


def fits(name: str, profile: Profile) -> bool:
    """Whether a column's cells can be the field."""
    if name == "source" and profile.words < 2 and profile.is_label:
        return False  # the name of a data set
    if name in _PROSE:
        return profile.kind in ("text", "messages", "list")
    if name == "references":
        return profile.kind in ("text", "list", "messages", "number")
    if name == "value":
        is_short = profile.kind in ("text", "date") and profile.words <= MOST_LABEL_WORDS
        return profile.kind in ("number", "numbers") or (is_short and normalize(profile.name) not in REMARKS)
    if name == "step":
        return profile.kind == "number"
    if name == "item":
        return profile.kind == "number" or (profile.kind in ("text", "date") and profile.words <= _MOST_ID_WORDS)
    return profile.kind in ("text", "number")
