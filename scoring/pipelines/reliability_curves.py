"""Reliability curves on the rated items of a project: gold and predicted reliability by number of references (Table 2
of Gao et al. 2021), also with wrong references as noise (Figure 1), the gain of selection (Figure 3, with half
selected, then random, as control), and the transfer between metrics (Figure 7). Each item is handled by a model that
has not seen its group."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext

from ..models import Evaluator
from ..selectors.datasets import DataChoice, build_dataset
from ..selectors.training import find_trained
from ..services.reports import CurveOptions
from .reference_selection import Selector
from .shared import refuse_scoring_errors, to_json

if TYPE_CHECKING:
    from scoring.ml.evaluators.ream.evaluator import Ream
    from scoring.ml.evaluators.ream.gold import ItemGold
    from scoring.ml.evaluators.ream.training import QueryItem

SIZES = (1, 2, 3, 5, 7, 10, 20, 30, 40)
SETS_PER_SIZE = 5
MAX_OWN, STRANGERS = 60, 20
GOLD, PREDICTED = "gold", "predicted"


@dataclass
class Line:
    """A line of a plot: for each x, the values of the items with their groups."""

    name: str
    points: dict[int, list[tuple[str, float]]] = field(default_factory=dict)

    def add(self, x: int, group: str, value: float) -> None:
        if np.isfinite(value):
            self.points.setdefault(x, []).append((group, float(value)))

    def as_dict(self, seed: int) -> dict[str, Any]:
        """Return means with 95 % intervals from resampled groups of items."""
        return {
            "name": self.name,
            "points": [{"x": x, **_estimate_mean(self.points[x], seed)} for x in sorted(self.points)],
        }


def _estimate_mean(values: Sequence[tuple[str, float]], seed: int) -> dict[str, Any]:
    from evalapp.stats.core.estimate import Estimate
    from evalapp.stats.resampling.bootstrap import resampled_sums, with_interval

    codes = {group: code for code, group in enumerate(sorted({group for group, _value in values}))}
    columns = np.array([(value, 1.0) for _group, value in values])
    cluster = np.array([codes[group] for group, _value in values])
    sums = resampled_sums(columns, cluster, len(codes), resamples=1000, seed=seed)
    point = Estimate.point(float(columns[:, 0].mean()), len(values))
    return with_interval(point, sums[:, 0] / sums[:, 1], clusters={"groups": len(codes)}).as_dict()


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `reliability`; its result has curves and table."""
    with refuse_scoring_errors():
        return to_json(Curves(context, CurveOptions(**params)).compute())  # type: ignore[no-any-return]


