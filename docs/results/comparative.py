"""The comparative evaluator on real data: trained on people's comparisons, and on strong and weak pairs alone.

    python docs/results/comparative.py --out FOLDER [--data FOLDER] [--only pandalm supervision ...] [--small]

One result per (setting, fold or seed) is appended to FOLDER/results.json; what stands there is not computed again, so
a run that was cut off goes on. comparative.md beside this script is written from that file alone.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from store import code_line, state_of_code

from evalapp.demo import words
from evalapp.demo.build import build
from evalapp.demo.ngram import NgramModel, Sample
from evalapp.stats import kendall, rank_by_win_rate, spearman
from scoring.ml import Dataset, Item, Output, Record, System, fit, load, read_dataset
from scoring.ml.selection import selection_report
from scoring.ml.training.cross_fit import merge
from scoring.ml.training.gold import compared_records, key_of
from scoring.ml.training.record import group_of

CODE = state_of_code("comparative")
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FOLDS, DEV_SHARE, SPLIT_SEED = 3, 0.125, 13
RESAMPLES = 2000
RATES = (5e-5, 2e-4)
#: Small batches: with few pairs the number of steps is what is short.
BATCH = 16
#: Items on which systems and checkpoints meet.
MEETINGS = 10, 20
#: Supervision without people.
SUPERVISION: Mapping[str, Any] = {"pairs_per_epoch": 1600, "epochs": 3, "batch_size": BATCH, "max_length": 64}
FLOORS = ("length", "overlap", "random")
#: Replies the n-gram model has read: each checkpoint three times as many as the one before, so that later is better.
STEPS = (30, 100, 300, 1000, 3000, 10_000)
SMALL: Mapping[str, Any] = {"max_steps": 3, "batch_size": 4, "max_length": 48, "epochs": 1, "references": 5}
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
    is another number. The first so many `folds` are computed."""

    name: str
    folder: str
    aspect: str
    epochs: int
    most: int | None = None
    learns: int | None = None
    folds: int = FOLDS
    max_length: int | None = None
    poolings: tuple[str, ...] = ("sides",)


SETTINGS = (
    Setting("pandalm", "pandalm", "overall", 6, max_length=128),
    Setting("scratchplot", "scratchplot", "ending", 8),  # the whole text: what is judged stands at its end
    Setting("e2e-naturalness", "e2e", "naturalness", 2, most=60),
    Setting("e2e-quality", "e2e", "quality", 2, most=60),
    # What more pairs and more steps bring: the same test part.
    Setting("e2e-quality-from-more", "e2e", "quality", 2, most=60, learns=360, folds=1),
)


