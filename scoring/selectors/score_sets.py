"""Read score sets: the current ones of each evaluator, and whether they are outdated."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Campaign, Judgement, Output, ReferenceSet, Upload, UploadChange, WrittenReference
from annotation.models.data import ORIGINAL
from annotation.services.hooks import RESULT_TABLES
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.names import natural_key

from ..models import Evaluator, Score, ScoreSet
from .catalogue import entries
from .external import count_outdated

#: Order by evaluator and aspect, newest first.
_CURRENT = ("evaluator__slug", "aspect", "-scored_at", "-pk")
#: Tables of an upload that a score depends on; learned combinations also depend on ratings.
INPUTS = ("items", "outputs", "references")
RATINGS = "ratings"
#: Length of the excerpt of a run's error; the page of the run shows it in full.
MOST_OF_REASON = 200
#: Maximum number of reasons for undefined scores.
MOST_REASONS = 10
#: Values of `UploadChange.table`: a score set that received scores, an uploaded table, answers of judges.
SCORES, TABLES, ANSWERS = RESULT_TABLES


@dataclass(frozen=True)
class SetState:
    """A score set and why it is outdated (`stale`, empty if it is current). `deleted` are deleted parts of a
    combination, whose scores cannot be renewed. Scores made elsewhere can only be uploaded again."""

    score_set: ScoreSet
    stale: str
    n_missing: int
    deleted: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        return bool(self.stale)

    @property
    def is_final(self) -> bool:
        """Whether applying the evaluator again cannot renew the scores."""
        return bool(self.deleted) or self.score_set.evaluator.is_external

    @property
    def words(self) -> str:
        """The reason with the number of outputs without a score, if any."""
        if not self.stale or not self.n_missing or self.stale == _came_later(self.n_missing):
            return self.stale
        return f"{self.stale}; {_count_missing(self.n_missing)}"

    @property
    def why_undefined(self) -> list[tuple[str, int]]:
        """Reasons for undefined scores with counts, from the run; needs the set's `run`."""
        run = self.score_set.run
        result = (run.result or {}).get("why_undefined") if run is not None and self.score_set.n_undefined else None
        return list(result.items()) if isinstance(result, dict) else []

    @property
    def is_under_way(self) -> bool:
        """Whether the run that scores it is in progress; needs the set's `run`."""
        run = self.score_set.run
        return self.score_set.scored_at is None and run is not None and run.is_active

    @property
    def is_unfinished(self) -> bool:
        """Whether scoring ended early: the run failed, was cancelled, or was deleted."""
        return self.score_set.scored_at is None and not self.is_under_way

    @property
    def may_be_retried(self) -> bool:
        run = self.score_set.run
        return self.is_unfinished and run is not None and run.state in (Run.State.FAILED, Run.State.CANCELLED)


def get_states(project: Project, sets: Iterable[ScoreSet], n_outputs: int) -> list[SetState]:
    """Return the state of each set with a fixed number of queries; needs the sets' `evaluator`."""
    sets = list(sets)
    done = [s.scored_at for s in sets if s.scored_at]
    uploads: list[Any] = []
    if done:
        rows = Upload.objects.filter(
            project=project, state__in=[Upload.State.DONE, Upload.State.UNDONE], finished_at__gt=min(done)
        )
        uploads = [
            row
            for row in rows.only("pk", "state", "counts", "created_at", "finished_at").order_by("finished_at", "pk")
            if _touches(row, (*INPUTS, RATINGS))
        ]
    newest, written = _newest(sets), _written(project, {s.references for s in sets if s.scored_at} - {"", ORIGINAL})
    moved = _moved_parts(project, [s for s in sets if s.scored_at and s.evaluator.is_combined])
    rated = _rated(project, {s.evaluator.options["aspect"] for s in sets if s.scored_at and _learned(s)})
    outdated = count_outdated(project, [s for s in sets if s.scored_at and s.evaluator.is_external], written)
    parts = {s.pk: s.evaluator.parts for s in sets}
    deleted = deleted_among(project, (slug for slugs in parts.values() for slug in slugs))
    gone = {pk: tuple(slug for slug in slugs if slug in deleted) for pk, slugs in parts.items()}
    return [
        _state_external(s, n_outputs, newest, outdated.get(s.pk, 0))
        if s.scored_at and s.evaluator.is_external
        else replace(_state(s, uploads, n_outputs, newest, written, moved, rated, gone[s.pk]), deleted=gone[s.pk])
        for s in sets
    ]


