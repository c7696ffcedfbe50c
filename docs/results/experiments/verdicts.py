"""comparative: trained on human comparisons, and on strong and weak pairs without human judgements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from experiments.replies import make_samples, train_steps
from study import Result, Run, Tables, forget, over_seeds, row, with_ends

from evalapp.stats.correlation.coefficients import spearman
from evalapp.stats.ranking.systems import rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml import Dataset, Output, Record, System, fit, load
from scoring.ml.training.gold import collect_compared_pairs, output_key
from scoring.ml.training.record import name_group

SPLIT_SEED, DEV_SHARE, RESAMPLES = 13, 0.125, 2000
#: With fewer systems an order says nothing.
FEWEST = 4
#: Items on which systems and checkpoints meet.
SYSTEM_ITEMS, CHECKPOINT_ITEMS = 10, 20
#: Of all stored rows: the encoder reads both texts together, and learns with a random head.
JOINT: Mapping[str, Any] = {"features": "joint", "stages": "together", "calibrate": False}
QUICK: Mapping[str, Any] = {"max_steps": 3, "batch_size": 4, "max_length": 48, "epochs": 1, "references": 5}
NEGATIVES = ("adversarial", "random")


@dataclass(frozen=True)
class Setting:
    """An aspect of a set.

    `most`: at most so many groups in each part; `learns`: so many in the training part instead. Only the first `folds`
    folds are computed. A pair is read up to `max_length` tokens; None is the encoder's maximum.
    """

    name: str
    set: str
    aspect: str
    epochs: int
    most: int | None = None
    learns: int | None = None
    folds: int = 3
    max_length: int | None = None
    #: The setting that this one varies.
    varies: str = ""
    #: Options of the training in place of the study's.
    options: Mapping[str, Any] = field(default_factory=dict)


def read_settings(run: Run) -> list[Setting]:
    return [Setting(**entry) for entry in run.settings["comparisons"]]


def compute(run: Run) -> None:
    for setting in read_settings(run):
        if run.wants(setting.name):
            compute_comparisons(run, setting)
    compute_supervision(run)


# Trained on human comparisons


def read_compared(run: Run, setting: Setting) -> Dataset:
    """The set without ratings of the same outputs: the evaluator learns from comparisons here."""
    return replace(run.read(setting.set), ratings=())


def limit_groups(data: Dataset, most: int | None) -> Dataset:
    """At most so many groups, in the order of a hash."""
    groups = {name_group(item.group, item.id) for item in data.items}
    if most is None or len(groups) <= most:
        return data
    return data.split(seed=SPLIT_SEED + 2, shares=(most, len(groups) - most))[0]


def split_fold(data: Dataset, setting: Setting, fold: int, quick: bool, folds: int = 3) -> tuple[Dataset, ...]:
    """Train, dev and test part of a fold; no group is in two parts."""
    parts = data.split(seed=SPLIT_SEED, shares=(1.0,) * folds)
    first, *others = (part for number, part in enumerate(parts) if number != fold)
    rest = first.merge(others)
    train, dev = rest.split(seed=SPLIT_SEED + 1, shares=(1 - DEV_SHARE, DEV_SHARE))
    most = 8 if quick else setting.most
    learned = limit_groups(train, most if quick else setting.learns or most)
    return learned, limit_groups(dev, most and max(4, most // 6)), limit_groups(parts[fold], most)


def list_pairs(data: Dataset, aspect: str) -> list[tuple[Record, Record, int, str]]:
    """Each compared pair with its majority verdict and group; without pairs of equal texts or without a majority."""
    votes: dict[Any, Counter[int]] = {}
    sides: dict[Any, tuple[Record, Record]] = {}
    for entry in collect_compared_pairs(data, aspect):
        ordered = entry.a.system <= entry.b.system
        a, b, sign = (entry.a, entry.b, entry.sign) if ordered else (entry.b, entry.a, -entry.sign)
        key = (output_key(a), output_key(b))
        votes.setdefault(key, Counter())[sign] += 1
        sides[key] = (a, b)
    found = []
    for key, counts in votes.items():
        (sign, n), *others = counts.most_common()
        a, b = sides[key]
        if a.text != b.text and not (others and others[0][1] == n):
            found.append((a, b, sign, name_group(a.group, a.item)))
    return found


def compute_comparisons(run: Run, setting: Setting) -> None:
    data, rates = read_compared(run, setting), run.settings["learning_rates"]

    def folder(fold: int, rate: float, first: int) -> Path:
        return run.folder(setting.name, fold, f"{rate:g}", *([] if first == SPLIT_SEED else [first]))

    def train(fold: int, rate: float, first: int = SPLIT_SEED) -> Any:
        learned, dev, _ = split_fold(data, setting, fold, run.quick)
        options = {
            **JOINT, "strong": "no", "weak": "no", "epochs": setting.epochs, "learning_rate": rate, "pooling": "sides",
            "batch_size": run.settings["batch_size"], "max_length": setting.max_length,
            **(QUICK if run.quick else {}),
        }  # fmt: skip
        return fit("comparative", learned, dev=dev, aspect=setting.aspect, seed=first + fold, encoder=run.encoder,
                   folder=folder(fold, rate, first), **options)  # fmt: skip

    def try_rate(rate: float) -> Result:
        record = train(0, rate).record
        return {"dev_loss": min(entry["dev_loss"] for entry in record.log), "steps": record.steps}

    losses = {
        rate: run.once(f"{setting.name}/rate/{rate:g} sides", SPLIT_SEED, lambda rate=rate: try_rate(rate))
        for rate in rates
    }
    best = min(losses, key=lambda rate: losses[rate]["dev_loss"])
    judged = win_rates(data, setting.aspect)
    seeds, folds = (run.seeds[:1], 1) if run.quick else (run.seeds, setting.folds)
    for first, fold in product(dict.fromkeys((SPLIT_SEED, *seeds)), range(folds)):

        def test(first: int = first, fold: int = fold) -> Result:
            evaluator = train(fold, best, first)
            learned, _, held_out = split_fold(data, setting, fold, run.quick)
            pairs = list_pairs(held_out, setting.aspect)
            verdicts = evaluator.judge([a for a, _, _, _ in pairs], [b for _, b, _, _ in pairs])
            usual = Counter(sign for _, _, sign, _ in list_pairs(learned, setting.aspect)).most_common(1)[0][0]
            return {
                "choice": f"{best:g} sides",
                "train_pairs": evaluator.record.examples.get("compared pairs", 0),
                "training_seconds": round(evaluator.record.seconds, 1),
                "swap_consistency": verdicts.swap_consistency,
                "said": verdicts.signs,
                "lean": verdicts.probabilities[:, 2] - verdicts.probabilities[:, 0],
                "usual": usual,
                "systems": rate_systems(evaluator, held_out, set(judged), run.quick) if len(judged) > 5 else {},
            }

        run.once(f"{setting.name}/fold/{fold}", first + fold, test)
        forget(folder(fold, best, first))
    for rate in rates:
        forget(folder(0, rate, SPLIT_SEED))


def count_verdicts(evaluator: Any) -> Any:
    """The evaluator with games that count verdicts, as those of the first rows, whatever the profile counts."""
    return type(evaluator)(evaluator.entry, evaluator.artefact, {"outcome": "verdict"})


def rate_systems(evaluator: Any, test: Dataset, judged: set[str], quick: bool) -> dict[str, Any]:
    """Skill rating and mean length of every compared system, on the held-out items."""
    outputs: dict[str, list[Record]] = {}
    for record in test.outputs_with_context():
        if record.text.strip() and record.system in judged:
            outputs.setdefault(record.system, []).append(record)
    found = count_verdicts(evaluator).rank(outputs, seeds=20, max_items=3 if quick else SYSTEM_ITEMS)
    return {
        "skill": {one.system: one.estimate.value for one in found.systems},
        "length": {name: float(np.mean([len(r.text) for r in records])) for name, records in outputs.items()},
        "converged": found.converged,
    }


def win_rates(data: Dataset, aspect: str) -> dict[str, float]:
    rows = [entry for entry in data.comparisons if entry.aspect == aspect and entry.system_b is not None]
    ranking = rank_by_win_rate(
        [r.item for r in rows], [r.system_a for r in rows], [r.system_b for r in rows], [r.verdict for r in rows],
        bootstrap=Bootstrap(resamples=10),
    )  # fmt: skip
    return {one.system: one.estimate.value for one in ranking.systems}


# Strong and weak supervision


def split_supervision(run: Run, seed: int) -> tuple[Dataset, ...]:
    """Train, dev and test: contexts with human replies, an adversarial and a random negative, and checkpoints of an
    n-gram model that learned from other groups; the test part also has a model of another order."""
    whole = run.read("dailydialog_pp")
    rich = [item for item in whole.items if item.meta.get("adversarial_negatives")]
    taken = {name_group(item.group, item.id) for item in rich}
    learned = [
        item
        for item in whole.items
        if not item.meta.get("adversarial_negatives") and name_group(item.group, item.id) not in taken
    ]
    samples = make_samples(learned)
    parts = replace(whole, items=tuple(rich)).split(seed=seed, shares=(0.8, 0.1, 0.1))
    sizes = (12, 4, 6) if run.quick else run.settings["supervision"]["items"]
    steps = run.settings["supervision"]["steps"][2::3] if run.quick else run.settings["supervision"]["steps"]
    systems = tuple(System(name) for name in (*NEGATIVES, "ngram", "unseen"))
    found = []
    for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        items = tuple(part.items[:size])
        outputs = [
            Output(item.id, kind, str(item.meta[f"{kind}_negatives"][0])) for item in items for kind in NEGATIVES
        ]
        outputs += train_steps(samples, items, steps, "ngram", 4, seed)
        if number == 2:
            outputs += train_steps(samples, items, steps, "unseen", 3, seed + 1)
        found.append(replace(whole, items=items, outputs=tuple(outputs), systems=systems))
    return tuple(found)


def compute_supervision(run: Run) -> None:
    """The whole evaluator with every seed, the ablations with the first."""
    whole, *others = run.settings["supervision"]["ablations"]
    seeds = run.seeds[:1] if run.quick else run.seeds
    wanted = [(whole, seed) for seed in seeds] if run.wants("supervision") else []
    wanted += [(name, seeds[0]) for name in others] if run.wants("ablations") else []
    for name, seed in wanted:
        if run.store.lacks(f"supervision/{name}", seed):
            parts = split_supervision(run, seed)
            run.once("supervision/floors", seed, lambda test=parts[2]: measure_baselines(run, test))
            rate = choose_rate(run, whole)
            run.once(
                f"supervision/{name}", seed,
                lambda n=name, seed=seed, rate=rate, parts=parts: measure_supervised(run, n, seed, rate, parts),
            )  # fmt: skip
            forget(run.folder("supervision", name, f"{rate:g}", seed))


def choose_rate(run: Run, whole: str) -> float:
    """The learning rate with the best macro-F1 on dev pairs, for the whole evaluator and the first seed."""
    seed = run.seeds[0]

    def try_rate(rate: float) -> Result:
        record = train_supervised(run, whole, seed, rate, split_supervision(run, seed)).record
        return {"macro_f1": record.metrics["macro_f1"]}

    found = {
        rate: run.once(f"supervision rate/{rate:g}", seed, lambda rate=rate: try_rate(rate))
        for rate in run.settings["learning_rates"]
    }
    return max(found, key=lambda rate: found[rate]["macro_f1"])


def train_supervised(run: Run, name: str, seed: int, rate: float, parts: Sequence[Dataset]) -> Any:
    supervision = run.settings["supervision"]
    quick = {**QUICK, "pairs_per_epoch": 32} if run.quick else {}
    options = {**JOINT, **supervision["training"], **supervision["ablations"][name], **quick}
    folder = run.folder("supervision", name, f"{rate:g}", seed)
    return fit("comparative", parts[0], dev=parts[1], seed=seed, folder=folder, encoder=run.encoder,
               learning_rate=rate, **options)  # fmt: skip


def measure_supervised(run: Run, name: str, seed: int, rate: float, parts: Sequence[Dataset]) -> Result:
    evaluator, test = train_supervised(run, name, seed, rate, parts), parts[2]
    found = share_wins(test, evaluator.compare)
    ranker = count_verdicts(evaluator)
    for system in ("ngram", "unseen"):
        steps = list_checkpoints(test, system)
        ratings = ranker.rank({str(step): rows for step, rows in steps.items()}, seeds=20,
                              max_items=4 if run.quick else CHECKPOINT_ITEMS)  # fmt: skip
        skills = [ratings.get_rating(str(step)) for step in steps]
        found[f"{system}_spearman"] = spearman(list(map(float, steps)), skills).value
    return {
        **found,
        "rate": rate,
        "training_seconds": round(evaluator.record.seconds, 1),
        "steps": evaluator.record.steps,
        "dev_macro_f1": evaluator.record.metrics.get("macro_f1"),
    }


def list_checkpoints(test: Dataset, system: str) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for record in test.outputs_with_context():
        if record.system == system and record.step is not None:
            found.setdefault(record.step, []).append(record)
    return dict(sorted(found.items()))


def share_wins(test: Dataset, compare: Callable[[list[Record], list[Record]], np.ndarray]) -> dict[str, float]:
    """Share of items on which the last checkpoint beats the first, or the first human reply a wrong one, and the
    reverse; the sign of `compare` says which text wins."""
    pairs = {}
    for system in ("ngram", "unseen"):
        first, *_, last = list_checkpoints(test, system).values()
        pairs[f"{system}_last_over_first", f"{system}_first_over_last"] = last, first
    for kind in NEGATIVES:
        wrong = [record for record in test.outputs_with_context() if record.system == kind]
        people = [replace(record, text=record.references[0]) for record in wrong]
        pairs[f"people_over_{kind}", f"{kind}_over_people"] = people, wrong
    found = {}
    for (better, worse), (one, other) in pairs.items():
        signs = compare(one, other)
        found |= {better: float((signs > 0).mean()), worse: float((signs < 0).mean())}
    return found


def measure_baselines(run: Run, test: Dataset) -> dict[str, Any]:
    """The same figures by scores of trivial baselines."""
    found: dict[str, Any] = {"items": len(test.items), "checkpoints": len(list_checkpoints(test, "ngram"))}
    for name in run.settings["baselines"]:
        baseline = load(name)
        shares = share_wins(test, lambda one, other, by=baseline: by.score(one) - by.score(other))
        for system in ("ngram", "unseen"):
            steps = list_checkpoints(test, system)
            means = [baseline.system_score(rows) for rows in steps.values()]
            shares[f"{system}_spearman"] = spearman(list(map(float, steps)), means).value
        found[name] = shares
    return found


# Tables


@dataclass(frozen=True)
class Fold:
    """A fold's result, with group, majority verdict, sign of the longer text and outputs of each of its pairs."""

    number: int
    result: Result
    groups: list[str]
    truth: np.ndarray
    longer: np.ndarray
    sides: Sequence[tuple[Record, Record]] = ()

    def __post_init__(self) -> None:
        if len(self.groups) != len(self.result["said"]):
            raise ValueError(
                f"Fold {self.number} has {len(self.result['said'])} verdicts on {len(self.groups)} pairs: they are of "
                "other data than these."
            )


