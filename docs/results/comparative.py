"""The comparative evaluator on real data: trained on people's comparisons, and on strong and weak pairs alone.

    python docs/results/comparative.py --out FOLDER [--only pandalm supervision ...] [--seeds ...]

The ablations of supervision take the first seed. Of comparisons a seed is that of training: groups are parted alike,
and the learning rate chosen once, by the first.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from store import (
    ABSENT,
    Given,
    Result,
    Store,
    arguments,
    forget,
    machine_line,
    publish,
    store_of,
    table,
    work_folder,
)

from evalapp.demo import words
from evalapp.demo.build import build
from evalapp.demo.ngram import NgramModel, Sample
from evalapp.stats.correlation.coefficients import kendall, spearman
from evalapp.stats.ranking.systems import rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml import Dataset, Item, Output, Record, System, fit, load, read_dataset
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.comparative.inputs import PairReader
from scoring.ml.selection import selection_report
from scoring.ml.training.cross_fit import merge
from scoring.ml.training.gold import compared_records, key_of
from scoring.ml.training.record import group_of

SEEDS = (13, 14, 15, 16, 17)
FOLDS, DEV_SHARE, SPLIT_SEED = 3, 0.125, 13
RESAMPLES = 2000
RATES = (5e-5, 2e-4)
#: Small batches: with few pairs the number of steps is what is short.
BATCH = 16
#: Below so many systems an order says nothing.
FEWEST = 4
#: Items on which systems and checkpoints meet.
MEETINGS = 10, 20
#: Supervision without people.
SUPERVISION: Mapping[str, Any] = {"pairs_per_epoch": 1600, "epochs": 3, "batch_size": BATCH, "max_length": 64}
FLOORS = ("length", "overlap", "random")
#: Replies the n-gram model has read: each checkpoint three times as many as the one before, so that later is better.
STEPS = (30, 100, 300, 1000, 3000, 10_000)
QUICK: Mapping[str, Any] = {"max_steps": 3, "batch_size": 4, "max_length": 48, "epochs": 1, "references": 5}
#: The paper's ablations (its table 5) as options; human judgements there are none here. And the mean of all tokens,
#: which this encoder was made for, in place of profile recommended's texts pooled apart.
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "strong and weak": {},
    "all tokens pooled together": {"pooling": "mean"},
    "all tokens pooled together, 5 times the steps": {"pooling": "mean", "epochs": 15},
    "without comparison (strong only)": {"comparison": False},
    "without tie": {"tie": False},
    "without strong": {"strong": "no"},
    "without weak": {"weak": "no"},
    "without pre-training": {"pretrained": False},
    "own context on each side": {"form": "own"},
    "text alone (sentinel)": {"inputs": "text"},
    "context alone (sentinel)": {"inputs": "context"},
}


@dataclass(frozen=True)
class Setting:
    """One aspect of one set; `most` groups at most of each part, None is all; `learns` of the training part, where that
    is another number. The first so many `folds` are computed. A pair is read up to `max_length` tokens, None is as
    many as the encoder takes."""

    name: str
    folder: str
    aspect: str
    epochs: int
    most: int | None = None
    learns: int | None = None
    folds: int = FOLDS
    max_length: int | None = None
    poolings: tuple[str, ...] = ("sides",)
    of: str = ""


SETTINGS = (
    Setting("pandalm", "pandalm", "overall", 6, max_length=128),
    # What reading the texts to their end and more steps bring.
    Setting("pandalm-read-whole", "pandalm", "overall", 6, folds=1, of="pandalm"),
    Setting("pandalm-longer", "pandalm", "overall", 12, folds=1, max_length=128, of="pandalm"),
    Setting("scratchplot", "scratchplot", "ending", 8),  # the whole text: what is judged stands at its end
    Setting("e2e-naturalness", "e2e", "naturalness", 2, most=60),
    Setting("e2e-quality", "e2e", "quality", 2, most=60),
    # What more pairs and more steps bring: the same test part.
    Setting("e2e-quality-from-more", "e2e", "quality", 2, most=60, learns=360, folds=1, of="e2e-quality"),
)


# Trained on people's comparisons


def few_groups(data: Dataset, most: int | None) -> Dataset:
    """The rows of the first so many groups, in the order of a hash."""
    groups = {group_of(item.group, item.id) for item in data.items}
    if most is None or len(groups) <= most:
        return data
    return data.split(seed=SPLIT_SEED + 2, shares=(most, len(groups) - most))[0]


def part_of(data: Dataset, setting: Setting, fold: int, quick: bool) -> tuple[Dataset, Dataset, Dataset]:
    """Train, dev and test of a fold; groups never part."""
    parts = data.split(seed=SPLIT_SEED, shares=(1.0,) * FOLDS)
    rest = merge([part for number, part in enumerate(parts) if number != fold])
    train, dev = rest.split(seed=SPLIT_SEED + 1, shares=(1 - DEV_SHARE, DEV_SHARE))
    most = 8 if quick else setting.most
    learned = few_groups(train, most if quick else setting.learns or most)
    return learned, few_groups(dev, most and max(4, most // 6)), few_groups(parts[fold], most)


def judged_pairs(data: Dataset, aspect: str) -> list[tuple[Record, Record, int, str]]:
    """Each compared pair once with the verdict most people gave; pairs without one most frequent verdict are left
    out, and pairs of the same text."""
    votes: dict[Any, Counter[int]] = {}
    sides: dict[Any, tuple[Record, Record]] = {}
    for row in compared_records(data, aspect):
        a, b, sign = (row.a, row.b, row.sign) if row.a.system <= row.b.system else (row.b, row.a, -row.sign)
        key = (key_of(a), key_of(b))
        votes.setdefault(key, Counter())[sign] += 1
        sides[key] = (a, b)
    found = []
    for key, counts in votes.items():
        (sign, n), *others = counts.most_common()
        a, b = sides[key]
        if a.text != b.text and not (others and others[0][1] == n):
            found.append((a, b, sign, group_of(a.group, a.item)))
    return found


@dataclass(frozen=True)
class Fold:
    """A fold's result, and of its pairs: the groups, the verdict most people gave, the sign of the longer text, and the
    two outputs."""

    number: int
    result: Result
    groups: list[str]
    truth: np.ndarray
    longer: np.ndarray
    win_rates: dict[str, float]
    sides: Sequence[tuple[Record, Record]] = ()

    def __post_init__(self) -> None:
        if len(self.groups) != len(self.result["said"]):
            raise ValueError(
                f"Fold {self.number} has {len(self.result['said'])} verdicts on {len(self.groups)} pairs: they are of "
                "other data than these."
            )


@dataclass(frozen=True)
class Choice:
    """What dev chooses between."""

    rate: float
    pooling: str

    def __str__(self) -> str:
        return f"{self.rate:g} {self.pooling}"


def train_options(setting: Setting, choice: Choice, quick: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"strong": "no", "weak": "no", "epochs": setting.epochs, "learning_rate": choice.rate}
    options["pooling"] = choice.pooling
    options["batch_size"] = BATCH
    options["max_length"] = setting.max_length
    return options | (QUICK if quick else {})


def run_comparisons(given: Given, setting: Setting, data: Dataset, store: Store) -> None:
    choices = [Choice(rate, pooling) for pooling in setting.poolings for rate in RATES]

    def trained(fold: int, choice: Choice, first: int = SPLIT_SEED) -> Any:
        train, dev, _ = part_of(data, setting, fold, given.quick)
        return fit("comparative", train, dev=dev, aspect=setting.aspect, seed=first + fold,
                   encoder=given.encoder, folder=work_of(given, setting, fold, choice, first),
                   **train_options(setting, choice, given.quick))  # fmt: skip

    def on_dev(choice: Choice) -> Result:
        found = trained(0, choice)
        return {"dev_loss": min(row["dev_loss"] for row in found.record.log), "steps": found.record.steps}

    losses = {one: store.once(f"{setting.name}/rate/{one}", SPLIT_SEED, lambda one=one: on_dev(one)) for one in choices}
    best = min(losses, key=lambda one: losses[one]["dev_loss"])
    judged = people_win_rates(data, setting.aspect)
    seeds, folds = (given.seeds[:1], 1) if given.quick else (given.seeds, setting.folds)
    for first, fold in product(dict.fromkeys((SPLIT_SEED, *seeds)), range(folds)):

        def on_test(first: int = first, fold: int = fold) -> Result:
            evaluator = trained(fold, best, first)
            train, _, test = part_of(data, setting, fold, given.quick)
            pairs = judged_pairs(test, setting.aspect)
            verdicts = evaluator.judge([a for a, _, _, _ in pairs], [b for _, b, _, _ in pairs])
            usual = Counter(sign for _, _, sign, _ in judged_pairs(train, setting.aspect)).most_common(1)[0][0]
            return {
                "choice": str(best),
                "train_pairs": evaluator.record.examples.get("compared pairs", 0),
                "training_seconds": round(evaluator.record.seconds, 1),
                "swap_consistency": verdicts.swap_consistency,
                "said": verdicts.signs,
                "lean": verdicts.probabilities[:, 2] - verdicts.probabilities[:, 0],
                "usual": usual,
                "systems": skill_and_length(evaluator, test, set(judged), given.quick) if len(judged) > 5 else {},
            }

        store.once(f"{setting.name}/fold/{fold}", first + fold, on_test)
        forget(work_of(given, setting, fold, best, first))
    for choice in choices:
        forget(work_of(given, setting, 0, choice, SPLIT_SEED))


def work_of(given: Given, setting: Setting, fold: int, choice: Choice, first: int) -> Path:
    return work_folder(given, setting.name, fold, choice, *([] if first == SPLIT_SEED else [first]))


def read_compared(given: Given, setting: Setting) -> Dataset:
    """Without ratings of the same outputs, where there are any: it learns from comparisons here."""
    return replace(read_dataset(given.data / setting.folder), ratings=())


def folds_of(given: Given, setting: Setting, store: Store, first: int = SPLIT_SEED) -> list[Fold]:
    """The results of a setting's folds beside what people said of the same pairs, and the lengths of these. The seed
    of a fold is the first one's and its number."""
    results = {fold: store.of(f"{setting.name}/fold/{fold}", [first + fold]) for fold in range(setting.folds)}
    if not any(results.values()):
        return []
    data = read_compared(given, setting)
    win_rates = people_win_rates(data, setting.aspect)
    found = []
    for fold, result in ((fold, result) for fold, rows in results.items() for result in rows):
        pairs = judged_pairs(part_of(data, setting, fold, given.quick)[2], setting.aspect)
        truth = np.array([sign for _, _, sign, _ in pairs])
        longer = np.array([np.sign(len(a.text) - len(b.text)) for a, b, _, _ in pairs])
        groups, sides = [group for _, _, _, group in pairs], [(a, b) for a, b, _, _ in pairs]
        found.append(Fold(fold, result, groups, truth, longer, win_rates, sides))
    return found


