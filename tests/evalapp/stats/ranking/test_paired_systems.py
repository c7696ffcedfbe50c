"""Paired tests of systems against tests written out, against sacrebleu, and under the null hypothesis."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from evalapp.stats.ranking.paired_systems import SystemTests, compare_systems
from evalapp.stats.resampling.bootstrap import ClusterDraws
from scoring.ml import load

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "you", "like", "tea", "but", "no", "dog", "ran"]


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def rows(values):
    return np.column_stack([values, np.ones(len(values))])


def make_texts(seed, n, kept):
    rng = np.random.default_rng(seed)
    refs = [" ".join(rng.choice(WORDS, size=9)) for _ in range(n)]
    systems = [
        [" ".join(w if rng.random() < share else str(rng.choice(WORDS)) for w in ref.split()) for ref in refs]
        for share in kept
    ]
    return refs, systems


def test_permutation_equals_all_exchanges_of_few_segments():
    rng = np.random.default_rng(5)
    a, b = rng.normal(0.4, 1, 10), rng.normal(0, 1, 10)
    difference = a - b
    exchanges = np.array([np.dot(signs, difference) / 10 for signs in itertools.product((1, -1), repeat=10)])
    observed = abs(difference.mean())
    exact = (np.sign(difference.mean()) * exchanges >= observed - 1e-12).mean() * 2
    found = compare_systems([rows(a), rows(b)], mean, tests=SystemTests("permutation", k=20_000))
    assert found.p[0, 1] == pytest.approx(exact, abs=0.01)
    assert found.p[0, 1] == found.p[1, 0]


def test_bootstrap_equals_systems_scored_on_each_resample():
    """Corpus BLEU of texts that are drawn, instead of sums that are weighted."""
    refs, systems = make_texts(1, 30, (0.7, 0.6))
    metric = load("bleu")
    records = [[(text, ref) for text, ref in zip(texts, refs, strict=True)] for texts in systems]
    draws = ClusterDraws(30, 13).take(100).T.astype(int)
    values = np.array(
        [
            [metric.system_score(*zip(*(pairs[k] for k in np.repeat(np.arange(30), drawn)), strict=True))
             for pairs in records]
            for drawn in draws
        ]
    )  # fmt: skip
    expected = min(1.0, 2 * ((values[:, 0] - values[:, 1] <= 0).sum() + 1) / 101)
    statistics = [metric.system_statistics([load_record(text, ref) for text, ref in pairs]) for pairs in records]
    found = compare_systems(statistics, metric.from_sums, tests=SystemTests("bootstrap", k=100))
    assert found.p[0, 1] == pytest.approx(expected, abs=1e-12)
    low, high = np.percentile(values[:, 0], [2.5, 97.5])
    assert (found.estimates[0].low, found.estimates[0].high) == (pytest.approx(low), pytest.approx(high))


def load_record(text, ref):
    from scoring.ml import Record

    return Record(text, (ref,))


@pytest.mark.parametrize(("test", "name"), [("permutation", "ar"), ("bootstrap", "bs")])
def test_p_is_close_to_sacrebleu(test, name):
    refs, systems = make_texts(4, 120, (0.6, 0.565))
    metric = load("bleu")
    statistics = [metric.system_statistics([load_record(*pair) for pair in zip(s, refs, strict=True)]) for s in systems]
    found = compare_systems(statistics, metric.from_sums, tests=SystemTests(test, k=4000))
    named = [("a", systems[0]), ("b", systems[1])]
    _, peer = PairedTest(named, {"BLEU": BLEU(force=True)}, [refs], test_type=name, n_samples=1000)()
    # Its bootstrap centres absolute differences, which counts one tail of them.
    expected = peer["BLEU"][1].p_value * (2 if test == "bootstrap" else 1)
    assert 0.02 < expected < 0.6  # a p that says something
    assert found.p[0, 1] == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("test", ["bootstrap", "permutation"])
def test_equal_systems_rarely_differ(test):
    rng = np.random.default_rng(8)
    smallest = [
        compare_systems([rows(x) for x in rng.normal(size=(2, 60))], mean, tests=SystemTests(test, k=200)).p[0, 1]
        for _ in range(200)
    ]
    # The share of 200 tests at 5 % lies between 1 and 10 % with probability 0.997.
    assert 0.01 <= np.mean(np.array(smallest) <= 0.05) <= 0.10


def test_holm_letters_and_systems_without_value():
    rng = np.random.default_rng(2)
    base = rng.normal(size=80)
    systems = [base, base + 1, base + rng.normal(0, 0.3, 80), np.zeros(80)]
    statistics = [rows(x) for x in systems[:3]] + [np.zeros((80, 2))]
    with np.errstate(invalid="ignore"):
        found = compare_systems(statistics, mean, tests=SystemTests("permutation"))
    assert found.letters == ("b", "a", "b", "")
    assert np.isnan(found.p[3]).all()
    assert found.estimates[3].note
    assert found.p_holm[0, 1] == pytest.approx(3 * found.p[0, 1])


def test_few_segments_are_not_tested():
    found = compare_systems([rows(np.ones(4)), rows(np.zeros(4))], mean, tests=SystemTests("bootstrap"))
    assert np.isnan(found.p).all()
    assert found.note
    assert found.letters == ("", "")
    permuted = compare_systems([rows(np.ones(4)), rows(np.zeros(4))], mean, tests=SystemTests("permutation"))
    assert permuted.p[0, 1] >= 2 / 2**4


DOCUMENTS = ["x", "y", "x", "z", "y", "x"]


def test_permutation_exchanges_whole_groups():
    """The documents x, y and z favour the first system by 3, 2 and 1: one of the 8 exchanges differs as much."""
    a, b = np.array([1.0, 1, 1, 1, 1, 1]), np.zeros(6)
    found = compare_systems([rows(a), rows(b)], mean, groups=DOCUMENTS, tests=SystemTests("permutation", k=20_000))
    assert found.p[0, 1] == pytest.approx(2 / 8, abs=0.01)
    single = compare_systems([rows(a), rows(b)], mean, tests=SystemTests("permutation", k=20_000))
    assert single.p[0, 1] == pytest.approx(2 / 2**6, abs=0.01)


def test_bootstrap_resamples_whole_groups():
    """The mean of all segments of the documents that are drawn."""
    rng = np.random.default_rng(3)
    documents = np.repeat(np.arange(7), [1, 2, 3, 4, 5, 6, 7])
    a, b = rng.normal(0.5, 1, 28), rng.normal(0, 1, 28)
    parts = [np.flatnonzero(documents == document) for document in range(7)]
    drawn = [
        np.concatenate([parts[document] for document in np.repeat(np.arange(7), counts)])
        for counts in ClusterDraws(7, 13).take(200).T.astype(int)
    ]
    means = np.array([[a[segments].mean(), b[segments].mean()] for segments in drawn])
    found = compare_systems([rows(a), rows(b)], mean, groups=documents, tests=SystemTests("bootstrap", k=200))
    for place, (estimate, values) in enumerate(zip(found.estimates, (a, b), strict=True)):
        assert estimate.value == pytest.approx(values.mean())
        assert (estimate.low, estimate.high) == pytest.approx(tuple(np.percentile(means[:, place], [2.5, 97.5])))
        assert estimate.n == 28
        assert "7 groups" in estimate.note
    better, worse = (0, 1) if a.mean() > b.mean() else (1, 0)
    expected = min(1.0, 2 * ((means[:, better] <= means[:, worse]).sum() + 1) / 201)
    assert found.p[0, 1] == pytest.approx(expected)


@pytest.mark.parametrize("test", ["bootstrap", "permutation"])
def test_equal_systems_rarely_differ_in_documents(test):
    """The segments of a document share an effect; taken as independent they differ far too often."""
    rng = np.random.default_rng(9)
    documents = np.repeat(np.arange(30), 8)
    systems = rng.normal(size=(200, 2, 30))[..., documents] + rng.normal(size=(200, 2, 240))

    def reject(groups):
        return np.mean([
            compare_systems([rows(x) for x in pair], mean, groups=groups, tests=SystemTests(test, k=200)).p[0, 1]
            <= 0.05
            for pair in systems
        ])  # fmt: skip

    assert 0.01 <= reject(documents) <= 0.11
    assert reject(None) > 0.25
