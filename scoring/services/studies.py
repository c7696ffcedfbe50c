"""Start studies and their checks, and store the results of their steps. The work itself is a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run

from ..models import StudyStep
from ..selectors.catalogue import check_models, get_entry, make_refusal
from ..selectors.datasets import DataChoice, check_choice, judged_aspects
from ..selectors.studies import STUDIES

if TYPE_CHECKING:
    from scoring.ml.studies.kinds import Variant

MOST_SEEDS, MOST_EVALUATORS = 20, 20
#: Options that a request gives as fields of their own.
OWN_FIELDS = ("study", "evaluators", "encoder", "profile")
#: Results of steps are removed after this time: their table is stored with the run.
KEEP_STEPS = timedelta(days=90)


@dataclass(frozen=True)
class StudyOptions:
    """Options of a study."""

    study: str = param(help="The kind of study.", choices=STUDIES)
    evaluators: list[str] = param([], help="Evaluators to compare; empty: those of the kind.")
    aspect: str = param("", help="The aspect to learn and to measure; empty: all judged aspects.")
    seeds: int = param(5, help="Number of trainings of each evaluator, with successive seeds.", low=1, high=MOST_SEEDS)
    held_out: int = param(30, help="Per cent of the groups of items that no training reads.", low=10, high=60)
    profile: str = param("", help="`recommended` or `paper`; empty: the first profile of each evaluator.")
    encoder: str = param("", help="The pretrained encoder, one of the setting ENCODERS.")
    references: str = param(ORIGINAL, help="The reference set to train and to score with.")
    options: dict[str, Any] = param({}, help="Training options, for every evaluator that has them.")
    seed: int = seed_param()


def start_study(
    *, project: Project, user: Any = None, options: StudyOptions, send: bool = True, any_encoder: bool = False
) -> Run:
    """Queue a study, or return the active run of the same request.

    `any_encoder`: allow encoders outside the setting ENCODERS, for the command line.
    """
    return _enqueue("study", project, user, options, send=send, any_encoder=any_encoder)


def start_check(
    *, project: Project, user: Any = None, options: StudyOptions, send: bool = True, any_encoder: bool = False
) -> Run:
    """Queue the check of a study: its trainings, its time, and what the data lack."""
    return _enqueue("study-plan", project, user, options, send=send, any_encoder=any_encoder)


def start_checked(*, project: Project, user: Any, check: Run) -> Run:
    """Queue the study that a check examined."""
    if check.kind != "study-plan" or check.state != Run.State.SUCCEEDED:
        raise Conflict(_("This check did not succeed. Check again before you start the study."))
    return start_study(project=project, user=user, options=StudyOptions(**check.params))


def _enqueue(kind: str, project: Project, user: Any, options: StudyOptions, *, send: bool, any_encoder: bool) -> Run:
    from scoring.ml.studies.kinds import get_kind

    params = plan_params(project, options, any_encoder=any_encoder)
    names = {"study": get_kind(options.study).title, "evaluators": ", ".join(params["evaluators"])}
    study, check = gettext_noop("%(study)s: %(evaluators)s"), gettext_noop("Check: %(study)s of %(evaluators)s")
    title = study if kind == "study" else check
    return enqueue_run(kind=kind, project=project, user=user, params=params, title=(title % names)[:200], send=send)


def plan_params(project: Project, options: StudyOptions, *, any_encoder: bool = False) -> dict[str, Any]:
    """Return the parameters of the run, checked as far as possible without reading the data."""
    from scoring.ml import InvalidOption
    from scoring.ml.studies.kinds import get_kind, list_variants

    check_values(options)
    kind = get_kind(options.study)
    for name in options.evaluators:
        get_entry(name)
    if len(options.evaluators) > MOST_EVALUATORS:
        text = _("Name at most %(n)d evaluators.") % {"n": MOST_EVALUATORS}
        raise BadInput.for_field("evaluators", text)
    try:
        variants = list_variants(kind, options.evaluators)
    except InvalidOption as error:
        raise make_refusal(error, OWN_FIELDS) from error
    choice = DataChoice(references=options.references or ORIGINAL)
    check_choice(project, choice)
    _check_aspect(project, options, variants, choice)
    given = {**options.options, **({"encoder": options.encoder} if options.encoder else {})}
    _check_training_options(variants, options.profile, given, any_encoder=any_encoder)
    return {**asdict(options), "evaluators": list(options.evaluators or kind.defaults), "references": choice.references}


def _check_aspect(project: Project, options: StudyOptions, variants: Sequence[Variant], choice: DataChoice) -> None:
    judged = judged_aspects(project, ("ratings", "comparisons"), choice)
    if options.aspect and options.aspect not in judged:
        text = _("There are no judgements of “%(aspect)s”. There are some of: %(judged)s.")
        known = ", ".join(judged) or _("no aspect yet")
        raise BadInput.for_field("aspect", text % {"aspect": options.aspect, "judged": known})
    needing = [variant.evaluator for variant in variants if get_entry(variant.evaluator).aspect == "one"]
    if not options.aspect and len(judged) > 1 and needing:
        text = _("Name the aspect for %(name)s to learn: %(aspects)s.")
        raise BadInput.for_field("aspect", text % {"name": needing[0], "aspects": ", ".join(judged)})


def _check_training_options(
    variants: Sequence[Variant], profile: str, given: Mapping[str, Any], *, any_encoder: bool
) -> None:
    """Check that each option belongs to an evaluator of the study, and that each evaluator accepts it."""
    from scoring.ml import InvalidOption

    entries = {variant.evaluator: get_entry(variant.evaluator) for variant in variants if not variant.is_rival}
    learners = [entry for entry in entries.values() if entry.learns]
    known = {option.name for entry in learners for option in entry.train_options}
    faults = [
        Fault(_("No evaluator of this study has the option “%(name)s”.") % {"name": name}, field=f"options.{name}")
        for name in given
        if name not in known
    ]
    profiles = sorted({name for entry in learners for name in entry.profiles})
    if profile and profile not in profiles:
        text = _("profile must be one of %(known)s, not “%(value)s”.")
        faults.append(Fault(text % {"known": ", ".join(profiles), "value": profile}, field="profile"))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    for entry in learners:
        own = {option.name: given[option.name] for option in entry.train_options if option.name in given}
        try:
            parsed = entry.parse_train_options(profile if profile in entry.profiles else entry.profiles[0], own)
        except InvalidOption as error:
            raise make_refusal(error, OWN_FIELDS) from error
        if not any_encoder:
            check_models(entry.train_options, parsed, field="")


def store_step(*, project: Project, digest: str, label: str, result: Mapping[str, Any]) -> None:
    """Store the result of a step. A second worker that computed the same step changes nothing."""
    StudyStep.objects.get_or_create(
        project=project, digest=digest, defaults={"label": label[:200], "result": dict(result)}
    )


def sweep_steps(*, project: Project) -> None:
    """Remove results of steps that are older than `KEEP_STEPS`."""
    StudyStep.objects.filter(project=project, created_at__lt=timezone.now() - KEEP_STEPS).delete()
