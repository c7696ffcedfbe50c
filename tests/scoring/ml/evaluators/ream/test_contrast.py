"""Vectors of separate texts, training by contrast alone, and gold shrunk by its own reliability."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.ml import InvalidOption, ScoringError, fit, load, plan
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.ream.contrast import list_queries
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.gold import ItemGold, Sample, measure_noise, shrink_gold
from scoring.ml.evaluators.ream.vectors import PairEncoder, Reading, make_encoder
from scoring.ml.registry import get_entry
from scoring.ml.types import Dataset, Dialogue, Item, Record
from tests.scoring.ml.evaluators.ream.test_evaluator import QUICK, data
from tests.scoring.ml.tiny import WORDS, tiny_encoder

FAST: dict[str, Any] = {**QUICK, "pretrain": 30, "learning_rate": 5e-3, "patience": None}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), layers=2)


def echoes(n_items: int = 40, seed: int = 3) -> Dataset:
    """Queries of a single word, whose references repeat it; no outputs and no ratings."""
    rng = np.random.default_rng(seed)
    items = []
    for number in range(n_items):
        word = WORDS[number % len(WORDS)]
        references = tuple(" ".join([word] * int(n)) for n in rng.permutation([1, 2, 3]))
        items.append(Item(f"e{number}", (word,), references=references, group=f"g{number}"))
    return Dataset("echoes", items=tuple(items))


def test_separate_vectors_are_products_of_single_texts(encoder: str) -> None:
    source = find_encoder(encoder)
    separate = make_encoder(source, Reading(2, max_length=32, pairing="separate"), device="cpu")
    alone = PairEncoder(source, Reading(2, max_length=32, inputs="text"), device="cpu")
    u, v = alone.vectors([Record("cat sat"), Record("dog")])[0]
    wanted = u / np.linalg.norm(u) * v / np.linalg.norm(v) * source.width**0.5
    found, cut = separate.vectors([Record("dog", context=("cat sat",)), Record("cat sat", context=("dog",))])
    np.testing.assert_allclose(found, [wanted, wanted], atol=1e-5)
    assert not cut.any()
    # The sum of a product's elements is the cosine, up to the factor.
    same = separate.vectors([Record("dog", context=("dog",))])[0]
    assert same.sum() == pytest.approx(source.width**0.5, rel=1e-4)
    long = Record("dog", context=("cat " * 40,))
    assert separate.find_truncated([long, Record("dog", context=("cat",))]).tolist() == [True, False]


def test_learns_without_ratings_that_foreign_answers_are_worse(encoder: str, tmp_path: Path) -> None:
    found = fit("ream", echoes(), dev=echoes(20, seed=4), encoder=encoder, **FAST)
    assert isinstance(found, Ream)
    assert found.aspects == ()
    assert found.record.examples == {"queries for contrast": 40}
    preference = found.preference(echoes(30, seed=9))
    # A foreign answer is one of the right kind for one word in len(WORDS).
    assert preference["add"] > 0.8
    assert preference["replace"] > 0.8
    assert f"preference_add {found.record.metrics['preference_add']:.4g}" in found.card
    # References that answer the query are accepted, others refused; the score is the metric with the accepted ones.
    (chosen,) = found.annotate([Item("x", ("cat",), references=("cat",))], [["dog dog", "tea"]])
    assert chosen.added == ()
    found.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    assert loaded.reliability("cat", ["cat cat"]) == pytest.approx(found.reliability("cat", ["cat cat"]), abs=1e-6)
    with pytest.raises(ScoringError, match="by contrast alone"):
        found.report(data(8, seed=9))
    with pytest.raises(ScoringError, match="two items"):
        found.preference(echoes(1))
    # Without a held-out part, a tenth of the groups is held out here as well.
    alone = fit("ream", echoes(), encoder=encoder, **{**FAST, "pretrain": 1})
    assert 0 < len(alone.record.dev_groups) < 40
    assert alone.record.examples["queries for contrast"] == 40 - len(alone.record.dev_groups)


def test_contrast_comes_before_ratings(encoder: str) -> None:
    with_both = fit("ream", data(), dev=data(4, seed=4), encoder=encoder, **{**QUICK, "pretrain": 2})
    assert [row.get("phase") for row in with_both.record.log[:2]] == ["contrast"] * 2
    assert with_both.record.examples["queries for contrast"] == 12
    assert {"r2_ceiling", "preference_add", "preference_replace"} <= with_both.record.metrics.keys()
    assert any("not chance" in note for note in with_both.record.notes)
    report = with_both.report(data(8, seed=9), sizes=(2, 3))
    assert set(report.preference) == {"add", "replace"}
    assert 0 <= report.ceiling <= 1
    # The held-out groups of ratings are held out of the contrast as well.
    alone = fit("ream", data(24), encoder=encoder, **{**QUICK, "pretrain": 1})
    assert alone.record.examples["queries for contrast"] == 24 - len(alone.record.dev_groups) < 24
    with pytest.raises(InvalidOption, match="add or replace"):
        plan("ream", echoes(), encoder=encoder, negatives="remove")


def test_dialogues_are_queries() -> None:
    talk = Dataset("talk", dialogues=(Dialogue("d", ("hi", "hello", "bye")),))
    queries = list_queries(talk, np.random.default_rng(0))
    assert [(item.query.context, item.references) for item in queries] == [
        (("hi",), ("hello",)), (("hi", "hello"), ("bye",)),
    ]  # fmt: skip


def test_shrinkage_by_hand() -> None:
    """Reliabilities .9 and -.5 of sets with a single reference over 5 answers, .6 and .6 of two over 10.

    Means .2 and .6. Squared distances .49, .49, 0, 0: mean .245. Variances by chance (1 - .04)^2 / 4 = .2304 and
    (1 - .36)^2 / 9 = .04551: mean .137956. True variance .107044; shares .107044 / .337444 = .317220 and .701675.
    """
    gold = [ItemGold(np.zeros((n, 2)), np.zeros(n), 2) for n in (5, 10)]
    samples = [Sample(0, (0,), 0.9), Sample(0, (1,), -0.5), Sample(1, (0, 1), 0.6), Sample(1, (0, 1), 0.6)]
    noise = measure_noise(samples, gold)
    assert noise.true == pytest.approx(0.107044, abs=1e-6)
    assert noise.ceiling == pytest.approx(0.107044 / 0.245, abs=1e-5)
    shrunk = shrink_gold(samples, gold)
    assert [one.target for one in shrunk] == pytest.approx([0.422054, -0.022054, 0.6, 0.6], abs=1e-6)
    assert [one.gold for one in shrunk] == [0.9, -0.5, 0.6, 0.6]
    # Where all is chance, everything becomes the mean, and no R2 above 0 can be expected.
    few = [ItemGold(np.zeros((3, 2)), np.zeros(3), 2)]
    small = [Sample(0, (0,), 0.3), Sample(0, (1,), 0.1)]
    assert [one.target for one in shrink_gold(small, few)] == pytest.approx([0.2, 0.2])
    assert measure_noise(small, few).ceiling == 0


def test_shrinkage_changes_what_is_learned(encoder: str) -> None:
    raw, shrunk = (fit("ream", data(), encoder=encoder, shrink=flag, **QUICK) for flag in (False, True))
    records = data(3, seed=6).outputs_with_context()
    assert not np.allclose(*(one.evaluate(records).components["reliability"] for one in (raw, shrunk)))


def test_metric_options(encoder: str) -> None:
    """A capital letter makes another word for BLEU, unless it ignores case."""
    quick = {**QUICK, "metric": "bleu-star", "epochs": 1, "pretrain": 0}
    capitals = replace(data(), items=tuple(
        replace(item, references=tuple(text.capitalize() for text in item.references)) for item in data().items
    ))  # fmt: skip
    mixed, lower = (fit("ream", capitals, encoder=encoder, lowercase=flag, **quick) for flag in (False, True))
    record = Record("cat sat on", references=("Cat sat on",), context=("you",))
    assert mixed.score([record])[0] < 70
    assert lower.score([record])[0] == pytest.approx(100)
    assert mixed.signature != lower.signature
    letters = fit("ream", capitals, encoder=encoder, tokenize="char", **quick)
    assert letters.metric.signature != mixed.metric.signature
    with pytest.raises(InvalidOption, match="embedding-average has no such option"):
        plan("ream", data(), encoder=encoder, metric="embedding-average", lowercase=True)


def test_profile_paper_is_as_printed() -> None:
    paper = get_entry("ream").train_defaults("paper")
    assert (paper["pairing"], paper["pretrain"], paper["shrink"], paper["lowercase"]) == ("joint", 0, False, False)
