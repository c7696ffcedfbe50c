"""Pairs without judgements: classes, contexts, margins, curriculum, convergence, smoothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from scoring.ml import TrainingDataError
from scoring.ml.evaluators.comparative.pairs import (
    BETTER_TARGET,
    TIE_TARGET,
    WORSE_TARGET,
    Pair,
    Samples,
    StrongPairs,
    WeakPairs,
    converged_steps,
    margin_floor,
    smooth_target,
)
from scoring.ml.types import Dataset, Item, Output, System
from tests.scoring.ml.evaluators.comparative.data import make

OPTIONS = {"margin": 0.1, "curriculum": True, "same_context": 0.8, "smoothing": 0.1, "tie": True}


def weak(dataset: Dataset, **options) -> WeakPairs:
    return WeakPairs(dataset, Samples.of(dataset), **{**OPTIONS, **options})


def test_origin_of_texts():
    data = make(2)
    data = replace(
        data,
        systems=(*data.systems, System("h", "human"), System("c", "control")),
        outputs=(*data.outputs, Output("i0", "h", "by hand"), Output("i0", "c", "control"), Output("i1", "m3", "  ")),
    )
    samples = Samples.of(data)
    assert {record.text for record in samples.real} == {
        "by hand",
        *(text for item in data.items for text in item.references),
    }
    assert {record.system for record in samples.generated} == {"m1", "m2", "ngram"}


def test_strong_pairs_are_balanced_and_correct():
    samples = Samples.of(make(20))
    strong = StrongPairs(samples, same_context=0.8, tie=True)
    pairs = strong.draw(np.random.default_rng(1), 3000)
    counts = Counter(pair.target for pair in pairs)
    # Binomial(3000, 1/3) has a standard deviation of 26.
    assert all(abs(n - 1000) < 110 for n in counts.values())
    real = {id(record) for record in samples.real}
    for a, b, target in pairs:
        sides = (id(a) in real, id(b) in real)
        assert target == {(True, False): BETTER_TARGET, (False, True): BETTER_TARGET[::-1]}.get(sides, TIE_TARGET)
        if sides == (False, False):
            assert (a.system, a.step) == (b.system, b.step)
        assert a.text != b.text
    decisive = [pair.a.item == pair.b.item for pair in pairs if pair.target != TIE_TARGET]
    # 80 % within one item, and one in twenty of the others by chance.
    assert np.mean(decisive) == pytest.approx(0.81, abs=0.04)
    ties = [(id(pair.a) in real) for pair in pairs if pair.target == TIE_TARGET]
    assert np.mean(ties) == pytest.approx(0.5, abs=0.07)


def collapsed(generated: Callable[[int], str], real: Callable[[int], str] = "people said {}".format) -> Dataset:
    """Forty items with one human text and one text of a generator each."""
    items = tuple(Item(f"i{n}", ("so",), references=(real(n),)) for n in range(40))
    outputs = tuple(Output(item.id, "dull", generated(n)) for n, item in enumerate(items))
    return Dataset("collapsed", systems=(System("dull"),), items=items, outputs=outputs)


@pytest.mark.parametrize(
    ("generated", "real", "generated_ties"),
    [
        pytest.param("it said {}".format, "people said {}".format, 0.5, id="all different"),
        pytest.param(
            lambda n: f"it said {n}" if n < 4 else "i do not know", "people said {}".format, 0.5, id="9 in 10"
        ),
        pytest.param(lambda n: "i do not know", "people said {}".format, 0.0, id="one generated text"),
        pytest.param("it said {}".format, lambda n: "yes", 1.0, id="one text of people"),
    ],
)
def test_classes_are_equally_frequent_even_with_repetitive_generators(generated, real, generated_ties):
    """docs/explanation/evaluators/comparative.md#strong-pairs: classes are sampled uniformly, half of the ties among
    generated texts where those differ."""
    strong = StrongPairs(Samples.of(collapsed(generated, real)), same_context=0.8, tie=True)
    pairs = strong.draw(np.random.default_rng(1), 3000)
    # Twenty consecutive draws may all give the text that nine of ten outputs share.
    assert np.mean([pair.a.text == pair.b.text for pair in pairs]) < 0.01
    counts = Counter(pair.target for pair in pairs)
    assert [counts[target] / 3000 for target in (WORSE_TARGET, TIE_TARGET, BETTER_TARGET)] == pytest.approx(
        [1 / 3] * 3, abs=0.04
    )
    ties = [pair.a.system == "dull" for pair in pairs if pair.target == TIE_TARGET]
    assert np.mean(ties) == pytest.approx(generated_ties, abs=0.06)


def test_equal_texts_are_never_called_better():
    strong = StrongPairs(Samples.of(collapsed(lambda n: "yes", lambda n: "yes")), same_context=0.8, tie=True)
    assert {pair.target for pair in strong.draw(np.random.default_rng(1), 50)} == {TIE_TARGET}


def test_without_ties_there_are_none():
    strong = StrongPairs(Samples.of(make(6)), same_context=1.0, tie=False)
    pairs = strong.draw(np.random.default_rng(1), 200)
    assert TIE_TARGET not in {pair.target for pair in pairs}
    assert np.mean([pair.a.item == pair.b.item for pair in pairs]) == 1.0


def test_later_checkpoints_are_better_by_the_margin():
    found = weak(make(12))
    assert {(r.earlier, r.later) for r in found.rungs["ngram"]} == {
        (100, 400), (100, 700), (100, 1000), (400, 700), (400, 1000), (700, 1000),
    }  # fmt: skip
    assert {(r.earlier, r.later) for r in weak(make(12), margin=0.5).rungs["ngram"]} == {
        (100, 700), (100, 1000), (400, 1000),
    }  # fmt: skip
    for a, b, target in found.draw(np.random.default_rng(2), 300):
        later_first = (a.step or 0) > (b.step or 0)
        assert (target[2] > target[0]) == later_first
        assert sorted(target) == pytest.approx([0.1 / 3, 0.1 / 3, 0.9 + 0.1 / 3])
    first = [pair.target[2] > 0.5 for pair in found.draw(np.random.default_rng(3), 400)]
    assert np.mean(first) == pytest.approx(0.5, abs=0.1)


def test_margin_falls_during_training():
    """0.10 + 0.70 (1 - min(1, p / 0.8)): docs/explanation/evaluators/comparative.md#weak-pairs."""
    assert [margin_floor(p, 0.1) for p in (0.0, 0.4, 0.8, 1.0)] == pytest.approx([0.8, 0.45, 0.1, 0.1])
    found = weak(make(6))
    rng = np.random.default_rng(4)

    def margins(progress: float, source: WeakPairs) -> set[float]:
        pairs = source.draw(rng, 200, progress)
        return {round(abs((p.a.step or 0) - (p.b.step or 0)) / 1000, 3) for p in pairs}

    assert margins(0.0, found) == {0.9}
    assert margins(0.4, found) == {0.6, 0.9}
    assert margins(1.0, found) == {0.3, 0.6, 0.9}
    assert margins(0.0, weak(make(6), curriculum=False)) == {0.3, 0.6, 0.9}
    # If no pair is far enough apart, the farthest is used.
    near = replace(make(6), outputs=tuple(o for o in make(6).outputs if o.step in (400, 700)))
    assert margins(0.0, weak(near)) == {0.3}


