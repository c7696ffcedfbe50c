"""perception on e2e (21 systems): do P_sys and people order the systems alike? And its robustness on dailydialog_pp.

    python docs/results/perception.py --out FOLDER [--only choice shared per_system ablations longer robustness]

One model for all systems, cross-fitted in five folds by group, gradient penalty at every fourth step; the learning rate
is chosen on the dev part of the first fold. Texts are never made up: each kind of the robustness report is
taken from data that are of that kind.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from store import (
    ABSENT,
    Given,
    Result,
    Store,
    arguments,
    drawn,
    forget,
    machine_line,
    mean_sd,
    minutes,
    number,
    plain,
    publish,
    store_of,
    table,
    what_was_read,
    work_folder,
)

from evalapp.demo import words
from evalapp.demo.ngram import NgramModel, Sample
from evalapp.stats.correlation.coefficients import kendall, pearson, spearman
from evalapp.stats.resampling.bootstrap import percentile_interval
from scoring.ml import Dataset, Item, Output, Record, cross_fit, fit, load, read_dataset
from scoring.ml.evaluators.perception.evaluator import Perception
from scoring.ml.evaluators.perception.robustness import least_overlapping, robustness
from scoring.ml.training.cross_fit import fold_parts
from scoring.ml.training.gold import rated_records
from scoring.ml.training.record import group_of

SEEDS = (13, 14, 15)
RATES = (3e-5, 1e-4, 3e-4, 1e-3)
#: Of which each reader of dialogues chooses one on its dev part.
DIALOGUE_RATES = "0.0001,0.0003"
FOLDS, CHOICE_FOLDS, ABLATION_FOLDS = 5, 1, 2
#: Of every training where few items were asked for (`--items`): so many steps of so many pairs. On e2e a step takes
#: four seconds of one core: both sides are read behind their meaning representation.
SHORT: dict[str, Any] = {"batch_size": 16, "max_steps": 48}
#: A model of one system has a twentieth of the texts.
SHORTER: dict[str, Any] = {"max_steps": 24}
FLOORS = ("length", "random", "token-f1", "bleu-avg", "bertscore")
ASPECTS = ("quality", "naturalness")
#: What weighs the texts in P_sys; the first is the evaluator's own way.
WEIGHTS = {"c + m": ("c", "m"), "c (w/o m)": ("c",), "m (w/o c)": ("m",), "plain mean": ()}
ABLATIONS: dict[str, dict[str, Any]] = {
    "full": {},
    "w/o context": {"inputs": "text"},
    "w/o confidence": {"confidence": False},
    "w/o penalty": {"penalty": "none"},
    "penalty on pooled vectors": {"penalty": "pooled"},
    "unconditional": {"conditional": False},
}
#: What the reader learns to tell from people, and whether replies to other contexts are among it.
TRAINED_ON = {"n-gram models": False, "n-gram models and replies to other contexts": True}
#: Whether more steps bring the paper's pattern, where trainings are short: at the first seed, with the rate that the
#: short one chose; and whether the penalty, which lets P change only slowly from text to text, is what holds it back.
LONGER: dict[str, dict[str, Any]] = {
    "n-gram models, 5 times the steps": {},
    "n-gram models, 5 times the steps, without penalty": {"penalty": "none"},
}
#: The same of e2e: so many items and steps, where trainings are short, at the first seed in the folds of the ablations
#: and with the rate that the short trainings chose.
MORE_ITEMS, MORE_STEPS = 160, 240
MORE: dict[str, dict[str, Any]] = {
    "with penalty": {},
    "without penalty": {"penalty": "none"},
}
KINDS = ("MGE", "HWE", "LDHWE", "HWEBQ", "AE", "random reply")
#: Contexts to learn from and to test on: with `--items`, and without.
ROBUSTNESS_FEW, ROBUSTNESS_ALL = (400, 80), (3000, 1000)
BASELINES = ("bleu-avg", "bertscore")
RESAMPLES = 1000
#: Of 20 that are usual: every text is read once more in each.
PASSES = 5
PARTS = ("choice", "shared", "per_system", "ablations", "longer", "robustness")


def main() -> None:
    given = arguments(__doc__ or "", seeds=SEEDS, parts=PARTS)
    store = store_of(given, "perception", "perception")
    data = e2e(given)
    store.once("human", 0, lambda: people(data), data=True)
    if not given.page_only:
        if not given.only or set(given.only) - {"robustness"}:
            compute_e2e(given, store, data)
        if given.wants("longer") and given.items:
            compute_longer(given, store)
        if given.wants("robustness"):
            compute_robustness(given, store)
    publish(given, "perception", page(given, store))


def e2e(given: Given) -> Dataset:
    """The whole set; a trial has four systems."""
    data = drawn(read_dataset(given.data / "e2e"), given, quick=20)
    systems = sorted({output.system for output in data.outputs})[: 4 if given.quick else None]
    return replace(
        data,
        outputs=tuple(row for row in data.outputs if row.system in systems),
        ratings=tuple(row for row in data.ratings if row.system in systems),
        comparisons=(),
    )


def trial(given: Given) -> dict[str, Any]:
    """Options of every training; in a trial run a few steps only. The penalty is no choice of each fold's: what it does
    is a question of its own here."""
    more = {"epochs": 1, "max_steps": 3, "batch_size": 8} if given.quick else SHORT if given.items else {}
    return {"encoder": given.encoder, "penalty": "pair", **more}


def compute_e2e(given: Given, store: Store, data: Dataset) -> None:
    """The floors first, then every training that is missing."""
    first = given.seeds[0]
    human = store.rows["human", 0]
    for name in FLOORS:
        store.once(f"floor/{name}", 0, lambda name=name: floor(data, name))
    store.once("variety", 0, lambda: variety(data, human["systems"]))
    if given.wants("choice"):
        for rate in RATES[: 2 if given.quick else None]:
            store.once(f"choice/{rate:g}", first, lambda rate=rate: try_rate(given, data, rate, first))
    rate = chosen_rate(store, first)
    if given.wants("shared"):
        for seed in given.seeds:
            store.once("shared", seed, lambda seed=seed: crossed(given, data, "shared", seed, FOLDS, rate, {}))
    if given.wants("per_system"):
        some = spread_systems(human)
        part = replace(data, outputs=tuple(row for row in data.outputs if row.system in some), ratings=())
        options = {"models": "per_system", **(SHORTER if given.items and not given.quick else {})}
        store.once(
            "per_system",
            first,
            lambda: crossed(given, part, "per_system", first, ABLATION_FOLDS, rate, options) | {"chosen": some},
        )
    if given.wants("ablations"):
        for name, options in ABLATIONS.items():
            store.once(
                f"ablation/{name}", first,
                lambda name=name, options=options: crossed(given, data, name, first, ABLATION_FOLDS, rate, options),
            )  # fmt: skip


def compute_longer(given: Given, store: Store) -> None:
    """More items of e2e and more steps, with the penalty and without."""
    first = given.seeds[0]
    wide = replace(given, items=MORE_ITEMS)
    data = e2e(wide)
    store.once("longer/human", 0, lambda: people(data), data=True)
    for name in FLOORS:
        store.once(f"longer/floor/{name}", 0, lambda name=name: floor(data, name))
    rate = chosen_rate(store, first)
    for name, options in MORE.items():
        asked = options if given.quick else {"max_steps": MORE_STEPS, **options}
        store.once(
            f"longer/{name}", first,
            lambda name=name, asked=asked: crossed(wide, data, f"longer {name}", first, ABLATION_FOLDS, rate, asked),
        )  # fmt: skip


def places(data: Dataset) -> tuple[list[str], dict[str, int]]:
    """The systems in order of their names, and the column of each item."""
    return sorted({output.system for output in data.outputs}), {item.id: n for n, item in enumerate(data.items)}


def matrix(data: Dataset, records: Sequence[Record], values: Sequence[float]) -> np.ndarray:
    """(systems, items), nan where there is nothing."""
    systems, column = places(data)
    found = np.full((len(systems), len(column)), np.nan)
    for record, value in zip(records, values, strict=True):
        found[systems.index(record.system), column[record.item]] = value
    return found.round(5)


def people(data: Dataset) -> Result:
    """Mean rank of each output within what one person rated together, by aspect: raw magnitudes have wild outliers."""
    found: Result = {"systems": places(data)[0]}
    for aspect in ASPECTS:
        rated = rated_records(data, aspect, "rank")
        found[aspect] = matrix(data, rated.records, rated.means().tolist())
    return found


def floor(data: Dataset, name: str) -> Result:
    records = data.outputs_with_context()
    return {"values": matrix(data, records, load(name).evaluate(records).values.tolist())}


def variety(data: Dataset, systems: Sequence[str]) -> Result:
    """distinct-2 of all texts of each system."""
    texts: dict[str, list[Record]] = {name: [] for name in systems}
    for record in data.outputs_with_context():
        texts[record.system].append(record)
    return {"values": [load("distinct-2").system_score(texts[name]) for name in systems]}


def spread_systems(human: Mapping[str, Any]) -> list[str]:
    """Six systems evenly spread over people's order of quality."""
    means = np.nanmean(np.array(human["quality"], dtype=float), axis=1)
    order = np.argsort(means)
    chosen = np.unique(np.linspace(0, len(order) - 1, min(6, len(order))).round().astype(int))
    return sorted(human["systems"][int(order[place])] for place in chosen)


