"""BERTScore against the bert-score package at its batch size 1, idf, rescaling, multiple references, signatures."""

from __future__ import annotations

import random

import numpy as np
import pytest
from bert_score import BERTScorer

from scoring.ml import InvalidOption, Query, Record, load
from scoring.ml.baselines import encoder_pairs

WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", "you", "like", "tea", "!", "no", "yes", "dog", "ran", "zebra"]


def make_records(n: int = 14, seed: int = 6) -> list[Record]:
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 14)))

    records = [Record(text(), tuple(text() for _ in range(rng.randint(1, 3)))) for _ in range(n)]
    return [*records, Record(" ".join(["cat"] * 50), (text(), " ".join(["dog tea"] * 30)))]


RECORDS = make_records()


def peer_scores(folder: str, layer: int, *, idf: bool = False) -> np.ndarray:
    documents = sorted({ref for record in RECORDS for ref in record.references})
    scorer = BERTScorer(
        model_type=folder, num_layers=layer, device="cpu", idf=idf, idf_sents=documents if idf else None, nthreads=0
    )
    found = scorer.score([r.text for r in RECORDS], [list(r.references) for r in RECORDS], batch_size=1)
    return np.stack([part.numpy() for part in found])


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("architecture", ["bert", "distilbert", "deberta-v2", "modernbert"])
def test_equals_bert_score_at_batch_size_one(tiny_encoder, architecture, idf):
    folder = tiny_encoder(architecture)
    found = load("bertscore", encoder=folder, layer=3, idf=idf, device="cpu").evaluate(RECORDS)
    ours = np.stack([found.components[name] for name in ("precision", "recall", "f1")])
    np.testing.assert_allclose(ours, peer_scores(folder, 3, idf=idf), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found.values, ours[2])
    assert found.n_truncated == 1


@pytest.mark.slow
def test_equals_bert_score_on_the_installed_encoder():
    from scoring.ml.encoders.source import find_encoder

    found = load("bertscore", device="cpu").evaluate(RECORDS[:6])
    expected = peer_scores(str(find_encoder().folder), 5)[:, :6]
    ours = np.stack([found.components[name] for name in ("precision", "recall", "f1")])
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("component", ["precision", "recall", "f1"])
def test_score_is_the_requested_component(tiny_encoder, component):
    found = load("bertscore", encoder=tiny_encoder(), component=component, device="cpu").evaluate(RECORDS)
    np.testing.assert_array_equal(found.values, found.components[component])


def test_all_pairs_equal_pairs_one_by_one_and_chunks_do_not_matter(tiny_encoder, monkeypatch):
    evaluator = load("bertscore", encoder=tiny_encoder(), device="cpu")
    texts = [record.text for record in RECORDS[:10]]
    queries = [Query(texts[:3], texts[3:8]), Query(texts[2:5], texts[8:])]
    whole = evaluator.all_pairs(queries)
    for query, matrix in zip(queries, whole, strict=True):
        single = [[evaluator.score([Record(h, (r,))])[0] for r in query.references] for h in query.hypotheses]
        np.testing.assert_allclose(matrix, single, rtol=0, atol=1e-5)
    monkeypatch.setattr(encoder_pairs, "CHUNK_VALUES", 32)
    for one, two in zip(whole, evaluator.all_pairs(queries), strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-5)


def test_identical_is_one_and_order_does_not_matter(tiny_encoder):
    evaluator = load("bertscore", encoder=tiny_encoder(), device="cpu")
    assert evaluator.score([Record("the cat sat", ("no", "the cat sat"))])[0] == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(evaluator.score(RECORDS[::-1])[::-1], evaluator.score(RECORDS), rtol=0, atol=1e-5)


def test_empty_texts_and_missing_references(tiny_encoder):
    evaluator = load("bertscore", encoder=tiny_encoder(), device="cpu")
    found = evaluator.evaluate([Record(" ", ("a cat",)), Record("a cat"), Record("a cat", ("", "a cat"))])
    np.testing.assert_allclose(found.values, [0.0, np.nan, 1.0], atol=1e-6)
    assert found.components["recall"][0] == 0.0
    matrix = evaluator.all_pairs([(["", "a cat"], ["a cat", " "])])[0]
    np.testing.assert_allclose(matrix, [[0, 0], [1, 0]], atol=1e-6)


