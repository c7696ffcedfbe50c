"""Progress of a writing campaign: figures, plots by round with intervals, and a comparison of arms."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import WritingCampaign
from annotation.selectors.writing_watch import watch
from evalapp.accounts.models import User
from evalapp.side_figures import side_figure

from .writing_forms import ARM_NAMES
from .writing_plots import Dot, Line, draw_rounds, looks

#: The maximum number of lines in a plot; the table has all lines.
MOST_LINES = 8


def _lines(rows: Mapping[str, Sequence[Any]], names: Mapping[str, str]) -> list[Line]:
    lines = []
    for name, points in rows.items():
        dots = tuple(
            Dot(point.round, point.mean, point.low, point.high, point.n) for point in points if point.mean is not None
        )
        if dots:
            lines.append(Line(str(names.get(name, name)), dots))
    return lines


def plot(
    rows: Mapping[str, Sequence[Any]],
    names: Mapping[str, str],
    *,
    title: str,
    across: str,
    axis: str = "",
) -> dict[str, Any] | None:
    """A plot with legend and table; None if there are no points."""
    with side_figure(f"The plot {title}"):
        lines = _lines(rows, names)
        if not lines:
            return None
        shown = lines[:MOST_LINES]
        return {
            "title": title,
            "svg": draw_rounds(shown, title=title, axis=axis or _("predicted reliability, 95 %"), across=across),
            "legend": [{"name": line.name, "colour": colour, "dash": dash} for line, colour, dash in looks(shown)],
            "lines": lines,
            "hidden": len(lines) - len(shown),
        }
    return None


def make_watch_context(user: User, campaign: WritingCampaign) -> dict[str, Any]:
    progress = watch(user=user, campaign=campaign)
    across = _("candidates finished") if campaign.in_rounds else _("references written")
    plots = [
        plot(progress.by_arm, ARM_NAMES, title=_("By arm"), across=across),
        plot(progress.by_person, {}, title=_("By annotator"), across=across),
    ]
    return {
        "figures": progress.figures,
        "arms": [{"row": row, "name": ARM_NAMES.get(row.name, row.name)} for row in progress.arms],
        "people": [{"row": row, "arm": ARM_NAMES.get(row.arm, row.arm)} for row in progress.people],
        "plots": [one for one in plots if one is not None],
        "across": across,
        "comparisons": [
            {"a": ARM_NAMES.get(row.a, row.a), "b": ARM_NAMES.get(row.b, row.b), "row": row}
            for row in progress.comparisons
        ],
    }
