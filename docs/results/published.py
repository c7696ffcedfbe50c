"""Do our coefficients give what is printed about public human-rated sets: floors, pairs, the columns of the sources?

Nothing is trained: the texts, ratings, comparisons and metric columns that come with the sets, and `evalapp.stats`.
"""

from __future__ import annotations

import collections
import gzip
import json
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from store import Given, Result, arguments, estimate, number, publish, store_of, table

from evalapp.stats.agreement.normalise import aggregate_ratings, normalise_ratings
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

SEED = 13
RESAMPLES = 1000
WITHIN = 0.002

HUMANS = ("Original Ground Truth", "New Human Generated")
#: Set, aspect, systems left out, then the floors table of the README beside the data: Pearson and Spearman of length
#: and of the best token F1 (None: it prints none). The same rows as in floors.md.
FLOORS: tuple[tuple[str, str, tuple[str, ...], tuple[float, float], tuple[float, float] | None], ...] = (
    ("novikova", "informativeness", (), (0.101, 0.117), (0.123, 0.117)),
    ("novikova", "naturalness", (), (-0.159, -0.166), (0.141, 0.155)),
    ("novikova", "quality", (), (-0.098, -0.101), (0.090, 0.090)),
    ("rankme", "likert_apart_informativeness", (), (0.341, 0.244), (0.602, 0.599)),
    ("rankme", "likert_apart_naturalness", (), (-0.290, -0.364), (-0.140, -0.164)),
    ("rankme", "likert_apart_quality", (), (0.173, 0.120), (0.430, 0.395)),
    ("e2e", "naturalness", (), (-0.134, -0.141), (0.086, 0.085)),
    ("e2e", "quality", (), (0.195, 0.190), (0.187, 0.183)),
    ("dstc7_dev", "relevance", ("Human",), (-0.019, 0.014), (0.162, 0.153)),
    ("dstc7_dev", "informativeness", ("Human",), (0.047, 0.071), (0.140, 0.129)),
    ("dailydialog_multiref", "overall", ("human",), (-0.287, -0.346), (0.235, 0.195)),
    ("usr_topicalchat", "overall", HUMANS[:1], (0.332, 0.270), (0.280, 0.299)),
    ("usr_topicalchat", "overall", HUMANS, (0.063, 0.045), (0.336, 0.304)),
    ("usr_personachat", "overall", HUMANS[:1], (0.236, 0.216), (0.078, 0.062)),
    ("usr_personachat", "overall", HUMANS, (-0.192, -0.181), (0.079, 0.055)),
    ("grade_convai2", "coherence", (), (-0.043, -0.028), (0.127, 0.135)),
    ("grade_dailydialog", "coherence", (), (-0.222, -0.266), (0.091, 0.028)),
    ("grade_empathetic", "coherence", (), (0.037, -0.027), (0.051, 0.034)),
    ("predictive_engagement", "engagement", (), (0.016, 0.143), None),
    ("predictive_engagement", "engagement", ("human",), (-0.211, -0.354), None),
    ("union_roc", "reasonable", (), (-0.116, -0.111), (0.012, -0.005)),
    ("scratchplot", "naturalness", (), (-0.160, -0.116), None),
    ("scratchplot", "interestingness", (), (0.249, 0.187), None),
    ("scratchplot", "coherence", (), (-0.108, -0.155), None),
)
#: Open scales: the order within what one person judged side by side.
BY_RANK = {"e2e"}
#: The line "Pairs" of the README: set, aspect, rule, figure.
PAIRS = (
    ("pandalm", "overall", "more words", 0.684),
    ("pandalm", "overall", "more characters, ties counted", 0.611),
    ("e2e", "naturalness", "more words", 0.406),
    ("e2e", "quality", "more words", 0.633),
    ("scratchplot", "ending", "more words", 0.598),
    ("e2e", "naturalness", "higher F1", 0.546),
    ("e2e", "quality", "higher F1", 0.630),
)
#: Columns in outputs.meta.source_metrics as the README gives them, Pearson and Spearman.
PRINTED = {
    ("novikova", "informativeness", "METEOR"): (0.097, 0.145),
    ("novikova", "naturalness", "METEOR"): (0.162, 0.160),
    ("novikova", "quality", "METEOR"): (0.098, 0.103),
    ("novikova", "naturalness", "TER"): (-0.175, -0.168),
    ("union_roc", "reasonable", "union"): (0.369, 0.460),
    ("union_roc", "reasonable", "union_recon"): (0.310, 0.403),
    ("union_roc", "reasonable", "bleurt"): (0.231, 0.235),
    ("union_roc", "reasonable", "bleu"): (0.030, 0.032),
    ("predictive_engagement", "engagement", "CTX_Unref_Score"): (0.540, 0.547),
    ("predictive_engagement", "engagement", "Eng_Score_MeanPooling"): (0.393, 0.448),
    ("predictive_engagement", "engagement", "Ruber_Unref_Score"): (0.237, 0.302),
}
#: Sets with such columns: aspects, systems left out, whether raters are there.
COLUMNS = (
    ("novikova", "informativeness", (), False),
    ("novikova", "naturalness", (), False),
    ("novikova", "quality", (), False),
    ("union_roc", "reasonable", (), True),
    ("predictive_engagement", "engagement", (), True),
    ("predictive_engagement", "engagement", ("human",), True),
)
#: Lower is better: turned round before metrics are compared.
LOWER = {"TER", "ppl"}


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    path = next(folder.glob(f"{name}.jsonl*"))
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Set:
    """One set's files, with texts, groups and scores by output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.items = {row["id"]: row for row in read(folder, "items")}
        self.outputs = {(row["item"], row["system"]): row for row in read(folder, "outputs")}
        self._f1: dict[tuple[str, str], float] | None = None

    @property
    def f1(self) -> dict[tuple[str, str], float]:
        """Best token F1 over the item's references; nan without references."""
        if self._f1 is None:
            by_item = collections.defaultdict(list)
            for key in self.outputs:
                by_item[key[0]].append(key)
            metric = ENTRIES[0].build(ENTRIES[0], {})
            self._f1 = {}
            for item, keys in by_item.items():
                references = self.items[item]["references"]
                best = [float("nan")] * len(keys)
                if references:
                    texts = [self.outputs[key]["text"] for key in keys]
                    best = metric.all_pairs([Query(texts, references)])[0].max(axis=1).tolist()
                self._f1 |= dict(zip(keys, best, strict=True))
        return self._f1

    def length(self, key: tuple[str, str]) -> int:
        return len(split_words(self.outputs[key]["text"]))

    def group(self, item: str) -> str:
        return self.items[item]["group"]

    def ratings(self, aspect: str, without: tuple[str, ...]) -> list[dict[str, Any]]:
        return [r for r in read(self.folder, "ratings") if r["aspect"] == aspect and r["system"] not in without]

    def people(self, aspect: str, without: tuple[str, ...], method: str) -> Any:
        """Mean over raters by output."""
        columns = zip(*[(r["value"], r["item"], r["system"], r["rater"]) for r in self.ratings(aspect, without)],
                      strict=True)  # fmt: skip
        value, item, system, rater = columns
        return aggregate_ratings(normalise_ratings(value, item, rater, method=method), item, system)