def by_verdicts(evaluator: Any) -> Any:
    """As it is, but for `outcome`: skill ratings of this page began when games counted verdicts, and its rows must mean
    the same whenever they are computed."""
    return type(evaluator)(evaluator.entry, evaluator.artefact, {"outcome": "verdict"})


def skill_and_length(evaluator: Any, test: Dataset, judged: set[str], quick: bool) -> dict[str, Any]:
    """Skill rating and mean length of every system people compared, on the held-out items."""
    outputs: dict[str, list[Record]] = {}
    for record in test.outputs_with_context():
        if record.text.strip() and record.system in judged:
            outputs.setdefault(record.system, []).append(record)
    found = by_verdicts(evaluator).rank(outputs, seeds=20, max_items=3 if quick else MEETINGS[0])
    return {
        "skill": {row.system: row.estimate.value for row in found.systems},
        "length": {name: float(np.mean([len(r.text) for r in records])) for name, records in outputs.items()},
        "converged": found.converged,
    }


def people_win_rates(data: Dataset, aspect: str) -> dict[str, float]:
    rows = [row for row in data.comparisons if row.aspect == aspect and row.system_b is not None]
    ranking = rank_by_win_rate(
        [row.item for row in rows],
        [row.system_a for row in rows],
        [row.system_b for row in rows],
        [row.verdict for row in rows],
        bootstrap=Bootstrap(resamples=10),
    )
    return {row.system: row.estimate.value for row in ranking.systems}