class Store:
    """Results by key in one JSON file, written after each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self.rows:
            began = time.monotonic()
            value = make()
            self.rows[key] = {"seconds": round(time.monotonic() - began, 1), "code": CODE, **value}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft = self.path.with_suffix(".draft")
            draft.write_text(json.dumps(self.rows, indent=1) + "\n", encoding="utf-8")
            draft.replace(self.path)
            print(key, {k: v for k, v in self.rows[key].items() if not isinstance(v, list)}, flush=True)
        return self.rows[key]


# Trained on people's comparisons


def few_groups(data: Dataset, most: int | None) -> Dataset:
    """The rows of the first so many groups, in the order of a hash."""
    groups = {group_of(item.group, item.id) for item in data.items}
    if most is None or len(groups) <= most:
        return data
    return data.split(seed=SPLIT_SEED + 2, shares=(most, len(groups) - most))[0]


def part_of(data: Dataset, setting: Setting, fold: int, small: bool) -> tuple[Dataset, Dataset, Dataset]:
    """Train, dev and test of a fold; groups never part."""
    parts = data.split(seed=SPLIT_SEED, shares=(1.0,) * FOLDS)
    rest = merge([part for number, part in enumerate(parts) if number != fold])
    train, dev = rest.split(seed=SPLIT_SEED + 1, shares=(1 - DEV_SHARE, DEV_SHARE))
    most = 8 if small else setting.most
    learned = few_groups(train, most if small else setting.learns or most)
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
class Choice:
    """What dev chooses between."""

    rate: float
    pooling: str

    def __str__(self) -> str:
        return f"{self.rate:g} {self.pooling}"


def train_options(setting: Setting, choice: Choice, small: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"strong": "no", "weak": "no", "epochs": setting.epochs, "learning_rate": choice.rate}
    options["pooling"] = choice.pooling
    options["batch_size"] = BATCH
    options["max_length"] = setting.max_length
    return options | (SMALL if small else {})


def run_comparisons(setting: Setting, data: Dataset, out: Path, store: Store, small: bool) -> None:
    choices = [Choice(rate, pooling) for pooling in setting.poolings for rate in RATES]

    def trained(fold: int, choice: Choice) -> Any:
        train, dev, _ = part_of(data, setting, fold, small)
        folder = out / "work" / f"{setting.name}-{fold}-{choice}".replace(" ", "-")
        return fit("comparative", train, dev=dev, aspect=setting.aspect, folder=folder, seed=SPLIT_SEED + fold,
                   **train_options(setting, choice, small))  # fmt: skip

    def on_dev(choice: Choice) -> dict[str, Any]:
        found = trained(0, choice)
        return {"dev_loss": min(row["dev_loss"] for row in found.record.log), "steps": found.record.steps}

    losses = {one: store.get(f"{setting.name}/rate/{one}", lambda one=one: on_dev(one)) for one in choices}
    best = min(losses, key=lambda one: losses[one]["dev_loss"])
    store.get(f"{setting.name}/people", lambda: {"win_rates": people_win_rates(data, setting.aspect)})
    for fold in range(1 if small else setting.folds):

        def on_test(fold: int = fold) -> dict[str, Any]:
            evaluator = trained(fold, best)
            train, _, test = part_of(data, setting, fold, small)
            pairs = judged_pairs(test, setting.aspect)
            verdicts = evaluator.judge([a for a, _, _, _ in pairs], [b for _, b, _, _ in pairs])
            usual = Counter(sign for _, _, sign, _ in judged_pairs(train, setting.aspect)).most_common(1)[0][0]
            rows = [
                [group, sign, int(said), float(p[2] - p[0]), int(np.sign(len(a.text) - len(b.text))), usual]
                for (a, b, sign, group), said, p in zip(
                    pairs, verdicts.signs.tolist(), verdicts.probabilities, strict=True
                )
            ]
            judged = people_win_rates(data, setting.aspect)
            systems = skill_and_length(evaluator, test, set(judged), small) if len(judged) > 5 else {}
            return {
                "choice": str(best),
                "train_pairs": evaluator.record.examples.get("compared pairs", 0),
                "training_seconds": round(evaluator.record.seconds, 1),
                "swap_consistency": verdicts.swap_consistency,
                "rows": rows,
                "systems": systems,
            }

        store.get(f"{setting.name}/fold/{fold}", on_test)


def skill_and_length(evaluator: Any, test: Dataset, judged: set[str], small: bool) -> dict[str, Any]:
    """Skill rating and mean length of every system people compared, on the held-out items."""
    outputs: dict[str, list[Record]] = {}
    for record in test.outputs_with_context():
        if record.text.strip() and record.system in judged:
            outputs.setdefault(record.system, []).append(record)
    found = evaluator.rank(outputs, seeds=20, max_items=3 if small else MEETINGS[0])
    return {
        "skill": {row.system: row.estimate.value for row in found.systems},
        "length": {name: float(np.mean([len(r.text) for r in records])) for name, records in outputs.items()},
        "converged": found.converged,
    }


def people_win_rates(data: Dataset, aspect: str) -> dict[str, float]:
    rows = [row for row in data.comparisons if row.aspect == aspect and row.system_b is not None]
    ranking = rank_by_win_rate(
        [row.item for row in rows], [row.system_a for row in rows], [row.system_b for row in rows],
        [row.verdict for row in rows], resamples=10,
    )  # fmt: skip
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


def supervision_data(folder: Path, seed: int, small: bool) -> tuple[Dataset, Dataset, Dataset]:
    """Train, dev and test: contexts with five human replies, a human-written adversarial and a random negative, and
    the n-gram model at ten steps. The model learned from other groups; test also has one of another order."""
    whole = read_dataset(folder / "dailydialog_pp")
    plain = [item for item in whole.items if not item.meta.get("adversarial_negatives")]
    rich = [item for item in whole.items if item.meta.get("adversarial_negatives")]
    taken = {group_of(item.group, item.id) for item in rich}
    learned = [item for item in plain if group_of(item.group, item.id) not in taken]
    parts = replace(whole, items=tuple(rich)).split(seed=seed, shares=(0.8, 0.1, 0.1))
    sizes = (12, 4, 6) if small else (400, 80, 120)
    steps = STEPS[2::3] if small else STEPS
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


def run_supervision(data: Path, out: Path, store: Store, small: bool, seeds: Sequence[int]) -> None:
    for seed in seeds:
        # The whole on every seed, what is left out on the first.
        wanted = list(ABLATIONS) if seed == seeds[0] else list(ABLATIONS)[:1]
        missing = [name for name in wanted if f"supervision/{name}/{seed}" not in store.rows]
        if not missing and f"supervision/floors/{seed}" in store.rows:
            continue
        parts = supervision_data(data, seed, small)
        store.get(f"supervision/floors/{seed}", lambda test=parts[2]: floors_of(test))

        def trained(name: str, rate: float, seed: int = seed, parts: Sequence[Dataset] = parts) -> Any:
            options = {**SUPERVISION, **ABLATIONS[name], **({**SMALL, "pairs_per_epoch": 32} if small else {})}
            place = out / "work" / f"supervision-{name.replace(' ', '-')}-{rate:g}-{seed}"
            return fit("comparative", parts[0], dev=parts[1], seed=seed, folder=place, learning_rate=rate, **options)

        rate = chosen_on_dev(store, trained)
        for name in missing:

            def make(
                name: str = name, rate: float = rate, fitted: Callable[..., Any] = trained, test: Dataset = parts[2]
            ) -> dict[str, Any]:
                evaluator = fitted(name, rate)
                return {
                    **of_steps(evaluator, test, small),
                    **shares(test, evaluator.compare),
                    "rate": rate,
                    "training_seconds": round(evaluator.record.seconds, 1),
                    "steps": evaluator.record.steps,
                    "dev_macro_f1": evaluator.record.metrics.get("macro_f1"),
                }

            store.get(f"supervision/{name}/{seed}", make)


def chosen_on_dev(store: Store, trained: Callable[[str, float], Any]) -> float:
    """The learning rate with the best macro-F1 of dev pairs, everything switched on, at the first seed."""
    whole = next(iter(ABLATIONS))
    found = {
        rate: store.get(
            f"supervision rate/{rate:g}", lambda r=rate: {"macro_f1": trained(whole, r).record.metrics["macro_f1"]}
        )
        for rate in RATES
    }
    return max(found, key=lambda rate: found[rate]["macro_f1"])


def by_step(test: Dataset, system: str) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for record in test.outputs_with_context():
        if record.system == system and record.step is not None:
            found.setdefault(record.step, []).append(record)
    return dict(sorted(found.items()))


def of_steps(evaluator: Any, test: Dataset, small: bool) -> dict[str, float]:
    """Spearman of the checkpoints' skill with their step, for the model seen in training and for the other one."""
    found: dict[str, float] = {}
    for system in ("ngram", "unseen"):
        steps = by_step(test, system)
        ratings = evaluator.rank({str(step): rows for step, rows in steps.items()}, seeds=20,
                                 max_items=4 if small else MEETINGS[1])  # fmt: skip
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


