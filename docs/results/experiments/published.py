"""Correlations and shares that are printed about the public sets, computed again: baselines, pairs, source metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from experiments.files import in_order, read_rows
from scipy import stats
from study import Run, Tables, plain, row

from evalapp.stats.agreement.normalise import OutputScores, aggregate_ratings, normalise_ratings
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.multiple_tests import needed_draws
from evalapp.stats.correlation.ceiling import OutputRatings, noise_ceiling
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.significance import compare_all
from evalapp.stats.resampling.bootstrap import Bootstrap, resampled_sums, with_interval
from evalapp.words import split_words
from scoring.ml.base import Query
from scoring.ml.baselines.token_f1 import ENTRIES

SEED, RESAMPLES = 13, 1000
BOTH = ("pearson", "spearman")
Key = tuple[str, str]


class Data:
    """One set's files, with lengths, token F1 and human scores by output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.items = {entry["id"]: entry for entry in read_rows(folder, "items")}
        self.outputs = {(entry["item"], entry["system"]): entry for entry in read_rows(folder, "outputs")}

    @cached_property
    def f1(self) -> dict[Key, float]:
        """Best token F1 over the item's references; nan without references."""
        by_item: dict[str, list[Key]] = defaultdict(list)
        for key in self.outputs:
            by_item[key[0]].append(key)
        metric, scores = ENTRIES[0].build(ENTRIES[0], {}), dict.fromkeys(self.outputs, float("nan"))
        for item, keys in by_item.items():
            if references := self.items[item]["references"]:
                (pairs,) = metric.all_pairs([Query([self.outputs[key]["text"] for key in keys], references)])
                scores |= dict(zip(keys, pairs.max(axis=1).tolist(), strict=True))
        return scores

    def count_words(self, key: Key) -> int:
        return len(split_words(self.outputs[key]["text"]))

    def ratings(self, aspect: str, without: Sequence[str]) -> list[dict[str, Any]]:
        rows = read_rows(self.folder, "ratings")
        return [entry for entry in rows if entry["aspect"] == aspect and entry["system"] not in without]

    def average(self, aspect: str, without: Sequence[str], method: str) -> OutputScores:
        """Mean over raters by output."""
        rows = self.ratings(aspect, without)
        value, item, system, rater = ([r[name] for r in rows] for name in ("value", "item", "system", "rater"))
        return aggregate_ratings(normalise_ratings(value, item, rater, method=method), item, system)

    def groups(self, people: OutputScores) -> list[str]:
        return [self.items[item]["group"] for item in people.item.tolist()]


def list_keys(people: OutputScores) -> list[Key]:
    return list(zip(people.item.tolist(), people.system.tolist(), strict=True))


def correlate_both(scores: Sequence[float], people: OutputScores, groups: Sequence[str]) -> dict[str, Any]:
    found = correlate(
        scores, people.mean, people.item, people.system, settings=CorrelationSettings(coefficients=BOTH),
        bootstrap=Bootstrap(cluster=groups, resamples=RESAMPLES, seed=SEED),
    )  # fmt: skip
    return {name: found[name].as_dict() for name in BOTH} | {"missing": found.n_missing_metric}


def measure_floor(data: Data, aspect: str, without: Sequence[str], method: str) -> dict[str, Any]:
    """Length and token F1 with human scores."""
    people = data.average(aspect, without, method)
    keys, groups = list_keys(people), data.groups(people)
    found = {"length": correlate_both([data.count_words(key) for key in keys], people, groups)}
    scores = [data.f1[key] for key in keys]
    if np.isfinite(scores).any():
        found["f1"] = correlate_both(scores, people, groups)
        if found["f1"]["missing"]:
            found["f1_zeros"] = correlate_both(np.nan_to_num(scores).tolist(), people, groups)
    return found


