"""Apply an evaluator to the outputs of a project.

Outputs are read and scored in chunks, each of which is committed. A run that was cancelled or lost continues where it
stopped, and a second run with the same signature scores only new and changed outputs.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Output, ReferenceSet, System
from evalapp.common.errors import Conflict
from evalapp.common.queue import return_lost_run
from evalapp.common.runner import RunContext

from ..models import UNKNOWN, Evaluator, Score, ScoreSet
from ..selectors import inputs
from ..selectors.catalogue import get_entry, list_shipped, parse_options
from ..selectors.run_results import make_score_address
from ..selectors.score_sets import why_undefined
from ..selectors.summaries import summarise_scores
from ..selectors.training import artefact_folder, get_run_folder, refuse_away
from ..services.columns import cache_columns
from ..services.evaluators import mark_damaged, mark_ready
from ..services.leaderboards import renew_leaderboards
from ..services.scores import NewScore, finish_score_set, open_score_set, store_scores, take_score_sets
from .publishing import publish
from .shared import is_seen, refuse_scoring_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalapp.stats.core.estimate import Estimate
    from scoring.ml import Evaluator as Scorer
    from scoring.ml import Record
    from scoring.ml.trained import TrainedEvaluator

log = logging.getLogger(__name__)

NO_SUMS = "one value for all outputs of the system; no interval, as it is not computed from sums over texts"
#: Chunk size for scores of systems, which read a text up to twenty times: progress is reported per chunk.
FEW_ITEMS = 16
#: Seconds to wait for another run with the same score sets.
PATIENCE = 60.0


@dataclass(frozen=True)
class Target:
    """A score set to fill with the values of a component (`aspect`), or with the score itself (empty)."""

    score_set: ScoreSet
    aspect: str = ""


def run(context: RunContext, *, evaluator: str, options: dict[str, Any], references: str) -> dict[str, Any]:
    """The job `score`; its result has the numbers of scored and unchanged outputs."""
    against = inputs.get_reference_set(context.project, references) if references else None
    context.progress(0, None, "outputs", "loading")
    with refuse_scoring_errors():
        trained = _find_trained(context, evaluator)
        measure, targets = _open(context, evaluator, options, references, trained)
        scoring = Scoring(context, measure, targets, against)
        scoring.score_outputs()
        for target in targets:
            _finish(scoring, target)
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
        "scored": scoring.n_scored,
        "kept": scoring.n_kept,
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


def _find_trained(context: RunContext, name: str) -> Evaluator | None:
    """Return the trained evaluator of this name, if there is one; a shipped one is added to the project."""
    from scoring.ml import load

    rows = Evaluator.objects.filter(project=context.project, slug=name, kind=Evaluator.Kind.TRAINED)
    trained = rows.first()
    if trained is not None or name not in list_shipped():
        return trained
    try:
        return publish(context.run, name, cast("TrainedEvaluator", load(name)))
    except Conflict:
        # Another run may have added it in the meantime.
        shutil.rmtree(Path(settings.ARTEFACTS_DIR) / get_run_folder(context.run), ignore_errors=True)
        trained = rows.first()
        if trained is None:
            raise
        return trained


def _open(
    context: RunContext, evaluator: str, options: dict[str, Any], references: str, trained: Evaluator | None
) -> tuple[Scorer, list[Target]]:
    """Load the evaluator and open its score set; an evaluator of multiple aspects has one set for each."""
    from scoring.ml import load

    entry = get_entry(trained.name if trained else evaluator)
    parsed = parse_options(entry, options)
    measure = load(evaluator, **parsed) if trained is None else load_trained(trained, parsed)
    scorers = [("", measure)]
    if trained is not None and entry.aspect == "many" and parsed.get("aspect", "") is None:
        scorers = [
            (aspect, load_artefact(trained, {**parsed, "aspect": aspect}, verify=False))
            for aspect in _list_aspects(measure, trained)
        ]

    def open_all() -> list[Target]:
        return [
            Target(
                open_score_set(
                    project=context.project,
                    name=entry.name,
                    options=parsed,
                    references=references,
                    signature=scorer.signature,
                    short=scorer.short_signature,
                    trained=trained,
                    aspect=aspect or (str(parsed.get("aspect") or "") if trained else ""),
                    run=context.run,
                ),
                aspect,
            )
            for aspect, scorer in scorers
        ]

    targets = _take(context, open_all)
    for target in targets:
        context.log(f"Signature: {target.score_set.full_signature}")
    return measure, targets


def _list_aspects(measure: Scorer, trained: Evaluator) -> list[str]:
    """Return the aspects to score: all, except the scales of further projects that it learned from as well."""
    from scoring.ml.training.sets import name_scale

    sets = trained.record["models"][0].get("sets", ()) if trained.record.get("choice") else ()
    suffixes = tuple(name_scale("", row["name"]) for row in sets)
    return [name for name in measure.component_names if not name.endswith(suffixes)]


def load_trained(trained: Evaluator, options: dict[str, Any]) -> Any:
    """Load a trained evaluator and tell it which items of the project it was trained on.

    An evaluator trained in this project gets the current groups, as items may have moved, and the contents of newer
    items, as the same data may have been uploaded under other names. For an uploaded one the names of items mean
    nothing: it compares all contents.
    """
    scorer = load_artefact(trained, options)
    if trained.record.get("choice"):
        began = trained.run.created_at if trained.run is not None else trained.created_at
        scorer.regroup(inputs.groups_of_items(trained.project), inputs.contents_of_items(trained.project, since=began))
    else:
        scorer.recognise(inputs.contents_of_items(trained.project))
    return scorer


def load_artefact(trained: Evaluator, options: dict[str, Any], *, verify: bool = True) -> Any:
    """Load the evaluator from its folder, and mark it as damaged or ready.

    Raises `BadInput` if its folder was never in this installation, `ScoringError` for damage and unknown options.
    """
    from scoring.ml import ArtefactError, InvalidOption, ScoringError, load
    from scoring.ml.base import ARTIFACT

    refuse_away(trained)
    folder = artefact_folder(trained)
    try:
        # Without this file, the folder would be looked up as a name of the catalogue.
        if not (folder / ARTIFACT).is_file():
            text = f"{ARTIFACT} is missing. Put the folder back from a backup, or train it again"
            raise ArtefactError(str(folder), text)
        scorer = load(folder, verify=verify, **options)
    except InvalidOption:
        raise
    except ScoringError as error:
        # The path on the server is hidden from those who may see the evaluator.
        damage = str(error).replace(str(folder), trained.slug)
        mark_damaged(evaluator=trained, damage=damage)
        raise ScoringError(damage) from error
    mark_ready(evaluator=trained)
    return scorer


def _take(context: RunContext, open_all: Callable[[], list[Target]]) -> list[Target]:
    """Claim all score sets at once, so that no two runs wait for each other. Waits a while for a run that has them.

    A run that ended without a score has removed its sets; then they are opened again.
    """
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
            text = _(
                "Run %(run)s is computing the same scores (%(name)s). Retry this run when that one has ended; it then "
                "computes what is missing."
            )
            raise Conflict(text % {"run": other.pk, "name": sets[0].evaluator.slug})
        context.progress(0, None, "outputs", f"waiting for run {other.pk}")
        return_lost_run(other.pk)
        time.sleep(1)


def _finish(scoring: Scoring, target: Target) -> None:
    score_set = target.score_set
    unchanged = bool(score_set.scored_at) and not scoring.n_scored and scoring.data.text == score_set.data_hash
    # Scores of systems without intervals, from version 0.1, are computed again.
    unchanged = unchanged and all("low" in row for row in score_set.systems)
    if unchanged:
        systems, summary = score_set.systems, score_set.summary
    else:
        systems = scoring.score_systems() if scoring.measure.entry.system_score == "corpus" else []
        summary = summarise_scores(score_set)
    finish_score_set(
        score_set=score_set, data_hash=scoring.data.text, systems=systems, summary=summary, scored_at=scoring.began
    )
    cache_columns(score_set)


class Scoring:
    """One pass over the outputs of a project. An output is kept if every target has its current score."""

    def __init__(
        self, context: RunContext, measure: Scorer, targets: Sequence[Target], against: ReferenceSet | None
    ) -> None:
        self.context, self.measure, self.targets, self.against = context, measure, targets, against
        #: Later changes may be missed by this pass.
        self.began = timezone.now()
        self.total = inputs.count_outputs(context.project)
        self.data = inputs.DataHash()
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

    def _chunks(self) -> Iterable[list[inputs.Input]]:
        known = self.targets[0].score_set
        for chunk in inputs.iterate_inputs(self.context.project, references=self.against, known=known):
            self.context.check()
            yield chunk

    def _score_chunk(self, chunk: Sequence[inputs.Input], *, together: bool = False) -> None:
        """Score the new and changed rows of a chunk; `together`: if any row has changed, all rows."""
        hashes = [inputs.input_hash(self._identity(row.record)) for row in chunk]
        if together:
            whole = inputs.DataHash()
            for row, hash_of_input in zip(chunk, hashes, strict=True):
                whole.add(row.record, hash_of_input)
            hashes = [inputs.input_hash((whole.text, hash_of_input)) for hash_of_input in hashes]
        outdated = []
        for row, known, hash_of_input in zip(chunk, self._known_hashes(chunk), hashes, strict=True):
            self.data.add(row.record, hash_of_input)
            if known != hash_of_input:
                outdated.append((row, hash_of_input))
        self.n_kept += len(chunk) - len(outdated)
        if outdated:
            self._score_and_store(outdated)
        self.n_seen += len(chunk)
        self.context.progress(self.n_seen, self.total, "outputs", "scoring")

    def _known_hashes(self, chunk: Sequence[inputs.Input]) -> list[int | None]:
        """Return the input hash of the stored scores of each output; None unless all targets have the same."""
        known = [row.known for row in chunk]
        for target in self.targets[1:]:
            rows = Score.objects.filter(score_set=target.score_set, output__in=[row.output for row in chunk])
            stored = dict(rows.values_list("output", "input_hash"))
            known = [old if stored.get(row.output) == old else None for row, old in zip(chunk, known, strict=True)]
        return known

    def _sum_systems(self) -> dict[tuple[str, int | None], tuple[NDArray[Any], list[str]]] | None:
        """Return the sums that the score of each system is computed from, and the group of each text.

        All systems are read together, so references are read once. None if the score is not computed from sums.
        """
        import numpy as np

        sums: dict[tuple[str, int | None], tuple[list[NDArray[Any]], list[str]]] = {}
        done = 0
        for chunk in inputs.iterate_inputs(self.context.project, references=self.against, items=FEW_ITEMS):
            self.context.progress(done, self.total, "outputs", "systems")
            if not chunk:
                continue
            records = [row.record for row in chunk]
            statistics = self.measure.system_statistics(records)
            if statistics is None:
                return None
            for record, row in zip(records, statistics, strict=True):
                rows, groups = sums.setdefault((record.system, record.step), ([], []))
                rows.append(row)
                groups.append(record.group or record.item)
            done += len(chunk)
        return {key: (np.array(rows), groups) for key, (rows, groups) in sums.items()}

    def _estimate(self, records: Sequence[Record]) -> Estimate:
        """Score a system with an evaluator that needs all its texts at once."""
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
        """Return what a stored score depends on, including whether the evaluator was trained on the item's group."""
        identity = self.measure.identity(record)
        return identity if self.trained_on is None else (identity, self._in_training(record))

    def _in_training(self, record: Record) -> bool:
        return is_seen(self.trained_on or frozenset(), record.group, record.item)

    def _score_and_store(self, outdated: Sequence[tuple[inputs.Input, int]]) -> None:
        records = [row.record for row, _hash in outdated]
        result = self.measure.evaluate(records, progress=self._report_scoring(len(outdated)))
        self._log_remarks(result.remarks)
        truncated, unknown = result.truncated, result.unknown
        # The first target is stored last: it decides which outputs count as scored after an interruption.
        for target in reversed(self.targets):
            values = result.components[target.aspect] if target.aspect else result.values
            scores = [
                NewScore(
                    output=row.output,
                    value=float(values[place]),
                    note=result.reasons[place] or (UNKNOWN if unknown is not None and unknown[place] else ""),
                    input_hash=hash_of_input,
                    is_empty=not row.record.text.strip(),
                    is_truncated=bool(truncated[place]) if truncated is not None else False,
                    in_training=self._in_training(row.record),
                )
                for place, (row, hash_of_input) in enumerate(outdated)
            ]
            store_scores(score_set=target.score_set, scores=scores)
        self.n_scored += len(outdated)

    def _log_remarks(self, remarks: Iterable[str]) -> None:
        """Log each remark once per run."""
        for remark in dict.fromkeys(remarks):
            if remark not in self.remarks:
                self.remarks.add(remark)
                self.context.log(f"Note: {remark}")

    def _report_scoring(self, n_outdated: int) -> Any:
        def report(done: int, total: int) -> None:
            share = done / total if total else 1.0
            self.context.progress(self.n_seen + int(share * n_outdated), self.total, "outputs", "scoring")

        return report

    def score_systems(self) -> list[dict[str, Any]]:
        """Return the evaluator's corpus score of each system and step, with an interval if computed from sums."""
        pairs = list(
            Output.objects.filter(project=self.context.project)
            .order_by("system", F("step").asc(nulls_first=True))
            .values_list("system", "step")
            .distinct()
        )
        names = dict(System.objects.filter(project=self.context.project).values_list("pk", "name"))
        summed = None if self.measure.depends_on_batch else self._sum_systems()
        rows = []
        for done, (system, step) in enumerate(pairs):
            self.context.progress(done, len(pairs), "systems", "systems")
            if summed is None:
                chunks = inputs.iterate_inputs(self.context.project, references=self.against, only=(system, step))
                estimate = self._estimate([row.record for chunk in chunks for row in chunk])
            else:
                estimate = self._interval(*summed[names[system], step])
            rows.append({"system": names[system], "step": step, **estimate.as_dict()})
        self.context.progress(len(pairs), len(pairs), "systems", "systems")
        return rows
