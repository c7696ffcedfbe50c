"""What stands in an artefact's folder is what was put there."""

from __future__ import annotations

from pathlib import Path

from scoring.ml import Record, load
from scoring.ml.encoders.source import find_encoder
from tests.scoring.ml.evaluators.ream.untrained import untrained
from tests.scoring.ml.tiny import tiny_encoder


def test_fixtures_may_hold_any_end_of_line(tmp_path: Path) -> None:
    source = find_encoder(tiny_encoder("bert", tmp_path / "encoder", layers=1))
    texts = ("cat\u2028dog", "cat\x85dog", "cat\x0cdog\n\u2029")
    made = untrained(source).with_fixtures([Record(text, ("cat",), ("no",)) for text in texts])
    made.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    assert [fixture.record.text for fixture in loaded.artefact.fixtures] == list(texts)  # type: ignore[attr-defined]
