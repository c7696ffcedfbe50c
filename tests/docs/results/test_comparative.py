"""The study of comparative: its splits, and what its tables say of verdicts, seeds and systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from scoring.ml import Dataset, Item, Output, Record


@pytest.fixture(scope="module")
def verdicts(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.verdicts")


#: Six pairs in three groups: half are right, the longer text is always chosen.
GROUPS = [f"g{n // 2}" for n in range(6)]
TRUTH = np.array([1 if n % 2 else -1 for n in range(6)])
RATES = {"a": 0.9, "b": 0.7, "c": 0.4, "d": 0.1}


def make_fold(verdicts: ModuleType, said: list[float], lean: list[float], **more: Any) -> Any:
    result = {"said": said, "lean": lean, "usual": 1, "swap_consistency": 0.5, "systems": more.pop("systems", {})}
    return verdicts.Fold(0, result, GROUPS[: len(said)], TRUTH[: len(said)], np.ones(len(said)), **more)


def summarise(verdicts: ModuleType, *folds: Any) -> dict[str, Any]:
    found: dict[str, Any] = verdicts.summarise_verdicts(
        verdicts.Setting("pandalm", "pandalm", "overall", 1), [[fold] for fold in folds]
    )
    return found


def test_decided_pairs_are_a_forced_choice_by_lean(verdicts: ModuleType) -> None:
    found = summarise(verdicts, make_fold(verdicts, TRUTH.tolist(), [0.5] * 6))
    assert found["right"] == {"value": 0.5, "low": 0.5, "high": 0.5}
    assert found["longer"]["value"] == 0.5
    assert found["right_all"]["value"] == 1.0
    assert (found["decided"], found["pairs"], found["ties"], found["human_ties"]) == (6, 6, 0.0, 0.0)


def test_a_pair_counts_with_the_share_of_seeds_that_are_right(verdicts: ModuleType) -> None:
    one, other = ([float(sign * value) for value in TRUTH] for sign in (1, -1))
    both = [make_fold(verdicts, TRUTH.tolist(), lean) for lean in (one, other)]
    assert summarise(verdicts, both[0])["right"]["value"] == 1.0
    found = summarise(verdicts, *both)
    assert (found["seeds"], found["right"]["value"], found["difference"]["value"]) == (2, 0.5, 0.0)


def test_verdicts_on_other_pairs_are_refused(verdicts: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"Fold 0 .*2 verdicts .*6 pairs"):
        verdicts.Fold(0, {"said": [1, 1]}, GROUPS, TRUTH, TRUTH)


def test_what_learns_from_more_is_measured_on_the_same_groups(verdicts: ModuleType, make_run: Any) -> None:
    items = tuple(Item(str(n), group=f"g{n // 2}") for n in range(2400))
    data = Dataset("d", items=items, outputs=tuple(Output(item.id, "a", "text") for item in items))
    settings = verdicts.read_settings(make_run("comparative"))
    small, more = (one for one in settings if one.name.startswith("e2e-quality"))
    assert more.learns > small.most == more.most
    for fold in range(3):
        groups = {
            one.name: [{item.group for item in part.items} for part in verdicts.split_fold(data, one, fold, False)]
            for one in (small, more)
        }
        train, dev, test = groups[small.name]
        assert groups[more.name][1:] == [dev, test]
        assert (len(train), len(groups[more.name][0]), len(test)) == (small.most, more.learns, small.most)
        assert train <= groups[more.name][0]
        assert not groups[more.name][0] & (dev | test)
        assert not dev & test


def test_the_order_of_systems_by_lean_where_every_verdict_is_a_tie(verdicts: ModuleType) -> None:
    """The better system of a pair leads by a little; the worse a system is, the longer it writes."""
    texts = {name: Record("x" * (n + 1), system=name) for n, name in enumerate(RATES)}
    sides = [(texts[one], texts[two]) for one, two in ("ab", "bc", "cd")]
    tied = make_fold(verdicts, [0, 0, 0], [0.2, 0.1, 0.3], sides=sides)
    other = make_fold(verdicts, [1, -1, -1], [0.3, -0.1, 0.0], sides=sides)
    (row,) = verdicts.order_systems("e2e-quality", [[tied], [other]], RATES)
    # Means of a, b, c, d by verdicts: all 0, then 1, -1, 0, 1; by lean: .2, -.05, .1, -.3, then .3, -.2, .05, 0.
    by_verdict = stats.spearmanr(list(RATES.values()), [1, -1, 0, 1]).statistic
    by_lean = [
        stats.spearmanr(list(RATES.values()), means).statistic
        for means in ([0.2, -0.05, 0.1, -0.3], [0.3, -0.2, 0.05, 0])
    ]
    assert row["said"] == {"value": pytest.approx(by_verdict, abs=1e-7), "defined": 1, "of": 2}
    assert row["lean"]["value"] == pytest.approx(np.mean(by_lean), abs=1e-7)
    assert row["lean"]["sd"] == pytest.approx(np.std(by_lean, ddof=1), abs=1e-7)
    assert (row["length"], row["systems"], row["skill"]) == (-1.0, 4, None)
    # Three systems give no order to speak of.
    assert not list(verdicts.order_systems("x", [[tied]], {"a": 0.9, "b": 0.7, "c": 0.4}))


def test_skill_ratings_are_compared_with_win_rates(verdicts: ModuleType) -> None:
    texts = {name: Record("x", system=name) for name in RATES}
    sides = [(texts["a"], texts["b"]), (texts["c"], texts["d"])]
    skill = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
    folds = [
        make_fold(verdicts, [1, 1], [0.5, 0.5], sides=sides, systems={"skill": one})
        for one in (skill, dict.fromkeys(skill, 1.0))
    ]
    (row,) = verdicts.order_systems("x", [[fold] for fold in folds], RATES)
    assert row["skill"] == {"value": 1.0, "defined": 1, "of": 2}  # equal ratings give no order


def test_rows_stay_of_verdicts_whatever_the_profile_counts(verdicts: ModuleType) -> None:
    class Judge:
        entry, artefact = "entry", "artefact"

        def __init__(self, entry: object, artefact: object, options: dict[str, object]) -> None:
            self.given = (entry, artefact, options)

    found = verdicts.count_verdicts(Judge("entry", "artefact", {}))
    assert found.given == ("entry", "artefact", {"outcome": "verdict"})


def make_replies() -> Dataset:
    """Four items: the last checkpoint writes longer in three and alike in one; the adversarial reply is longer than
    the human one in two, shorter in one; the random one is always shorter."""
    items = tuple(Item(str(n), references=("four",)) for n in range(4))
    texts = {
        ("ngram", 1): ["a", "a", "a", "a"],
        ("ngram", 2): ["a", "aa", "aa", "aa"],
        ("unseen", 1): ["a", "a", "a", "a"],
        ("unseen", 2): ["a", "a", "a", "a"],
        ("adversarial", None): ["longer", "longer", "four", "sh"],
        ("random", None): ["a", "b", "c", "d"],
    }
    outputs = (Output(str(n), name, text, step) for (name, step), row in texts.items() for n, text in enumerate(row))
    return Dataset("d", items=items, outputs=tuple(outputs))


def compare_lengths(one: list[Record], other: list[Record]) -> np.ndarray:
    return np.array([len(a.text) - len(b.text) for a, b in zip(one, other, strict=True)])


def test_shares_are_of_the_items_won_and_lost(verdicts: ModuleType) -> None:
    assert verdicts.share_wins(make_replies(), compare_lengths) == {
        "ngram_last_over_first": 0.75, "ngram_first_over_last": 0.0,
        "unseen_last_over_first": 0.0, "unseen_first_over_last": 0.0,
        "people_over_adversarial": 0.25, "adversarial_over_people": 0.5,
        "people_over_random": 1.0, "random_over_people": 0.0,
    }  # fmt: skip


def test_supervision_is_shown_with_its_baselines(verdicts: ModuleType, make_run: Any) -> None:
    run = make_run("comparative", seeds=(13, 14))
    shares = verdicts.share_wins(make_replies(), compare_lengths) | {"ngram_spearman": 0.5, "unseen_spearman": 0.25}
    baselines = {"items": 4, "checkpoints": 2, **dict.fromkeys(run.settings["baselines"], shares)}
    for seed in run.seeds:
        run.once("supervision/floors", seed, lambda: baselines)
    assert not list(verdicts.tabulate_supervision(run))  # baselines alone say nothing
    for seed, macro_f1 in ((13, 0.7), (14, 0.8)):
        run.once("supervision/without tie", seed, lambda f1=macro_f1: shares | {"dev_macro_f1": f1})
    rows = {row.get("evaluator", "facts"): row for row in verdicts.tabulate_supervision(run)}
    assert rows["without tie"]["dev_macro_f1"]["value"] == pytest.approx(0.75)
    assert rows["length (baseline)"]["people_over_random"] == {"value": 1.0, "sd": 0.0}
    assert rows["length (baseline)"]["dev_macro_f1"] is None
    assert rows["facts"]["longer negatives"] == 0.5


def test_rows_of_other_data_leave_the_table_as_it_is(
    verdicts: ModuleType, make_run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run("comparative", seeds=(13,))
    setting = replace(verdicts.read_settings(run)[0], folds=1)
    monkeypatch.setattr(verdicts, "read_settings", lambda run: [setting])
    monkeypatch.setattr(verdicts, "read_compared", lambda run, setting: Dataset("d"))
    monkeypatch.setattr(verdicts, "split_fold", lambda *_: (None, None, None))
    monkeypatch.setattr(verdicts, "list_pairs", lambda *_: [(Record("aa"), Record("b"), 1, "g")])
    run.once("pandalm/fold/0", 13, lambda: {"said": [1, 1], "lean": [0.5, 0.5], "usual": 1, "systems": {}})
    assert not list(verdicts.tabulate(run))
    assert "2 verdicts on 1 pairs" in capsys.readouterr().out