@dataclass(frozen=True)
class Verdicts:
    """All pairs of a setting: truth and longer text (n,); verdict and lean of each seed (n, seeds)."""

    groups: list[str]
    truth: np.ndarray
    said: np.ndarray
    lean: np.ndarray
    longer: np.ndarray
    usual: np.ndarray

    @classmethod
    def join(cls, seeds: Sequence[Sequence[Fold]]) -> Verdicts:
        said, lean = (
            np.stack([np.concatenate([fold.result[name] for fold in folds]) for folds in seeds], axis=1)
            for name in ("said", "lean")
        )
        first = seeds[0]
        return cls(
            [group for fold in first for group in fold.groups],
            np.concatenate([fold.truth for fold in first]),
            said,
            lean,
            np.concatenate([fold.longer for fold in first]),
            np.concatenate([np.full(len(fold.groups), fold.result["usual"]) for fold in first]),
        )

    @property
    def right(self) -> np.ndarray:
        """(n, seeds): whether the verdict is the human one."""
        return (self.said == self.truth[:, None]).astype(float)

    def force(self) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """For decided pairs: whether each seed's lean and the longer text are right (equal lengths 0.5); groups."""
        decided = self.truth != 0
        ours = (np.sign(self.lean) == self.truth[:, None])[decided].astype(float)
        theirs = np.where(self.longer == 0, 0.5, self.longer == self.truth)[decided]
        return ours, theirs, [group for group, keep in zip(self.groups, decided, strict=True) if keep]


