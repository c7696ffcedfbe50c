"""Start the reports of evaluators: robustness to kinds of text, selections of checkpoints, reliability of references,
and games between systems."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import System
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param, value_faults
from evalapp.common.queue import enqueue_run
from scoring.boards.choices import SUBSETS

from ..models import Evaluator
from ..selectors import games, reports
from ..selectors.catalogue import check_models, get_entry, parse_options
from ..selectors.external import refuse_scoring
from ..selectors.inputs import get_reference_set
from ..selectors.training import find_trained, list_trained, refuse_away
from ..selectors.written_kinds import SAMPLE, find_sources
from .reference_selection import MOST_REFERENCES, find_unsuited

MOST_ITEMS = 5000
MOST_EVALUATORS, MOST_RUNS = 40, 100
#: As in the paper on perception scores: ten runs of each kind.
RUNS = 10
#: Enough items of games for narrow intervals; the cost grows linearly.
ITEMS = 200
SEEDS = 100


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
        if row := Evaluator.objects.filter(project=project, slug=options.evaluator).first():
            refuse_scoring(row)
        entry = get_entry(options.evaluator)
        if entry.learns:
            text = _("%(name)s must be trained first; choose a trained evaluator.") % {"name": entry.name}
            raise BadInput.for_field("evaluator", text)
        parsed = parse_options(entry, options.options)
        if not any_encoder:
            check_models(entry.options, parsed)
    if find_sources(project).is_empty:
        raise no_texts(project)
    title = gettext_noop("Robustness of %(name)s") % {"name": options.evaluator}
    return enqueue_run(kind="robustness", project=project, user=user, params=asdict(options), title=title, send=send)


def no_texts(project: Project) -> BadInput:
    """Return the error for a project without texts to compare."""
    text = _(
        "%(project)s has neither texts written under a constraint nor items with wrong answers. Start a writing "
        "campaign of that kind first."
    )
    return BadInput(text % {"project": project.slug})


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
    aspect = reports.judged_aspect(project, options.aspect)
    known = set(System.objects.filter(project=project).values_list("name", flat=True))
    unknown = sorted({name for names in options.variants.values() for name in names} - known)
    if unknown:
        text = _("Unknown systems in %(project)s: %(names)s.")
        raise BadInput.for_field("variants", text % {"project": project.slug, "names": ", ".join(unknown[:3])})
    if not options.variants and not reports.has_choices(project):
        text = _(
            "%(project)s has nothing to select from: upload outputs of a system at different steps, or name systems "
            "that are variants of each other."
        )
        raise BadInput(text % {"project": project.slug})
    names = list(dict.fromkeys(options.evaluators)) or reports.usual_choosers(project, options.references)
    if not names:
        raise BadInput.for_field("evaluators", _("Apply an evaluator first, or name some."))
    if len(names) > MOST_EVALUATORS:
        text = _("Name at most %(n)d evaluators.") % {"n": MOST_EVALUATORS}
        raise BadInput.for_field("evaluators", text)
    for name in names:
        reports.check_chooser(project, name)
    params = {**asdict(options), "aspect": aspect, "evaluators": sorted(names)}
    title = gettext_noop("Selection of checkpoints by %(aspect)s") % {"aspect": aspect}
    return enqueue_run(kind="selection", project=project, user=user, params=params, title=title, send=send)


@dataclass(frozen=True)
class CurveOptions:
    """Options of reliability curves: predicted and measured reliability by number of references."""

    evaluator: str = param(help="Trained ream.", needed=gettext_noop("Name the trained evaluator."))
    other: str = param("", help="Trained ream for another metric, to measure the transfer.")
    references: str = param(ORIGINAL, help="Reference set to draw from.")
    sample: int = param(300, help="Maximum number of items.", low=1, high=MOST_ITEMS)
    max: int = param(10, help="Maximum number of references.", low=2, high=MOST_REFERENCES)
    seed: int = seed_param()


def start_curves(*, project: Project, user: Any = None, options: CurveOptions, send: bool = True) -> Run:
    """Queue the curves, or return the active run of the same request."""
    faults = find_unsuited(project, evaluator=options.evaluator, other=options.other)
    if options.other == options.evaluator:
        faults.append(Fault(_("Choose a second evaluator that differs from the first."), field="other"))
    faults += value_faults(options)
    get_reference_set(project, options.references)
    if faults:
        raise BadInput.from_faults(faults)
    names = " + ".join(filter(None, (options.evaluator, options.other)))
    title = gettext_noop("Reliability curves of %(evaluators)s") % {"evaluators": names}
    return enqueue_run(kind="reliability", project=project, user=user, params=asdict(options), title=title, send=send)


@dataclass(frozen=True)
class GamesOptions:
    """Options of games."""

    evaluator: str = param("", help="Trained evaluator that compares texts; empty: the newest.")
    systems: str = param("all", help="Systems that play.", choices=SUBSETS)
    references: str = param(ORIGINAL, help="Reference set, for an evaluator that reads references.")
    options: dict[str, Any] = param({}, help="Options of the evaluator, among them `outcome` and `tie_rule`.")
    items: int = param(ITEMS, help="Maximum number of items, the same for all systems.", low=1, high=MOST_ITEMS)
    seeds: int = param(SEEDS, help="Number of simulations.", low=1, high=1000)
    seed: int = seed_param()


def start_games(*, project: Project, user: Any = None, options: GamesOptions, send: bool = True) -> Run:
    """Queue the games, or return the active run of the same request."""
    check_values(options)
    judge = games.find_judge(project, options.evaluator)
    entry = get_entry(judge.name)
    references = ""
    if "references" in entry.needs:
        references = options.references or ORIGINAL
        get_reference_set(project, references)
    parsed = parse_options(entry, options.options)
    games.refuse_draws(judge, parsed)
    games.check_systems(project, options.systems)
    params = {**asdict(options), "evaluator": judge.slug, "references": references, "options": parsed}
    title = gettext_noop("Games by %(name)s") % {"name": judge.slug}
    return enqueue_run(kind="games", project=project, user=user, params=params, title=title, send=send)
