"""The report of a project as plain values: sections with facts, tables and notes, in which every figure is a text.

The page and the PDF render the same document, so that both show the same figures.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalapp.number_text import show_figure
from evalapp.side_figures import failure_sentence
from evalapp.stored_texts import translate_stored
from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop, ngettext
from scoring.boards.agreement.columns import format_cells, list_used_columns
from scoring.boards.base import order_evaluators
from scoring.boards.choices import COEFFICIENTS, COMPARED, FIGURES, JUDGED, LEVELS, METHODS, MODELS, PEOPLE
from scoring.boards.render.figures import letters_caption
from scoring.boards.render.page import Scale, place_rows, scale_around_zero, scale_shares, scale_values
from scoring.boards.systems.columns import assign_letters, is_tested

KINDS = {
    "machine": gettext_noop("machine"),
    "human": gettext_noop("human"),
    "reference": gettext_noop("reference"),
    "control": gettext_noop("control"),
}
Estimate = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A row of a table. `drawn` has the places of a dot and its interval on the scale of the table."""

    cells: tuple[str, ...]
    drawn: Mapping[str, float | None] | None = None
    is_grey: bool = False


@dataclass(frozen=True)
class Grid:
    """A table. The first cell names the row, those in `texts` are texts too, all others are figures; a picture of the
    interval on `scale`, if there is one, follows the cell `axis_after`."""

    heads: tuple[str, ...]
    rows: tuple[Line, ...]
    texts: frozenset[int] = frozenset({0})
    scale: Scale | None = None
    axis_after: int = 0


@dataclass(frozen=True)
class Example:
    """An item with texts of systems."""

    context: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Section:
    """`key` is the anchor on the page; `simulated` says that judgements are simulated."""

    key: str
    title: str
    lead: str = ""
    simulated: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    grid: Grid | None = None
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: str
    made: str
    sections: tuple[Section, ...] = field(default=())


def build_document(content: Mapping[str, Any]) -> Document:
    """Return the document of a stored report."""
    about = content["project"]
    parts = [about["task"].capitalize(), about["lang"], about["licence"]]
    sections = [
        _write_systems(content),
        _write_metrics(content),
        _write_agreement(content),
        _write_data(content),
        *([_write_raters(content["raters"])] if content.get("raters") else []),
        *([_write_examples(content["examples"])] if content.get("examples") else []),
        *([signatures] if (signatures := _write_signatures(content)).facts else []),
    ]
    made = _("As of %(date)s, evalapp %(version)s.") % {"date": content["date"], "version": content["version"]}
    return Document(about["name"], " · ".join(part for part in parts if part), made, tuple(sections))


def _show_interval(estimate: Estimate, digits: int) -> str:
    if estimate.get("low") is None or estimate.get("high") is None:
        return "-"
    ends = {"low": show_figure(estimate["low"], digits), "high": show_figure(estimate["high"], digits)}
    return _("%(low)s to %(high)s") % ends


def show_share(part: float, whole: float) -> str:
    """Return how many judgements are simulated; empty if none is."""
    if not part:
        return ""
    if not whole or part >= whole:
        return _("all judgements are simulated") if whole else _("with simulated judgements")
    percent = 100 * part / whole
    # Neither 0 nor 100 %: few real or simulated judgements are still some.
    shown = "<1" if percent < 1 else ">99" if percent > 99 else f"{percent:.0f}"
    return _("%(percent)s %% of the judgements are simulated") % {"percent": shown}


def _list_notes(table: Mapping[str, Any]) -> list[str]:
    """Return the remarks that pages show above or below a table."""
    notes = [table["note"], *table.get("counted", []), failure_sentence(table.get("failed", ()))]
    if excluded := table.get("n_excluded"):
        text = _("%(n)s rated outputs are left out: an evaluator in this table was trained on their groups.")
        notes.append(text % {"n": f"{excluded:,}"})
    named: dict[str, list[str]] = {}
    for row in table.get("stale", []):
        named.setdefault(row["reason"], []).append(row["evaluator"])
    for reason, names in sorted(named.items()):
        listed = ", ".join(dict.fromkeys(names))
        notes.append(_("Scores out of date: %(names)s: %(reason)s.") % {"names": listed, "reason": reason})
    return [translate_stored(note) for note in notes if note]


