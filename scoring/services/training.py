"""Asking for trainings and dry checks, storing what was trained, deleting it. The training itself is a pipeline."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction

from annotation.models import Aspect, WritingCampaign
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, EvalappError, Fault
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run

from ..models import Evaluator, ScoreSet
from ..selectors.catalogue import check_models, entries, get_entry, refusal_of
from ..selectors.datasets import DataChoice, check_choice, judged_aspects
from ..selectors.training import (
    default_folds,
    facts_of,
    judgements_for,
    learners,
    missing_for,
    names_in_making,
    trainings_under_way,
)

if TYPE_CHECKING:
    from scoring.ml import Entry

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
#: Words that stand in addresses where an evaluator's name stands.
RESERVED = frozenset({"apply", "combine", "robustness", "sentinels", "train", "trained", "upload"})
MOST_FOLDS = 20
#: Parameters of runs that name evaluators (`names_in`; a test holds them against the kinds of run).
NAMES_OF_ONE = ("evaluator", "slug", "mix", "other")
NAMES_OF_SEVERAL = ("evaluators", "parts")
LISTS = ("campaigns", "raters", "systems")
RATINGS = ("raw", "z", "z-shrunk", "rank")
#: Options that a request names beside `options`.
OWN_FIELDS = ("profile", "encoder", "ratings")


@dataclass(frozen=True)
class Wishes:
    """What somebody wants trained. Empty texts and None take the default; `options` override the profile's."""

    evaluator: str = param(help="A method that learns.", needed="Name the evaluator to be trained.")
    profile: str = param("", help="`recommended` or `paper`; empty: the first that the method has.")
    encoder: str = param("", help="The language model it starts from, one of the setting ENCODERS.")
    aspect: str = param("", help="What it learns to judge, where people judged several aspects.")
    references: str = param(ORIGINAL, help="The reference set it learns with.")
    ratings: str = param("", help="How raters are made comparable; empty: as the profile says.", choices=("", *RATINGS))
    folds: int | None = param(
        None, help="Number of models, each scores what it did not see; 0 or 1: one model; null: by size.", low=0,
        high=MOST_FOLDS,
    )  # fmt: skip
    seed: int = seed_param()
    name: str = param("", help="Name of the trained evaluator; empty: the next free `METHOD-N`.")
    apply: bool = param(False, help="Score every output as soon as it is trained.")
    options: Mapping[str, Any] = param({}, help="Further options of the method; they override the profile's.")
    campaigns: tuple[str, ...] = param((), help="Only judgements of these campaigns (`uploads`: uploaded ones).")
    raters: tuple[str, ...] = param((), help="Only judgements of these raters.")
    systems: tuple[str, ...] = param((), help="Only texts of these systems.")


def start_training(
    *, project: Project, user: Any = None, wishes: Wishes, send: bool = True, any_encoder: bool = False
) -> Run:
    """Queue a training. The same request joins the run that is already there. `any_encoder` is for the command line,
    whose user owns the machine; people of the web choose among the setting ENCODERS."""
    params = plan_params(project, wishes, any_encoder=any_encoder)
    with naming(project):
        for run in trainings_under_way(project):
            if run.cancel_requested:
                continue
            asked = {key: value for key, value in run.params.items() if key != "slug"}
            if asked == params and wishes.name in ("", run.params["slug"]):
                return run
        slug = free_slug(project, params["evaluator"], wishes.name)
        return enqueue_run(
            kind="train", project=project, user=user, params={**params, "slug": slug}, title=f"Train {slug}", send=send
        )


def start_check(*, project: Project, user: Any = None, wishes: Wishes, send: bool = True) -> Run:
    """Queue the dry check of a training: counts, steps, time, warnings, or what is missing."""
    wrong = _Wrong()
    with wrong.gathering():
        params = plan_params(project, wishes)
    with wrong.gathering():
        check_name(project, wishes.name, names_to_be(project))
    wrong.tell()
    params["name"] = wishes.name
    title = f"Check before training {wishes.evaluator}"
    return enqueue_run(kind="plan", project=project, user=user, params=params, title=title, send=send)