def try_rate(given: Given, data: Dataset, rate: float, seed: int) -> Result:
    """The dev log-loss of one learning rate on the first folds."""
    losses = []
    parts = list(fold_parts("perception", data, FOLDS, seed))[:CHOICE_FOLDS]
    for number_, (train, dev) in enumerate(parts):
        folder = work_folder(given, "perception-choice", rate, seed, number_)
        found = fit(
            "perception", train, dev=dev, seed=seed, learning_rate=rate, folder=folder, **trial(given)
        )  # fmt: skip
        losses.append(found.record.metrics["loss"])
        forget(folder)
    return {"rate": rate, "losses": losses, "loss": float(np.mean(losses))}


def chosen_rate(store: Store, seed: int) -> float:
    """The learning rate with the least dev loss; it is chosen with the first seed alone."""
    tried = [row for (setting, s), row in store.rows.items() if setting.startswith("choice/") and s == seed]
    if not tried:
        sys.exit(f"No learning rate was tried with seed {seed}: add `choice` to --only, or name the seed it was tried "
                 "with first in --seeds.")  # fmt: skip
    return float(min(tried, key=lambda row: row["loss"])["rate"])


def crossed(
    given: Given, data: Dataset, name: str, seed: int, folds: int, rate: float, options: Mapping[str, Any]
) -> Result:
    """P_gen, c and m of every output by the model that did not see its group, as (systems, items)."""
    folder = work_folder(given, "perception", name, seed)
    found = cross_fit(
        "perception", data, folds=2 if given.quick else folds, seed=seed, learning_rate=rate,
        folder=folder, **{**trial(given), **options},
    )  # fmt: skip
    columns: dict[str, list[float]] = {"p": [], "c": [], "m": []}
    records: list[Record] = []
    for member in found.members:
        assert isinstance(member, Perception)
        member.options["mc_passes"] = 2 if given.quick else PASSES
        unseen = [r for r in data.outputs_with_context() if group_of(r.group, r.item) not in member.trained_on]
        unseen = [r for r in unseen if r.text.strip() and r.references]
        scores = member.evaluate(unseen)
        certain, _ = member.certainty(unseen)
        records += unseen
        for key, column in zip("pcm", (scores.values, scores.components["confidence"], certain), strict=True):
            columns[key] += column.tolist()
    forget(folder)
    figures = [member.record.metrics for member in found.members]
    dev = {k: float(np.mean([f[k] for f in figures])) for k in ("loss", "accuracy", "calibration_error", "confidence")}
    return {
        **{key: matrix(data, records, column) for key, column in columns.items()},
        "systems": places(data)[0],
        "dev": dev,
        "train_seconds": sum(member.record.seconds for member in found.members),
        "folds": len(found.members),
        "rate": rate,
    }