def measure_rule(data: Data, aspect: str, rule: str) -> dict[str, Any]:
    """The share of compared pairs of outputs that a rule decides as people do, resampled by groups of items."""
    votes: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for entry in read_rows(data.folder, "comparisons"):
        if entry["aspect"] == aspect:
            a, b, verdict = in_order(entry)
            votes[entry["item"], a, b][verdict] += 1
    points, groups = [], []
    for (item, a, b), count in votes.items():
        point = judge_pair(data, rule, (item, a), (item, b), count)
        if point is not None:
            points.append(point)
            groups.append(data.items[item]["group"])
    codes = np.unique(groups, return_inverse=True)[1]
    n = int(codes.max()) + 1
    columns = np.stack([np.array(points), np.ones(len(points))], axis=1)
    sums = resampled_sums(columns, codes, n, resamples=RESAMPLES, seed=SEED)
    point = Estimate.point(float(np.mean(points)), len(points))
    return with_interval(point, sums[:, 0] / sums[:, 1], clusters={"groups": n}).as_dict()


def judge_pair(data: Data, rule: str, one: Key, two: Key, count: Counter[str]) -> float | None:
    """1 where the rule decides as the votes do, one half where it sees no difference; None without a majority."""
    if rule == "more characters, ties counted":
        (winner, most), *others = count.most_common()
        if others and others[0][1] == most:
            return None
        difference = len(data.outputs[one]["text"]) - len(data.outputs[two]["text"])
        return float({"a": 1, "b": -1, "tie": 0}[winner] == np.sign(difference))
    net = count["a"] - count["b"]
    if net == 0:
        return None
    first, second = (data.f1[key] if rule == "higher F1" else data.count_words(key) for key in (one, two))
    return 0.5 + 0.5 * float(np.sign(first - second) * np.sign(net))


def measure_columns(
    data: Data, aspect: str, without: Sequence[str], has_raters: bool, lower: Sequence[str]
) -> dict[str, Any]:
    """Every metric column of the source with human scores, and all columns against each other."""
    people = data.average(aspect, without, "raw")
    keys, groups = list_keys(people), data.groups(people)
    metrics = [data.outputs[key]["meta"]["source_metrics"] for key in keys]
    names = sorted({name for values in metrics for name in values})
    scores = {name: np.array([values.get(name, np.nan) for values in metrics], dtype=float) for name in names}
    signed = {name: -column if name in lower else column for name, column in scores.items()}
    tests = PairTests(k=needed_draws(len(names)), seed=SEED)
    compared = compare_all(signed, people.mean, people.item, people.system, cluster=groups, tests=tests)
    found = {name: correlate_both(column.tolist(), people, groups) for name, column in scores.items()}
    letters = {"names": compared.names, "rank": compared.rank, "letters": compared.letters, "k": compared.k_used}
    ceiling = measure_ceiling(data, data.ratings(aspect, without)) if has_raters else {}
    return {"columns": found, "compared": letters, "ceiling": ceiling, "n": len(keys)}


