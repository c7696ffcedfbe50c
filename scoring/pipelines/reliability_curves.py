"""Gold and predicted reliability by number of references (Figure 1 and Table 2 of the REAM paper), what choosing adds
(Figure 3 with its control: half chosen, then random), and transfer between metrics (Figure 7), on a project's rated
items. Every item is judged by a model that did not see its group."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext

from ..models import Evaluator
from ..selectors.datasets import DataChoice, build_dataset
from ..selectors.training import find_trained
from ..services.reliability_curves import CurveWishes
from .annotate import Judge
from .publishing import plain

if TYPE_CHECKING:
    from scoring.ml.evaluators.ream.evaluator import Ream
    from scoring.ml.evaluators.ream.gold import ItemGold
    from scoring.ml.evaluators.ream.training import QueryItem

SIZES = (1, 2, 3, 5, 7, 10, 20, 30, 40)
SETS_A_SIZE = 5
MOST_OWN, STRANGERS = 60, 20
GOLD, PREDICTED = "gold", "predicted"


@dataclass
class Line:
    """One line of a plot: for each place on the x axis a value for every item that has one, with its group."""

    name: str
    points: dict[int, list[tuple[str, float]]] = field(default_factory=dict)

    def add(self, x: int, group: str, value: float) -> None:
        if np.isfinite(value):
            self.points.setdefault(x, []).append((group, float(value)))

    def as_dict(self, seed: int) -> dict[str, Any]:
        """Means with 95 % intervals from resampled groups of items."""
        return {"name": self.name, "points": [{"x": x, **_mean(self.points[x], seed)} for x in sorted(self.points)]}


def _mean(values: Sequence[tuple[str, float]], seed: int) -> dict[str, Any]:
    from evalapp.stats.core.estimate import Estimate
    from evalapp.stats.resampling.bootstrap import resampled_sums, with_interval

    codes = {group: code for code, group in enumerate(sorted({group for group, _ in values}))}
    columns = np.array([(value, 1.0) for _, value in values])
    cluster = np.array([codes[group] for group, _ in values])
    sums = resampled_sums(columns, cluster, len(codes), resamples=1000, seed=seed)
    point = Estimate.point(float(columns[:, 0].mean()), len(values))
    return with_interval(point, sums[:, 0] / sums[:, 1], clusters={"groups": len(codes)}).as_dict()


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `reliability`; everything is in its result."""
    from scoring.ml import ScoringError

    try:
        return plain(_Curves(context, CurveWishes(**params)).compute())  # type: ignore[no-any-return]
    except ScoringError as error:
        raise BadInput(str(error)) from error