def by_coefficient(scores: Any, people: Any, group: list[str]) -> Result:
    found = correlate(
        scores,
        people.mean,
        people.item,
        people.system,
        bootstrap=Bootstrap(cluster=group, resamples=RESAMPLES, seed=SEED),
        settings=CorrelationSettings(coefficients=("pearson", "spearman")),
    )
    return {name: found[name].as_dict() for name in ("pearson", "spearman")} | {"missing": found.n_missing_metric}


def floor(data: Set, aspect: str, without: tuple[str, ...], with_f1: bool) -> Result:
    people = data.people(aspect, without, "rank" if data.folder.name in BY_RANK else "raw")
    keys = list(zip(people.item.tolist(), people.system.tolist(), strict=True))
    group = [data.group(item) for item, _ in keys]
    found = {"length": by_coefficient([data.length(key) for key in keys], people, group)}
    if with_f1:
        scores = [data.f1[key] for key in keys]
        found["f1"] = by_coefficient(scores, people, group)
        if found["f1"]["missing"]:
            found["f1_zeros"] = by_coefficient(np.nan_to_num(scores), people, group)
    return found


def pair_shares(data: Set, aspect: str, rule: str) -> Result:
    """Share of pairs of outputs that a rule decides as people do, with an interval over groups of items."""
    votes: dict[tuple[str, str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    turned = {"a": "b", "b": "a"}
    for row in read(data.folder, "comparisons"):
        if row["aspect"] != aspect:
            continue
        a, b, verdict = row["system_a"], row["system_b"], row["verdict"]
        if a > b:
            a, b, verdict = b, a, turned.get(verdict, verdict)
        votes[row["item"], a, b][verdict] += 1
    points, groups = [], []
    for (item, a, b), count in votes.items():
        one, two = (item, a), (item, b)
        if rule.startswith("more characters"):
            difference = float(len(data.outputs[one]["text"]) - len(data.outputs[two]["text"]))
            (winner, most), *others = count.most_common()
            if others and others[0][1] == most:
                continue  # one vote each way: no majority
            points.append(float({"a": 1, "b": -1, "tie": 0}[winner] == np.sign(difference)))
        else:
            net = count["a"] - count["b"]
            if net == 0:
                continue
            scores = [data.f1[key] if rule == "higher F1" else data.length(key) for key in (one, two)]
            points.append(0.5 + 0.5 * float(np.sign(scores[0] - scores[1]) * np.sign(net)))
        groups.append(data.group(item))
    _, codes = np.unique(groups, return_inverse=True)
    columns = np.stack([np.array(points), np.ones(len(points))], axis=1)
    sums = resampled_sums(columns, codes, int(codes.max()) + 1, resamples=RESAMPLES, seed=SEED)
    point = Estimate.point(float(np.mean(points)), len(points))
    return with_interval(point, sums[:, 0] / sums[:, 1], clusters={"groups": int(codes.max()) + 1}).as_dict()


def columns_of(data: Set, aspect: str, without: tuple[str, ...], raters: bool) -> Result:
    """Every metric column of the source against people, and all of them against each other."""
    people = data.people(aspect, without, "raw")
    keys = list(zip(people.item.tolist(), people.system.tolist(), strict=True))
    group = [data.group(item) for item, _ in keys]
    names = sorted({name for key in keys for name in data.outputs[key]["meta"]["source_metrics"]})
    scores = {
        name: [data.outputs[key]["meta"]["source_metrics"].get(name, float("nan")) for key in keys] for name in names
    }
    found: Result = {name: by_coefficient(column, people, group) for name, column in scores.items()}
    signed = {name: -np.array(column) if name in LOWER else np.array(column) for name, column in scores.items()}
    compared = compare_all(
        signed,
        people.mean,
        people.item,
        people.system,
        cluster=group,
        tests=PairTests(k=needed_draws(len(names)), seed=SEED),
    )
    ceiling = {}
    if raters:
        rows = data.ratings(aspect, without)
        ceiling = {
            name: noise_ceiling(
                OutputRatings(
                    [row["value"] for row in rows], [f"{row['item']} {row['system']}" for row in rows],
                    [row["rater"] for row in rows], item=[data.group(row["item"]) for row in rows],
                ),
                settings=CorrelationSettings(coefficients=(name,)), bootstrap=Bootstrap(seed=SEED, resamples=500),
            ).as_dict()
            for name in ("pearson", "spearman")
        }  # fmt: skip
    kept = {"names": compared.names, "rank": compared.rank, "letters": compared.letters, "k": compared.k_used}
    return {"columns": found, "compared": kept, "ceiling": ceiling, "n": len(keys)}


def ties(data: Set, aspect: str) -> Result:
    """Spearman of every column under SciPy, and with ties on their lowest rank, as spreadsheets rank."""
    people = data.people(aspect, (), "raw")
    rows = [data.outputs[key]["meta"]["source_metrics"] for key in zip(people.item, people.system, strict=True)]
    found: Result = {}
    for name in rows[0]:
        column = np.array([row[name] for row in rows])
        lowest = [stats.rankdata(values, method="min") for values in (column, people.mean)]
        found[name] = {
            "scipy": float(stats.spearmanr(column, people.mean)[0]),
            "lowest": float(np.corrcoef(*lowest)[0, 1]),
            "zeros": int((column == 0).sum()),
        }
    return found


def name_of(folder: str, aspect: str, without: tuple[str, ...]) -> str:
    return f"{folder} {aspect}" + (f" without {', '.join(without)}" if without else "")


def compute(given: Given) -> dict[str, dict[str, Result]]:
    kept = store_of(given, "published")
    sets: dict[str, Set] = {}

    def opened(folder: str) -> Set:
        return sets.setdefault(folder, Set(given.data / folder))

    found: dict[str, dict[str, Result]] = {"floors": {}, "pairs": {}, "columns": {}, "ties": {}}
    quick = given.quick
    for folder, aspect, without, _, f1 in FLOORS[: 3 if quick else None]:
        name = name_of(folder, aspect, without)
        work = lambda f=folder, a=aspect, w=without, with_f1=f1 is not None: floor(opened(f), a, w, with_f1)  # noqa: E731
        found["floors"][name] = kept.once(f"floor | {name}", SEED, work)
    for folder, aspect, rule, _ in PAIRS[: 2 if quick else None]:
        name = f"{folder} {aspect} | {rule}"
        work = lambda f=folder, a=aspect, r=rule: pair_shares(opened(f), a, r)  # noqa: E731
        found["pairs"][name] = kept.once(f"pairs | {name}", SEED, work)
    for folder, aspect, without, raters in COLUMNS[-1:] if quick else COLUMNS:
        name = name_of(folder, aspect, without)
        work = lambda f=folder, a=aspect, w=without, r=raters: columns_of(opened(f), a, w, r)  # noqa: E731
        found["columns"][name] = kept.once(f"columns | {name}", SEED, work)
    work = lambda: ties(opened("predictive_engagement"), "engagement")  # noqa: E731
    found["ties"] = kept.once("ties | predictive_engagement engagement", SEED, work)
    return found


def distance(printed: tuple[float, float] | None, result: Result) -> float | None:
    """The larger difference of Pearson and Spearman to what is printed, beyond rounding at three digits."""
    if printed is None:
        return None
    values = [result[name]["value"] for name in ("pearson", "spearman")]
    return max(abs(ours - theirs) for ours, theirs in zip(values, printed, strict=True))


def said(printed: tuple[float, float] | None) -> str:
    return "-" if printed is None else "/".join(number(value) for value in printed)


def floor_lines(found: dict[str, Result]) -> list[str]:
    body, far, most = [], [], 0.0
    for folder, aspect, without, length, f1 in FLOORS:
        name = name_of(folder, aspect, without)
        result = found.get(name)
        if result is None:
            continue
        row = [name]
        for kind, printed in (("length", length), ("f1", f1)):
            away = distance(printed, result[kind]) if kind in result else None
            if away is not None and away > WITHIN:
                far.append(f"{name} {kind} by {number(away)}")
            elif away is not None:
                most = max(most, away)
            row += [estimate(result[kind][c]) for c in ("pearson", "spearman")] if kind in result else ["-", "-"]
        row.insert(1, f"{result['length']['pearson']['n']:,}")
        body.append(row)
    lines = table(["set, aspect", "n", "length, Pearson", "Spearman", "F1, Pearson", "Spearman"], body)
    summary = f"All figures are those printed, to {number(most, 4)} at most"
    if far:
        summary += f", but for {'; '.join(far)}: outputs without a reference have no F1 here (see floors.md). "
        summary += "With 0 for them: "
        zeros = [
            f"{name} {'/'.join(number(result['f1_zeros'][c]['value']) for c in ('pearson', 'spearman'))}"
            for name, result in found.items()
            if "f1_zeros" in result
        ]
        summary += "; ".join(zeros)
    return [*lines, "", *textwrap.wrap(summary + ".", 119)]


def pair_lines(found: dict[str, Result]) -> list[str]:
    body = []
    for folder, aspect, rule, printed in PAIRS:
        result = found.get(f"{folder} {aspect} | {rule}")
        if result:
            away = number(result["value"] - printed, 4)
            body.append([f"{folder} {aspect}", rule, f"{result['n']:,}", estimate(result), number(printed), away])
    return table(["set, aspect", "rule", "pairs", "share it decides as people do", "printed", "difference"], body)


def column_lines(found: dict[str, Result]) -> list[str]:
    lines: list[str] = []
    for folder, aspect, without, _ in COLUMNS:
        name = name_of(folder, aspect, without)
        result = found.get(name)
        if result is None:
            continue
        compared = result["compared"]
        order = dict(zip(compared["names"], zip(compared["rank"], compared["letters"], strict=True), strict=True))
        body = []
        for column, (rank, letters) in order.items():
            own = result["columns"][column]
            printed = None if without else PRINTED.get((folder, aspect, column))
            away = distance(printed, own)
            body.append(
                [column + (" (lower is better)" if column in LOWER else ""), estimate(own["pearson"]),
                 estimate(own["spearman"]), said(printed), "-" if away is None else number(away, 4), str(rank), letters]
            )  # fmt: skip
        head = ["column", "Pearson", "Spearman", "printed", "difference", "rank", "letters"]
        lines += ["", f"### {name}", "", f"n = {result['n']:,} outputs, k = {compared['k']:,} exchanges.", ""]
        lines += table(head, body)
        if result["ceiling"]:
            both = [estimate(result["ceiling"][c]) for c in ("pearson", "spearman")]
            lines += ["", f"Ceiling (split-half): Pearson {both[0]}, Spearman {both[1]}."]
    return lines


INTRODUCTION = """# Printed figures, computed again

What is printed about these sets and can be computed from their files, by `evalapp.stats` alone:

```
python docs/results/published.py --data FOLDER_OF_SETS --out FOLDER
```

“Printed” is the README that comes with the data. Square brackets hold 95 % percentile intervals from 1,000 resamples
of groups of items (what must never be split), seed 13. Agreement between raters, the column alpha included, is in
[agreement.md](agreement.md). The leaderboards of DialEvalMetrics and UniEval's rows cannot be computed again here:
their scores are not in the files."""

PAIR_NOTES = """
A pair of outputs counts once: the side with more votes won, pairs with as many for either side (or ties alone) are
left out, and where the rule sees no difference it gets one half. The one row “ties counted” takes the majority of each
pair instead, a tie being a verdict like the others (1-1-1 has none and is left out), and asks for the same verdict.
The README prints the figures without these rules; they were found by trying units (judgement, majority, net votes),
lengths (words, characters) and equal lengths (left out, half, wrong), and are the ones that meet all seven. Below one
half the rule is wrong more often than right: for naturalness in e2e the shorter text wins.
"""

COLUMN_NOTES = """
Metric values as the sources released them (`outputs.meta.source_metrics`), against the mean of the raters (novikova:
the median, which is all there is). “Difference” is the larger of the two coefficients'. Rank and letters come from
PERM-INPUTS on Pearson, two-sided, whole groups exchanged, Holm over all pairs of columns at .05: columns that share a
letter are not told apart. Columns where lower is better are turned round before. The ceiling is the correlation that a
metric without error would have with the mean of these raters."""


def reasons(found: dict[str, Result]) -> list[str]:
    """Every printed column that differs by more than rounding, and how many do not."""
    equal, unequal = 0, []
    for (folder, aspect, column), printed in PRINTED.items():
        result = found.get(f"{folder} {aspect}")
        if result is None:
            continue
        own = result["columns"][column]
        for name, theirs in zip(("pearson", "spearman"), printed, strict=True):
            ours = own[name]["value"]
            if abs(ours - theirs) < 0.0006:
                equal += 1
            else:
                unequal.append(f"{folder} {aspect} {column} {name} {number(ours, 4)} for {number(theirs)}")
    text = f"{equal} of {equal + len(unequal)} printed coefficients are met to the last digit."
    return textwrap.wrap(text + (f" Not met: {'; '.join(unequal)}." if unequal else ""), 119)


def tie_lines(found: Result) -> list[str]:
    """What was tried for the one column that is not met."""
    own = found["CTX_Unref_Score"]
    rest = " and ".join(
        f"{number(found[name]['lowest'])} for the {number(printed)} of {name}"
        for name, printed in (("Eng_Score_MeanPooling", 0.448), ("Ruber_Unref_Score", 0.302))
    )
    text = (
        f"SciPy gives {number(own['scipy'], 4)} too. {own['zeros']} of the 600 values of this column are exactly 0, so "
        f"the figure hangs on how ties are ranked: on their lowest rank they give {number(own['lowest'], 4)}, as "
        f"printed. But that rule gives {rest}, which midranks meet, so the reason is not settled. We keep midranks."
    )
    return textwrap.wrap(text, 119)


def write(given: Given, found: dict[str, dict[str, Result]]) -> None:
    lines = [
        INTRODUCTION, "", "## Floors", "",
        "The rows of [floors.md](floors.md), which shows how the commands give them, with intervals. A metric must",
        "beat both columns to have shown anything.", "",
        *floor_lines(found["floors"]), "",
        "## Pairs", "", *pair_lines(found["pairs"]), PAIR_NOTES,
        "## Columns of the sources", "", *reasons(found["columns"]), *tie_lines(found["ties"]), COLUMN_NOTES,
        *column_lines(found["columns"]),
    ]  # fmt: skip
    publish(given, "published", lines)


def main() -> None:
    given = arguments(__doc__ or "", seeds=[SEED], without=("seeds", "encoder", "items", "page-only"))
    write(given, compute(given))


if __name__ == "__main__":
    main()
