"""Tiny randomly initialised encoders of several architectures, saved like real ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scoring.ml.tiny import save_model
from tests.scoring.ml.tiny import tiny_encoder as make_tiny_encoder

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
ARCHITECTURES = ("bert", "roberta", "distilbert", "deberta-v2", "modernbert")


def save_tokenizer(folder: Path) -> int:
    """A word tokenizer with class and separator tokens that reads 30 tokens; returns its vocabulary size."""
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


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny encoder by architecture; created once per session."""
    made: dict[str, str] = {}

    def make(architecture: str = "bert") -> str:
        if architecture not in made:
            folder = tmp_path_factory.mktemp(architecture)
            save_model(architecture, folder, save_tokenizer(folder), layers=4, positions=40)
            made[architecture] = str(folder)
        return made[architecture]

    return make


@pytest.fixture(scope="session")
def tiny_family(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny encoder with its family's own kind of tokenizer; 2 layers, 64 tokens; created once."""
    root = tmp_path_factory.mktemp("families")

    def make(family: str = "bert") -> str:
        folder = root / family
        return str(folder) if folder.is_dir() else make_tiny_encoder(family, folder)

    return make
