"""ridge on frozen vectors beside trivial baselines and trained evaluators, on held-out groups of rated sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from store import read_lines
from study import FOLDER, Result, Run, Tables, forget, plain, row, share_vectors

from evalapp.stats.core.multiple_tests import holm
from evalapp.stats.correlation.coefficients import Coefficient
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, Grouping, resample_correlation
from evalapp.stats.resampling.bootstrap import Bootstrap, percentile_interval
from scoring.ml import Dataset, Record, cross_fit, load
from scoring.ml.encoders.kept import cached_vectors
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ridge.features import Rows, build_features, measure_columns
from scoring.ml.evaluators.ridge.solve import fit_ratings
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.registry import get_entry
from scoring.ml.training.gold import collect_rated_outputs, output_key
from scoring.ml.training.record import record_groups

Floats = npt.NDArray[np.float64]
RIDGE, FOLDS, RESAMPLES = "ridge", 5, 2000
#: The evaluator that is also trained with a larger encoder.
LARGER = "shared-bert"
#: What is measured of each evaluator: name -> coefficient and grouping.
MEASURES: Mapping[str, tuple[Coefficient, Grouping]] = {
    "pearson": ("pearson", "none"),
    "spearman": ("spearman", "none"),
    "within": ("spearman", "system"),
}


@dataclass(frozen=True)
class RatedSet:
    """A rated set without the systems left out."""

    run: Run
    name: str
    entry: Mapping[str, Any]

    @cached_property
    def data(self) -> Dataset:
        data, without = self.run.read(self.entry.get("folder", self.name)), self.entry.get("without", ())
        rated = {(one.item, one.system) for one in data.ratings}
        outputs = tuple(one for one in data.outputs if one.system not in without and (one.item, one.system) in rated)
        ratings = tuple(one for one in data.ratings if one.system not in without)
        return self.run.draw(replace(data, outputs=outputs, ratings=ratings, comparisons=()), 40)

    @cached_property
    def records(self) -> list[Record]:
        return self.data.outputs_with_context()

    @cached_property
    def places(self) -> dict[Any, int]:
        return {output_key(record): place for place, record in enumerate(self.records)}

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.records)

    @cached_property
    def vectors(self) -> Floats:
        """(texts, width) vectors of all texts, computed once."""
        encoder = UtteranceEncoder(find_encoder(self.run.encoder))
        encodings = encoder.tokenize(self.rows.table.texts, self.rows.table.left).encodings
        folder = self.run.folder("vectors", self.name)
        vectors = cached_vectors(encoder, encodings, folder, "fp32", lambda done, total: None)
        return np.asarray(vectors, dtype=np.float64)

    @property
    def sides(self) -> tuple[str, ...]:
        """The kinds of texts whose features there are."""
        return self.rows.list_sides()

    @cached_property
    def features(self) -> Floats:
        """(n, k) features of `ridge`."""
        return build_features(self.vectors, self.rows, self.sides)

    @cached_property
    def cosines(self) -> dict[str, Floats]:
        """The cosine with each kind of text that all outputs have; of references the nearest."""
        sides, found = self.sides, {}
        width = (self.features.shape[1] - 2 - sum(2 if side == "references" else 1 for side in sides)) // (
            1 + len(sides)
        )
        place = width
        for side in sides:
            column = self.features[:, place + width]
            if not np.isnan(column).any():
                found[f"cosine with {side}"] = column
            place += width + (2 if side == "references" else 1)
        return found

    def number_folds(self, seed: int) -> dict[str, int]:
        """The fold of each item: whole groups, drawn by `seed` as in `cross_fit`."""
        parts = self.data.split(seed=seed, shares=(1.0,) * FOLDS)
        return {item.id: number for number, part in enumerate(parts) for item in part.items}


class Judged:
    """The rated outputs of an aspect, and figures of scores with intervals over groups of items."""

    def __init__(self, rated_set: RatedSet, aspect: str) -> None:
        found = collect_rated_outputs(rated_set.data, aspect, rated_set.entry.get("ratings", "raw"))
        self.set = rated_set
        self.records, self.means = found.records, found.means()
        self.rows = np.array([rated_set.places[output_key(record)] for record in found.records])
        self.items = np.array([record.item for record in found.records], dtype=object)
        self.systems = np.array([record.system for record in found.records], dtype=object)
        self.groups = np.array(record_groups(found.records), dtype=object)

    def predict(self, seed: int) -> Floats:
        """(n,) scores of `ridge`, each from the other folds' groups."""
        folds = self.set.number_folds(seed)
        fold = np.array([folds[str(item)] for item in self.items])
        scores = np.empty(len(self.rows))
        for number in range(FOLDS):
            scores[fold == number] = self.fit_rows(fold != number)[self.rows[fold == number]]
        return scores

    def fit_rows(self, learned: npt.NDArray[np.bool_]) -> Floats:
        """Scores of all outputs of the set by `ridge`, fitted to the ratings of the `learned` rows."""
        features = self.set.features[self.rows[learned]]
        mean, spread = measure_columns(features)
        standard = np.nan_to_num((features - mean) / spread, nan=0.0)
        found = fit_ratings(standard, self.means[learned], self.groups[learned].tolist())
        every = np.nan_to_num((self.set.features - mean) / spread, nan=0.0)
        return np.asarray(every @ found.weights + found.bias)

    def resample(self, scores: Sequence[Floats], measure: str, known: npt.NDArray[np.bool_]) -> tuple[float, Floats]:
        """The coefficient over the `known` rows, mean over seeds, and its (resamples,) replicates, which are paired
        between evaluators."""
        coefficient, grouping = MEASURES[measure]
        settings = CorrelationSettings(coefficients=(coefficient,), grouping=grouping)
        bootstrap = Bootstrap(cluster=self.groups[known], resamples=RESAMPLES, seed=13)
        points, draws = [], []
        for values in scores:
            point, drawn, _units = resample_correlation(
                values[known], self.means[known], self.items[known], self.systems[known],
                settings=settings, bootstrap=bootstrap,
            )  # fmt: skip
            points.append(np.nan if point.value is None else point.value)
            draws.append(drawn)
        return float(np.mean(points)), np.mean(draws, axis=0)

    @cached_property
    def length(self) -> Floats:
        """(n,) lengths of the outputs."""
        return load("length").score(self.records)

    def measure(self, scores: Sequence[Floats], ridge: Sequence[Floats] | None) -> Result:
        """Each measure with its interval, and its difference from `ridge` and from length over the outputs that are
        scored."""
        known = np.isfinite(np.array(scores)).all(axis=0)
        found: Result = {"n": int(known.sum()), "groups": len(set(self.groups[known])), "seeds": len(scores)}
        for measure in MEASURES:
            value, draws = self.resample(scores, measure, known)
            found[measure] = with_draws(value, draws)
            for rival, rivals in (("ridge", ridge), ("length", [self.length])):
                if rivals is not None:
                    other, other_draws = self.resample(rivals, measure, known)
                    found[f"{measure} above {rival}"] = with_draws(value - other, draws - other_draws, test=True)
        return found