def measure_ceiling(data: Data, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    unit = [f"{entry['item']} {entry['system']}" for entry in rows]
    values, raters = ([entry[name] for entry in rows] for name in ("value", "rater"))
    items = [data.items[entry["item"]]["group"] for entry in rows]
    ratings, bootstrap = OutputRatings(values, unit, raters, item=items), Bootstrap(seed=SEED, resamples=500)
    return {
        name: noise_ceiling(ratings, settings=CorrelationSettings(coefficients=(name,)), bootstrap=bootstrap).as_dict()
        for name in BOTH
    }


def measure_ties(data: Data, aspect: str) -> dict[str, Any]:
    """Spearman of every column by SciPy, and with ties on their lowest rank, as spreadsheets rank them."""
    people = data.average(aspect, (), "raw")
    rows = [data.outputs[key]["meta"]["source_metrics"] for key in list_keys(people)]
    found = {}
    for name in rows[0]:
        column = np.array([values[name] for values in rows])
        lowest = [stats.rankdata(values, method="min") for values in (column, people.mean)]
        found[name] = {
            "scipy": float(stats.spearmanr(column, people.mean)[0]),
            "lowest": float(np.corrcoef(*lowest)[0, 1]),
            "zeros": int((column == 0).sum()),
        }
    return found


def label_subset(entry: Mapping[str, Any]) -> str:
    without = ", ".join(entry.get("without", ()))
    return f"{entry['set']} {entry['aspect']}" + (f" without {without}" if without else "")


def compute(run: Run) -> None:
    sets: dict[str, Data] = {}

    def opened(name: str) -> Data:
        return sets.setdefault(name, Data(run.data / name))

    few = 2 if run.quick else None
    for entry in run.settings.get("floors", ())[:few]:
        name, aspect, without = entry["set"], entry["aspect"], entry.get("without", ())
        method = "rank" if name in run.settings["by_rank"] else "raw"
        run.once(
            f"floor | {label_subset(entry)}", SEED,
            lambda n=name, a=aspect, w=without, m=method: measure_floor(opened(n), a, w, m),
        )  # fmt: skip
    for entry in run.settings.get("pairs", ())[:few]:
        name, aspect, rule = entry["set"], entry["aspect"], entry["rule"]
        run.once(
            f"pairs | {name} {aspect} | {rule}", SEED, lambda n=name, a=aspect, r=rule: measure_rule(opened(n), a, r)
        )
    for entry in run.settings.get("columns", ())[:few]:
        name, aspect, without, raters = entry["set"], entry["aspect"], entry.get("without", ()), entry["raters"]
        run.once(
            f"columns | {label_subset(entry)}", SEED,
            lambda n=name, a=aspect, w=without, r=raters: measure_columns(opened(n), a, w, r, run.settings["lower"]),
        )  # fmt: skip
    for name in run.settings.get("ties", ()):
        folder, aspect = name.split(" ")
        run.once(f"ties | {name}", SEED, lambda f=folder, a=aspect: measure_ties(opened(f), a))


def tabulate(run: Run) -> Tables:
    equal = total = 0
    for entry in run.settings.get("floors", ()):
        for result in run.store.get(f"floor | {label_subset(entry)}", [SEED]):
            f1 = result.get("f1")
            yield row(
                "floors", "set", entry.get("label") or label_subset(entry), n=result["length"]["pearson"]["n"],
                length_printed=join(entry["length"]), length=plain(result["length"]["pearson"]),
                length_spearman=plain(result["length"]["spearman"]), f1_printed=join(entry.get("f1")),
                f1=plain(f1["pearson"]) if f1 else None, f1_spearman=plain(f1["spearman"]) if f1 else None,
            )  # fmt: skip
    for entry in run.settings.get("pairs", ()):
        name = f"{entry['set']} {entry['aspect']}"
        for result in run.store.get(f"pairs | {name} | {entry['rule']}", [SEED]):
            yield row(
                "pairs", "set", f"{name}, {entry['rule']}", pairs=result["n"], share=plain(result),
                printed=entry["printed"],
            )  # fmt: skip
    for entry in run.settings.get("columns", ()):
        for result in run.store.get(f"columns | {label_subset(entry)}", [SEED]):
            order = zip(result["compared"]["names"], result["compared"]["letters"], strict=True)
            for column, letters in order:
                own, printed = result["columns"][column], entry.get("printed", {}).get(column)
                total += 2 * bool(printed)
                equal += sum(
                    abs(own[name]["value"] - theirs) < 0.0006 for name, theirs in zip(BOTH, printed or (), strict=False)
                )
                yield row(
                    "columns", "column", f"{label_subset(entry)}: {column}", pearson=plain(own["pearson"]),
                    spearman=plain(own["spearman"]), printed=join(printed), letters=letters,
                    ceiling=plain(result["ceiling"]["pearson"]) if result["ceiling"] else None,
                )  # fmt: skip
    facts = {"equal": equal, "total": total} if total else {}
    for name in run.settings.get("ties", ()):
        for result in run.store.get(f"ties | {name}", [SEED]):
            columns = {column: values for column, values in result.items() if isinstance(values, dict)}
            facts |= {f"{name} {key}": value for name, values in columns.items() for key, value in values.items()}
    if facts:
        yield {"table": "facts", **facts}


def join(figures: Sequence[float] | None) -> str | None:
    return "/".join(f"{value:.3f}" for value in figures) if figures else None