def compute_robustness(given: Given, store: Store) -> None:
    for seed in given.seeds:
        for name, strangers in TRAINED_ON.items():
            store.once(
                f"robustness/{name}", seed,
                lambda seed=seed, name=name, strangers=strangers: robust(given, name, strangers, seed, {}),
            )  # fmt: skip
    if given.items:
        first = given.seeds[0]
        (short,) = store.of("robustness/n-gram models", [first])
        longer = {"max_steps": 5 * SHORT["max_steps"], "learning_rates": f"{short['rate']:g}"}
        for name, options in LONGER.items():
            store.once(
                f"robustness/{name}", first,
                lambda name=name, options=options: robust(given, name, False, first, {**longer, **options}),
            )  # fmt: skip


def robust(given: Given, name: str, strangers: bool, seed: int, options: Mapping[str, Any]) -> Result:
    """Train on machines' replies to contexts without adversarial negatives; score the kinds on contexts with them."""
    train, test, answers = dialogues(given, strangers, seed)
    parts = train.split(seed=seed, shares=(0.9, 0.1))
    folder = work_folder(given, "robust", name, seed)
    asked = {"learning_rates": DIALOGUE_RATES, **trial(given), **({} if given.quick else options)}
    found = fit("perception", parts[0], dev=parts[1], seed=seed, folder=folder, **asked)
    found.options["mc_passes"] = 2 if given.quick else PASSES
    kinds = kinds_of(test, answers, seed)
    rows = {"perception": [row_of(row) for row in robustness(found, kinds)]}
    for baseline in BASELINES:
        rows[baseline] = [row_of(row) for row in robustness(load(baseline), kinds)]
    forget(folder)
    rate = next(iter(found.artefact.state["learning_rates"].values()))
    examples = {"train items": len(train.items), "test items": len(test), "rate": rate, "steps": found.record.steps}
    return {"rows": rows, "dev": dict(found.record.metrics), "train_seconds": found.record.seconds, **examples}