def deleted_among(project: Project, slugs: Iterable[str]) -> set[str]:
    """Return the names that no evaluator has any more. Evaluators of the catalogue can always be applied again."""
    named = set(slugs)
    if not named:
        return named
    there = Evaluator.objects.filter(project=project, slug__in=named).values_list("slug", flat=True)
    return named - set(there) - {entry.name for entry in entries() if not entry.learns}


def words_of_deleted(parts: Sequence[str]) -> str:
    """Return a message that these parts of a combination were deleted."""
    if len(parts) == 1:
        return _("its part %(name)s was deleted") % {"name": parts[0]}
    return _("its parts %(names)s were deleted") % {"names": ", ".join(parts)}


def list_combinations(project: Project, slug: str) -> list[Evaluator]:
    """Return the combinations that contain an evaluator, by name."""
    rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.COMBINED)
    return sorted((row for row in rows if slug in row.parts), key=lambda row: natural_key(row.slug))


def _learned(s: ScoreSet) -> bool:
    """Return whether it is a combination whose weights were learned from ratings here."""
    return bool(s.evaluator.record.get("parts")) and s.evaluator.options.get("method") == "stacked"


def _rated(project: Project, aspects: set[str]) -> dict[str, datetime]:
    """Return the time of the last rating of each aspect from campaigns, which uploads do not record."""
    if not aspects:
        return {}
    judged = Judgement.objects.filter(campaign=OuterRef("pk"), passed=None, extra=False).order_by("-pk")
    rows = Campaign.objects.filter(project=project, kind=Campaign.Kind.LIKERT, aspects__aspect__name__in=aspects)
    last = rows.order_by().annotate(last=Subquery(judged.values("created_at")[:1]))
    result: dict[str, datetime] = {}
    for aspect, moment in last.values_list("aspects__aspect__name", "last"):
        if moment is not None:
            result[aspect] = max(moment, result.get(aspect, moment))
    return result


def _moved_parts(project: Project, combined: list[ScoreSet]) -> dict[int, str]:
    """Return set -> the first part whose scores changed since they were combined."""
    # Uploaded combinations have no record of their parts.
    combined = [s for s in combined if s.evaluator.record.get("parts")]
    slugs = {part["evaluator"] for s in combined for part in s.evaluator.record["parts"]}
    if not slugs:
        return {}
    rows = ScoreSet.objects.filter(project=project, evaluator__slug__in=slugs, scored_at__isnull=False)
    present = list(rows.select_related("evaluator").order_by(*_CURRENT))
    result: dict[int, str] = {}
    for s in combined:
        sets = sets_of_parts(present, s.evaluator.options["references"], s.evaluator.options["aspect"])
        for part in s.evaluator.record["parts"]:
            now = sets.get(part["evaluator"])
            if now is None or now.full_signature != part["signature"]:
                result.setdefault(s.pk, part["evaluator"])
    return result


def sets_of_parts(present: Iterable[ScoreSet], references: str, aspect: str) -> dict[str, ScoreSet]:
    """Return the score set of each evaluator that a combination uses, out of complete sets in the order of
    `current_sets`: the newest with these references or none, of the given aspect if the evaluator has several."""
    result: dict[str, ScoreSet] = {}
    for s in present:
        slug = s.evaluator.slug
        is_meant = s.aspect and s.aspect == aspect and slug in result and result[slug].aspect != aspect
        if s.references in (references, "") and (slug not in result or is_meant):
            result[slug] = s
    return result


def _written(project: Project, names: set[str]) -> dict[str, datetime]:
    """Return the time of the last written or withdrawn text of each reference set, which uploads do not record."""
    if not names:
        return {}
    states = [WrittenReference.State.SHOWN, WrittenReference.State.WITHDRAWN]
    rows = WrittenReference.objects.filter(set__project=project, set__name__in=names, state__in=states).order_by()
    result = rows.values_list("set__name").annotate(
        Max("created_at"), Max("withdrawn_at"), Max("confirmations__created_at")
    )
    return {name: max(moment for moment in moments if moment is not None) for name, *moments in result}