def test_two_almost_converged_checkpoints_are_not_paired():
    steps = [100, 400, 820, 900, 1000]
    assert converged_steps(steps, None) == {820, 900, 1000}
    losses = {100: 3.0, 400: 2.015, 820: 2.01, 900: 2.0, 1000: 2.03}
    # From 400 on, losses are within 1 % of the minimum, 2.0; the rise at the end does not make a text of 1000 better
    # than one of 900.
    assert converged_steps(steps, losses) == {400, 820, 900, 1000}
    assert converged_steps(steps, losses | {400: 2.03}) == {820, 900, 1000}
    assert converged_steps(steps, {5: 1.0}) == frozenset()
    data = make(6)
    with_losses = replace(
        data, systems=(System("ngram", meta={"dev_losses": {"100": 3.0, "400": 2.0, "700": 2.0, "1000": 2.01}}),)
    )
    assert {(r.earlier, r.later) for r in weak(with_losses).rungs["ngram"]} == {(100, 400), (100, 700), (100, 1000)}
    # A non-finite loss counts as unknown: the rest decides.
    unknown = {"dev_losses": {"100": float("nan"), "400": 2.0, "700": float("inf"), "1000": 2.01}}
    found = weak(replace(data, systems=(System("ngram", meta=unknown),)))
    assert (400, 1000) not in {(r.earlier, r.later) for r in found.rungs["ngram"]}
    assert (100, 400) in {(r.earlier, r.later) for r in found.rungs["ngram"]}


@pytest.mark.parametrize("said", [{"100": None}, {"100": "n/a"}, {"final": 2.0}, [2.0, 1.9], 3, {"100": [1]}])
def test_unreadable_dev_losses_are_named(said):
    data = replace(make(6), systems=(System("ngram", meta={"dev_losses": said}),))
    with pytest.raises(TrainingDataError, match=r"dev_losses .*ngram"):
        weak(data)


def test_smoothing():
    assert smooth_target(BETTER_TARGET, 0.1, True) == pytest.approx((0.1 / 3, 0.1 / 3, 0.9 + 0.1 / 3))
    assert smooth_target(BETTER_TARGET, 0.1, False) == pytest.approx((0.05, 0.0, 0.95))
    assert smooth_target(BETTER_TARGET, 0.0, True) == BETTER_TARGET


def test_pair_seen_from_the_other_side():
    a, b = Samples.of(make(1)).real[:2]
    assert Pair(a, b, (0.1, 0.2, 0.7)).mirrored() == Pair(b, a, (0.7, 0.2, 0.1))
