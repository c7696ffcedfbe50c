"""Evaluators that come trained: the one in the package, and a small one rebuilt by the documented script."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.ml import ArtefactError, NotTrained, Record, UnknownEvaluator, load
from scoring.ml.artefact import weights_hash
from scoring.ml.score_files.command import main
from scoring.ml.shipped import SHIPPED, Shipped, build, find_shipped, measure
from tests.scoring.ml.shipped.small import build_small

#: Weights of the head and hashes of the dialogues; a project keeps a copy.
MOST_BYTES = 8_000_000


@pytest.fixture(scope="module")
def base() -> Any:
    return load("maude-base")


def test_the_shipped_weights_are_those_named_in_the_code(base: Any) -> None:
    for name, one in SHIPPED.items():
        evaluator: Any = load(name)
        assert weights_hash(evaluator.artefact.network) == one.weights
        assert evaluator.name == one.method
    assert sum(path.stat().st_size for path in SHIPPED["maude-base"].folder.iterdir()) < MOST_BYTES
    assert len(base.artefact.fixtures) == len(build.FIXTURES), "load() has scored them again"


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(SHIPPED["maude-base"].folder, tmp_path / "maude-base")
    monkeypatch.setattr(Shipped, "folder", tmp_path / "maude-base")
    assert find_shipped("maude-base") == tmp_path / "maude-base"
    # A changed header is another evaluator; changed weights do not fit the header.
    content = json.loads((tmp_path / "maude-base" / "evaluator.json").read_text())
    (tmp_path / "maude-base" / "evaluator.json").write_text(json.dumps({**content, "weights": "0" * 64}))
    with pytest.raises(ArtefactError, match="not 4a55c89d as shipped"):
        load("maude-base")
    (tmp_path / "maude-base" / "evaluator.json").write_text(json.dumps(content))
    weights = tmp_path / "maude-base" / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    with pytest.raises(ArtefactError, match="not the file that was saved"):
        load("maude-base")


def test_names_lead_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotTrained, match=r"load\('maude-base'\)"):
        load("maude")
    with pytest.raises(UnknownEvaluator, match="maude-base"):
        load("maude-bse")
    # A folder of this name comes first: it is what its owner saved.
    load("length").save_pretrained(tmp_path / "maude-base")
    monkeypatch.chdir(tmp_path)
    assert load("maude-base").name == "length"


def test_it_tells_replies_from_broken_ones(base: Any) -> None:
    context = ("have you seen any good movies lately?",)
    texts = ["yes, i saw a great action movie last week.", "movie week great saw last i a action yes,", "a a a a a a"]
    values = base.score([Record(text, context=context) for text in texts])
    assert values[0] > 0.5 > values[1] > values[2]


def test_text_files_are_scored_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], base: Any) -> None:
    (tmp_path / "out.txt").write_text("yes, twice.\nno no no\n")
    (tmp_path / "context.txt").write_text("did you see it?\ndid you see it?\n")
    files = ["-i", str(tmp_path / "out.txt"), "-c", str(tmp_path / "context.txt")]
    assert main([*files, "-m", "maude-base", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    records = [Record(text, context=("did you see it?",)) for text in ("yes, twice.", "no no no")]
    assert found["metrics"][0]["systems"][0]["score"] == pytest.approx(float(base.score(records).mean()), abs=1e-4)


def test_the_card_names_data_licence_and_agreement(base: Any) -> None:
    card = (SHIPPED["maude-base"].folder / "card.md").read_text(encoding="utf-8")
    assert card == base.card
    assert "BSD 3-Clause" in card
    assert "6,300 dialogues of the Self-dialogue Corpus, drawn by its seed from 24,156" in card
    licence = SHIPPED["maude-base"].folder.parent / "LICENCE.self-dialogue-corpus"
    assert "Redistributions in binary form must reproduce" in licence.read_text(encoding="utf-8")
    labels = ("maude-base", "length", "best cosine", "MAUDE as published")
    rows = [(row["data"], row["evaluator"]) for row in base.record.elsewhere]
    assert rows == [(one.name, label) for one in measure.RATED for label in labels]
    for row in base.record.elsewhere:
        if row["evaluator"] != "MAUDE as published":
            for kind in ("pearson", "spearman"):
                assert row[kind]["low"] < row[kind]["value"] < row[kind]["high"]
                assert f"{row[kind]['value']:.3f} [{row[kind]['low']:.3f}, {row[kind]['high']:.3f}]" in card


def test_rebuilding_gives_the_same_evaluator(tmp_path: Path) -> None:
    first = build_small(tmp_path, tmp_path / "first")
    again = build_small(tmp_path, tmp_path / "again", work="other")
    assert weights_hash(first.artefact.network) == weights_hash(again.artefact.network)
    assert weights_hash(
        build_small(tmp_path, tmp_path / "seed", work="third", seed=5).artefact.network
    ) != weights_hash(first.artefact.network)
    stored: Any = load(tmp_path / "first")
    assert [fixture.record for fixture in stored.artefact.fixtures] == list(build.FIXTURES)
    assert "27 dialogues of the Self-dialogue Corpus, drawn by its seed from 40" in stored.card
    # Whole dialogues are held out.
    assert len(stored.record.groups) == 27
    assert len(stored.record.dev_groups) == 3
    assert not set(stored.record.groups) & set(stored.record.dev_groups)


def test_agreement_is_measured_on_rated_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    folder = tmp_path / "rated" / "chat"
    folder.mkdir(parents=True)
    tables: dict[str, list[dict[str, Any]]] = {"items": [], "outputs": [], "ratings": []}
    for number in range(12):
        item = f"i{number}"
        tables["items"].append({"id": item, "context": ["you like tea"], "references": ["i like tea"]})
        for system in ("good", "left-out"):
            text = " ".join(rng.choice(["tea", "cat", "i", "like"], int(rng.integers(1, 6))))
            tables["outputs"].append({"item": item, "system": system, "text": text})
            value = len(text.split()) if system == "good" else 0
            tables["ratings"].append(
                {"item": item, "system": system, "rater": "r", "aspect": "overall", "value": value}
            )
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "dataset.json").write_text(json.dumps({"name": "chat"}))
    monkeypatch.setattr(measure, "RATED", (measure.RatedSet("chat", "overall", 0.5, ("left-out",)),))
    evaluator = build_small(tmp_path, tmp_path / "first")
    own, length, cosine, published = measure.measure_agreement(evaluator, "small", tmp_path / "rated", 13)
    assert (own["evaluator"], own["spearman"]["n"], own["n_groups"]) == ("small", 12, 12)
    assert length["pearson"]["value"] == pytest.approx(1.0)
    assert -1 <= cosine["pearson"]["low"] <= cosine["pearson"]["value"]
    assert (published["spearman"]["value"], published["pearson"]["value"]) == (0.5, None)
    record = replace(evaluator.record, elsewhere=(own, published))
    card = type(evaluator)(evaluator.entry, replace(evaluator.artefact, record=record)).card
    assert "| chat | MAUDE as published | overall | 12 | 12 | - (not quoted) | 0.500 |" in card
