"""Predicted and observed power: campaigns drawn from a set whose whole is taken as the truth."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from experiments.files import in_order, read_rows
from scipy import stats
from study import Result, Run, Tables, row

from evalapp.stats.agreement.components import Components, variance_components
from evalapp.stats.agreement.icc import icc
from evalapp.stats.agreement.normalise import aggregate_ratings, normalise_ratings
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.planning.designs import StudyDesign, plan
from evalapp.stats.planning.power import compute_power, design_effect
from evalapp.stats.resampling.bootstrap import Bootstrap

SEED, DRAWS = 13, 1000
ASPECTS = ("naturalness", "quality")
Z = float(stats.norm.ppf(0.975))
#: Fewer decisive judgements of a pair of systems do not give a truth to draw from.
ENOUGH = 60


def compute(run: Run) -> None:
    parts = {
        "preference": draw_preferences,
        "items": draw_items,
        "correlation": draw_correlations,
        "williams": draw_williams,
    }
    for place, (name, measure) in enumerate(parts.items()):
        run.once(name, SEED, lambda m=measure, p=place: m(run, np.random.default_rng([SEED, p])))
    for place, (name, aspect, pilot) in enumerate(list_designs(run)):
        design, rng = (name, aspect, pilot), np.random.default_rng([SEED, 100 + place])
        run.once(" | ".join(map(str, design)), SEED, lambda d=design, rng=rng: draw_designs(run, rng, *d))


def list_designs(run: Run) -> Iterator[tuple[str, str, int | None]]:
    for name in run.settings["designs"]:
        for pilot in (None, run.settings["pilot"]):
            yield (*name.split(" "), pilot)  # type: ignore[misc]


def list_decisive(run: Run, aspect: str) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """For every pair of systems: 1 where the first was preferred, 0 where the second; and the item of each."""
    found = defaultdict(list)
    for entry in read_rows(run.data / "e2e", "comparisons"):
        if entry["aspect"] == aspect and entry["verdict"] != "tie":
            first, second, verdict = in_order(entry)
            found[first, second].append((float(verdict == "a"), entry["item"]))
    return {
        pair: (np.array([won for won, _ in rows]), np.unique([item for _, item in rows], return_inverse=True)[1])
        for pair, rows in sorted(found.items())
        if len(rows) >= ENOUGH
    }


def draw_preferences(run: Run, rng: np.random.Generator) -> Result:
    """Single judgements, each drawn on its own."""
    rows = []
    for aspect in ASPECTS:
        for won, _ in list_decisive(run, aspect).values():
            share = float(won.mean())
            for n in (25, 50, 100, 200) if share not in (0.0, 0.5, 1.0) else ():
                drawn = won[rng.integers(0, len(won), (DRAWS, n))].mean(axis=1)
                observed = float((2 * np.abs(drawn - 0.5) * np.sqrt(n) > Z).mean())
                rows.append({"n": n, "predicted": compute_power("preference", share, n), "observed": observed})
    return {"rows": rows}


def draw_items(run: Run, rng: np.random.Generator) -> Result:
    """Whole items with all their judgements, which depend on each other."""
    rows, facts = [], {}
    for aspect in ASPECTS:
        pairs = list_decisive(run, aspect)
        rest = np.concatenate([won - won.mean() for won, _ in pairs.values()])
        unit = np.concatenate([item + 10_000 * place for place, (_, item) in enumerate(pairs.values())])
        rho = icc(rest, unit, np.arange(len(rest)), form="1", bootstrap=Bootstrap(resamples=0)).value
        for won, item in pairs.values():
            share = float(won.mean())
            sizes, wins = np.bincount(item), np.bincount(item, weights=won)
            for k in (15, 30, 60, 120) if share not in (0.0, 0.5, 1.0) else ():
                drawn = rng.integers(0, len(sizes), (DRAWS, k))
                n = sizes[drawn].sum(axis=1)
                strength = 2 * np.abs(wins[drawn].sum(axis=1) / n - 0.5) * np.sqrt(n)
                effect = design_effect(float((sizes**2).sum() / sizes.sum()), rho)
                usual = round(k * float(sizes.mean()))
                rows.append(
                    {
                        "n": usual,
                        "predicted": compute_power("preference", share, usual, design_effect=effect),
                        "observed": float((strength / np.sqrt(effect) > Z).mean()),
                        "naive": compute_power("preference", share, usual),
                    }
                )
        per_item = float(np.mean([len(won) / len(np.unique(item)) for won, item in pairs.values()]))
        facts[aspect] = {"rho": rho, "per_item": per_item}
    return {"rows": rows, "facts": facts}


def measure_outputs(run: Run) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Simple metrics of the outputs rated for both aspects, and the mean human rank by aspect."""
    folder = run.data / "e2e"
    references = {r["id"]: [text.lower().split() for text in r["references"]] for r in read_rows(folder, "items")}
    texts = {(r["item"], r["system"]): r["text"].lower().split() for r in read_rows(folder, "outputs")}
    human = {}
    for aspect in ASPECTS:
        rows = [entry for entry in read_rows(folder, "ratings") if entry["aspect"] == aspect]
        item = [entry["item"] for entry in rows]
        ranks = normalise_ratings([r["value"] for r in rows], item, [r["rater"] for r in rows], method="rank")
        means = aggregate_ratings(ranks, item, [entry["system"] for entry in rows])
        human[aspect] = dict(zip(zip(means.item, means.system, strict=True), means.mean, strict=True))
    outputs = sorted(set(human["naturalness"]) & set(human["quality"]))
    found = defaultdict(list)
    for item, system in outputs:
        words = texts[item, system]
        best = [measure_overlap(words, reference) for reference in references[item]]
        for place, name in enumerate(("precision", "recall", "F1")):
            found[name].append(max(scores[place] for scores in best))
        found["length"].append(len(words))
        found["letters per word"].append(np.mean([len(word) for word in words]))
    people = {aspect: np.array([by_output[key] for key in outputs]) for aspect, by_output in human.items()}
    return {name: np.array(values, dtype=float) for name, values in found.items()}, people


