"""Start trainings and dry checks. The training itself is a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Aspect
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, EvalappError, Fault
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run

from ..models import Evaluator
from ..selectors import training as trainings
from ..selectors.catalogue import check_models, entries, get_entry, list_shipped, make_refusal
from ..selectors.datasets import DataChoice, check_choice, judged_aspects
from ..selectors.further import check_further, find_further, list_aspects
from ..selectors.runs import list_active_runs

if TYPE_CHECKING:
    from scoring.ml import Entry

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
#: Words that URLs use in the place of an evaluator's name.
RESERVED = frozenset({"apply", "combine", "robustness", "score", "sentinels", "train", "trained", "upload"})
MOST_FOLDS = 20
LISTS = ("campaigns", "raters", "systems")
RATINGS = ("raw", "z", "z-shrunk", "rank")
#: Options that a request gives as fields of their own, outside `options`.
OWN_FIELDS = ("profile", "encoder", "ratings")


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training. Empty texts and None take the default; `options` override the profile's."""

    evaluator: str = param(help="The method to train.", needed=gettext_noop("Name the evaluator to train."))
    profile: str = param("", help="`recommended` or `paper`; empty: the method's first profile.")
    encoder: str = param("", help="The pretrained encoder, one of the setting ENCODERS.")
    aspect: str = param("", help="The aspect to learn; required if people judged several.")
    references: str = param(ORIGINAL, help="The reference set to train with.")
    ratings: str = param("", help="Normalisation of ratings; empty: the profile's.", choices=("", *RATINGS))
    folds: int | None = param(
        None, help="Cross-fitting folds, each scored by a model that has not seen it; 0, 1: one model.", low=0,
        high=MOST_FOLDS,
    )  # fmt: skip
    seed: int = seed_param()
    name: str = param("", help="Name of the trained evaluator; empty: the next free `METHOD-N`.")
    apply: bool = param(False, help="Score every output after the training.")
    init: str = param("", help="A trained evaluator of the same method to begin with; empty: the pretrained encoder.")
    projects: tuple[str, ...] = param((), help="A further project to learn from as well, which you may read.")
    options: Mapping[str, Any] = param({}, help="Further options of the method; they override the profile's.")
    campaigns: tuple[str, ...] = param((), help="Only judgements from the given campaigns (`uploads`: uploaded ones).")
    raters: tuple[str, ...] = param((), help="Only judgements by the given raters.")
    systems: tuple[str, ...] = param((), help="Only texts by the given systems.")


def start_training(
    *, project: Project, user: Any = None, options: TrainingOptions, send: bool = True, any_encoder: bool = False
) -> Run:
    """Queue a training, or return the active run of the same request.

    `any_encoder`: allow encoders outside the setting ENCODERS, for the command line.
    """
    params = plan_params(project, options, any_encoder=any_encoder, user=user)
    with naming(project):
        for run in list_active_runs(project, "train"):
            if run.cancel_requested:
                continue
            asked = {key: value for key, value in run.params.items() if key != "slug"}
            if asked == params and options.name in ("", run.params["slug"]):
                return run
        slug = free_slug(project, params["evaluator"], options.name)
        for other in find_further(project, params["projects"], user):
            audit.record(verb="data.learned", project=other, actor=user, object=f"{project.slug}/{slug}")
        return enqueue_run(
            kind="train",
            project=project,
            user=user,
            params={**params, "slug": slug},
            title=gettext_noop("Train %(name)s") % {"name": slug},
            send=send,
        )


def start_check(*, project: Project, user: Any = None, options: TrainingOptions, send: bool = True) -> Run:
    """Queue the dry check of a training: counts, steps, time, warnings, or missing data."""
    wrong = _Errors()
    with wrong.gathering():
        params = plan_params(project, options, user=user)
    with wrong.gathering():
        check_name(project, options.name, pending_names(project))
    wrong.tell()
    params["name"] = options.name
    title = gettext_noop("Check before training %(name)s") % {"name": options.evaluator}
    return enqueue_run(kind="plan", project=project, user=user, params=params, title=title, send=send)


def matches_check(project: Project, check: Run, options: TrainingOptions, *, user: Any = None) -> bool:
    """Whether the request of `user` equals the one that the dry check examined."""
    return {**plan_params(project, options, user=user), "name": options.name} == check.params


def has_passed(check: Run) -> bool:
    """Return whether the data were enough in a dry check."""
    result = check.result or {}
    return check.kind == "plan" and check.state == Run.State.SUCCEEDED and "steps" in result


