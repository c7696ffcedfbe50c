"""The page of the comparative evaluator: its tables of verdicts, seeds and systems."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from scoring.ml import Dataset, Item, Output, Record
from tests.scoring.ml.tiny import tiny_encoder


@pytest.fixture(scope="module")
def comparative(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("comparative")


#: Six pairs in three groups: half are right; the longer text is always chosen.
GROUPS = [f"g{n // 2}" for n in range(6)]
TRUTH = np.array([1 if n % 2 else -1 for n in range(6)])
WIN_RATES = {"a": 0.9, "b": 0.6, "c": 0.2}


@pytest.fixture
def pages(comparative: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes a page from given results, each in its own store, and reads it."""
    store = importlib.import_module("store")
    monkeypatch.setattr(store, "PAGES", tmp_path)
    # The human verdicts on the pairs are the same in every setting.
    monkeypatch.setattr(comparative, "read_compared", lambda given, setting: Dataset("d"))
    monkeypatch.setattr(comparative, "people_win_rates", lambda data, aspect: WIN_RATES)
    monkeypatch.setattr(comparative, "part_of", lambda *_: (None, None, None))
    pairs = [(Record("longer"), Record("one"), int(sign), group) for sign, group in zip(TRUTH, GROUPS, strict=True)]
    monkeypatch.setattr(comparative, "judged_pairs", lambda data, aspect: pairs)
    given = comparative.Given(tmp_path, tmp_path, (13, 14), None, False, True, (), None)

    def written(*results: tuple[str, int, dict[str, Any]]) -> str:
        names = [tmp_path / f"{len(list(tmp_path.iterdir()))}-{kind}.jsonl" for kind in ("rows", "aside")]
        kept = comparative.Store(*names, "abc")
        for setting, seed, result in results:
            kept.once(setting, seed, lambda result=result: result)
        comparative.publish(given, "comparative", comparative.page(given, kept))
        return (tmp_path / "comparative.md").read_text(encoding="utf-8")

    return written


def results(comparative: ModuleType, name: str) -> list[tuple[str, int, dict[str, Any]]]:
    """One fold of a setting: one pair of each group is right."""
    seed = comparative.SPLIT_SEED
    fold = {"choice": "5e-05", "train_pairs": 9, "training_seconds": 1.0, "swap_consistency": 0.5, "usual": 1}
    said = {"said": TRUTH.tolist(), "lean": [0.5] * 6, "systems": {}}
    return [(f"{name}/rate/5e-05", seed, {"dev_loss": 0.7, "steps": 3}), (f"{name}/fold/0", seed, {**fold, **said})]


def test_tables_of_a_set(comparative: ModuleType, pages: Callable[..., str]) -> None:
    first = pages(*results(comparative, "pandalm"))
    # A forced choice by lean: half are right, like the longer text; by verdict all are right.
    assert "| pandalm, 1 of 3 folds | 1 | 6 | 0.500 [0.500, 0.500] | 0.500" in first
    assert "| 6 | 1.000 [1.000, 1.000] | 0.500" in first
    assert "- pandalm: of decided pairs not told apart from *the longer wins*" in first
    assert "of all pairs above the most frequent verdict" in first
    assert "Order of the systems" not in first
    assert "Code of the evaluators: state abc." in first
    # A section without data stays unchanged.
    assert "| pandalm, 1 of 3 folds | 1 | 6" in pages()


def test_verdicts_on_other_pairs_are_refused(comparative: ModuleType, pages: Callable[..., str]) -> None:
    rate, (setting, seed, fold) = results(comparative, "pandalm")
    with pytest.raises(ValueError, match="Fold 0 has 2 verdicts on 6 pairs"):
        pages(rate, (setting, seed, {**fold, "said": [1, 1], "lean": [0.5, 0.5]}))


