"""Sections and next steps on the overview of a project. Apps register functions in `AppConfig.ready`.

Orders in use: counts 10, campaigns 20, writing 25, leaderboard 30, activity 40, people 50. Steps: data 10, people 20,
campaigns 30, scores 40, writing 45, rankings 50."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.side_figures import side_figure


@dataclass(frozen=True)
class Step:
    """A next step: its title, a text (purpose or progress), whether it is done, and a link."""

    title: str
    text: str
    url: str
    action: str
    done: bool = False


@dataclass(frozen=True)
class CountColumn:
    """A column in the list of projects: `values[project id]`."""

    label: Any
    values: dict[int, int]


CountFunction = Callable[[HttpRequest, list[Project]], dict[int, int]]
SectionFunction = Callable[[HttpRequest, Project], str | None]
FigureFunction = Callable[[HttpRequest, Project], list[tuple[Any, int]]]
StepFunction = Callable[[HttpRequest, Project], Step | None]

_sections: dict[str, tuple[int, SectionFunction]] = {}
_steps: dict[str, tuple[int, StepFunction]] = {}
_figures: dict[str, tuple[int, FigureFunction]] = {}
_counts: dict[Any, tuple[int, Callable[..., CountColumn]]] = {}


def register_section(name: str, order: int, function: SectionFunction) -> None:
    """Register `function(request, project)`, which returns safe HTML (`render_to_string`), or None to show nothing."""
    _sections[name] = (order, function)


def register_step(name: str, order: int, function: StepFunction) -> None:
    """Register `function(request, project)`, which returns the step for this user, or None."""
    _steps[name] = (order, function)


def list_sections(request: HttpRequest, project: Project) -> list[str]:
    """Return the sections of a project as safe HTML, in their order."""
    return [html for html in _call(_sections, lambda name: _("A section of this overview"), request, project) if html]


def list_steps(request: HttpRequest, project: Project) -> list[Step]:
    """Return the next steps of a project for this user, in their order."""
    return [step for step in _call(_steps, lambda name: _("A next step"), request, project) if step is not None]


def register_figures(name: str, order: int, function: FigureFunction) -> None:
    """Register `function(request, project)`, which returns the labels and counts at the head of an overview."""
    _figures[name] = (order, function)


def list_figures(request: HttpRequest, project: Project) -> list[tuple[Any, int]]:
    """Return the counts of a project, in their order."""
    counted = _call(_figures, lambda name: _("The counts of this overview"), request, project)
    return [figure for figures in counted for figure in figures]


def register_count(label: Any, order: int, function: CountFunction) -> None:
    """Register `function(request, projects)`, which returns a count per project id in a single query."""
    _counts[label] = (order, lambda request, projects: CountColumn(label, function(request, projects)))


def list_counts(request: HttpRequest, projects: list[Project]) -> list[CountColumn]:
    """Return the registered counts of projects, in their order."""
    return _call(_counts, lambda label: _("The column %(label)s") % {"label": label}, request, projects)


def _call(
    functions: Mapping[str, tuple[int, Callable[..., Any]]], label: Callable[[str], str], *arguments: Any
) -> list[Any]:
    """Call the functions in their order; one that fails is left out and reported under its label."""
    results = []
    for name, (_order, function) in sorted(functions.items(), key=lambda pair: pair[1][0]):
        with side_figure(label(name)):
            results.append(function(*arguments))
    return results
