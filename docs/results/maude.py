"""MAUDE and its rivals on real data: trained on one set of dialogues, compared with people on sets they never saw.

    python docs/results/maude.py OUT [--data FOLDER] [--train SET] [--seeds 13 14 15] [--dialogues N] ...
    python docs/results/maude.py OUT --write

Every (evaluator, profile, training set, size, seed) is trained once; its figures are appended to OUT/results.jsonl and
not computed again. `--write` makes docs/results/maude.md of all figures there. Dialogues are parted 80 : 10 : 10 by
seed: the second part chooses the epoch, the third gives the Delta table. Nothing is chosen on a rated set.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from store import code_line, state_of_code

from evalapp.stats import COEFFICIENTS, correlate
from scoring.ml import fit, load, read_dataset
from scoring.ml.evaluators.unreferenced.conversations import conversations_of
from scoring.ml.evaluators.unreferenced.delta import delta_table
from scoring.ml.evaluators.unreferenced.dialogues import context_bins
from scoring.ml.training.gold import Rated, rated_records
from scoring.ml.training.job import TrainingProgress
from scoring.ml.training.store import write_whole
from scoring.ml.types import Dataset

CODE = state_of_code("unreferenced")
ROOT = Path(__file__).resolve().parents[2]
#: Set, aspect, and systems left out as DialEvalMetrics leaves them out: they equal the reference.
TESTS = (
    ("usr_topicalchat", "overall", ("Original Ground Truth",)),
    ("usr_personachat", "overall", ("Original Ground Truth",)),
    ("grade_convai2", "coherence", ()),
    ("grade_dailydialog", "coherence", ()),
    ("grade_empathetic", "coherence", ()),
    ("predictive_engagement", "engagement", ()),
)
#: Published MAUDE, Pearson / Spearman, DialEvalMetrics' leaderboard as printed in the data's README; * = p >= .05.
PUBLISHED = {
    "usr_topicalchat": ".044*/.083*",
    "usr_personachat": ".345/.298",
    "grade_convai2": ".351/.304",
    "grade_dailydialog": "-.036*/-.073*",
    "grade_empathetic": ".007*/-.057*",
    "predictive_engagement": ".104/.060*",
}
EVALUATORS = ("maude", "bert-nli", "infersent", "ruber")
#: What knows nothing of quality.
FLOORS = ("length", "overlap", "token-f1")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for figures and checkpoints; a run that was cut off goes on")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--train", default="text_dailydialog_decontaminated")
    parser.add_argument("--dialogues", type=int, default=None, help="only the first N; all without it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[13, 14, 15])
    parser.add_argument("--evaluators", nargs="+", default=list(EVALUATORS), choices=EVALUATORS)
    parser.add_argument("--profile", default="recommended", choices=("recommended", "paper"))
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--max-steps", type=int, default=None)
    parser.add_argument("--inputs", default="both", choices=("both", "text", "context"))
    parser.add_argument("--write", action="store_true", help="write docs/results/maude.md of what is there")
    return parser.parse_args()


def rated(data: Path, name: str, without: tuple[str, ...]) -> Dataset:
    """A rated set without the systems left out."""
    found = read_dataset(data / name)
    return replace(
        found,
        outputs=tuple(row for row in found.outputs if row.system not in without),
        ratings=tuple(row for row in found.ratings if row.system not in without),
    )


def plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def shared_texts(train: Dataset, test: Dataset) -> dict[str, int]:
    """How many different turns of contexts, and outputs, of six words or more also stand in the training data.

    Outputs may: some systems pick their replies from a training set.
    """
    known = {plain(turn) for dialogue in train.dialogues for turn in dialogue.turns}
    sides = {
        "turns": {plain(turn) for item in test.items for turn in item.context},
        "outputs": {plain(row.text) for row in test.outputs},
    }
    found = {}
    for name, texts in sides.items():
        long = {text for text in texts if len(text.split()) >= 6}
        found |= {f"shared {name}": len(long & known), f"{name} in all": len(long)}
    return found


def train_one(given: argparse.Namespace, name: str, seed: int, whole: Dataset) -> dict[str, Any]:
    """Train, compare with people on every test set, and make the Delta table."""
    train, dev, test = whole.split(seed=seed)
    options: dict[str, Any] = {"inputs": given.inputs}
    options |= {} if given.epochs is None else {"epochs": given.epochs}
    options |= {} if given.max_steps is None else {"max_steps": given.max_steps}
    began = time.monotonic()
    last = [began]

    def say(progress: TrainingProgress) -> None:
        if time.monotonic() - last[0] > 30:
            last[0] = time.monotonic()
            print(
                f"  {progress.phase} {progress.done}/{progress.total} {progress.metrics}", file=sys.stderr, flush=True
            )

    size = len(whole.dialogues)
    length = "-".join(str(n) for n in (given.epochs, given.max_steps) if n is not None)
    folder = given.out / f"{name}-{given.profile}-{given.inputs}-{given.train}-{size}-{seed}{length and '-' + length}"
    evaluator = fit(name, train, dev=dev, profile=given.profile, seed=seed, folder=folder, progress=say, **options)
    seconds = time.monotonic() - began
    people, bins = {}, {}
    for set_name, aspect, without in TESTS:
        judged = rated_records(rated(given.data, set_name, without), aspect)
        values = evaluator.score(judged.records)
        people[set_name] = agreement(judged, values)
        rows = context_bins(judged.records, values, judged.means())
        bins[set_name] = [[row.low, row.high, row.n, row.mean, row.sd, row.spearman] for row in rows]
    delta = delta_table(evaluator, conversations_of(test, True), n=1000, seed=seed)
    return {
        "signature": evaluator.signature,
        "examples": dict(evaluator.record.examples),
        "metrics": dict(evaluator.record.metrics),
        "steps": evaluator.record.steps,
        "seconds": seconds,
        "training_seconds": evaluator.record.seconds,
        "load": round(os.getloadavg()[0], 1),
        "code": CODE,
        "people": people,
        "bins": bins,
        "delta": [[row.kind, row.group, row.n, row.mean, row.sd, row.below] for row in delta],
    }


def agreement(judged: Rated, values: np.ndarray) -> dict[str, Any]:
    """Coefficients over all outputs together, with 95 % intervals from a bootstrap over groups of items."""
    item, system, group = (
        np.array([part(record) for record in judged.records], dtype=object)
        for part in (lambda r: r.item, lambda r: r.system, lambda r: r.group or f"item:{r.item}")
    )
    found = correlate(values, judged.means(), item, system, cluster=group, level="segment", seed=13)
    return {kind: found[kind].as_dict() for kind in COEFFICIENTS}


def key_of(given: argparse.Namespace, name: str, seed: int, size: int) -> dict[str, Any]:
    return {
        "evaluator": name, "profile": given.profile, "inputs": given.inputs, "train": given.train, "dialogues": size,
        "epochs": given.epochs, "max_steps": given.max_steps, "seed": seed,
    }  # fmt: skip


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a file; one that was cut off in the middle counts as absent."""
    if not path.is_file():
        return []
    content = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in content[: content.rfind("\n") + 1].splitlines()]