def row_of(row: Any) -> dict[str, Any]:
    return {name: plain(getattr(row, name)) for name in ("kind", "n", "score", "mean", "sd")}


def dialogues(given: Given, strangers: bool, seed: int) -> tuple[Dataset, list[Item], dict[str, str]]:
    """Training data with the replies of two n-gram models (of 2 and of 4 words), test items, replies to those.

    All texts are lower-cased and spaced alike, so that spelling does not tell people from machines. The models learned
    from a third part of the items. Groups of test items are in no other part.
    """
    whole = read_dataset(given.data / "dailydialog_pp")
    items = [uniform(item) for item in whole.items]
    tested = [item for item in items if item.meta.get("adversarial_negatives")]
    taken = {group_of(item.group, item.id) for item in tested}
    rng = random.Random(seed)
    rest = [item for item in items if group_of(item.group, item.id) not in taken]
    rng.shuffle(rest)
    rng.shuffle(tested)
    n_train, n_test = (40, 12) if given.quick else ROBUSTNESS_FEW if given.items else ROBUSTNESS_ALL
    learned, known, tested = rest[n_train : 3 * n_train], rest[:n_train], tested[:n_test]
    samples = [Sample(features(item), tuple(words.split_words(text))) for item in learned for text in item.references]
    rng.shuffle(samples)
    outputs: list[Output] = []
    answers: dict[str, str] = {}
    for order in (2, 4):
        model = NgramModel(order=order)
        for sample in samples:
            model.update(sample)
        for item in known:
            outputs.append(Output(item.id, f"{order}-gram", reply(model, item, seed)))
        if order == 4:
            answers = {item.id: reply(model, item, seed) for item in tested}
    if strangers:
        for item in known:
            other = rng.choice([one for one in known if group_of(one.group, one.id) != group_of(item.group, item.id)])
            outputs.append(Output(item.id, "other context", rng.choice(other.references)))
    train = replace(whole, items=tuple(known), outputs=tuple(outputs), ratings=(), comparisons=(), dialogues=())
    return train, tested, answers


def uniform(item: Item) -> Item:
    meta = {key: [same(t) for t in item.meta.get(key) or []] for key in ("adversarial_negatives", "random_negatives")}
    return replace(
        item, context=tuple(map(same, item.context)), references=tuple(map(same, item.references)), meta=meta
    )  # fmt: skip


