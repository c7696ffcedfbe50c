"""Assisted means: coverage and width in simulated campaigns, and in samples of sets whose outputs were all judged."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from study import Result, Run, Tables, row

from evalapp.stats.assisted.means import AssistedOptions, estimate_means
from scoring.ml import fit, load
from scoring.ml.evaluators.ridge.features import Rows, build_features
from scoring.ml.evaluators.ridge.solve import fit_ratings
from scoring.ml.training.gold import collect_rated_outputs

SEED = 13
SYSTEMS = 4
#: Share of the variance that outputs of a simulated group have in common.
BETWEEN = 0.3
FEWEST_GROUPS = 10
FOLDS = 5


def compute(run: Run) -> None:
    if run.wants("simulation"):
        for place, setting in enumerate(list_settings(run)):
            rng = np.random.default_rng([SEED, place])
            run.once(f"simulation | {name_setting(setting)}", SEED, lambda s=setting, rng=rng: simulate(run, rng, *s))
    if run.wants("replay"):
        for place, spec in enumerate(run.settings["sets"]):
            rng = np.random.default_rng([SEED, 1000 + place])
            run.once(f"replay | {spec['set']}", SEED, lambda s=spec, rng=rng: replay(run, rng, s))


# ---- simulated campaigns ----------------------------------------------------------------------------------------


def list_settings(run: Run) -> list[tuple[int, int, float, int]]:
    """(n, N / n, correlation, outputs per group) of all settings in which enough groups are judged."""
    grid = itertools.product(*(run.settings[name] for name in ("n", "ratio", "rho", "size")))
    return [one for one in grid if one[3] == 1 or one[0] * one[1] >= FEWEST_GROUPS * one[3]]


def name_setting(setting: tuple[int, int, float, int]) -> str:
    n, ratio, rho, size = setting
    return f"n {n}, N {n * ratio}, rho {rho:g}, groups of {size}"


def simulate(run: Run, rng: np.random.Generator, n: int, ratio: int, rho: float, size: int) -> Result:
    """Share of intervals that contain the truth, and mean widths. Systems are independent, so each run has four."""
    total = n * ratio
    group = np.arange(total) // size
    system = np.repeat(np.arange(SYSTEMS), total)
    found = {key: [] for key in ("assisted", "human", "width", "human_width", "these", "these_width", "these_human")}
    for seed in range(8 if run.quick else run.settings["runs"] // SYSTEMS):
        score = draw_values(rng, group, size)
        rating = rho * score + np.sqrt(1 - rho**2) * draw_values(rng, group, size)
        is_judged = rng.permuted(np.tile(np.arange(total) < n, (SYSTEMS, 1)), axis=1)
        columns = (np.where(is_judged, rating, np.nan).ravel(), score.ravel(), np.tile(group, SYSTEMS), system)
        means = estimate_means(*columns, seed=seed)
        t = stats.t.ppf(0.975, means.n_groups - 1)
        half, human = t * np.sqrt(means.variance), t * np.sqrt(means.human_variance)
        found["assisted"] += (np.abs(means.value) <= half).tolist()
        found["human"] += (np.abs(means.human) <= human).tolist()
        found["width"] += half.tolist()
        found["human_width"] += human.tolist()
        these = estimate_means(*columns, options=AssistedOptions(target="these-items"), seed=seed)
        half, human = t * np.sqrt(these.variance), t * np.sqrt(these.human_variance)
        error = np.abs(these.value - rating.mean(axis=1))
        found["these"] += (error <= half * (1 + 1e-12) + 1e-12).tolist()
        found["these_width"] += half.tolist()
        found["these_human"] += human.tolist()
    return {key: float(np.mean(values)) for key, values in found.items()}


def draw_values(rng: np.random.Generator, group: np.ndarray, size: int) -> np.ndarray:
    """Normal values (systems, outputs) with variance 1, which correlate within groups."""
    shape = (SYSTEMS, len(group))
    if size == 1:
        return rng.normal(size=shape)
    shared = rng.normal(size=(SYSTEMS, int(group[-1]) + 1))[:, group]
    return np.sqrt(BETWEEN) * shared + np.sqrt(1 - BETWEEN) * rng.normal(size=shape)


# ---- samples of judged sets -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """Columns of the outputs of a set: mean rating, group and system, scores by evaluator (fixed for all samples), and
    the features of ridge, which is trained on every sample."""

    rating: np.ndarray
    group: np.ndarray
    system: np.ndarray
    scores: Mapping[str, np.ndarray]
    features: np.ndarray


def read_judged(run: Run, spec: Mapping[str, Any]) -> Judged:
    """The rated outputs. With several ratings per output one person's, drawn at random, is the evaluator "another
    person", and the mean of the others is the truth."""
    data = run.draw(run.read(spec["set"]), 40)
    if spec.get("items") and len(data.items) > spec["items"]:
        share = spec["items"] / len(data.items)
        data = data.split(seed=1, shares=(share, 1 - share))[0]
    rated = collect_rated_outputs(data, spec["aspect"])
    by_output = rated.values
    rng = np.random.default_rng(SEED)
    first = [int(rng.integers(len(values))) for values in by_output]
    several = all(len(values) > 1 for values in by_output)
    rating = np.array([np.delete(v, k).mean() if several else v.mean() for v, k in zip(by_output, first, strict=True)])
    records = rated.records
    scores = {name: np.asarray(load(name).score(records), dtype=float) for name in run.settings["evaluators"]
              if name not in spec.get("without", ())}  # fmt: skip
    if several:
        scores["another person"] = np.array([v[k] for v, k in zip(by_output, first, strict=True)])
    groups = [record.group or f"item:{record.item}" for record in records]
    systems = [record.system for record in records]
    # Outputs that an evaluator cannot score are left out.
    rows = np.all([np.isfinite(one) for one in scores.values()], axis=0)
    return Judged(
        rating[rows], np.unique(np.array(groups)[rows], return_inverse=True)[1],
        np.unique(np.array(systems)[rows], return_inverse=True)[1],
        {name: one[rows] for name, one in scores.items()}, make_features(run, data, spec, records)[rows],
    )  # fmt: skip


