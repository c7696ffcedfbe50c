"""What a judge of a project is asked about: outputs, or pairs of outputs in both orders, with their requests; and what
the stored answers say about them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from django.db.models import Avg
from django.utils.translation import gettext as _

from annotation.models import Comparison, Judgement, Output, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput

from . import inputs
from .judge_split import get_split
from .judges import make_judge

if TYPE_CHECKING:
    from scoring.ml import Record
    from scoring.ml.judges import Judge, Reading, Request

#: Items whose requests are made together; the last requests of a chunk leave places empty. Where nothing is sent,
#: chunks are small: a full collection of garbage visits every object of a chunk.
ITEMS, ITEMS_READ = 2_000, 200


@dataclass(frozen=True)
class Unit:
    """What is judged once: an output, or a pair of outputs. `orders` has the requests of each sample: one for an
    output, two for a pair: the second shows the texts in the other order, or for a reward model the other text."""

    output: int
    record: Record
    orders: tuple[tuple[Request, ...], ...]
    other: int | None = None
    other_record: Record | None = None

    @property
    def requests(self) -> list[Request]:
        return [request for sample in self.orders for request in sample]


def iterate_units(
    project: Project, judge: Judge, config: Mapping[str, Any], items: int = ITEMS
) -> Iterator[list[Unit]]:
    """Yield all that is judged, in chunks of so many whole items."""
    name = config["references"]
    against = inputs.get_reference_set(project, name) if name else None
    for chunk in inputs.iterate_inputs(project, references=against, items=items):
        if judge.is_pairwise:
            yield _pair(project, judge, config, chunk)
        else:
            yield [_make_unit(judge, config, row) for row in chunk]


def _make_unit(judge: Judge, config: Mapping[str, Any], row: inputs.Input, other: inputs.Input | None = None) -> Unit:
    repeats = range(config["samples"])
    second = None if other is None else other.record
    orders = tuple(judge.make_orders(row.record, second, k) for k in repeats)
    return Unit(row.output, row.record, orders, None if other is None else other.output, second)


def _pair(project: Project, judge: Judge, config: Mapping[str, Any], chunk: Sequence[inputs.Input]) -> list[Unit]:
    rows = {row.output: row for row in chunk}
    if config["pairs"] == "all":
        by_item: dict[str, list[int]] = {}
        for row in chunk:
            by_item.setdefault(row.record.item, []).append(row.output)
        pairs = [pair for outputs in by_item.values() for pair in combinations(outputs, 2)]
    else:
        compared = Comparison.objects.filter(
            project=project, aspect__name=config["aspect"], output_b__isnull=False,
            output_a__gte=min(rows), output_a__lte=max(rows),
        ).values_list("output_a", "output_b")  # fmt: skip
        pairs = sorted({(min(pair), max(pair)) for pair in compared})
    return [_make_unit(judge, config, rows[a], rows[b]) for a, b in pairs if a in rows and b in rows]


# ---- answers ----------------------------------------------------------------------------------------------------


class AnswerFigures:
    """What the answers of a run show: effect of the order of two texts, spread of samples, probability on the scale."""

    def __init__(self) -> None:
        self.orders: Counter[str] = Counter()
        self._spreads: list[float] = []
        self._shares: list[float] = []
        self._n_equal = 0

    def add(self, samples: Sequence[Reading | None]) -> None:
        """Add the readings of a unit; see `Reader.settle`."""
        readings = [reading for reading in samples if reading is not None]
        self._shares += [reading.share for reading in readings if reading.share is not None]
        values = [reading.value for reading in readings if reading.value is not None]
        if len(values) > 1:
            self._spreads.append(stdev(values))
            self._n_equal += max(values) - min(values) < 1e-9
        for reading in readings:
            if reading.orders:
                self.orders["pairs"] += 1
                self.orders["orders_disagree"] += reading.orders not in (("a", "b"), ("b", "a"), ("tie", "tie"))
                self.orders["first_better"] += reading.orders.count("a")
                self.orders["second_better"] += reading.orders.count("b")

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-safe values, None without answers of a kind."""
        n, shares = len(self._spreads), self._shares
        consistency = {"n": n, "mean_sd": fmean(self._spreads), "equal": self._n_equal / n} if n else None
        return {
            "consistency": consistency, "mean_share": fmean(shares) if shares else None,
            "orders": dict(self.orders) or None,
        }  # fmt: skip


