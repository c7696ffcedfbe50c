"""Refusals concerning the encoder's own pooler."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from safetensors.torch import load_file, save_file

from scoring.ml import EncoderError
from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.shared_bert.checks import check_pooler
from scoring.ml.training.job import FitJob
from tests.scoring.ml.tiny import tiny_encoder


def check(folder: str, pooling: str = "pooler") -> None:
    asked: Any = SimpleNamespace(encoder=find_encoder(folder), text={"pooling": pooling}.__getitem__)
    check_pooler(cast(FitJob, asked))


def test_pooler_is_needed_only_on_request(tmp_path: Path) -> None:
    check(tiny_encoder("bert", tmp_path / "bert"))
    other = tiny_encoder("distilbert", tmp_path / "distilbert")
    check(other, "mean")
    with pytest.raises(EncoderError, match=r"pooler .*pooling=mean .*pooling=cls"):
        check(other)


def test_incomplete_pooler_counts_as_missing(tmp_path: Path) -> None:
    folder = tiny_encoder("bert", tmp_path)
    path = tmp_path / "model.safetensors"
    weights = {name: value for name, value in load_file(path).items() if name != "pooler.dense.bias"}
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(EncoderError, match="pooler"):
        check(folder)


@pytest.mark.parametrize("content", [b"garbage" * 100, b"", None], ids=["garbage", "empty", "cut off"])
def test_damaged_weights_are_an_encoder_error(tmp_path: Path, content: bytes | None) -> None:
    folder = tiny_encoder("bert", tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-50] if content is None else content)
    with pytest.raises(EncoderError, match=r"model\.safetensors .*\(SafetensorError: "):
        check(folder)
