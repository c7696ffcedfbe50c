"""Comparative evaluators from several folds as one: the judge of each pair, systems, folders."""

from __future__ import annotations

import numpy as np
import pytest

from evalapp.client.stopping import Comparer, load_comparer
from scoring.ml import InvalidOption, Record, catalogue, load
from scoring.ml.cross_fitted import join_folds
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.comparative.evaluator import Comparative
from scoring.ml.evaluators.comparative.folds import CrossFittedComparative
from scoring.ml.evaluators.comparative.systems import PairJudge
from scoring.ml.selection import selection_report
from tests.scoring.ml.evaluators.comparative.data import STEPS, make, untrained
from tests.scoring.ml.tiny import tiny_encoder


@pytest.fixture(scope="module")
def folds(tmp_path_factory) -> CrossFittedComparative:
    source = find_encoder(tiny_encoder("bert", tmp_path_factory.mktemp("encoder")))
    judges = [untrained(source, seed, f"g{seed}") for seed in (1, 2, 3)]
    found = join_folds(judges)
    assert isinstance(found, CrossFittedComparative)
    return found


def texts(group: str, *words: str) -> list[Record]:
    return [Record(text, context=("you like",), item=f"{group}-{n}", group=group) for n, text in enumerate(words)]


def test_pair_is_judged_by_folds_that_saw_neither_text(folds):
    one, two, three = folds.judges
    a, b = texts("g1", "cat sat", "no"), texts("g1", "the dog ran", "yes yes")
    mean = (two.judge(a, b).probabilities + three.judge(a, b).probabilities) / 2
    np.testing.assert_allclose(folds.judge(a, b).probabilities, mean, atol=1e-6)
    assert np.abs(one.judge(a, b).probabilities - mean).max() > 1e-3
    # One of two folds remains; for texts from elsewhere, all do.
    both = folds.judge(a, texts("g2", "tea", "mat on mat"))
    alone = three.judge(a, texts("g2", "tea", "mat on mat"))
    np.testing.assert_allclose(both.probabilities, alone.probabilities, atol=1e-6)
    assert both.swap_consistency == alone.swap_consistency
    new = texts("new", "cat sat"), texts("new", "the dog")
    every = np.mean([judge.judge(*new).probabilities for judge in folds.judges], axis=0)
    np.testing.assert_allclose(folds.judge(*new).probabilities, every, atol=1e-6)
    told: list[tuple[int, int]] = []
    np.testing.assert_array_equal(folds.compare(b, a, progress=lambda *done: told.append(done)), -folds.compare(a, b))
    assert told[-1] == (4, 4)
    with pytest.raises(InvalidOption, match="two lists of equal length"):
        folds.compare(a, b[:1])
    assert len(folds.compare([], [])) == 0


def test_systems_are_rated(folds):
    systems = {name: texts("g1", *(f"{name} {word}" for word in ("cat", "tea", "mat"))) for name in ("yes", "no", "i")}
    ratings = folds.rank(systems, seeds=3, max_games=300)
    table = folds.verdict_table(systems)
    assert set(ratings.order) == set(systems)
    assert (len(table), ratings.tie) == (9, "half")
    assert folds.remarks == ()
    by_skill = CrossFittedComparative(folds.entry, folds.members, {"by": "skill"})
    assert "each fold's texts were rated among themselves" in by_skill.remarks[0]


def test_expected_outcomes_come_from_mean_probabilities(folds):
    systems = {name: texts("g1", *(f"{name} {word}" for word in ("cat", "tea", "mat"))) for name in ("yes", "no", "i")}
    expected = join_folds([Comparative(judge.entry, judge.artefact, {"outcome": "expected"}) for judge in folds.judges])
    assert (expected.outcome, folds.outcome) == ("expected", "verdict")
    found = expected.encounters(systems)
    worse, tie, better = found.verdicts.probabilities.T
    np.testing.assert_allclose(found.scores, better + tie / 2)
    np.testing.assert_array_equal(found.verdicts.signs, folds.encounters(systems).verdicts.signs)
    np.testing.assert_allclose(found.table.scores, found.scores)
    assert folds.encounters(systems).scores is None
    assert expected.rank(systems, seeds=2, max_games=300).tie is None


def test_training_started_before_outcomes_uses_one_method(folds, tmp_path):
    source = folds.judges[0].artefact.encoder
    judges = [untrained(source, seed, f"g{seed}", outcome=outcome) for seed, outcome in ((1, ""), (2, "expected"))]
    mixed = join_folds(judges)
    assert {judge.outcome for judge in mixed.judges} == {"verdict"}
    mixed.save_pretrained(tmp_path / "mixed")
    loaded = load(tmp_path / "mixed")
    assert {judge.outcome for judge in loaded.judges} == {"verdict"}
    assert loaded.signature == mixed.signature
    assert "outcome" not in loaded.signature
    asked = load(tmp_path / "mixed", outcome="expected")
    assert {judge.outcome for judge in asked.judges} == {"expected"}


def test_verdicts_are_returned_with_their_subject(folds):
    systems = {name: texts("g1", *(f"{name} {word}" for word in ("cat", "tea", "mat"))) for name in ("yes", "no", "i")}
    found, table = folds.encounters(systems), folds.verdict_table(systems)
    assert (found.systems, len(found.items)) == (("i", "no", "yes"), 9)
    assert found.items[:3] == ("g1-0", "g1-1", "g1-2")
    assert list(zip(found.first, found.second, strict=True))[::3] == [(0, 1), (0, 2), (1, 2)]
    np.testing.assert_array_equal(found.table.verdicts, table.verdicts)
    judged = folds.judge(systems["i"] * 2 + systems["no"], systems["no"] + systems["yes"] * 2)
    np.testing.assert_array_equal(found.verdicts.signs, judged.signs)
    assert found.verdicts.swap_consistency == judged.swap_consistency
    some = folds.encounters(systems, max_items=2, seed=5)
    assert len(set(some.items)) == 2
    assert len(some.verdicts) == 6
    assert set(folds.encounters(systems, max_items=2, seed=5).items) == set(some.items)


def test_catalogue_names_comparative_evaluators():
    for entry in catalogue():
        if entry.learns:
            assert issubclass(entry.load_implementation(), PairJudge) == entry.compares, entry.name
        else:
            assert not entry.compares


def test_folder_of_folds_is_a_comparer(folds, tmp_path):
    """Evaluators of small projects are cross-fitted, and a downloaded one must be able to stop a training."""
    folds.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    assert isinstance(loaded, Comparer)
    a, b = texts("g2", "cat sat", "no"), texts("g2", "the dog ran", "yes yes")
    np.testing.assert_array_equal(load_comparer(tmp_path / "out").compare(a, b), folds.compare(a, b))
    assert loaded.signature == folds.signature
    assert "folds:3" in loaded.signature


def test_checkpoints_are_selected_by_comparison(folds):
    told: list[tuple[int, int]] = []
    report = selection_report(
        make(6), {"folds": folds}, aspect="fluency", runs=2, progress=lambda *done: told.append(done)
    )
    (row,) = report.rows
    assert (row.kind, row.runs, told[0], told[-1]) == ("steps", 2, (0, 1), (1, 1))
    assert {pick.picked for pick in row.picks} <= {str(step) for step in STEPS}

    class Cancelled(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        selection_report(make(6), {"folds": folds}, aspect="fluency", runs=2, progress=stop)
