"""Writing evaluators, score sets and scores. What is computed comes from the pipeline; nothing is computed here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from annotation.models import Output, Reference, ReferenceSet
from annotation.models.data import ORIGINAL
from annotation.services.bulk import insert_rows
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotThere
from evalapp.common.models import Run, RunLog
from evalapp.common.params import param
from evalapp.common.queue import enqueue_run

from ..models import Evaluator, Score, ScoreSet
from ..selectors.catalogue import check_models, get_entry, parse_options
from ..selectors.games import refuse_draws
from ..selectors.inputs import count_outputs, get_reference_set
from ..selectors.reading import warn_unreadable
from ..selectors.training import refuse_away, refuse_unfinished, trained_of
from .leaderboards import renew_leaderboards
from .training import names_in

if TYPE_CHECKING:
    from scoring.ml import Entry

COLUMNS = ("score_set_id", "output_id", "value", "note", "input_hash", "is_empty", "is_truncated", "in_training")


@dataclass(frozen=True)
class NewScore:
    """One value to be stored; nan is undefined."""

    output: int
    value: float
    note: str
    input_hash: int
    is_empty: bool
    is_truncated: bool
    in_training: bool = False


def apply_evaluator(
    *,
    project: Project,
    user: Any = None,
    evaluator: str,
    options: Mapping[str, Any] | None = None,
    references: str = ORIGINAL,
    send: bool = True,
    any_encoder: bool = False,
) -> Run:
    """Queue the application of an evaluator of the catalogue, or of a trained one by its slug, to every output of the
    project that needs it. The same request joins the run that is already there. `any_encoder` is for the command
    line, whose user owns the machine; people of the web may choose encoders of the setting ENCODERS only."""
    combined = Evaluator.objects.filter(project=project, slug=evaluator, kind=Evaluator.Kind.COMBINED).first()
    if combined is not None:
        from .combining import combine_again

        return combine_again(project=project, user=user, evaluator=combined, send=send)
    trained = Evaluator.objects.filter(project=project, slug=evaluator, kind=Evaluator.Kind.TRAINED).first()
    if trained is not None:
        refuse_away(trained)
    entry = get_entry(trained.name) if trained else _applicable(project, evaluator)
    parsed = parse_options(entry, {**_from_project(entry, project), **(options or {})})
    encoder = None if trained else parsed.get("encoder")
    if trained:
        refuse_draws(trained, parsed)
    elif not any_encoder:
        check_models(entry.options, parsed)
    references = references or ORIGINAL
    against = get_reference_set(project, references) if "references" in entry.needs else None
    references = references if against else ""
    if not count_outputs(project):
        raise BadInput(
            f"{project.slug} has no outputs yet. Upload a JSONL or CSV file, or run `manage.py load`, then score."
        )
    if against is not None:
        _check_references(project, against)
    slug = trained.slug if trained else slug_of(entry.name, parsed, defaults_of(entry, project))
    if not trained:
        _check_slug(Evaluator.objects.filter(project=project, slug=slug).first(), entry.name)
    params = {"evaluator": evaluator if trained else entry.name, "options": parsed, "references": references}
    title = f"Score with {slug}" + (f" against {references}" if references not in ("", ORIGINAL) else "")
    queue = "gpu" if "encoder" in entry.needs or encoder or trained else ""
    run = enqueue_run(kind="score", project=project, user=user, params=params, title=title, send=send, queue=queue)
    if warning := warn_unreadable(project, entry, parsed, trained):
        RunLog.objects.get_or_create(run=run, text=f"Warning: {warning}")
    return run


def _check_references(project: Project, against: ReferenceSet) -> None:
    """A set that has nothing for any output would leave every score undefined."""
    scored = Exists(Output.objects.filter(item=OuterRef("item")))
    present = Reference.objects.filter(set__project=project).filter(scored)
    if against.pk and present.filter(set=against).exists():
        return
    names = present.order_by("set__name").values_list("set__name", flat=True).distinct()
    way = (
        f"Choose a set that has some: {', '.join(names)}."
        if names
        else "Upload references, or let people write or an evaluator choose some."
    )
    text = f"The reference set {against.name} has no reference for any output, so that every score would be undefined. "
    raise BadInput(text + way, faults=[Fault(text + way, field="references")])


def _check_slug(found: Evaluator | None, name: str) -> None:
    """What is called so already must be this evaluator: somebody may have given its name to a trained one."""
    if found is not None and found.name != name:
        text = f"{found.slug} is a {found.kind} {found.name} here, so {name} with these options cannot be called that. "
        raise Conflict(text + f"Delete it under Evaluators, or choose other options of {name}.")


def _applicable(project: Project, name: str) -> Entry:
    """The line of the catalogue; what learns cannot be applied before it was trained."""
    try:
        entry = get_entry(name)
    except NotThere as error:
        refuse_unfinished(project, name)
        slugs = list(trained_of(project).values_list("slug", flat=True)[:20])
        hint = f" Trained in {project.slug}: {', '.join(slugs)}." if slugs else ""
        raise NotThere(error.detail + hint) from error
    if entry.learns:
        slugs = list(trained_of(project).filter(name=name).values_list("slug", flat=True)[:20])
        way = (
            f"Apply one of those trained here: {', '.join(slugs)}."
            if slugs
            else f"Train it first: manage.py train {name} --project {project.slug}"
        )
        text = f"{name} is a method that learns. {way}"
        raise BadInput(text, faults=[Fault(text, field="evaluator")])
    return entry


@dataclass(frozen=True)
class ScoreWishes:
    """Which evaluator is applied, and how."""

    evaluator: str = param(
        help="An evaluator of the catalogue, a trained one or a combination, by name.",
        needed="Name the evaluator to be applied.",
    )
    options: dict[str, Any] = param({}, help="Options of the evaluator; the others keep their defaults.")
    references: str = param(ORIGINAL, help="The reference set.")


def start_scoring(*, project: Project, user: Any, wishes: ScoreWishes) -> Run:
    """`apply_evaluator` as a program asks for it."""
    return apply_evaluator(
        project=project,
        user=user,
        evaluator=wishes.evaluator,
        options=wishes.options,
        references=wishes.references,
    )


def _from_project(entry: Entry, project: Project) -> dict[str, Any]:
    """What the project knows better than the catalogue: the language of its texts, hence how they are cut."""
    names = {option.name for option in entry.options}
    return {"lang": project.lang} if "lang" in names and project.lang else {}


def defaults_of(entry: Entry, project: Project) -> dict[str, Any]:
    """The options an evaluator has in this project when nobody says anything else."""
    return {**{option.name: option.default for option in entry.options}, **_from_project(entry, project)}


def slug_of(name: str, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The name, with the options that are not at their default: `bleu-4-smooth-floor`."""
    parts = [name] + [f"{key}-{value}" for key, value in options.items() if value != defaults.get(key)]
    slug = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
    if len(slug) <= 80:
        return slug
    from hashlib import sha256

    return f"{slug[:70].strip('-')}-{sha256(slug.encode()).hexdigest()[:8]}"


