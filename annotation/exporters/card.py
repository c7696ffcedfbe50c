"""The dataset card of an export, `README.md`: the header for the Hugging Face hub, the contents of the folder, and
facts on the judgements from `facts`. Unrecorded facts are marked as such."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from evalapp.markup import code_markdown, escape_markdown, quote_yaml
from evalapp.side_figures import FAILED, failure_sentence, failures_so_far, side_figure

from .facts import NOT_RECORDED, AspectFacts, Facts
from .options import ExportOptions

#: Licences by their identifiers on the hub.
_LICENCES = re.compile(
    r"(?:apache-2\.0|mit|bsd(?:-[23]-clause)?|gpl(?:-[23]\.0)?|lgpl(?:-[23]\.[01])?|agpl-3\.0|cc0-1\.0|cc|unlicense|pddl"
    r"|cc-by(?:-(?:sa|nc|nd|nc-sa|nc-nd))?-[234]\.[05]|odc-by|odbl|openrail|other|unknown)"
)
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_TASKS = {
    "dialogue": "text-generation", "story": "text-generation", "data-to-text": "table-to-text",
    "instruction": "text-generation", "unconditional": "text-generation",
}  # fmt: skip
#: The tables of a folder, the most useful first: what one row is.
ABOUT = {
    "items": "contexts, their references and the group by which data are split",
    "outputs": "each system's text for each item",
    "ratings": "a value that a rater gave an output (or a whole dialogue) for an aspect",
    "comparisons": "one verdict by one rater on two outputs, or on an output and a reference",
    "aggregated_ratings": "mean, median and spread over raters, by output and aspect",
    "aggregated_comparisons": "how often each verdict was given, by pair and aspect",
    "dialogues": "whole dialogues",
    "systems": "what kind each system is; one that is not listed is a machine",
    "references": "named sets of further references, with their origin",
    "attempts": "every attempt while references were written",
    "corpus": "the pairs in which candidates are searched",
    "score_sets": "evaluators with the signature under which they scored",
    "scores": "a score for an output in a set of scores",
    "filters": "rater filters: raters excluded from tables, with the reason",
    "campaigns": "how judgements and references were collected",
    "judge_answers": "raw answers of language models that judged, with log-probabilities, tokens and cost",
    "judgements": "each judgement of a campaign: position in the rater's order, sides, probability of its pair",
    "raters": "statistics by rater, with consent",
    "audit": "the audit log of the project",
}
WAYS = {
    "ratings": "ratings of outputs", "dialogues": "ratings of dialogues", "comparisons": "comparisons of two outputs",
    "turing": "comparisons with a reference",
}  # fmt: skip


def write_card(head: Mapping[str, Any], facts: Facts, options: ExportOptions, files: Sequence[str]) -> str:
    """The content of README.md."""
    tables = _tables(files)
    parts = []
    for name, write in (
        ("The head of README.md", lambda: _yaml(head, facts, options, tables)),
        ("The summary of README.md", lambda: _about(head, facts)),
        ("The list of files of README.md", lambda: _files(facts, options, tables)),
        ("The judgements of README.md", lambda: _judgements(facts)),
        ("The scores of README.md", lambda: _scores(facts, options)),
        ("The use of README.md", lambda: _use(options, tables)),
    ):
        with side_figure(name):
            parts.append(write())
    if sentence := failure_sentence(failures_so_far()):
        parts.append(f"\n## Not in this export\n\n{sentence}")
    return "\n".join(part.rstrip() + "\n" for part in parts if part)


def _tables(files: Sequence[str]) -> dict[str, str]:
    """Files by table, the most useful first."""
    tables = {file.split(".")[0]: file for file in files}
    return {table: tables[table] for table in ABOUT if table in tables}


# ---- the head ---------------------------------------------------------------------------------------------------


def _yaml(head: Mapping[str, Any], facts: Facts, options: ExportOptions, tables: Mapping[str, str]) -> str:
    licence = str(head["licence"]).strip().lower().replace(" ", "-")
    known = _LICENCES.fullmatch(licence) is not None
    lines = ["---", f"pretty_name: {quote_yaml(head['name'])}", "language:", f"- {quote_yaml(head['lang'] or 'und')}"]
    lines.append(f"license: {licence if known else 'other' if licence else 'unknown'}")
    if licence and not known:
        lines.append(f"license_name: {quote_yaml(' '.join(str(head['licence']).split())[:100])}")
    lines += ["task_categories:", f"- {_TASKS.get(head['task'], 'text-generation')}"]
    lines += ["tags:", "- human-evaluation", f"- {quote_yaml(head['task'])}"]
    if facts.n_simulated:
        lines.append("- simulated-judgements")
    lines += ["size_categories:", f"- {_size(max(facts.counts['outputs'], facts.n_judgements))}", "configs:"]
    readable = [table for table in tables if not _unreadable(facts, options, table)]
    for number, table in enumerate(readable):
        lines += [f"- config_name: {table}", f"  data_files: {quote_yaml(tables[table])}"]
        if number == 0:
            lines.append("  default: true")
    if not readable:
        lines[-1] = "configs: []"
    return "\n".join([*lines, "---"])


def _unreadable(facts: Facts, options: ExportOptions, table: str) -> str:
    """The column that stops `datasets` from reading a table as JSON; Parquet has typed columns."""
    return facts.mixed_column(table) if options.format == "jsonl" else ""


def _size(n: int) -> str:
    return next((name for limit, name in _SIZES if n < limit), "n>10M")


# ---- the text ---------------------------------------------------------------------------------------------------


def _about(head: Mapping[str, Any], facts: Facts) -> str:
    aspects = ", ".join(str(aspect["name"]) for aspect in head["aspects"]) or NOT_RECORDED
    return "\n".join(
        [
            f"# {escape_markdown(head['name'])}",
            "",
            "Texts with human judgements and scores by automatic evaluators. `DATASHEET.md` says how the",
            "judgements were made.",
            "",
            "| | |",
            "|---|---|",
            f"| task | {cell(head['task'])} |",
            f"| language | {cell(head['lang'])} |",
            f"| licence | {cell(head['licence'])} |",
            f"| source | {cell(head['source'])} |",
            f"| aspects | {cell(aspects)} |",
            f"| items, groups | {facts.counts['items']:,}, {facts.n_groups:,} |",
            f"| systems, outputs | {len(facts.systems):,}, {facts.counts['outputs']:,} |",
            f"| judgements, raters | {facts.n_judgements:,}, {facts.n_raters:,} |",
            f"| simulated judgements | {share(facts.n_simulated, facts.n_judgements)} |",
            "",
            str(head["notes"]).strip(),
        ]
    )


def _files(facts: Facts, options: ExportOptions, tables: Mapping[str, str]) -> str:
    lines = ["## Files", "", "| file | rows | one row is |", "|---|---:|---|"]
    lines += [f"| `{file}` | {_rows(facts, table)} | {ABOUT[table]} |" for table, file in tables.items()]
    lines += ["", "`dataset.json` holds name, licence and scales."]
    if options.format == "safe-csv":
        lines.append(
            "A cell that a spreadsheet could take for a formula has an apostrophe in front; take one away to have the "
            "text as it was."
        )
    for table in tables:
        column = _unreadable(facts, options, table)
        if column:
            lines.append(
                f"`{tables[table]}` is not among the configurations of this card: the values in `{column}` are of "
                "several kinds, which `load_dataset` does not read from JSON. Export as Parquet for that."
            )
    return "\n".join(["", *lines])


def _rows(facts: Facts, table: str) -> str:
    return f"{facts.counts[table]:,}" if facts.counts[table] else ""


def _judgements(facts: Facts) -> str:
    if not facts.judged:
        return "\n## Judgements\n\nThere are no judgements."
    lines = [
        "",
        "## Judgements",
        "",
        "Agreement is Krippendorff's alpha with a 95 % interval over what was judged.",
        "",
    ]
    lines += ["| aspect | what | judgements | judged | raters | per judged | simulated | agreement |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---|"]
    for (aspect, way), judged in sorted(facts.judged.items()):
        lines.append(
            f"| {cell(aspect)} | {WAYS[way]} | {judged.n:,} | {judged.n_units:,} | {judged.n_raters:,}"
            f" | {judged.n / judged.n_units:.1f} | {share(judged.simulated, judged.n)} | {agreement(judged, way)} |"
        )
    for row in facts.filters:
        state = " (withdrawn)" if row["withdrawn_at"] else ""
        lines += [
            "",
            f"Filter {code_markdown(row['name'])}{state} leaves out {len(row['raters'])} raters: "
            + escape_markdown(row["reason"]),
        ]
    return "\n".join(lines)


def agreement(judged: AspectFacts, way: str) -> str:
    """Alpha as text: interval scale for ratings, nominal for verdicts; or the reason why there is none."""
    estimate = None
    with side_figure(_("The agreement of README.md and DATASHEET.md")):
        estimate = judged.agreement("interval" if way in ("ratings", "dialogues") else "nominal")
    if estimate is None:
        return f"- ({FAILED})"
    if not estimate.is_defined:
        return f"- ({estimate.note})"
    text = f"{estimate.value:.3f}"
    return f"{text} [{estimate.low:.3f}, {estimate.high:.3f}]" if estimate.has_interval else text


def _scores(facts: Facts, options: ExportOptions) -> str:
    if not facts.score_sets:
        return ""
    lines = ["", "## Scores", "", "| set | evaluator | references | signature |", "|---|---|---|---|"]
    lines += [
        f"| {code_markdown(row['id'])} | {cell(row['evaluator'])} | {cell(row['references'] or 'none needed')}"
        f" | {code_markdown(row['signature'])} |"
        for row in facts.score_sets
    ]
    return "\n".join(lines)


def _use(options: ExportOptions, tables: Mapping[str, str]) -> str:
    first = next(iter(tables), "items")
    lines = [
        "", "## Use", "", "```python", "from datasets import load_dataset", "",
        f'rows = load_dataset("FOLDER", "{first}", split="train")', "```",
    ]  # fmt: skip
    if options.scores and options.per_rater:
        lines += [
            "", "The tables in `leaderboard.json` can be recomputed from these files alone, without web program or",
            "database:", "", "```", "python -m evalapp.stats.recompute FOLDER", "```",
        ]  # fmt: skip
    elif options.scores:
        lines += ["", "Judgements by individual raters were left out, so tables cannot be recomputed from this folder."]
    return "\n".join(lines)


def cell(text: Any) -> str:
    """A text as a cell of a Markdown table."""
    return escape_markdown(text) or NOT_RECORDED


def share(part: int, whole: int) -> str:
    if not whole:
        return "none"
    return "none" if not part else f"{part:,} ({100 * part / whole:.0f} %)"
