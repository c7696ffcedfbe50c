"""comparative: the head alone on all comparisons, with ties calibrated on held-out groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from experiments.verdicts import (
    DEV_SHARE,
    SPLIT_SEED,
    Fold,
    Setting,
    draw_means,
    list_pairs,
    order_fold,
    read_compared,
    read_settings,
    resample_groups,
    win_rates,
)
from experiments.yardstick import with_draws
from study import Result, Run, Tables, forget, row

from evalapp.stats.core.multiple_tests import holm
from scoring.ml import Dataset, fit
from scoring.ml.evaluators.comparative.verdicts import decide_signs, measure_lean

FOLDS = 3
Pairs = Sequence[Any]


def compute(run: Run) -> None:
    for setting in read_settings(run):
        if run.wants(setting.name):
            for fold in range(1 if run.quick else FOLDS):
                for seed in run.seeds:
                    run.once(
                        f"{setting.name}/fold/{fold}", seed, lambda s=setting, f=fold, n=seed: measure(run, s, f, n)
                    )
                if not setting.varies:
                    run.once(
                        f"{setting.name}/ridge/{fold}", run.seeds[0], lambda s=setting, f=fold: measure_ridge(run, s, f)
                    )


def split(run: Run, setting: Setting, fold: int) -> tuple[Dataset, Dataset, Dataset]:
    """Train, dev and test part; no group is in two parts."""
    data = run.draw(read_compared(run, setting), 40)
    parts = data.split(seed=SPLIT_SEED, shares=(1.0,) * FOLDS)
    first, *others = (part for number, part in enumerate(parts) if number != fold)
    train, dev = first.merge(others).split(seed=SPLIT_SEED + 1, shares=(1 - DEV_SHARE, DEV_SHARE))
    return train, dev, parts[fold]


def measure(run: Run, setting: Setting, fold: int, seed: int) -> Result:
    train, dev, test = split(run, setting, fold)
    folder = run.folder(setting.name, fold, seed)
    evaluator: Any = fit(
        "comparative", train, dev=dev, aspect=setting.aspect, seed=seed, encoder=run.encoder, folder=folder,
        max_length=setting.max_length, **{**run.settings["options"], **setting.options},
    )  # fmt: skip
    state = {name: value for name, value in evaluator.artefact.state.items() if name != "calibration"}
    plain = type(evaluator)(evaluator.entry, replace(evaluator.artefact, state=state))
    pairs = list_pairs(test, setting.aspect)
    judged = plain.judge([a for a, _, _, _ in pairs], [b for _, b, _, _ in pairs])
    found = (
        judged.probabilities if evaluator.calibration is None else evaluator.calibration.calibrate(judged.probabilities)
    )
    truth = [sign for _, _, sign, _ in list_pairs(train, setting.aspect)]
    forget(folder)
    return {
        "train_pairs": evaluator.record.examples.get("compared pairs", 0),
        "calibration": None if evaluator.calibration is None else evaluator.calibration.as_dict(),
        "swap_consistency": judged.swap_consistency,
        "raw_said": judged.signs,
        "said": decide_signs(found, evaluator.threshold),
        "probabilities": found.round(5),
        "usual": [truth.count(sign) / len(truth) for sign in (-1, 0, 1)],
    }


def measure_ridge(run: Run, setting: Setting, fold: int) -> Result:
    """The difference of the scores of each pair by `ridge`, which learns from the same comparisons."""
    train, dev, test = split(run, setting, fold)
    ridge = fit("ridge", train.merge([dev]), aspects=setting.aspect, seed=run.seeds[0], encoder=run.encoder)
    pairs = list_pairs(test, setting.aspect)
    first, second = (
        np.asarray(ridge.score([pair[side] for pair in pairs])).reshape(len(pairs), -1)[:, 0] for side in (0, 1)
    )
    return {"lean": (first - second).round(6)}


def read_folds(run: Run, setting: Setting) -> list[Fold]:
    """The folds of the first seed that are computed."""
    folds = []
    for number in range(1 if run.quick else FOLDS):
        for result in run.store.get(f"{setting.name}/fold/{number}", run.seeds[:1]):
            pairs = list_pairs(split(run, setting, number)[2], setting.aspect)
            longer = np.array([np.sign(len(a.text) - len(b.text)) for a, b, _, _ in pairs])
            lean = measure_lean(np.asarray(result["probabilities"]))
            found = run.store.get(f"{setting.varies or setting.name}/ridge/{number}", run.seeds[:1])
            ridge = found[0]["lean"] if found else None
            folds.append(Fold(
                number, {**result, "lean": lean, "systems": {}, "ridge": ridge}, [group for _, _, _, group in pairs],
                np.array([sign for _, _, sign, _ in pairs]), longer, [(a, b) for a, b, _, _ in pairs],
            ))  # fmt: skip
    return folds


def tabulate(run: Run) -> Tables:
    known = [(setting, folds) for setting in read_settings(run) if (folds := read_folds(run, setting))]
    rows = [summarise(setting.name, folds) for setting, folds in known]
    primary = run.settings["primary"]
    adjusted = holm([None if one["set"] == primary else one["p"] for one in rows])
    for (setting, folds), one, p in zip(known, rows, adjusted, strict=True):
        yield {**one, "p": f"{one['p'] if p is None else p:.3f}"}
        for fold in folds:
            yield {**summarise(f"{setting.name}, fold {fold.number + 1}", [fold]), "p": None}
    for setting in read_settings(run):
        folds = [] if setting.varies else read_folds(run, setting)
        rates = win_rates(read_compared(run, setting), setting.aspect) if folds else {}
        for fold in folds:
            found = order_fold(fold, rates)
            if found["systems"] > FOLDS:
                columns = {name: found[name] for name in ("said", "lean", "length")}
                label = f"{setting.name}, fold {fold.number + 1}"
                yield row("orders", "set", label, systems=int(found["systems"]), **columns)


def summarise(label: str, folds: Sequence[Fold]) -> Mapping[str, Any]:
    def join(read: Any) -> np.ndarray:
        return np.concatenate([np.asarray(read(fold)) for fold in folds])

    groups = np.array([group for fold in folds for group in fold.groups])
    truth, longer = join(lambda fold: fold.truth), join(lambda fold: fold.longer)
    said, raw = join(lambda fold: fold.result["said"]), join(lambda fold: fold.result["raw_said"])
    probabilities = join(lambda fold: fold.result["probabilities"])
    usual = join(lambda fold: np.tile(fold.result["usual"], (len(fold.truth), 1)))
    place = np.arange(len(truth)), truth + 1
    losses = -np.log(np.maximum(probabilities[place], 1e-9)), -np.log(np.maximum(usual[place], 1e-9))
    decided, called = truth != 0, (truth != 0) & (said != 0)
    forced = np.sign(measure_lean(probabilities)) == truth
    rivals = [fold.result.get("ridge") for fold in folds]
    rival = None if any(one is None for one in rivals) else np.sign(np.concatenate(rivals)) == truth
    by_length = np.where(longer == 0, 0.5, longer == truth)

    def share(values: np.ndarray, rows: np.ndarray) -> Any:
        return resample_groups(np.asarray(values, dtype=float)[rows], groups[rows].tolist()) if rows.any() else None

    every = np.ones(len(truth), dtype=bool)
    return row(
        "ties", "set", label, folds=len(folds), pairs=len(truth),
        loss=float(losses[0].mean()), usual_loss=float(losses[1].mean()),
        gain=share(losses[1] - losses[0], every), raw_ties=float((raw == 0).mean()), ties=float((said == 0).mean()),
        p=with_draws(0.0, draw_means(losses[1] - losses[0], groups.tolist()), test=True)["p"],
        human_ties=float((truth == 0).mean()), decided=int(decided.sum()), coverage=share(called, decided),
        called=share(said == truth, called), forced=share(forced, decided), longer=share(by_length, decided),
        difference=share(forced - by_length, decided), ridge=None if rival is None else share(rival, decided),
        above_ridge=None if rival is None else share(forced.astype(float) - rival, decided),
        consistent=float(np.mean([fold.result["swap_consistency"] for fold in folds])),
    )  # fmt: skip
