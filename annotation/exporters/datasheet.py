"""The human-evaluation datasheet of an export, `DATASHEET.md`: the questions that such sheets ask, in our words, with
the answers that project and campaigns know. What nobody recorded is said to be so and left for people to fill in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evalapp.markup import escape_markdown, one_line
from evalapp.names import natural_key
from evalapp.side_figures import FAILED, side_figure

from .card import WAYS, agreement, share
from .facts import NOT_RECORDED, Facts
from .options import ExportOptions

Head = Mapping[str, Any]
Answers = list[tuple[str, str]]
_KINDS = {
    "likert": "each output is rated on scales", "pairwise": "two outputs of one item are compared",
    "turing": "an output is compared with a reference", "ream": "references are written, with a reliability score",
    "constraint": "references are written under a constraint",
}  # fmt: skip
_WRITING = ("ream", "constraint")
_NAMED = {
    "kept": "pseudonyms for people of this installation; ids of uploads as they came, unless they tell who somebody is",
    "pseudonyms": "pseudonyms, the same in every export of the project",
    "as-uploaded": "ids of uploads as they came; pseudonyms for people of this installation",
}


def write_datasheet(head: Head, facts: Facts, wishes: ExportOptions) -> str:
    """The whole file."""
    lines = [
        f"# Human-evaluation datasheet: {escape_markdown(head['name'])}",
        "",
        "Filled in from what the project and its campaigns know. Where an answer reads “not recorded”, nobody has",
        "told; please complete it before publishing.",
    ]
    sections: Sequence[tuple[str, Callable[[], Answers]]] = (
        ("1 Where it comes from", lambda: _origin(head)),
        ("2 What was evaluated", lambda: _evaluated(head, facts)),
        ("3 How the items were chosen", lambda: _chosen(facts)),
        ("4 Who judged", lambda: _people(facts)),
        ("5 What was asked", lambda: _asked(head, facts)),
        ("6 How it was done", lambda: _done(facts)),
        ("7 What came of it", lambda: _outcome(facts)),
        ("8 Ethics and privacy", lambda: _ethics(facts, wishes)),
    )
    for title, answer_all in sections:
        lines += ["", f"## {title}"]
        answers: Answers = [("What is recorded?", f"nothing can be said: {FAILED}")]
        with side_figure(f"Section {title[0]} of DATASHEET.md"):
            answers = answer_all()
        for question, answer in answers:
            lines += ["", f"**{question}**", "", answer or NOT_RECORDED]
    for row in facts.campaigns:
        with side_figure("A campaign of DATASHEET.md"):
            lines += ["", *_campaign(row)]
    return "\n".join(lines) + "\n"


def _origin(head: Head) -> Answers:
    return [
        ("Which paper or report tells of this evaluation?", NOT_RECORDED),
        ("Where do the data come from?", escape_markdown(head["source"])),
        ("Under which licence may they be used?", escape_markdown(head["licence"])),
        ("Who answers questions about it?", NOT_RECORDED),
    ]


def _evaluated(head: Head, facts: Facts) -> Answers:
    kinds: dict[str, list[str]] = {}
    for system in sorted(facts.systems, key=natural_key):
        kinds.setdefault(facts.kinds.get(system, "machine"), []).append(system)
    systems = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(kinds.items()))
    return [
        ("What do the systems do?", escape_markdown(head["task"])),
        ("In which language?", escape_markdown(head["lang"])),
        ("Which systems were evaluated, and of which kind are they?", escape_markdown(systems)),
        ("How many outputs are there?", f"{facts.counts['outputs']:,} for {facts.counts['items']:,} items"),
        ("How were the systems made and run?", NOT_RECORDED),
    ]


def _chosen(facts: Facts) -> Answers:
    plans = [f"{row['campaign']}: {_plan(row['told'].get('plan') or {})}" for row in facts.campaigns]
    return [
        ("How were items and outputs chosen for judging?", _list(plans)),
        (
            "How many judgements were planned, and why that many?",
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
    told = row["told"]
    units = told.get("units") or 0
    return f"{units:,} x {told['overlap']}" if told.get("overlap") else f"{units:,}"


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
        ("How many judgements at most by one person?", _list(most)),
        ("Who are they, and what do they know of the matter?", NOT_RECORDED),
        ("How were they found, and paid?", NOT_RECORDED),
        ("Did authors of a system take part?", NOT_RECORDED),
        ("How were they prepared?", _prepared(facts)),
        ("Which judgements were not made by people?", "none" if simulated == "none" else f"simulated: {simulated}"),
    ]


def _prepared(facts: Facts) -> str:
    told = [
        f"{row['campaign']}: {row['told']['practice_units']} practice items"
        + (", guidelines (below)" if row["told"].get("guidelines") else "")
        for row in facts.campaigns
        if row["kind"] not in _WRITING
    ]
    return _list(told)


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
        ("How exactly was each question worded?", _list(questions)),
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
        ("How many judgements does each unit have?", each(lambda told: f"{told['overlap']} planned")),
        (
            "In which order, and on which side, did people see what they judged?",
            each(lambda told: "random for each person; sides exchanged at random") if judging else NOT_RECORDED,
        ),
        ("Did people know which system a text was by?", "no; texts carry no name" if judging else NOT_RECORDED),
        (
            "How were pairs chosen?",
            each(lambda told: f"{told['adaptive']} of {told['judgements']} adaptively, with recorded chance")
            if any(row["told"].get("adaptive") for row in judging)
            else "at random" if judging else NOT_RECORDED,
        ),
        (
            "How was attention checked?",
            each(
                lambda told: (
                    f"{told['control_units']} control units, {told['control_answers']} answers, "
                    f"{told['controls_failed']} failed; {told['repeats']} repeated"
                )
            ),
        ),
        ("How long did a judgement take?", each(lambda told: _seconds(told))),
        ("Could people skip, correct themselves, remark?", each(_freedom)),
    ]  # fmt: skip


def _seconds(told: Mapping[str, Any]) -> str:
    if told.get("median_seconds") is None:
        return NOT_RECORDED
    return f"{told['median_seconds']} s (median), {told['hours']} hours in all"


def _freedom(told: Mapping[str, Any]) -> str:
    options = told.get("options") or {}
    may = [word for name, word in _FREEDOMS if options.get(name, True)]
    return f"{', '.join(may) or 'no'}; {told['skipped']} skipped, {told['flags']} remarks about texts"


_FREEDOMS = (("allow_skip", "skip"), ("allow_revise", "correct"), ("allow_note", "remark"))


def _outcome(facts: Facts) -> Answers:
    found = [
        f"{aspect}, {WAYS[way]}: {one.n:,} judgements of {len(one.units):,}, alpha {agreement(one, way)}"
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
        ("How many judgements are there, and how far do people agree?", _list(found)),
        ("How often was each verdict given?", _list(verdicts) if verdicts else "no comparisons"),
        ("Which judgements are left out of which figures?", _list(excluded) if excluded else "no filter of raters"),
        ("How many answers came after their place was given away?", f"{late} (kept, marked as extra)"),
        (
            "How are the figures computed?",
            "`leaderboard.json` holds each table with its settings, method, seed and number of resamples.",
        ),
    ]


def _ethics(facts: Facts, wishes: ExportOptions) -> Answers:
    return [
        ("Did an ethics board look at it?", NOT_RECORDED),
        ("What did people agree to?", NOT_RECORDED),
        ("How are people named in these files?", _NAMED[wishes.raters]),
        (
            "What is told about single people?",
            "times, remarks and figures by rater, by consent"
            if wishes.attributes
            else "nothing beside their judgements",
        ),
        ("Could the texts distress or harm somebody?", NOT_RECORDED),
    ]


def _campaign(row: Mapping[str, Any]) -> list[str]:
    told = row["told"]
    lines = [
        f"## Campaign {escape_markdown(row['campaign'])}: {escape_markdown(told.get('name', ''))}",
        "",
        "Guidelines as people saw them:",
        "",
    ]
    text = str(told.get("guidelines") or "").strip()
    return lines + ([f"> {line}".rstrip() for line in text.splitlines()] if text else [NOT_RECORDED])


def _list(rows: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(row)}" for row in rows) or NOT_RECORDED
