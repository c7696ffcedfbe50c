"""The card of a trained evaluator, written from its training record: what a reader must know before using it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalapp.stats.resampling import FEW_CLUSTERS

if TYPE_CHECKING:
    from scoring.ml.trained import TrainedEvaluator

COEFFICIENTS = ("pearson", "spearman", "kendall")
# Records of before the groups were counted in them say so only where these were few.
_SAID = re.compile(r"the interval rests on (\d+) items only")


def write_card(evaluator: TrainedEvaluator) -> str:
    """Markdown: signature, data, training, correlations with intervals beside the sentinels, known failures."""
    artefact, record, entry = evaluator.artefact, evaluator.record, evaluator.entry
    lines = [f"# {entry.name}", "", entry.summary, ""]
    if entry.citation:
        lines += [f"After {entry.citation.removesuffix('.')}.", ""]
    lines += ["```", evaluator.signature, "```", "", "## Training", ""]
    facts = {
        "Data": f"{record.dataset} ({record.data_hash})",
        "Profile": artefact.profile,
        "Aspects": ", ".join(artefact.aspects) or "none",
        "Encoder": _encoder(evaluator),
        "Examples": ", ".join(f"{n:,} {noun}" for noun, n in record.examples.items()),
        "Groups": f"{len(record.groups):,} learned from, {len(record.dev_groups):,} held out to choose the weights",
        "Seed": str(artefact.seed),
        "Steps": f"{record.steps:,} in {record.seconds:,.0f} s",
        "Versions": ", ".join(f"{name} {number}" for name, number in record.versions.items()),
    }
    lines += ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in facts.items()), ""]
    if record.simulated_judgements:
        lines += [
            f"**{record.simulated_judgements:,} of the judgements it learned from were simulated**, "
            "not made by people.",
            "",
        ]
    lines += ["Options: " + ", ".join(f"{key}={value}" for key, value in artefact.settings.items()), ""]
    if record.metrics:
        lines += ["On the held-out part: " + ", ".join(f"{k} {v:.4g}" for k, v in record.metrics.items()), ""]
    lines += _correlations(record.correlations)
    lines += ["## Known limits", "", *(f"- {note}" for note in _limits(evaluator)), ""]
    return "\n".join(lines)


def _encoder(evaluator: TrainedEvaluator) -> str:
    source = evaluator.artefact.encoder
    if source is None:
        return "none"
    how = "trained with it" if evaluator.artefact.embedded else "frozen"
    return f"{source.short_name}@{source.weights[:8]}, {how}"


def _correlations(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["## Agreement with people", ""]
    if not rows:
        return [*lines, "Not measured: no ratings were held out.", ""]
    lines += [
        "On held-out groups that chose its weights, so rather too good; all outputs together (grouping: none); "
        "intervals: 95 %, bootstrap over groups.",
        "",
        *_few_groups(rows),
        "| evaluator | aspect | n | groups | Pearson | Spearman | Kendall |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        groups = _n_groups(row)
        counts = f"{row['pearson']['n']} | {'-' if groups is None else groups}"
        cells = [_cell(row[kind]) for kind in COEFFICIENTS]
        lines.append(f"| {row['evaluator']} | {row['aspect']} | {counts} | {' | '.join(cells)} |")
    return [*lines, ""]


def _n_groups(row: Mapping[str, Any]) -> int | None:
    """How many groups the intervals of a row rest on; None where its record does not say."""
    if "n_groups" in row:
        return int(row["n_groups"])
    said = next((found for kind in COEFFICIENTS if (found := _SAID.search(row[kind].get("note", "")))), None)
    return None if said is None else int(said[1])


def _few_groups(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is to be said of intervals that rest on few groups, as the leaderboards say it of theirs."""
    counts = [_n_groups(row) for row in rows if any(row[kind]["low"] is not None for kind in COEFFICIENTS)]
    few = sorted({count for count in counts if count is not None and count < FEW_CLUSTERS})
    if not few:
        return []
    span = f"{few[0]}" if len(few) == 1 else f"{few[0]} to {few[-1]}"
    return [
        f"**Intervals that rest on so few groups ({span}) say little:** below {FEW_CLUSTERS} groups they miss the "
        "true value twice as often as they say, or more.",
        "",
    ]


def _cell(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return f"- ({estimate['note']})"
    text = f"{estimate['value']:.3f}"
    if estimate["low"] is not None:
        text += f" [{estimate['low']:.3f}, {estimate['high']:.3f}]"
    return text


def _limits(evaluator: TrainedEvaluator) -> list[str]:
    limits = list(evaluator.record.notes)
    if evaluator.entry.aspect != "none":
        limits.append("It learned from these people's judgements of these systems; other data are another matter.")
    limits.append("Scores on the groups it learned from say nothing about it; split.json names them.")
    return limits