def append(path: Path, row: dict[str, Any]) -> None:
    kept = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in (*read_rows(path), row))
    write_whole(path, lambda draft: draft.write_text(kept, encoding="utf-8"))


def floors(given: argparse.Namespace, path: Path) -> None:
    """What length, overlap and token F1 reach, once."""
    there = {row["set"] for row in read_rows(path)}
    for set_name, aspect, without in TESTS:
        if set_name in there:
            continue
        data = rated(given.data, set_name, without)
        judged = rated_records(data, aspect)
        names = [name for name in FLOORS if name != "token-f1" or any(item.references for item in data.items)]
        rows = {name: agreement(judged, load(name).score(judged.records)) for name in names}
        append(path, {"set": set_name, "aspect": aspect, "rows": rows})


def cell(row: dict[str, Any]) -> str:
    """Pearson / Spearman with the interval of the latter."""
    one, two = row["pearson"], row["spearman"]
    if one["value"] is None or two["value"] is None:
        return "-"
    return f"{one['value']:.3f} / {two['value']:.3f} [{two['low']:.3f}, {two['high']:.3f}]"


def table(head: list[str], rows: list[list[Any]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(str(value) for value in row) + " |" for row in rows),
        "",
    ]


INTRODUCTION = """# MAUDE and its rivals on real data

Written by `docs/results/maude.py OUT --write` from the figures in OUT; without `--write` it computes them.
Trained on dialogues alone; every rated set is new to it. Pearson / Spearman of single outputs with people's mean
rating, 95 % interval of Spearman (bootstrap over groups of items) in brackets, one row for each seed. Original Ground
Truth is left out of the USR sets, as in the published row. Four kinds of false replies: words dropped, shuffled,
repeated, and a reply of another dialogue. The published MAUDE saw six, and learned from PersonaChat with DistilBERT.
"""
DELTA = """score(true reply) - score(changed reply) on held-out dialogues of the training set: mean (SD), and the share
of changed replies that score lower. 0 is right for the true reply, 1 for the others.
"""
LEAKAGE = """Texts of six words or more (case and punctuation aside) that also stand in the training data. Some systems
pick their replies from a training set: these outputs it saw, but after other turns.
"""


