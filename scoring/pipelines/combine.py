"""Combine evaluators: read the scores of the parts, take the mean of their z-scores or learn weights from a share of
the groups, and store one score per output. Outputs that the weights or any part were trained on are marked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from django.utils import timezone
from django.utils.translation import gettext as _

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
from ..services.columns import cache_columns
from ..services.combining import refuse_deleted, store_combination
from ..services.leaderboards import renew_leaderboards
from ..services.scores import NewScore, finish_score_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalapp.stats.correlation.combining import Stacking


def run(context: RunContext, *, slug: str, **params: Any) -> dict[str, Any]:
    """The job `combine`. Nothing is reused from an earlier run: every value depends on all scores of all parts."""
    context.progress(0, None, "outputs", "reading")
    began = timezone.now()
    sets = _find_parts(context, slug, params)
    work = Combination(context, params, sets)
    record, values = work.stacked() if params["method"] == "stacked" else work.mean_of_z()
    context.check()
    context.progress(0, len(values), "outputs", "storing")
    score_set = store_combination(
        run=context.run, slug=slug, params=params, record=record, parts=sets, scores=work.scores(values)
    )
    summary = summarise_scores(score_set)
    finish_score_set(score_set=score_set, data_hash=work.data_hash, systems=[], summary=summary, scored_at=began)
    cache_columns(score_set)
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


def _find_parts(context: RunContext, slug: str, params: dict[str, Any]) -> list[ScoreSet]:
    """Return the current score set of each part; for a part with several aspects, the set of the requested aspect."""
    sets = sets_of_parts(current_sets(context.project, params["references"]), params["references"], params["aspect"])
    missing = [part for part in params["parts"] if part not in sets]
    if missing:
        refuse_deleted(context.project, slug, params["parts"])
        text = _("These no longer have complete scores: %(names)s. Score them, then retry.")
        raise BadInput(text % {"names": ", ".join(missing)})
    return [sets[part] for part in params["parts"]]


class Combination:
    """The scores of the parts for all outputs of the project."""

    def __init__(self, context: RunContext, params: dict[str, Any], sets: list[ScoreSet]) -> None:
        self.context, self.params, self.sets = context, params, sets
        rows = Output.objects.filter(project=context.project).order_by("pk")
        fields = rows.values_list("pk", "item__group", "item__key")
        outputs = [(pk, group or f"item:{key}") for pk, group, key in fields.iterator(chunk_size=20_000)]
        self.output: NDArray[np.int64] = np.array([pk for pk, _group in outputs], dtype=np.int64)
        self.group = [group for _pk, group in outputs]
        columns = [load_columns(score_set) for score_set in sets]
        self.parts = np.stack([column.of(self.output) for column in columns], axis=1)
        self.seen = np.any([column.learned_from(self.output) for column in columns], axis=0)
        self.data_hash = _digest("\n".join(score_set.full_signature for score_set in sets))

    def mean_of_z(self) -> tuple[dict[str, Any], NDArray[np.float64]]:
        from evalapp.stats.correlation.combining import mean_of_z

        return {"parts": self._describe_parts([1 / len(self.sets)] * len(self.sets))}, mean_of_z(self.parts)

    def stacked(self) -> tuple[dict[str, Any], NDArray[np.float64]]:
        """Learn weights from human ratings in the groups drawn for it, except outputs that a part was trained on."""
        from evalapp.stats.correlation.combining import stack

        from ..selectors.meta_evaluation import load_people

        query = EvaluatorsQuery(**{name: self.params[name] for name in ("aspect", "ratings", "filter")})
        _aspect, people = load_people(self.context.project, query)
        drawn = {group: is_drawn(group, self.params["seed"], self.params["share"]) for group in set(self.group)}
        learned = np.array([drawn[group] for group in self.group], dtype=bool)
        place = np.searchsorted(self.output, people.output)
        usable = learned[place] & ~self.seen[place]
        rows, human = place[usable], people.mean[usable]
        try:
            stacking: Stacking = stack(
                self.parts[rows], human, np.array([self.group[row] for row in rows]), seed=self.params["seed"]
            )
        except ValueError as error:
            text = _("No weights can be learned from these ratings: %(error)s.") % {"error": error}
            raise BadInput(text) from error
        self.seen |= learned
        # Human scores are in the order of item and system, independent of primary keys.
        self.data_hash = _digest(self.data_hash + hashlib.sha256(human.tobytes()).hexdigest())
        record = {
            "parts": self._describe_parts(stacking.weights.tolist()),
            "intercept": stacking.intercept,
            "penalty": stacking.penalty,
            "n": stacking.n,
            "n_groups": stacking.n_groups,
            "n_groups_drawn": sum(drawn.values()),
            "aspect": self.params["aspect"],
            "centre": stacking.centre.tolist(),
            "spread": [value if np.isfinite(value) else None for value in stacking.spread.tolist()],
        }
        return record, stacking.predict(self.parts)

    def _describe_parts(self, weights: list[float]) -> list[dict[str, Any]]:
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
                note = f"no score by {', '.join(missing)}" if missing else "all scores of a part are equal"
            identity = input_hash((self.data_hash, tuple(self.parts[k].tolist())))
            yield NewScore(output, value, note, identity, False, False, bool(self.seen[k]))


def is_drawn(group: str, seed: int, share: float) -> bool:
    """Whether weights are learned from this group, by a hash: new groups do not change the others."""
    digest = hashlib.blake2b(f"{seed}\x1f{group}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
