"""An artefact's folder contains what was saved, and damage is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from scoring.ml import ArtefactError, EncoderError, Record, ScoringError, fit, load
from scoring.ml.cross_fitted import CrossFitted
from scoring.ml.encoders.source import find_encoder
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.types import Dataset, Item, Output, System
from tests.scoring.ml.evaluators.ream.untrained import untrained
from tests.scoring.ml.tiny import tiny_encoder

RECORDS = [Record("the cat sat", ("a dog",), ("you like tea",)), Record("no", ("yes",), ("tea",))]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an evaluator with a trained encoder."""
    root = tmp_path_factory.mktemp("tuned")
    encoder = tiny_encoder("bert", root / "encoder", layers=1)
    # Its tokenizer's limit is below the encoder's positions.
    path = root / "encoder" / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": 40}))
    fit("adversarial", few(), encoder=encoder, max_steps=1).save_pretrained(root / "out")
    return root / "out"


def few() -> Dataset:
    """The smallest data that `adversarial` learns from."""
    items = tuple(Item(f"i{n}", context=(f"tea {n}",), references=(f"dog {n} ran",)) for n in range(12))
    outputs = tuple(Output(f"i{n}", "s", f"cat {n} sat") for n in range(12))
    return Dataset("few", systems=(System("s"),), items=items, outputs=outputs)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an evaluator with a frozen encoder."""
    root = tmp_path_factory.mktemp("frozen")
    source = find_encoder(tiny_encoder("bert", root / "encoder", layers=1))
    untrained(source).with_fixtures(RECORDS).save_pretrained(root / "out")
    return root / "out"


@pytest.fixture(params=["tuned", "frozen"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of either that may be damaged."""
    return Path(shutil.copytree(request.getfixturevalue(request.param), tmp_path / "copy"))


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_fixtures_may_contain_any_line_ending(tmp_path: Path) -> None:
    source = find_encoder(tiny_encoder("bert", tmp_path / "encoder", layers=1))
    texts = ("cat\u2028dog", "cat\x85dog", "cat\x0cdog\n\u2029", "half a \ud800 pair")
    made = untrained(source).with_fixtures([Record(text, ("cat",), ("no",)) for text in texts])
    made.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    assert [fixture.record.text for fixture in loaded.artefact.fixtures] == list(texts)  # type: ignore[attr-defined]


def test_stored_texts_may_contain_a_lone_surrogate(tmp_path: Path) -> None:
    """`comparative` stores texts in its state; intact ones stay readable."""
    source = find_encoder(tiny_encoder("bert", tmp_path / "encoder", layers=1))
    made, state = untrained(source, groups=("a \ud800",)), {"shown": ["cat \ud800", "猫"]}
    type(made)(made.entry, replace(made.artefact, state=state)).save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    assert isinstance(loaded, TrainedEvaluator)
    assert (loaded.artefact.state, loaded.record.groups) == (state, ("a \ud800",))
    type(made)(made.entry, replace(made.artefact, state={"shown": "猫"})).save_pretrained(tmp_path / "out")
    assert "猫" in (tmp_path / "out" / "evaluator.json").read_text(encoding="utf-8")