def with_draws(value: float, draws: Floats, test: bool = False) -> Result:
    """The value with its interval and, as a `test` of a difference, the share of resamples on the other side of 0,
    doubled."""
    low, high = percentile_interval(draws)
    found: Result = {"value": value, "low": low, "high": high}
    if test:
        defined = draws[~np.isnan(draws)]
        smaller = min(int((defined <= 0).sum()), int((defined >= 0).sum()))
        found["p"] = min(1.0, 2 * (smaller + 1) / (len(defined) + 1)) if len(defined) else None
    return found


def compute(run: Run) -> None:
    for name, entry in run.settings["sets"].items():
        if run.wants(name):
            compute_set(run, RatedSet(run, name, entry))
    named = [name for name in run.settings["sets"] if name in run.only]
    for evaluator, name in ((e, n) for n in named or run.settings["sets"] for e in run.settings["trained"]):
        if run.wants(evaluator):
            compute_trained(run, evaluator, RatedSet(run, name, run.settings["sets"][name]))


def compute_set(run: Run, rated_set: RatedSet) -> None:
    """ridge of all seeds and everything that needs no training, for each aspect."""
    for aspect in rated_set.entry["aspects"]:
        setting, seed = f"{rated_set.name}/{aspect}", run.seeds[0]
        if not run.store.lacks(f"{setting}/{RIDGE}", seed):
            continue
        judged = Judged(rated_set, aspect)
        ridge = [judged.predict(one) for one in run.seeds]
        if run.encoder is not None:
            usual = Judged(replace(rated_set, run=replace(run, encoder=None)), aspect)
            default = [usual.predict(one) for one in run.seeds]
            run.once(f"{setting}/{RIDGE}", seed, lambda j=judged, s=ridge, r=default: j.measure(s, r))
            continue
        for name, scores in score_untrained(run, judged):
            run.once(f"{setting}/{name}", seed, lambda j=judged, s=scores, r=ridge: j.measure(s, r))
        run.once(f"{setting}/{RIDGE}", seed, lambda j=judged, r=ridge: j.measure(r, None))


def score_untrained(run: Run, judged: Judged) -> Iterator[tuple[str, list[Floats]]]:
    """Name and scores of the baselines, of the shipped evaluator, and of maude from its stored rows."""
    has_references = any(record.references for record in judged.records)
    for name in run.settings["baselines"]:
        if name != "token-f1" or has_references:
            yield name, [load(name).score(judged.records)]
    for name, column in judged.set.cosines.items():
        yield name, [column[judged.rows]]
    if not any(record.context for record in judged.records):
        return
    for name in run.settings["shipped"]:
        yield name, [load(name).score(judged.records)]
    scores = read_maude(run.settings["stored"], judged)
    if scores:
        yield "maude", scores


