"""Combining evaluators: read the scores of the parts, take the mean of their z-scores or learn weights from a part of
the groups, store one score per output. What the weights were learned from, or any part was, is marked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from django.utils import timezone

from annotation.models import Output
from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext
from scoring.boards.metrics.query import EvaluatorsQuery

from ..models import ScoreSet
from ..selectors.columns import load_columns
from ..selectors.inputs import input_hash
from ..selectors.run_results import make_score_address
from ..selectors.score_sets import current_sets, sets_of_parts
from ..selectors.summaries import summarise_scores
from ..services.columns import keep_columns
from ..services.combining import refuse_deleted, store_combination
from ..services.leaderboards import renew_leaderboards
from ..services.scores import NewScore, finish_score_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalapp.stats.correlation.combining import Stacking


def run(context: RunContext, *, slug: str, **params: Any) -> dict[str, Any]:
    """The job `combine`; computed anew each time, since all of it depends on every score of every part."""
    context.progress(0, None, "outputs", "reading")
    began = timezone.now()
    sets = _parts(context, slug, params)
    work = _Work(context, params, sets)
    record, values = work.stacked() if params["method"] == "stacked" else work.mean_of_z()
    context.check()
    context.progress(0, len(values), "outputs", "storing")
    score_set = store_combination(
        run=context.run, slug=slug, params=params, record=record, parts=sets, scores=work.scores(values)
    )
    summary = summarise_scores(score_set)
    finish_score_set(score_set=score_set, data_hash=work.data_hash, systems=[], summary=summary, scored_at=began)
    keep_columns(score_set)
    renew_leaderboards(project=context.project, run=context.run)
    context.log(f"Signature: {score_set.full_signature}")
    return {
        "evaluator": slug,
        "score_set": score_set.pk,
        "signature": score_set.full_signature,
        "method": params["method"],
        "parts": record["parts"],
        "outputs": score_set.n_scores,
        "undefined": score_set.n_undefined,
        "in_training": score_set.n_in_training,
        "url": make_score_address(score_set),
    }


def _parts(context: RunContext, slug: str, params: dict[str, Any]) -> list[ScoreSet]:
    """The present set of every part, in the order named; of one that learned several aspects that of the aspect."""
    present = current_sets(context.project, params["references"])
    found = sets_of_parts(present, params["references"], params["aspect"])
    missing = [part for part in params["parts"] if part not in found]
    if missing:
        refuse_deleted(context.project, slug, params["parts"])
        raise BadInput(f"These have no complete scores any more: {', '.join(missing)}. Score them, then retry.")
    return [found[part] for part in params["parts"]]


class _Work:
    """The scores of the parts side by side over all outputs of the project."""

    def __init__(self, context: RunContext, params: dict[str, Any], sets: list[ScoreSet]) -> None:
        self.context, self.params, self.sets = context, params, sets
        rows = Output.objects.filter(project=context.project).order_by("pk")
        fields = rows.values_list("pk", "item__group", "item__key")
        found = [(pk, group or f"item:{key}") for pk, group, key in fields.iterator(chunk_size=20_000)]
        self.output: NDArray[np.int64] = np.array([pk for pk, _ in found], dtype=np.int64)
        self.group = [group for _, group in found]
        columns = [load_columns(score_set) for score_set in sets]
        self.parts = np.stack([column.of(self.output) for column in columns], axis=1)
        self.seen = np.any([column.learned_from(self.output) for column in columns], axis=0)
        self.data_hash = _digest("\n".join(score_set.full_signature for score_set in sets))

    def mean_of_z(self) -> tuple[dict[str, Any], NDArray[np.float64]]:
        from evalapp.stats.correlation.combining import mean_of_z

        return {"parts": self._described([1 / len(self.sets)] * len(self.sets))}, mean_of_z(self.parts)

    def stacked(self) -> tuple[dict[str, Any], NDArray[np.float64]]:
        """Weights from people's ratings in the groups drawn for that, never from outputs that a part learned from."""
        from evalapp.stats.correlation.combining import stack

        from ..selectors.meta_evaluation import load_people

        wished = {name: self.params[name] for name in ("aspect", "ratings", "filter")}
        _, people = load_people(self.context.project, EvaluatorsQuery(**wished))
        drawn = {group: _drawn(group, self.params["seed"], self.params["share"]) for group in set(self.group)}
        learned = np.array([drawn[group] for group in self.group], dtype=bool)
        place = np.searchsorted(self.output, people.output)
        kept = learned[place] & ~self.seen[place]
        rows, human = place[kept], people.mean[kept]
        try:
            found: Stacking = stack(
                self.parts[rows], human, np.array([self.group[row] for row in rows]), seed=self.params["seed"]
            )
        except ValueError as error:
            raise BadInput(f"Nothing can be learned from these ratings: {error}.") from error
        self.seen |= learned
        # People's scores are in the order of item and system, whatever the rows are numbered here.
        self.data_hash = _digest(self.data_hash + hashlib.sha256(human.tobytes()).hexdigest())
        record = {
            "parts": self._described(found.weights.tolist()),
            "intercept": found.intercept,
            "penalty": found.penalty,
            "n": found.n,
            "n_groups": found.n_groups,
            "n_groups_drawn": sum(drawn.values()),
            "aspect": self.params["aspect"],
            "centre": found.centre.tolist(),
            "spread": [value if np.isfinite(value) else None for value in found.spread.tolist()],
        }
        return record, found.predict(self.parts)

    def _described(self, weights: list[float]) -> list[dict[str, Any]]:
        rows = zip(self.sets, weights, strict=True)
        return [{"evaluator": s.evaluator.slug, "signature": s.full_signature, "weight": w} for s, w in rows]

    def scores(self, values: NDArray[np.float64]) -> Iterator[NewScore]:
        undefined = ~np.isfinite(self.parts)
        names = [score_set.evaluator.slug for score_set in self.sets]
        for k, output in enumerate(self.output.tolist()):
            value = float(values[k])
            note = ""
            if not np.isfinite(value):
                missing = [name for name, none in zip(names, undefined[k], strict=True) if none]
                note = f"no score of {', '.join(missing)}" if missing else "the scores of a part are all equal"
            identity = input_hash((self.data_hash, tuple(self.parts[k].tolist())))
            yield NewScore(output, value, note, identity, False, False, bool(self.seen[k]))


def _drawn(group: str, seed: int, share: float) -> bool:
    """Whether weights are learned from this group: by a hash, so that further groups move none."""
    digest = hashlib.blake2b(f"{seed}\x1f{group}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
