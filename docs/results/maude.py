"""MAUDE and its rivals: trained on dialogues alone, compared with people on six rated sets they never saw.

    python docs/results/maude.py --out FOLDER [--items N] [--seeds ...] [--only maude bert-nli ...]

`--items N`: of the training set only the first N dialogues; the page shows every number that was tried. Dialogues are
parted 80 : 10 : 10 by seed: the second part chooses the epoch, the third gives the Delta table. Nothing is chosen on a
rated set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
    mean_sd,
    minutes,
    number,
    publish,
    store_of,
    table,
    work_folder,
)

from evalapp.stats.correlation.coefficients import pearson, spearman
from evalapp.stats.resampling.bootstrap import percentile_interval
from scoring.ml import Dataset, fit, load, read_dataset
from scoring.ml.evaluators.unreferenced.conversations import conversations_of
from scoring.ml.evaluators.unreferenced.delta import GROUPS, delta_table
from scoring.ml.evaluators.unreferenced.dialogues import context_bins
from scoring.ml.training.gold import Rated, rated_records

SEEDS = (13, 14, 15, 16, 17)
TRAIN = "text_dailydialog_decontaminated"
#: Set, aspect, and systems left out as DialEvalMetrics leaves them out: they equal the reference.
TESTS = (
    ("usr_topicalchat", "overall", ("Original Ground Truth",)),
    ("usr_personachat", "overall", ("Original Ground Truth",)),
    ("grade_convai2", "coherence", ()),
    ("grade_dailydialog", "coherence", ()),
    ("grade_empathetic", "coherence", ()),
    ("predictive_engagement", "engagement", ()),
)
SETS = tuple(name for name, _, _ in TESTS)
#: Published MAUDE, Pearson / Spearman, DialEvalMetrics' leaderboard as printed in the data's README; * = p >= .05.
PUBLISHED = {
    "usr_topicalchat": ".044*/.083*",
    "usr_personachat": ".345/.298",
    "grade_convai2": ".351/.304",
    "grade_dailydialog": "-.036*/-.073*",
    "grade_empathetic": ".007*/-.057*",
    "predictive_engagement": ".104/.060*",
}
#: What is trained, by the name it has here: the evaluator and its options.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "maude": ("maude", {}),
    "bert-nli": ("bert-nli", {}),
    "infersent": ("infersent", {}),
    "ruber": ("ruber", {}),
    "maude, reply alone (sentinel)": ("maude", {"inputs": "text"}),
    "maude, context alone (sentinel)": ("maude", {"inputs": "context"}),
}
#: These learn words from nothing, two and a half minutes an epoch of 1,000 dialogues; so few epochs with `--items`.
WORD_READERS, SHORT = ("infersent", "ruber"), {"epochs": 2}
#: What knows nothing of quality.
FLOORS = ("length", "overlap", "token-f1")
#: Kinds of changed replies that should score lower than the true one.
FALSE = tuple(kind for kind, group in GROUPS.items() if "negative" in group)
RESAMPLES = 1000


def main() -> None:
    given = arguments(__doc__ or "", seeds=SEEDS, parts=tuple(MODELS))
    # One file for every number of dialogues: they stand side by side on the page.
    store = store_of(replace(given, items=None), "maude", "unreferenced")
    store.once("people", 0, lambda: {name: people(judged) for name, judged in judged_sets(given.data)}, data=True)
    if not given.page_only:
        compute(given, store)
    publish(given, "maude", page(store, given.encoder or "the installed MiniLM"))


def compute(given: Given, store: Store) -> None:
    whole = read_dataset(given.data / TRAIN)
    store.once("floors", 0, lambda: floors(given.data))
    store.once("leakage", 0, lambda: {name: shared_texts(whole, data) for name, data in tested(given.data)})
    few = 40 if given.quick else given.items
    size = len(whole.dialogues) if few is None else min(few, len(whole.dialogues))
    part = replace(whole, dialogues=whole.dialogues[:size])
    for model in MODELS:
        # What a sentinel says is said once.
        for seed in given.seeds[:1] if "sentinel" in model else given.seeds:
            if given.wants(model):
                store.once(
                    f"{model}/{size}", seed,
                    lambda model=model, seed=seed: train_one(given, model, seed, part),
                )  # fmt: skip


def tested(data: Path) -> Iterator[tuple[str, Dataset]]:
    """The rated sets without the systems left out."""
    for name, _, without in TESTS:
        found = read_dataset(data / name)
        yield (
            name,
            replace(
                found,
                outputs=tuple(row for row in found.outputs if row.system not in without),
                ratings=tuple(row for row in found.ratings if row.system not in without),
            ),
        )


def judged_sets(data: Path) -> Iterator[tuple[str, Rated]]:
    aspects = {name: aspect for name, aspect, _ in TESTS}
    for name, found in tested(data):
        yield name, rated_records(found, aspects[name])


def people(judged: Rated) -> Result:
    """Mean rating of each output, and the number of its group."""
    groups = [record.group or f"item:{record.item}" for record in judged.records]
    return {"means": judged.means(), "groups": np.unique(groups, return_inverse=True)[1]}


def floors(data: Path) -> Result:
    """What length, overlap and token F1 say of every output; the last where there are references."""
    found: Result = {name: {} for name in FLOORS}
    for set_name, judged in judged_sets(data):
        for name in FLOORS:
            if name != "token-f1" or any(record.references for record in judged.records):
                found[name][set_name] = load(name).score(judged.records)
    return found


def plain_words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def shared_texts(train: Dataset, test: Dataset) -> Result:
    """How many different turns of contexts, and outputs, of six words or more also stand in the training data.

    Outputs may: some systems pick their replies from a training set.
    """
    known = {plain_words(turn) for dialogue in train.dialogues for turn in dialogue.turns}
    sides = {
        "turns": {plain_words(turn) for item in test.items for turn in item.context},
        "outputs": {plain_words(row.text) for row in test.outputs},
    }
    found = {}
    for name, texts in sides.items():
        long = {text for text in texts if len(text.split()) >= 6}
        found |= {f"shared {name}": len(long & known), f"{name} in all": len(long)}
    return found


def train_one(given: Given, model: str, seed: int, whole: Dataset) -> Result:
    """Train, score every rated set, and make the Delta table."""
    name, options = MODELS[model]
    train, dev, test = whole.split(seed=seed)
    if given.quick:
        options = {**options, "epochs": 1, "max_steps": 3}
    elif given.items and name in WORD_READERS:
        options = {**options, **SHORT}
    folder = work_folder(given, "maude", model, len(whole.dialogues), seed)
    evaluator = fit(name, train, dev=dev, seed=seed, folder=folder, encoder=given.encoder, **options)
    values, bins = {}, {}
    for set_name, judged in judged_sets(given.data):
        values[set_name] = evaluator.score(judged.records)
        rows = context_bins(judged.records, values[set_name], judged.means())
        bins[set_name] = [[row.low, row.high, row.n, row.mean, row.spearman] for row in rows]
    delta = delta_table(evaluator, conversations_of(test, True), n=1000, seed=seed)
    forget(folder)
    return {
        "signature": evaluator.signature,
        "examples": dict(evaluator.record.examples),
        "metrics": dict(evaluator.record.metrics),
        "epochs": options.get("epochs"),
        "steps": evaluator.record.steps,
        "training_seconds": evaluator.record.seconds,
        "values": values,
        "bins": bins,
        "delta": {row.kind: [row.n, row.mean, row.sd, row.below] for row in delta},
    }


# What follows makes the page from the results.


def page(store: Store, encoder: str) -> list[str]:
    known = store.rows["people", 0]
    lines = [
        "# MAUDE and its rivals on real data",
        "",
        f"Trained on dialogues alone ({TRAIN}), with four kinds of false replies: words",
        "dropped, shuffled, repeated, and a reply of another dialogue; every rated set is new to them. The published",
        "MAUDE saw six kinds, and learned from PersonaChat with DistilBERT. Original Ground Truth is left out of the",
        f"USR sets, as in the published row. Encoder of maude and bert-nli: {encoder}, frozen. Profile:",
        "recommended.",
        "",
        f"Made by `docs/results/maude.py`. {machine_line(trained(store), store.code, store.checks)}",
    ]
    parts = {
        "Agreement with people": lambda: agreement(store, known),
        "Delta": lambda: delta_lines(store),
        "By length of context": lambda: bin_lines(store),
        "Training": lambda: training_lines(store),
        "Leakage": lambda: leakage_lines(store),
    }
    for title, part in parts.items():
        lines += ["", f"## {title}", "", *(part() if trained(store) else [ABSENT])]
    return lines


def trained(store: Store) -> list[Result]:
    return [row for (setting, _), row in store.rows.items() if "/" in setting]


def settings(store: Store) -> list[tuple[str, list[Result]]]:
    """What was trained, in the order of `MODELS` and from few dialogues to many, with the results of all seeds."""
    found: dict[tuple[str, int], list[Result]] = {}
    for (setting, _), row in sorted(store.rows.items()):
        if "/" in setting:
            model, _, size = setting.rpartition("/")
            found.setdefault((model, int(size)), []).append(row)
    order = sorted(found, key=lambda key: (list(MODELS).index(key[0]), key[1]))
    return [(label(model, size, found[model, size]), found[model, size]) for model, size in order]


def label(model: str, size: int, rows: Sequence[Result]) -> str:
    epochs = {row["epochs"] for row in rows} - {None}
    few = f", {min(epochs)} epoch{'' if epochs == {1} else 's'}" if epochs else ""
    return f"{model}, {size:,} dialogues{few} ({len(rows)} seed{'' if len(rows) == 1 else 's'})"


def rows_of(values: Sequence[Mapping[str, Any]], name: str) -> np.ndarray | None:
    """(seeds, outputs) of one set; None where there are none."""
    found = [np.array(one[name], dtype=float) for one in values if name in one]
    return np.array(found) if found else None


def coefficient(function: Any, scores: np.ndarray, means: np.ndarray) -> float:
    """The mean over seeds; undefined scores are left out."""
    each = [function(row[~np.isnan(row)], means[~np.isnan(row)]).value for row in scores]
    return float(np.mean([np.nan if value is None else value for value in each]))


def spread(scores: np.ndarray, means: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(resamples,) of the mean over seeds of Spearman's coefficient; groups of items drawn anew, for everything of a
    set in the same way."""
    rng = np.random.default_rng(13)
    members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
    found = []
    for _ in range(RESAMPLES):
        chosen = np.concatenate([members[place] for place in rng.integers(0, len(members), len(members))])
        found.append(coefficient(spearman, scores[:, chosen], means[chosen]))
    return np.array(found)