def read_folds(run: Run, setting: Setting) -> list[list[Fold]]:
    """The folds of every seed that has all folds of the first. Fold k has the seed of the first fold plus k."""
    data = read_compared(run, setting)
    known: dict[int, list[tuple[Record, Record, int, str]]] = {}
    found = []
    for first in dict.fromkeys((SPLIT_SEED, *run.seeds)):
        folds = []
        for number in range(setting.folds):
            for result in run.store.get(f"{setting.name}/fold/{number}", [first + number]):
                if number not in known:
                    known[number] = list_pairs(split_fold(data, setting, number, run.quick)[2], setting.aspect)
                pairs = known[number]
                longer = np.array([np.sign(len(a.text) - len(b.text)) for a, b, _, _ in pairs])
                truth = np.array([sign for _, _, sign, _ in pairs])
                groups = [group for _, _, _, group in pairs]
                folds.append(Fold(number, result, groups, truth, longer, [(a, b) for a, b, _, _ in pairs]))
        found.append(folds)
    return [folds for folds in found if folds and len(folds) == len(found[0])]


def resample_groups(values: np.ndarray, groups: Sequence[str]) -> dict[str, Any]:
    """Mean with its 95 % percentile interval, whole groups resampled."""
    means = draw_means(values, groups)
    return with_ends(float(np.mean(values)), np.percentile(means, [2.5, 97.5]).tolist())