def start_checked(*, project: Project, user: Any, check: Run) -> Run:
    """Queue the training that a dry check examined."""
    if not has_passed(check):
        raise Conflict(_("This check did not succeed. Check again before training."))
    params = {name: check.params[name] for name in TrainingOptions.__dataclass_fields__ if name in check.params}
    params["projects"] = tuple(check.params.get("projects", ()))
    data = DataChoice.from_dict(check.params["data"])
    options = TrainingOptions(**{**params, **vars(data)})
    return start_training(project=project, user=user, options=options)


def plan_params(
    project: Project, options: TrainingOptions, *, any_encoder: bool = False, user: Any = None
) -> dict[str, Any]:
    """Return the parameters of the run, checked as far as possible without reading the data. `user` must be allowed to
    read the further projects; None may read all."""
    entry = get_entry(options.evaluator)
    if not entry.learns:
        names = ", ".join(entry.name for entry in trainings.learners()) or _("none in this installation")
        text = _("%(name)s needs no training: apply it with `evalapp score`. Trainable evaluators: %(names)s.")
        raise BadInput(
            text % {"name": entry.name, "names": names}, faults=[Fault(_("needs no training"), field="evaluator")]
        )
    profile = options.profile or entry.profiles[0]
    folds = trainings.default_folds(project) if options.folds is None else options.folds
    choice = DataChoice(
        references=options.references or ORIGINAL,
        campaigns=options.campaigns,
        raters=options.raters,
        systems=options.systems,
    )
    parsed: dict[str, Any] = {}
    wrong = _Errors()
    with wrong.gathering():
        parsed = _options(entry, profile, options)
        if not any_encoder:
            check_models(entry.train_options, parsed, field="" if options.encoder else "options.")
    with wrong.gathering():
        check_values(options)
    with wrong.gathering():
        check_choice(project, choice)
    missing = trainings.missing_for(entry, trainings.find_training_data(project))
    if missing and not wrong.errors:
        text = _("%(name)s cannot be trained on %(project)s.") % {"name": entry.name, "project": project.slug}
        raise BadInput(" ".join([text, *missing]))
    with wrong.gathering():
        _check_aspects(project, entry, options, parsed, choice)
    with wrong.gathering():
        _check_init(project, entry, options)
    with wrong.gathering():
        check_further(
            project, entry, find_further(project, options.projects, user), aspect=options.aspect,
            uses_people=not _learns_from_texts(parsed), choice=choice,
        )  # fmt: skip
    wrong.tell()
    return {
        "evaluator": entry.name,
        "profile": profile,
        "options": parsed,
        "seed": options.seed,
        "aspect": options.aspect,
        "folds": max(1, folds),
        "apply": options.apply,
        "init": options.init,
        "projects": sorted(options.projects),
        "data": choice.as_dict(),
    }


def _check_init(project: Project, entry: Entry, options: TrainingOptions) -> None:
    """Check that the evaluator to begin with is there, of the same method, one model, and brings the only encoder."""
    if not options.init:
        return
    if options.encoder:
        text = _("Leave out the encoder: %(name)s brings its own.")
        raise BadInput.for_field("encoder", text % {"name": options.init})
    known = {row.slug: row for row in trainings.list_starts(project, entry)}
    if options.init not in known:
        text = _("“%(name)s” is no trained %(method)s with a single model in %(project)s. There are: %(known)s.")
        there = ", ".join(known) or _("none yet")
        values = {"name": options.init, "method": entry.name, "project": project.slug, "known": there}
        raise BadInput.for_field("init", text % values)