def test_rescaling_is_linear_with_the_published_constants(tiny_encoder, monkeypatch):
    # Constants of bert-base-uncased, layer 9, as published; a text of score x becomes (x - b) / (1 - b).
    from scoring.ml.baselines import bertscore

    folder = tiny_encoder()
    plain = load("bertscore", encoder=folder, layer=3, device="cpu").evaluate(RECORDS)
    name = load("bertscore", encoder=folder).source.short_name
    constants = [0.35375935, 0.3537393, 0.35219112]
    monkeypatch.setattr(bertscore, "presets", lambda: {"layers": {}, "baselines": {name: [3, *constants]}})
    evaluator = load("bertscore", encoder=folder, layer=3, rescale=True, device="cpu")
    scaled = evaluator.evaluate([*RECORDS, Record("", ("a",))])
    for part, low in zip(("precision", "recall", "f1"), constants, strict=True):
        expected = (plain.components[part] - low) / (1 - low)
        np.testing.assert_allclose(scaled.components[part][:-1], expected, rtol=0, atol=1e-9)
        assert scaled.components[part][-1] == pytest.approx(-low / (1 - low))
    assert "rescale:yes" in evaluator.signature


def test_published_presets_equal_bert_score():
    from bert_score.utils import model2layers

    from scoring.ml.baselines.bertscore import presets

    peers = {name.rsplit("/", 1)[-1]: layer for name, layer in model2layers.items()}
    for name, layer in presets()["layers"].items():
        assert peers[name] == layer


def test_rescaling_without_constants_is_refused(tiny_encoder):
    with pytest.raises(InvalidOption, match="roberta-large layer 17"):
        load("bertscore", encoder=tiny_encoder(), rescale=True)


def test_default_layer_is_at_three_quarters_of_the_depth(tiny_encoder):
    assert load("bertscore", encoder=tiny_encoder()).layer == 3
    assert load("bertscore").layer == 5


def test_signature_names_everything(tiny_encoder):
    signature = load("bertscore").signature
    assert signature == (
        "bertscore|nrefs:var|enc:all-MiniLM-L6-v2@53aa5117|layer:5|ml:512|trunc:right|dt:fp32|attn:sdpa|idf:no"
        "|rescale:no|of:f1|v:1"
    )
    folder = tiny_encoder()
    options = [{}, {"layer": 2}, {"max_length": 9}, {"dtype": "bf16"}, {"idf": True}, {"component": "recall"}]
    assert len({load("bertscore", encoder=folder, **given).signature for given in options}) == len(options)
    same = [{}, {"device": "cpu"}, {"batch_tokens": 99}]
    assert len({load("bertscore", encoder=folder, **given).signature for given in same}) == 1


def test_idf_of_one_reference_weights_tokens_equally(tiny_encoder):
    """log((N + 1) / (df + 1)) is 0 for every token of a single reference: identical texts scored 0, like an empty text.
    The same holds for a text of tokens found in every reference."""
    weighted, plain = (load("bertscore", encoder=tiny_encoder(), idf=idf, device="cpu") for idf in (True, False))
    for rows in (
        [Record("the cat sat", ("the cat sat",))],
        [Record("the cat sat", ("the cat sat", "the cat sat")), Record("a dog ran", ("the cat sat",))],
    ):
        np.testing.assert_allclose(weighted.score(rows), plain.score(rows), atol=1e-12)
    assert weighted.score([Record("the cat sat", ("the cat sat",))])[0] == pytest.approx(1, abs=1e-6)
    # Both references contain "the cat", so all of its weights are 0; "mat" and "dog" have log(3 / 2).
    rows = [Record("the cat", ("the cat",)), Record("the cat mat", ("the cat mat", "the cat dog"))]
    found = weighted.evaluate([*rows, Record("the cat dog", ("the cat dog",))])
    np.testing.assert_allclose(found.values, 1, atol=1e-6)


def test_idf_depends_on_the_call(tiny_encoder):
    assert load("bertscore", encoder=tiny_encoder(), idf=True).depends_on_batch
    assert not load("bertscore", encoder=tiny_encoder()).depends_on_batch


def test_saved_evaluator_detects_another_encoder(tiny_encoder, tmp_path):
    import shutil

    from scoring.ml import ScoringError

    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder(), folder)
    evaluator = load("bertscore", encoder=str(folder), device="cpu")
    evaluator.save_pretrained(tmp_path / "out")
    np.testing.assert_array_equal(load(tmp_path / "out").score(RECORDS), evaluator.score(RECORDS))
    shutil.copyfile(f"{tiny_encoder('distilbert')}/model.safetensors", folder / "model.safetensors")
    with pytest.raises(ScoringError, match="its encoder has changed"):
        load(tmp_path / "out")
