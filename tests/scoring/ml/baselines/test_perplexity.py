"""Perplexity under causal models and n-grams: sums by hand, training data, systems, empty texts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from scoring.ml import EncoderError, InvalidOption, Record, ScoringError, load, read_dataset
from scoring.ml.baselines.perplexity import CrossFit, identify_group, ppl_reference
from scoring.ml.text.word_ngrams import WordNgrams
from tests.scoring.ml.causal import plain_log_likelihood, tiny_causal

RECORDS = [
    Record("the cat sat on the mat .", ("a cat sat on the mat .",), ("where is the cat ?",), item="1", group="g1"),
    Record("i like tea .", ("i like tea .", "tea ."), ("do you like tea ?",), item="2"),
    Record("tea tea tea tea", ("no .",), (), "a source", item="3"),
    Record("you like the dog", ("the dog sat on the mat .",), (), item="4"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_causal("gpt2", tmp_path_factory.mktemp("gpt2"))


def test_causal_model_by_hand(folder):
    evaluator = load("perplexity", encoder=folder, device="cpu")
    found = evaluator.evaluate(RECORDS)
    pairs = [plain_log_likelihood(folder, record.text) for record in RECORDS]
    expected = np.array([total / n for total, n in pairs])
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.components["perplexity"], np.exp(-expected), rtol=1e-4)
    assert found.components["tokens"].tolist() == [n for _, n in pairs]
    assert found.components["words"].tolist() == [7, 4, 4, 4]
    # The corpus: all log-probabilities over all tokens, not the mean of the texts.
    corpus = sum(total for total, _ in pairs) / sum(n for _, n in pairs)
    assert evaluator.system_score([*RECORDS, Record(" ")]) == pytest.approx(corpus, abs=1e-6)
    assert evaluator.system_score([*RECORDS, RECORDS[0]]) != pytest.approx(corpus, abs=1e-6)
    assert math.isnan(evaluator.system_score([Record("")]))
    assert not evaluator.depends_on_batch


def test_conditioned_on_the_context_or_source(folder):
    evaluator = load("perplexity", encoder=folder, context=True, device="cpu")
    found = evaluator.evaluate(RECORDS)
    for row, context in enumerate(["where is the cat ?\n", "do you like tea ?\n", "a source\n"]):
        total, n = plain_log_likelihood(folder, RECORDS[row].text, context)
        assert found.values[row] == pytest.approx(total / n, abs=1e-5)
    assert math.isnan(found.values[3])
    assert found.reasons[3] == "no context or source"
    with pytest.raises(InvalidOption, match="needs a causal model"):
        load("perplexity", context=True)


def test_n_grams_learn_only_from_references_of_other_groups():
    records = [*RECORDS, Record("x y", ("i like tea .",), group="g1"), Record("no", ("yes yes",), item="9")]
    folds = CrossFit(records, folds=3, order=3, tokenizer="13a", lowercase=True)
    assert folds.fold[identify_group(records[0])] == folds.fold[identify_group(records[4])]
    found = load("perplexity", folds=3).evaluate(records)
    for row, record in enumerate(records):
        fold = folds.fold[identify_group(record)]
        others = {ref for other in records if folds.fold[identify_group(other)] != fold for ref in other.references}
        sums, tokens = WordNgrams.fit(others).log_likelihoods([record.text])
        assert found.values[row] == pytest.approx(sums[0] / tokens[0], abs=1e-12)
        assert found.components["tokens"][row] == tokens[0] == len(record.text.split()) + 1


def test_copying_its_own_reference_gains_nothing():
    own = Record("unheard words of mine", ("unheard words of mine",), item="a")
    without = Record("unheard words of mine", ("something else",), item="a")
    others = [Record("x", (f"the cat sat {n}",), item=str(n)) for n in range(6)]
    evaluator = load("perplexity")
    assert evaluator.score([own, *others])[0] == evaluator.score([without, *others])[0]


def test_without_other_groups_it_is_undefined_with_a_reason():
    found = load("perplexity").evaluate([Record("a b", ("a b",), item="1"), Record("a", ("c",), item="1")])
    assert np.isnan(found.values).all()
    assert set(found.reasons) == {"no references of other items to learn from"}
    assert np.isnan(load("perplexity").score([Record("a b"), Record("c")])).all()


def test_saved_n_gram_model_scores_single_texts(tmp_path):
    model = WordNgrams.fit(["the cat sat on the mat .", "i like tea ."], order=2)
    model.save(tmp_path)
    evaluator = load("perplexity", encoder=str(tmp_path))
    together = evaluator.score(RECORDS)
    np.testing.assert_allclose([evaluator.score([r])[0] for r in RECORDS], together, rtol=0, atol=1e-12)
    sums, tokens = model.log_likelihoods([RECORDS[1].text])
    assert together[1] == pytest.approx(sums[0] / tokens[0])
    assert not evaluator.depends_on_batch
    assert evaluator.signature == f"perplexity|lm:kn2|train:saved@{model.fingerprint[:8]}|case:lc|tok:13a|v:1"


def test_no_text_is_worse_than_an_empty_one():
    """Once, a word of foreign letters scored below an empty text, at 14 per letter."""
    records = [*RECORDS, Record("字" * 500, ("a",), item="5"), Record("", ("a",), item="6")]
    found = load("perplexity").evaluate(records)
    assert found.values.min() == found.values[-1] == found.values[-2] == -20.0
    assert found.components["perplexity"][-2] == pytest.approx(math.exp(20))


def test_empty_texts_duplicates_and_order():
    records = [*RECORDS, Record(" ", ("a",), item="5"), RECORDS[0]]
    evaluator = load("perplexity")
    found = evaluator.evaluate(records)
    assert found.values[4] == -20.0
    assert [found.components[name][4] for name in evaluator.component_names] == [math.exp(20), 0, 0]
    assert (found.n_empty, found.n_duplicate) == (1, 1)
    assert found.values[5] == found.values[0]
    np.testing.assert_allclose(evaluator.score(records[::-1])[::-1], found.values, rtol=0, atol=1e-12)
    assert evaluator.depends_on_batch


def test_signatures(folder):
    assert load("perplexity").signature == ("perplexity|lm:kn3|train:references-of-other-groups/5|case:lc|tok:13a|v:1")
    name = Path(folder).name
    assert load("perplexity", encoder=folder).signature.startswith(f"perplexity|lm:{name}@")
    options = [{}, {"context": True}, {"max_length": 9}, {"stride": 2}, {"dtype": "bf16"}]
    assert len({load("perplexity", encoder=folder, **given).signature for given in options}) == len(options)


def test_perplexity_of_references_under_a_generator(folder):
    pairs = [
        ("where is the cat ?\n", RECORDS[0].references[0]),
        *(("do you like tea ?\n", r) for r in RECORDS[1].references),
    ]
    found = [plain_log_likelihood(folder, text, context) for context, text in pairs]
    expected = math.exp(-sum(total for total, _ in found) / sum(n for _, n in found))
    assert ppl_reference(folder, [*RECORDS[:2], RECORDS[0]], device="cpu") == pytest.approx(expected, rel=1e-5)
    plain = ppl_reference(folder, RECORDS[:2], context=False, device="cpu")
    assert plain != pytest.approx(expected, rel=1e-3)
    with pytest.raises(ScoringError, match="needs references"):
        ppl_reference(folder, [Record("a")])


def test_human_texts_are_more_fluent_than_shuffled_ones(shared_data: Path):
    data = read_dataset(shared_data / "dailydialog_multiref")
    records = [r for r in data.outputs_with_context() if r.system == "human"]
    rng = np.random.default_rng(13)
    shuffled = [Record(" ".join(rng.permutation(r.text.split())), r.references, item=r.item) for r in records]
    evaluator = load("perplexity")
    assert evaluator.system_score(records) > evaluator.system_score(shuffled)


def test_weights_with_other_names_are_refused(tmp_path):
    """They would be initialised at random on every load."""
    folder = tiny_causal("gpt2", tmp_path)
    path = tmp_path / "model.safetensors"
    weights = {f"other.{name}": value for name, value in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(EncoderError, match="GPT2LMHeadModel"):
        load("perplexity", encoder=folder, device="cpu").score(RECORDS)