def _newest(sets: list[ScoreSet]) -> dict[tuple[int, str, str], ScoreSet]:
    result: dict[tuple[int, str, str], ScoreSet] = {}
    for s in sets:
        key = (s.evaluator_id, s.references, s.aspect)
        if s.scored_at and (key not in result or s.scored_at > result[key].scored_at):
            result[key] = s
    return result


def _touches(upload: Upload, inputs: tuple[str, ...]) -> bool:
    if upload.state == Upload.State.UNDONE:
        return True
    return any(
        upload.counts.get(kind, {}).get(what) for kind in inputs for what in ("added", "replaced") if upload.counts
    )


def _is_later(upload: Upload, s: ScoreSet) -> bool:
    """Return whether an upload, or its undo, is later than the scores, or than the upload of the scores."""
    assert s.scored_at is not None
    assert upload.finished_at is not None
    if s.run_id is not None or upload.state == Upload.State.UNDONE:
        return upload.finished_at > s.scored_at
    return upload.created_at > max(s.scored_at, s.created_at)


def _list_inputs(s: ScoreSet) -> tuple[str, ...]:
    """Return the uploaded tables that a set depends on. Original references are uploaded with their items."""
    inputs = tuple(kind for kind in INPUTS if kind != "references" or s.references not in ("", ORIGINAL))
    return (*inputs, RATINGS) if _learned(s) else inputs


def _state(
    s: ScoreSet,
    uploads: list[Any],
    n_outputs: int,
    newest: dict[tuple[int, str, str], ScoreSet],
    written: dict[str, datetime],
    moved: dict[int, str],
    rated: dict[str, datetime],
    deleted: tuple[str, ...],
) -> SetState:
    missing = max(0, n_outputs - s.n_scores)
    if s.scored_at is None:
        return SetState(s, _unfinished(s.run), missing)
    inputs = _list_inputs(s)
    changed = [upload.pk for upload in uploads if _is_later(upload, s) and _touches(upload, inputs)]
    current = newest[s.evaluator_id, s.references, s.aspect]
    if current.pk != s.pk:
        return SetState(s, _("another signature was scored later"), missing)
    if deleted:
        text = _("%(reason)s, so that it cannot be renewed")
        return SetState(s, text % {"reason": words_of_deleted(deleted)}, missing)
    if changed:
        text = _("upload %(upload)d changed items, outputs or references later")
        if _learned(s):
            text = _("upload %(upload)d changed items, outputs, references or ratings later")
        return SetState(s, text % {"upload": changed[-1]}, missing)
    if s.references in written and written[s.references] > s.scored_at:
        text = _("references were added to or removed from %(name)s later")
        return SetState(s, text % {"name": s.references}, missing)
    if s.pk in moved:
        return SetState(s, _("the scores of its part %(name)s changed") % {"name": moved[s.pk]}, missing)
    aspect = s.evaluator.options["aspect"] if _learned(s) else ""
    if aspect in rated and rated[aspect] > s.scored_at:
        text = _("ratings of %(aspect)s, from which it learned its weights, were added later")
        return SetState(s, text % {"aspect": aspect}, missing)
    if missing:
        return SetState(s, _came_later(missing), missing)
    return SetState(s, "", 0)


def _state_external(
    s: ScoreSet, n_outputs: int, newest: dict[tuple[int, str, str], ScoreSet], outdated: int
) -> SetState:
    """Return the state of scores made elsewhere: what was scored was hashed when they were uploaded."""
    # A set with scores of whole systems only has none of outputs.
    missing = max(0, n_outputs - s.n_scores) if s.n_scores else 0
    if newest[s.evaluator_id, s.references, s.aspect].pk != s.pk:
        return SetState(s, _("another signature was scored later"), missing)
    if outdated:
        text = ngettext(
            "%(n)s score is of a text, context, source or references that have changed since; upload it again",
            "%(n)s scores are of texts, contexts, sources or references that have changed since; upload them again",
            outdated,
        )
        return SetState(s, text % {"n": f"{outdated:,}"}, missing)
    return SetState(s, _came_later(missing) if missing else "", missing)


def _unfinished(run: Run | None) -> str:
    """Return why a set is incomplete."""
    if run is not None and run.is_active:
        return _("not finished: run %(run)d is in progress") % {"run": run.pk}
    if run is not None and run.state == Run.State.FAILED:
        reason = run.error.strip().split("\n")[0].rstrip(".")
        text = _("failed: %(reason)s (run %(run)d)")
        return text % {"reason": reason[:MOST_OF_REASON] or _("no reason was stored"), "run": run.pk}
    if run is not None and run.state == Run.State.CANCELLED:
        return _("not finished: run %(run)d was cancelled") % {"run": run.pk}
    return _("not finished: its run was deleted")