def is_as_checked(project: Project, check: Run, wishes: Wishes) -> bool:
    """Whether somebody wants what a dry check has looked at, and nothing else."""
    return {**plan_params(project, wishes), "name": wishes.name} == check.params


def start_checked(*, project: Project, user: Any, check: Run) -> Run:
    """Queue the training that a dry check has looked at."""
    if check.kind != "plan" or check.state != Run.State.SUCCEEDED:
        raise Conflict("Only what a check found fit can be trained. Check again.")
    given = dict(check.params)
    options = given["options"]
    data = DataChoice.from_dict(given["data"])
    wishes = Wishes(
        evaluator=given["evaluator"],
        profile=given["profile"],
        aspect=given["aspect"],
        folds=given["folds"],
        seed=given["seed"],
        name=given.get("name", ""),
        apply=given["apply"],
        options=options,
        references=data.references,
        campaigns=data.campaigns,
        raters=data.raters,
        systems=data.systems,
    )
    return start_training(project=project, user=user, wishes=wishes)


def plan_params(project: Project, wishes: Wishes, *, any_encoder: bool = False) -> dict[str, Any]:
    """The parameters of the run, everything checked that can be told without reading the data."""
    entry = get_entry(wishes.evaluator)
    if not entry.learns:
        names = ", ".join(entry.name for entry in learners()) or "none in this installation"
        raise BadInput(
            f"{entry.name} needs no training: apply it with `manage.py score`. What learns: {names}.",
            faults=[Fault("needs no training", field="evaluator")],
        )
    profile = wishes.profile or entry.profiles[0]
    folds = default_folds(project) if wishes.folds is None else wishes.folds
    choice = DataChoice(
        references=wishes.references or ORIGINAL,
        campaigns=wishes.campaigns,
        raters=wishes.raters,
        systems=wishes.systems,
    )
    options: dict[str, Any] = {}
    wrong = _Wrong()
    with wrong.gathering():
        options = _options(entry, profile, wishes)
        if not any_encoder:
            check_models(entry.train_options, options, field="" if wishes.encoder else "options.")
    with wrong.gathering():
        check_values(wishes)
    with wrong.gathering():
        check_choice(project, choice)
    missing = missing_for(entry, facts_of(project))
    if missing and not wrong.found:
        raise BadInput(f"{entry.name} cannot be trained on {project.slug}. " + " ".join(missing))
    with wrong.gathering():
        _check_aspects(project, entry, wishes, options, choice)
    wrong.tell()
    return {
        "evaluator": entry.name,
        "profile": profile,
        "options": options,
        "seed": wishes.seed,
        "aspect": wishes.aspect,
        "folds": max(1, folds),
        "apply": wishes.apply,
        "data": choice.as_dict(),
    }


