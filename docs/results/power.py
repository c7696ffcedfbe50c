"""Is the power that the calculator predicts the power one has? Subsamples of e2e, and of dstc7_dev for rating designs.

The whole set is taken for the truth: its share of preferences, its correlation, its difference of means. From it many
small campaigns are drawn, each is tested as one would test it, and the share that finds the effect is set beside the
prediction of `power_of` or `plan`.
"""

from __future__ import annotations

import collections
import gzip
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from store import Given, Result, arguments, number, publish, store_of, table

from evalapp.stats.agreement.components import variance_components
from evalapp.stats.agreement.icc import icc
from evalapp.stats.agreement.normalise import aggregate_ratings, normalise_ratings
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.planning.designs import StudyDesign, plan
from evalapp.stats.planning.power import design_effect, power_of
from evalapp.stats.resampling.bootstrap import Bootstrap

SEED = 13
RESAMPLES = 1000
ASPECTS = ("naturalness", "quality")
BINS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
Z = float(stats.norm.ppf(0.975))
#: Decisive judgements of a pair of systems below which its share is no truth to draw from.
ENOUGH = 60

INTRODUCTION = f"""# Predicted and observed power

Is the power that `power_of` and `plan` predict the power one has? The whole set is taken for the truth;
from it {RESAMPLES:,} small campaigns are drawn with replacement for each setting, each is tested at .05 as one would
test it, and the share that finds the effect is set beside the prediction. Seed {SEED}.

```
python docs/results/power.py --data FOLDER_OF_SETS --out FOLDER
```"""


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    path = next(folder.glob(f"{name}.jsonl*"))
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def decisive(rows: list[dict[str, Any]], aspect: str) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """For every pair of systems: 1 where the first was preferred, 0 where the second; and the item of each."""
    found = collections.defaultdict(list)
    for row in rows:
        if row["aspect"] == aspect and row["verdict"] != "tie":
            first, second = sorted((row["system_a"], row["system_b"]))
            won = (row["verdict"] == "a") == (row["system_a"] == first)
            found[first, second].append((float(won), row["item"]))
    return {
        pair: (
            np.array([won for won, _ in verdicts]),
            np.unique([item for _, item in verdicts], return_inverse=True)[1],
        )
        for pair, verdicts in sorted(found.items())
        if len(verdicts) >= ENOUGH
    }


def setting_row(predicted: float, observed: float, **more: Any) -> dict[str, Any]:
    return {"predicted": predicted, "observed": observed, **more}


def preferences(given: Given, rng: np.random.Generator) -> Result:
    """Single judgements, each drawn by itself."""
    rows = []
    comparisons = read(given.data / "e2e", "comparisons")
    for aspect in ASPECTS:
        for pair, (won, _) in decisive(comparisons, aspect).items():
            share = float(won.mean())
            if share in (0.0, 0.5, 1.0):
                continue
            for n in (25, 50, 100, 200):
                drawn = won[rng.integers(0, len(won), (RESAMPLES, n))].mean(axis=1)
                observed = float((2 * np.abs(drawn - 0.5) * np.sqrt(n) > Z).mean())
                predicted = power_of("preference", share, n)
                rows.append(setting_row(predicted, observed, n=n, share=share, pair="-".join(pair), aspect=aspect))
    return {"rows": rows}