def read_maude(setting: str, judged: Judged) -> list[Floats]:
    """The scores of the judged outputs by `maude`, an array for each seed of a stored setting; none for other sets."""
    stored = [
        np.array(one["result"]["values"][judged.set.name], dtype=np.float64)
        for one in read_lines(FOLDER / "rows" / "maude.jsonl")
        if one["setting"] == setting and judged.set.name in one.get("result", {}).get("values", {})
    ]
    return stored if all(len(one) == len(judged.records) for one in stored) else []


def compute_trained(run: Run, evaluator: str, rated_set: RatedSet) -> None:
    """A trained evaluator on the first aspect, cross-fitted over the folds of each of its seeds."""
    spec = run.settings["trained"][evaluator]
    sets = spec["sets"] if run.encoder is None else run.settings["sets_larger"] if evaluator == LARGER else ()
    if rated_set.name not in sets:
        return
    asked = spec.get("seeds", 1)
    number = asked.get(rated_set.name, 1) if isinstance(asked, Mapping) else asked
    aspect, seeds = rated_set.entry["aspects"][0], run.seeds[:number]
    setting = f"{rated_set.name}/{aspect}/{evaluator}"
    if not run.store.lacks(setting, run.seeds[0]):
        return
    judged = Judged(rated_set, aspect)

    def read_scores(seed: int) -> Floats:
        found = run.once(
            f"{setting}/scores", seed, lambda: {"values": cross(run, evaluator, judged, aspect, seed)}, data=True
        )
        return np.array(found["values"], dtype=np.float64)

    scores = [read_scores(seed) for seed in seeds]
    run.once(setting, run.seeds[0], lambda: judged.measure(scores, [judged.predict(seed) for seed in seeds]))


def cross(run: Run, evaluator: str, judged: Judged, aspect: str, seed: int) -> Floats:
    """(n,) scores of the judged outputs, each by the model that has not seen its group."""
    spec, rated_set = run.settings["trained"][evaluator], judged.set
    name, folder = spec.get("evaluator", evaluator), run.folder(evaluator, rated_set.name, aspect, seed)
    # perception learns from texts alone, so it has no aspect.
    rated = {"aspect": aspect, "ratings": rated_set.entry.get("ratings", "raw")}
    options = {**spec.get("options", {}), **({} if get_entry(name).aspect == "none" else rated)}
    share_vectors(folder, run.folder("texts", rated_set.name))
    found = cross_fit(name, rated_set.data, seed=seed, folds=FOLDS, encoder=run.encoder, folder=folder, **options)
    # With several aspects there is a column for each.
    scores = np.asarray(found.score(judged.records)).reshape(len(judged.records), -1)[:, 0]
    forget(folder)
    return scores


def list_evaluators(run: Run) -> list[str]:
    fixed = [RIDGE, *run.settings["baselines"], "cosine with context", "cosine with references", "cosine with source"]
    return [*fixed, *run.settings["shipped"], "maude", *run.settings["trained"]]


def tabulate(run: Run) -> Tables:
    """A row for each aspect and measure, and a row for each evaluator compared with ridge."""
    yield from tabulate_encoders(run)
    yield from tabulate_larger(run)
    run = replace(run, encoder=None)
    found: dict[tuple[str, str], dict[str, Result]] = {}
    for name, entry in run.settings["sets"].items():
        for aspect in entry["aspects"]:
            for evaluator in list_evaluators(run):
                for result in run.store.get(f"{name}/{aspect}/{evaluator}", run.seeds[:1]):
                    found.setdefault((name, aspect), {})[evaluator] = result
    for table, measure in (("reach", "spearman"), ("within", "within"), ("linear", "pearson")):
        for (name, aspect), results in found.items():
            if RIDGE in results and (measure != "within" or results[RIDGE][measure]["value"] is not None):
                columns = {evaluator: strip(result[measure]) for evaluator, result in results.items()}
                yield row(
                    table, "set", f"{name}, {aspect}", n=results[RIDGE]["n"], groups=results[RIDGE]["groups"], **columns
                )  # fmt: skip
    for name in run.settings["sets_side_by_side"]:
        aspect = run.settings["sets"][name]["aspects"][0]
        results = found.get((name, aspect), {})
        if RIDGE in results:
            columns = {evaluator: strip(result["spearman"]) for evaluator, result in results.items()}
            yield row("side", "set", f"{name}, {aspect}", n=results[RIDGE]["n"], **columns)
    yield from tabulate_trained(run, found)