# Strong and weak supervision


def ngram_outputs(
    train: Sequence[Item], answered: Sequence[Item], steps: Sequence[int], name: str, order: int, seed: int
) -> Iterator[Output]:
    """The demonstration's word n-gram model, taught one reply at a time, answers the items at every step."""
    rng = random.Random(f"{seed}:{name}")
    samples = [
        Sample(features(item), tuple(words.split_words(text.lower()))) for item in train for text in item.references
    ]
    model, done = NgramModel(order=order), 0
    for step in steps:
        while done < step:
            model.update(rng.choice(samples))
            done += 1
        for item in answered:
            draw = random.Random(f"{seed}:{name}:{step}:{item.id}")
            text = words.join_words(model.answer(features(item), draw, shortest=3, longest=24))
            yield Output(item.id, name, text, step)


def features(item: Item) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words.content_words(" ".join(item.context[-2:]))))


def supervision_data(folder: Path, seed: int, quick: bool) -> tuple[Dataset, Dataset, Dataset]:
    """Train, dev and test: contexts with five human replies, a human-written adversarial and a random negative, and
    the n-gram model at ten steps. The model learned from other groups; test also has one of another order."""
    whole = read_dataset(folder / "dailydialog_pp")
    plain = [item for item in whole.items if not item.meta.get("adversarial_negatives")]
    rich = [item for item in whole.items if item.meta.get("adversarial_negatives")]
    taken = {group_of(item.group, item.id) for item in rich}
    learned = [item for item in plain if group_of(item.group, item.id) not in taken]
    parts = replace(whole, items=tuple(rich)).split(seed=seed, shares=(0.8, 0.1, 0.1))
    sizes = (12, 4, 6) if quick else (400, 80, 120)
    steps = STEPS[2::3] if quick else STEPS
    found = []
    for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        items = tuple(part.items[:size])
        outputs = [
            Output(item.id, kind, str(item.meta[f"{kind}_negatives"][0]))
            for item in items
            for kind in ("adversarial", "random")
        ]
        outputs += ngram_outputs(learned, items, steps, "ngram", 4, seed)
        if number == 2:
            outputs += ngram_outputs(learned, items, steps, "unseen", 3, seed + 1)
        systems = tuple(System(name) for name in ("adversarial", "random", "ngram", "unseen"))
        found.append(replace(whole, items=items, outputs=tuple(outputs), systems=systems))
    return found[0], found[1], found[2]


def run_supervision(given: Given, store: Store) -> None:
    """The whole on every seed; what is left out, which takes ten times as long, on the first."""
    whole, *others = ABLATIONS
    seeds = given.seeds[:1] if given.quick else given.seeds
    wanted = [(whole, seed) for seed in seeds] if given.wants("supervision") else []
    wanted += [(name, seeds[0]) for name in others] if given.wants("ablations") else []
    for name, seed in wanted:
        if store.lacks(f"supervision/{name}", seed):
            parts = supervision_data(given.data, seed, given.quick)
            store.once("supervision/floors", seed, lambda test=parts[2]: floors_of(test))
            rate = chosen_on_dev(given, store)
            store.once(
                f"supervision/{name}", seed,
                lambda name=name, seed=seed, rate=rate, parts=parts: supervised(given, name, seed, rate, parts),
            )  # fmt: skip
            forget(work_folder(given, "supervision", name, f"{rate:g}", seed))


def supervised(given: Given, name: str, seed: int, rate: float, parts: Sequence[Dataset]) -> Result:
    evaluator, test = train_supervised(given, name, seed, rate, parts), parts[2]
    return {
        **of_steps(evaluator, test, given.quick),
        **shares(test, evaluator.compare),
        "rate": rate,
        "training_seconds": round(evaluator.record.seconds, 1),
        "steps": evaluator.record.steps,
        "dev_macro_f1": evaluator.record.metrics.get("macro_f1"),
    }


