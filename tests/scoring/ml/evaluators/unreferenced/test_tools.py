"""Texts of models: functions of the caller, or models in local folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.ml import EncoderError, InvalidOption, fit, plan
from scoring.ml.evaluators.unreferenced.tools import LocalTextModel, ToolJob, Tools, make_texts
from scoring.ml.registry import get_entry
from scoring.ml.training.fit import run_job
from scoring.ml.training.job import TrainingProgress
from scoring.ml.types import Dataset, Item, Output, Record
from tests.scoring.ml.causal import tiny_causal
from tests.scoring.ml.evaluators.unreferenced.conftest import SMALL


def tiny_seq2seq(folder: Path) -> str:
    """A random T5 (width 16) with the word tokenizer of the tiny causal models."""
    import torch
    import transformers as t

    tiny_causal("gpt2", folder)
    torch.manual_seed(3)
    sizes = {"d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    marks = {"decoder_start_token_id": 2, "pad_token_id": 0, "eos_token_id": 3}
    model = t.T5ForConditionalGeneration(t.T5Config(vocab_size=16, **sizes, **marks))
    model.shared.weight.data[:4] = 0  # so that a word is always more likely than a special token
    model.save_pretrained(folder)
    return str(folder)


def job(dialogues: Dataset, folder: Path, encoder: str, tools: Tools | None = None, **options: Any) -> ToolJob:
    entry = get_entry("maude")
    given = {"encoder": encoder, "epochs": 1, "pool_size": 20, **SMALL["maude"], **options}
    parsed = entry.parse_train_options("recommended", given)
    return ToolJob(entry, dialogues, None, "recommended", parsed, 13, folder, tools=tools)


def test_functions_of_the_caller_make_false_and_true_replies(dialogues: Dataset, encoder: str, tmp_path: Path) -> None:
    asked: list[int] = []

    def generate(contexts: list[str]) -> list[str]:
        asked.append(len(contexts))
        return [f"dog {len(context.splitlines())}" for context in contexts]

    tools = Tools(generate, lambda texts: [text[::-1] for text in texts])
    first = run_job(job(dialogues, tmp_path, encoder, tools, paraphrased=0.5))
    assert first.artefact.state["negatives"] == [
        "word_drop", "word_order", "word_repeat", "rand_utt", "model_false", "rand_back",
    ]  # fmt: skip
    assert not any("No generator" in note for note in first.record.notes)
    calls = len(asked)
    assert max(asked) <= 8
    run_job(job(dialogues, tmp_path, encoder, tools, paraphrased=0.5))
    assert len(asked) == calls  # generated texts are stored in the folder


def test_generation_continues_after_an_interruption(dialogues: Dataset, encoder: str, tmp_path: Path) -> None:
    seen: list[str] = []

    def shout(texts: list[str]) -> list[str]:
        if len(seen) >= 8:
            raise RuntimeError("stopped")
        seen.extend(texts)
        return [text.upper() for text in texts]

    texts = [f"text\u2028{n}" for n in range(20)]
    made = job(dialogues, tmp_path, encoder)
    with pytest.raises(RuntimeError):
        make_texts(shout, texts, made, "shouting")
    path = next((tmp_path / "made").glob("shouting-*.jsonl"))
    with path.open("a", encoding="utf-8") as file:
        file.write('"TEXT\u20288 and a line cut o')
    told: list[TrainingProgress] = []
    again = ToolJob(made.entry, dialogues, None, "recommended", made.options, 13, tmp_path, report=told.append)
    fresh: list[str] = []
    found = make_texts(lambda lot: (fresh.extend(lot), [t.upper() for t in lot])[1], texts, again, "shouting")
    assert found == [text.upper() for text in texts]
    assert fresh == texts[8:]
    assert [(p.done, p.phase) for p in told] == [(16, "shouting"), (20, "shouting")]
    with pytest.raises(ValueError, match="one for each"):
        make_texts(lambda lot: lot[:-1], ["a", "b"], again, "short")


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_models_in_folders_write_one_line_per_text(tmp_path: Path, kind: str) -> None:
    folder = tiny_causal("gpt2", tmp_path) if kind == "causal" else tiny_seq2seq(tmp_path)
    model = LocalTextModel(folder, max_new_tokens=6)
    texts = ["the cat sat", "i like tea . no", "dog"]
    together = model(texts)
    assert len(together) == 3
    assert all("\n" not in text and len(text.split()) <= 6 for text in together)
    assert [model([text])[0] for text in texts] == together
    assert any(together)
    assert model([" "]) == [""]


def test_folders_can_be_named_as_options(dialogues: Dataset, encoder: str, tmp_path: Path) -> None:
    one, two = tiny_causal("gpt2", tmp_path / "lm"), tiny_seq2seq(tmp_path / "mt")
    found = fit(
        "maude", dialogues, encoder=encoder, epochs=1, generator=one, translator=two, back_translator=two,
        pool_size=10, **SMALL["maude"],
    )  # fmt: skip
    assert len(found.artefact.state["negatives"]) >= 5
    assert np.isfinite(found.score([Record("cat", context=("dog",))])[0])


def test_any_sequence_to_sequence_folder_paraphrases(dialogues: Dataset, encoder: str, tmp_path: Path) -> None:
    folder = tiny_seq2seq(tmp_path / "words")
    options = {"encoder": encoder, "epochs": 1, "paraphraser": folder, "pool_size": 10, **SMALL["maude"]}
    found = fit("maude", dialogues, paraphrased=0.5, **options)
    assert "rand_back" in found.artefact.state["negatives"]
    with pytest.raises(InvalidOption, match="takes the place of both translators"):
        fit("maude", dialogues, translator=folder, back_translator=folder, **options)


def test_outputs_of_the_data_are_learned_as_false_replies(dialogues: Dataset, encoder: str) -> None:
    """Their items count as training data."""
    items = tuple(Item(f"x{k}", ("so",), group=f"other{k}") for k in range(20))
    given = replace(dialogues, items=items, outputs=tuple(Output(item.id, "m", f"no {item.id}") for item in items))
    found = fit("maude", given, encoder=encoder, epochs=1, own_outputs=True, **SMALL["maude"])
    assert "model_false" in found.artefact.state["negatives"]
    assert {item.group for item in items} <= found.trained_on


def test_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r"config\.json"):
        LocalTextModel(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EncoderError, match="no language model"):
        LocalTextModel(tmp_path)(["a"])


def test_encoder_is_not_a_generator(encoder: str, dialogues: Dataset) -> None:
    """Its head would be random; the dry check also refuses it."""
    with pytest.raises(EncoderError, match="BertLMHeadModel"):
        LocalTextModel(encoder)(["the cat"])
    with pytest.raises(EncoderError, match="BertLMHeadModel"):
        plan("maude", dialogues, encoder=encoder, generator=encoder)


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_dry_check_accepts_usable_models(tmp_path: Path, kind: str) -> None:
    LocalTextModel(tiny_causal("gpt2", tmp_path) if kind == "causal" else tiny_seq2seq(tmp_path)).check()


def test_dry_check_refuses_unreadable_tools(dialogues: Dataset, encoder: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EncoderError, match="no language model that can be read"):
        plan("maude", dialogues, encoder=encoder, generator=str(tmp_path))
    folder = Path(tiny_causal("gpt2", tmp_path / "lm"))
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match="no tokenizer that can be read"):
        plan("maude", dialogues, encoder=encoder, translator=str(folder), back_translator=str(folder))


def test_lone_surrogate_does_not_stop_training(tmp_path: Path) -> None:
    model = LocalTextModel(tiny_causal("gpt2", tmp_path), max_new_tokens=3)
    assert model(["the \ud800 cat"]) == model(["the \ufffd cat"])
