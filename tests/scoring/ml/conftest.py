"""Tiny randomly initialised encoders of several architectures, saved the way real ones are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

WORDS = [
    *"abcdefg",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    "tea",
    "i",
    "you",
    "like",
    "no",
    "yes",
    "the",
    "ran",
    ".",
    ",",
    "!",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 48}
ARCHITECTURES = ("bert", "roberta", "distilbert", "deberta-v2", "modernbert")


def save_tokenizer(folder: Path) -> int:
    """A word tokenizer with class and separator tokens that reads 30 tokens; returns its vocabulary's size."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=30,
    ).save_pretrained(folder)
    return len(vocabulary)


def save_model(folder: Path, architecture: str, size: int) -> None:
    import torch
    import transformers as t

    common = {"vocab_size": size, "max_position_embeddings": 40, "pad_token_id": 0}
    config = {
        "bert": lambda: t.BertConfig(**SIZES, **common),
        "roberta": lambda: t.RobertaConfig(**SIZES, **common),
        "distilbert": lambda: t.DistilBertConfig(dim=32, n_layers=4, n_heads=4, hidden_dim=48, **common),
        "deberta-v2": lambda: t.DebertaV2Config(
            **SIZES, **common, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8
        ),
        "modernbert": lambda: t.ModernBertConfig(**SIZES, **common, local_attention=8),
    }[architecture]()
    torch.manual_seed(7)
    model = t.AutoModel.from_config(config)
    # Initial weights are so small that all tokens look alike; larger ones make mistakes visible.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(8 if "embed" in name else 4)
    model.save_pretrained(folder)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny encoder by architecture; made once a session."""
    made: dict[str, str] = {}

    def make(architecture: str = "bert") -> str:
        if architecture not in made:
            folder = tmp_path_factory.mktemp(architecture)
            save_model(folder, architecture, save_tokenizer(folder))
            made[architecture] = str(folder)
        return made[architecture]

    return make