def test_evaluators_with_more_training_data_use_the_same_groups(comparative: ModuleType) -> None:
    items = tuple(Item(str(n), group=f"g{n // 2}") for n in range(2400))
    data = Dataset("d", items=items, outputs=tuple(Output(item.id, "a", "text") for item in items))
    small, more = (one for one in comparative.SETTINGS if one.name.startswith("e2e-quality"))
    assert more.learns > small.most == more.most
    for fold in range(comparative.FOLDS):
        parts = {one.name: comparative.part_of(data, one, fold, False) for one in (small, more)}
        groups = {name: [{item.group for item in part.items} for part in found] for name, found in parts.items()}
        train, dev, test = groups[small.name]
        assert groups[more.name][1:] == [dev, test]
        assert (len(train), len(groups[more.name][0]), len(test)) == (small.most, more.learns, small.most)
        assert train <= groups[more.name][0]
        assert not groups[more.name][0] & (dev | test)
        assert not dev & test
    assert not comparative.from_more(["| e2e-quality, 1 of 3 folds | 9 |"])
    assert "*e2e-quality-from-more* learns from 360" in comparative.from_more([f"| {more.name}, 1 of 1 folds | 9 |"])


def test_supervision_is_shown_with_its_baselines(comparative: ModuleType, pages: Callable[..., str]) -> None:
    floors = {"items": 4, "checkpoints": 2, **{name: comparative.shares(spoken(), by_length) | SPEARMAN for name in
              comparative.FLOORS}}  # fmt: skip
    of_floors = [("supervision/floors", seed, floors) for seed in (13, 14)]
    alone = pages(*of_floors).partition("## Strong and weak supervision alone")[2]
    assert alone.strip() == "Not computed yet."  # baselines alone give no statement
    found = floors["length"] | {"training_seconds": 5.0, "dev_macro_f1": 0.7}
    other = found | {"dev_macro_f1": 0.8}
    text = pages(*of_floors, ("supervision/without tie", 13, found), ("supervision/without tie", 14, other))
    row = "0.500 (SD 0.000) | 0.250 (SD 0.000) | 0.750 (SD 0.000) / 0.000 (SD 0.000)"
    assert f"| without tie | 2 | 0.750 (SD 0.071) | {row} |" in text
    assert f"| length (floor) | 2 | - | {row} |" in text
    assert "50% of the adversarial negatives are longer" in text
    assert "at most ± 0.49." in text
    missing = text.partition("Not computed yet: ")[2].partition(".")[0]
    assert missing.split(", ") == ", ".join(name for name in comparative.ABLATIONS if name != "without tie").split(", ")


SPEARMAN = {"ngram_spearman": 0.5, "unseen_spearman": 0.25}


def spoken() -> Dataset:
    """Four items: the last checkpoint writes longer in three and the same length in one; the adversarial reply is
    longer than the human one in two, shorter in one; the random one is always shorter."""
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


def by_length(one: list[Record], other: list[Record]) -> np.ndarray:
    return np.array([len(a.text) - len(b.text) for a, b in zip(one, other, strict=True)])


def test_shares_count_items_won_and_lost(comparative: ModuleType) -> None:
    assert comparative.shares(spoken(), by_length) == {
        "ngram_last_over_first": 0.75, "ngram_first_over_last": 0.0,
        "unseen_last_over_first": 0.0, "unseen_first_over_last": 0.0,
        "people_over_adversarial": 0.25, "adversarial_over_people": 0.5,
        "people_over_random": 1.0, "random_over_people": 0.0,
    }  # fmt: skip


def test_preference_for_shorter_text_is_a_baseline(comparative: ModuleType) -> None:
    def words(longer: list[int]) -> str:
        fold = {"said": [1] * 6, "lean": [0.5] * 6, "usual": 1}
        made = comparative.Fold(0, fold, GROUPS, np.ones(6), np.array(longer), {})
        computed = {setting.name: [[made]] if setting.name == "pandalm" else [] for setting in comparative.SETTINGS}
        (line,) = comparative.verdicts_in_words(computed)
        return str(line)

    assert "and not told apart from *the shorter wins*, which is right in 1.000 of them" in words([-1] * 6)
    assert "shorter" not in words([1] * 6)
    assert "and not told apart from *the shorter wins*, which is right in 0.667 of them" in words(
        [-1, -1, -1, 1, -1, 1]
    )
    assert "shorter" not in words([1, 1, 1, -1, 1, -1])