def measure_overlap(words: list[str], reference: list[str]) -> tuple[float, float, float]:
    common = sum((Counter(words) & Counter(reference)).values())
    precision, recall = common / max(len(words), 1), common / max(len(reference), 1)
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


def correlate_samples(data: np.ndarray) -> np.ndarray:
    """Pearson matrices (s, k, k) of samples (s, n, k)."""
    data = data - data.mean(axis=1, keepdims=True)
    data = data / np.sqrt((data**2).sum(axis=1, keepdims=True))
    return np.einsum("sni,snj->sij", data, data, optimize=True)


def draw_correlations(run: Run, rng: np.random.Generator) -> Result:
    rows = []
    metrics, people = measure_outputs(run)
    for aspect, name in itertools.product(ASPECTS, metrics):
        data = np.stack([metrics[name], people[aspect]], axis=1)
        r = float(np.corrcoef(data.T)[0, 1])
        for n in (25, 50, 100, 200, 400, 800):
            found = correlate_samples(data[rng.integers(0, len(data), (DRAWS, n))])[:, 0, 1]
            t = np.abs(found) * np.sqrt((n - 2) / (1 - found**2))
            observed = float((t > stats.t.ppf(0.975, n - 2)).mean())
            rows.append({"n": n, "predicted": compute_power("correlation", r, n), "observed": observed})
    return {"rows": rows, "outputs": len(people["quality"])}