def test_loading_and_saving_again_changes_nothing(folder: Path, tmp_path: Path) -> None:
    once = load(folder)
    once.save_pretrained(tmp_path / "again")
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    for name in ("evaluator.json", "fixtures.jsonl", "split.json"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def write_as_older(folder: Path) -> None:
    """Give a saved evaluator with a trained encoder the form of versions before 0.2.0: a configuration of our own kind,
    and the encoder's weights under `encoder`."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    own = config.pop("evalapp")
    older = {"model_type": "evalapp", "encoder": config, **own}
    (folder / "config.json").write_text(json.dumps(older), encoding="utf-8")
    names = {name: name.partition(".")[2] for name in load_file(folder / "model.safetensors")}
    names = {name: rest if name.startswith("evalapp.") else f"encoder.{rest}" for name, rest in names.items()}
    weights = {names[name]: tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_older_form_loads_with_its_signature_and_scores(tuned: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tuned, tmp_path / "copy"))
    write_as_older(folder)
    older, now = load(folder), load(tuned)
    assert older.signature == now.signature
    np.testing.assert_array_equal(older.score(RECORDS), now.score(RECORDS))
    older.save_pretrained(tmp_path / "again")
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (tuned / "model.safetensors").read_bytes()


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_other_libraries_read_the_encoder_from_the_folder(family: str, tmp_path: Path) -> None:
    """`AutoModel` and `SentenceTransformer` without this library give the vectors that the evaluator computes."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    from scoring.ml.layers.pooling import pool

    made = fit("adversarial", few(), encoder=tiny_encoder(family, tmp_path / "encoder", layers=1), max_steps=1)
    made.save_pretrained(tmp_path / "out")
    texts = ["the cat sat on the mat", "tea"]
    inputs = AutoTokenizer.from_pretrained(tmp_path / "out")(texts, padding=True, return_tensors="pt")
    assert isinstance(made, TrainedEvaluator)
    with torch.no_grad():
        expected = made.network.eval().hidden(**inputs)
        hidden = AutoModel.from_pretrained(tmp_path / "out")(**inputs).last_hidden_state
    np.testing.assert_allclose(hidden, expected, atol=1e-6)
    pooled = pool(expected, inputs["attention_mask"], "mean")
    vectors = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(texts)
    np.testing.assert_allclose(vectors, pooled, atol=1e-6)


def test_older_artefacts_without_counts_load(folder: Path) -> None:
    def older(content: dict[str, Any]) -> None:
        del content["fixtures"], content["encoder"]["max_length"]
        content["encoder"].pop("tokenizer", None)

    expected = load(folder).score(RECORDS)
    edit(folder / "evaluator.json", older)
    np.testing.assert_array_equal(load(folder).score(RECORDS), expected)
    (folder / "fixtures.jsonl").write_text("")
    assert isinstance(load(folder), TrainedEvaluator)


@pytest.mark.parametrize(("version", "today"), [("0.1.0", "z-shrunk"), (None, "z-shrunk"), ("0.2.0", "z")])
def test_z_scores_of_the_first_version_keep_their_meaning(folder: Path, version: str | None, today: str) -> None:
    """0.1.0 called z-shrunk `z`; evaluators trained with it still state what they learned from."""

    def as_saved(content: dict[str, Any]) -> None:
        content["settings"]["ratings"] = "z"
        content |= {"version": version} if version else {}
        if version is None:
            del content["version"]

    edit(folder / "evaluator.json", as_saved)
    evaluator = load(folder)
    assert isinstance(evaluator, TrainedEvaluator)
    assert evaluator.settings["ratings"] == today


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"aspects": None}, "says aspects: None, which is not a list"),
        ({"aspects": [1]}, "says aspects: 1, which is not a text"),
        ({"state": None}, "says state: None, which is not an object"),
        ({"settings": [1]}, r"says settings: \[1\], which is not an object"),
        ({"settings": {}}, "does not fit the other files or its evaluator .KeyError"),
        ({"encoder": None}, "names no encoder"),
        ({"encoder": {}}, r"says encoder\.name: None, which is not a text"),
        ({"encoder": "x"}, "says encoder: 'x', which is not an object"),
        ({"seed": "abc"}, "says seed: 'abc', which is not a whole number"),
        ({"seed": True}, "says seed: True, which is not a whole number"),
        ({"record": {}}, r"evaluator\.json is damaged \(TypeError"),
        ({"evaluator": "bleu-1"}, "names the evaluator bleu-1, which is never trained"),
        ({"evaluator": "maude"}, r"evaluator\.json does not fit|config\.json is damaged|model\.safetensors is not"),
    ],
)
def test_contradicting_header_is_refused(folder: Path, change: dict[str, Any], message: str) -> None:
    edit(folder / "evaluator.json", lambda content: content.update(change))
    with pytest.raises(ArtefactError, match=message):
        load(folder)