def train_supervised(given: Given, name: str, seed: int, rate: float, parts: Sequence[Dataset]) -> Any:
    options = {**SUPERVISION, **ABLATIONS[name], **({**QUICK, "pairs_per_epoch": 32} if given.quick else {})}
    folder = work_folder(given, "supervision", name, f"{rate:g}", seed)
    return fit("comparative", parts[0], dev=parts[1], seed=seed, folder=folder, encoder=given.encoder,
               learning_rate=rate, **options)  # fmt: skip


def chosen_on_dev(given: Given, store: Store) -> float:
    """The learning rate with the best macro-F1 of dev pairs, everything switched on, at the first seed."""
    whole, seed = next(iter(ABLATIONS)), given.seeds[0]

    def reached(rate: float) -> Result:
        parts = supervision_data(given.data, seed, given.quick)
        return {"macro_f1": train_supervised(given, whole, seed, rate, parts).record.metrics["macro_f1"]}

    found = {rate: store.once(f"supervision rate/{rate:g}", seed, lambda rate=rate: reached(rate)) for rate in RATES}
    best = max(found, key=lambda rate: found[rate]["macro_f1"])
    for rate in {*RATES} - {best}:
        forget(work_folder(given, "supervision", whole, f"{rate:g}", seed))
    return best


def by_step(test: Dataset, system: str) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for record in test.outputs_with_context():
        if record.system == system and record.step is not None:
            found.setdefault(record.step, []).append(record)
    return dict(sorted(found.items()))


def of_steps(evaluator: Any, test: Dataset, quick: bool) -> dict[str, float]:
    """Spearman of the checkpoints' skill with their step, for the model seen in training and for the other one."""
    evaluator, found = by_verdicts(evaluator), dict[str, float]()
    for system in ("ngram", "unseen"):
        steps = by_step(test, system)
        ratings = evaluator.rank({str(step): rows for step, rows in steps.items()}, seeds=20,
                                 max_items=4 if quick else MEETINGS[1])  # fmt: skip
        found[f"{system}_spearman"] = spearman(
            list(map(float, steps)), [ratings.rating_of(str(step)) for step in steps]
        ).value
    return found


def shares(test: Dataset, compare: Callable[[list[Record], list[Record]], np.ndarray]) -> dict[str, float]:
    """Share of items on which the last checkpoint beats the first, or people's first reply a wrong one, and the other
    way round; the sign of `compare` says who wins."""
    pairs = {}
    for system in ("ngram", "unseen"):
        first, *_, last = by_step(test, system).values()
        pairs[f"{system}_last_over_first", f"{system}_first_over_last"] = last, first
    for kind in ("adversarial", "random"):
        negatives = [record for record in test.outputs_with_context() if record.system == kind]
        people = [replace(record, text=record.references[0]) for record in negatives]
        pairs[f"people_over_{kind}", f"{kind}_over_people"] = people, negatives
    found = {}
    for (better, worse), (one, other) in pairs.items():
        signs = compare(one, other)
        found |= {better: float((signs > 0).mean()), worse: float((signs < 0).mean())}
    return found


def floors_of(test: Dataset) -> dict[str, Any]:
    """The same figures by means, and by single scores, of length, overlap with the context and the random sentinel."""
    found: dict[str, Any] = {"items": len(test.items), "checkpoints": len(by_step(test, "ngram"))}
    for name in FLOORS:
        sentinel = load(name)
        by = shares(test, lambda one, other, by=sentinel: by.score(one) - by.score(other))
        for system in ("ngram", "unseen"):
            steps = by_step(test, system)
            means = [sentinel.system_score(rows) for rows in steps.values()]
            by[f"{system}_spearman"] = spearman(list(map(float, steps)), means).value
        found[name] = by
    return found


# The demonstration: which checkpoint would each pick?


def run_selection(given: Given, store: Store) -> None:
    def make() -> Result:
        folder = work_folder(given, "selection")
        build(folder / "demo", seed=7)
        parts = read_dataset(folder / "demo").split(seed=SPLIT_SEED, shares=(0.45, 0.1, 0.45))
        options: dict[str, Any] = {**QUICK, "pairs_per_epoch": 32} if given.quick else {"human_pairs": 4000}
        evaluator = fit("comparative", parts[0], dev=parts[1], aspect="naturalness", encoder=given.encoder,
                        folder=folder / "training", **options)  # fmt: skip
        names = ("length", "overlap", "random", "bleu-avg", "token-f1", "distinct-2")
        evaluators = {"comparative": evaluator, **{name: load(name) for name in names}}
        report = selection_report(parts[2], evaluators, aspect="naturalness")
        forget(folder)
        return {"table": report.as_markdown(), "simulated": report.simulated, "items": len(parts[2].items)}

    store.once("selection/demo", SPLIT_SEED, make)


# What follows makes the page from the results.


def resampled(values: np.ndarray, groups: Sequence[str], seed: int = 13) -> tuple[float, float, float]:
    """Mean with its 95 % percentile interval from drawing whole groups."""
    _, codes = np.unique(np.asarray(groups), return_inverse=True)
    sums, counts = np.bincount(codes, weights=values), np.bincount(codes).astype(float)
    draws = np.random.default_rng(seed).integers(len(sums), size=(RESAMPLES, len(sums)))
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    return float(values.mean()), *np.percentile(means, [2.5, 97.5]).tolist()


def cell(values: Sequence[float] | np.ndarray, groups: Sequence[str], sign: str = "") -> str:
    mean, low, high = resampled(np.asarray(values, dtype=float), groups)
    return f"{mean:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