def run_selection(out: Path, store: Store, small: bool) -> None:
    def make() -> dict[str, Any]:
        build(out / "demo", seed=7)
        parts = read_dataset(out / "demo").split(seed=SPLIT_SEED, shares=(0.45, 0.1, 0.45))
        options: dict[str, Any] = {**SMALL, "pairs_per_epoch": 32} if small else {"human_pairs": 4000}
        evaluator = fit("comparative", parts[0], dev=parts[1], aspect="naturalness", folder=out / "work" / "demo",
                        **options)  # fmt: skip
        names = ("length", "overlap", "random", "bleu-avg", "token-f1", "distinct-2")
        evaluators = {"comparative": evaluator, **{name: load(name) for name in names}}
        report = selection_report(parts[2], evaluators, aspect="naturalness")
        return {"table": report.as_markdown(), "simulated": report.simulated, "items": len(parts[2].items)}

    store.get("selection/demo", make)


# Tables

#: Behind what stands on the page from an earlier run, and was not computed this time.
EARLIER = "†"
EARLIER_SAID = f" {EARLIER} Of an earlier run and code, by the first token's vector or the mean of all tokens."


def kept_rows(old: str, start: str) -> list[str]:
    """Lines of the page before that begin so, marked."""
    found = [line for line in old.splitlines() if line.startswith(start)]
    return [line if EARLIER in line else line.replace(start, f"{start}{EARLIER} ", 1) for line in found]


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


