"""The pages about the library, run from top to bottom, with a small encoder instead of the installed one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.scoring.ml.everything import SMALL, write_everything
from tests.scoring.ml.tiny import tiny_encoder

DOCS = Path(__file__).resolve().parents[3] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the pages' folders."""
    for name in ("my-folder", "my-dialogues", "folder"):
        (tmp_path / name).mkdir()
        write_everything(tmp_path / name)
    tiny_encoder("bert", tmp_path / "encoder")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small(block: str, evaluator: str) -> str:
    """The block with a training that takes seconds."""
    options = {**SMALL[evaluator], "encoder": "encoder"}
    block = block.replace("dev=dev", f"dev=dev, **{options!r}")
    return block.replace('("recommended", {})', f'("recommended", {options!r})')


@pytest.mark.usefixtures("here")
def test_scores_of_a_folder() -> None:
    names: dict[str, object] = {}
    for block in blocks("how-to/use-the-library.md"):
        exec(block, names)
    assert len(names["scores"]) == len(names["records"]) > 0  # type: ignore[arg-type]


@pytest.mark.usefixtures("here")
def test_training_as_in_the_reference(tmp_path: Path) -> None:
    imports, training, correlation = blocks("reference/library.md")
    names: dict[str, object] = {}
    exec(imports, names)
    exec(small(training, "shared-bert"), names)
    assert (tmp_path / "out/evaluator.json").exists()
    columns = {"metric": np.arange(6.0), "human": np.array([1, 2, 2, 4, 5, 7.0])}
    exec(correlation, {**columns, "item": list("aabbcc"), "system": list("xyxyxy")})


def test_replies_of_dialogues(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With only dialogues, as on the page, which contains each figure."""
    for name in ("items", "outputs", "ratings", "comparisons"):
        (here / "my-dialogues" / f"{name}.jsonl").unlink()
    names: dict[str, object] = {}
    for block in blocks("how-to/score-dialogues.md"):
        exec(small(block, "maude"), names)
    assert names["maude"].signature.startswith("maude|profile:recommended|")  # type: ignore[attr-defined]
    said = capsys.readouterr().out
    assert "[]" not in said
    assert "ContextBin(low=1, high=1, n=" in said
