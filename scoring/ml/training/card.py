"""The model card of a trained evaluator, written from its training record. It stays in English: it is a file of the
artefact, which travels between installations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from evalapp.markup import escape_markdown, one_line
from evalapp.stats.resampling.bootstrap import FEW_CLUSTERS
from scoring.ml.artefact import Artefact, strip_folder
from scoring.ml.catalogue import Entry

Row: TypeAlias = Mapping[str, Any]
COEFFICIENTS = ("pearson", "spearman", "kendall")
#: The shares of right verdicts, and on how many groups each rests.
SHARES = {"decided": "n_groups_decided", "verdicts": "n_groups"}
HELD_OUT = "On held-out groups that also chose the weights, so slightly optimistic"
INTERVALS = "intervals: 95 %, bootstrap over groups"
#: Suffix of a share of three verdicts, by origin of the evaluator's ties (`training.verdicts`).
MARKS = {"own": "", "cross-validated": "", "fitted": " (fitted)"}
# Records from before the groups were counted name them only in a note, if they were few.
_SAID = re.compile(r"(?:the interval rests on|no interval:) (\d+) items only")


def write_card(entry: Entry, artefact: Artefact, signature: str) -> str:
    """Return the model card of an `artefact` in Markdown: `signature`, data, training, agreement with human judgements
    next to the trivial baselines, known limits. `entry` is the evaluator's line in the catalogue."""
    record = artefact.record
    lines = [f"# {entry.name}", "", entry.summary, ""]
    if entry.citation:
        lines += [f"After {entry.citation.removesuffix('.')}.", ""]
    lines += ["```", one_line(signature), "```", "", "## Training", ""]
    facts = {
        "Data": f"{record.dataset} ({record.data_hash})",
        "Profile": artefact.profile,
        "Aspects": ", ".join(artefact.aspects) or "none",
        "Encoder": _encoder(artefact),
        "Examples": ", ".join(f"{n:,} {noun}" for noun, n in record.examples.items()),
        "Groups": f"{len(record.groups):,} learned from, {len(record.dev_groups):,} held out to choose the weights",
        **{f"Also learned from {row['name']}": describe_set(row) for row in record.sets},
        **_describe_start(record.init),
        "Seed": str(artefact.seed),
        "Steps": f"{record.steps:,} in {record.seconds:,.0f} s",
        "Versions": ", ".join(f"{name} {number}" for name, number in record.versions.items()),
    }
    lines += ["| | |", "|---|---|", *(f"| {key} | {escape_markdown(value)} |" for key, value in facts.items()), ""]
    if record.simulated_judgements:
        lines += [
            f"**{record.simulated_judgements:,} of the judgements it learned from were simulated**, "
            "not made by people.",
            "",
        ]
    options = ", ".join(f"{key}={strip_folder(value)}" for key, value in artefact.settings.items())
    lines += ["Options: " + escape_markdown(options), ""]
    if record.metrics:
        where = "On the held-out part" if record.dev_groups else "In the training"
        lines += [f"{where}: " + ", ".join(f"{k} {v:.4g}" for k, v in record.metrics.items()), ""]
    lines += _agreement(artefact)
    if record.elsewhere:
        lines += _elsewhere(record.elsewhere)
    lines += ["## Known limits", "", *(f"- {one_line(note)}" for note in _limits(entry, artefact)), ""]
    return "\n".join(lines)


def describe_set(row: Row) -> str:
    """Return the numbers of groups of a further set that an evaluator learned from; `row` is of `record.sets`."""
    text = f"{row['groups']:,} groups, {row['dev_groups']:,} held out to choose the weights"
    return f"{text}, {row['left_out']:,} left out because their content is held out" if row["left_out"] else text


def _describe_start(init: Mapping[str, str] | None) -> dict[str, str]:
    if init is None:
        return {}
    return {
        "Began with": f"{init['evaluator']} {init['weights'][:8]}, trained on {init['dataset']} ({init['data_hash']})"
    }


def _encoder(artefact: Artefact) -> str:
    source = artefact.encoder
    if source is None:
        return "none"
    how = "trained with it" if artefact.embedded else "frozen"
    return f"{source.short_name}@{source.weights[:8]}, {how}"


def _agreement(artefact: Artefact) -> list[str]:
    correlations, verdicts = artefact.record.correlations, artefact.record.verdicts
    of = f" for {escape_markdown(', '.join(artefact.aspects))}" if artefact.aspects else ""
    lines = ["## Agreement with people", ""]
    if not correlations and not verdicts:
        if not artefact.record.dev_groups:
            return [
                *lines,
                "Not measured: no groups were held out. Compare it with people on groups it has not seen.",
                "",
            ]
        return [
            *lines,
            f"Not measured: neither ratings{of} of three outputs or more nor comparisons{of} of two outputs with one "
            "most frequent verdict were held out.",
            "",
        ]
    return [
        *lines,
        *(_correlations(correlations) if correlations else []),
        *(describe_verdicts(verdicts) if verdicts else []),
    ]


