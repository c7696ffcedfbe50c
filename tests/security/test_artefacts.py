"""An imported evaluator is treated as data: the check of its folder refuses code, links outside and excessive memory
before a network is built. tests/scoring/pipelines/test_artefacts.py covers the rest."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalapp.common.errors import BadInput
from scoring.ml.artefact import REQUIRED
from scoring.pipelines.artefacts import check_folder

pytestmark = pytest.mark.promise("artefacts")
CONFIG: dict[str, Any] = {"model_type": "evalapp", "architectures": ["X"], "network": {"hidden": 32}, "encoder": None}
HEADER: dict[str, Any] = {
    "evaluator": "maude", "profile": "paper", "seed": 1, "aspects": [], "settings": {}, "state": {}, "encoder": None,
    "weights": "0", "record": {},
}  # fmt: skip


class Trap:
    """An object that a pickle would execute."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise AssertionError('a pickle was read')",)


def tensors(header: dict[str, Any], body: bytes = b"\0" * 16) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


GOOD = tensors({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "evaluator"
    found.mkdir()
    for name in REQUIRED:
        (found / name).write_text("")
    (found / "evaluator.json").write_text(json.dumps(HEADER))
    (found / "config.json").write_text(json.dumps(CONFIG))
    (found / "model.safetensors").write_bytes(GOOD)
    return found


def test_valid_folder_is_accepted(folder):
    check_folder(folder)


def _link(folder: Path) -> None:
    (folder / "card.md").unlink()
    (folder / "card.md").symlink_to("/etc/passwd")


def _linked_folder(folder: Path) -> None:
    (folder / "fold-0").symlink_to("/etc")


def _config(**more: Any) -> Callable[[Path], Any]:
    return lambda folder: (folder / "config.json").write_text(json.dumps({**CONFIG, **more}))


def _merged(**more: Any) -> Callable[[Path], Any]:
    """A configuration of an encoder with the network's settings in it."""
    content = {**BERT, "evalapp": {"network": {}, "attention": "sdpa"}, **more}
    return lambda folder: (folder / "config.json").write_text(json.dumps(content))


def _weights(content: bytes) -> Callable[[Path], Any]:
    return lambda folder: (folder / "model.safetensors").write_bytes(content)


def _file(name: str, content: bytes = b"x") -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_bytes(content)


HUGE = {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}
BERT = {"model_type": "bert", "hidden_size": 32}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_link, "not a file of an evaluator"),
        (_linked_folder, "not a file of an evaluator"),
        (_file("pytorch_model.bin", pickle.dumps(Trap())), "not a file of an evaluator"),
        (_file("modeling_x.py"), "not a file of an evaluator"),
        (_file("setup.cfg"), "not a file of an evaluator"),
        (_file("card.md", b"x" * 21_000_000), "larger than 20 MB"),
        (_weights(pickle.dumps(Trap())), "not a safetensors file"),
        (_weights(tensors({"w": HUGE})), "not a safetensors file"),
        (_weights(struct.pack("<Q", 2**40) + b"{}"), "not a safetensors file"),
        (_weights(tensors({"w": {**HUGE, "shape": [2**32, 2**32, 2**32]}})), "not a safetensors file"),
        (_weights(tensors({"w": {"dtype": "F32", "shape": [4], "data_offsets": [-16, 0]}})), "not a safetensors file"),
        (_weights(tensors({})), "no"),
        (_config(auto_map={"AutoModel": "x.Y"}), "auto_map"),
        (_config(trust_remote_code=True), "trust_remote_code"),
        (_config(encoder={**BERT, "auto_map": {"AutoModel": "x.Y"}}), "code of an upload is never run"),
        (_config(encoder={**BERT, "custom_pipelines": {}}), "code of an upload is never run"),
        (_config(encoder={"model_type": "x"}), "of the type"),
        (_config(encoder={**BERT, "hidden_size": 10**7}), "the maximum is 20,000"),
        (_config(encoder={**BERT, "num_hidden_layers": 10**5}), "the maximum is 200"),
        (_config(encoder={**BERT, "vocab_size": 10**10}), "the maximum is 2,000,000"),
        (_config(network={"hidden": 10**9}), "the maximum is 20,000"),
        (_merged(auto_map={"AutoModel": "x.Y"}), "code of an upload is never run"),
        (_merged(model_type="gpt2"), "of the type"),
        (_merged(hidden_size=10**7), "the maximum is 20,000"),
        (_merged(evalapp={"network": {"hidden": 10**9}}), "the maximum is 20,000"),
        (_merged(evalapp={"network": {}, "auto_map": {}}), "unknown entries: auto_map"),
        (_config(model_type="gpt2"), "not evalapp"),
        (_file("config.json", b"[" * 200_000), "not a JSON object"),
    ],
)
def test_dangerous_content_is_refused(folder, spoil, words):
    spoil(folder)
    with pytest.raises(BadInput, match="was rejected") as refused:
        check_folder(folder)
    assert words in str(refused.value.detail), refused.value.detail


def test_product_code_loads_no_pickles_and_executes_no_text():
    """`pickle`, `torch.load`, `eval`, `exec` and shells appear nowhere in the code, except for one pipe: a process that
    shares a training reads objects from the process that started it."""
    import ast

    root = Path(__file__).resolve().parents[2]
    wrong = []
    for room in ("evalapp", "annotation", "retrieval", "scoring"):
        for path in sorted((root / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                called = ast.unparse(node.func)
                keys = {key.arg: ast.unparse(key.value) for key in node.keywords}
                if called in ("eval", "exec", "pickle.load", "pickle.loads", "os.system", "yaml.load", "marshal.loads"):
                    wrong.append(f"{path.name}:{node.lineno}: {called}")
                if called == "torch.load" and keys.get("weights_only") != "True":
                    wrong.append(f"{path.name}:{node.lineno}: {called}")
                if keys.get("shell") == "True" or keys.get("trust_remote_code") == "True":
                    wrong.append(f"{path.name}:{node.lineno}: {called} {keys}")
                if called.endswith("np.load") and keys.get("allow_pickle", "False") != "False":
                    wrong.append(f"{path.name}:{node.lineno}: {called}")
    handed_over = [place for place in wrong if place.startswith("process.py:") and place.endswith(": pickle.loads")]
    assert len(handed_over) == 1
    assert "pickle.loads(owner.recv_bytes(" in (root / "scoring/ml/training/process.py").read_text(encoding="utf-8")
    assert [place for place in wrong if place not in handed_over] == []