def _explain_dashes(estimates: Iterable[Estimate]) -> list[str]:
    """Return why values or intervals are missing, each reason once."""
    reasons = (row.get("note") for row in estimates if row.get("low") is None)
    return [_("Missing figures: %(reason)s.") % {"reason": reason} for reason in dict.fromkeys(filter(None, reasons))]


def _date_table(part: Mapping[str, Any]) -> list[str]:
    """Return when a table was computed, if data have changed since."""
    if not part.get("computed_at"):
        return []
    return [_("Computed on %(time)s; later changes of the data are not in it.") % {"time": part["computed_at"]}]


def _is_missing(part: Mapping[str, Any] | None) -> bool:
    return not part or not part.get("table") or not part["table"]["rows"]


def _missing_reason(part: Mapping[str, Any] | None) -> str:
    """Return why a table is missing, as the table itself says."""
    return str(((part or {}).get("table") or {}).get("note") or _("There are no results yet."))


# ---- systems --------------------------------------------------------------------------------------------------------


def _write_systems(content: Mapping[str, Any]) -> Section:
    part, title = content["tables"].get("systems"), _("Systems")
    if _is_missing(part):
        return Section("systems", title, notes=(_missing_reason(part),))
    table = part["table"]
    digits = 0 if table["method"] in MODELS else 3
    scale = scale_values(table["rows"], table["scale"])
    letters = assign_letters(table)
    lines = [
        Line(
            (
                row["label"],
                row["place"],
                show_figure(row["value"], digits),
                _show_interval(row, digits),
                letters.get(row["label"], ""),
                f"{row['n_ratings'] or 0:,}",
                _(KINDS.get(row["kind"], row["kind"])),
            ),
            row["drawn"],
            is_grey=row["kind"] != "machine",
        )
        for row in place_rows(table["rows"], scale)
    ]
    heads = (
        _("System"), _("Rank"), _(METHODS.get(table["method"], table["method"])), "95 %", _("Letters"),
        _("Judgements"), _("Kind"),
    )  # fmt: skip
    lead = _("Human judgements of %(aspect)s, best first.") % {"aspect": table["aspect"]}
    total = sum(row["n_ratings"] or 0 for row in table["rows"])
    share = sum((row["simulated"] or 0) * (row["n_ratings"] or 0) for row in table["rows"])
    shared = _("Systems that share a letter have overlapping rank intervals (95 %, resamples of groups of items).")
    if is_tested(table):
        shared = _("Systems that share a letter are not significantly different (5 %, tests of pairs).")
    notes = [
        *([shared] if letters else []), *_list_notes(table), *_explain_dashes(table["rows"]), *_date_table(part),
    ]  # fmt: skip
    return Section(
        "systems", title, lead, show_share(share or table["n_simulated"] or 0, total),
        grid=Grid(heads, tuple(lines), frozenset({0, 4, 6}), scale), notes=tuple(notes),
    )  # fmt: skip


# ---- metrics --------------------------------------------------------------------------------------------------------


