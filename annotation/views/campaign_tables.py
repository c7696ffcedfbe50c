"""Table rows of judging campaigns: answers with what was judged, and coverage of units."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.answers import turn
from annotation.models import Judgement, Unit
from annotation.selectors.campaigns_watch import CampaignProgress

_SHORT = {
    "tie": gettext_lazy("tie"), "both_bad": gettext_lazy("both bad"), "cannot_decide": gettext_lazy("cannot decide"),
}  # fmt: skip


def describe_system(output: Any) -> str:
    if output.step is None:
        return output.system.name
    return _("%(system)s at step %(step)d") % {"system": output.system.name, "step": output.step}


def describe_unit(unit: Unit) -> list[str]:
    """The names of the texts in a unit, in order; a single name in a rating."""
    names = [describe_system(unit.output_a)]
    if unit.output_b is not None:
        names.append(describe_system(unit.output_b))
    elif unit.reference is not None:
        names.append(_("reference %(number)d") % {"number": unit.reference.position + 1})
    return names


def answer_lines(rows: Iterable[Judgement], pseudonyms: dict[int, str]) -> list[dict[str, Any]]:
    """Judgements for a table. Verdicts give the name of the preferred text."""
    lines = []
    for row in rows:
        unit = row.assignment.unit
        names = describe_unit(unit)
        sides = {"a": names[0], "b": names[-1]}
        plain = turn(row.answer, row.assignment.side_swapped)
        answers = [
            {
                "aspect": name,
                "value": sides.get(value, _SHORT.get(value, value)) if isinstance(value, str) else f"{value:g}",
            }
            for name, value in plain.items()
        ]
        lines.append(
            {
                "row": row,
                "unit": unit,
                "names": names,
                "rater": pseudonyms.get(row.annotator_id, ""),
                "answers": answers,
                "repeat": row.assignment.repeat_number,
            }
        )
    return lines


def compute_coverage(progress: CampaignProgress) -> list[dict[str, Any]]:
    """The number of units with 0, 1, ... k answers."""
    most = max([progress.campaign.overlap, *progress.units_by_answers])
    return [
        {"answers": k, "units": progress.units_by_answers.get(k, 0), "complete": k >= progress.campaign.overlap}
        for k in range(most + 1)
    ]
