"""shared-bert on novikova: row split and group split, one shared model against three, beside the majority class.

    python docs/results/shared_bert.py --out FOLDER

The row split lets the same output stand on both sides (the paper's way); the group split does not. Their difference
is what leaks.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from store import (
    ABSENT,
    Given,
    Result,
    Store,
    arguments,
    drawn,
    forget,
    machine_line,
    mean_interval,
    mean_sd,
    minutes,
    number,
    publish,
    store_of,
    t_interval,
    table,
    what_was_read,
    work_folder,
)

from scoring.ml import Dataset, fit, load, read_dataset
from scoring.ml.evaluators.shared_bert.evaluator import SharedBert
from scoring.ml.evaluators.shared_bert.labels import label_outputs
from scoring.ml.evaluators.shared_bert.report import classify, compare_over_seeds

SEEDS = (13, 14, 15, 16, 17)
ASPECTS = ("informativeness", "naturalness", "quality")
MODELS = {
    "shared": {},
    "three": {"shared": False},
    "output alone": {"inputs": "text"},
    "reference alone": {"inputs": "reference"},
}
#: Of each training where few items were asked for (`--items`): every output meets one of its references in an epoch,
#: another one in the next (usual: four), so that all models together take an evening.
SHORT: dict[str, Any] = {"max_references": 1}
#: Learning rates, of which the dev part of the first seed's group split chooses one for every training.
RATES = (2e-5, 5e-5, 1e-4)
FIGURES = ("accuracy", "balanced_accuracy", "mcc", "auroc", "f1")
FLOORS = ("length", "token-f1")
#: So many are all of novikova's: rows of `--items` as many are shown beside those of fewer.
ALL_ITEMS = 1280


def main() -> None:
    given = arguments(__doc__ or "", seeds=SEEDS, parts=("row", "group", "sentinels"))
    store = store_of(given, "shared_bert", "shared_bert")
    if not given.page_only:
        compute(given, store, drawn(read_dataset(given.data / "novikova"), given, quick=60))
    publish(given, "shared_bert", page(given, store))


def compute(given: Given, store: Store, data: Dataset) -> None:
    """Every setting and seed that is missing; the shared model of all seeds first, it carries most of the page, and the
    three models, which take thrice as long, last."""
    first = given.seeds[0]
    for rate in RATES[:2] if given.quick else RATES:
        store.once(f"choice/{rate:g}", first, lambda rate=rate: on_dev(given, data, rate, first))
    rate = chosen_rate(store, first)
    for model in sorted(MODELS, key=lambda name: name == "three"):
        for seed in given.seeds:
            for split in ("group", "row"):
                part = "sentinels" if "alone" in model else split
                # The sentinels take one seed and the split that does not leak.
                if not given.wants(part) or ("alone" in model and (split == "row" or seed != first)):
                    continue
                store.once(
                    f"{split}/{model}", seed,
                    lambda seed=seed, split=split, model=model: run(given, data, split, model, seed, rate),
                )  # fmt: skip


def options_of(given: Given, model: str, seed: int, rate: float) -> dict[str, Any]:
    more = {"epochs": 1} if given.quick else {}
    short = SHORT if given.items or given.quick else {}
    return {**short, **MODELS[model], "encoder": given.encoder, "seed": seed, "learning_rate": rate, **more}


def on_dev(given: Given, data: Dataset, rate: float, seed: int) -> Result:
    """Macro-F1 of the held-out part, mean over aspects, with one learning rate."""
    train, dev, _ = data.split(seed=seed)
    folder = work_folder(given, "shared_bert", "choice", rate, seed)
    found = fit("shared-bert", train, dev=dev, folder=folder, **options_of(given, "shared", seed, rate))
    forget(folder)
    return {"rate": rate, "macro_f1": found.record.metrics["macro_f1"], "train_seconds": found.record.seconds}


def tried_rates(store: Store, seed: int) -> list[Result]:
    return [row for (setting, s), row in sorted(store.rows.items()) if setting.startswith("choice/") and s == seed]


def chosen_rate(store: Store, seed: int) -> float:
    return max(tried_rates(store, seed), key=lambda row: row["macro_f1"])["rate"]


def run(given: Given, data: Dataset, split: str, model: str, seed: int, rate: float) -> Result:
    """Train one model and measure it on outputs it did not see (group) or on rows it did not see (row)."""
    options = options_of(given, model, seed, rate)
    folder = work_folder(given, "shared_bert", split, model, seed)
    if split == "row":
        found = fit("shared-bert", data, folder=folder, split="row", **options)
        forget(folder)
        return {"aspects": of_rows(found), "train_seconds": found.record.seconds, "steps": found.record.steps}
    train, dev, test = data.split(seed=seed)
    found = fit("shared-bert", train, dev=dev, folder=folder, **options)
    assert isinstance(found, SharedBert)
    labelled = label_outputs(test, found.aspects)
    scores = found.score(labelled.records)
    aspects = {}
    for place, aspect in enumerate(found.aspects):
        floors = {}
        for name in FLOORS:
            floors[name] = classify(labelled.labels[:, place], load(name).score(labelled.records)).auroc
        report = classify(labelled.labels[:, place], scores[:, place])
        aspects[aspect] = {**as_figures(report), "floors": floors}
    forget(folder)
    return {"aspects": aspects, "train_seconds": found.record.seconds, "steps": found.record.steps}


def as_figures(report: Any) -> dict[str, Any]:
    names = (*FIGURES, "n", "positives", "majority", "majority_f1", "collapsed")
    return {name: getattr(report, name) for name in names}


def of_rows(found: Any) -> dict[str, dict[str, Any]]:
    """The figures of the row split's test part, which the evaluator keeps in its record."""
    metrics = found.record.metrics
    names = (*FIGURES, "majority", "majority_f1", "n", "positives", "collapsed")
    return {a: {name: metrics.get(f"test_{name}_{a}") for name in names} for a in found.aspects}