class _Errors:
    """Collects the errors of a request, to report all at once."""

    def __init__(self) -> None:
        self.errors: list[EvalappError] = []

    @contextmanager
    def gathering(self) -> Iterator[None]:
        try:
            yield
        except EvalappError as error:
            if not error.faults:
                raise
            self.errors.append(error)

    def tell(self) -> None:
        """Raise the collected errors, if any."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            faults = [fault for error in self.errors for fault in error.faults]
            raise BadInput(" ".join(error.detail for error in self.errors), faults=faults)


def _check_aspects(
    project: Project, entry: Entry, options: TrainingOptions, parsed: Mapping[str, Any], choice: DataChoice
) -> None:
    """Check that the aspect to learn is named where needed and has the judgements that this evaluator learns from."""

    def refuse(text: str, field: str = "aspect") -> None:
        raise BadInput.for_field(field, text)

    known = list(Aspect.objects.filter(project=project).values_list("name", flat=True))
    if options.aspect and options.aspect not in known:
        text = _("%(project)s has no aspect “%(aspect)s”. It has: %(known)s.")
        there = ", ".join(known) or _("none yet")
        refuse(text % {"project": project.slug, "aspect": options.aspect, "known": there})
    if entry.aspect == "none":
        if options.aspect:
            refuse(_("%(name)s learns no aspect: leave it out.") % {"name": entry.name})
        return
    if _learns_from_texts(parsed):
        return
    kinds = trainings.judgements_for(entry)
    nouns = _(" or ").join(map(_, kinds))
    judged = judged_aspects(project, kinds, choice)
    if not judged:
        if options.aspect:
            text = _("The selected data has no %(kinds)s of “%(aspect)s” or of any other aspect.")
            refuse(text % {"kinds": nouns, "aspect": options.aspect})
        return
    if entry.aspect == "one" and not options.aspect and len(judged) > 1:
        text = _("Name the aspect for %(name)s to learn: %(aspects)s.")
        refuse(text % {"name": entry.name, "aspects": ", ".join(judged)})
    chosen = [options.aspect] if options.aspect else []
    for place, names in (("aspect", chosen), ("options.aspects", list_aspects(parsed))):
        for name in names:
            if name not in judged:
                text = _("The selected data has no %(kinds)s of “%(aspect)s”. It has some of: %(judged)s.")
                refuse(text % {"kinds": nouns, "aspect": name, "judged": ", ".join(judged)}, place)


def _learns_from_texts(parsed: Mapping[str, Any]) -> bool:
    """Whether the options of a training leave out what people judged."""
    return parsed.get("human") == "no" or parsed.get("comparison") is False


def _options(entry: Entry, profile: str, options: TrainingOptions) -> dict[str, Any]:
    from scoring.ml import InvalidOption

    names = {option.name for option in entry.train_options}
    given = dict(options.options)
    for name, value, unsaid in (("encoder", options.encoder, ""), ("ratings", options.ratings, "raw")):
        if not value:
            continue
        if name in names:
            given[name] = value
        elif value != unsaid:
            text = _("%(name)s has no option “%(option)s”.") % {"name": entry.name, "option": name}
            raise BadInput.for_field(name, text)
    try:
        return entry.parse_train_options(profile, given)
    except InvalidOption as error:
        raise make_refusal(error, OWN_FIELDS) from error


def check_name(project: Project, name: str, under_way: Mapping[str, Run] | None = None) -> None:
    """Check that a name is valid and free; `under_way`: names reserved by active runs."""
    if not name:
        return
    if not SLUG.fullmatch(name):
        text = _("Use lower-case letters, digits and hyphens, at most 80 characters.")
        raise BadInput.for_field("name", text)
    used = {entry.name for entry in entries()} | RESERVED | set(list_shipped())
    if under_way and name in under_way:
        text = _("Run %(run)s is creating an evaluator named “%(name)s”: choose another name, or cancel that run.")
        text %= {"run": under_way[name].pk, "name": name}
        raise Conflict.for_field("name", text)
    if name in used:
        text = _("The name “%(name)s” is reserved by evalapp: choose another.") % {"name": name}
        raise Conflict.for_field("name", text)
    if Evaluator.objects.filter(project=project, slug=name).exists():
        text = _("The name “%(name)s” is taken: choose another, or delete that evaluator first.") % {"name": name}
        raise Conflict.for_field("name", text)


def pending_names(project: Project) -> dict[str, Run]:
    """Return the names reserved by active runs, except runs that are being cancelled."""
    return {slug: run for slug, run in trainings.names_in_making(project).items() if not run.cancel_requested}


@contextmanager
def naming(project: Project) -> Iterator[None]:
    """Lock the project while a name is chosen and its run is stored.

    Without the lock two runs could get the same name, and the second would fail after its whole training.
    """
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).filter(pk=project.pk).values_list("pk").first()
        yield


def free_slug(project: Project, stem: str, name: str) -> str:
    """Return the name asked for, or the stem with the next free number. Call it inside `naming`."""
    making = trainings.names_in_making(project)
    check_name(project, name, pending_names(project))
    if name:
        return name
    # A run that is being cancelled may still finish first and take its name.
    used = {*Evaluator.objects.filter(project=project).values_list("slug", flat=True), *making}
    return next(slug for number in range(1, 10_000) if (slug := f"{stem}-{number}") not in used)


def require_free_name(run: Run, slug: str) -> None:
    """Raise `Conflict` if another evaluator has taken the name of this run (a failed run reserves none until retried).

    Called before the work as well as after it.
    """
    if Evaluator.objects.filter(project=run.project, slug=slug).exists():
        text = _("The name “%(name)s” is now taken. Delete that evaluator, then retry this run.")
        raise Conflict(text % {"name": slug})
