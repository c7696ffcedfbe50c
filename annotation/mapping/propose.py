"""Proposes a mapping from the names, types and values of a table's columns. Where they do not decide, it asks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import PurePath
from typing import Any

from evalapp.translation import gettext as _

from .aligned import OF_SYSTEMS, SCORES
from .cell_names import find_sides, read_output_name, read_rating_name
from .cells import read_ratings
from .convert import ConvertedRow, convert_rows
from .draft import Draft, Question, Reason
from .left_out import LeftOut, list_left_out, list_used
from .mapping import Cells, Ids, Mapping, WrongMapping, read_mapping
from .names import (
    NAMES,
    REMARKS,
    TOTALS,
    find_fields,
    find_file_role,
    name_system,
    normalize,
    read_verdict_word,
)
from .numbers import ColumnNumbers, MissingCode, describe_either, find_limits, find_signs
from .plan import Fault, make_plan
from .presets import Preset, find_preset, flatten_table
from .propose_ratings import (
    ask_for_numbers,
    ask_for_ranks,
    ask_for_ratings,
    ask_for_words,
    can_be_rating,
    list_aspects,
    list_named_raters,
    list_raters,
)
from .propose_roles import find_roles, list_judged
from .propose_verdicts import ask_for_verdicts, find_options, list_judges, list_verdicts, propose_verdicts
from .propose_wide import find_output_names, list_prose, propose_wide_cells
from .sources import Row
from .tables import Table
from .values import WrongValue, is_empty

_MOST_LISTED = 5
#: Rows of the interchange format that are made to see whether a preset finds more than items.
_MOST_MADE = 5000


@dataclass
class Proposal:
    """A mapping, the reasons for it, open questions, and the columns that it does not import."""

    mapping: Mapping
    reasons: list[Reason] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def propose_mapping(table: Table) -> Proposal:
    """A mapping for a table. With open `questions` it is not complete: they are about parts that `read_mapping` needs,
    or about columns that may be outputs or ratings, and are not imported without an answer."""
    if (preset := find_preset(table)) is not None:
        return propose_preset(table, preset)
    return _Proposer(table).propose()


def propose_preset(table: Table, preset: Preset) -> Proposal:
    """The mapping of a preset for a table. What the file does not tell is a question."""
    mapping = preset.make_mapping(table)
    reasons = [Reason("preset", (), _("The columns are those of %(format)s.", format=_(preset.label)))]
    dropped = [word for word, number in mapping.values.get("value", {}).items() if number is None and word.strip()]
    if dropped:
        message = _(
            "These answers have no number, so their judgements are left out: %(words)s. Give each a number to import "
            "them.",
            words=", ".join(f"“{word}”" for word in dropped[:10]),
        )
        reasons.append(Reason("values.value", (), message))
    questions = _ask_for_missing(mapping)
    flat = flatten_table(table, mapping.preset)
    if not questions:
        questions = [*ask_for_verdicts(flat, mapping), *_ask_for_judgements(flat, mapping, preset)]
    questions += [*ask_for_signs(flat, mapping), *ask_for_codes(flat, mapping)]
    return Proposal(mapping, reasons, questions, list_left_out(table, mapping))


def _ask_for_missing(mapping: Mapping) -> list[Question]:
    """Questions about what a mapping needs and does not state, in the words of a table."""
    try:
        read_mapping(mapping.as_json())
    except WrongMapping as wrong:
        faults = wrong.faults
    else:
        return []
    questions = []
    for one in faults:
        name = one.member.removeprefix("columns.")
        text = mapping.columns.get(name.replace("system", "text"), ())
        if name in ("system_a", "system_b") and text:
            message = _("Which system wrote the texts in “%(column)s”?", column=text[0])
            questions.append(Question(f"constants.{name}", message))
        elif not one.member.startswith("ratings["):
            questions.append(Question(one.member, one.message))
    columns = tuple(one.column for one in mapping.ratings)
    if len(questions) < len(faults):
        listed = ", ".join(f"“{column}”" for column in columns[:_MOST_LISTED])
        message = _("Which item, system and aspect do the ratings in %(columns)s belong to? Their names do not say it.",
                    columns=listed + (", …" if len(columns) > _MOST_LISTED else ""))  # fmt: skip
        questions.append(Question("ratings", message, columns))
    return questions


def _ask_for_judgements(table: Table, mapping: Mapping, preset: Preset) -> list[Question]:
    """A question if the first rows give items only, though the format is one of outputs or judgements."""
    made = convert_rows(table, mapping, is_preview=True)
    tables = {row.table for row in islice(made, _MOST_MADE) if isinstance(row, ConvertedRow)}
    if preset.has_items_only or tables - {"items"}:
        return []
    columns = list_used(table, mapping)
    options = tuple(name for name in table.columns if name not in columns)
    return [Question("outputs", _("Which columns have the outputs or the answers? None is recognized."), options)]


def ask_for_signs(table: Table, mapping: Mapping) -> list[Question]:
    """Questions about columns of numbers whose cells do not say, or not with one voice, what the decimal sign is."""
    plan = make_plan(table, mapping)
    questions = []
    for column, _cells in (*plan.ratings, *plan.scores) if table.format != "lines" else ():
        known = mapping.values.get("value", {})
        cells = ((n, row.get(column)) for n, row in table.sample)
        signs = find_signs((n, value) for n, value in cells if not (type(value) is str and value in known))
        if signs.point and signs.comma:
            message = _("“%(column)s” has a decimal point in row %(row)s (%(point)s) and a decimal comma in row "
                        "%(other)s (%(comma)s). Which one is right? Correct the other cells.",
                        column=column, row=signs.point[0], point=signs.point[1], other=signs.comma[0],
                        comma=signs.comma[1])  # fmt: skip
            questions.append(Question("values.value", message))
        elif signs.either and not (signs.point or signs.comma or mapping.reading.decimal):
            message = _("Row %(row)s of “%(column)s”: %(why)s Which sign is it?", row=signs.either[0],
                        column=column, why=describe_either(signs.either[1])[0])  # fmt: skip
            questions.append(Question("reading.decimal", message, (".", ",")))
    return questions


def ask_for_codes(table: Table, mapping: Mapping) -> list[Question]:
    """Questions about numbers in columns of ratings that may say that there is none, such as 99, each once."""
    columns = [column for column, _cells in make_plan(table, mapping).ratings]
    if table.format == "lines" or not columns:
        return []
    known = dict(mapping.values.get("value", {}))
    limits = find_limits(columns, (row for _number, row in table.sample), known)
    questions = []
    for column in columns if limits else ():
        numbers = ColumnNumbers(known, ".", find_limits=lambda column=column: limits.get(column))  # type: ignore[misc]
        for row, value in ((n, row.get(column)) for n, row in table.sample):
            try:
                read_ratings(value, numbers)
            except MissingCode as code:
                message = _("Row %(row)s of “%(column)s”: %(why)s State its number, or none to leave it out.",
                            row=row, column=column, why=code.message)  # fmt: skip
                questions.append(Question("values.value", message, (), f"{code.text} ="))
                known[code.text] = None  # is not asked again
            except WrongValue:
                continue  # another question
    return questions


class _Proposer:
    def __init__(self, table: Table) -> None:
        self.source = table
        self.draft = Draft(table)
        #: Columns that together say which output is better, and what each of them says.
        self.options: dict[str, str] = {}
        #: Columns with the verdicts of a rater each.
        self.judges: list[Cells] = []

    def propose(self) -> Proposal:
        draft = self.draft
        find_roles(draft)
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
        if shape != "lines":
            self._propose_rows()
            ask_for_words(draft)
            if shape in ("long", "wide"):
                ask_for_numbers(draft)
                ask_for_ranks(draft)
                ask_for_ratings(draft)
            self._propose_meta(shape)
            draft.shorten()
        for note in draft.table.notes:
            draft.explain("reading", (), note)
        mapping = draft.make_mapping(shape)
        questions = draft.questions + ask_for_signs(draft.table, mapping) + ask_for_codes(draft.table, mapping)
        return Proposal(mapping, draft.reasons, questions, list_left_out(self.source, mapping))

    def _find_shape(self) -> str:
        has = self.draft.candidates
        if self.draft.table.format == "lines":
            return "lines"
        if {"chosen", "rejected"} <= has.keys():
            return "preference"
        sides = ({"system_a", "system_b"}, {"text_a", "text_b"})
        is_pair = any(side <= has.keys() for side in sides)
        if "verdict" not in has and is_pair:
            self.options = find_options(self.draft)
            self.judges = [] if self.options else list_judges(self.draft)
        if all(side <= has.keys() for side in sides):
            return "pairs"
        if (is_pair and ("verdict" in has or self.options or self.judges)) or self._names_two():
            return "pairs"
        is_long = "system" in has and ("text" in has or "value" in has or list_aspects(self.draft))
        if not is_long and len(has.get("text", [])) == 1 and not find_output_names(self.draft):
            is_long = not list_prose(self.draft)
        return "long" if is_long else "wide"

    def _names_two(self) -> bool:
        """Whether the table has outputs of two systems, the better one, and no ratings: then the outputs are
        the two sides of comparisons."""
        draft = self.draft
        outputs, columns = find_output_names(draft), draft.candidates.get("verdict", [])[:1]
        systems = list(outputs.values())
        if len(set(systems)) != 2 or len(outputs) != 2:
            return False
        options = {} if columns else find_options(draft, systems)
        ratings = (name for name, one in draft.profiles.items() if can_be_rating(one) and name not in options)
        words = [word for column in columns for word in draft.profiles[column].texts]
        if not (columns or options) or any(read_rating_name(name, systems) for name in ratings):
            return False
        self.options = options
        if not all(text in systems or read_verdict_word(text) for text in words):
            return False
        for side, (name, system) in zip("ab", outputs.items(), strict=True):
            draft.set(f"text_{side}", name, _("Texts, under the name of a system with a word for an output."))
            draft.constants[f"system_{side}"] = system
            draft.explain(f"constants.system_{side}", (name,), _("The system in the column's name."))
        return True

    # ---- parts --------------------------------------------------------------------------------------------

    def _propose_item(self, repeats: bool) -> None:
        """`repeats`: an item can have several rows."""
        draft = self.draft
        for name in ("context", "source"):
            draft.choose(name)
        if references := draft.list_free("references"):
            draft.columns["references"] = tuple(references)
            draft.explain("columns.references", references, _("Usual names for references."))
        draft.choose("group")
        found = draft.list_free("item")
        fitting = [one for one in found if draft.profiles[one].is_unique != repeats] if len(found) > 1 else found
        if len(found) > 1 and len(fitting) == 1:
            why = (
                _("Of the columns with ids, only this one repeats for several rows.")
                if repeats
                else _("Of the columns with ids, only this one is different in every row.")
            )
            draft.set("item", fitting[0], why)
        elif found:
            draft.choose("item")
        elif not repeats:
            draft.ids = Ids("row")
            draft.explain("ids", (), _("No column has ids: rows are numbered."))
        elif {"context", "source"} & draft.columns.keys():
            draft.ids = Ids("hash")
            draft.explain("ids", (), _("No column has ids: rows with the same input are one item."))
        else:
            draft.choose("item", is_needed=True)

    def _check_ids(self) -> None:
        """Asks if several rows of a table with a row per item have the same id."""
        draft = self.draft
        for column in draft.columns.get("item", ()):
            twice = [text for text, n in draft.profiles[column].texts.items() if n > 1]
            if twice and "rater" not in draft.candidates:
                message = _("The id “%(id)s” in “%(column)s” occurs in several rows. Which column names the raters of "
                            "these rows, or are the rows to be numbered?", id=twice[0], column=column)  # fmt: skip
                draft.ask("ids", message, ("row", "hash"))

    # ---- shapes -------------------------------------------------------------------------------------------

    def _propose_long(self) -> None:
        draft = self.draft
        if not draft.choose("system") and not draft.candidates.get("system"):
            stem = PurePath(draft.table.name).stem
            draft.ask("constants.system", _("Which system wrote the texts? No column names it."), (), stem)
        draft.choose("step")
        draft.choose("text")
        self._propose_item(repeats="system" in draft.columns or bool(draft.explode))
        values = draft.list_free("value")
        aspects = [one for one in list_aspects(draft) if one.column not in values]
        known = {*values, *(one.column for one in aspects)}
        aspects += [one for one in list_named_raters(draft) if one.column not in known]
        known.update(one.column for one in aspects)
        aspects += [one for one in list_judged(draft) if one.column not in known]
        if not (values or aspects) and (raters := list_raters(draft)):
            draft.set_ratings(raters, _("Numbers under names of raters."))
            if not draft.choose("aspect") and not draft.candidates.get("aspect"):
                draft.ask("constants.aspect", _("What do the ratings under the names of raters rate?"), (), "overall")
            return
        if len(values) == 1 and not aspects:
            draft.set("value", values[0], _("Numbers under a usual name for ratings."))
            draft.propose_judges(values[0])
            draft.propose_values(values)
        elif values or aspects:
            if "aspect" not in draft.candidates:
                aspects += [Cells(column=name, aspect=name.rsplit(".", 1)[-1]) for name in values]
            draft.set_ratings(aspects, _("Numbers under names of aspects."))
            draft.propose_judges("")

    def _propose_wide(self) -> None:
        self._propose_item(repeats="rater" in self.draft.candidates)
        self._check_ids()
        propose_wide_cells(self.draft)
        if found := list_verdicts(self.draft):
            message = _("%(columns)s may say which output is better. Comparisons are a layout of their own: to import "
                        "them as well, upload the file again and choose it.",
                        columns=", ".join(f"“{name}”" for name in found))  # fmt: skip
            self.draft.ask("shape", message)

    def _propose_pairs(self) -> None:
        draft = self.draft
        if self.options:
            draft.columns["verdict"], draft.values["verdict"] = tuple(self.options), dict(self.options)
            meanings = ", ".join(f"{name} = {verdict}" for name, verdict in self.options.items())
            draft.explain("columns.verdict", self.options, _("In each row at most one of them is true: %(meanings)s.",
                                                             meanings=meanings))  # fmt: skip
        has_verdicts = self.options or self.judges
        for name in ("system_a", "system_b", "text_a", "text_b", *(() if has_verdicts else ("verdict",))):
            draft.choose(name)
        if self.judges:
            draft.verdicts += self.judges
            columns = [one.column for one in self.judges]
            draft.explain("verdicts", columns, _("Words for the better output, under names of raters."))
            for column in columns:
                propose_verdicts(draft, column)
        for side, text in (("system_a", "text_a"), ("system_b", "text_b")):
            if side not in {**draft.columns, **draft.candidates, **draft.constants} and text in draft.columns:
                column = draft.columns[text][0]
                message = _("Which system wrote the texts in “%(column)s”?", column=column)
                draft.ask(f"constants.{side}", message, (), read_output_name(column))
        self._propose_item(repeats=True)
        sides = self._propose_sides()
        is_judged = bool(draft.columns.get("verdict") or draft.verdicts)
        if not (sides or is_judged or draft.candidates.get("verdict")):
            draft.choose("verdict", is_needed=True)
        draft.propose_judges("preference" if is_judged or not sides else "")
        for column in draft.columns.get("verdict", ()) if not self.options else ():
            propose_verdicts(draft, column)

    def _propose_sides(self) -> list[Cells]:
        """Ratings of the two outputs of a row, such as `fluency_a` and `fluency_b`."""
        draft = self.draft
        rated = [name for name, one in draft.profiles.items() if can_be_rating(one) and not draft.is_taken(name)]
        cells = [
            Cells(column=name, aspect=aspect, side=side)
            for name, (aspect, side) in find_sides(rated).items()
            if normalize(aspect) not in NAMES["verdict"]
        ]
        if cells:
            draft.set_ratings(cells, _("Numbers, or words for them, under the names of an aspect and a side."))
        return cells

    def _propose_preference(self) -> None:
        for name in ("chosen", "rejected", "system_a", "system_b"):
            self.draft.choose(name)
        self._propose_item(repeats=False)
        self._propose_sides()
        self.draft.propose_judges("preference")

    def _propose_lines(self) -> None:
        """Files by their names or folders."""
        draft = self.draft
        found: dict[str, list[str]] = {}
        for name in draft.table.columns:
            found.setdefault(find_file_role(name), []).append(name)
        for role in ("source", "context", "group"):
            if len(found.get(role, ())) == 1:
                draft.set(role, found[role][0], _("A usual name of such a file."))
            elif role in found:
                message = _("Several files can be the %(field)s. Which one is it?", field=role)
                draft.ask(f"columns.{role}", message, found[role])
        if references := found.get("references", ()):
            draft.columns["references"] = tuple(references)
            draft.explain("columns.references", references, _("Usual names of files with references."))
        draft.ids = Ids("row")
        draft.explain("ids", (), _("Lines are numbered."))
        if outputs := found.get("outputs", []):
            cells = [Cells(column=name, system=name_system(name)) for name in outputs]
            draft.set_outputs(cells, _("All other files: the outputs of a system each."))
        ratings = []
        for name in found.get("ratings", []):
            file, _cut, system = name.rpartition(":")
            aspect = PurePath(file).name.removesuffix(SCORES).rpartition(".")[2]
            ratings.append(Cells(column=name, system=system, aspect=aspect))
        if ratings:
            draft.set_ratings(ratings, _("Files of segment scores."))
            draft.propose_judges("")
        if scores := [self._propose_score(name) for name in found.get("scores", [])]:
            draft.set_scores(scores, _("Files of metrics: scores made elsewhere."))

    def _propose_score(self, name: str) -> Cells:
        """A column of a file `METRIC-REF.seg.score`, where REF is `src` if the metric used no reference."""
        file, _cut, system = name.rpartition(":")
        evaluator = PurePath(file).name.removesuffix(SCORES).removesuffix(OF_SYSTEMS)
        has_references = "references" in self.draft.columns and evaluator.rpartition("-")[2].startswith("ref")
        return Cells(
            column=name, system=system, evaluator=evaluator, reference_set="original" if has_references else "",
            level="system" if file.endswith(OF_SYSTEMS) else "",
        )  # fmt: skip

    # ---- the rest -----------------------------------------------------------------------------------------

    def _propose_rows(self) -> None:
        """Rows without an id, such as totals at the end, are left out if a column decides it, or asked about."""
        draft = self.draft
        first = draft.columns.get("item") or tuple(draft.table.columns[:1])
        prose = [name for field in ("context", "source", "text") for name in draft.columns.get(field, ())]
        prose += [one.column for one in draft.outputs]
        totals, without = [], []
        for number, row in draft.table.sample:
            key = row.get(first[0])
            has_text = any(not is_empty(row.get(name)) for name in prose)
            if str(key).strip().rstrip(":").casefold() in TOTALS or (is_empty(key) and not has_text):
                totals.append(number)
            elif is_empty(key) and "item" in draft.columns:
                without.append(number)
        if totals and prose:
            self._leave_out(totals, prose)
        if without:
            rows = dict(draft.table.sample)
            inputs = [name for field in ("context", "source") for name in draft.columns.get(field, ())]
            is_merged = inputs and all(is_empty(rows[number].get(name)) for number in without for name in inputs)
            message = _("Rows without an id in “%(column)s”: %(n)s, the first one is row %(row)s. Fill the cells, or "
                        "number the rows instead. Of merged cells only the first one has the value.",
                        n=f"{len(without):,}", column=first[0], row=without[0])  # fmt: skip
            draft.ask("ids", message, ("row", "hash"), "" if is_merged else "row")

    def _leave_out(self, totals: list[int], prose: list[str]) -> None:
        """Leaves out rows by a column that is empty in exactly these."""
        draft, listed = self.draft, set(totals)
        shown = ", ".join(f"{number:,}" for number in totals[:_MOST_LISTED])
        for name in prose:
            empty = {number for number, row in draft.table.sample if is_empty(row.get(name))}
            if empty == listed:
                draft.only[name] = ()
                message = _("Rows without a text in “%(column)s” are left out, as totals: row %(rows)s.")
                draft.explain("only", (name,), message % {"column": name, "rows": shown})
                return
        draft.ask("only", _("Row %(rows)s looks like a total of the others. Delete it in the file.", rows=shown))

    def _propose_meta(self, shape: str) -> None:
        """Short texts that repeat, such as a domain, and remarks describe items, if a row is an item."""
        draft = self.draft
        ids = draft.columns.get("item", ())
        is_item = draft.ids.source == "row" or all(draft.profiles[name].is_unique for name in ids)
        if shape != "wide" or not is_item or not (draft.columns or draft.outputs):
            return
        asked = {option for question in draft.questions for option in question.options} | set(list_verdicts(self.draft))
        kept = tuple(
            name
            for name, one in draft.profiles.items()
            if not draft.is_taken(name)
            and name not in asked
            and one.kind == "text"
            and (normalize(name) in REMARKS or (not one.is_unique and not set(find_fields(name)) - {"source"}))
        )
        if kept:
            draft.meta = kept
            draft.explain("meta.items", kept, _("Short texts that repeat, and remarks: kept with the items."))


def describe_proposal(proposal: Proposal, rows: list[tuple[int, Row, list[ConvertedRow | Fault]]]) -> dict[str, Any]:
    """A proposal and its preview as plain values, for JSON. `rows`: from `preview_rows`."""
    return {
        "mapping": proposal.mapping.as_json(),
        "reasons": [asdict(reason) for reason in proposal.reasons],
        "questions": [asdict(question) for question in proposal.questions],
        "left_out": [asdict(one) for one in proposal.left_out],
        "rows": [_describe_row(*row) for row in rows],
    }


def _describe_row(number: int, row: Row, results: list[ConvertedRow | Fault]) -> dict[str, Any]:
    converted = [{"table": one.table, "values": one.values} for one in results if isinstance(one, ConvertedRow)]
    faults = [{"column": one.column, "message": str(one)} for one in results if isinstance(one, Fault)]
    return {"row": number, "original": row, "converted": converted, "faults": faults}
