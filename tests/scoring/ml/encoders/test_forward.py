"""The forward pass without padding equals the model's own for every family: all tokens, first tokens, pair
classifiers."""

from __future__ import annotations

import random

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForSequenceClassification

from scoring.ml.encoders import forward as module
from scoring.ml.encoders.forward import first_vectors, sequence_logits, token_vectors
from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Encoding, Encodings
from scoring.ml.engine import Engine, collate
from scoring.ml.types import Record
from tests.scoring.ml.tiny import FAMILIES, WORDS

UNPADDED = ("bert", "chinese-bert", "roberta", "distilbert")


def make_pairs(tokenizer: PairTokenizer, n: int = 9, longest: int = 14, seed: int = 3) -> Encodings:
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, longest))) for _ in range(2 * n)]
    return tokenizer.pairs(texts[:n], texts[n:], cut="left").encodings


def own_states(model, encodings: Encodings) -> list[torch.Tensor]:
    """The model's own forward pass over each input alone."""
    states = []
    for encoding in encodings:
        types = {} if encoding.type_ids is None else {"token_type_ids": torch.tensor([encoding.type_ids])}
        states.append(model(input_ids=torch.tensor([encoding.ids]), **types).last_hidden_state[0])
    return states


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_to_the_models_own_forward_pass(tiny_family, family):
    source = find_encoder(tiny_family(family))
    tokenizer, model = PairTokenizer(source), load_model(source)
    encodings = make_pairs(tokenizer)
    batch = collate(encodings, tokenizer.pad_id, "cpu")
    with torch.inference_mode():
        expected = own_states(model, encodings)
        torch.testing.assert_close(token_vectors(model, batch), torch.cat(expected), atol=1e-5, rtol=0)
        firsts = torch.stack([states[0] for states in expected])
        torch.testing.assert_close(first_vectors(model, batch), firsts, atol=1e-5, rtol=0)
        assert (module._parts(model, batch) is not None) == (family in UNPADDED)


def test_the_installed_encoder(tiny_family):
    source = find_encoder()
    tokenizer, model = PairTokenizer(source), load_model(source)
    encodings = make_pairs(tokenizer, n=4)
    with torch.inference_mode():
        expected = torch.cat(own_states(model, encodings))
        found = token_vectors(model, collate(encodings, tokenizer.pad_id, "cpu"))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", UNPADDED)
def test_bf16_is_close(tiny_family, family):
    source = find_encoder(tiny_family(family))
    tokenizer = PairTokenizer(source)
    batch = collate(make_pairs(tokenizer), tokenizer.pad_id, "cpu")
    with torch.inference_mode():
        exact = first_vectors(load_model(source), batch)
        half = first_vectors(load_model(source, dtype="bf16"), batch)
    assert half.dtype == torch.bfloat16
    assert torch.nn.functional.cosine_similarity(exact, half.float()).min() > 0.98


@pytest.mark.parametrize("family", UNPADDED)
def test_first_tokens_need_no_keys_and_values_of_the_others(tiny_family, family, monkeypatch):
    """Matrices applied once per input give the same as token by token, also with large biases; a module that is more
    than a product, such as an adapter, is called itself."""
    source = find_encoder(tiny_family(family))
    tokenizer, model = PairTokenizer(source), load_model(source)
    batch = collate(make_pairs(tokenizer), tokenizer.pad_id, "cpu")
    asked = []
    with torch.inference_mode():
        last = module._parts(model, batch).layers[-1]
        for part in (last.key, last.value):
            part.bias.copy_(torch.linspace(-3, 3, len(part.bias)))
            part.register_forward_hook(lambda part, given, found: asked.append(len(found)))
        short = first_vectors(model, batch)
        assert asked == []
        monkeypatch.setattr(module, "_is_plain", lambda layer, hidden: False)
        torch.testing.assert_close(short, first_vectors(model, batch), atol=1e-5, rtol=0)
        assert asked == [batch.lengths.sum()] * 2
    monkeypatch.undo()
    other = torch.nn.Sequential(last.key)
    assert module._is_plain(last, short)
    assert not module._is_plain(last._replace(key=other), short)
    assert not module._is_plain(last, short.bfloat16())


def test_gradients_and_training_use_the_models_own_forward_pass(tiny_family):
    source = find_encoder(tiny_family("bert"))
    tokenizer, model = PairTokenizer(source), load_model(source)
    batch = collate(make_pairs(tokenizer), tokenizer.pad_id, "cpu")
    first_vectors(model, batch).sum().backward()
    assert model.embeddings.word_embeddings.weight.grad is not None
    with torch.inference_mode():
        assert module._parts(model, batch) is not None
        assert module._parts(model.train(), batch) is None


