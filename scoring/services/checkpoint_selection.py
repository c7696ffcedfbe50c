"""Start a selection report: the checkpoint or variant that each evaluator selects."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run

from ..selectors.inputs import get_reference_set
from ..selectors.selecting import KIND, check_chooser, has_choices, judged_aspect, usual_choosers

MOST_EVALUATORS, MOST_RUNS = 40, 100
#: As in the paper on perception scores: ten runs of each kind.
RUNS = 10


@dataclass(frozen=True)
class SelectionOptions:
    """Options of a selection report."""

    aspect: str = param("", help="Judged aspect; required if people judged several.")
    evaluators: list[str] = param(
        [], help="Evaluators of the catalogue, or of this project; empty: all that were applied."
    )
    variants: dict[str, list[str]] = param(
        {}, help="Name -> systems that are its variants, instead of `variant_of` in the meta of systems."
    )
    references: str = param(ORIGINAL, help="Reference set of the scores.")
    runs: int = param(
        RUNS, help="Number of parts into which items are split; each evaluator selects once in each.", low=1,
        high=MOST_RUNS,
    )  # fmt: skip
    seed: int = seed_param()


def start_selection(*, project: Project, user: Any = None, options: SelectionOptions, send: bool = True) -> Run:
    """Queue the report, or return the active run of the same request."""
    check_values(options)
    get_reference_set(project, options.references)
    aspect = judged_aspect(project, options.aspect)
    known = set(System.objects.filter(project=project).values_list("name", flat=True))
    unknown = sorted({name for names in options.variants.values() for name in names} - known)
    if unknown:
        text = _("Unknown systems in %(project)s: %(names)s.")
        raise BadInput.for_field("variants", text % {"project": project.slug, "names": ", ".join(unknown[:3])})
    if not options.variants and not has_choices(project):
        text = _(
            "%(project)s has nothing to select from: upload outputs of a system at different steps, or name systems "
            "that are variants of each other."
        )
        raise BadInput(text % {"project": project.slug})
    names = list(dict.fromkeys(options.evaluators)) or usual_choosers(project, options.references)
    if not names:
        raise BadInput.for_field("evaluators", _("Apply an evaluator first, or name some."))
    if len(names) > MOST_EVALUATORS:
        text = _("Name at most %(n)d evaluators.") % {"n": MOST_EVALUATORS}
        raise BadInput.for_field("evaluators", text)
    for name in names:
        check_chooser(project, name)
    params = {**asdict(options), "aspect": aspect, "evaluators": sorted(names)}
    title = _("Selection of checkpoints by %(aspect)s") % {"aspect": aspect}
    return enqueue_run(kind=KIND, project=project, user=user, params=params, title=title, send=send)