def page(given: Given, store: Store) -> list[str]:
    """The page, from what the store holds."""
    every = [result for (_, seed), result in sorted(store.rows.items()) if seed in given.seeds]
    lines = [
        "# shared-bert on novikova",
        "",
        "How well does P(good) tell good outputs from others, if the same output may stand on both sides (row split,",
        "the paper's) and if it may not (group split)? One encoder with three heads (shared) against three models,",
        "with the majority class beside. Everything is chosen on the dev part. Mean ± SD over seeds, each with a split",
        "of its own; the difference shared − three has its 95 % interval (paired by seed), and p of both tests.",
        "",
        what_was_read(given),
        "",
        f"Made by `docs/results/shared_bert.py`. {machine_line(every, store.code, store.checks)}",
    ]
    tried = sorted(tried_rates(store, given.seeds[0]), key=lambda row: row["rate"])
    if tried:
        best = chosen_rate(store, given.seeds[0])
        rates = ", ".join(f"{row['rate']:g}: {number(row['macro_f1'])}" for row in tried)
        lines += [
            "",
            f"Learning rate of every training: {best:g}, chosen by macro-F1 on the dev part of the first seed's group",
            f"split ({rates}); with other seeds some of those outputs are tested on.",
            *(["An output meets one of its references in each of three epochs."] if given.items else []),
        ]
    for split, said in (("group", "Group split"), ("row", "Row split")):
        lines += ["", f"## {said}", "", *of_split(given, store, split)]
    lines += ["", "## What leaks", "", *leakage(given, store)]
    lines += ["", "## Sentinels", "", *sentinels(given, store)]
    lines += ["", "## Verdict", "", *verdict(given, store)]
    if given.items and given.items < ALL_ITEMS and not given.quick:
        lines += all_items(replace(given, items=ALL_ITEMS, again=()))
    return lines