@dataclass(frozen=True)
class Verdicts:
    """All pairs of a setting: truth, the longer text and the most frequent verdict, each (n,); of each seed of training
    the verdict and the lean, (n, seeds)."""

    groups: list[str]
    truth: np.ndarray
    said: np.ndarray
    lean: np.ndarray
    longer: np.ndarray
    usual: np.ndarray

    @classmethod
    def of(cls, seeds: Sequence[Sequence[Fold]]) -> Verdicts:
        first = seeds[0]
        said, lean = (
            np.stack([np.concatenate([fold.result[name] for fold in folds]) for folds in seeds], axis=1)
            for name in ("said", "lean")
        )
        return cls(
            [group for fold in first for group in fold.groups],
            np.concatenate([fold.truth for fold in first]),
            said,
            lean,
            np.concatenate([fold.longer for fold in first]),
            np.concatenate([np.full(len(fold.groups), fold.result["usual"]) for fold in first]),
        )

    @property
    def decided(self) -> np.ndarray:
        return self.truth != 0

    @property
    def right(self) -> np.ndarray:
        """(n, seeds): whether the verdict is that of people."""
        return (self.said == self.truth[:, None]).astype(float)

    def forced(self) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Of decided pairs: whether the evaluator's lean (of each seed) and the longer text are right, a draw half; the
        groups."""
        ours = (np.sign(self.lean) == self.truth[:, None])[self.decided].astype(float)
        theirs = np.where(self.longer == 0, 0.5, self.longer == self.truth)[self.decided]
        return ours, theirs, [group for group, keep in zip(self.groups, self.decided, strict=True) if keep]


#: Of each setting the folds of every seed that has all those of the first.
Computed = Mapping[str, Sequence[Sequence[Fold]]]


def seeds_of(given: Given, setting: Setting, store: Store) -> list[list[Fold]]:
    found = [folds_of(given, setting, store, seed) for seed in dict.fromkeys((SPLIT_SEED, *given.seeds))]
    return [folds for folds in found if folds and len(folds) == len(found[0])]


def comparison_table(computed: Computed, store: Store) -> list[str]:
    lines = []
    for setting in SETTINGS:
        seeds = computed[setting.name]
        if not seeds:
            continue
        v, results = Verdicts.of(seeds), [fold.result for folds in seeds for fold in folds]
        each, theirs, own = v.forced()
        ours = each.mean(axis=1)
        choice = results[0]["choice"]
        steps = store.rows[f"{setting.name}/rate/{choice}", SPLIT_SEED]["steps"]
        lines.append(
            f"| {setting.name}, {len(seeds[0])} of {setting.folds} folds | {len(seeds)} | {v.decided.sum()} | "
            f"{cell(ours, own)} | {cell(theirs, own)} | {cell(ours - theirs, own, '+')} | {len(v.truth)} | "
            f"{cell(v.right.mean(axis=1), v.groups)} | {cell(v.longer == v.truth, v.groups)} | "
            f"{cell(v.usual == v.truth, v.groups)} | {np.mean([row['swap_consistency'] for row in results]):.2f} | "
            f"{choice} | {np.mean([row['train_pairs'] for row in results]):.0f}, {steps} | "
            f"{np.median([row['training_seconds'] for row in results]):.0f} |"
        )
    head = (
        "set, seeds, decided pairs, comparative, the longer wins, difference, all pairs, comparative, the longer wins, "
        "most frequent verdict, both ways alike, learning rate, pairs and steps of training, seconds a fold (median)"
    )
    return [*table(head.split(", "), []), *lines] if lines else []


def seeds_table(computed: Computed) -> list[str]:
    """How far the figures of the table above move with the seed of training: mean, SD, least and largest."""
    lines = []
    for name, seeds in computed.items():
        if len(seeds) < 2:
            continue
        v = Verdicts.of(seeds)
        each, theirs, _ = v.forced()
        ours = each.mean(axis=0)
        lines.append(
            f"| {name} | {len(seeds)} | {spread(ours)} | {spread(ours - theirs.mean(), '+')} | "
            f"{spread(v.right.mean(axis=0))} |"
        )
    head = "set, seeds, decided pairs: comparative, difference to the longer wins, all pairs: comparative"
    return table(head.split(", "), []) + lines if lines else []


def spread(values: Sequence[float], sign: str = "") -> str:
    return (
        f"{np.mean(values):{sign}.3f} (SD {np.std(values, ddof=1):.3f}; {min(values):{sign}.3f} to "
        f"{max(values):{sign}.3f})"
    )


def shown(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


def verdicts_in_words(computed: Computed) -> list[str]:
    """One line a set: above or below the floors, or not told apart from them; the shorter text is one where people
    prefer it."""
    lines = []
    for setting in SETTINGS:
        if not computed[setting.name]:
            continue
        v = Verdicts.of(computed[setting.name])
        each, theirs, own = v.forced()
        ours = each.mean(axis=1)
        _, low, high = resampled(ours - theirs, own)
        right, usual = v.right.mean(axis=1), v.usual == v.truth
        _, low_usual, high_usual = resampled(right - usual, v.groups)
        ties = f"; it calls {np.mean(v.said == 0):.0%} of all pairs tied, people {np.mean(v.truth == 0):.0%}"
        shorter = ""
        if theirs.mean() < 0.5:
            _, low_other, high_other = resampled(ours - (1 - theirs), own)
            shorter = (
                f"and {against(low_other, high_other)} *the shorter wins*, which is right in "
                f"{1 - theirs.mean():.3f} of them ({low_other:+.3f} to {high_other:+.3f}), "
            )
        lines.append(
            f"- {setting.name}: of decided pairs {against(low, high)} *the longer wins* ({low:+.3f} to {high:+.3f}), "
            f"{shorter}of all pairs {against(low_usual, high_usual)} the most frequent verdict ({low_usual:+.3f} to "
            f"{high_usual:+.3f}){ties}."
        )
    return lines


def variants_in_words(given: Given, computed: Computed) -> list[str]:
    """What reading more, or more steps, bring on the same held-out pairs with the same first seeds of training."""
    lines = []
    for setting in SETTINGS:
        seeds = computed[setting.name]
        if not setting.of or not seeds or len(computed[setting.of]) < len(seeds):
            continue
        numbers = {fold.number for fold in seeds[0]}
        whole = computed[setting.of][: len(seeds)]
        others = Verdicts.of([[fold for fold in folds if fold.number in numbers] for folds in whole])
        found = Verdicts.of(seeds)
        each, _, own = found.forced()
        decided = (each - others.forced()[0]).mean(axis=1)
        every = (found.right - others.right).mean(axis=1)
        lines.append(
            f"- {setting.name} beside {setting.of}, on the same {len(decided)} decided and {len(every)} pairs of all, "
            f"{len(seeds)} seed{'s' * (len(seeds) > 1)}: {cell(decided, own, '+')} and "
            f"{cell(every, found.groups, '+')} right."
        )
    cut = {setting.name: share_cut(given, setting, computed[setting.name]) for setting in SETTINGS}
    said = [f"{share:.0%} of the held-out pairs of {name}" for name, share in cut.items() if share]
    if said:
        lines.append(f"- Longer than what is read of a pair, so that its end is cut off: {', '.join(said)}.")
    return lines


def share_cut(given: Given, setting: Setting, seeds: Sequence[Sequence[Fold]]) -> float:
    """The share of held-out pairs whose end is cut off before they are read."""
    if not seeds:
        return 0.0
    reader = PairReader(find_encoder(given.encoder), max_length=setting.max_length)
    sides = [pair for fold in seeds[0] for pair in fold.sides]
    return float(np.mean(reader.pairs([a for a, _ in sides], [b for _, b in sides]).truncated))


def against(low: float, high: float) -> str:
    """What an interval of a difference says."""
    return "above" if low > 0 else "**below**" if high < 0 else "not told apart from"


def system_table(computed: Computed) -> list[str]:
    lines = []
    for name, seeds in computed.items():
        for same in zip(*seeds, strict=True):
            fold = same[0]
            if not fold.result["systems"]:
                continue
            rows = [order_of(one) for one in same]
            cells = [over_seeds(rows, key) for key in ("spearman", "kendall")]
            cells += [shown(rows[0][key]) for key in ("length_spearman", "length_kendall")]
            at_rest = np.mean([one.result["systems"]["converged"] for one in same])
            lines.append(
                f"| {name} | {fold.number + 1} | {len(same)} | {rows[0]['systems']:.0f} | {' | '.join(cells)} | "
                f"{at_rest:.2f} |"
            )
    head = "set, fold, seeds, systems, skill rating: Spearman, Kendall, mean length: Spearman, Kendall, games at rest"
    return [*table(head.split(", "), []), *lines] if lines else []


def order_of(fold: Fold) -> dict[str, float]:
    """How the skill ratings and the mean lengths of a fold order the systems beside people's win rates."""
    found = fold.result["systems"]
    names = sorted(fold.win_rates.keys() & found["skill"].keys())
    human = [fold.win_rates[name] for name in names]
    skill, length = ([found[by][name] for name in names] for by in ("skill", "length"))
    return {
        "systems": len(names),
        "spearman": spearman(human, skill).value,
        "kendall": kendall(human, skill).value,
        "length_spearman": spearman(human, length).value,
        "length_kendall": kendall(human, length).value,
    }


