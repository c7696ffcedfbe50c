from __future__ import annotations

import random

import pytest

from evalapp.demo.ngram import END, START, NgramModel, Sample, checkpoints

TEA = Sample(("drink=tea",), ("tea", "is", "hot"))
ICE = Sample(("drink=ice",), ("ice", "is", "cold"))


def trained(*samples: Sample) -> NgramModel:
    model = NgramModel(order=2, prior=1.0)
    for sample in samples:
        model.update(sample)
    return model


def test_probability_by_hand() -> None:
    # Words seen: tea is hot </s>, p_0 = 1/4. Unigram: (1 + 1 * 1/4) / (4 + 1) = 1/4.
    # Bigram "tea is": (1 + 1 * 1/4) / (1 + 1) = 5/8.
    model = trained(TEA)
    assert model.probability("is", ["tea"]) == pytest.approx(5 / 8)


def test_probabilities_sum_to_one() -> None:
    model = trained(TEA, ICE, TEA)
    for history in ([START], ["is"], ["hot"]):
        assert sum(model.probability(w, history) for w in model.vocabulary) == pytest.approx(1)


def test_association_by_hand() -> None:
    # hot: occurs once, once with tea: 1 / (1 + 5); is: 1 of 2 with tea: 1 / (2 + 5). The strongest counts.
    model = trained(TEA, ICE)
    assert model.association(["drink=tea"], ["is", "hot"]) == pytest.approx(1 / 6)
    assert model.association([], ["hot"]) == 0


def test_contradiction_needs_another_value_of_a_known_attribute() -> None:
    model = trained(TEA, ICE)
    assert model.contradiction(["drink=tea"], ["hot"]) == 0
    assert model.contradiction(["drink=tea"], ["cold"]) == pytest.approx(1 / 6)
    assert model.contradiction(["size=big"], ["cold"]) == 0


def test_writes_neither_banned_words_nor_too_short() -> None:
    model = trained(TEA, ICE)
    for seed in range(50):
        words, _ = model.write(random.Random(seed), frozenset({"cold"}), 3, 6)
        assert 3 <= len(words) <= 6
        assert "cold" not in words
        assert END not in words


def test_more_training_follows_the_samples_more_closely() -> None:
    models = checkpoints([TEA], (1, 10, 100), random.Random(1))
    likelihood = [model.probability("hot", [START, "tea", "is"]) for _, model in models]
    assert likelihood == sorted(likelihood)
    assert likelihood[-1] > 0.95