def comparison_table(rows: Mapping[str, Any], old: str) -> list[str]:
    lines = [
        "| set | decided pairs | comparative | the longer wins | difference | all pairs | comparative | the longer "
        "wins | most frequent verdict | both ways alike | learning rate | pairs and steps of training | seconds a "
        "fold |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for setting in SETTINGS:
        folds = [rows[key] for key in rows if key.startswith(f"{setting.name}/fold/")]
        if not folds:
            lines += kept_rows(old, f"| {setting.name}, ")
            continue
        table = [row for fold in folds for row in fold["rows"]]
        groups = [row[0] for row in table]
        truth, said, lean, longer, usual = (np.array([row[n] for row in table]) for n in range(1, 6))
        decided = truth != 0
        own = [group for group, keep in zip(groups, decided, strict=True) if keep]
        # A forced choice; equal lengths are half right.
        ours = (np.sign(lean) == truth)[decided].astype(float)
        theirs = np.where(longer == 0, 0.5, longer == truth)[decided]
        seconds = np.mean([fold["training_seconds"] for fold in folds])
        steps = rows[f"{setting.name}/rate/{folds[0]['choice']}"]["steps"]
        lines.append(
            f"| {setting.name}, {len(folds)} of {setting.folds} folds | {decided.sum()} | {cell(ours, own)} | "
            f"{cell(theirs, own)} | "
            f"{cell(ours - theirs, own, '+')} | {len(table)} | {cell(said == truth, groups)} | "
            f"{cell(longer == truth, groups)} | {cell(usual == truth, groups)} | "
            f"{np.mean([fold['swap_consistency'] for fold in folds]):.2f} | {folds[0]['choice']} | "
            f"{np.mean([fold['train_pairs'] for fold in folds]):.0f}, {steps} | {seconds:.0f} |"
        )
    return lines if len(lines) > 2 else []


def shown(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


def verdicts_in_words(rows: Mapping[str, Any], old: str) -> list[str]:
    """One line a set: above or below the two floors, or not told apart from them."""
    lines = []
    for setting in SETTINGS:
        table = [row for key in rows if key.startswith(f"{setting.name}/fold/") for row in rows[key]["rows"]]
        if not table:
            lines += kept_rows(old, f"- {setting.name}: ")
            continue
        groups = [row[0] for row in table]
        truth, said, lean, longer, usual = (np.array([row[n] for row in table]) for n in range(1, 6))
        decided = truth != 0
        own = [group for group, keep in zip(groups, decided, strict=True) if keep]
        forced = (np.sign(lean) == truth).astype(float) - np.where(longer == 0, 0.5, longer == truth)
        _, low, high = resampled(forced[decided], own)
        _, low_usual, high_usual = resampled((said == truth).astype(float) - (usual == truth), groups)
        ties = f"; it calls {np.mean(said == 0):.0%} of all pairs tied, people {np.mean(truth == 0):.0%}"
        lines.append(
            f"- {setting.name}: of decided pairs {against(low, high)} *the longer wins* ({low:+.3f} to {high:+.3f}), "
            f"of all pairs {against(low_usual, high_usual)} the most frequent verdict ({low_usual:+.3f} to "
            f"{high_usual:+.3f}){ties}."
        )
    return lines


def against(low: float, high: float) -> str:
    """What an interval of a difference says."""
    return "above" if low > 0 else "**below**" if high < 0 else "not told apart from"


def system_table(rows: Mapping[str, Any], old: str) -> list[str]:
    lines = [
        "| set | fold | systems | skill rating: Spearman | Kendall | mean length: Spearman | Kendall | seeds at rest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for setting in SETTINGS:
        own = [key for key in rows if key.startswith(f"{setting.name}/fold/") and rows[key]["systems"]]
        lines += [] if own else kept_rows(old, f"| {setting.name} | ")
        for key in own:
            found, people = rows[key]["systems"], rows[f"{setting.name}/people"]["win_rates"]
            names = sorted(people.keys() & found["skill"].keys())
            human = [people[name] for name in names]
            cells = []
            for by in ("skill", "length"):
                values = [found[by][name] for name in names]
                cells += [shown(spearman(human, values).value), shown(kendall(human, values).value)]
            fold = int(key.rpartition("/")[2]) + 1
            lines.append(f"| {setting.name} | {fold} | {len(names)} | {' | '.join(cells)} | {found['converged']:.2f} |")
    return lines if len(lines) > 2 else []


def over_seeds(rows: Sequence[Mapping[str, Any]], key: str, digits: int = 3) -> str:
    values = [row[key] for row in rows if row.get(key) is not None and row[key] == row[key]]
    if not values:
        return "-"
    return f"{np.mean(values):.{digits}f}" + (f" (SD {np.std(values, ddof=1):.{digits}f})" if len(values) > 1 else "")


def supervision_table(rows: Mapping[str, Any]) -> list[str]:
    columns = (
        "ngram_spearman", "unseen_spearman", "ngram_last_over_first", "ngram_first_over_last",
        "people_over_adversarial", "adversarial_over_people", "people_over_random", "random_over_people",
    )  # fmt: skip
    lines = [
        "| evaluator | seeds | dev macro-F1 | Spearman with step | the same, unseen model | last over first / reverse "
        "| people over adversarial / reverse | people over random / reverse | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    floors = [rows[key] for key in rows if key.startswith("supervision/floors/")]
    found = {name: [rows[key] for key in rows if key.startswith(f"supervision/{name}/")] for name in ABLATIONS}
    if not floors or not any(found.values()):
        return []  # one says nothing without the other
    found |= {f"{name} (floor)": [row[name] for row in floors] for name in FLOORS}
    for name, results in found.items():
        if results:
            macro_f1, *c = [over_seeds(results, column) for column in ("dev_macro_f1", *columns)]
            shown_shares = f"{c[2]} / {c[3]} | {c[4]} / {c[5]} | {c[6]} / {c[7]}"
            seconds = over_seeds(results, "training_seconds", digits=0)
            lines.append(f"| {name} | {len(results)} | {macro_f1} | {c[0]} | {c[1]} | {shown_shares} | {seconds} |")
    return lines


def from_more(lines: Sequence[str]) -> str:
    """What settings with a larger training part learn from, where they stand in the table."""
    more = [one for one in SETTINGS if one.learns and any(line.startswith(f"| {one.name}, ") for line in lines)]
    return "".join(f"; *{one.name}* learns from {one.learns}" for one in more)


def not_computed(rows: Mapping[str, Any]) -> str:
    missing = [name for name in ABLATIONS if not any(key.startswith(f"supervision/{name}/") for key in rows)]
    return f" Not computed yet: {', '.join(missing)}." if missing else ""


def supervision_rates(rows: Mapping[str, Any]) -> str:
    """The learning rates tried with everything switched on, and what each reached."""
    tried = {
        key.rpartition("/")[2]: row["macro_f1"] for key, row in rows.items() if key.startswith("supervision rate/")
    }
    return ", ".join(f"{rate}: {value:.3f}" for rate, value in tried.items())


def tried_rates(rows: Mapping[str, Any]) -> str:
    found = [
        f"{name} {rate} ({row['dev_loss']:.3f})"
        for name, _, rate, row in ((*key.split("/"), row) for key, row in rows.items() if "/rate/" in key)
    ]
    return "; ".join(found) + " (least dev loss in brackets)"


def write_page(rows: Mapping[str, Any], path: Path, small: bool) -> None:
    lines = ["# The comparative evaluator on real data", ""]
    if small:
        lines += ["**A trial at small scale: these figures say nothing.**", ""]
    lines += [
        "Written by `docs/results/comparative.py` from its results; installed encoder (all-MiniLM-L6-v2), profile "
        f"recommended, CPU. Intervals: 95 %, bootstrap over split groups. {code_line(list(rows.values()), CODE)}",
        "",
    ]
    old = path.read_text(encoding="utf-8") if path.is_file() and not small else ""
    compared = comparison_table(rows, old)
    if compared:
        lines += [
            "## Trained on people's comparisons",
            "",
            f"Cross-fitted over {FOLDS} folds of whole groups (of e2e 60 groups of each part{from_more(compared)}). An "
            "eighth of the training part chooses the epoch, and in the first fold, by the least dev loss, the learning "
            "rate. The tokens of either text are pooled apart (`sides`, of profile recommended). A pair's truth is the "
            "verdict most people gave; pairs without one are left out. Decided pairs: a forced choice, so drawing "
            "reaches .5; all pairs: three verdicts.",
            "",
            *compared,
            "",
            "Both ways alike: share of pairs with the same verdict whichever text comes first. In words, by the "
            "intervals of the differences:",
            "",
            *verdicts_in_words(rows, old),
            "",
            f"Learning rates tried on dev: {tried_rates(rows)}. Where a figure is not above its floor the likely "
            "reason is how little there is to learn from: some hundred pairs, and an encoder of single sentences that "
            "has to become a reader of pairs. Tried, and no help while the tokens of both texts were pooled together: "
            "five times the steps (below) and, on e2e, six times the groups. What helped was pooling them apart "
            "([why](../decisions/comparative-evaluator.md)). Not tried: more than that with the texts pooled apart, "
            "and larger encoders." + (EARLIER_SAID if EARLIER in "".join(compared) else ""),
            "",
        ]
    systems = system_table(rows, old)
    if systems:
        lines += ["Order of the systems on held-out items against people's win rates:", "", *systems, ""]
    supervision = supervision_table(rows)
    if supervision:
        floors = next(rows[key] for key in rows if key.startswith("supervision/floors/"))
        lines += [
            "## Strong and weak supervision alone",
            "",
            "No human judgement: dailydialog_pp's replies are better than its adversarial and random negatives and "
            "than the demonstration's word n-gram model, whose later checkpoints are better than earlier ones. "
            f"Held-out contexts: {floors['items']}; {floors['checkpoints']} checkpoints, rated with Glicko-2 over 20 "
            f"seeds on {MEETINGS[1]} of them. The unseen model has another order and was not in training. A training "
            f"has {SUPERVISION['epochs']} epochs of {SUPERVISION['pairs_per_epoch']} pairs; its learning rate was "
            f"chosen by macro-F1 on dev pairs ({supervision_rates(rows)}). Where it is not said otherwise the tokens "
            "of either text are pooled apart. Macro-F1 is over the three classes of a pair; over two without tie, and "
            "without comparison over people's and machines' texts.",
            "",
            *supervision,
            "",
            "Read each line beside the floor of length: later checkpoints write longer texts, and "
            f"{floors['length']['adversarial_over_people']:.0%} of the adversarial negatives are longer than people's "
            "replies, so that a reader of no more than length is right about the checkpoints and wrong about people. A "
            f"share of {floors['items']} contexts has a 95 % interval of at most ± {0.98 / floors['items'] ** 0.5:.2f}."
            f"{not_computed(rows)}",
            "",
        ]
    if "selection/demo" in rows:
        found = rows["selection/demo"]
        lines += [
            "## Which checkpoint would each pick?",
            "",
            f"The demonstration project, {found['items']} held-out items in ten parts. **Its {found['simulated']:,} "
            "ratings are simulated**: this shows the report at work, not a result.",
            "",
            found["table"],
        ]
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", help="settings; also supervision and selection")
    parser.add_argument("--seeds", type=int, nargs="+", default=[13, 14, 15], help="of supervision")
    parser.add_argument("--small", action="store_true", help="a minute's trial; the page goes to the output folder")
    given = parser.parse_args()
    names = given.only or [*(setting.name for setting in SETTINGS), "supervision", "selection"]
    store = Store(given.out / ("small.json" if given.small else "results.json"))
    page = given.out / "comparative.md" if given.small else Path(__file__).with_suffix(".md")
    for setting in SETTINGS:
        if setting.name in names:
            # Ratings of the same outputs, where there are any, stay out: it learns from comparisons here.
            data = replace(read_dataset(given.data / setting.folder), ratings=())
            run_comparisons(setting, data, given.out, store, given.small)
            write_page(store.rows, page, given.small)
    if "supervision" in names:
        run_supervision(given.data, given.out, store, given.small, given.seeds[:1] if given.small else given.seeds)
    if "selection" in names:
        run_selection(given.out, store, given.small)
    write_page(store.rows, page, given.small)


if __name__ == "__main__":
    main()