def make_features(run: Run, data: Any, spec: Mapping[str, Any], records: Any) -> np.ndarray:
    """The features of ridge (n, k), standardised. Its encoder is frozen, so one model has the vectors of all."""
    folder = run.folder("ridge", spec["set"])
    model: Any = fit("ridge", data, aspects=spec["aspect"], encoder=run.encoder, seed=SEED, folder=folder)
    rows = Rows(records)
    vectors = model.texts.vectors(model.texts.tokenize(rows.table.texts, rows.table.left).encodings)
    features = build_features(np.asarray(vectors, dtype=np.float64), rows, model.sides)
    features = np.where(np.isnan(features), np.nanmean(features, axis=0), features)
    spread = features.std(axis=0)
    return (features - features.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)


def replay(run: Run, rng: np.random.Generator, spec: Mapping[str, Any]) -> Result:
    """Samples of a share of each system's outputs, compared with the means of all outputs."""
    judged = read_judged(run, spec)
    truth = np.array([judged.rating[judged.system == k].mean() for k in range(judged.system.max() + 1)])
    centred = judged.rating - truth[judged.system]
    found: Result = {"outputs": len(judged.rating), "systems": len(truth), "groups": int(judged.group.max()) + 1}
    for name, score in judged.scores.items():
        inner = score - np.array([score[judged.system == k].mean() for k in range(len(truth))])[judged.system]
        found[f"rho {name}"] = float((inner * centred).mean() / (inner.std() * centred.std() + 1e-300))
    for share in run.settings["shares"]:
        for name in [*judged.scores, "ridge"]:
            draws = run.settings["ridge_draws" if name == "ridge" else "draws"]
            samples = [draw_sample(rng, judged.system, share) for _ in range(4 if run.quick else draws)]
            found[f"{name} {share:g}"] = compare(judged, samples, name, truth)
    return found


def draw_sample(rng: np.random.Generator, system: np.ndarray, share: float) -> np.ndarray:
    is_judged = np.zeros(len(system), dtype=bool)
    for k in range(system.max() + 1):
        rows = np.flatnonzero(system == k)
        is_judged[rng.choice(rows, max(round(share * len(rows)), 2), replace=False)] = True
    return is_judged