def _correlations(rows: Sequence[Row]) -> list[str]:
    counts = [_n_groups(row) for row in rows if any(row[kind]["low"] is not None for kind in COEFFICIENTS)]
    lines = [
        f"**Correlations with ratings.** {HELD_OUT}; all outputs together (grouping: none); {INTERVALS}.",
        "",
        *_few_groups(counts),
        "| evaluator | aspect | n | groups | Pearson | Spearman | Kendall |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        groups = _n_groups(row)
        number = f"{row['pearson']['n']} | {'-' if groups is None else groups}"
        cells = [_cell(row[kind]) for kind in COEFFICIENTS]
        lines.append(f"| {_named(row)} | {number} | {' | '.join(cells)} |")
    return [*lines, ""]


def _elsewhere(rows: Sequence[Row]) -> list[str]:
    """Agreement on sets that played no part in the training."""
    lines = [
        f"**On data that played no part in its training.** All outputs of a set together (grouping: none); "
        f"{INTERVALS}.",
        "",
        "| data | evaluator | aspect | n | groups | Pearson | Spearman |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [_cell(row[kind]) for kind in ("pearson", "spearman")]
        number = f"{row['spearman']['n']} | {row['n_groups']}"
        lines.append(f"| {escape_markdown(row['data'])} | {_named(row)} | {number} | {' | '.join(cells)} |")
    return [*lines, ""]


def describe_verdicts(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a card about verdicts on compared pairs; `rows`: as in `record.verdicts`."""
    counts = [row[groups] for row in rows for kind, groups in SHARES.items() if row[kind]["low"] is not None]
    lines = [
        f"**Verdicts on compared pairs.** {HELD_OUT}; {INTERVALS}. Every pair of outputs counts once, with the verdict "
        "most people gave. Decided pairs: the share of pairs without a tied human verdict whose better text "
        "the evaluator finds; equal scores count half, chance level is 0.5. All three verdicts: the share of all pairs "
        "on which its verdict (better, tied or worse) equals the human verdict.",
        "",
        *_few_groups(counts),
        *_describe_pairs(rows),
        "| evaluator | aspect | pairs | groups | decided pairs right | all three verdicts right |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        number = f"{row['n_pairs'] - row['n_missing']} | {row['n_groups']}"
        verdicts = _cell(row["verdicts"]) + MARKS[row["ties"]]
        lines.append(f"| {_named(row)} | {number} | {_cell(row['decided'])} | {verdicts} |")
    return [*lines, "", *_describe_called(rows), *_where_from(rows)]


def _describe_called(rows: Sequence[Row]) -> list[str]:
    """How often an evaluator that may say "tied" decides, how often it is right then, and if forced to decide."""
    return [
        f"- {escape_markdown(row['evaluator'])}, {escape_markdown(row['aspect'])}: of the pairs that people decided it "
        f"decides {_cell(row['coverage'])} and is right then on {_cell(row['right_if_called'])}; forced to decide all, "
        f"it is right on {_cell(row['decided'])}."
        for row in rows
        if "coverage" in row
    ] + ([""] if any("coverage" in row for row in rows) else [])


def _describe_pairs(rows: Sequence[Row]) -> list[str]:
    """The pairs of each aspect, and the share that constant answers reach."""
    lines = []
    for row in {row["aspect"]: row for row in rows}.values():
        left_out = {
            "without one most frequent verdict": row["n_split"],
            "of identical texts": row["n_identical"],
        }
        said = ", ".join(f"{n:,} {what}" for what, n in left_out.items() if n) or "none"
        tied = row["n_tied"] / row["n_pairs"]
        line = (
            f"- {escape_markdown(row['aspect'])}: {row['n_decided']:,} pairs decided and {row['n_tied']:,} tied; "
            f"left out: {said}. Chance level on all pairs: {tied:.3f} by always saying tied, {(1 - tied) / 2:.3f} "
            "by guessing the better text."
        )
        if row["simulated"]:
            line += f" **{row['simulated']:,} of the judgements were simulated**, not made by people."
        lines.append(line)
    return [*lines, ""]


def _where_from(rows: Sequence[Row]) -> list[str]:
    """The origin of the third verdict, by evaluator."""
    said = {
        "own": "{} said by itself what is tied.",
        "cross-validated": "{}: scores that differ by no more than a threshold are tied; the threshold for each fifth "
        "of the groups was found on the others (cross-validated).",
        "fitted": "{} (fitted): for too few groups the threshold below which scores are tied was found on these very "
        "pairs, which flatters.",
    }
    lines = []
    for ties, text in said.items():
        names = dict.fromkeys(row["evaluator"] for row in rows if row["ties"] == ties)
        if names:
            lines += [text.format(", ".join(names)), ""]
    return lines


def _named(row: Row) -> str:
    return f"{escape_markdown(row['evaluator'])} | {escape_markdown(row['aspect'])}"


def _n_groups(row: Row) -> int | None:
    """The number of groups behind a row's intervals; None if its record does not say."""
    if "n_groups" in row:
        return int(row["n_groups"])
    said = next((match for kind in COEFFICIENTS if (match := _SAID.search(row[kind].get("note", "")))), None)
    return None if said is None else int(said[1])


def _few_groups(counts: Sequence[int | None]) -> list[str]:
    """The warning about intervals from few groups, as on the leaderboards."""
    few = sorted({count for count in counts if count is not None and count < FEW_CLUSTERS})
    if not few:
        return []
    span = f"{few[0]}" if len(few) == 1 else f"{few[0]} to {few[-1]}"
    return [
        f"**Intervals from few groups ({span}) say little:** below {FEW_CLUSTERS} groups they miss the true value "
        "at least twice as often as stated.",
        "",
    ]


def _cell(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return f"- ({estimate['note']})"
    text = f"{estimate['value']:.3f}"
    if estimate["low"] is not None:
        text += f" [{estimate['low']:.3f}, {estimate['high']:.3f}]"
    return text


def _limits(entry: Entry, artefact: Artefact) -> list[str]:
    limits = list(artefact.record.notes)
    if entry.aspect != "none":
        text = "It learned from certain raters' judgements about certain systems; agreement may differ on other data."
        limits.append(text)
    limits.append("Scores on its training groups are no evidence; split.json names the groups.")
    return limits