@dataclass
class OutputValues:
    """Values of an output: its ratings, or 1, 1/2 and 0 for each comparison. `n_open` units have no answer yet."""

    requests: list[str] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    n_open: int = 0

    @property
    def value(self) -> float:
        """The mean of the values, nan without one."""
        return sum(self.values) / len(self.values) if self.values else float("nan")

    @property
    def reason(self) -> str:
        return "" if self.values else max(self.reasons, key=lambda text: self.reasons[text], default="")

    def add(self, reading: Reading | None, value: float | None) -> None:
        if reading is None:
            self.n_open += 1
        elif value is None:
            self.reasons[reading.reason] = self.reasons.get(reading.reason, 0) + 1
        else:
            self.values.append(value)


def collect_values(units: Sequence[Unit], settled: Sequence[Sequence[Reading | None]]) -> dict[int, OutputValues]:
    """Return the values of each output: the mean over samples, for pairs also over all comparisons of the output.
    `settled`: the readings of each unit; see `Reader.settle`."""
    from scoring.ml.judges.reader import WINS

    result: dict[int, OutputValues] = {}
    for unit, readings in zip(units, settled, strict=True):
        entry = result.setdefault(unit.output, OutputValues())
        entry.requests += [request.digest for request in unit.requests]
        other = None if unit.other is None else result.setdefault(unit.other, OutputValues())
        if other is not None:
            other.requests += [request.digest for request in unit.requests]
        for reading in readings:
            if other is None:
                entry.add(reading, None if reading is None else reading.value)
                continue
            win = WINS[reading.verdict] if reading is not None and reading.verdict else None
            entry.add(reading, win)
            other.add(reading, None if win is None else 1 - win)
    return result


# ---- examples ---------------------------------------------------------------------------------------------------


def choose_examples(project: Project, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rated outputs as examples, spread over the scale: text, context, source, group and the rounded mean of
    the ratings. They are of the development part, at most one from each group, because its other outputs count as
    training data; with `examples_from` among the outputs that this campaign rated."""
    rated = Rating.objects.filter(project=project, aspect__name=config["aspect"], output__isnull=False)
    campaign = config.get("examples_from", "")
    if campaign:
        judged = Judgement.objects.filter(campaign__project=project, campaign__slug=campaign, current=True)
        rated = rated.filter(judgement__in=judged.values("pk"))
    means = rated.values("output").annotate(mean=Avg("value")).order_by("output")
    split = get_split(project)
    found = means.values_list("output", "mean", "output__item__group", "output__item__key")
    rows = [(output, mean, group) for output, mean, group, key in found if not split.is_test(group, key)]
    random.Random(config["seed"]).shuffle(rows)
    by_group = {group or f"item-of-{output}": (output, mean) for output, mean, group in rows}
    ordered = sorted(by_group.values(), key=lambda pair: pair[1])
    n = config["examples"]
    least = n if campaign else 2 * n
    if len(ordered) < least:
        text = _("%(n)d examples need rated outputs in at least %(least)d development groups; there are %(found)d.")
        facts = {"n": n, "least": least, "found": len(ordered)}
        raise BadInput.for_field("examples", text % facts)
    chosen = dict(ordered[round((k + 0.5) * len(ordered) / n - 0.5)] for k in range(n))
    judge = make_judge(config)
    points = judge.rubric.points or (config["low"], config["high"])
    result = []
    for row in Output.objects.filter(pk__in=chosen).select_related("item", "system").order_by("pk"):
        nearest = min(points, key=lambda point: abs(point - chosen[row.pk])) if judge.rubric.points else chosen[row.pk]
        result.append({
            "item": row.item.key, "group": row.item.group, "system": row.system.name, "text": row.text,
            "context": list(map(str, row.item.context)), "source": row.item.source, "answer": f"{nearest:g}",
        })  # fmt: skip
    random.Random(config["seed"]).shuffle(result)
    return result