def compare(judged: Judged, samples: list[np.ndarray], name: str, truth: np.ndarray) -> Result:
    columns = []
    for seed, is_judged in enumerate(samples):
        score = judged.scores[name] if name in judged.scores else score_by_ridge(judged, is_judged, seed)
        human = np.where(is_judged, judged.rating, np.nan)
        alike = estimate_means(human, score, judged.group, judged.system, seed=seed)
        these = estimate_means(
            human, score, judged.group, judged.system, options=AssistedOptions(target="these-items"), seed=seed
        )
        t = stats.t.ppf(0.975, these.n_groups - 1)
        one: Result = {}
        for part, value, variance in (
            ("", alike.value, alike.variance), ("human_", alike.human, alike.human_variance)
        ):  # fmt: skip
            exact = these.human_variance if part else these.variance
            one |= {
                f"{part}width": np.sqrt(variance).sum(),
                f"{part}variance": variance.sum(),
                f"{part}error": ((value - truth) ** 2).sum(),
                f"{part}covered": (np.abs(value - truth) <= t * np.sqrt(exact)).mean(),
                f"{part}order": stats.kendalltau(value, truth).statistic,
            }
        columns.append(one | {"weight": alike.weight.mean()})
    return {"draws": len(samples), **{key: float(np.nanmean([one[key] for one in columns])) for key in columns[0]}}


def score_by_ridge(judged: Judged, is_judged: np.ndarray, seed: int) -> np.ndarray:
    """Ridge trained on the judged part, five folds of groups: each group is scored by the model without it."""
    fold = np.random.default_rng(seed).permutation(int(judged.group.max()) + 1)[judged.group] % FOLDS
    score = np.zeros(len(fold))
    for k in range(FOLDS):
        rows = is_judged & (fold != k)
        found = fit_ratings(judged.features[rows], judged.rating[rows], judged.group[rows].tolist())
        score[fold == k] = judged.features[fold == k] @ found.weights + found.bias
    return score


# ---- tables -----------------------------------------------------------------------------------------------------


def tabulate(run: Run) -> Tables:
    yield from tabulate_simulation(run)
    yield from tabulate_replay(run)


def tabulate_simulation(run: Run) -> Tables:
    """One row per correlation and size of groups: extremes over all n and N."""
    for rho, size in itertools.product(run.settings["rho"], run.settings["size"]):
        chosen = [one for one in list_settings(run) if one[2:] == (rho, size)]
        results = [
            (one[1], result) for one in chosen for result in run.store.get(f"simulation | {name_setting(one)}", [SEED])
        ]
        if not results:
            continue
        covered = [result["assisted"] for _, result in results]
        widths = [result["width"] / result["human_width"] for _, result in results]
        these = [result["these"] for _, result in results]
        cut = [result["these_width"] / result["these_human"] for ratio, result in results if ratio > 1]
        yield row(
            "simulation", "setting", f"correlation {rho:g}, groups of {size}", settings=len(results),
            lowest=min(covered), highest=max(covered), human=min(result["human"] for _, result in results),
            narrowest=min(widths), widest=max(widths), these_lowest=min(these), these_widest=max(cut),
        )  # fmt: skip


def tabulate_replay(run: Run) -> Tables:
    """One row per set and evaluator at the smaller share."""
    share = run.settings["shares"][0]
    for spec in run.settings["sets"]:
        for result in run.store.get(f"replay | {spec['set']}", [SEED]):
            for name in [*run.settings["evaluators"], "ridge", "another person"]:
                one = result.get(f"{name} {share:g}")
                if one is not None:
                    yield row(
                        "replay", "case", f"{spec['set']}, {name}", outputs=result["outputs"],
                        systems=result["systems"], rho=result.get(f"rho {name}"),
                        width=one["width"] / one["human_width"], needed=one["variance"] / one["human_variance"],
                        error=one["error"] / one["human_error"], covered=one["covered"],
                        human_covered=one["human_covered"], order=one["order"], human_order=one["human_order"],
                    )  # fmt: skip