def _came_later(n: int) -> str:
    text = ngettext("%(n)s output came later and has no score", "%(n)s outputs came later and have no score", n)
    return text % {"n": f"{n:,}"}


def _count_missing(n: int) -> str:
    return ngettext("%(n)s output has no score", "%(n)s outputs have no score", n) % {"n": f"{n:,}"}


def list_states(project: Project, n_outputs: int) -> list[SetState]:
    """Return all sets of a project, newest first."""
    sets = ScoreSet.objects.filter(project=project).select_related("evaluator", "run").order_by("-pk")
    return get_states(project, sets, n_outputs)


def current_sets(project: Project, references: str = ORIGINAL, aspect: str | None = None) -> list[ScoreSet]:
    """Return the newest complete set of every evaluator with these references or none; one for each aspect if an
    evaluator has several. With `aspect` only sets of that aspect and sets without one."""
    rows = (
        ScoreSet.objects.filter(project=project, references__in=[references, ""], scored_at__isnull=False)
        .select_related("evaluator")
        .order_by(*_CURRENT)
    )
    if aspect is not None:
        rows = rows.filter(aspect__in=["", aspect])
    result: dict[tuple[int, str], ScoreSet] = {}
    for row in rows:
        result.setdefault((row.evaluator_id, row.aspect), row)
    return list(result.values())


def get_current_set(
    project: Project, evaluator: Evaluator, references: str = ORIGINAL, aspect: str = ""
) -> ScoreSet | None:
    """Return the evaluator's newest complete set, of the given aspect if it has several."""
    sets = [s for s in current_sets(project, references) if s.evaluator_id == evaluator.pk]
    return next((s for s in sets if s.aspect == aspect), sets[0] if sets else None)


def why_undefined(score_set: ScoreSet) -> dict[str, int]:
    """Return the reasons for undefined scores with counts, most frequent first."""
    rows = Score.objects.filter(score_set=score_set, value=None).order_by().values_list("note").annotate(n=Count("pk"))
    return {note or _("unknown reason"): n for note, n in rows.order_by("-n", "note")[:MOST_REASONS]}


def scores_of_outputs(project: Project, outputs: Iterable[int]) -> list[Score]:
    """Return the current scores of some outputs, for the page of an item."""
    sets = [s.pk for name in _reference_names(project) for s in current_sets(project, name)]
    rows = Score.objects.filter(score_set__in=set(sets), output__in=list(outputs))
    shown = rows.select_related("score_set__evaluator").order_by("score_set")
    return sorted(shown, key=lambda row: natural_key(row.score_set.evaluator.slug))


def _reference_names(project: Project) -> list[str]:
    names = ScoreSet.objects.filter(project=project).values_list("references", flat=True).distinct()
    return sorted({name for name in names if name} | {ORIGINAL}, key=natural_key)


def brought_by(upload: Upload) -> Iterator[tuple[UploadChange, QuerySet[Score]]]:
    """Yield the existing scores from an upload, by range of primary keys."""
    for change in UploadChange.objects.filter(upload=upload, table=SCORES).order_by("pk"):
        for first, last in change.before["ids"]:
            yield change, Score.objects.filter(score_set=change.row, pk__range=(first, last))


def count_of_upload(*, upload: Upload) -> int:
    """Return the number of scores that depend on the rows of an upload: on its outputs, on outputs of its items, or on
    reference sets that it added or extended. Scores from the same upload do not count."""
    outputs = Output.objects.filter(Q(upload=upload) | Q(item__upload=upload))
    count = Score.objects.filter(output__in=outputs.values("pk")).count()
    own: Counter[int] = Counter()
    for change, rows in brought_by(upload):
        count -= rows.filter(output__in=outputs.values("pk")).count()
        own[change.row] += rows.count()
    brought = Q(upload=upload) | Q(references__upload=upload)
    sets = ReferenceSet.objects.filter(brought, project=upload.project_id)
    names = list(sets.order_by().values_list("name", flat=True).distinct())
    against = ScoreSet.objects.filter(project=upload.project_id, references__in=names) if names else ()
    return count or sum(s.n_scores - own[s.pk] for s in against)