def _write_metrics(content: Mapping[str, Any]) -> Section:
    part, title = content["tables"].get("evaluators"), _("Metrics vs. humans")
    if _is_missing(part):
        return Section("metrics", title, notes=(_missing_reason(part),))
    table = part["table"]
    name = table["coefficient"]
    key = FIGURES.get(name, name)
    scored = [row for row in table["rows"] if row["score_set"] is not None]
    if not scored:
        return Section("metrics", title, notes=(_("No metric has scored the outputs yet."),))
    rows = sorted(scored, key=lambda row: order_evaluators(row, row[key]))
    is_signed = key in COEFFICIENTS
    ceiling = table["ceiling"]
    top = [{key: ceiling}] if ceiling["value"] is not None else []
    scale = scale_around_zero([*rows, *top], key) if is_signed else scale_shares([*rows, *top], key)
    placed = place_rows(rows, scale, key)
    lines = [
        Line(
            (
                row["name"] or row["evaluator"],
                show_figure(row[key]["value"]),
                _show_interval(row[key], 3),
                row["letters"],
                f"{row['n'] or 0:,}",
                _("trivial baseline") if row["is_sentinel"] else "",
            ),
            row["drawn"],
            is_grey=row["is_sentinel"],
        )
        for row in placed
    ]
    if top:
        (drawn,) = place_rows(top, scale, key)
        cells = (_("Noise ceiling"), show_figure(ceiling["value"]), _show_interval(ceiling, 3), "", "", _("human"))
        lines.insert(0, Line(cells, drawn["drawn"], is_grey=True))
    heads = (_("Metric"), _(COMPARED[name]), "95 %", _("Letters"), "n", _("Kind"))
    people = table.get("people", "ratings")
    lead = _("Correlation with human judgements of %(aspect)s. Level: %(level)s. Human scores: %(people)s.") % {
        "aspect": table["aspect"],
        "level": _(LEVELS.get(table["level"], table["level"])),
        "people": _(PEOPLE.get(people, people)),
    }
    notes = [
        _("A metric that does not beat the trivial baselines adds no evidence."),
        *([_("The noise ceiling is the highest value that an error-free metric could reach.")] if top else []),
        translate_stored(letters_caption(table)).replace("≤", _("at most")),
        *_list_notes(table),
        *_explain_dashes(row[key] for row in rows),
        *_date_table(part),
    ]
    return Section(
        "metrics", title, lead, show_share(table["n_simulated"] or 0, table.get("n_ratings") or 0),
        grid=Grid(heads, tuple(lines), frozenset({0, 3, 5}), scale), notes=tuple(notes),
    )  # fmt: skip


# ---- agreement and data ---------------------------------------------------------------------------------------------


def _write_agreement(content: Mapping[str, Any]) -> Section:
    part, title = content["tables"].get("agreement"), _("Agreement of the raters")
    if _is_missing(part):
        return Section("agreement", title, notes=(_missing_reason(part),))
    table = part["table"]
    rows = []
    for row in table["rows"]:
        by_name = {one["name"]: one for one in row["coefficients"]}
        if not row["source"] and "alpha" in by_name:
            rows.append({**row, "alpha": by_name["alpha"], "percent": by_name.get("percent")})
    scale = scale_around_zero(rows, "alpha")
    lines = [
        Line(
            (
                row["aspect"],
                _(JUDGED[row["judged"]]),
                show_figure(row["alpha"]["value"]),
                _show_interval(row["alpha"], 3),
                show_figure((row["percent"] or {}).get("value")),
                f"{row['n_raters']:,}",
                f"{row['n_units']:,}",
                f"{row['n_judgements']:,}",
            ),
            row["drawn"],
        )
        for row in place_rows(rows, scale, "alpha")
    ]
    heads = (
        _("Aspect"), _("Judged"), _("Alpha"), "95 %", _("Equal answers"), _("Raters"), _("Units"),
        _("Judgements"),
    )  # fmt: skip
    total = sum(row["n_judgements"] for row in rows)
    return Section(
        "agreement", title, _("Krippendorff’s alpha: 1 is perfect agreement, 0 agreement by chance."),
        show_share(table["n_simulated"] or 0, total),
        grid=Grid(heads, tuple(lines), frozenset({0, 1}), scale, 1),
        notes=(*_list_notes(table), *_explain_dashes(row["alpha"] for row in rows), *_date_table(part)),
    )  # fmt: skip


