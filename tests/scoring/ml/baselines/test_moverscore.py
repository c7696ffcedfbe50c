"""MoverScore compared with a plain computation from transformers' hidden states, and the tokens excluded from a bag of
words."""

from __future__ import annotations

import json
import math
import string
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from scoring.ml import EncoderError, Query, Record, load
from scoring.ml.baselines import moverscore
from tests.scoring.ml.tiny import tiny_encoder as make_encoder

RECORDS = [
    Record("the cat sat on the mat .", ("the cat ran , yes", "a dog sat on the mat")),
    Record("i like tea", ("i like tea", "no")),
    Record("cats like teas !", ("you like the cat", "the mat")),
    Record("dog", ("the cat sat on the mat",)),
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_encoder("bert", tmp_path_factory.mktemp("bert"), layers=3)


def plain_scores(folder: str, records: list[Record], *, layers: int = 1, n: int = 1, idf: bool = True) -> list[float]:
    """The definition taken literally: one text at a time, one general linear program per pair."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def weigh(texts: set[str]) -> dict[str, float]:
        sets = [set(tokenizer.tokenize(text)) for text in texts]
        return {w: math.log((len(sets) + 1) / (sum(w in s for s in sets) + 1)) for s in sets for w in s}

    def bag(text: str, weights: dict[str, float]) -> tuple[list[float], np.ndarray]:
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            states = model(**inputs, output_hidden_states=True).hidden_states[-layers:]
        unit = [state[0].double() / state[0].double().norm(dim=1, keepdim=True) for state in states]
        stack = torch.stack(unit).numpy()
        vectors = np.concatenate([stack.min(0), stack.mean(0), stack.max(0)], axis=1) if layers > 1 else stack[0]
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
        kept = [
            i
            for i, w in enumerate(tokens)
            if w not in ("[CLS]", "[SEP]", *string.punctuation) and not w.startswith("##")
        ]
        masses = [weights[tokens[i]] if idf else 1.0 for i in kept]
        masses = masses if any(masses) else [1.0] * len(kept)
        size = min(n, len(kept))
        grams = [range(start, start + size) for start in range(len(kept) - size + 1)]
        mixed = np.array([sum(masses[i] * vectors[kept[i]] for i in gram) for gram in grams])
        mixed = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-12)
        return [sum(masses[i] for i in gram) for gram in grams], mixed

    hyp_idf = weigh({r.text for r in records})
    ref_idf = weigh({ref for r in records for ref in r.references})
    scores = []
    for record in records:
        found = []
        for reference in record.references:
            (a, x), (b, y) = bag(record.text, hyp_idf), bag(reference, ref_idf)
            cost = np.linalg.norm(x[:, None, :] - y[None, :, :], axis=2)
            rows = np.kron(np.eye(len(a)), np.ones(len(b)))
            columns = np.kron(np.ones(len(a)), np.eye(len(b)))
            right = [*np.array(a) / sum(a), *np.array(b) / sum(b)]
            plan = linprog(cost.ravel(), A_eq=np.concatenate([rows, columns]), b_eq=right)
            found.append(1 / (1 + plan.fun))
        scores.append(max(found))
    return scores


@pytest.mark.parametrize(
    "options", [{}, {"idf": False}, {"n_gram": 2}, {"layers": 3}, {"layers": 2, "n_gram": 3}], ids=str
)
def test_equals_the_literal_definition(encoder, options):
    given = {"layers": options.get("layers", 1), "n": options.get("n_gram", 1), "idf": options.get("idf", True)}
    expected = plain_scores(encoder, RECORDS, **given)
    found = load("moverscore", encoder=encoder, device="cpu", **options).score(RECORDS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    if not given["idf"]:  # its first reference is the text itself, but each side has its own idf
        assert found[1] == pytest.approx(1.0, abs=1e-6)


def test_two_words_by_hand(encoder):
    # One word against one word: D is the distance of two unit vectors, whatever their masses.
    record = Record("cat", ("dog",))
    euclid = load("moverscore", encoder=encoder, device="cpu").score([record])[0]
    distance = 1 / euclid - 1
    assert 0 < distance < 2
    linear = load("moverscore", encoder=encoder, device="cpu", form="linear", cost="squared").score([record])[0]
    assert linear == pytest.approx(1 - distance**2, abs=1e-9)


def test_continuations_punctuation_and_stop_words_have_no_mass(encoder):
    evaluator = load("moverscore", encoder=encoder, device="cpu", idf=False, stop_words="The on")
    tokenized = evaluator.encoder.tokenize(["the cats , sat on !"])
    vectors = evaluator.encoder.encode(tokenized.encodings)
    weights = evaluator.token_weights(tokenized, [([0], [0])])
    bag = evaluator._bag(vectors, 0, weights[0])
    assert bag.masses.tolist() == [0.5, 0.5]  # "cat" and "sat"; "##s" is a continuation
    whole = load("moverscore", encoder=encoder, device="cpu", idf=False, remove_subwords=False)
    assert len(whole._bag(vectors, 0, weights[0]).masses) == 5  # the, cat, ##s, sat, on


@pytest.mark.parametrize("family", ["roberta", "deberta-v2", "modernbert"])
def test_word_starts_of_other_tokenizers_are_recognised(family, tmp_path):
    folder = make_encoder(family, tmp_path / family)
    evaluator = load("moverscore", encoder=folder, device="cpu", idf=False)
    tokenized = evaluator.encoder.tokenize(["cats like tea !"])
    vectors = evaluator.encoder.encode(tokenized.encodings)
    bag = evaluator._bag(vectors, 0, evaluator.token_weights(tokenized, [([0], [0])])[0])
    assert len(bag.masses) == 3
    assert evaluator.score([Record("the cat", ("the cat",))])[0] == pytest.approx(1.0, abs=1e-6)


def test_neither_batch_nor_order_matters(encoder, monkeypatch):
    evaluator = load("moverscore", encoder=encoder, device="cpu", idf=False)
    together = evaluator.score(RECORDS)
    np.testing.assert_allclose([evaluator.score([r])[0] for r in RECORDS], together, rtol=0, atol=1e-5)
    np.testing.assert_allclose(evaluator.score(RECORDS[::-1])[::-1], together, rtol=0, atol=1e-5)
    queries = [Query([r.text for r in RECORDS], r.references) for r in RECORDS]
    whole = evaluator.all_pairs(queries)
    monkeypatch.setattr(moverscore, "_PAIRS_AT_A_TIME", 1)
    for one, two in zip(evaluator.all_pairs(queries), whole, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-6)
    assert whole[0].shape == (4, 2)
    with_idf = load("moverscore", encoder=encoder, device="cpu")
    assert with_idf.depends_on_batch
    assert not evaluator.depends_on_batch
    np.testing.assert_allclose(with_idf.score(RECORDS[::-1])[::-1], with_idf.score(RECORDS), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "low"), [({}, 0.0), ({"form": "linear"}, -1.0), ({"form": "linear", "cost": "squared"}, -3.0)]
)
def test_texts_without_a_word_get_the_worst_value(encoder, options, low):
    evaluator = load("moverscore", encoder=encoder, device="cpu", **options)
    found = evaluator.evaluate([Record(" ", ("a",)), Record("!!", ("cat",)), Record("a"), Record("cat", ("cat", "?"))])
    np.testing.assert_allclose(found.values, [low, low, np.nan, 1.0], atol=1e-6)
    assert (found.n_empty, found.reasons[2]) == (1, "no references")


def test_too_many_layers_are_refused(encoder):
    with pytest.raises(EncoderError, match="has 3 layers up to the one asked for"):
        load("moverscore", encoder=encoder, layers=5)


def test_signature(encoder):
    options = [{}, {"n_gram": 2}, {"layers": 2}, {"idf": False}, {"remove_subwords": False}, {"stop_words": "the"},
               {"cost": "squared"}, {"form": "linear"}]  # fmt: skip
    assert len({load("moverscore", encoder=encoder, **given).signature for given in options}) == len(options)
    name = Path(encoder).name
    assert load("moverscore", encoder=encoder).signature.startswith(f"moverscore|nrefs:var|enc:{name}@")
    assert "|layers:1|n:1|idf:yes|sub:first|stop:none|cost:euclidean|form:inverse|v:" in load("moverscore").signature


@pytest.mark.parametrize("name", ["moverscore", "bertscore", "embedding-average", "embedding-greedy"])
def test_vocabulary_may_skip_ids(name, tmp_path):
    """Once, the largest id was taken for the vocabulary size."""
    folder = Path(make_encoder("bert", tmp_path / "encoder"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    gone = next(word for word, number in vocabulary.items() if word.startswith("##"))
    del vocabulary[gone]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    last = max(vocabulary, key=vocabulary.__getitem__)
    records = [Record(f"the cat {last.removeprefix('##')}", (f"a {last.removeprefix('##')}",), item="1")]
    assert np.isfinite(load(name, encoder=str(folder)).score(records)).all()
