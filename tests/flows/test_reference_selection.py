"""From a corpus to the table of enhanced metrics, using only commands and files: load, corpus, train, annotate, score
and meta. The encoder is tiny and trained for one epoch: the test covers the path, not the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Reference
from scoring.ml import Dataset
from tests.cast import person
from tests.scoring.ml.evaluators.ream.test_evaluator import data
from tests.scoring.ml.tiny import tiny_encoder
from tests.short_training import command

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def write_folder(folder: Path, dataset: Dataset) -> None:
    """Write the dataset as an interchange folder."""
    folder.mkdir()
    aspects = [{"name": "overall", "min": 1, "max": 5}]
    description = {
        "name": "Flow",
        "task": "dialogue",
        "lang": "en",
        "aspects": aspects,
        "licence": "CC0",
        "source": "",
        "notes": "",
    }
    (folder / "dataset.json").write_text(json.dumps(description), encoding="utf-8")
    write_rows(
        folder / "items.jsonl",
        [
            {"id": i.id, "context": list(i.context), "references": list(i.references), "group": i.group}
            for i in dataset.items
        ],
    )
    write_rows(
        folder / "outputs.jsonl", [{"item": o.item, "system": o.system, "text": o.text} for o in dataset.outputs]
    )
    write_rows(
        folder / "ratings.jsonl",
        [
            {"item": r.item, "system": r.system, "rater": r.rater, "aspect": r.aspect, "value": r.value}
            for r in dataset.ratings
        ],
    )


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_from_corpus_to_enhanced_metrics(tmp_path, settings) -> None:
    encoder = tiny_encoder("bert", tmp_path / "tiny")
    settings.ARTEFACTS_DIR, settings.ENCODERS = tmp_path / "artefacts", [encoder]
    dataset = data(12)
    write_folder(tmp_path / "flow", dataset)
    person("olga")
    command("load", str(tmp_path / "flow"), "--project", "flow", "--owner", "olga")
    pairs = [
        {"query": " ".join(item.context), "response": f"{reference} again"}
        for item in dataset.items for reference in item.references
    ]  # fmt: skip
    write_rows(tmp_path / "talk.jsonl", pairs)
    added = command("corpus", "add", "talk", str(tmp_path / "talk.jsonl"), "--project", "flow", "--here")
    assert added["state"] == "succeeded"

    options = {"metric": "token-f1", "epochs": 1, "combinations": 4, "heads": 2, "foreign": 4}
    option_words = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    trained = command(
        "train",
        "ream",
        "--project",
        "flow",
        "--encoder",
        encoder,
        "--folds",
        "2",
        "--name",
        "judge",
        "--here",
        *option_words,
    )
    assert trained["evaluator"] == "judge"

    chosen = command(
        "select_references", "flow", "--evaluator", "judge", "--candidates", "corpus:talk", "--max", "4",
        "--into", "better", "--controls", "--here",
    )  # fmt: skip
    assert chosen["items"] == 12
    assert chosen["in_training"] == 0
    assert chosen["added"] > 0
    sources = Reference.objects.filter(set__name="better", meta__source__kind="corpus")
    assert sources.count() == chosen["added"]
    assert sources.first().meta["source"]["corpus"] == "talk"
    outputs = {output.text for output in dataset.outputs}
    assert not outputs & set(sources.values_list("text", flat=True))

    names = ["original", "better-raw", "better-random", "better"]
    for name in names:
        scored = command("score", "token-f1", "--project", "flow", "--references", name, "--here")
        assert scored["signature"].split("|refs:")[1].startswith(name)
    table = command("meta", "flow", "--references", *names[1:])
    (row,) = table["rows"]
    assert row["n"] == 72
    assert [entry["origin"] for entry in table["sets"]][-1] == "selected by judge for token-f1 from the corpus talk"
    assert {(d["a"], d["b"]) for d in row["differences"]} == {
        ("better-random", "better-raw"), ("better", "better-raw"), ("better", "better-random"),
    }  # fmt: skip
    assert all(d["p"] is not None and d["williams"] is not None for d in row["differences"])