def agreement(store: Store, known: Mapping[str, Any]) -> list[str]:
    floor_values = store.of("floors", [0])[0]
    everything = [(name, [row["values"] for row in rows]) for name, rows in settings(store)]
    everything += [(f"{name} (floor)", [floor_values[name]]) for name in FLOORS]
    tables: dict[str, list[list[str]]] = {"Spearman": [], "Pearson": []}
    draws: dict[tuple[str, str], np.ndarray] = {}
    points: dict[tuple[str, str], float] = {}
    for name, values in everything:
        cells: dict[str, list[str]] = {"Spearman": [name], "Pearson": [name]}
        for set_name in SETS:
            scores = rows_of(values, set_name)
            if scores is None:
                cells["Spearman"].append("-")
                cells["Pearson"].append("-")
                continue
            means, groups = (np.array(known[set_name][key]) for key in ("means", "groups"))
            points[name, set_name] = coefficient(spearman, scores, means)
            draws[name, set_name] = spread(scores, means, groups)
            low, high = percentile_interval(draws[name, set_name])
            cells["Spearman"].append(f"{number(points[name, set_name])} [{number(low)}, {number(high)}]")
            cells["Pearson"].append(number(coefficient(pearson, scores, means)))
        for kind, row in cells.items():
            tables[kind].append(row)
    sizes = [f"{name} (n = {len(known[name]['means'])})" for name in SETS]
    published = {
        kind: [PUBLISHED[name].split("/")[place] for name in SETS] for place, kind in ((0, "Pearson"), (1, "Spearman"))
    }
    lines = ["Single outputs with people's mean rating, mean over seeds [95 %, groups of items drawn anew].", ""]
    for kind, found in tables.items():
        rows = [*found, ["MAUDE, published (* p >= .05)", *published[kind]]]
        lines += [f"{kind}:", "", *table(["evaluator", *sizes], rows), ""]
    return [*lines, *in_words(points, draws, [name for name, _ in settings(store)])]