class _Wrong:
    """What is wrong with a request, told together: not one thing each time it is sent."""

    def __init__(self) -> None:
        self.found: list[EvalappError] = []

    @contextmanager
    def gathering(self) -> Iterator[None]:
        try:
            yield
        except EvalappError as error:
            if not error.faults:
                raise
            self.found.append(error)

    def tell(self) -> None:
        """Raises what was found, if anything was."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            faults = [fault for error in self.found for fault in error.faults]
            raise BadInput(" ".join(error.detail for error in self.found), faults=faults)


def _check_aspects(
    project: Project, entry: Entry, wishes: Wishes, options: Mapping[str, Any], choice: DataChoice
) -> None:
    """The aspect that is to be learned has what this evaluator learns it from, and is named where several have."""

    def refuse(text: str, place: str = "aspect") -> None:
        raise BadInput(text, faults=[Fault(text, field=place)])

    known = list(Aspect.objects.filter(project=project).values_list("name", flat=True))
    if wishes.aspect and wishes.aspect not in known:
        there = ", ".join(known) or "none yet"
        refuse(f"There is no aspect “{wishes.aspect}” in {project.slug}. There are: {there}.")
    if entry.aspect == "none":
        if wishes.aspect:
            refuse(f"{entry.name} learns no aspect: leave it out.")
        return
    if options.get("human") == "no" or options.get("comparison") is False:
        return  # it learns from texts alone
    kinds = judgements_for(entry)
    nouns = " or ".join(kinds)
    judged = judged_aspects(project, kinds, choice)
    if not judged:
        if wishes.aspect:
            refuse(f"There are no {nouns} of “{wishes.aspect}” in what was chosen, nor of any other aspect.")
        return
    if entry.aspect == "one" and not wishes.aspect and len(judged) > 1:
        refuse(f"Name the aspect that {entry.name} shall learn: {', '.join(judged)}.")
    listed = [name.strip() for name in str(options.get("aspects") or "").split(",") if name.strip()]
    for place, names in (("aspect", [wishes.aspect] if wishes.aspect else []), ("options.aspects", listed)):
        for name in names:
            if name not in judged:
                refuse(
                    f"There are no {nouns} of “{name}” in what was chosen. There are of: {', '.join(judged)}.", place
                )


def _options(entry: Entry, profile: str, wishes: Wishes) -> dict[str, Any]:
    from scoring.ml import InvalidOption

    names = {option.name for option in entry.train_options}
    given = dict(wishes.options)
    for name, value, unsaid in (("encoder", wishes.encoder, ""), ("ratings", wishes.ratings, "raw")):
        if not value:
            continue
        if name in names:
            given[name] = value
        elif value != unsaid:
            text = f"{entry.name} has no option “{name}”."
            raise BadInput(text, faults=[Fault(text, field=name)])
    try:
        return entry.parse_train_options(profile, given)
    except InvalidOption as error:
        raise refusal_of(error, OWN_FIELDS) from error


def check_name(project: Project, name: str, under_way: Mapping[str, Run] | None = None) -> None:
    """A name that can become the slug of an evaluator, and is free; `under_way` are names that runs will give."""
    if not name:
        return
    if not SLUG.fullmatch(name):
        text = "A name has small letters, digits and hyphens, at most 80."
        raise BadInput(text, faults=[Fault(text, field="name")])
    used = {entry.name for entry in entries()} | RESERVED
    if under_way and name in under_way:
        text = (
            f"Run {under_way[name].pk} is making an evaluator named “{name}”: choose another name, or cancel that run."
        )
        raise Conflict(text, faults=[Fault(text, field="name")])
    if name in used:
        text = f"The name “{name}” is taken, by what evalapp itself calls so: choose another."
        raise Conflict(text, faults=[Fault(text, field="name")])
    if Evaluator.objects.filter(project=project, slug=name).exists():
        text = f"The name “{name}” is taken: choose another, or delete that evaluator first."
        raise Conflict(text, faults=[Fault(text, field="name")])


def names_to_be(project: Project) -> dict[str, Run]:
    """The names that runs will give, but for those that are just being cancelled."""
    return {slug: run for slug, run in names_in_making(project).items() if not run.cancel_requested}


@contextmanager
def naming(project: Project) -> Iterator[None]:
    """While a name is chosen and the run that will give it is stored, nobody else does so in this project: else two
    would be given the same, and the second learn of it when its whole training is done."""
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).filter(pk=project.pk).values_list("pk").first()
        yield


def free_slug(project: Project, stem: str, name: str) -> str:
    """The name that was asked for, or the stem with the next number; nothing that is there or under way has it. It is
    free for as long as the caller is `naming`."""
    making = names_in_making(project)
    check_name(project, name, names_to_be(project))
    if name:
        return name
    # What is just being cancelled may be done before it sees so, and have its name.
    used = {*Evaluator.objects.filter(project=project).values_list("slug", flat=True), *making}
    return next(slug for number in range(1, 10_000) if (slug := f"{stem}-{number}") not in used)


def make_sure_of_name(run: Run, slug: str) -> None:
    """Raises `Conflict` where another evaluator has the name that this run is to give: a run that had failed holds no
    name until it is retried. To be asked before hours of work, too, and not after them alone."""
    if Evaluator.objects.filter(project=run.project, slug=slug).exists():
        raise Conflict(f"The name “{slug}” was taken meanwhile. Delete that evaluator, then retry this run.")


def publish_evaluator(
    *,
    run: Run,
    slug: str,
    name: str,
    folder: str,
    signature: str,
    record: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Evaluator:
    """The evaluator whose whole artefact stands in `folder` (below ARTEFACTS_DIR) becomes known. A run publishes
    once, however often it is executed."""
    with transaction.atomic():
        found = Evaluator.objects.filter(project=run.project, run=run, kind=Evaluator.Kind.TRAINED).first()
        if found is not None:
            return found
        make_sure_of_name(run, slug)
        row = Evaluator.objects.create(
            project=run.project,
            slug=slug,
            name=name,
            kind=Evaluator.Kind.TRAINED,
            options=dict(options),
            folder=folder,
            signature=signature[:500],
            record=dict(record),
            run=run,
        )
        audit.record(verb="evaluator.stored", project=run.project, actor=run.created_by, object=row)
    return row


def mark_damaged(*, evaluator: Evaluator, damage: str) -> None:
    """Its folder no longer holds what was stored; shown until it is loaded again without fault."""
    Evaluator.objects.filter(pk=evaluator.pk).update(state=Evaluator.State.DAMAGED, damage=damage)


def mark_ready(*, evaluator: Evaluator) -> None:
    rows = Evaluator.objects.filter(pk=evaluator.pk, state=Evaluator.State.DAMAGED)
    rows.update(state=Evaluator.State.READY, damage="")


def delete_evaluator(*, evaluator: Evaluator, user: Any = None) -> None:
    """The evaluator, its scores and its files. Combinations that it is a part of keep their scores, which nothing can
    bring up to date then. Raises `Conflict` while a run wants it, else that would fail for lack of it when its turn
    comes; and while people write references by its scores, else those of an arm of the campaign would end in the
    middle of it."""
    if not (evaluator.is_trained or evaluator.is_combined):
        text = "Only trained and combined evaluators can be deleted; "
        raise Conflict(text + "the scores of others are replaced when applied again.")
    active = Run.objects.filter(project=evaluator.project, state__in=Run.ACTIVE).order_by("pk")
    wants = next((run for run in active if evaluator.slug in names_in(run.params)), None)
    if wants is not None:
        state = wants.get_state_display().lower()
        text = f"Run {wants.pk} ({wants.title}) is {state} and wants {evaluator.slug}. "
        raise Conflict(text + "Delete it when that run has ended, or cancel the run first.")
    at_work = WritingCampaign.objects.filter(
        project=evaluator.project,
        evaluator=evaluator.slug,
        state__in=[WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED],
    )
    if campaign := at_work.order_by("pk").first():
        text = f"People write references by the scores of {evaluator.slug} in the campaign “{campaign.name}”. "
        raise Conflict(text + "Close that campaign first.")
    folder = Path(settings.ARTEFACTS_DIR) / evaluator.folder if evaluator.folder else None
    with transaction.atomic():
        audit.record(verb="evaluator.deleted", project=evaluator.project, actor=user, object=evaluator)
        ScoreSet.objects.filter(evaluator=evaluator).delete()
        evaluator.delete()
        if folder is not None:
            transaction.on_commit(lambda: shutil.rmtree(folder, ignore_errors=True))


def names_in(params: Mapping[str, Any]) -> set[str]:
    """The evaluators that the parameters of a run name, whatever its kind: what it reads, and what it makes."""
    single = [params.get(name) for name in NAMES_OF_ONE]
    lists = [name for key in NAMES_OF_SEVERAL for name in params.get(key) or ()]
    query = params.get("query")
    by = query.get("by") if isinstance(query, Mapping) else None
    return {name for name in (*single, *lists, by) if isinstance(name, str) and name}


def remove_artefacts(*, project: Project) -> None:
    """The files of a project that is deleted: trained evaluators, and what runs that were given up had done."""
    root = Path(settings.ARTEFACTS_DIR)
    shutil.rmtree(root / str(project.pk), ignore_errors=True)
    for number in Run.objects.filter(project=project, kind__in=["train", "annotate"]).values_list("pk", flat=True):
        shutil.rmtree(root / "work" / str(number), ignore_errors=True)
    for params in Run.objects.filter(project=project, kind="artefact").values_list("params", flat=True):
        if name := params.get("incoming"):
            shutil.rmtree(root / "incoming" / name, ignore_errors=True)
