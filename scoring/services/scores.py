"""Store evaluators, score sets and scores. The pipelines compute; nothing is computed here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Output, Reference, ReferenceSet
from annotation.models.data import ORIGINAL
from annotation.services.bulk import insert_rows
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, EvalappError, NotThere
from evalapp.common.models import Run, RunLog
from evalapp.common.params import param
from evalapp.common.queue import enqueue_run
from scoring.boards.choices import ASSISTANT

from ..models import Evaluator, Score, ScoreSet
from ..selectors.catalogue import check_models, get_entry, get_method, list_shipped, parse_options, resolve_alias
from ..selectors.external import refuse_scoring
from ..selectors.games import refuse_draws
from ..selectors.inputs import count_outputs, get_reference_set
from ..selectors.judges import split_keys
from ..selectors.reading import warn_unreadable
from ..selectors.training import list_trained, refuse_away, refuse_unfinished
from .evaluators import names_in, refuse_used
from .leaderboards import renew_leaderboards

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


@dataclass(frozen=True)
class ScoringRequest:
    """A checked request: the evaluator, the parameters of its run, the name that its scores get."""

    entry: Entry
    trained: Evaluator | None
    params: dict[str, Any]
    slug: str
    queue: str

    @property
    def title(self) -> str:
        name, references = self.slug, self.params["references"]
        if references in ("", ORIGINAL):
            return gettext_noop("Score with %(name)s") % {"name": name}
        return gettext_noop("Score with %(name)s and %(references)s") % {"name": name, "references": references}


class Grounds:
    """What requests to score a project are checked against. Each part is read once, for any number of evaluators."""

    def __init__(self, project: Project, names: Sequence[str]) -> None:
        self.project, self.names = project, set(names)
        self.references: dict[str, ReferenceSet | EvalappError] = {}

    @cached_property
    def rows(self) -> dict[str, Evaluator]:
        return {row.slug: row for row in Evaluator.objects.filter(project=self.project, slug__in=self.names)}

    @cached_property
    def n_outputs(self) -> int:
        return count_outputs(self.project)

    def find(self, slug: str) -> Evaluator | None:
        if slug in self.names:
            return self.rows.get(slug)
        return Evaluator.objects.filter(project=self.project, slug=slug).first()

    def get_references(self, name: str) -> ReferenceSet:
        """Return the reference set. Raises `BadInput` if it has no reference for any of the outputs."""
        if name not in self.references:
            try:
                self.references[name] = found = get_reference_set(self.project, name)
                if self.n_outputs:
                    _check_references(self.project, found)
            except EvalappError as error:
                self.references[name] = error
        result = self.references[name]
        if isinstance(result, EvalappError):
            raise result
        return result


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
    """Queue scoring of every output that has no current score by this evaluator.

    `evaluator`: name in the catalogue or an alias of it, or slug of a trained or combined evaluator or a judge; the
    default assistant is fitted again. Returns the active run of the same request if there is one. `any_encoder`: allow
    encoders outside the setting ENCODERS, for the command line.
    """
    if evaluator == ASSISTANT:
        from .assistant import start_refit

        return start_refit(project=project, user=user, send=send)
    grounds = Grounds(project, [evaluator])
    row = grounds.find(evaluator)
    if row is not None and row.is_combined:
        from .combining import combine_again

        return combine_again(project=project, user=user, evaluator=row, send=send)
    if row is not None and row.is_judge:
        from .judges import judge_again

        return judge_again(project=project, user=user, evaluator=row, send=send)
    asked = check_scoring(grounds, evaluator, options, references, any_encoder=any_encoder)
    run = enqueue_run(
        kind="score", project=project, user=user, params=asked.params, title=asked.title, send=send, queue=asked.queue
    )
    if warning := warn_unreadable(project, asked.entry, asked.params["options"], asked.trained):
        RunLog.objects.get_or_create(run=run, text=_("Warning: %(text)s") % {"text": warning})
    return run


def check_scoring(
    grounds: Grounds,
    evaluator: str,
    options: Mapping[str, Any] | None = None,
    references: str = ORIGINAL,
    *,
    any_encoder: bool = False,
) -> ScoringRequest:
    """Check a request to score with an evaluator that is not a combination."""
    project, row = grounds.project, grounds.find(evaluator)
    if row is None:
        evaluator, implied = resolve_alias(evaluator)
        options, row = {**implied, **(options or {})}, grounds.find(evaluator)
    if row is not None:
        refuse_scoring(row)
    trained = row if row is not None and row.is_trained else None
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
    against = grounds.get_references(references) if "references" in entry.needs else None
    if not grounds.n_outputs:
        text = _("%(project)s has no outputs yet. Upload a JSONL or CSV file, or run `evalapp load`, then score.")
        raise BadInput(text % {"project": project.slug})
    is_named = trained is not None or evaluator in list_shipped()
    slug = evaluator if is_named else make_slug(entry.name, parsed, get_default_options(entry, project))
    if not trained:
        _check_slug(grounds.find(slug), entry.name)
    return ScoringRequest(
        entry=entry,
        trained=trained,
        params={
            "evaluator": evaluator if is_named else entry.name,
            "options": parsed,
            "references": references if against else "",
        },
        slug=slug,
        queue="gpu" if "encoder" in entry.needs or encoder or trained else "",
    )


def _check_references(project: Project, against: ReferenceSet) -> None:
    """Refuse a reference set without a reference for any output: every score would be undefined."""
    scored = Exists(Output.objects.filter(item=OuterRef("item")))
    present = Reference.objects.filter(set__project=project).filter(scored)
    if against.pk and present.filter(set=against).exists():
        return
    names = present.order_by("set__name").values_list("set__name", flat=True).distinct()
    if names:
        way = _("Choose a set that has some: %(names)s.") % {"names": ", ".join(names)}
    else:
        way = _("Upload references, collect them in a writing campaign, or select them with an evaluator.")
    text = _("The reference set %(name)s has no reference for any output, so every score would be undefined.")
    text = f"{text % {'name': against.name}} {way}"
    raise BadInput.for_field("references", text)


def _check_slug(row: Evaluator | None, name: str) -> None:
    """Refuse if the slug already belongs to another evaluator, such as a trained one with that name."""
    if row is not None and row.name != name:
        text = _(
            "The name %(slug)s, which %(name)s would get with these options, belongs to a %(kind)s %(other)s. Delete "
            "that evaluator, or choose other options."
        )
        raise Conflict(text % {"slug": row.slug, "name": name, "kind": row.kind, "other": row.name})


def _applicable(project: Project, name: str) -> Entry:
    """Return the catalogue entry; a trainable method cannot be applied before it is trained, unless it is shipped."""
    if name in list_shipped():
        return get_method(name)
    try:
        entry = get_entry(name)
    except NotThere as error:
        refuse_unfinished(project, name)
        slugs = list(list_trained(project).values_list("slug", flat=True)[:20])
        hint = _("Trained in %(project)s: %(names)s.") % {"project": project.slug, "names": ", ".join(slugs)}
        raise NotThere(f"{error.detail} {hint}" if slugs else error.detail) from error
    if entry.learns:
        slugs = list(list_trained(project).filter(name=name).values_list("slug", flat=True)[:20])
        text = _("%(name)s must be trained first.") % {"name": name} + " "
        slugs += [one.name for one in list_shipped().values() if one.method == name and one.name not in slugs]
        if slugs:
            text += _("Trained ones: %(names)s.") % {"names": ", ".join(slugs)}
        else:
            text += _("Train it: %(command)s") % {"command": f"evalapp train {name} --project {project.slug}"}
        raise BadInput.for_field("evaluator", text)
    return entry


@dataclass(frozen=True)
class ScoringOptions:
    """Options of a scoring run."""

    evaluator: str = param(
        help="An evaluator of the catalogue, a trained one or a combination, by name.",
        needed=gettext_noop("Name the evaluator to apply."),
    )
    options: dict[str, Any] = param({}, help="Options of the evaluator; options left out keep their defaults.")
    references: str = param(ORIGINAL, help="The reference set.")


def start_scoring(*, project: Project, user: Any = None, options: ScoringOptions, **more: Any) -> Run:
    """Call `apply_evaluator` with the options of a request."""
    return apply_evaluator(project=project, user=user, **vars(options), **more)


def _from_project(entry: Entry, project: Project) -> dict[str, Any]:
    """Return the options that the project sets: the language of its texts, which selects the tokeniser."""
    names = {option.name for option in entry.options}
    return {"lang": project.lang} if "lang" in names and project.lang else {}


def get_default_options(entry: Entry, project: Project) -> dict[str, Any]:
    """Return the default options of an evaluator in this project."""
    return {**{option.name: option.default for option in entry.options}, **_from_project(entry, project)}


def make_slug(name: str, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return the name with the options that differ from their defaults, such as `bleu-4-smooth-floor`."""
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
    """Return the score set of this signature, created if needed.

    A new set belongs to `run`, which removes it if it ends without a score. A `trained` evaluator of multiple aspects
    has one set per aspect. Call `take_score_sets` before filling it.
    """
    with transaction.atomic():
        evaluator = trained or _open_evaluator(project, name, options)
        score_set, _created = ScoreSet.objects.get_or_create(
            evaluator=evaluator,
            signature=signature,
            references=references,
            aspect=aspect,
            defaults={"project": project, "short_signature": short, "run": run},
        )
    return score_set