class Curves:
    def __init__(self, context: RunContext, options: CurveOptions) -> None:
        self.context, self.options = context, options
        context.progress(0, None, "items", "loading")
        self.row = find_trained(context.project, options.evaluator)
        self.selector = Selector(self.row)
        self.other = Selector(find_trained(context.project, options.other)) if options.other else None
        self.lines: dict[str, dict[str, Line]] = {}
        self.sets: dict[int, list[tuple[float, float, int]]] = {}
        self.n_simulated = 0

    def compute(self) -> dict[str, Any]:
        from scoring.ml.evaluators.ream import training

        items, n_left_out = self._list_items(self.row)
        pools = training.foreign_answers(items, STRANGERS, np.random.default_rng([self.options.seed, 1]))
        for done, (item, strangers) in enumerate(zip(items, pools, strict=True)):
            self._add_item(item, strangers)
            self.context.progress(done + 1, len(items), "items", "reading")
        metric = self.selector.metric
        other = self.other.metric if self.other else ""
        titles = {
            "size": ("references", f"reliability of {metric}"),
            "noise": ("references", f"reliability of {metric}"),
            "growth": ("references", f"gold reliability of {metric}"),
            "predicted": ("references", f"predicted reliability of {metric}"),
            "transfer": ("references", f"gold reliability of {metric}"),
            "transfer-other": ("references", f"gold reliability of {other}"),
        }
        return {
            "evaluator": self.selector.slug, "metric": metric, "signature": self.selector.signature,
            "other": self.other.slug if self.other else "", "other_metric": other,
            "references": self.options.references, "seed": self.options.seed, "max": self.options.max,
            "n_items": len(items), "n_groups": len({self._name_group(item) for item in items}),
            "n_left_out": n_left_out,
            "n_simulated": self.n_simulated,
            "panels": {
                name: {"axes": titles[name], "lines": [line.as_dict(self.options.seed) for line in lines.values()]}
                for name, lines in self.lines.items()
            },
            "table": [self._table_row(size) for size in sorted(self.sets)],
            "url": f"/projects/{self.context.project.slug}/references/curves/?run={self.context.run.pk}",
        }  # fmt: skip

    def _list_items(self, row: Evaluator) -> tuple[list[QueryItem], int]:
        """Return the rated items that some model of each evaluator has not seen, and the number of others."""
        from scoring.ml.evaluators.ream import training

        first = self.selector.members[0]
        choice = DataChoice.from_dict({**(row.record.get("choice") or {}), "references": self.options.references})
        dataset = build_dataset(self.context.project, choice, dialogues=False)
        every = training.query_items(dataset, first.aspects[0], str(first.settings["ratings"]))  # type: ignore[arg-type]
        selectors = [selector for selector in (self.selector, self.other) if selector]
        unseen = [
            item for item in every if not any(selector.member_for(self._name_group(item))[1] for selector in selectors)
        ]
        if not unseen:
            text = _(
                "%(name)s was trained on all %(n)d items with references and at least three rated outputs, so the "
                "curves would be no evidence. Train it with folds."
            )
            raise BadInput(text % {"name": self.selector.slug, "n": len(every)})
        chosen = unseen
        if self.options.sample < len(unseen):
            places = random.Random(f"{self.options.seed}:curves").sample(range(len(unseen)), self.options.sample)
            chosen = [unseen[place] for place in sorted(places)]
        keys = {item.query.item for item in chosen}
        self.n_simulated = sum(
            row.simulated and row.aspect == first.aspects[0] and row.item in keys for row in dataset.ratings
        )
        return chosen, len(every) - len(unseen)

    def _name_group(self, item: QueryItem) -> str:
        from scoring.ml.training.record import name_group

        return name_group(item.query.group, item.query.item)

    def _line(self, panel: str, name: str) -> Line:
        return self.lines.setdefault(panel, {}).setdefault(name, Line(name))

    def _add_item(self, item: QueryItem, strangers: Sequence[str]) -> None:
        rng = np.random.default_rng([self.options.seed, *item.query.item.encode()])
        own = [item.references[int(place)] for place in rng.permutation(len(item.references))[:MAX_OWN]]
        others = list(strangers)[: max(1, len(own) - 1)]
        first = ItemView(self.selector, item, own, others, self._name_group(item))
        self._add_sizes(first, rng)
        self._add_noise(first)
        selected = first.select(self.options)
        candidates = [text for text in _shuffle([*own, *others], rng) if text not in selected[:1]]
        n_max = self.options.max
        half = max(1, n_max // 2)
        after_half = [text for text in candidates if text not in selected[:half]]
        random_sets = _growing_sets([*selected[:1], *candidates], n_max)
        lines = {
            "chosen": _growing_sets(selected, n_max),
            # The selection may end before half; the random part starts at half all the same.
            f"{half} chosen, then random": [
                *_growing_sets(selected, half),
                *([*selected[:half], *after_half[:more]] for more in range(1, n_max - half + 1)),
            ],
            "random": random_sets,
        }  # fmt: skip
        self._add_lines("growth", first, lines, first.gold)
        self._add_lines("predicted", first, lines, first.predicted)
        if self.other is None:
            return
        second = ItemView(self.other, item, own, others, first.group)
        lines = {
            f"chosen for {self.selector.metric}": _growing_sets(selected, n_max),
            f"chosen for {self.other.metric}": _growing_sets(second.select(self.options), n_max),
        }
        self._add_lines("transfer", first, {**lines, "random": random_sets}, first.gold)
        self._add_lines("transfer-other", second, {**dict(reversed(lines.items())), "random": random_sets}, second.gold)

    def _add_sizes(self, view: ItemView, rng: np.random.Generator) -> None:
        from scoring.ml.evaluators.ream.gold import draw_sets

        sizes = [size for size in SIZES if size <= len(view.own)]
        sets = draw_sets(len(view.own), sizes, SETS_PER_SIZE, rng)
        gold = view.matrix.reliabilities(sets)
        predicted = view.predicted([[view.own[node] for node in nodes] for nodes in sets])
        for size in sizes:
            places = [k for k, nodes in enumerate(sets) if len(nodes) == size and np.isfinite(gold[k])]
            if not places:
                continue
            self._line("size", GOLD).add(size, view.group, float(gold[places].mean()))
            self._line("size", PREDICTED).add(size, view.group, float(predicted[places].mean()))
            n = len(view.item.human)
            self.sets.setdefault(size, []).extend((float(gold[k]), float(predicted[k]), n) for k in places)

    def _add_noise(self, view: ItemView) -> None:
        """Add the lines of Figure 1: references as they are added, and the same with answers to other queries in place
        of the second half, each with its prediction."""
        half = self.options.max // 2
        n = min(self.options.max, len(view.own), half + len(view.others))
        if n <= half:
            return
        orders = {"references": view.own[:n], "noisy": [*view.own[:half], *view.others[: n - half]]}
        for ending, measure in ((f", {GOLD}", view.gold), (f", {PREDICTED}", view.predicted)):
            lines = {f"{name}{ending}": _growing_sets(order, n) for name, order in orders.items()}
            self._add_lines("noise", view, lines, measure)

    def _add_lines(self, panel: str, view: ItemView, lines: Mapping[str, list[list[str]]], measure: Any) -> None:
        """Add the values of an item at each x where all lines have one, so that the lines are comparable."""
        places = range(1, max(map(len, lines.values())) + 1)
        values = np.asarray(measure([texts for sets in lines.values() for texts in sets]))
        values = values.reshape(len(lines), len(places))
        for column, k in enumerate(places):
            if np.isfinite(values[:, column]).all() and len(view.texts) >= k:
                for row, name in enumerate(lines):
                    self._line(panel, name).add(k, view.group, float(values[row, column]))

    def _table_row(self, size: int) -> dict[str, Any]:
        """Return a row of Table 2: errors of the prediction, of always predicting the mean of the size, and the R2 that
        a perfect prediction would have, because gold is partly chance."""
        from scoring.ml.evaluators.ream.gold import split_variance

        gold, predicted, n = np.array(self.sets[size]).T
        mse = float(((gold - predicted) ** 2).mean())
        constant = float(((gold - gold.mean()) ** 2).mean())
        return {
            "size": size, "n": len(gold), "gold": float(gold.mean()), "predicted": float(predicted.mean()), "mse": mse,
            "constant": constant, "r2": 1 - mse / constant if constant > 0 else None,
            "ceiling": split_variance(gold, np.full(len(gold), gold.mean()), n).ceiling if constant > 0 else None,
        }  # fmt: skip


class ItemView:
    """An item with the model that has not seen it, and the metric's scores with each text as the only reference."""

    def __init__(self, selector: Selector, item: QueryItem, own: list[str], others: list[str], group: str) -> None:
        from scoring.ml.base import Query
        from scoring.ml.evaluators.ream.gold import ItemGold

        self.item, self.own, self.others, self.group = item, own, others, group
        self.member: Ream = selector.member_for(group)[0]
        self.texts = list(dict.fromkeys([*own, *others]))
        self.place = {text: place for place, text in enumerate(self.texts)}
        (matrix,) = self.member.metric.all_pairs([Query(item.outputs, self.texts)])
        self.matrix: ItemGold = ItemGold(matrix, item.human, len(own))
        self.query = replace(item.query, text="", references=())

    def select(self, options: CurveOptions) -> list[str]:
        from scoring.ml import Item

        query = self.item.query
        item = Item(query.item, query.context, query.source, tuple(self.own), query.group)
        (annotation,) = self.member.annotate([item], [self.texts], most=options.max, seed=options.seed)
        return list(annotation.references)

    def gold(self, sets: Sequence[Sequence[str]]) -> Any:
        return self.matrix.reliabilities([tuple(self.place[text] for text in texts) for texts in sets])

    def predicted(self, sets: Sequence[Sequence[str]]) -> Any:
        return self.member.reliabilities(self.query, sets)


def _growing_sets(order: list[str], n: int) -> list[list[str]]:
    """Return the first 1, 2, ... `n` texts; an order that is shorter repeats its last set."""
    return [order[:k] for k in range(1, n + 1)]


def _shuffle(texts: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [texts[int(place)] for place in rng.permutation(len(texts))]