class _Curves:
    def __init__(self, context: RunContext, wishes: CurveWishes) -> None:
        self.context, self.wishes = context, wishes
        context.progress(0, None, "items", "loading")
        self.row = find_trained(context.project, wishes.evaluator)
        self.judge = Judge(self.row)
        self.other = Judge(find_trained(context.project, wishes.other)) if wishes.other else None
        self.lines: dict[str, dict[str, Line]] = {}
        self.sets: dict[int, list[tuple[float, float]]] = {}
        self.n_simulated = 0

    def compute(self) -> dict[str, Any]:
        from scoring.ml.evaluators.ream import training

        items, left_out = self._items(self.row)
        pools = training.foreign_answers(items, STRANGERS, np.random.default_rng([self.wishes.seed, 1]))
        for done, (item, strangers) in enumerate(zip(items, pools, strict=True)):
            self._one(item, strangers)
            self.context.progress(done + 1, len(items), "items", "reading")
        metric = self.judge.metric
        other = self.other.metric if self.other else ""
        titles = {
            "size": ("references", f"reliability of {metric}"),
            "growth": ("references", f"gold reliability of {metric}"),
            "predicted": ("references", f"predicted reliability of {metric}"),
            "transfer": ("references", f"gold reliability of {metric}"),
            "transfer-other": ("references", f"gold reliability of {other}"),
        }
        return {
            "evaluator": self.judge.slug, "metric": metric, "signature": self.judge.signature,
            "other": self.other.slug if self.other else "", "other_metric": other,
            "references": self.wishes.references, "seed": self.wishes.seed, "max": self.wishes.max,
            "n_items": len(items), "n_groups": len({self._group(item) for item in items}), "n_left_out": left_out,
            "n_simulated": self.n_simulated,
            "panels": {
                name: {"axes": titles[name], "lines": [line.as_dict(self.wishes.seed) for line in lines.values()]}
                for name, lines in self.lines.items()
            },
            "table": [self._table_row(size) for size in sorted(self.sets)],
            "url": f"/projects/{self.context.project.slug}/references/curves/?run={self.context.run.pk}",
        }  # fmt: skip

    def _items(self, row: Evaluator) -> tuple[list[QueryItem], int]:
        """Rated items of groups that some model of each evaluator did not see, and how many others there are."""
        from scoring.ml.evaluators.ream import training

        first = self.judge.members[0]
        choice = DataChoice.from_dict({**(row.record.get("choice") or {}), "references": self.wishes.references})
        dataset = build_dataset(self.context.project, choice, dialogues=False)
        every = training.query_items(dataset, first.aspects[0], str(first.settings["ratings"]))  # type: ignore[arg-type]
        judges = [judge for judge in (self.judge, self.other) if judge]
        unseen = [item for item in every if not any(judge.member_for(self._group(item))[1] for judge in judges)]
        if not unseen:
            raise BadInput(
                f"{self.judge.slug} learned from every one of the {len(every)} items with references and three or more "
                "rated outputs, so nothing here would be evidence. Train it with folds."
            )
        chosen = unseen
        if self.wishes.sample < len(unseen):
            places = random.Random(f"{self.wishes.seed}:curves").sample(range(len(unseen)), self.wishes.sample)
            chosen = [unseen[place] for place in sorted(places)]
        keys = {item.query.item for item in chosen}
        self.n_simulated = sum(
            row.simulated and row.aspect == first.aspects[0] and row.item in keys for row in dataset.ratings
        )
        return chosen, len(every) - len(unseen)

    def _group(self, item: QueryItem) -> str:
        from scoring.ml.training.record import name_group

        return name_group(item.query.group, item.query.item)

    def _line(self, panel: str, name: str) -> Line:
        return self.lines.setdefault(panel, {}).setdefault(name, Line(name))

    def _one(self, item: QueryItem, strangers: Sequence[str]) -> None:
        """All that one item adds to the lines."""
        rng = np.random.default_rng([self.wishes.seed, *item.query.item.encode()])
        own = [item.references[int(place)] for place in rng.permutation(len(item.references))[:MOST_OWN]]
        others = list(strangers)[: max(1, len(own) - 1)]
        one = _Looked(self.judge, item, own, others, self._group(item))
        self._by_size(one, rng)
        chosen = one.choose(self.wishes)
        drawn = [text for text in _shuffled([*own, *others], rng) if text not in chosen[:1]]
        most = self.wishes.max
        half = max(1, most // 2)
        kept = chosen[:half]
        then = [text for text in drawn if text not in kept]
        random_sets = _growing([*chosen[:1], *drawn], most)
        growing = {
            "chosen": _growing(chosen, most),
            # The choice may end before half: its place is kept, so that the two lines part at the same point.
            f"{half} chosen, then random": [
                *_growing(chosen, half), *([*kept, *then[:more]] for more in range(1, most - half + 1)),
            ],
            "random": random_sets,
        }  # fmt: skip
        self._grow("growth", one, growing, one.gold)
        self._grow("predicted", one, growing, one.predicted)
        if self.other is None:
            return
        two = _Looked(self.other, item, own, others, one.group)
        mine, theirs = _growing(chosen, most), _growing(two.choose(self.wishes), most)
        by = {f"chosen for {self.judge.metric}": mine, f"chosen for {self.other.metric}": theirs}
        self._grow("transfer", one, {**by, "random": random_sets}, one.gold)
        self._grow("transfer-other", two, {**dict(reversed(by.items())), "random": random_sets}, two.gold)

    def _by_size(self, one: _Looked, rng: np.random.Generator) -> None:
        from scoring.ml.evaluators.ream.gold import draw_sets

        sizes = [size for size in SIZES if size <= len(one.own)]
        sets = draw_sets(len(one.own), sizes, SETS_A_SIZE, rng)
        gold = one.matrix.reliabilities(sets)
        predicted = one.predicted([[one.own[node] for node in nodes] for nodes in sets])
        for size in sizes:
            places = [k for k, nodes in enumerate(sets) if len(nodes) == size and np.isfinite(gold[k])]
            if not places:
                continue
            self._line("size", GOLD).add(size, one.group, float(gold[places].mean()))
            self._line("size", PREDICTED).add(size, one.group, float(predicted[places].mean()))
            self.sets.setdefault(size, []).extend((float(gold[k]), float(predicted[k])) for k in places)

    def _grow(self, panel: str, one: _Looked, growing: Mapping[str, list[list[str]]], measure: Any) -> None:
        """Values of the sets of each line, one for every place. An item counts at a place only when every line has a
        value there, so that the lines are of the same items."""
        places = range(1, self.wishes.max + 1)
        values = np.asarray(measure([texts for sets in growing.values() for texts in sets]))
        values = values.reshape(len(growing), len(places))
        for column, k in enumerate(places):
            if np.isfinite(values[:, column]).all() and len(one.texts) >= k:
                for row, name in enumerate(growing):
                    self._line(panel, name).add(k, one.group, float(values[row, column]))

    def _table_row(self, size: int) -> dict[str, Any]:
        """Table 2: the error of the prediction beside that of always saying the mean gold of the size."""
        gold, predicted = np.array(self.sets[size]).T
        mse = float(((gold - predicted) ** 2).mean())
        constant = float(((gold - gold.mean()) ** 2).mean())
        return {
            "size": size, "n": len(gold), "gold": float(gold.mean()), "predicted": float(predicted.mean()), "mse": mse,
            "constant": constant, "r2": 1 - mse / constant if constant > 0 else None,
        }  # fmt: skip


class _Looked:
    """An item as one evaluator sees it: single-reference scores of every text, and the model that did not see it."""

    def __init__(self, judge: Judge, item: QueryItem, own: list[str], others: list[str], group: str) -> None:
        from scoring.ml.base import Query
        from scoring.ml.evaluators.ream.gold import ItemGold

        self.item, self.own, self.others, self.group = item, own, others, group
        self.member: Ream = judge.member_for(group)[0]
        self.texts = list(dict.fromkeys([*own, *others]))
        self.place = {text: place for place, text in enumerate(self.texts)}
        (matrix,) = self.member.metric.all_pairs([Query(item.outputs, self.texts)])
        self.matrix: ItemGold = ItemGold(matrix, item.human, len(own))
        self.query = replace(item.query, text="", references=())

    def choose(self, wishes: CurveWishes) -> list[str]:
        from scoring.ml import Item

        query = self.item.query
        item = Item(query.item, query.context, query.source, tuple(self.own), query.group)
        (found,) = self.member.annotate([item], [self.texts], most=wishes.max, seed=wishes.seed)
        return list(found.references)

    def gold(self, sets: Sequence[Sequence[str]]) -> Any:
        return self.matrix.reliabilities([tuple(self.place[text] for text in texts) for texts in sets])

    def predicted(self, sets: Sequence[Sequence[str]]) -> Any:
        return self.member.reliabilities(self.query, sets)


def _growing(order: list[str], most: int) -> list[list[str]]:
    """The first 1, 2, .. `most` texts; an order that ended keeps its last set."""
    return [order[: min(k, len(order))] for k in range(1, most + 1)]


def _shuffled(texts: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [texts[int(place)] for place in rng.permutation(len(texts))]
