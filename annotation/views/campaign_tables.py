"""Rows of the watch page in words: answers with what was judged, coverage of the units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from annotation.allocation.answers import turn
from annotation.models import Judgement, Unit
from annotation.selectors.campaigns_watch import CampaignProgress

_SHORT = {"tie": "tie", "both_bad": "both bad", "cannot_decide": "cannot decide"}


def system_words(output: Any) -> str:
    return f"{output.system.name} at step {output.step}" if output.step is not None else output.system.name


def unit_words(unit: Unit) -> list[str]:
    """What the unit compares, first to second; one name in a rating."""
    names = [system_words(unit.output_a)]
    if unit.output_b is not None:
        names.append(system_words(unit.output_b))
    elif unit.reference is not None:
        names.append(f"reference {unit.reference.position + 1}")
    return names


def answer_lines(rows: Iterable[Judgement], pseudonyms: dict[int, str]) -> list[dict[str, Any]]:
    """Judgements for a table: verdicts name the one chosen, whichever side it stood on."""
    found = []
    for row in rows:
        unit = row.assignment.unit
        names = unit_words(unit)
        sides = {"a": names[0], "b": names[-1]}
        plain = turn(row.answer, row.assignment.side_swapped)
        answers = [
            {
                "aspect": name,
                "value": sides.get(value, _SHORT.get(value, value)) if isinstance(value, str) else f"{value:g}",
            }
            for name, value in plain.items()
        ]
        found.append(
            {
                "row": row,
                "unit": unit,
                "names": names,
                "rater": pseudonyms.get(row.annotator_id, ""),
                "answers": answers,
                "repeat": row.assignment.repeat_number,
            }
        )
    return found


def coverage(progress: CampaignProgress) -> list[dict[str, Any]]:
    """How many units have 0, 1, ... k answers, with the share for a bar."""
    most = max([progress.campaign.overlap, *progress.units_by_answers])
    return [
        {"answers": k, "units": progress.units_by_answers.get(k, 0), "complete": k >= progress.campaign.overlap}
        for k in range(most + 1)
    ]