def test_trained_weights_take_effect_at_once(tiny_family):
    source = find_encoder(tiny_family("bert"))
    tokenizer, model = PairTokenizer(source), load_model(source)
    batch = collate(make_pairs(tokenizer), tokenizer.pad_id, "cpu")
    with torch.inference_mode():
        before = first_vectors(model, batch)
    with torch.no_grad():
        model.encoder.layer[1].output.dense.bias[0] += 5.0
        assert (first_vectors(model, batch) - before).abs().max() > 0.1


def test_padding_inside_an_input_of_roberta_keeps_its_own_positions(tiny_family):
    model = load_model(find_encoder(tiny_family("roberta")))
    ids = (0, 9, 1, 12, 2)
    batch = collate(Encodings.of([Encoding(ids)]), 1, "cpu")
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, 5)).last_hidden_state[0]
        torch.testing.assert_close(token_vectors(model, batch), expected, atol=1e-5, rtol=0)


def classifier(folder: str, dtype: torch.dtype = torch.float32):
    torch.manual_seed(11)
    config = AutoConfig.from_pretrained(folder, num_labels=3)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(8 if "embed" in name else 4)
    return model.to(dtype)


@pytest.mark.parametrize("family", FAMILIES)
def test_pair_classifier_does_not_depend_on_batch_or_order(tiny_family, family):
    tokenizer = PairTokenizer(find_encoder(tiny_family(family)))
    model, encodings = classifier(tiny_family(family)), make_pairs(tokenizer, n=12)

    def run(chosen: Encodings, budget: int, used=model) -> torch.Tensor:
        engine = Engine(device="cpu", batch_tokens=budget, pad_id=tokenizer.pad_id)
        return engine.map(chosen, lambda batch: sequence_logits(used, batch))

    single = run(encodings, 1)
    with torch.inference_mode():
        own = model(**tokenizer.tokenizer.pad({"input_ids": [list(encodings[0].ids)]}, return_tensors="pt")).logits
    if encodings.type_ids is None:
        torch.testing.assert_close(single[:1], own, atol=1e-5, rtol=0)
    assert single.std(dim=0).min() > 1e-4
    torch.testing.assert_close(run(encodings, 10_000), single, atol=1e-5, rtol=0)
    order = random.Random(1).sample(range(12), 12)
    torch.testing.assert_close(run(encodings.take(order), 200), single[order], atol=1e-5, rtol=0)
    half = classifier(tiny_family(family), torch.bfloat16)
    scale = max(1.0, float(single.abs().max()))
    torch.testing.assert_close(run(encodings, 10_000, half) / scale, run(encodings, 1, half) / scale, atol=2e-2, rtol=0)


def test_pair_classifier_halves_its_batches_and_reports_truncation(tiny_family):
    tokenizer = PairTokenizer(find_encoder(tiny_family("bert")), max_length=24)
    model = classifier(tiny_family("bert"))
    rng = random.Random(5)
    contexts = [tuple(" ".join(rng.choices(WORDS, k=4)) for _ in range(rng.randint(0, 6))) for _ in range(15)]
    records = [Record(f"no {number} yes", context=turns) for number, turns in enumerate(contexts)]
    sizes = []

    def cramped(batch):
        sizes.append(batch.input_ids.numel())
        if sizes[-1] > 100:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return sequence_logits(model, batch)

    engine = Engine(device="cpu", batch_tokens=400, pad_id=tokenizer.pad_id)
    found, cut = engine.score(records, tokenizer.records, cramped)
    alone = Engine(device="cpu", batch_tokens=1, pad_id=tokenizer.pad_id)
    expected, _ = alone.score(records, tokenizer.records, lambda batch: sequence_logits(model, batch))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert max(sizes) > 100 >= engine.batch_tokens
    # Three special tokens, three of the text, four of each turn.
    assert cut.tolist() == [len(turns) >= 5 for turns in contexts]


@pytest.mark.parametrize("name", ["XLMRoberta", "Camembert"])
def test_relatives_of_roberta(name):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = getattr(transformers, f"{name}Config")(
        **sizes, vocab_size=50, max_position_embeddings=32, pad_token_id=1, hidden_act="relu"
    )
    torch.manual_seed(3)
    model = getattr(transformers, f"{name}Model")(config).eval()
    encodings = Encodings.of([Encoding(tuple(range(2, 2 + n))) for n in (5, 9, 9, 20)])
    batch = collate(encodings, 1, "cpu")
    with torch.inference_mode():
        assert module._parts(model, batch) is not None
        expected = torch.cat(own_states(model, encodings))
        torch.testing.assert_close(token_vectors(model, batch), expected, atol=1e-5, rtol=0)