def in_words(
    points: Mapping[tuple[str, str], float], draws: Mapping[tuple[str, str], np.ndarray], names: Sequence[str]
) -> list[str]:
    """Each trained evaluator against the strongest floor of each set, by the interval of the difference."""
    lines = ["Against the floor that came out strongest on each set, by the interval of the difference:", ""]
    for name in names:
        said: dict[str, list[str]] = {"above": [], "below": [], "not told apart": []}
        for set_name in SETS:
            there = [floor for floor in FLOORS if (f"{floor} (floor)", set_name) in points]
            best = max(there, key=lambda floor: points[f"{floor} (floor)", set_name])
            low, high = percentile_interval(draws[name, set_name] - draws[f"{best} (floor)", set_name])
            verdict = "above" if low > 0 else "below" if high < 0 else "not told apart"
            said[verdict].append(f"{set_name} ({best})")
        parts = [f"{verdict}: {', '.join(sets)}" for verdict, sets in said.items() if sets]
        lines.append(f"- {name}: {'; '.join(parts)}.")
    return lines


def delta_lines(store: Store) -> list[str]:
    found = settings(store)
    kinds = [kind for kind in FALSE if any(kind in row["delta"] for _, rows in found for row in rows)]
    body = []
    for name, rows in found:
        cells = []
        for kind in kinds:
            each = [row["delta"][kind] for row in rows if kind in row["delta"]]
            mean, sd, below = (float(np.mean([one[place] for one in each])) for place in (1, 2, 3))
            cells.append(f"{number(mean)} ({number(sd)}), {below:.0%}")
        body.append([name, *cells])
    n = sorted({int(row["delta"]["ground_truth"][0]) for _, rows in found for row in rows})
    return [
        "score(true reply) - score(changed reply) on held-out dialogues of the training set: mean (SD over replies),",
        "and the share of changed replies that score lower. 1 is right. Means over seeds of "
        f"{n[0]:,} to {n[-1]:,} replies.",
        "",
        *table(["evaluator", *(f"{kind} ({GROUPS[kind]})" for kind in kinds)], body),
    ]