def _open_evaluator(project: Project, name: str, options: Mapping[str, Any]) -> Evaluator:
    """Return the evaluator row of a baseline with these options, locked until the set is stored."""
    entry = get_entry(name)
    slug = make_slug(name, options, get_default_options(entry, project))
    defaults = {"name": name, "kind": entry.kind, "options": dict(options)}
    while True:
        row, _created = Evaluator.objects.get_or_create(project=project, slug=slug, defaults=defaults)
        _check_slug(row, name)
        if Evaluator.objects.select_for_update().filter(pk=row.pk).values_list("pk").first() is not None:
            return row


def take_score_sets(*, score_sets: Sequence[ScoreSet], run: Run) -> Run | None:
    """Claim the sets for this run. Returns None, or the running run that holds one of them (then none is claimed).

    Raises `ScoreSet.DoesNotExist` if a set was removed because its run failed without a score.
    """
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
    """Clean up after a run that did not succeed: remove its incomplete sets without scores, count the others."""
    with transaction.atomic():
        for score_set in ScoreSet.objects.select_for_update().filter(run=run, scored_at=None).order_by("pk"):
            counts = _counts(score_set)
            if counts["n_scores"]:
                ScoreSet.objects.filter(pk=score_set.pk).update(**counts)
            else:
                _remove(score_set)


