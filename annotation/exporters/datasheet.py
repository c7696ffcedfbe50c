"""The human-evaluation datasheet of an export, `DATASHEET.md`: the usual questions of such sheets, with the answers
that project and campaigns contain. Unrecorded answers are marked, for people to complete."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from evalapp.markup import escape_markdown, one_line
from evalapp.names import natural_key
from evalapp.side_figures import FAILED, side_figure

from .card import WAYS, agreement, share
from .facts import NOT_RECORDED, Facts
from .options import ExportOptions

Head = Mapping[str, Any]
Answers = list[tuple[str, str]]
_KINDS = {
    "likert": "each output is rated on scales", "pairwise": "two outputs for the same item are compared",
    "turing": "an output is compared with a reference", "ream": "references are written, with a reliability score",
    "constraint": "references are written under a constraint",
}  # fmt: skip
_WRITING = ("ream", "constraint")
_NAMED = {
    "kept": "pseudonyms for annotators of this installation; uploaded ids unless they identify a person",
    "pseudonyms": "pseudonyms, the same in every export of the project",
    "as-uploaded": "uploaded ids unchanged; pseudonyms for annotators of this installation",
}


def write_datasheet(head: Head, facts: Facts, options: ExportOptions) -> str:
    """The content of DATASHEET.md."""
    lines = [
        f"# Human-evaluation datasheet: {escape_markdown(head['name'])}",
        "",
        "Filled in from the project and its campaigns. Please complete answers that read “not recorded” before",
        "publishing.",
    ]
    sections: Sequence[tuple[str, Callable[[], Answers]]] = (
        ("1 Source", lambda: _origin(head)),
        ("2 Systems", lambda: _evaluated(head, facts)),
        ("3 Selection of items", lambda: _chosen(facts)),
        ("4 Raters", lambda: _people(facts)),
        ("5 Questions", lambda: _asked(head, facts)),
        ("6 Procedure", lambda: _done(facts)),
        ("7 Results", lambda: _outcome(facts)),
        ("8 Ethics and privacy", lambda: _ethics(facts, options)),
    )
    for title, answer_all in sections:
        lines += ["", f"## {title}"]
        answers: Answers = [("What is recorded?", f"not available: {FAILED}")]
        with side_figure(_("Section %(number)s of DATASHEET.md") % {"number": title[0]}):
            answers = answer_all()
        for question, answer in answers:
            lines += ["", f"**{question}**", "", answer or NOT_RECORDED]
    for row in facts.campaigns:
        with side_figure(_("A campaign of DATASHEET.md")):
            lines += ["", *_campaign(row)]
    return "\n".join(lines) + "\n"


def _origin(head: Head) -> Answers:
    return [
        ("Which paper or report describes this evaluation?", NOT_RECORDED),
        ("What is the source of the data?", escape_markdown(head["source"])),
        ("What is their licence?", escape_markdown(head["licence"])),
        ("Who answers questions about it?", NOT_RECORDED),
    ]


def _evaluated(head: Head, facts: Facts) -> Answers:
    kinds: dict[str, list[str]] = {}
    for system in sorted(facts.systems, key=natural_key):
        kinds.setdefault(facts.kinds.get(system, "machine"), []).append(system)
    systems = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(kinds.items()))
    return [
        ("What do the systems do?", escape_markdown(head["task"])),
        ("In which language are the data?", escape_markdown(head["lang"])),
        ("Which systems were evaluated, and what kind are they?", escape_markdown(systems)),
        ("How many outputs are there?", f"{facts.counts['outputs']:,} for {facts.counts['items']:,} items"),
        ("How were the systems trained and run?", NOT_RECORDED),
    ]


def _chosen(facts: Facts) -> Answers:
    plans = [f"{row['campaign']}: {_plan(row['told'].get('plan') or {})}" for row in facts.campaigns]
    return [
        ("How were items and outputs chosen for judging?", _list(plans)),
        (
            "How many judgements were planned, and why?",
            _list(f"{row['campaign']}: {_planned(row)}" for row in facts.campaigns),
        ),
        ("Was the number based on a power analysis?", NOT_RECORDED),
    ]


def _plan(plan: Mapping[str, Any]) -> str:
    items = plan.get("items") or "all"
    if isinstance(items, dict):
        items = ", ".join(f"{name} {_short(value)}" for name, value in sorted(items.items())) or "all"
    text = f"items: {items}"
    if plan.get("systems"):
        text += f"; systems: {_short(plan['systems'])}"
    if plan.get("pairs"):
        text += f"; pairs: {plan['pairs']}"
    return text


def _short(value: Any) -> str:
    return f"{len(value)} named" if isinstance(value, list) and len(value) > 6 else str(value)


def _planned(row: Mapping[str, Any]) -> str:
    description = row["told"]
    units = description.get("units") or 0
    return f"{units:,} x {description['overlap']}" if description.get("overlap") else f"{units:,}"


def _people(facts: Facts) -> Answers:
    counts = [
        f"{row['campaign']}: {row['told']['annotators']}" for row in facts.campaigns if "annotators" in row["told"]
    ]
    most = [
        f"{row['campaign']}: {row['told']['most_per_annotator']}"
        for row in facts.campaigns
        if row["told"].get("most_per_annotator")
    ]
    simulated = share(facts.n_simulated, facts.n_judgements)
    return [
        ("How many people judged?", f"{facts.n_raters:,} in all judgements" if facts.raters else "nobody"),
        ("How many in each campaign?", _list(counts)),
        ("What is the maximum number of judgements by one person?", _list(most)),
        ("Who are they, and what is their expertise?", NOT_RECORDED),
        ("How were they recruited and paid?", NOT_RECORDED),
        ("Did authors of a system take part?", NOT_RECORDED),
        ("How were they trained?", _prepared(facts)),
        ("Which judgements were simulated?", "none" if simulated == "none" else f"simulated: {simulated}"),
    ]


def _prepared(facts: Facts) -> str:
    descriptions = [
        f"{row['campaign']}: {row['told']['practice_units']} practice items"
        + (", guidelines (below)" if row["told"].get("guidelines") else "")
        for row in facts.campaigns
        if row["kind"] not in _WRITING
    ]
    return _list(descriptions)


def _asked(head: Head, facts: Facts) -> Answers:
    names = [
        f"{aspect['name']}: {aspect['min']} to {aspect['max']}"
        if aspect["min"] is not None
        else f"{aspect['name']}: comparisons only"
        for aspect in head["aspects"]
    ]
    questions = [
        f"{row['campaign']}, {aspect['name']}: {one_line(aspect.get('question', '')) or NOT_RECORDED}{_labels(aspect)}"
        for row in facts.campaigns
        for aspect in row["told"].get("aspects", [])
    ]
    kinds = [f"{row['campaign']}: {_KINDS.get(row['kind'], row['kind'])}" for row in facts.campaigns]
    return [
        ("Which qualities were judged, on which scales?", _list(names)),
        ("What is the exact wording of each question?", _list(questions)),
        ("In which form were judgements given?", _list(kinds) if kinds else _ways(facts)),
        ("How is each quality defined?", NOT_RECORDED),
    ]


def _labels(aspect: Mapping[str, Any]) -> str:
    labels = aspect.get("labels") or {}
    return f" ({', '.join(f'{value} = {label}' for value, label in labels.items())})" if labels else ""


def _ways(facts: Facts) -> str:
    return _list(sorted({WAYS[way] for _, way in facts.judged}))


def _done(facts: Facts) -> Answers:
    judging = [row for row in facts.campaigns if row["kind"] not in _WRITING]

    def each(text: Any) -> str:
        return _list(f"{row['campaign']}: {text(row['told'])}" for row in judging)

    when = [
        f"{row['campaign']}: {row['told'].get('opened') or '?'} to {row['told'].get('closed') or row['told']['state']}"
        for row in facts.campaigns
    ]
    return [
        ("When did it take place?", _list(when)),
        ("How many judgements does each unit have?", each(lambda description: f"{description['overlap']} planned")),
        (
            "In which order and on which side were texts shown?",
            each(lambda description: "random order and sides for each person") if judging else NOT_RECORDED,
        ),
        ("Did raters know the system of a text?", "no; system names are hidden" if judging else NOT_RECORDED),
        (
            "How were pairs chosen?",
            each(lambda row: f"{row['adaptive']} of {row['judgements']} adaptively, with recorded probability")
            if any(row["told"].get("adaptive") for row in judging)
            else "at random" if judging else NOT_RECORDED,
        ),
        (
            "How was attention checked?",
            each(
                lambda description: (
                    f"{description['control_units']} control units, {description['control_answers']} answers, "
                    f"{description['controls_failed']} failed; {description['repeats']} repeated"
                )
            ),
        ),
        ("How long did a judgement take?", each(lambda description: _seconds(description))),
        ("Could raters skip texts, correct answers and add notes?", each(_freedom)),
    ]  # fmt: skip


def _seconds(description: Mapping[str, Any]) -> str:
    if description.get("median_seconds") is None:
        return NOT_RECORDED
    return f"{description['median_seconds']} s (median), {description['hours']} hours in total"


def _freedom(description: Mapping[str, Any]) -> str:
    options = description.get("options") or {}
    may = [word for name, word in _FREEDOMS if options.get(name, True)]
    return f"{', '.join(may) or 'no'}; {description['skipped']} skipped, {description['flags']} flags"


_FREEDOMS = (("allow_skip", "skip"), ("allow_revise", "correct"), ("allow_note", "remark"))


def _outcome(facts: Facts) -> Answers:
    lines = [
        f"{aspect}, {WAYS[way]}: {one.n:,} judgements of {one.n_units:,}, alpha {agreement(one, way)}"
        for (aspect, way), one in sorted(facts.judged.items())
    ]
    verdicts = [
        f"{aspect}, {WAYS[way]}: " + ", ".join(f"{name} {share(n, one.n)}" for name, n in sorted(one.verdicts.items()))
        for (aspect, way), one in sorted(facts.judged.items())
        if one.verdicts
    ]
    late = sum(int(row["told"].get("late") or 0) for row in facts.campaigns)
    excluded = [
        f"{row['name']}: {len(row['raters'])} raters, {one_line(row['reason'])}" for row in facts.filters
        if not row["withdrawn_at"]
    ]  # fmt: skip
    return [
        ("How many judgements are there, and how high is the agreement?", _list(lines)),
        ("How often was each verdict given?", _list(verdicts) if verdicts else "no comparisons"),
        ("Which judgements are excluded from results?", _list(excluded) if excluded else "no rater filters"),
        ("How many answers were late?", f"{late} (stored, marked as extra)"),
        (
            "How are the results computed?",
            "`leaderboard.json` holds each table with its settings, method, seed and number of resamples.",
        ),
    ]


def _ethics(facts: Facts, options: ExportOptions) -> Answers:
    return [
        ("Was there an ethics review?", NOT_RECORDED),
        ("What did raters consent to?", NOT_RECORDED),
        ("How are raters identified in these files?", _NAMED[options.raters]),
        (
            "What is published about individual raters?",
            "times, notes and statistics by rater, with consent" if options.attributes else "only their judgements",
        ),
        ("Could the texts be distressing or harmful?", NOT_RECORDED),
    ]


def _campaign(row: Mapping[str, Any]) -> list[str]:
    description = row["told"]
    lines = [
        f"## Campaign {escape_markdown(row['campaign'])}: {escape_markdown(description.get('name', ''))}",
        "",
        "Guidelines as shown to raters:",
        "",
    ]
    text = str(description.get("guidelines") or "").strip()
    return lines + ([f"> {line}".rstrip() for line in text.splitlines()] if text else [NOT_RECORDED])


def _list(rows: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(row)}" for row in rows) or NOT_RECORDED
