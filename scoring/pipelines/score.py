"""Applying an evaluator to the outputs of a project: read a chunk, score what is new or changed, store, go on.

Every chunk is committed, so a run that was cancelled or lost goes on where it stopped, and a second run with the
same signature scores only what changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import F
from django.utils import timezone

from annotation.models import Output, ReferenceSet, System
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.queue import return_lost_run
from evalapp.common.runner import RunContext

from ..models import UNKNOWN, Evaluator, Score, ScoreSet
from ..selectors.catalogue import get_entry, parse_options
from ..selectors.inputs import (
    DataHash,
    Input,
    contents_of_items,
    count_outputs,
    get_reference_set,
    groups_of_items,
    input_hash,
    iterate_inputs,
)  # fmt: skip
from ..selectors.run_results import make_score_address
from ..selectors.score_sets import why_undefined
from ..selectors.summaries import summarise_scores
from ..selectors.training import artefact_folder, refuse_away
from ..services.columns import keep_columns
from ..services.leaderboards import renew_leaderboards
from ..services.scores import NewScore, finish_score_set, open_score_set, store_scores, take_score_sets
from ..services.training import mark_damaged, mark_ready

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalapp.stats.core.estimate import Estimate
    from scoring.ml import Evaluator as Scorer
    from scoring.ml import Record

log = logging.getLogger(__name__)

NO_SUMS = "one value for all outputs of the system, without an interval: it is not made of sums over texts"
#: Read at once for the values of systems: a text may be read twenty times there, and progress is told in between.
FEW_ITEMS = 16
#: Seconds that a run waits for another at the same sets.
PATIENCE = 60.0


@dataclass(frozen=True)
class Target:
    """A set to be filled; `aspect` names the component whose values it gets, empty the score itself."""

    score_set: ScoreSet
    aspect: str = ""


def run(context: RunContext, *, evaluator: str, options: dict[str, Any], references: str) -> dict[str, Any]:
    """Score every output whose input is new or changed; the result says how many were scored and kept."""
    from scoring.ml import ScoringError

    trained = Evaluator.objects.filter(project=context.project, slug=evaluator, kind=Evaluator.Kind.TRAINED).first()
    against = get_reference_set(context.project, references) if references else None
    context.progress(0, None, "outputs", "loading")
    try:
        measure, targets = _open(context, evaluator, options, references, trained)
        work = _Work(context, measure, targets, against)
        work.score_outputs()
        for target in targets:
            _finish(work, target)
    except ScoringError as error:
        raise BadInput(str(error)) from error
    renew_leaderboards(project=context.project, run=context.run)
    score_set = targets[0].score_set
    undefined = why_undefined(score_set) if score_set.n_undefined else {}
    for reason, count in undefined.items():
        context.log(f"{count:,} of {score_set.n_scores:,} outputs have no score: {reason}.")
    if score_set.n_unknown:
        context.log(
            f"{score_set.n_unknown:,} of {score_set.n_scores:,} outputs have words that the encoder does not know."
        )
    return {
        "evaluator": score_set.evaluator.slug,
        "score_set": score_set.pk,
        "signature": score_set.full_signature,
        "scored": work.n_scored,
        "kept": work.n_kept,
        "outputs": score_set.n_scores,
        "undefined": score_set.n_undefined,
        **({"why_undefined": undefined} if undefined else {}),
        "empty": score_set.n_empty,
        "truncated": score_set.n_truncated,
        **({"unknown": score_set.n_unknown} if score_set.n_unknown else {}),
        "duplicate": score_set.n_duplicate,
        **({"in_training": score_set.n_in_training} if trained else {}),
        **({"aspects": [target.aspect for target in targets]} if targets[0].aspect else {}),
        "url": make_score_address(score_set),
    }


def _open(
    context: RunContext, evaluator: str, options: dict[str, Any], references: str, trained: Evaluator | None
) -> tuple[Scorer, list[Target]]:
    """The evaluator and the set it fills; one that learned several aspects fills one for each in a single pass."""
    from scoring.ml import load

    entry = get_entry(trained.name if trained else evaluator)
    parsed = parse_options(entry, options)
    if trained is None:
        measure = load(evaluator, **parsed)
        signatures = [("", measure.signature, measure.short_signature)]
    else:
        measure = load_trained(trained, parsed)
        signatures = [("", measure.signature, measure.short_signature)]
        if entry.aspect == "many" and parsed.get("aspect", "") is None:
            of_aspect = [
                (aspect, load_artefact(trained, {**parsed, "aspect": aspect}, verify=False))
                for aspect in measure.component_names
            ]
            signatures = [(aspect, found.signature, found.short_signature) for aspect, found in of_aspect]

    def open_all() -> list[Target]:
        return [
            Target(
                open_score_set(
                    project=context.project,
                    name=entry.name,
                    options=parsed,
                    references=references,
                    signature=signature,
                    short=short,
                    trained=trained,
                    aspect=aspect or (str(parsed.get("aspect") or "") if trained else ""),
                    run=context.run,
                ),
                aspect,
            )
            for aspect, signature, short in signatures
        ]

    targets = _take(context, open_all)
    for target in targets:
        context.log(f"Signature: {target.score_set.full_signature}")
    return measure, targets


def load_trained(trained: Evaluator, options: dict[str, Any]) -> Any:
    """The evaluator of a folder. One that was trained here is told in which groups the items are now, so that one it
    has seen is not taken for new where it was moved, and what those are that came since, for the same data may be taken
    in again by other names. Elsewhere other items go by the same names: one that was uploaded is told what all are."""
    found = load_artefact(trained, options)
    if trained.record.get("choice"):
        began = trained.run.created_at if trained.run is not None else trained.created_at
        found.regroup(groups_of_items(trained.project), contents_of_items(trained.project, since=began))
    else:
        found.recognise(contents_of_items(trained.project))
    return found


def load_artefact(trained: Evaluator, options: dict[str, Any], *, verify: bool = True) -> Any:
    """The evaluator of a folder. One that is damaged is marked so for the pages; one found whole no longer is. Raises
    `BadInput` for one whose folder never was here, `ScoringError` for damage and for options that it does not have."""
    from scoring.ml import ArtefactError, InvalidOption, ScoringError, load
    from scoring.ml.base import ARTIFACT

    refuse_away(trained)
    folder = artefact_folder(trained)
    try:
        # Without it the folder would be taken for a name of the catalogue.
        if not (folder / ARTIFACT).is_file():
            raise ArtefactError(
                str(folder), f"{ARTIFACT} is missing. Put the folder back from a backup, or train it again"
            )
        found = load(folder, verify=verify, **options)
    except InvalidOption:
        raise
    except ScoringError as error:
        # Where it stands on the server is not for everybody who may see the evaluator.
        damage = str(error).replace(str(folder), trained.slug)
        mark_damaged(evaluator=trained, damage=damage)
        raise ScoringError(damage) from error
    mark_ready(evaluator=trained)
    return found


def _take(context: RunContext, open_all: Callable[[], list[Target]]) -> list[Target]:
    """Another run may be at the same sets: of one aspect, of options that change no score, or just being cancelled.
    Its end is waited for, though not for ever; all sets are taken together, so no two runs wait for each other. Where
    that run ended without a score its sets are gone, and are opened again."""
    until = time.monotonic() + PATIENCE
    while True:
        targets = open_all()
        sets = [target.score_set for target in targets]
        try:
            other = take_score_sets(score_sets=sets, run=context.run)
        except ScoreSet.DoesNotExist:
            continue
        if other is None:
            return targets
        if time.monotonic() >= until:
            text = f"Run {other.pk} is just filling the same scores ({sets[0].evaluator.slug}). "
            raise Conflict(text + "Retry this run when that one has ended; it then scores what is missing.")
        context.progress(0, None, "outputs", f"waiting for run {other.pk}")
        return_lost_run(other.pk)
        time.sleep(1)


def _finish(work: _Work, target: Target) -> None:
    score_set = target.score_set
    unchanged = bool(score_set.scored_at) and not work.n_scored and work.data.text == score_set.data_hash
    # Values of systems from before they had intervals are computed anew.
    unchanged = unchanged and all("low" in row for row in score_set.systems)
    if unchanged:
        systems, summary = score_set.systems, score_set.summary
    else:
        systems = work.score_systems() if work.measure.entry.system_score == "corpus" else []
        summary = summarise_scores(score_set)
    finish_score_set(
        score_set=score_set, data_hash=work.data.text, systems=systems, summary=summary, scored_at=work.began
    )
    keep_columns(score_set)


class _Work:
    """One pass over a project; `n_scored` and `n_kept` count outputs. One is kept where every target has its score: of
    an evaluator of several aspects one alone may have been asked for before."""

    def __init__(
        self, context: RunContext, measure: Scorer, targets: Sequence[Target], against: ReferenceSet | None
    ) -> None:
        self.context, self.measure, self.targets, self.against = context, measure, targets, against
        #: What changes from now on may be too late to be seen by this pass.
        self.began = timezone.now()
        self.total = count_outputs(context.project)
        self.data = DataHash()
        self.n_scored = self.n_kept = 0
        self.n_seen = 0
        self.trained_on: frozenset[str] | None = getattr(measure, "trained_on", None)
        self.remarks: set[str] = set()
        self._log_remarks(measure.remarks)

    def score_outputs(self) -> None:
        if self.measure.depends_on_batch:
            self._score_chunk([row for chunk in self._chunks() for row in chunk], together=True)
            return
        for chunk in self._chunks():
            self._score_chunk(chunk)

    def _chunks(self) -> Iterable[list[Input]]:
        for chunk in iterate_inputs(self.context.project, references=self.against, known=self.targets[0].score_set):
            self.context.check()
            yield chunk

    def _score_chunk(self, chunk: Sequence[Input], *, together: bool = False) -> None:
        """Score the rows of a chunk that are new or changed; `together`: one change means all anew."""
        hashes = [input_hash(self._identity(row.record)) for row in chunk]
        if together:
            whole = DataHash()
            for row, hash_of_input in zip(chunk, hashes, strict=True):
                whole.add(row.record, hash_of_input)
            hashes = [input_hash((whole.text, hash_of_input)) for hash_of_input in hashes]
        wanted = []
        for row, known, hash_of_input in zip(chunk, self._known(chunk), hashes, strict=True):
            self.data.add(row.record, hash_of_input)
            if known != hash_of_input:
                wanted.append((row, hash_of_input))
        self.n_kept += len(chunk) - len(wanted)
        if wanted:
            self._score_and_store(wanted)
        self.n_seen += len(chunk)
        self.context.progress(self.n_seen, self.total, "outputs", "scoring")

    def _known(self, chunk: Sequence[Input]) -> list[int | None]:
        """The hash that the stored scores of each output were computed from, where all targets have the same."""
        known = [row.known for row in chunk]
        for target in self.targets[1:]:
            rows = Score.objects.filter(score_set=target.score_set, output__in=[row.output for row in chunk])
            stored = dict(rows.values_list("output", "input_hash"))
            known = [old if stored.get(row.output) == old else None for row, old in zip(chunk, known, strict=True)]
        return known

    def _summed(self) -> dict[tuple[str, int | None], tuple[NDArray[Any], list[str]]] | None:
        """What the score of each system is made of and the group of each text, read for all systems together, so that
        references are read once; None where it is not made of sums."""
        import numpy as np

        found: dict[tuple[str, int | None], tuple[list[NDArray[Any]], list[str]]] = {}
        done = 0
        for chunk in iterate_inputs(self.context.project, references=self.against, items=FEW_ITEMS):
            self.context.progress(done, self.total, "outputs", "systems")
            if not chunk:
                continue
            records = [row.record for row in chunk]
            statistics = self.measure.system_statistics(records)
            if statistics is None:
                return None
            for record, row in zip(records, statistics, strict=True):
                rows, groups = found.setdefault((record.system, record.step), ([], []))
                rows.append(row)
                groups.append(record.group or record.item)
            done += len(chunk)
        return {key: (np.array(rows), groups) for key, (rows, groups) in found.items()}

    def _own_value(self, records: Sequence[Record]) -> Estimate:
        """Of an evaluator that must see all texts of a system at once."""
        from evalapp.stats.core.estimate import Estimate

        statistics = self.measure.system_statistics(records)
        if statistics is None:
            return Estimate.point(self.measure.system_score(records), len(records), NO_SUMS)
        return self._interval(statistics, [record.group or record.item for record in records])

    def _interval(self, statistics: NDArray[Any], groups: Sequence[str]) -> Estimate:
        from evalapp.stats.ranking.own_values import bootstrap_sums

        value = float(self.measure.from_sums(statistics.sum(axis=0)))
        return bootstrap_sums(value, statistics, groups, self.measure.from_sums)

    def _identity(self, record: Record) -> Hashable:
        """What a stored score depends on: for a trained evaluator also whether it learned from the item's group."""
        identity = self.measure.identity(record)
        return identity if self.trained_on is None else (identity, self._in_training(record))

    def _in_training(self, record: Record) -> bool:
        from scoring.ml.types import training_names

        if not self.trained_on:
            return False
        return not self.trained_on.isdisjoint(training_names(record.group, record.item))

    def _score_and_store(self, wanted: Sequence[tuple[Input, int]]) -> None:
        found = self.measure.evaluate([row.record for row, _ in wanted], progress=self._progress(len(wanted)))
        self._log_remarks(found.remarks)
        truncated, unknown = found.truncated, found.unknown
        # The first target last: it says what is known, so nothing is lost in between.
        for target in reversed(self.targets):
            values = found.components[target.aspect] if target.aspect else found.values
            scores = [
                NewScore(
                    output=row.output,
                    value=float(values[place]),
                    note=found.reasons[place] or (UNKNOWN if unknown is not None and unknown[place] else ""),
                    input_hash=hash_of_input,
                    is_empty=not row.record.text.strip(),
                    is_truncated=bool(truncated[place]) if truncated is not None else False,
                    in_training=self._in_training(row.record),
                )
                for place, (row, hash_of_input) in enumerate(wanted)
            ]
            store_scores(score_set=target.score_set, scores=scores)
        self.n_scored += len(wanted)

    def _log_remarks(self, remarks: Iterable[str]) -> None:
        """Each remark once a run."""
        for remark in dict.fromkeys(remarks):
            if remark not in self.remarks:
                self.remarks.add(remark)
                self.context.log(f"Note: {remark}")

    def _progress(self, n_wanted: int) -> Any:
        def report(done: int, total: int) -> None:
            share = done / total if total else 1.0
            self.context.progress(self.n_seen + int(share * n_wanted), self.total, "outputs", "scoring")

        return report

    def score_systems(self) -> list[dict[str, Any]]:
        """The evaluator's own score of each system (at each step) that has outputs, with its interval over groups of
        items where it is made of sums over texts."""
        pairs = list(
            Output.objects.filter(project=self.context.project)
            .order_by("system", F("step").asc(nulls_first=True))
            .values_list("system", "step")
            .distinct()
        )
        names = dict(System.objects.filter(project=self.context.project).values_list("pk", "name"))
        summed = None if self.measure.depends_on_batch else self._summed()
        rows = []
        for done, (system, step) in enumerate(pairs):
            self.context.progress(done, len(pairs), "systems", "systems")
            if summed is None:
                chunks = iterate_inputs(self.context.project, references=self.against, only=(system, step))
                found = self._own_value([row.record for chunk in chunks for row in chunk])
            else:
                found = self._interval(*summed[names[system], step])
            rows.append({"system": names[system], "step": step, **found.as_dict()})
        self.context.progress(len(pairs), len(pairs), "systems", "systems")
        return rows
