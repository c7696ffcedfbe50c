"""Assisted means in simulated campaigns: coverage and width of intervals, a weight per system or a common one, and
outputs chosen by predicted error."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import stats
from study import Result, Run, Tables, row

from evalapp.stats.assisted.choice import deal_parts, draw_outputs, predict_errors
from evalapp.stats.assisted.means import AssistedOptions, estimate_means

SEED = 13
SYSTEMS = 4
#: Share of the variance that outputs of a simulated group have in common.
BETWEEN = 0.3
FEWEST_GROUPS = 10
#: Correlation within the systems that an evaluator predicts well.
GOOD = 0.6
#: Batches in which chosen outputs are drawn.
BATCHES = 4
WAYS = ("uniform", "chosen")


def compute(run: Run) -> None:
    for place, setting in enumerate(list_settings(run)) if run.wants("simulation") else ():
        rng = np.random.default_rng([SEED, place])
        run.once(f"simulation | {name_setting(setting)}", SEED, lambda s=setting, rng=rng: simulate(run, rng, *s))
    for n, rho in list_sharings(run) if run.wants("weights") else ():
        run.once(f"weights | {name_sharing(n, rho)}", SEED, lambda n=n, rho=rho: compare_weights(run, n, rho))
    for setting in list_choices(run) if run.wants("choice") else ():
        run.once(f"choice | {name_choice(setting)}", SEED, lambda s=setting: compare_choice(run, *s))


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


def list_sharings(run: Run) -> list[tuple[int, float]]:
    """(n, correlation within the last two systems) of the settings that compare weights."""
    return list(itertools.product(run.settings["weights_n"], run.settings["weights_rho"]))


def name_sharing(n: int, rho: float) -> str:
    return f"n {n}, N {10 * n}, rho {GOOD:g} in two systems and {rho:g} in two"


def compare_weights(run: Run, n: int, rho: float) -> Result:
    """Mean widths relative to judgements only with a common weight and with one per system: in the two systems that the
    evaluator predicts well, and in the other two, with a correlation of `rho`."""
    total = 10 * n
    correlation = np.array([GOOD, GOOD, rho, rho])[:, None]
    system, group = np.repeat(np.arange(SYSTEMS), total), np.tile(np.arange(total), SYSTEMS)
    widths: dict[str, list[np.ndarray]] = {"common": [], "system": []}
    human = []
    for seed in range(8 if run.quick else run.settings["weights_runs"]):
        rng = np.random.default_rng([SEED, n, seed])
        score = rng.normal(size=(SYSTEMS, total))
        rating = correlation * score + np.sqrt(1 - correlation**2) * rng.normal(size=score.shape)
        is_judged = rng.permuted(np.tile(np.arange(total) < n, (SYSTEMS, 1)), axis=1)
        columns = (np.where(is_judged, rating, np.nan).ravel(), score.ravel(), group, system)
        for sharing, found in widths.items():
            means = estimate_means(*columns, options=AssistedOptions(sharing=sharing), seed=seed)
            found.append(np.sqrt(means.variance))
        human.append(np.sqrt(means.human_variance))
    parts = {"good": slice(0, 2), "other": slice(2, 4)}
    return {
        f"{sharing}_{name}": float(np.mean(found, axis=0)[part].mean() / np.mean(human, axis=0)[part].mean())
        for sharing, found in widths.items()
        for name, part in parts.items()
    }


def list_choices(run: Run) -> list[tuple[int, float, int]]:
    """(n, spread of the errors, outputs per group) of the settings that compare chosen with uniform sampling."""
    return list(itertools.product(*(run.settings[f"choice_{name}"] for name in ("n", "spread", "size"))))


def name_choice(setting: tuple[int, float, int]) -> str:
    n, spread, size = setting
    return f"n {n}, N {10 * n}, spread of errors {spread:g}, groups of {size}"


def compare_choice(run: Run, n: int, spread: float, size: int) -> Result:
    """Coverage, width and root mean squared error with outputs drawn uniformly and by predicted error, in the same
    campaigns. The error of an output has a standard deviation of exp(spread z), with z a known feature."""
    total = 10 * n
    group, system = np.tile(np.arange(total) // size, SYSTEMS), np.repeat(np.arange(SYSTEMS), total)
    found: dict[str, list[list[float]]] = {f"{way}_{key}": [] for way in WAYS for key in ("covered", "width", "error")}
    for seed in range(8 if run.quick else run.settings["runs"] // SYSTEMS):
        rng = np.random.default_rng([SEED, n, size, seed])
        score, noise = draw_values(rng, group[:total], size).ravel(), draw_values(rng, group[:total], size).ravel()
        feature = rng.normal(size=SYSTEMS * total)
        rating = GOOD * score + np.sqrt(1 - GOOD**2) * np.exp(spread * feature - spread**2) * noise
        for way in WAYS:
            human, chance = np.full((2, SYSTEMS * total), np.nan)
            part = deal_parts(system, BATCHES, seed)
            for batch in range(BATCHES):
                error = np.ones(len(system))
                if way == "chosen":
                    error = predict_errors(human, score, feature, group, system, seed=seed)
                drawn = draw_outputs(
                    error, system, n=n * SYSTEMS // BATCHES, candidate=part == batch, seed=BATCHES * seed + batch
                )
                human[drawn.rows], chance[drawn.rows] = rating[drawn.rows], drawn.chance
            means = estimate_means(
                human, score, group, system, seed=seed, chance=chance if way == "chosen" else None
            )  # fmt: skip
            half = stats.t.ppf(0.975, means.n_groups - 1) * np.sqrt(means.variance)
            found[f"{way}_covered"].append((np.abs(means.value) <= half).tolist())
            found[f"{way}_width"].append(half.tolist())
            found[f"{way}_error"].append((means.value**2).tolist())
    result = {name: float(np.mean(values)) for name, values in found.items()}
    return result | {name: float(np.sqrt(result[name])) for name in result if name.endswith("_error")}


def draw_values(rng: np.random.Generator, group: np.ndarray, size: int) -> np.ndarray:
    """Normal values (systems, outputs) with variance 1, which correlate within groups."""
    shape = (SYSTEMS, len(group))
    if size == 1:
        return rng.normal(size=shape)
    shared = rng.normal(size=(SYSTEMS, int(group[-1]) + 1))[:, group]
    return np.sqrt(BETWEEN) * shared + np.sqrt(1 - BETWEEN) * rng.normal(size=shape)


def tabulate(run: Run) -> Tables:
    """One row per correlation and size of groups with extremes over all n and N; one per other setting."""
    for n, rho in list_sharings(run):
        for result in run.store.get(f"weights | {name_sharing(n, rho)}", [SEED]):
            figures = {name: result[name] for name in ("common_good", "system_good", "common_other", "system_other")}
            yield row("weights", "setting", f"{n} of {10 * n}, correlation {rho:g}", **figures)
    for setting in list_choices(run):
        for result in run.store.get(f"choice | {name_choice(setting)}", [SEED]):
            ratio = result["chosen_width"] / result["uniform_width"]
            label = f"{setting[0]} of {10 * setting[0]}, spread {setting[1]:g}, groups of {setting[2]}"
            yield row(
                "choice", "setting", label, uniform=result["uniform_covered"], chosen=result["chosen_covered"],
                width=ratio, saved=1 - ratio**2, error=result["chosen_error"] / result["uniform_error"],
            )  # fmt: skip
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