def bin_lines(store: Store) -> list[str]:
    """Where contexts differ in length; of each evaluator what learned from the most dialogues."""
    largest: dict[str, tuple[str, list[Result]]] = {}
    for name, rows in settings(store):
        if "sentinel" not in name:
            largest[name.partition(",")[0]] = (name, rows)
    body = []
    for set_name in SETS:
        bins = next(iter(largest.values()))[1][0]["bins"][set_name]
        for low, high, n, _, _ in bins if len(bins) > 1 else []:
            turns = f"{low}" if high == low else f"{low} to {high}" if high else f"{low} or more"
            cells = []
            for _, rows in largest.values():
                # By where it begins: who defines no score for some outputs may have fewer.
                each = [one for row in rows for one in row["bins"][set_name] if one[0] == low]
                cells.append(f"{mean_sd([one[3] for one in each], 2)}; {mean_sd([one[4] for one in each], 2)}")
            body.append([set_name, turns, str(n), *cells])
    return [
        "Mean score; Spearman with people, each with its SD over seeds, by number of turns before. Where all contexts",
        "of a set are of one length it is left out.",
        "",
        *table(["set", "turns", "n", *(name for name, _ in largest.values())], body),
    ]


def training_lines(store: Store) -> list[str]:
    body = []
    for name, rows in settings(store):
        examples = [f"{np.mean([row['examples'][key] for row in rows]):,.0f}" for key in rows[0]["examples"]]
        metrics = [mean_sd([row["metrics"].get(key) for row in rows]) for key in ("loss", "below")]
        steps = f"{np.mean([row['steps'] for row in rows]):,.0f}"
        network = f"{np.median([row['training_seconds'] for row in rows]) / 60:.1f}"
        body.append([name, *examples, steps, *metrics, minutes(rows), network])
    head = "evaluator, conversations, true replies, held out, texts, steps, dev loss, false below true, minutes in all"
    return table([*head.split(", "), "of the network"], body)


def leakage_lines(store: Store) -> list[str]:
    found = {name: row for name, row in store.of("leakage", [0])[0].items() if name in SETS}
    columns = list(next(iter(found.values())))
    return [
        "Texts of six words or more (case and punctuation aside) that also stand in the training data, all of it. Some",
        "systems pick their replies from a training set: these outputs it saw, but after other turns.",
        "",
        *table(["set", *columns], [[name, *(f"{row[key]:,}" for key in columns)] for name, row in found.items()]),
    ]


if __name__ == "__main__":
    main()