def outcome_table(computed: Computed) -> list[str]:
    """The order from no more than the judged pairs: by what the evaluator says of them and by how it leans."""
    lines = []
    for name, seeds in computed.items():
        for same in zip(*seeds, strict=True):
            rows = [order_of_pairs(one) for one in same]
            if rows[0]["systems"] < FEWEST:
                continue
            cells = [over_seeds(rows, key) for key in ("said", "lean")]
            lines.append(
                f"| {name} | {same[0].number + 1} | {len(same)} | {len(same[0].groups)} | {rows[0]['systems']:.0f} | "
                f"{' | '.join(cells)} | {shown(rows[0]['length'])} |"
            )
    head = "set, fold, seeds, pairs, systems, mean verdict, expected outcome, mean length of these pairs' texts"
    return [*table(head.split(", "), []), *lines] if lines else []


def order_of_pairs(fold: Fold) -> dict[str, float]:
    """Spearman with people's win rates of each system's mean over the judged pairs that it is in: of verdicts, of
    p(better) - p(worse), which orders as the expected outcome does, and of its texts' lengths."""
    columns: dict[str, list[tuple[float, float]]] = {
        name: [(float(x), -float(x)) for x in fold.result[name]] for name in ("said", "lean")
    }
    columns["length"] = [(len(a.text), len(b.text)) for a, b in fold.sides]
    found: dict[str, float] = {}
    for column, values in columns.items():
        of: dict[str, list[float]] = {}
        for sides, pair in zip(fold.sides, values, strict=True):
            for record, value in zip(sides, pair, strict=True):
                of.setdefault(str(record.system), []).append(value)
        names = sorted(of.keys() & fold.win_rates.keys())
        means = [float(np.mean(of[name])) for name in names]
        found[column] = spearman([fold.win_rates[name] for name in names], means).value if len(names) > 1 else np.nan
        found["systems"] = len(names)
    return found