def delete_scores(*, score_set: ScoreSet, user: Any = None) -> bool:
    """Delete a score set with its scores; combinations keep theirs.

    Returns whether the evaluator was removed too (a baseline without sets is). Raises `Conflict` while an active run
    uses the evaluator.
    """
    evaluator, project = score_set.evaluator, score_set.project
    refuse_used(evaluator, _run_that_uses(evaluator))
    from ..selectors.columns import get_columns_file  # imports numpy, which would delay the start of the web process

    columns = get_columns_file(score_set)
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


def _run_that_uses(evaluator: Evaluator) -> Run | None:
    """Return an active run that names this evaluator; a baseline is named by its name and options."""
    for run in Run.objects.filter(project=evaluator.project, state__in=Run.ACTIVE).order_by("pk"):
        applies = run.kind == "score" and run.params.get("evaluator") == evaluator.name
        if evaluator.slug in names_in(run.params) and not (applies and evaluator.name == evaluator.slug):
            return run
        if applies and not evaluator.is_trained and run.params.get("options") == evaluator.options:
            return run
    return None


def _remove(score_set: ScoreSet) -> bool:
    """Delete the set, and with the last set of a baseline its evaluator."""
    evaluator = Evaluator.objects.select_for_update().get(pk=score_set.evaluator_id)
    score_set.delete()
    if evaluator.is_trained or evaluator.score_sets.exists():
        return False
    evaluator.delete()
    return True


def store_scores(*, score_set: ScoreSet, scores: Sequence[NewScore]) -> None:
    """Replace the set's scores of the outputs, all or none."""
    if not scores:
        return
    with transaction.atomic():
        # A worker believed lost may still store the same rows; the lock makes them take turns.
        ScoreSet.objects.select_for_update().filter(pk=score_set.pk).values_list("pk").first()
        for keys in split_keys([row.output for row in scores]):
            Score.objects.filter(score_set=score_set, output__in=keys).delete()
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
    """Count the scores of the set and mark it as complete, now or at `scored_at`."""
    figures = {"data_hash": data_hash, "systems": systems, "summary": summary}
    score_set.scored_at = scored_at or timezone.now()
    for name, value in {**_counts(score_set), **figures}.items():
        setattr(score_set, name, value)
    score_set.save()
    return score_set


def recount_score_set(*, score_set: ScoreSet) -> None:
    """Update counts and summary after scores were imported or removed; the set stays complete."""
    from ..selectors.summaries import summarise_scores  # imports numpy, which would delay the web process

    finish_score_set(
        score_set=score_set, data_hash=score_set.data_hash, systems=score_set.systems,
        summary=summarise_scores(score_set), scored_at=score_set.scored_at,
    )  # fmt: skip


def _counts(score_set: ScoreSet) -> dict[str, int]:
    """Return the counts of the set's scores by column name."""
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