def open_score_set(
    *,
    project: Project,
    name: str,
    options: Mapping[str, Any],
    references: str,
    signature: str,
    short: str,
    trained: Evaluator | None = None,
    aspect: str = "",
    run: Run | None = None,
) -> ScoreSet:
    """The set for this signature, made when it is the first time; then it is of this `run`, which takes it away again
    should it end without a score. Of a `trained` evaluator that learned several aspects each has a set of its own. Who
    fills it takes it first."""
    with transaction.atomic():
        evaluator = trained or _open_evaluator(project, name, options)
        score_set, _ = ScoreSet.objects.get_or_create(
            evaluator=evaluator,
            signature=signature,
            references=references,
            aspect=aspect,
            defaults={"project": project, "short_signature": short, "run": run},
        )
    return score_set


def _open_evaluator(project: Project, name: str, options: Mapping[str, Any]) -> Evaluator:
    """The row of a baseline with these options, held until the set is stored: nobody takes it away in between."""
    entry = get_entry(name)
    slug = slug_of(name, options, defaults_of(entry, project))
    defaults = {"name": name, "kind": entry.kind, "options": dict(options)}
    while True:
        found, _ = Evaluator.objects.get_or_create(project=project, slug=slug, defaults=defaults)
        _check_slug(found, name)
        if Evaluator.objects.select_for_update().filter(pk=found.pk).values_list("pk").first() is not None:
            return found


def take_score_sets(*, score_sets: Sequence[ScoreSet], run: Run) -> Run | None:
    """These sets are this run's to fill, or, where another that is running has one of them, none is; that run. Raises
    `ScoreSet.DoesNotExist` where one was taken away meanwhile: the run that had it failed without a score."""
    numbers = [score_set.pk for score_set in score_sets]
    with transaction.atomic():
        rows = list(
            ScoreSet.objects.select_for_update().filter(pk__in=numbers).order_by("pk").values_list("run_id", flat=True)
        )
        if len(rows) < len(set(numbers)):
            raise ScoreSet.DoesNotExist
        others = {number for number in rows if number not in (None, run.pk)}
        other = Run.objects.filter(pk__in=others, state=Run.State.RUNNING).order_by("pk").first()
        if other is not None:
            return other
        ScoreSet.objects.filter(pk__in=numbers).update(run=run)
    for score_set in score_sets:
        score_set.run = run
    return None