def outcome_in_words(computed: Computed) -> str:
    """How this way of counting was chosen, and what other sets say of it."""
    rows = {
        name: [row for folds in seeds for fold in folds if (row := order_of_pairs(fold))["systems"] >= FEWEST]
        for name, seeds in computed.items()
    }
    seen = [row for name, own in rows.items() if name.startswith("e2e") for row in own]
    said, lean = ([row[key] for row in seen if row[key] == row[key]] for key in ("said", "lean"))
    parts = []
    if said and lean:
        parts.append(
            f"On e2e mean verdicts give an order in {len(said)} of {len(seen)} trainings (Spearman {min(said):.2f} to "
            f"{max(said):.2f}), expected outcomes in {len(lean)} ({min(lean):.2f} to {max(lean):.2f})."
        )
    parts.append(
        "**How this came about:** that most pairs are called tied was seen on these very folds of e2e before profile "
        "recommended was made to count expected outcomes (`outcome`), so they are no independent evidence for it. It "
        "was chosen by reasoning and not tuned ([why](../decisions/comparative-scores.md)): a game that counts "
        "p(better) + p(tie) / 2 is the mean of games whose verdicts are drawn by these probabilities."
    )
    others = [
        f"{name} ({own[0]['systems']:.0f} systems, {len(own)} trainings) {mean_of(own, 'said')} by verdicts, "
        f"{mean_of(own, 'lean')} by expected outcomes"
        for name, own in rows.items()
        if own and not name.startswith("e2e")
    ]
    if others:
        parts.append(
            "Other sets, looked at afterwards, have few systems and few pairs that are called tied, and do not settle "
            f"it: mean Spearman of {'; of '.join(others)}, where one rank moves a training's figure by tenths."
        )
    parts.append("The skill ratings of this page count verdicts, as they did when its first rows were computed.")
    return " ".join(parts)


def mean_of(rows: Sequence[Mapping[str, float]], key: str) -> str:
    values = [row[key] for row in rows if row[key] == row[key]]
    return f"{np.mean(values):.2f}" if values else "-"


def over_seeds(rows: Sequence[Mapping[str, Any]], key: str, digits: int = 3) -> str:
    """Mean and SD; where it is undefined on some seeds, as with ratings that are all alike, on how many it is not."""
    values = [row[key] for row in rows if row.get(key) is not None and row[key] == row[key]]
    if not values:
        return "-"
    more = [f"SD {np.std(values, ddof=1):.{digits}f}"] if len(values) > 1 else []
    more += [f"defined on {len(values)} of {len(rows)} seeds"] if len(values) < len(rows) else []
    return f"{np.mean(values):.{digits}f}" + (f" ({'; '.join(more)})" if more else "")


def supervision_table(store: Store, seeds: Sequence[int]) -> list[str]:
    columns = (
        "ngram_spearman", "unseen_spearman", "ngram_last_over_first", "ngram_first_over_last",
        "people_over_adversarial", "adversarial_over_people", "people_over_random", "random_over_people",
    )  # fmt: skip
    head = (
        "evaluator, seeds, dev macro-F1, Spearman with step, the same: unseen model, last over first / reverse, "
        "people over adversarial / reverse, people over random / reverse, seconds"
    )
    floors = store.of("supervision/floors", seeds)
    found = {name: store.of(f"supervision/{name}", seeds) for name in ABLATIONS}
    if not floors or not any(found.values()):
        return []  # one says nothing without the other
    found |= {f"{name} (floor)": [row[name] for row in floors] for name in FLOORS}
    lines = []
    for name, results in found.items():
        if not results:
            continue
        macro_f1, *c = [over_seeds(results, column) for column in ("dev_macro_f1", *columns)]
        shown_shares = f"{c[2]} / {c[3]} | {c[4]} / {c[5]} | {c[6]} / {c[7]}"
        seconds = over_seeds(results, "training_seconds", digits=0)
        lines.append(f"| {name} | {len(results)} | {macro_f1} | {c[0]} | {c[1]} | {shown_shares} | {seconds} |")
    return [*table(head.split(", "), []), *lines]


def from_more(lines: Sequence[str]) -> str:
    """What settings with a larger training part learn from, where they stand in the table."""
    more = [one for one in SETTINGS if one.learns and any(line.startswith(f"| {one.name}, ") for line in lines)]
    return "".join(f"; *{one.name}* learns from {one.learns}" for one in more)


def not_computed(lines: Sequence[str]) -> str:
    missing = [name for name in ABLATIONS if not any(line.startswith(f"| {name} |") for line in lines)]
    return f" Not computed yet: {', '.join(missing)}." if missing else ""


def tried(store: Store, separator: str) -> list[tuple[str, str, Result]]:
    """What stands before and behind the separator in the names of settings, with the results."""
    parts = ((setting.partition(separator), row) for (setting, _), row in store.rows.items())
    return [(before, behind, row) for (before, said, behind), row in parts if said]


def page(given: Given, store: Store) -> list[str]:
    """The page, from what the store holds."""
    computed = {setting.name: seeds_of(given, setting, store) for setting in SETTINGS}
    seeds = seeds_table(computed)
    return [
        "# The comparative evaluator on real data",
        "",
        *(["**A trial at small scale: these figures say nothing.**", ""] if given.quick else []),
        f"Encoder: {given.encoder or 'the installed MiniLM (all-MiniLM-L6-v2)'}. Profile: recommended. Intervals: "
        "95 %, bootstrap over split groups.",
        "",
        f"Made by `docs/results/comparative.py`. {machine_line(store.figures(), store.code, store.checks)}",
        "",
        "## Trained on people's comparisons",
        "",
        *(comparison_lines(given, computed, store) if any(computed.values()) else [ABSENT]),
        *(["", "How far these figures move with the seed of training alone:", "", *seeds] if seeds else []),
        "",
        "## Strong and weak supervision alone",
        "",
        *(supervision_lines(given, store) or [ABSENT]),
        "",
        *selection_lines(store),
    ]