def agreement_lines(runs: list[dict[str, Any]], floor_rows: list[dict[str, Any]]) -> list[str]:
    names = [name for name, _, _ in TESTS]
    n_of = {name: row["people"][name]["pearson"]["n"] for row in runs for name in row["people"]}
    head = ["evaluator", "trained on", "seed", *(f"{name} (n = {n_of.get(name, 0)})" for name in names)]
    body: list[list[Any]] = []
    for row in runs:
        sort = "" if row["inputs"] == "both" else f", {row['inputs']} only"
        sort += "" if row["epochs"] is None else f", {row['epochs']} epochs"
        place = f"{row['train']}, {row['dialogues']:,} dialogues"
        cells = [cell(row["people"][name]) for name in names]
        body.append([f"{row['evaluator']} ({row['profile']}{sort})", place, row["seed"], *cells])
    body.append(["MAUDE, published", "PersonaChat", "-", *(PUBLISHED[name] for name in names)])
    by_set = {row["set"]: row["rows"] for row in floor_rows}
    for floor in FLOORS:
        cells = [cell(by_set[name][floor]) if floor in by_set.get(name, {}) else "-" for name in names]
        body.append([f"{floor} (floor)", "nothing", "-", *cells])
    return table(head, body)


def delta_lines(runs: list[dict[str, Any]]) -> list[str]:
    body = [
        [row["evaluator"], row["profile"], row["seed"], d[0], d[1], d[2], f"{d[3]:.3f} ({d[4]:.3f})", f"{d[5]:.3f}"]
        for row in runs
        for d in row["delta"]
    ]
    return table(["evaluator", "profile", "seed", "changed reply", "kind", "n", "Delta", "lower"], body)


def bin_lines(runs: list[dict[str, Any]]) -> list[str]:
    body = []
    for row in runs:
        for name, found in row["bins"].items():
            for low, high, n, mean, _, rank in found:
                turns = f"{low}" if high == low else f"{low} to {high}" if high else f"{low} or more"
                shown = "-" if rank is None else f"{rank:.3f}"
                body.append([row["evaluator"], row["seed"], name, turns, n, f"{mean:.3f}", shown])
    return table(["evaluator", "seed", "set", "turns", "n", "mean score", "Spearman"], body)


def training_lines(runs: list[dict[str, Any]]) -> list[str]:
    body = []
    for row in runs:
        metrics = (row["metrics"].get(name, float("nan")) for name in ("loss", "below"))
        times = (f"{row[name]:,.0f}" for name in ("seconds", "training_seconds"))
        counts = (f"{n:,}" for n in row["examples"].values())
        figures = (f"{value:.4f}" for value in metrics)
        named = (row["evaluator"], row["profile"], row["seed"])
        body.append([*named, *counts, row["steps"], *figures, *times, row["load"]])
    columns = "evaluator, profile, seed, conversations, true replies, held out, texts, steps, dev loss, "
    columns += "false below true, seconds in all, of the network, machine's load"
    return table(columns.split(", "), body)


def write(given: argparse.Namespace) -> None:
    """The page of all figures in OUT."""
    runs = read_rows(given.out / "results.jsonl")
    leaks = read_rows(given.out / "leakage.jsonl")
    head = list(leaks[0]) if leaks else []
    sections = {
        "Agreement with people": agreement_lines(runs, read_rows(given.out / "floors.jsonl")),
        "Delta": [DELTA, *delta_lines(runs)],
        "By length of context": ["Mean score and Spearman with people by number of turns before.\n", *bin_lines(runs)],
        "Training": training_lines(runs),
        "Leakage": [LEAKAGE, *table(head, [[row[name] for name in head] for row in leaks])],
    }
    lines = [INTRODUCTION, code_line(runs, CODE), ""]
    for title, section in sections.items():
        lines += [f"## {title}", "", *section]
    path = ROOT / "docs" / "results" / "maude.md"
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(path)


def main() -> None:
    given = parse()
    if given.write:
        write(given)
        return
    results, leaks = given.out / "results.jsonl", given.out / "leakage.jsonl"
    floors(given, given.out / "floors.jsonl")
    whole = read_dataset(given.data / given.train)
    if not any(row["train"] == given.train for row in read_rows(leaks)):
        for name, _, without in TESTS:
            shared = shared_texts(whole, rated(given.data, name, without))
            append(leaks, {"train": given.train, "set": name, **shared})
    if given.dialogues is not None:
        whole = replace(whole, dialogues=whole.dialogues[: given.dialogues])
    for seed in given.seeds:
        for name in given.evaluators:
            key = key_of(given, name, seed, len(whole.dialogues))
            if any(all(row[part] == value for part, value in key.items()) for row in read_rows(results)):
                continue
            print(f"{name}, seed {seed}, {len(whole.dialogues):,} dialogues", file=sys.stderr, flush=True)
            append(results, {**key, **train_one(given, name, seed, whole)})


if __name__ == "__main__":
    main()