def give_up_scores(run: Run) -> None:
    """What a run that ended without success leaves of the sets that were not complete before it: one without a score
    goes, another is counted, so that people see how far it came."""
    with transaction.atomic():
        for score_set in ScoreSet.objects.select_for_update().filter(run=run, scored_at=None).order_by("pk"):
            counts = _counts(score_set)
            if counts["n_scores"]:
                ScoreSet.objects.filter(pk=score_set.pk).update(**counts)
            else:
                _remove(score_set)


def delete_scores(*, score_set: ScoreSet, user: Any = None) -> bool:
    """One set with its scores; combinations that it is a part of keep theirs. Whether the evaluator went with it, as
    one does that is nothing but its sets. Raises `Conflict` while a run wants the evaluator."""
    evaluator, project = score_set.evaluator, score_set.project
    if (wants := _run_that_wants(evaluator)) is not None:
        text = f"Run {wants.pk} ({wants.title}) is {wants.get_state_display().lower()} and wants {evaluator.slug}. "
        raise Conflict(text + "Delete its scores when that run has ended, or cancel the run first.")
    from ..selectors.columns import file_of  # reads numpy, for which no page waits at the start

    columns = file_of(score_set)
    with transaction.atomic():
        audit.record(
            verb="scores.deleted", project=project, actor=user, object=evaluator,
            signature=score_set.full_signature, aspect=score_set.aspect, n_scores=score_set.n_scores,
        )  # fmt: skip
        is_gone = _remove(score_set)
        if columns is not None:
            transaction.on_commit(lambda: columns.unlink(missing_ok=True))
        renew_leaderboards(project=project)
    return is_gone


def _run_that_wants(evaluator: Evaluator) -> Run | None:
    """A run that waits or works and names this evaluator; one of the catalogue is applied by its name and options."""
    for run in Run.objects.filter(project=evaluator.project, state__in=Run.ACTIVE).order_by("pk"):
        applies = run.kind == "score" and run.params.get("evaluator") == evaluator.name
        if evaluator.slug in names_in(run.params) and not (applies and evaluator.name == evaluator.slug):
            return run
        if applies and not evaluator.is_trained and run.params.get("options") == evaluator.options:
            return run
    return None


def _remove(score_set: ScoreSet) -> bool:
    """The set, and with the last one its evaluator, unless that was trained: then it is more than its scores."""
    evaluator = Evaluator.objects.select_for_update().get(pk=score_set.evaluator_id)
    score_set.delete()
    if evaluator.is_trained or evaluator.score_sets.exists():
        return False
    evaluator.delete()
    return True


def store_scores(*, score_set: ScoreSet, scores: Sequence[NewScore]) -> None:
    """Put these scores in the place of what the set had for the same outputs, all or none."""
    if not scores:
        return
    with transaction.atomic():
        # A worker that was taken for lost may still be storing the same rows; then one comes after the other.
        ScoreSet.objects.select_for_update().filter(pk=score_set.pk).values_list("pk").first()
        Score.objects.filter(score_set=score_set, output__in=[row.output for row in scores]).delete()
        insert_rows(Score, COLUMNS, (score_row(score_set, row) for row in scores))


def score_row(score_set: ScoreSet, row: NewScore) -> tuple[Any, ...]:
    value = None if math.isnan(row.value) else row.value
    flags = (row.is_empty, row.is_truncated, row.in_training)
    return (score_set.pk, row.output, value, row.note[:200], row.input_hash, *flags)


def finish_score_set(
    *,
    score_set: ScoreSet,
    data_hash: str,
    systems: list[dict[str, Any]],
    summary: list[dict[str, Any]],
    scored_at: datetime | None = None,
) -> ScoreSet:
    """Count what the set holds now and mark it as complete, now or at the moment given."""
    figures = {"data_hash": data_hash, "systems": systems, "summary": summary}
    score_set.scored_at = scored_at or timezone.now()
    for name, value in {**_counts(score_set), **figures}.items():
        setattr(score_set, name, value)
    score_set.save()
    return score_set


def _counts(score_set: ScoreSet) -> dict[str, int]:
    """What the set holds, by the names of its columns."""
    counts = Score.objects.filter(score_set=score_set).aggregate(
        n_scores=Count("pk"),
        n_undefined=Count("pk", filter=Q(value=None)),
        n_empty=Count("pk", filter=Q(is_empty=True)),
        n_truncated=Count("pk", filter=Q(is_truncated=True)),
        n_in_training=Count("pk", filter=Q(in_training=True)),
        distinct=Count("input_hash", distinct=True),
    )
    counts["n_duplicate"] = counts["n_scores"] - counts.pop("distinct")
    return counts