def comparison_lines(given: Given, computed: Computed, store: Store) -> list[str]:
    compared, tried_more = comparison_table(computed, store), variants_in_words(given, computed)
    rates = "; ".join(f"{name} {rate} ({row['dev_loss']:.3f})" for name, rate, row in tried(store, "/rate/"))
    lines = [
        f"Cross-fitted over {FOLDS} folds of whole groups (of e2e 60 groups of each part{from_more(compared)}). An "
        "eighth of the training part chooses the epoch, and in the first fold, by the least dev loss, the learning "
        "rate. The tokens of either text are pooled apart (`sides`, of profile recommended). A pair's truth is the "
        "verdict most people gave; pairs without one are left out. Decided pairs: a forced choice, so drawing "
        "reaches .5; all pairs: three verdicts. Of several seeds of training a pair counts with the share of them that "
        "are right; groups, parts and learning rate are the same for all.",
        "",
        *compared,
        "",
        "Both ways alike: share of pairs with the same verdict whichever text comes first. In words, by the "
        "intervals of the differences:",
        "",
        *verdicts_in_words(computed),
        "",
        *(["What else was tried:", "", *tried_more, ""] if tried_more else []),
        f"Learning rates tried on dev: {rates} (least dev loss in brackets). Where a figure is not above its floor the "
        "likely reason is how little there is to learn from: some hundred pairs, and an encoder of single sentences "
        "that has to become a reader of pairs. Tried, and of little help: while the tokens of both texts were pooled "
        "together, five times the steps (below) and, on e2e, six times the groups; with the texts pooled apart, on "
        "pandalm, reading them to their end and twice the steps (above). What helped was pooling them apart "
        "([why](../decisions/comparative-evaluator.md)). Not tried: larger encoders.",
    ]
    orders = {setting.name: computed[setting.name] for setting in SETTINGS if not setting.of}
    systems, outcomes = system_table(orders), outcome_table(orders)
    if systems:
        lines += [
            "",
            "Order of the systems on held-out items against people's win rates, mean over seeds; an evaluator that "
            "calls every pair tied gives none:",
            "",
            *systems,
        ]
    if outcomes:
        lines += [
            "",
            "Order of the systems on the judged held-out pairs, by mean verdict and by expected outcome: Spearman with "
            "people's win rates, mean over seeds:",
            "",
            *outcomes,
            "",
            outcome_in_words(orders),
        ]
    return lines


def supervision_lines(given: Given, store: Store) -> list[str]:
    supervision = supervision_table(store, given.seeds)
    if not supervision:
        return []
    floors = store.of("supervision/floors", given.seeds)
    items, checkpoints = floors[0]["items"], floors[0]["checkpoints"]
    longer = np.mean([row["length"]["adversarial_over_people"] for row in floors])
    rates = ", ".join(f"{rate}: {row['macro_f1']:.3f}" for _, rate, row in tried(store, "supervision rate/"))
    return [
        "No human judgement: dailydialog_pp's replies are better than its adversarial and random negatives and "
        "than the demonstration's word n-gram model, whose later checkpoints are better than earlier ones. "
        f"Held-out contexts of a seed: {items}; {checkpoints} checkpoints, rated with Glicko-2 over 20 "
        f"seeds on {MEETINGS[1]} of them. The unseen model has another order and was not in training. A training "
        f"has {SUPERVISION['epochs']} epochs of {SUPERVISION['pairs_per_epoch']} pairs; its learning rate was "
        f"chosen by macro-F1 on dev pairs ({rates}). Where it is not said otherwise the tokens "
        "of either text are pooled apart. Macro-F1 is over the three classes of a pair; over two without tie, and "
        "without comparison over people's and machines' texts.",
        "",
        *supervision,
        "",
        "Read each line beside the floor of length: later checkpoints write longer texts, and "
        f"{longer:.0%} of the adversarial negatives are longer than people's "
        "replies, so that a reader of no more than length is right about the checkpoints and wrong about people. A "
        f"share of {items} contexts has a 95 % interval of at most ± {0.98 / items**0.5:.2f}."
        f"{not_computed(supervision)}",
    ]


def selection_lines(store: Store) -> list[str]:
    found = store.rows.get(("selection/demo", SPLIT_SEED))
    if found is None:
        return []
    return [
        "## Which checkpoint would each pick?",
        "",
        f"The demonstration project, {found['items']} held-out items in ten parts. **Its {found['simulated']:,} "
        "ratings are simulated**: this shows the report at work, not a result.",
        "",
        found["table"],
    ]


def main() -> None:
    parts = (*(setting.name for setting in SETTINGS), "supervision", "ablations", "selection")
    given = arguments(__doc__ or "", seeds=SEEDS, parts=parts, without=("items",))
    store = store_of(given, "comparative", "comparative")
    if not given.page_only:
        for setting in SETTINGS:
            if given.wants(setting.name):
                run_comparisons(given, setting, read_compared(given, setting), store)
        run_supervision(given, store)
        if given.wants("selection"):
            run_selection(given, store)
    publish(given, "comparative", page(given, store))


if __name__ == "__main__":
    main()