def same(text: str) -> str:
    return " ".join(words.split_words(text.lower()))


def features(item: Item) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words.content_words(" ".join(item.context[-2:]))))


def reply(model: NgramModel, item: Item, seed: int) -> str:
    rng = random.Random(f"{seed}:{model.order}:{item.id}")
    return " ".join(model.answer(features(item), rng, shortest=3, longest=24))


def kinds_of(items: Sequence[Item], answers: Mapping[str, str], seed: int) -> dict[str, list[Record]]:
    """Each kind's texts, with the first human reply as the original."""
    found: dict[str, list[Record]] = {kind: [] for kind in KINDS}
    for item in items:
        rng = random.Random(f"{seed}:{item.id}")
        original, others = item.references[0], item.references[1:]
        others = tuple(text for text in others if text != original)
        if not others:
            continue
        texts = {
            "MGE": answers[item.id],
            "HWE": rng.choice(others),
            "LDHWE": others[least_overlapping(original, others)],
            "AE": rng.choice(item.meta["adversarial_negatives"]),
            "random reply": rng.choice(item.meta["random_negatives"]),
        }
        for kind, text in texts.items():
            record = Record(text, (original,), item.context, item.source, item.id, kind, group=item.group)
            if text != original:
                found[kind].append(record)
    return found


# What follows makes the page from the results.


def array(values: Any) -> np.ndarray:
    return np.array(values, dtype=float)