def draw_means(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """(resamples,) means, whole groups resampled."""
    _, codes = np.unique(np.asarray(groups), return_inverse=True)
    sums, counts = np.bincount(codes, weights=np.asarray(values, dtype=float)), np.bincount(codes).astype(float)
    draws = np.random.default_rng(13).integers(len(sums), size=(RESAMPLES, len(sums)))
    return np.asarray(sums[draws].sum(axis=1) / counts[draws].sum(axis=1))


def tabulate(run: Run) -> Tables:
    for setting in read_settings(run):
        try:
            seeds = read_folds(run, setting)
        except ValueError as problem:
            print(f"{setting.name}: {problem} Its table rows stay as they are.")
            continue
        if seeds:
            yield summarise_verdicts(setting, seeds)
            if not setting.varies:
                yield from order_systems(setting.name, seeds, win_rates(read_compared(run, setting), setting.aspect))
    yield from tabulate_supervision(run)


def summarise_verdicts(setting: Setting, seeds: Sequence[Sequence[Fold]]) -> dict[str, Any]:
    v = Verdicts.join(seeds)
    each, theirs, own = v.force()
    ours = each.mean(axis=1)
    results = [fold.result for folds in seeds for fold in folds]
    return row(
        "verdicts", "set", setting.name, seeds=len(seeds), decided=len(ours), right=resample_groups(ours, own),
        longer=resample_groups(theirs, own), difference=resample_groups(ours - theirs, own), pairs=len(v.truth),
        right_all=resample_groups(v.right.mean(axis=1), v.groups),
        usual=resample_groups(v.usual == v.truth, v.groups), ties=float(np.mean(v.said == 0)),
        human_ties=float(np.mean(v.truth == 0)),
        consistent=float(np.mean([result["swap_consistency"] for result in results])),
    )  # fmt: skip


def order_systems(name: str, seeds: Sequence[Sequence[Fold]], rates: Mapping[str, float]) -> Tables:
    """Spearman of the systems' orders with human win rates: one row per fold, over seeds."""
    for same in zip(*seeds, strict=True):
        rows = [order_fold(fold, rates) for fold in same]
        if rows[0]["systems"] >= FEWEST:
            columns = {key: over_seeds([one[key] for one in rows]) for key in ("skill", "said", "lean")}
            yield row(
                "order", "set", f"{name}, fold {same[0].number + 1}", systems=int(rows[0]["systems"]), **columns,
                length=rows[0]["length"],
            )  # fmt: skip


def order_fold(fold: Fold, rates: Mapping[str, float]) -> dict[str, float]:
    """Spearman with win rates, of skill ratings and of means over the judged pairs: verdicts, leans, lengths.

    The mean lean, p(better) − p(worse), orders systems as the expected outcome does.
    """
    columns = {name: [(float(x), -float(x)) for x in fold.result[name]] for name in ("said", "lean")}
    columns["length"] = [(float(len(a.text)), float(len(b.text))) for a, b in fold.sides]
    found: dict[str, float] = {}
    for column, values in columns.items():
        by_system: dict[str, list[float]] = {}
        for sides, pair in zip(fold.sides, values, strict=True):
            for record, value in zip(sides, pair, strict=True):
                by_system.setdefault(str(record.system), []).append(value)
        means = {name: float(np.mean(values)) for name, values in by_system.items()}
        found |= {column: correlate_rates(means, rates), "systems": len(means.keys() & rates.keys())}
    skill = fold.result["systems"].get("skill") if fold.result["systems"] else None
    return found | {"skill": correlate_rates(skill, rates) if skill else np.nan}


def correlate_rates(values: Mapping[str, float], rates: Mapping[str, float]) -> float:
    names = sorted(values.keys() & rates.keys())
    return spearman([rates[name] for name in names], [values[name] for name in names]).value if names[1:] else np.nan


def tabulate_supervision(run: Run) -> Tables:
    baselines = run.store.get("supervision/floors", run.seeds)
    found = {name: run.store.get(f"supervision/{name}", run.seeds) for name in run.settings["supervision"]["ablations"]}
    if not baselines or not any(found.values()):
        return
    found |= {f"{name} (baseline)": [result[name] for result in baselines] for name in run.settings["baselines"]}
    columns = (
        "dev_macro_f1", "ngram_spearman", "unseen_spearman", "ngram_last_over_first", "people_over_adversarial",
        "adversarial_over_people", "people_over_random",
    )  # fmt: skip
    for name, results in found.items():
        if results:
            cells = {column: over_seeds([result.get(column) for result in results]) for column in columns}
            yield row("supervision", "evaluator", name, seeds=len(results), **cells)
    yield {
        "table": "facts", "items": baselines[0]["items"],
        "longer negatives": float(np.mean([one["length"]["adversarial_over_people"] for one in baselines])),
    }  # fmt: skip