def test_pair_counts_with_its_share_of_correct_seeds(comparative: ModuleType, pages: Callable[..., str]) -> None:
    rate, (_, first, fold) = results(comparative, "pandalm")
    all_right, none_right = TRUTH.astype(float).tolist(), (-TRUTH).astype(float).tolist()
    rows = [(f"pandalm/fold/{n}", first + n, {**fold, "lean": all_right}) for n in range(3)]
    # Fold 1 of the first seed and fold 0 of the second have the same number but are separate results.
    others = [(f"pandalm/fold/{n}", first + 1 + n, {**fold, "lean": none_right}) for n in range(3)]
    unfinished = pages(rate, *rows, *others[:2])
    assert "| pandalm, 3 of 3 folds | 1 | 18 | 1.000 [1.000, 1.000]" in unfinished
    assert "seed of training alone" not in unfinished
    text = pages(rate, *rows, *others)
    assert "| pandalm, 3 of 3 folds | 2 | 18 | 0.500 [0.500, 0.500]" in text
    assert (
        "| pandalm | 2 | 0.500 (SD 0.707; 0.000 to 1.000) | +0.000 (SD 0.707; -0.500 to +0.500) | "
        "1.000 (SD 0.000; 1.000 to 1.000) |"
    ) in text


def test_system_order_by_lean_when_every_verdict_is_a_tie(
    comparative: ModuleType, pages: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each pair of neighbours the better system leads slightly; worse systems write longer texts."""
    rates = {"a": 0.9, "b": 0.7, "c": 0.4, "d": 0.1}
    texts = {name: Record("x" * (n + 1), system=name) for n, name in enumerate(rates)}
    pairs = [(texts[one], texts[two], 1, one) for one, two in ("ab", "bc", "cd")]
    monkeypatch.setattr(comparative, "people_win_rates", lambda data, aspect: rates)
    monkeypatch.setattr(comparative, "judged_pairs", lambda data, aspect: pairs)
    rate, (_, first, fold) = results(comparative, "e2e-quality")

    def rows(seed: int, said: list[int], lean: list[float]) -> list[tuple[str, int, dict[str, Any]]]:
        return [(f"e2e-quality/fold/{n}", seed + n, {**fold, "said": said, "lean": lean}) for n in range(3)]

    tied = rows(first, [0, 0, 0], [0.2, 0.1, 0.3])
    # Means of a, b, c, d: 1, -1, 0, 1 by verdicts and .3, -.2, .05, .0 by lean.
    other = rows(first + 1, [1, -1, -1], [0.3, -0.1, 0.0])
    text = pages(rate, *tied, *other)
    # Seed 1: means of the lean are .2, -.05, .1, -.3; d is last, b after c: Spearman .8.
    by_hand = stats.spearmanr([0.9, 0.7, 0.4, 0.1], [1, -1, 0, 1]).statistic
    of_lean = [
        stats.spearmanr([0.9, 0.7, 0.4, 0.1], row).statistic for row in ([0.2, -0.05, 0.1, -0.3], [0.3, -0.2, 0.05, 0])
    ]
    line = (
        f"| e2e-quality | 1 | 2 | 3 | 4 | {by_hand:.3f} (defined on 1 of 2 seeds) | {np.mean(of_lean):.3f} (SD "
        f"{np.std(of_lean, ddof=1):.3f}) | -1.000 |"
    )
    assert line in text
    assert "On e2e mean verdicts give an order in 3 of 6 trainings" in text
    assert "expected outcomes in 6" in text
    assert "no independent evidence" in text
    assert "Other sets" not in text
    assert "of pandalm (4 systems, 3 trainings) - by verdicts, 0.80 by expected outcomes" in pages(
        rate, ("pandalm/rate/5e-05", first, {"dev_loss": 0.7, "steps": 3}), *tied,
        *((setting.replace("e2e-quality", "pandalm"), seed, result) for setting, seed, result in tied),
    )  # fmt: skip


def test_rows_use_verdicts_for_every_profile(comparative: ModuleType) -> None:
    class Judge:
        entry, artefact = "entry", "artefact"

        def __init__(self, entry: object, artefact: object, options: dict[str, object]) -> None:
            self.given = (entry, artefact, options)

    found = comparative.by_verdicts(Judge("entry", "artefact", {}))
    assert found.given == ("entry", "artefact", {"outcome": "verdict"})


def test_seed_without_a_system_order_is_counted(comparative: ModuleType, pages: Callable[..., str]) -> None:
    rate, (_, first, fold) = results(comparative, "pandalm")
    length = {"a": 1.0, "b": 2.0, "c": 3.0}

    def rows(seed: int, **skill: float) -> list[tuple[str, int, dict[str, Any]]]:
        systems = {"skill": skill, "length": length, "converged": 1.0}
        return [(f"pandalm/fold/{n}", seed + n, {**fold, "systems": systems}) for n in range(3)]

    right, wrong = {"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 3.0, "b": 1.0, "c": 2.0}
    one = pages(rate, *rows(first, **right))
    assert "| pandalm | 1 | 1 | 3 | 1.000 | 1.000 | -1.000 | -1.000 | 1.00 |" in one
    two = pages(rate, *rows(first, **right), *rows(first + 1, **wrong))
    assert "| pandalm | 3 | 2 | 3 | 0.750 (SD 0.354) | 0.667 (SD 0.471) | -1.000 | -1.000 | 1.00 |" in two
    tied = pages(rate, *rows(first, **right), *rows(first + 1, a=1.0, b=1.0, c=1.0))
    said = "1.000 (defined on 1 of 2 seeds)"
    assert f"| pandalm | 2 | 2 | 3 | {said} | {said} | -1.000 | -1.000 | 1.00 |" in tied


def test_variants_are_shown_with_their_base_setting(comparative: ModuleType, pages: Callable[..., str]) -> None:
    """On the same pairs with the same seeds, and only folds that both have."""
    rate, (_, seed, fold) = results(comparative, "pandalm")
    # One of six is right by lean, none by verdict; the other two folds are entirely right.
    usual = [(f"pandalm/fold/{n}", seed + n, {**fold, "lean": TRUTH.tolist()}) for n in (1, 2)]
    usual += [("pandalm/fold/0", seed, {**fold, "said": [0] * 6, "lean": [TRUTH[0], *-TRUTH[1:]]})]
    name = "pandalm-read-whole"
    tried = [(f"{name}/rate/5e-05", seed, {"dev_loss": 0.7, "steps": 3}), (f"{name}/fold/0", seed, fold)]
    assert "What else was tried:" not in pages(rate, *usual)
    page = pages(rate, *usual, *tried)
    # Three of six by lean and all by verdict: gains of two and six.
    said = f"- {name} beside pandalm, on the same 6 decided and 6 pairs of all, 1 seed: +0.333 [+0.000, +0.500] and"
    assert said in page
    assert "and +1.000 [+1.000, +1.000] right." in page


def test_share_of_truncated_pairs(comparative: ModuleType, tmp_path: Path) -> None:
    source = tiny_encoder("bert", tmp_path / "encoder")
    given = comparative.Given(tmp_path, tmp_path, (13,), source, False, True, (), None)
    sides = [(Record("a " * n), Record("b")) for n in (1, 2, 16, 20)]
    fold = comparative.Fold(0, {"said": [1] * 4}, ["g"] * 4, np.ones(4), np.ones(4), {}, sides)
    cut = comparative.Setting("pandalm", "pandalm", "overall", 1, max_length=16)
    assert comparative.share_cut(given, cut, [[fold]]) == 0.5
    assert comparative.share_cut(given, replace(cut, max_length=None), [[fold]]) == 0.0
    assert comparative.share_cut(given, cut, []) == 0.0