def whole_items(given: Given, rng: np.random.Generator) -> Result:
    """Items with all the judgements people gave on them; these depend on each other."""
    rows, facts = [], {}
    comparisons = read(given.data / "e2e", "comparisons")
    for aspect in ASPECTS:
        pairs = decisive(comparisons, aspect)
        rest = np.concatenate([won - won.mean() for won, _ in pairs.values()])
        unit = np.concatenate([item + 10_000 * place for place, (_, item) in enumerate(pairs.values())])
        rho = icc(rest, unit, np.arange(len(rest)), form="1", bootstrap=Bootstrap(resamples=0)).value
        for won, item in pairs.values():
            share = float(won.mean())
            if share in (0.0, 0.5, 1.0):
                continue
            sizes = np.bincount(item)
            wins = np.bincount(item, weights=won)
            for k in (15, 30, 60, 120):
                drawn = rng.integers(0, len(sizes), (RESAMPLES, k))
                n = sizes[drawn].sum(axis=1)
                strength = 2 * np.abs(wins[drawn].sum(axis=1) / n - 0.5) * np.sqrt(n)
                effect = design_effect(float((sizes**2).sum() / sizes.sum()), rho)
                usual = round(k * float(sizes.mean()))
                rows.append(
                    setting_row(
                        power_of("preference", share, usual, design_effect=effect),
                        float((strength / np.sqrt(effect) > Z).mean()),
                        naive=power_of("preference", share, usual), n=usual, aspect=aspect,
                    )
                )  # fmt: skip
        facts[aspect] = {
            "rho": rho,
            "per_item": float(np.mean([len(w) / len(np.unique(i)) for w, i in pairs.values()])),
        }
    return {"rows": rows, "facts": facts}


def tokens(text: str) -> list[str]:
    return text.lower().split()


def measures(given: Given) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Metrics of the outputs rated for both aspects, and people's mean rank within rows for each aspect."""
    references = {row["id"]: [tokens(text) for text in row["references"]] for row in read(given.data / "e2e", "items")}
    texts = {(row["item"], row["system"]): tokens(row["text"]) for row in read(given.data / "e2e", "outputs")}
    ratings = read(given.data / "e2e", "ratings")
    human = {}
    for aspect in ASPECTS:
        rows = [row for row in ratings if row["aspect"] == aspect]
        item = [row["item"] for row in rows]
        ranks = normalise_ratings([row["value"] for row in rows], item, [row["rater"] for row in rows], method="rank")
        means = aggregate_ratings(ranks, item, [row["system"] for row in rows])
        human[aspect] = dict(zip(zip(means.item, means.system, strict=True), means.mean, strict=True))
    outputs = sorted(set(human["naturalness"]) & set(human["quality"]))
    found = collections.defaultdict(list)
    for item, system in outputs:
        words = texts[item, system]
        best = [overlap(words, reference) for reference in references[item]]
        for place, name in enumerate(("precision", "recall", "F1")):
            found[name].append(max(scores[place] for scores in best))
        found["length"].append(len(words))
        found["letters per word"].append(np.mean([len(word) for word in words]))
    people = {aspect: np.array([by_output[key] for key in outputs]) for aspect, by_output in human.items()}
    return {name: np.array(values, dtype=float) for name, values in found.items()}, people


def overlap(words: list[str], reference: list[str]) -> tuple[float, float, float]:
    common = sum((collections.Counter(words) & collections.Counter(reference)).values())
    precision, recall = common / max(len(words), 1), common / max(len(reference), 1)
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


def correlations_of(data: np.ndarray) -> np.ndarray:
    """Pearson matrices (s, k, k) of samples (s, n, k)."""
    data = data - data.mean(axis=1, keepdims=True)
    data = data / np.sqrt((data**2).sum(axis=1, keepdims=True))
    return np.einsum("sni,snj->sij", data, data, optimize=True)


def correlation(given: Given, rng: np.random.Generator) -> Result:
    rows = []
    metrics, people = measures(given)
    for aspect, name in itertools.product(ASPECTS, metrics):
        data = np.stack([metrics[name], people[aspect]], axis=1)
        r = float(np.corrcoef(data.T)[0, 1])
        for n in (25, 50, 100, 200, 400, 800):
            found = correlations_of(data[rng.integers(0, len(data), (RESAMPLES, n))])[:, 0, 1]
            t = np.abs(found) * np.sqrt((n - 2) / (1 - found**2))
            observed = float((t > stats.t.ppf(0.975, n - 2)).mean())
            rows.append(setting_row(power_of("correlation", r, n), observed, n=n, r=r, name=f"{name}, {aspect}"))
    return {"rows": rows, "outputs": len(people["quality"])}