def system_scores(p: np.ndarray, weights: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """sum w P / sum w for each system over the items, each taken `counts` times."""
    weights = np.where(np.isnan(p), 0.0, weights) * (1.0 if counts is None else counts)
    total = weights.sum(axis=1)
    return (weights * np.nan_to_num(p)).sum(axis=1) / np.where(total > 0, total, np.nan)


def weights_of(result: Mapping[str, Any], names: Sequence[str]) -> np.ndarray:
    parts = [np.nan_to_num(array(result[name])) for name in names]
    return sum(parts) if parts else np.ones_like(array(result["p"]))


def over_seeds(found: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Means over seeds of P and of the texts' weights."""
    return (
        np.mean([array(r["p"]) for r in found], axis=0),
        np.mean([weights_of(r, names) for r in found], axis=0),
    )


def with_people(p: np.ndarray, weights: np.ndarray, human: np.ndarray) -> dict[str, tuple[float, float, float]]:
    """Each coefficient over systems with its interval: items and systems drawn anew together."""

    def figures(rows: np.ndarray, counts: np.ndarray | None) -> list[float]:
        scores = system_scores(p, weights, counts)[rows]
        means = system_scores(human, np.ones_like(human), counts)[rows]
        return [float(f(scores, means).value) for f in (pearson, spearman, kendall)]

    everything = np.arange(len(p))
    point = figures(everything, None)
    rng = np.random.default_rng(0)
    n = p.shape[1]
    drawn_ = [
        figures(rng.integers(0, len(p), len(p)), rng.multinomial(n, np.full(n, 1 / n)).astype(float))
        for _ in range(RESAMPLES)
    ]
    ends = [percentile_interval(column) for column in np.array(drawn_).T]
    return {
        name: (value, *end) for name, value, end in zip(("pearson", "spearman", "kendall"), point, ends, strict=True)
    }


def shown(figure: tuple[float, float, float]) -> str:
    return f"{number(figure[0])} [{number(figure[1])}, {number(figure[2])}]"


def columns_of(p: np.ndarray, weights: np.ndarray, human: Mapping[str, np.ndarray]) -> list[str]:
    cells = []
    for aspect in ASPECTS:
        found = with_people(p, weights, human[aspect])
        cells += [shown(found["pearson"]), shown(found["spearman"])]
    return cells


HEAD = [f"{aspect}, {name}" for aspect in ASPECTS for name in ("Pearson", "Spearman")]


def page(given: Given, store: Store) -> list[str]:
    """The page, from what the store holds."""
    known = store.rows["human", 0]
    size_of_trainings = (
        f" A training has {SHORT['max_steps']} steps of {SHORT['batch_size']} pairs, that of one system's own model "
        f"{SHORTER['max_steps']}: what two cores learn in an evening."
    )
    lines = [
        "# perception on e2e and dailydialog_pp",
        "",
        "P_sys says how often a trained reader takes a system's text for a reference. Do people order systems alike?",
        "People's score of a system is the mean rank of its rated outputs within what one person rated together.",
        "Intervals: 95 %, items and systems drawn anew together. Floors stand in the same table.",
        "",
        f"{what_was_read(given)} The model's certainty is of {PASSES} passes with dropout (usual: 20)."
        + (size_of_trainings if given.items else ""),
        "",
        f"Made by `docs/results/perception.py`. {machine_line(store.figures(), store.code, store.checks)}",
    ]
    human = {aspect: array(known[aspect]) for aspect in ASPECTS}
    parts = {
        "Learning rate": lambda: choice(given, store),
        f"System order, one model, {FOLDS} folds": lambda: order(given, store, human),
        "One model per system": lambda: per_system(given, store, known),
        "Ablations": lambda: ablations(given, store, human),
        **({"More items and more steps": lambda: longer(given, store)} if given.items else {}),
    }
    for title, part in parts.items():
        lines += ["", f"## {title}", "", *part()]
    lines += ["", "## Robustness", "", *robust_page(given, store)]
    return lines


def choice(given: Given, store: Store) -> list[str]:
    tried = sorted((r for (s, _), r in store.rows.items() if s.startswith("choice/")), key=lambda row: row["rate"])
    if not tried:
        return [ABSENT]
    rows = [[f"{r['rate']:g}", number(r["loss"], 4), *(number(v, 4) for v in r["losses"])] for r in tried]
    head = ["rate", "dev log-loss", *(f"fold {n + 1}" for n in range(len(tried[0]["losses"])))]
    best = chosen_rate(store, given.seeds[0])
    edge = " It is the largest that was tried: a larger one may be better." if best == max(RATES) else ""
    return [
        f"Chosen: {best:g}, the least mean dev log-loss; used for every training on e2e below.{edge}",
        "",
        *table(head, rows),
    ]


def order(given: Given, store: Store, human: Mapping[str, np.ndarray]) -> list[str]:
    found = store.of("shared", given.seeds)
    if not found:
        return [ABSENT]
    rows = []
    for name, parts in WEIGHTS.items():
        rows.append([f"perception, weights {name}", *columns_of(*over_seeds(found, parts), human)])
    for name in FLOORS:
        for result in store.of(f"floor/{name}", [0]):
            values = array(result["values"])
            rows.append([name, *columns_of(values, np.ones_like(values), human)])
    n_systems, n_items = human["quality"].shape
    lines = [f"{n_systems} systems, {n_items} items. perception: mean of P, c and m over seeds (n = {len(found)})."]
    lines += ["", *table(["score", *HEAD], rows)]
    seeds = []
    for aspect in ASPECTS:
        each = [with_people_point(r, human[aspect]) for r in found]
        seeds.append(f"{aspect} Pearson {mean_sd([e[0] for e in each])}, Spearman {mean_sd([e[1] for e in each])}")
    dev = [r["dev"] for r in found]
    lines += [
        "",
        *in_words(found, human),
        *with_variety(found, human, store.of("variety", [0])),
        f"Mean ± SD over seeds (n = {len(found)}): {'; '.join(seeds)}.",
        f"Dev pairs: accuracy {mean_sd([d['accuracy'] for d in dev])}, calibration error "
        f"{mean_sd([d['calibration_error'] for d in dev])}, confidence {mean_sd([d['confidence'] for d in dev])}.",
        f"Minutes for all folds of a seed with scoring (median): {minutes(found)}.",
    ]
    return lines


def in_words(found: Sequence[Mapping[str, Any]], human: Mapping[str, np.ndarray]) -> list[str]:
    """Whether P_sys orders systems as people do, by the interval of Spearman's coefficient."""
    p, weights = over_seeds(found, WEIGHTS["c + m"])
    lines = []
    for aspect in ASPECTS:
        value, low, high = with_people(p, weights, human[aspect])["spearman"]
        said = "as people do" if low > 0 else "against people" if high < 0 else "in no order that is told from chance"
        lines.append(f"By {aspect} P_sys orders the systems {said} ({shown((value, low, high))}).")
    if "against people" in " ".join(lines):
        lines.append(
            "That is what the figure means, not a slip of sign: pairs of dev are told apart (accuracy below), but what "
            "tells references from machines need not be what people like."
        )
    return [*lines, ""]


def with_variety(
    found: Sequence[Mapping[str, Any]], human: Mapping[str, np.ndarray], known: Sequence[Mapping[str, Any]]
) -> list[str]:
    """How P_sys and people's opinion go with the variety of a system's texts; systems drawn anew."""
    if not known:
        return []
    scores = {"P_sys": system_scores(*over_seeds(found, WEIGHTS["c + m"]))}
    scores |= {f"people's {aspect}": system_scores(human[aspect], np.ones_like(human[aspect])) for aspect in ASPECTS}
    distinct, rng = array(known[0]["values"]), np.random.default_rng(0)
    cells = []
    for name, values in scores.items():
        draws = [rng.integers(0, len(distinct), len(distinct)) for _ in range(RESAMPLES)]
        low, high = percentile_interval(array([spearman(values[rows], distinct[rows]).value for rows in draws]))
        cells.append(f"{name} {shown((float(spearman(values, distinct).value), low, high))}")
    return [
        "Beside the variety of a system's texts (distinct-2), Spearman over systems, which are drawn anew: "
        f"{', '.join(cells)}. That both go with variety does not show that the reader goes by it.",
        "",
    ]


def with_people_point(result: Mapping[str, Any], human: np.ndarray) -> tuple[float, float]:
    scores = system_scores(array(result["p"]), weights_of(result, ("c", "m")))
    means = system_scores(human, np.ones_like(human))
    return float(pearson(scores, means).value), float(spearman(scores, means).value)


def per_system(given: Given, store: Store, known: Mapping[str, Any]) -> list[str]:
    found = store.of("per_system", given.seeds[:1])
    if not found:
        return [ABSENT]
    result = found[0]
    rows_of = [known["systems"].index(name) for name in result["systems"]]
    own = system_scores(array(result["p"]), weights_of(result, ("c", "m")))
    shared = store.of("shared", given.seeds[:1])
    both = system_scores(array(shared[0]["p"]), weights_of(shared[0], ("c", "m"))) if shared else None
    means = {a: system_scores(array(known[a]), np.ones_like(array(known[a]))) for a in ASPECTS}
    rows = []
    for place, name in enumerate(result["systems"]):
        row = rows_of[place]
        cells = [number(float(means[a][row])) for a in ASPECTS]
        rows.append([name, *cells, number(float(own[place])), "-" if both is None else number(float(both[row]))])
    order_ = [float(spearman(own, means[a][rows_of]).value) for a in ASPECTS]
    text = (
        f"Six systems evenly spread over people's order of quality, seed {given.seeds[0]}, {result['folds']} folds. "
        f"Spearman with people over {len(rows)} systems: quality {number(order_[0])}, naturalness {number(order_[1])} "
        f"(far too few systems for a claim). {minutes(found)} minutes."
    )
    head = ["system", *(f"people, {a}" for a in ASPECTS), "P_sys, own model", "P_sys, shared model"]
    return [text, "", *table(head, rows)]


def ablations(given: Given, store: Store, human: Mapping[str, np.ndarray]) -> list[str]:
    rows = []
    for name in ABLATIONS:
        for result in store.of(f"ablation/{name}", given.seeds[:1]):
            cells = columns_of(array(result["p"]), weights_of(result, ("c", "m")), human)
            rows.append([name, *cells, number(result["dev"]["accuracy"]), minutes([result])])
    if not rows:
        return [ABSENT]
    text = (
        f"Seed {given.seeds[0]}, {ABLATION_FOLDS} folds (half of the data each, so the full model stands here again)."
    )
    return [text, "", *table(["model", *HEAD, "dev accuracy", "minutes"], rows)]


def longer(given: Given, store: Store) -> list[str]:
    """Whether more to learn from and more steps change the order, with the penalty and without."""
    found = {name: one for name in MORE for one in store.of(f"longer/{name}", given.seeds[:1])}
    if not found:
        return [ABSENT]
    human = {aspect: array(store.rows["longer/human", 0][aspect]) for aspect in ASPECTS}
    rows = []
    for name, result in found.items():
        cells = columns_of(array(result["p"]), weights_of(result, ("c", "m")), human)
        rows.append([f"perception, {name}", *cells, number(result["dev"]["accuracy"]), minutes([result])])
    for name in FLOORS:
        for result in store.of(f"longer/floor/{name}", [0]):
            values = array(result["values"])
            rows.append([name, *columns_of(values, np.ones_like(values), human), "-", "-"])
    n_systems, n_items = human["quality"].shape
    text = (
        f"{n_systems} systems, {n_items} items, {MORE_STEPS} steps of {SHORT['batch_size']} pairs, seed "
        f"{given.seeds[0]}, {ABLATION_FOLDS} folds, the learning rate as above."
    )
    best = max(found, key=lambda name: found[name]["dev"]["accuracy"])
    kept = [f"Of the two `penalty=auto` keeps the one by which more dev pairs are right: {best}."]
    head = ["score", *HEAD, "dev accuracy", "minutes"]
    return [text, *(kept if len(found) > 1 else []), "", *table(head, rows)]


def robust_page(given: Given, store: Store) -> list[str]:
    lines = [
        "dailydialog_pp; the original is the first human reply. MGE: a 4-gram model's reply. HWE: another of the",
        "human replies. LDHWE: the one with least token overlap. AE: a reply that people wrote to be wrong here.",
        "Random reply: one to another context. HWEBQ (human, better quality) is not available. All texts are",
        "lower-cased and spaced alike. Score of a kind as one system, mean ± SD over seeds; of a single seed with the",
        "95 % interval of the plain mean over the texts.",
    ]
    for name in (*TRAINED_ON, *(LONGER if given.items else [])):
        found = store.of(f"robustness/{name}", given.seeds[:1] if name in LONGER else given.seeds)
        lines += ["", f"### Trained against {name}", ""]
        if not found:
            lines.append(ABSENT)
            continue
        rows = []
        for evaluator in found[0]["rows"]:
            cells = []
            for place in range(len(KINDS)):
                each = [result["rows"][evaluator][place] for result in found]
                if not each[0]["n"]:
                    cells.append("-")
                    continue
                reach = 1.96 * (each[0]["sd"] or 0.0) / each[0]["n"] ** 0.5
                ends = f" [{number(each[0]['mean'] - reach)}, {number(each[0]['mean'] + reach)}]"
                cells.append(mean_sd([one["score"] for one in each]) + (ends if len(each) == 1 else ""))
            rows.append([evaluator, *cells])
        n = found[0]["rows"]["perception"][1]["n"]
        lines += table([f"n = {n} a kind", *KINDS], rows)
        dev = mean_sd([result["dev"].get("accuracy") for result in found])
        where = " in the short training" if name in LONGER else ""
        lines += [
            "",
            f"{found[0]['train items']} contexts to learn from; learning rate {found[0]['rate']:g}, chosen of "
            f"{DIALOGUE_RATES} by dev log-loss{where}; dev accuracy {dev}; {minutes(found)} minutes.",
        ]
        lines += pattern(found)
    return lines


def pattern(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whether the paper's pattern holds (MGE low, HWE about .5, AE below .5), by the means over seeds."""
    mean = {
        kind: float(np.mean([r["rows"]["perception"][place]["score"] for r in found]))
        for place, kind in enumerate(KINDS)
        if found[0]["rows"]["perception"][place]["n"]
    }
    said = {
        "MGE below .25": mean["MGE"] < 0.25,
        "HWE within .1 of .5": abs(mean["HWE"] - 0.5) < 0.1,
        "AE below HWE": mean["AE"] < mean["HWE"],
        "AE below .5": mean["AE"] < 0.5,
    }
    answers = "; ".join(f"{text}: {'yes' if holds else 'no'}" for text, holds in said.items())
    return ["", f"The paper's pattern: {answers}."]


if __name__ == "__main__":
    main()
