"""Applying an evaluator to the outputs of a project: read a chunk, score what is new or changed, store, go on.

Every chunk is committed, so a run that was cancelled or lost goes on where it stopped, and a second run with the
same signature scores only what changed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from annotation.models import Output, ReferenceSet, System
from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext

from ..models import ScoreSet
from ..selectors.catalogue import get_entry, parse_options
from ..selectors.inputs import DataHash, Input, count_outputs, get_reference_set, input_hash, iterate_inputs
from ..selectors.summaries import summarise_scores
from ..services.scores import NewScore, finish_score_set, open_score_set, store_scores

if TYPE_CHECKING:
    from scoring.ml import Evaluator

log = logging.getLogger(__name__)


def run(context: RunContext, *, evaluator: str, options: dict[str, Any], references: str) -> dict[str, Any]:
    """Score every output whose input is new or changed; the result says how many were scored and kept."""
    from scoring.ml import ScoringError, load

    entry = get_entry(evaluator)
    options = parse_options(entry, options)
    against = get_reference_set(context.project, references) if references else None
    context.progress(0, None, "outputs", "loading")
    try:
        measure = load(evaluator, **options)
        score_set = open_score_set(
            project=context.project,
            name=evaluator,
            options=options,
            references=references,
            run=context.run,
            signature=measure.signature,
            short=measure.short_signature,
        )
        context.log(f"Signature: {score_set.full_signature}")
        work = _Work(context, measure, score_set, against)
        work.score_outputs()
        unchanged = bool(score_set.scored_at) and not work.n_scored and work.data.text == score_set.data_hash
        if unchanged:
            systems, summary = score_set.systems, score_set.summary
        else:
            systems = work.score_systems() if entry.system_score == "corpus" else []
            summary = summarise_scores(score_set)
    except ScoringError as error:
        raise BadInput(str(error)) from error
    finish_score_set(score_set=score_set, data_hash=work.data.text, systems=systems, summary=summary)
    return {
        "evaluator": score_set.evaluator.slug,
        "score_set": score_set.pk,
        "signature": score_set.full_signature,
        "scored": work.n_scored,
        "kept": work.n_kept,
        "outputs": score_set.n_scores,
        "undefined": score_set.n_undefined,
        "empty": score_set.n_empty,
        "truncated": score_set.n_truncated,
        "duplicate": score_set.n_duplicate,
    }


class _Work:
    """One pass over a project; `n_scored` and `n_kept` count outputs."""

    def __init__(
        self, context: RunContext, measure: Evaluator, score_set: ScoreSet, against: ReferenceSet | None
    ) -> None:
        self.context, self.measure, self.score_set, self.against = context, measure, score_set, against
        self.total = count_outputs(context.project)
        self.data = DataHash()
        self.n_scored = self.n_kept = 0
        self.n_seen = 0

    def score_outputs(self) -> None:
        if self.measure.depends_on_batch:
            self._score_chunk([row for chunk in self._chunks() for row in chunk], together=True)
            return
        for chunk in self._chunks():
            self._score_chunk(chunk)

    def _chunks(self) -> Iterable[list[Input]]:
        for chunk in iterate_inputs(self.context.project, references=self.against, known=self.score_set):
            self.context.check()
            yield chunk

    def _score_chunk(self, chunk: Sequence[Input], *, together: bool = False) -> None:
        """Score the rows of a chunk that are new or changed; `together`: one change means all anew."""
        hashes = [input_hash(self.measure.identity(row.record)) for row in chunk]
        if together:
            whole = DataHash()
            for row, hash_of_input in zip(chunk, hashes, strict=True):
                whole.add(row.record, hash_of_input)
            hashes = [input_hash((whole.text, hash_of_input)) for hash_of_input in hashes]
        wanted = []
        for row, hash_of_input in zip(chunk, hashes, strict=True):
            self.data.add(row.record, hash_of_input)
            if row.known != hash_of_input:
                wanted.append((row, hash_of_input))
        self.n_kept += len(chunk) - len(wanted)
        if wanted:
            self._score_and_store(wanted)
        self.n_seen += len(chunk)
        self.context.progress(self.n_seen, self.total, "outputs", "scoring")

    def _score_and_store(self, wanted: Sequence[tuple[Input, int]]) -> None:
        found = self.measure.evaluate([row.record for row, _ in wanted], progress=self._progress(len(wanted)))
        truncated = found.truncated
        scores = [
            NewScore(
                output=row.output,
                value=float(found.values[place]),
                note=found.reasons[place],
                input_hash=hash_of_input,
                is_empty=not row.record.text.strip(),
                is_truncated=bool(truncated[place]) if truncated is not None else False,
            )
            for place, (row, hash_of_input) in enumerate(wanted)
        ]
        store_scores(score_set=self.score_set, scores=scores)
        self.n_scored += len(scores)

    def _progress(self, n_wanted: int) -> Any:
        def report(done: int, total: int) -> None:
            share = done / total if total else 1.0
            self.context.progress(self.n_seen + int(share * n_wanted), self.total, "outputs", "scoring")

        return report

    def score_systems(self) -> list[dict[str, Any]]:
        """The evaluator's own score of each system (at each step) that has outputs."""
        pairs = list(
            Output.objects.filter(project=self.context.project)
            .order_by("system", "step")
            .values_list("system", "step")
            .distinct()
        )
        names = dict(System.objects.filter(project=self.context.project).values_list("pk", "name"))
        rows = []
        for done, (system, step) in enumerate(pairs):
            self.context.progress(done, len(pairs), "systems", "systems")
            chunks = iterate_inputs(self.context.project, references=self.against, only=(system, step))
            records = [row.record for chunk in chunks for row in chunk]
            value = self.measure.system_score(records)
            rows.append(
                {
                    "system": names[system],
                    "step": step,
                    "value": value if value == value else None,
                    "n": len(records),
                }
            )
        return rows