def _write_data(content: Mapping[str, Any]) -> Section:
    counts, about = content["counts"], content["project"]
    systems = ", ".join(f"{n:,} {_(KINDS.get(kind, kind))}" for kind, n in counts["systems"].items() if n)
    judgements = counts["ratings"] + counts["comparisons"]
    facts = [
        (_("Items"), f"{counts['items']:,}"),
        (_("Systems"), systems or "0"),
        (_("Outputs"), f"{counts['outputs']:,}"),
        (_("References"), f"{counts['references']:,}"),
        (_("Ratings"), f"{counts['ratings']:,}"),
        (_("Comparisons"), f"{counts['comparisons']:,}"),
        (_("Raters"), f"{counts['raters']:,}"),
        (_("Simulated judgements"), _show_count(counts["simulated"], judgements)),
        (_("Language of the texts"), about["lang"]),
        (_("Judged"), " ".join(_describe_origin(counts))),
        (_("Licence"), about["licence"]),
        (_("Source"), about["source"]),
    ]
    shown = tuple((label, text) for label, text in facts if text)
    return Section("data", _("Data"), simulated=show_share(counts["simulated"], judgements), facts=shown)


def _show_count(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.1f} %)" if part and whole else f"{part:,}"


def _describe_origin(counts: Mapping[str, Any]) -> list[str]:
    """Return sentences on where judgements were made and by whom, without names."""
    sentences = []
    if here := counts["judged_here"]:
        people = ngettext("%(people)d invited person", "%(people)d invited people", counts["annotators"])
        campaigns = ngettext("%(n)d campaign", "%(n)d campaigns", counts["campaigns"])
        text = _("%(n)s judgements by %(people)s in %(campaigns)s of this installation.")
        values = {
            "n": f"{here:,}",
            "people": people % {"people": counts["annotators"]},
            "campaigns": campaigns % {"n": counts["campaigns"]},
        }
        sentences.append(text % values)
    if elsewhere := counts["ratings"] + counts["comparisons"] - here:
        sentences.append(_("%(n)s judgements were made elsewhere and uploaded.") % {"n": f"{elsewhere:,}"})
    return sentences


# ---- what the owner adds, and signatures ----------------------------------------------------------------------------


def _write_raters(raters: Sequence[Mapping[str, Any]]) -> Section:
    columns = list_used_columns(raters)
    lines = tuple(
        Line((row["rater"], f"{row['n']:,}", *(cell["text"] for cell in format_cells(row, raters)))) for row in raters
    )
    heads = (_("Rater"), _("Judged"), *(column.label for column in columns))
    return Section("raters", _("Raters"), _("Under pseudonyms."), grid=Grid(heads, lines))


def _write_examples(examples: Sequence[Mapping[str, Any]]) -> Section:
    shown = tuple(
        Example(tuple(one["context"]), tuple((out["system"], out["text"]) for out in one["outputs"]))
        for one in examples
    )
    return Section("examples", _("Examples"), _("The first judged items."), examples=shown)


def _write_signatures(content: Mapping[str, Any]) -> Section:
    facts = []
    names = {"systems": _("Systems"), "evaluators": _("Metrics vs. humans"), "agreement": _("Agreement of the raters")}
    for kind, label in names.items():
        part = content["tables"].get(kind)
        if _is_missing(part):
            continue
        table = part["table"]
        if kind == "evaluators" and all(row["score_set"] is None for row in table["rows"]):
            continue
        facts.append((label, table["signature"]))
        if kind == "evaluators":
            facts += [
                (row["name"] or row["evaluator"], row["signature"])
                for row in table["rows"]
                if row["score_set"] is not None and row["signature"]
            ]
            facts += [(_("Test"), table["test"]["signature"])] if table["test"].get("signature") else []
    lead = _(
        "With an export of the project, anyone can compute these tables again: "
        "python -m evalapp.stats.recompute FOLDER. Equal signatures mean equal settings."
    )
    return Section("signatures", _("Signatures"), lead, facts=tuple(facts))