def all_items(given: Given) -> list[str]:
    """The shared model learned from all items, as far as that is computed; nothing where it is not."""
    store = store_of(given, "shared_bert", "shared_bert")
    rows = []
    for split in ("group", "row"):
        found = store.of(f"{split}/shared", given.seeds)
        for aspect in ASPECTS if found else ():
            n = statistics.mean(values(found, aspect, "n"))
            floors = [mean_sd([r["aspects"][aspect]["floors"][f] for r in found]) for f in FLOORS if split == "group"]
            figures = [with_interval(values(found, aspect, name)) for name in ("mcc", "auroc", "accuracy")]
            trivial = mean_sd(values(found, aspect, "majority"))
            rows.append([split, aspect, str(len(found)), f"{n:.0f}", *figures, trivial, *(floors or ["-", "-"])])
    if not rows:
        return []
    tried = sorted(tried_rates(store, given.seeds[0]), key=lambda row: row["rate"])
    rates = ", ".join(f"{row['rate']:g}: {number(row['macro_f1'])}" for row in tried)
    head = ["split", "aspect", "seeds", "n of test", "MCC", "AUROC", "accuracy", "always one class"]
    every = [result for (_, seed), result in sorted(store.rows.items()) if seed in given.seeds]
    return [
        "", "## All items", "",
        "The shared model once more, learned from four times as much: all items, otherwise as above, with a learning",
        f"rate chosen anew ({rates}). Mean over seeds with its 95 % interval (t), trained a median of",
        f"{minutes(store.of('group/shared', given.seeds))} minutes. {machine_line(every, store.code, store.checks)}",
        "", *table([*head, *(f"AUROC of {name}" for name in FLOORS)], rows), "", *verdict(given, store),
        *against_three(given, store), *leaks_of_all(given, store),
    ]  # fmt: skip


def against_three(given: Given, store: Store) -> list[str]:
    """Three models learned from all items beside the shared one, of the seeds that have both; nothing without any."""
    seeds = [seed for seed in given.seeds if all((f"group/{m}", seed) in store.rows for m in ("three", "shared"))]
    if not seeds:
        return []
    three, shared = (store.of(f"group/{model}", seeds) for model in ("three", "shared"))
    rows = []
    for aspect in ASPECTS:
        for name in ("mcc", "auroc"):
            one, other = values(three, aspect, name), values(shared, aspect, name)
            rows.append([aspect, name, mean_sd(one), mean_sd(other), *compared(one, other)])
    many = f"{len(seeds)} seed{'s' * (len(seeds) > 1)}"
    text = f"Against three models, group split, {many}; training took a median of {minutes(three)} minutes."
    return [
        "",
        text,
        "",
        *table(["aspect", "figure", "three", "shared", "shared − three", "p one-way", "p paired"], rows),
    ]


def leaks_of_all(given: Given, store: Store) -> list[str]:
    """What leaks, where the shared model learned from all items by both splits."""
    if not store.of("row/shared", given.seeds):
        return []
    return ["", *leakage(given, store)]


def with_interval(found: Sequence[float | None]) -> str:
    """Mean with its interval over seeds; of two seeds an interval by t would be wider than the scale."""
    return mean_interval(found) if sum(value is not None for value in found) > 2 else mean_sd(found)


def values(results: Sequence[Result], aspect: str, name: str) -> list[Any]:
    return [result["aspects"][aspect][name] for result in results]