def tabulate_trained(run: Run, found: Mapping[tuple[str, str], Mapping[str, Result]]) -> Tables:
    """The difference of each trained evaluator from ridge; p by Holm over all tests but the primary one.

    The test is that of a normal distribution with the width of the interval: the least share of 2,000 resamples times
    the number of tests would exceed .05.
    """
    trained = [*run.settings["shipped"], "maude", *run.settings["trained"]]
    listed = [(key, one, results[one]) for key, results in found.items() for one in trained if one in results]
    primary = tuple(run.settings["primary"])
    raw = [compute_p(result["spearman above ridge"]) for _key, _one, result in listed]
    tests = [None if (*key, one) == primary else p for (key, one, _result), p in zip(listed, raw, strict=True)]
    adjusted = holm(tests)
    counts = dict.fromkeys(("above", "below", "compared", "above length", "with length"), 0)
    counts |= count_baselines(run, found)
    for (key, one, result), alone, p in zip(listed, raw, adjusted, strict=True):
        gap = result["spearman above ridge"]
        said = alone if (*key, one) == primary else p
        counts["compared"] += 1
        if said is not None and said < 0.05:
            counts["above" if gap["value"] > 0 else "below"] += 1
        longer = result.get("spearman above length")
        if longer is not None:
            counts["with length"] += 1
            counts["above length"] += longer["low"] > 0
        yield row(
            "trained", "evaluator", f"{one}, {', '.join(key)}", n=result["n"], seeds=result["seeds"],
            spearman=strip(result["spearman"]), difference=strip(gap), p=None if said is None else f"{said:.3f}",
            within=strip(result["within above ridge"]), length=strip(result.get("spearman above length", {})),
        )  # fmt: skip
    yield {"table": "facts", **counts}


def tabulate_encoders(run: Run) -> Tables:
    """ridge on the vectors of other encoders, and its difference from ridge on those of MiniLM; p by Holm over all
    tests but the primary one."""
    listed, primary = [], tuple(run.settings["primary_encoder"])
    for encoder in run.settings["encoders"]:
        store = replace(run, encoder=encoder).store
        for name, entry in run.settings["sets"].items():
            for aspect in entry["aspects"]:
                for result in store.get(f"{name}/{aspect}/{RIDGE}", run.seeds[:1]):
                    listed.append(((encoder, name, aspect), result))
    tests = [None if key == primary else result["spearman above ridge"]["p"] for key, result in listed]
    for (key, result), p in zip(listed, holm(tests), strict=True):
        gap = result["spearman above ridge"]
        yield row(
            "encoders", "set", ", ".join(key[1:]), encoder=key[0], n=result["n"], spearman=strip(result["spearman"]),
            difference=strip(gap), p=f"{gap['p'] if p is None else p:.3f}", within=strip(result["within above ridge"]),
        )  # fmt: skip


def tabulate_larger(run: Run) -> Tables:
    """The evaluator whose encoder learns, by the size of that, and its difference from ridge on vectors of the same."""
    for name in run.settings["sets_larger"]:
        aspect = run.settings["sets"][name]["aspects"][0]
        for encoder in (None, *run.settings["encoders"]):
            store = replace(run, encoder=encoder).store
            for result in store.get(f"{name}/{aspect}/{LARGER}", run.seeds[:1]):
                gap = result["spearman above ridge"]
                yield row(
                    "larger", "encoder", f"{encoder or 'MiniLM'}, {name}, {aspect}", n=result["n"],
                    spearman=strip(result["spearman"]), difference=strip(gap), p=f"{gap['p']:.3f}",
                )  # fmt: skip


def compute_p(gap: Mapping[str, float]) -> float:
    """The two-sided p of a difference, with the standard error that its 95 % interval has if it is normal."""
    error = (gap["high"] - gap["low"]) / (2 * float(norm.ppf(0.975)))
    return 2 * float(norm.sf(abs(gap["value"]) / error)) if error else 1.0


def count_baselines(run: Run, found: Mapping[tuple[str, str], Mapping[str, Result]]) -> dict[str, int]:
    """In how many aspects the interval of ridge's difference from each baseline is above and below 0."""
    counts: dict[str, int] = {"aspects": len(found)}
    for name in list_evaluators(run)[1:6]:
        for measure in ("spearman", "within"):
            gaps = [results[name][f"{measure} above ridge"] for results in found.values() if name in results]
            gaps = [gap for gap in gaps if gap["value"] is not None]
            counts |= {
                f"{name} {measure}": len(gaps),
                f"{name} {measure} below": sum(gap["high"] < 0 for gap in gaps),
                f"{name} {measure} above": sum(gap["low"] > 0 for gap in gaps),
            }
    return counts


def strip(found: Mapping[str, Any]) -> dict[str, Any] | None:
    return plain(found) if found.get("value") is not None else None
