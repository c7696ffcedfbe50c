"""Behaviour shared by all evaluators: undefined, empty, duplicates, order, progress."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.ml import Record, ScoringError, catalogue, load

LIGHT = [entry for entry in catalogue() if "encoder" not in entry.needs]
# Others learn from references instead of comparing with them.
AGAINST = [entry for entry in LIGHT if "references" in entry.needs and (entry.pairwise or entry.identical_is_best)]
words = st.lists(
    st.sampled_from(
        ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", ".", ",", "tea's", "3.5", "café", "猫", "ไทย"]
    ),
    max_size=8,
)
texts = words.map(" ".join)
records = st.builds(
    Record,
    text=texts,
    references=st.lists(texts, max_size=3).map(tuple),
    context=st.lists(texts, max_size=2).map(tuple),
    item=st.sampled_from("xyz"),
    system=st.sampled_from("st"),
)


@pytest.mark.parametrize("entry", LIGHT, ids=lambda entry: entry.name)
@given(rows=st.lists(records, min_size=1, max_size=8), seed=st.randoms(use_true_random=False))
@settings(max_examples=12)
def test_order_does_not_matter_and_alone_equals_together(entry, rows, seed):
    evaluator = load(entry.name)
    together = evaluator.score(rows)
    order = list(range(len(rows)))
    seed.shuffle(order)
    np.testing.assert_array_equal(evaluator.score([rows[i] for i in order]), together[order])
    if not evaluator.depends_on_batch:
        alone = [evaluator.score([row])[0] for row in rows]
        np.testing.assert_allclose(alone, together, rtol=0, atol=1e-12)
    low, high = entry.scale
    defined = together[~np.isnan(together)]
    assert low is None or (defined >= low - 1e-12).all()
    assert high is None or (defined <= high + 1e-9).all()


@pytest.mark.parametrize("entry", LIGHT, ids=lambda entry: entry.name)
def test_no_records(entry):
    evaluator = load(entry.name)
    assert evaluator.score([]).shape == (0,)
    assert math.isnan(evaluator.system_score([]))


@pytest.mark.parametrize("entry", LIGHT, ids=lambda entry: entry.name)
def test_empty_text_is_worst_and_counted(entry):
    evaluator = load(entry.name)
    result = evaluator.evaluate([Record(text, ("a ref",), ("a turn",)) for text in ("", " \n\t", "fine")])
    assert result.values[:2].tolist() == [evaluator.worst] * 2
    assert result.n_empty == 2
    assert "2 empty texts got the worst value" in result.notes


@pytest.mark.parametrize("entry", AGAINST, ids=lambda entry: entry.name)
def test_without_references_undefined_with_a_reason(entry):
    evaluator = load(entry.name)
    values = evaluator.score([Record("text"), Record("text", (" ",)), Record("text", ("text",))])
    assert np.isnan(values).tolist() == [True, True, False]
    assert evaluator.details is not None
    assert evaluator.details.reasons == ("no references", "no references", "")
    assert evaluator.details.n_undefined == 2
    assert evaluator.notes == ("2 of 3 undefined: no references", *evaluator.remarks)
    assert math.isnan(evaluator.system_score([Record("text")]))


@pytest.mark.parametrize("entry", AGAINST, ids=lambda entry: entry.name)
def test_identical_text_is_best_in_any_script(entry):
    lines = ["the cat sat on the mat .", "ฉันชอบกินข้าวผัด", "我喜欢喝茶。", "मुझे चाय पसंद है", "Ich trinke Tee!"]
    rows = [Record(line, (line, "other words here")) for line in lines]
    # Tokens of every script, where the metric has a choice.
    tokenize = next((option.choices for option in entry.options if option.name == "tokenize"), ())
    options = {"tokenize": "char"} if "char" in tokenize else {"tokenize": "unicode"} if "unicode" in tokenize else {}
    values = load(entry.name, **options).score(rows)
    assert np.isfinite(values).all()
    assert (values > load(entry.name, **options).score([Record("zzz", row.references) for row in rows])).all()
    if entry.identical_is_best:
        np.testing.assert_allclose(values, entry.scale[1], rtol=1e-12)


def test_duplicates_are_counted_and_share_their_score():
    result = load("bleu-star").evaluate([Record("a b", ("a c",)), Record("a b", ("a c",)), Record("a b", ("d",))])
    assert result.n_duplicate == 1
    assert result.values[0] == result.values[1] != result.values[2]
    assert result.notes == ("1 records repeat an earlier one and share its score",)


def test_more_references_never_lower_the_best():
    references = ("it is a cat", "the cat sat", "a dog ran on the mat")
    for name in ("bleu-star", "token-f1", "chrf", "rouge-l"):
        values = [load(name).score([Record("the cat ran", references[:n])])[0] for n in (1, 2, 3)]
        assert values == sorted(values)


def test_system_score_is_the_mean_of_defined_scores():
    rows = [Record("a b", ("a b",)), Record("c", ("d",)), Record("e")]
    assert load("token-f1").system_score(rows) == 0.5


def test_progress_reaches_the_end_and_may_stop_the_work():
    seen: list[tuple[int, int]] = []
    rows = [Record(f"a {n}", (f"b {n}",)) for n in range(5)]
    load("bleu-star").score(rows, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5, 5)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load("bleu-star").score(rows, progress=stop)


@pytest.mark.parametrize("name", ["length", "bleu-4", "perplexity"])
@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["a text"], "found str at place 0"),
        ([Record("a"), {"text": "b"}], "found dict at place 1"),
        ("a text", "found str"),
        (Record("a"), "found Record"),
        ((Record(text) for text in "ab"), "found generator"),
    ],
)
def test_invalid_records_are_refused_with_a_hint(name, given, found):
    with pytest.raises(ScoringError, match=f"takes a list of records, {found}.*Record.text=.*outputs_with_context"):
        load(name).evaluate(given)