def of_split(given: Given, store: Store, split: str) -> list[str]:
    """A row for each aspect and figure."""
    shared, three = (store.of(f"{split}/{model}", given.seeds) for model in ("shared", "three"))
    if not shared:
        return [ABSENT]
    rows = []
    for aspect in ASPECTS:
        n = statistics.mean(values(shared, aspect, "n"))
        for name in FIGURES:
            one, other = values(three, aspect, name), values(shared, aspect, name)
            constant = {"accuracy": "majority", "f1": "majority_f1"}.get(name)
            trivial = {"balanced_accuracy": ".500", "mcc": ".000", "auroc": ".500"}.get(name) or mean_sd(
                values(shared, aspect, str(constant))
            )
            rows.append(
                [
                    aspect,
                    f"{n:.0f}",
                    name.replace("_", " "),
                    trivial,
                    mean_sd(one),
                    mean_sd(other),
                    *compared(one, other),
                ]
            )
    head = [
        "aspect",
        "n of test",
        "figure",
        "always one class",
        f"three, {len(three)} seeds",
        f"shared, {len(shared)} seeds",
        "shared − three",
        "p one-way",
        "p paired",
    ]
    lines = table(head, rows)
    collapsed = [
        f"{aspect} ({sum(map(bool, values(shared, aspect, 'collapsed')))} of {len(shared)})" for aspect in ASPECTS
    ]
    lines += ["", f"Collapsed heads of the shared model (over 99 % one class on test): {', '.join(collapsed)}.",
              f"Minutes of a run (median): shared {minutes(shared)}, three {minutes(three)}."]  # fmt: skip
    if split == "group":
        floors = [[a, *(mean_sd([r["aspects"][a]["floors"][f] for r in shared]) for f in FLOORS)] for a in ASPECTS]
        lines += ["", "AUROC of what knows nothing of quality, on the same test parts:", "",
                  *table(["aspect", *FLOORS], floors)]  # fmt: skip
    return lines


def compared(one: Sequence[float | None], other: Sequence[float | None]) -> list[str]:
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a is not None and b is not None]
    if len(pairs) < 2:
        return ["-", "-", "-"]
    found = compare_over_seeds([a for a, _ in pairs], [b for _, b in pairs])
    gap = found.difference
    return [
        f"{number(gap.value)} [{number(gap.low)}, {number(gap.high)}]", number(found.p_one_way), number(found.p_paired)
    ]  # fmt: skip


def leakage(given: Given, store: Store) -> list[str]:
    rows = []
    for aspect in ASPECTS:
        for name in ("mcc", "auroc", "balanced_accuracy"):
            seeds = [s for s in given.seeds if all((f"{k}/shared", s) in store.rows for k in ("row", "group"))]
            by_row, by_group = (values(store.of(f"{k}/shared", seeds), aspect, name) for k in ("row", "group"))
            rows.append(
                [aspect, name.replace("_", " "), mean_sd(by_row), mean_sd(by_group), compared(by_group, by_row)[0]]
            )
    text = "The shared model; row − group, paired by seed. What the row split adds is seen outputs, not skill."
    return [text, "", *table(["aspect", "figure", "row split", "group split", "row − group"], rows)]


def sentinels(given: Given, store: Store) -> list[str]:
    rows = []
    for model in MODELS:
        found = store.of(f"group/{model}", given.seeds[:1])
        if found:
            rows.append(
                [
                    model,
                    *(
                        f"{number(found[0]['aspects'][a]['mcc'])} / {number(found[0]['aspects'][a]['auroc'])}"
                        for a in ASPECTS
                    ),
                ]
            )
    text = f"MCC / AUROC on the group split, seed {given.seeds[0]}: models that may read one of the two texts only."
    return [text, "", *table(["reads", *ASPECTS], rows)]


def verdict(given: Given, store: Store) -> list[str]:
    """Whether the shared model beats the majority class on the group split, by the intervals over seeds."""
    found = store.of("group/shared", given.seeds)
    lines = []
    for aspect in ("naturalness", "quality"):
        mcc = [v for v in values(found, aspect, "mcc") if v is not None]
        auroc = [v for v in values(found, aspect, "auroc") if v is not None]
        if min(len(mcc), len(auroc)) < 2:
            continue
        beats = t_interval(mcc)[0] > 0 and t_interval(auroc)[0] > 0.5
        said = "beats the majority class" if beats else "does not beat the majority class beyond doubt"
        lines.append(f"- {aspect}: MCC {mean_interval(mcc)}, AUROC {mean_interval(auroc)}: {said}.")
    return lines or ["Too few seeds for a verdict."]


if __name__ == "__main__":
    main()