@pytest.mark.parametrize("content", [b"null", b"[]", b"{}", b"", b"\xff\xfe"])
def test_invalid_configuration_is_named(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    with pytest.raises(ArtefactError, match=r"config\.json .*damaged"):
        load(folder)


@pytest.mark.parametrize("network", [{}, [], "x"])
def test_invalid_sizes_are_named(folder: Path, network: object) -> None:
    edit(folder / "config.json", lambda content: content.get("evalapp", content).update(network=network))
    with pytest.raises(ArtefactError, match=r"config\.json is damaged"):
        load(folder)


def test_weights_that_do_not_fit_the_configuration_are_named(folder: Path) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    first = sorted(weights)[0]
    faults = {
        f"{first} is missing": {name: value for name, value in weights.items() if name != first},
        f"{first}s is not known": {**weights, f"{first}s": torch.zeros(2)},
        f"{first} has another size": {**weights, first: torch.zeros(3, 1)},
    }
    for said, content in faults.items():
        save_file(content, path, metadata={"format": "pt"})
        with pytest.raises(
            ArtefactError, match=rf"model\.safetensors does not fit config\.json: {said}; copy it again"
        ):
            load(folder)


def test_configuration_with_enormous_sizes_takes_no_memory(tuned: Path, tmp_path: Path) -> None:
    """Once, an upload of a few kilobytes requested 150 GB."""
    folder = Path(shutil.copytree(tuned, tmp_path / "copy"))
    sizes = {"vocab_size": 2_000_000, "hidden_size": 19_200, "intermediate_size": 20_000}
    edit(folder / "config.json", lambda content: content.update(sizes))
    with pytest.raises(ArtefactError, match="has another size"):
        load(folder)


@pytest.mark.parametrize("content", [b"null", b"[]", b"", b"\xff\xfe garbage"])
def test_damaged_tokenizer_is_named(tuned: Path, tmp_path: Path, content: bytes) -> None:
    folder = Path(shutil.copytree(tuned, tmp_path / "copy"))
    (folder / "tokenizer_config.json").write_bytes(content)
    with pytest.raises(ArtefactError, match=r"tokenizer_config\.json is damaged"):
        load(folder)
    shutil.copytree(tuned, folder, dirs_exist_ok=True)
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(ArtefactError, match="its tokenizer's files are not those that were saved"):
        load(folder)
    edit(folder / "evaluator.json", lambda header: header["encoder"].pop("tokenizer"))
    with pytest.raises(EncoderError, match=r"the tokenizer in .* cannot be read"):
        load(folder)


@pytest.mark.parametrize("content", ["{}", None])
def test_tokenizer_with_another_limit_is_refused(tuned: Path, tmp_path: Path, content: str | None) -> None:
    folder = Path(shutil.copytree(tuned, tmp_path / "copy"))
    path = folder / "tokenizer_config.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ArtefactError, match="its tokenizer's files are not those that were saved"):
        load(folder)
    edit(folder / "evaluator.json", lambda header: header["encoder"].pop("tokenizer"))
    with pytest.raises(ArtefactError, match=r"40 tokens .*64"):
        load(folder)


def test_encoder_with_a_lower_limit_is_refused(tmp_path: Path) -> None:
    source = find_encoder(tiny_encoder("bert", tmp_path / "encoder", layers=1))
    untrained(source).with_fixtures(RECORDS).save_pretrained(tmp_path / "out")
    edit(tmp_path / "encoder" / "tokenizer_config.json", lambda content: content.update(model_max_length=20))
    with pytest.raises(ArtefactError, match=r"64 tokens .*20"):
        load(tmp_path / "out")


def test_moved_frozen_encoder_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder below the current folder was once recorded by its bare name, as if it could be downloaded."""
    monkeypatch.chdir(tmp_path)
    tiny_encoder("bert", tmp_path / "mine", layers=1)
    untrained(find_encoder("mine")).with_fixtures(RECORDS).save_pretrained(tmp_path / "out")
    before = load(tmp_path / "out").score(RECORDS)
    shutil.move(tmp_path / "mine", tmp_path / "moved")
    with pytest.raises(ArtefactError, match=r'encoder .*mine, .*encoder="PATH"'):
        load(tmp_path / "out")
    np.testing.assert_array_equal(load(tmp_path / "out", encoder=str(tmp_path / "moved")).score(RECORDS), before)
    tiny_encoder("bert", tmp_path / "other", layers=1, seed=8)
    with pytest.raises(ArtefactError, match="put that version back or train again"):
        load(tmp_path / "out", encoder=str(tmp_path / "other"))
    # The models of a cross-fitting share the named one.
    member = load(tmp_path / "out", encoder=str(tmp_path / "moved"))
    assert isinstance(member, TrainedEvaluator)
    CrossFitted(member.entry, [member, member]).save_pretrained(tmp_path / "folds")
    shutil.move(tmp_path / "moved", tmp_path / "again")
    with pytest.raises(ArtefactError, match="which does not exist"):
        load(tmp_path / "folds")
    folds = load(tmp_path / "folds", encoder=str(tmp_path / "again"))
    np.testing.assert_allclose(folds.score(RECORDS), before, atol=1e-12)


def test_lost_fixtures_are_detected(folder: Path) -> None:
    path = folder / "fixtures.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[1:]), encoding="utf-8")
    with pytest.raises(ArtefactError, match=rf"holds {len(lines) - 1}, but {len(lines)} fixtures were saved"):
        load(folder)
    path.write_text("", encoding="utf-8")
    with pytest.raises(ArtefactError, match=r"fixtures\.jsonl .*empty.* \d+ fixtures"):
        load(folder, verify=False)


@pytest.mark.parametrize(
    "change",
    [{"text": 5}, {"text": None}, {"references": "one"}, {"references": [1]}, {"context": None}, {"source": 0}],
)
def test_fixture_with_invalid_texts_is_refused(folder: Path, change: dict[str, Any]) -> None:
    path = folder / "fixtures.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows[0]["record"].update(change)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(ArtefactError, match=r"fixtures\.jsonl is damaged"):
        load(folder)


@pytest.mark.parametrize("name", ["split.json", "train_log.jsonl"])
def test_damage_in_other_files_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("[")
    with pytest.raises(ArtefactError, match=f"{name} is damaged"):
        load(folder)


def test_state_needed_for_scores_is_checked_on_loading(tmp_path: Path) -> None:
    """`adem` gives a blank text the low end of its scale, which is in its state."""
    from scoring.ml.evaluators.adem.evaluator import Adem
    from scoring.ml.evaluators.adem.network import AdemNetwork
    from scoring.ml.registry import get_entry

    source = find_encoder(tiny_encoder("bert", tmp_path / "encoder", layers=1))
    entry = get_entry("adem")
    sizes = {"vector": 32, "components": 2, "affine": True, "inputs": "both", "l1": 0.0, "l2": 0.01}
    made = replace(
        untrained(source).artefact, evaluator="adem", settings=entry.train_defaults("recommended"),
        state={"low": 1.0, "high": 5.0}, network=AdemNetwork.from_source(None, sizes),
    )  # fmt: skip
    Adem(entry, made).with_fixtures(RECORDS).save_pretrained(tmp_path / "out")
    assert load(tmp_path / "out").worst == 1.0
    edit(tmp_path / "out" / "evaluator.json", lambda content: content.update(state={}))
    with pytest.raises(ArtefactError, match="KeyError: 'low'"):
        load(tmp_path / "out")


def test_saved_baseline_with_invalid_options_is_refused(tmp_path: Path) -> None:
    load("bleu-1").save_pretrained(tmp_path)
    edit(tmp_path / "evaluator.json", lambda content: content.update(options=None))
    with pytest.raises(ScoringError, match="does not fit"):
        load(tmp_path)
