"""Sections and next steps on the overview of a project. Apps register functions in `AppConfig.ready`.

Orders in use: counts 10, campaigns 20, writing 25, leaderboard 30, runs 40, people 50. Steps: data 10, people 20,
campaigns 30, scores 40, writing 45, rankings 50."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest

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
    """A column in the list of projects and a count on each overview: `values[project id]`."""

    label: str
    values: dict[int, int]


CountFunction = Callable[[HttpRequest, list[Project]], dict[int, int]]
SectionFunction = Callable[[HttpRequest, Project], str | None]
StepFunction = Callable[[HttpRequest, Project], Step | None]

_sections: dict[str, tuple[int, SectionFunction]] = {}
_steps: dict[str, tuple[int, StepFunction]] = {}
_counts: dict[str, tuple[int, CountFunction]] = {}


def register_section(name: str, order: int, function: SectionFunction) -> None:
    """Register `function(request, project)`, which returns safe HTML (`render_to_string`), or None to show nothing."""
    _sections[name] = (order, function)


def register_step(name: str, order: int, function: StepFunction) -> None:
    """Register `function(request, project)`, which returns the step for this user, or None."""
    _steps[name] = (order, function)


def sections_for(request: HttpRequest, project: Project) -> list[str]:
    ordered = sorted(_sections.values(), key=lambda pair: pair[0])
    found = []
    for _, function in ordered:
        with side_figure("A section of this overview"):
            found.append(function(request, project))
    return [html for html in found if html]


def steps_for(request: HttpRequest, project: Project) -> list[Step]:
    ordered = sorted(_steps.values(), key=lambda pair: pair[0])
    found = []
    for _, function in ordered:
        with side_figure("A next step"):
            found.append(function(request, project))
    return [step for step in found if step is not None]


def register_count(label: str, order: int, function: CountFunction) -> None:
    """Register `function(request, projects)`, which returns a count per project id in a single query."""
    _counts[label] = (order, function)


def counts_for(request: HttpRequest, projects: list[Project]) -> list[CountColumn]:
    ordered = sorted(_counts.items(), key=lambda pair: pair[1][0])
    found = []
    for label, (_, function) in ordered:
        with side_figure(f"The column {label}"):
            found.append(CountColumn(label, function(request, projects)))
    return found