def williams_test(given: Given, rng: np.random.Generator) -> Result:
    rows = []
    metrics, people = measures(given)
    for aspect, (one, two) in itertools.product(ASPECTS, itertools.permutations(metrics, 2)):
        data = np.stack([people[aspect], metrics[one], metrics[two]], axis=1)
        r = np.corrcoef(data.T)
        if not r[0, 1] - r[0, 2] >= 0.03 or min(r[0, 1], r[0, 2]) < -0.1:
            continue
        effect = (float(r[0, 1]), float(r[0, 2]), float(r[1, 2]))
        for n in (100, 300, 1000):
            found = np.concatenate(
                [correlations_of(data[rng.integers(0, len(data), (250, n))]) for _ in range(RESAMPLES // 250)]
            )
            p = williams_p(found[:, 0, 1], found[:, 0, 2], found[:, 1, 2], n)
            name = f"{one} over {two}, {aspect}"
            rows.append(
                setting_row(power_of("williams", effect, n), float((p < 0.05).mean()), n=n, effect=effect, name=name)
            )
    return {"rows": rows}


def williams_p(r12: np.ndarray, r13: np.ndarray, r23: np.ndarray, n: int) -> np.ndarray:
    k = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    below = 2 * (n - 1) / (n - 3) * k + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    return np.asarray(stats.t.sf((r12 - r13) * np.sqrt((n - 1) * (1 + r23) / below), n - 3))


def campaigns(a: np.ndarray, b: np.ndarray, n: int, r: int, same: bool, rng: np.random.Generator) -> float:
    """Share of campaigns of n items with r of the ratings of each output whose paired t test finds a difference."""
    hits = 0
    for _ in range(4):
        rows = rng.integers(0, len(a), (RESAMPLES // 4, n, 1))
        of_a = rng.random((*rows.shape[:2], a.shape[1])).argsort(axis=2)[:, :, :r]
        of_b = of_a if same else rng.random(of_a.shape[:2] + (b.shape[1],)).argsort(axis=2)[:, :, :r]
        d = a[rows, of_a].mean(axis=2) - b[rows, of_b].mean(axis=2)
        spread = d.std(axis=1, ddof=1)
        t = np.abs(d.mean(axis=1)) * np.sqrt(n) / np.where(spread > 0, spread, np.inf)
        hits += int((t > stats.t.ppf(0.975, n - 1)).sum())
    return hits / RESAMPLES


def designs(given: Given, rng: np.random.Generator, name: str, aspect: str, pilot: int | None) -> Result:
    """Rating designs: systems two by two, with the components of a pilot of so many items, or of all."""
    ratings = [row for row in read(given.data / name, "ratings") if row["aspect"] == aspect]
    ratings = [row for row in ratings if row["system"] != "Human"]
    item, rater = np.array([row["item"] for row in ratings]), np.array([row["rater"] for row in ratings])
    system = np.array([row["system"] for row in ratings])
    value = np.array([row["value"] for row in ratings], dtype=float)
    same = name == "e2e"
    if same:
        value = normalise_ratings(value, item, rater, method="rank")
    kept = np.ones(len(value), dtype=bool)
    if pilot is not None:
        kept = np.isin(item, rng.choice(np.unique(item), pilot, replace=False))
    components = variance_components(value[kept], item[kept], rater[kept], system[kept], intervals=False)
    # The ranks of a row of five add up to a constant.
    tied = {part: Estimate.point(1.25 * components.variance(part), 1) for part in ("output", "residual")}
    in_rows = replace(components, **tied)
    by_output: dict[tuple[str, str], dict[str, float]] = collections.defaultdict(dict)
    for i, s, w, v in zip(item.tolist(), system.tolist(), rater.tolist(), value.tolist(), strict=True):
        by_output[s, i][w] = v
    rows = []
    items_of = {s: {i for t, i in by_output if t == s} for s in sorted(set(system.tolist()))}
    for one, two in itertools.combinations(items_of, 2):
        a, b = paired(by_output, one, two, sorted(items_of[one] & items_of[two]), same)
        if len(a) < 50 or a.mean() == b.mean():
            continue
        difference = float(a.mean() - b.mean())
        for n, r in itertools.product((25, 50, 100, 200), (1, 3)):
            asked = plan(
                components, difference, simulations=0, design=StudyDesign(items=n, ratings=r, same_raters=same)
            ).asked
            corrected = plan(
                in_rows, difference, simulations=0, design=StudyDesign(items=n, ratings=r, same_raters=same)
            ).asked.power
            rows.append(
                setting_row(
                    asked.power, campaigns(a, b, n, r, same, rng), n=n, r=r, corrected=corrected if same else None
                )
            )
    return {"rows": rows, "components": components.as_dict(), "pilot": pilot}


def paired(
    by_output: dict[tuple[str, str], dict[str, float]], one: str, two: str, items: Sequence[str], same: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Three ratings of both outputs of every item that has them, by the same three people where `same`."""
    a, b = [], []
    for item in items:
        x, y = by_output[one, item], by_output[two, item]
        who = (sorted(set(x) & set(y)),) * 2 if same else (sorted(x), sorted(y))
        if min(len(who[0]), len(who[1])) >= 3:
            a.append([x[w] for w in who[0][:3]])
            b.append([y[w] for w in who[1][:3]])
    return np.array(a).reshape(-1, 3), np.array(b).reshape(-1, 3)


def binned(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Predicted beside observed power, in bins of the prediction."""
    body = []
    predicted = np.array([row["predicted"] for row in rows])
    observed = np.array([row["observed"] for row in rows])
    for low, high in itertools.pairwise(BINS):
        chosen = (predicted >= low) & ((predicted < high) | (high == 1.0))
        if chosen.any():
            p, o = predicted[chosen], observed[chosen]
            figures = (p.mean(), o.mean(), (o - p).mean(), np.abs(o - p).mean())
            body.append([f"{low:g} to {high:g}", f"{chosen.sum():,}", *map(number, figures)])
    gap = observed - predicted
    figures = (predicted.mean(), observed.mean(), gap.mean(), np.abs(gap).mean())
    body.append(["all", f"{len(rows):,}", *map(number, figures)])
    return table(["predicted", "settings", "mean predicted", "mean observed", "difference", "mean distance"], body)


def by_n(rows: Sequence[dict[str, Any]], first: str) -> list[str]:
    """One line a name, predicted / observed for every n."""
    sizes = sorted({row["n"] for row in rows})
    body = []
    for name, group in itertools.groupby(rows, key=lambda row: row["name"]):
        found = {row["n"]: row for row in group}
        effect = next(iter(found.values()))
        said = number(effect["r"]) if "r" in effect else ", ".join(map(number, effect["effect"]))
        cells = [f"{number(found[n]['predicted'], 2)} / {number(found[n]['observed'], 2)}" for n in sizes]
        body.append([name, said, *cells])
    return table([first, "truth", *(f"n = {n}" for n in sizes)], body)


PARTS = {
    "preference": preferences,
    "items": whole_items,
    "correlation": correlation,
    "williams": williams_test,
}
DESIGNS = [
    (name, aspect, pilot)
    for name, aspect in (("dstc7_dev", "relevance"), ("dstc7_dev", "informativeness"), ("e2e", "quality"))
    for pilot in (None, 50)
]


def compute(given: Given) -> dict[str, Result]:
    kept = store_of(given, "power")
    found = {}
    for place, (name, work) in enumerate(PARTS.items()):
        if not given.page_only:
            kept.once(name, SEED, lambda w=work, p=place: w(given, np.random.default_rng([SEED, p])))
        if (name, SEED) in kept.rows:
            found[name] = kept.rows[name, SEED]
    for place, design in enumerate(DESIGNS):
        setting = " | ".join(map(str, design))
        if not given.page_only:
            kept.once(
                setting, SEED, lambda d=design, p=place: designs(given, np.random.default_rng([SEED, 100 + p]), *d)
            )
        if (setting, SEED) in kept.rows:
            found[setting] = kept.rows[setting, SEED]
    return found


def design_lines(found: dict[str, Result]) -> list[str]:
    lines: list[str] = []
    for name, aspect, pilot in DESIGNS:
        result = found.get(f"{name} | {aspect} | {pilot}")
        if result is None:
            continue
        shares = result["components"]["shares"]
        said = ", ".join(f"{part} {number(share, 2)}" for part, share in shares.items())
        source = "the whole set" if pilot is None else f"a pilot of {pilot} items"
        lines += ["", f"**{name} {aspect}**, components from {source}: {said}.", "", *binned(result["rows"])]
        if name == "e2e":
            rows = [{**row, "predicted": row["corrected"]} for row in result["rows"]]
            lines += ["", "The same with differences that vary 5/4 as much:", "", *binned(rows)]
    return lines


def write(given: Given, found: dict[str, Result]) -> None:
    lines = [INTRODUCTION]
    if "preference" in found:
        lines += [
            "", "## Preferences", "",
            f"e2e, every pair of systems with {ENOUGH} decisive judgements or more, both aspects; 25, 50, 100 and 200",
            "single judgements. Truth: the pair's share of preferences. Test: two-sided against one half.", "",
            *binned(found["preference"]["rows"]),
        ]  # fmt: skip
    if "items" in found:
        rows, facts = found["items"]["rows"], found["items"]["facts"]
        said = "; ".join(
            f"{aspect}: {number(fact['per_item'], 1)} decisive ones an item, correlated by {number(fact['rho'], 2)}"
            for aspect, fact in facts.items()
        )
        naive = [{**row, "predicted": row["naive"]} for row in rows]
        lines += [
            "", "## Preferences, several judgements an item", "",
            "15, 30, 60 and 120 whole items with all their judgements. Those of one item agree with each other more",
            f"than with those of other items ({said}),",
            "so the test and the prediction take the design effect.", "",
            *binned(rows), "", "The same campaigns beside a prediction that takes every judgement for independent:", "",
            *binned(naive),
        ]  # fmt: skip
    if "correlation" in found:
        lines += [
            "", "## Correlation", "",
            f"e2e, {found['correlation']['outputs']:,} outputs rated for both aspects; simple metrics with people's",
            "mean rank within a row. Predicted / observed power of the two-sided test against 0.", "",
            *by_n(found["correlation"]["rows"], "metric, aspect"),
        ]  # fmt: skip
    if "williams" in found:
        lines += [
            "", "## Williams' test", "",
            "Whether the first metric correlates with people more than the second, one-sided; truth: r12, r13, r23.",
            "Predicted / observed.", "",
            *by_n(found["williams"]["rows"], "metrics, aspect"), "", *binned(found["williams"]["rows"]),
        ]  # fmt: skip
    lines += [
        "", "## Rating designs", "",
        "`plan` with the variance components of the whole set (at most 500 items of it), and of a pilot of 50 items:",
        "two systems on the same 25, 50, 100 or 200 items, 1 or 3 ratings an output, paired t test over items.",
        "dstc7_dev: different judges; e2e: ranks within a row, the same people judge both outputs. Truth: the",
        "difference of the two systems' means over the items.",
        *design_lines(found),
        "", "One set of components serves all pairs of a set, although some systems vary more than others: hence the",
        "distance of single settings; the mean of many pairs is what to look at. Ranks are where the model is wrong:",
        "the five ranks of a row add up to a constant, so the chance parts of two of them are correlated by -1/4 and",
        "their difference varies 5/4 as much as the model of independent ratings says. With that factor the prediction",
        "for e2e is what the last table of each kind shows. Ratings on a scale of their own need no such thing.",
    ]  # fmt: skip
    publish(given, "power", lines)


def main() -> None:
    given = arguments(__doc__ or "", seeds=[SEED], without=("seeds", "encoder", "items", "quick"))
    write(given, compute(given))


if __name__ == "__main__":
    main()
