"""Start the robustness report of an evaluator: its scores by kind of text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run

from ..selectors.catalogue import check_models, get_entry, parse_options
from ..selectors.robustness import KIND
from ..selectors.training import find_trained, list_trained, refuse_away
from ..selectors.written_kinds import SAMPLE, find_sources

MOST_ITEMS = 5000


@dataclass(frozen=True)
class RobustnessOptions:
    """Options of a robustness report."""

    evaluator: str = param(
        help="Evaluator that needs no training, or name of a trained one.", needed=gettext_noop("Name the evaluator.")
    )
    options: dict[str, Any] = param({}, help="Options of the evaluator.")
    sample: int = param(SAMPLE, help="Maximum number of items that come with wrong answers.", low=1, high=MOST_ITEMS)
    seed: int = seed_param()


def start_robustness(
    *, project: Project, user: Any = None, options: RobustnessOptions, send: bool = True, any_encoder: bool = False
) -> Run:
    """Queue the report, or return the active run of the same request.

    `any_encoder`: allow encoders outside the setting ENCODERS, for the command line.
    """
    check_values(options)
    if list_trained(project).filter(slug=options.evaluator).exists():
        trained = find_trained(project, options.evaluator)
        refuse_away(trained)
        get_entry(trained.name)
    else:
        entry = get_entry(options.evaluator)
        if entry.learns:
            text = _("%(name)s must be trained first; choose a trained evaluator.") % {"name": entry.name}
            raise BadInput.for_field("evaluator", text)
        parsed = parse_options(entry, options.options)
        if not any_encoder:
            check_models(entry.options, parsed)
    if find_sources(project).is_empty:
        raise no_texts(project)
    title = _("Robustness of %(name)s") % {"name": options.evaluator}
    return enqueue_run(kind=KIND, project=project, user=user, params=asdict(options), title=title, send=send)


def no_texts(project: Project) -> BadInput:
    """Return the error for a project without texts to compare."""
    text = _(
        "%(project)s has neither texts written under a constraint nor items with wrong answers. Start a writing "
        "campaign of that kind first."
    )
    return BadInput(text % {"project": project.slug})