def draw_williams(run: Run, rng: np.random.Generator) -> Result:
    rows = []
    metrics, people = measure_outputs(run)
    for aspect, (one, two) in itertools.product(ASPECTS, itertools.permutations(metrics, 2)):
        data = np.stack([people[aspect], metrics[one], metrics[two]], axis=1)
        r = np.corrcoef(data.T)
        if not r[0, 1] - r[0, 2] >= 0.03 or min(r[0, 1], r[0, 2]) < -0.1:
            continue
        effect = (float(r[0, 1]), float(r[0, 2]), float(r[1, 2]))
        for n in (100, 300, 1000):
            samples = [correlate_samples(data[rng.integers(0, len(data), (250, n))]) for _ in range(DRAWS // 250)]
            found = np.concatenate(samples)
            p = test_williams(found[:, 0, 1], found[:, 0, 2], found[:, 1, 2], n)
            predicted = compute_power("williams", effect, n)
            rows.append({"n": n, "predicted": predicted, "observed": float((p < 0.05).mean())})
    return {"rows": rows}


def test_williams(r12: np.ndarray, r13: np.ndarray, r23: np.ndarray, n: int) -> np.ndarray:
    """One-sided p of Williams' test (1959)."""
    k = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    below = 2 * (n - 1) / (n - 3) * k + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    return np.asarray(stats.t.sf((r12 - r13) * np.sqrt((n - 1) * (1 + r23) / below), n - 3))


def draw_designs(run: Run, rng: np.random.Generator, name: str, aspect: str, pilot: int | None) -> Result:
    """Rating designs for two systems, with the variance components of a pilot of so many items, or of all."""
    ratings = [r for r in read_rows(run.data / name, "ratings") if r["aspect"] == aspect and r["system"] != "Human"]
    item, rater, system = (np.array([entry[key] for entry in ratings]) for key in ("item", "rater", "system"))
    value = np.array([entry["value"] for entry in ratings], dtype=float)
    same = name == "e2e"
    if same:
        value = normalise_ratings(value, item, rater, method="rank")
    used = np.ones(len(value), dtype=bool)
    if pilot is not None:
        used = np.isin(item, rng.choice(np.unique(item), pilot, replace=False))
    components = variance_components(value[used], item[used], rater[used], system[used], intervals=False)
    by_output: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for i, s, who, v in zip(item.tolist(), system.tolist(), rater.tolist(), value.tolist(), strict=True):
        by_output[s, i][who] = v
    rows = []
    items = {s: {i for t, i in by_output if t == s} for s in sorted(set(system.tolist()))}
    for one, two in itertools.combinations(items, 2):
        a, b = pair_ratings(by_output, one, two, sorted(items[one] & items[two]), same)
        if len(a) >= 50 and a.mean() != b.mean():
            rows += [test_design(components, a, b, n, r, same, rng) for n in (25, 50, 100, 200) for r in (1, 3)]
    return {"rows": rows, "components": components.as_dict(), "pilot": pilot}


def test_design(
    components: Components, a: np.ndarray, b: np.ndarray, n: int, r: int, same: bool, rng: np.random.Generator
) -> Result:
    difference = float(a.mean() - b.mean())
    # The ranks of a row of five add up to a constant, so their differences vary 5/4 as much.
    tied = {part: Estimate.point(1.25 * components.variance(part), 1) for part in ("output", "residual")}
    asked, corrected = (
        plan(one, difference, simulations=0, design=StudyDesign(items=n, ratings=r, same_raters=same)).asked.power
        for one in (components, replace(components, **tied))
    )
    observed = draw_campaigns(a, b, n, r, same, rng)
    return {"n": n, "r": r, "predicted": asked, "observed": observed, "corrected": corrected if same else None}


def draw_campaigns(a: np.ndarray, b: np.ndarray, n: int, r: int, same: bool, rng: np.random.Generator) -> float:
    """Share of campaigns of n items and r ratings of each output whose paired t test finds a difference."""
    hits = 0
    for _ in range(4):
        rows = rng.integers(0, len(a), (DRAWS // 4, n, 1))
        chosen_a = rng.random((*rows.shape[:2], a.shape[1])).argsort(axis=2)[:, :, :r]
        chosen_b = chosen_a if same else rng.random(chosen_a.shape[:2] + (b.shape[1],)).argsort(axis=2)[:, :, :r]
        d = a[rows, chosen_a].mean(axis=2) - b[rows, chosen_b].mean(axis=2)
        spread = d.std(axis=1, ddof=1)
        t = np.abs(d.mean(axis=1)) * np.sqrt(n) / np.where(spread > 0, spread, np.inf)
        hits += int((t > stats.t.ppf(0.975, n - 1)).sum())
    return hits / DRAWS


def pair_ratings(
    by_output: dict[tuple[str, str], dict[str, float]], one: str, two: str, items: Sequence[str], same: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Three ratings of both outputs of every item that has them, by the same three raters if `same`."""
    a, b = [], []
    for item in items:
        x, y = by_output[one, item], by_output[two, item]
        raters = (sorted(set(x) & set(y)),) * 2 if same else (sorted(x), sorted(y))
        if min(len(raters[0]), len(raters[1])) >= 3:
            a.append([x[name] for name in raters[0][:3]])
            b.append([y[name] for name in raters[1][:3]])
    return np.array(a).reshape(-1, 3), np.array(b).reshape(-1, 3)


def tabulate(run: Run) -> Tables:
    """One row per kind of test: means over all settings."""
    names = {
        "preference": "single preferences",
        "items": "preferences, several per item",
        "correlation": "correlation",
        "williams": "Williams' test",
    }
    for part, label in names.items():
        for result in run.store.get(part, [SEED]):
            yield summarise(label, result["rows"], "predicted")
            if part == "items":
                yield summarise(f"{label}, taken as independent", result["rows"], "naive")
    for name, aspect, pilot in list_designs(run):
        for result in run.store.get(f"{name} | {aspect} | {pilot}", [SEED]):
            source = "whole set" if pilot is None else f"pilot of {pilot} items"
            yield summarise(f"ratings, {name} {aspect}, {source}", result["rows"], "predicted")
            if name == "e2e":
                yield summarise(f"ratings, {name} {aspect}, {source}, corrected", result["rows"], "corrected")


def summarise(label: str, rows: Sequence[Result], key: str) -> dict[str, Any]:
    predicted, observed = (np.array([entry[name] for entry in rows]) for name in (key, "observed"))
    gap = observed - predicted
    return row(
        "power", "test", label, settings=len(rows), predicted=predicted.mean(), observed=observed.mean(),
        difference=gap.mean(), distance=np.abs(gap).mean(),
    )  # fmt: skip
