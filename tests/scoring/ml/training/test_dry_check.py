"""The dry check of encoders: it refuses everything that training would refuse, for every evaluator."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from scoring.ml import EncoderError, InvalidOption, Plan, plan
from scoring.ml.types import Aspect, Dataset, Dialogue, Item, Output, Rating, System
from tests.scoring.ml.tiny import tiny_encoder

LEARNERS = ("adem", "adversarial", "bert-nli", "infersent", "maude", "ridge", "ruber", "shared-bert")


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Enough data for each evaluator."""
    numbers = range(12)
    return Dataset(
        "all",
        aspects=(Aspect("good", 1, 5),),
        systems=(System("a"), System("b")),
        items=tuple(
            Item(f"i{n}", context=(f"you like tea {n}", "yes"), references=(f"dog {n} ran", f"no {n}")) for n in numbers
        ),
        outputs=tuple(Output(f"i{n}", s, f"cat {n} sat {s}") for n in numbers for s in "ab"),
        ratings=tuple(
            Rating("r", "good", float(1 + (n + k) % 5), item=f"i{n}", system=s)
            for n in numbers
            for k, s in enumerate("ab")
        ),
        dialogues=tuple(Dialogue(f"d{n}", (f"tea {n} you", f"cat sat on {n}", f"i like the mat {n}")) for n in numbers),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(tiny_encoder("bert", tmp_path / "encoder"))


def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def broken_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")


def another_tokenizer(folder: Path) -> None:
    shutil.copy(Path(tiny_encoder("roberta", folder.parent / "other")) / "tokenizer.json", folder)


def unknown_kind(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "bort"}), encoding="utf-8")


def damaged_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"garbage" * 100)


def foreign_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    weights = {f"other.{name}": value for name, value in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})


def checked(name: str, data: Dataset, folder: Path) -> Plan:
    return plan(name, data, encoder=str(folder))


@pytest.mark.parametrize("name", LEARNERS)
def test_usable_encoder_is_accepted(name: str, data: Dataset, folder: Path) -> None:
    assert checked(name, data, folder).steps > 0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (no_tokenizer, r"holds no tokenizer: copy its tokenizer\.json"),
        (broken_tokenizer, "the tokenizer in .* cannot be read"),
        (another_tokenizer, "gives the token number"),
        (unknown_kind, "bort"),
        (damaged_weights, "SafetensorError"),
        (foreign_weights, "of the weights of a BertModel"),
    ],
)
@pytest.mark.parametrize("name", LEARNERS)
def test_unusable_encoder_is_refused(
    name: str, data: Dataset, folder: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(folder)
    with pytest.raises(EncoderError, match=message):
        checked(name, data, folder)


@pytest.mark.parametrize("name", ["infersent", "ruber"])
def test_word_encoder_needs_its_vocabulary_size(name: str, data: Dataset, folder: Path) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({key: value for key, value in config.items() if key != "vocab_size"}), encoding="utf-8")
    with pytest.raises(EncoderError):
        checked(name, data, folder)


@pytest.mark.parametrize("name", ["comparative", "perception", "ream", "shared-bert"])
def test_truncated_texts_are_reported_before_training(name: str, data: Dataset, folder: Path) -> None:
    """Once, texts of ten thousand words were not reported before scoring."""
    third = tuple(Output(row.item, "c", f"{row.text} {place}") for place, row in enumerate(data.outputs[::2]))
    rated = tuple(Rating("r", "good", float(1 + place % 5), row.item, "c") for place, row in enumerate(third))
    short = replace(
        data, systems=(*data.systems, System("c")), outputs=(*data.outputs, *third), ratings=(*data.ratings, *rated)
    )
    # One token per word; the encoder reads 64.
    items = tuple(
        replace(item, references=tuple("cat " * 90 + text for text in item.references)) for item in data.items
    )
    long = replace(
        short, items=items, outputs=tuple(replace(row, text="dog " * 90 + row.text) for row in short.outputs)
    )
    (note,) = (note for note in checked(name, long, folder).notes if "examined" in note)
    found = re.fullmatch(r"(\d+) of (\d+) [a-z ]+ examined are longer than 64 tokens and are truncated", note)
    assert found is not None, note
    assert found[1] == found[2]
    assert not any("examined" in note for note in checked(name, short, folder).notes)


@pytest.mark.parametrize(
    ("gpus", "asked", "why"),
    [
        (0, "cuda:9", "this machine has no GPU that torch can use: take cpu or auto"),
        (2, "cuda:2", "the last GPU that torch can use here is cuda:1"),
    ],
)
@pytest.mark.parametrize("name", LEARNERS)
def test_missing_device_is_reported_with_the_given_option(
    name: str, data: Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, asked: str, why: str
) -> None:
    """Once, the hint named `device`, which is an option of scoring."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(InvalidOption, match=re.escape(f"option 'train_device' is '{asked}', but {why}")) as found:
        plan(name, data, encoder=str(folder), train_device=asked)
    assert found.value.option == "train_device"
