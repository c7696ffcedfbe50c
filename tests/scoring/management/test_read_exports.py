"""Library and recompute read the product's output: every format of `dump` gives the same rows as `load`."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command

from annotation.exporters.formats import FORMATS
from annotation.models import Comparison, Output, Rating
from scoring.boards.data.files import ExportFolder, FolderError
from scoring.ml import fit, read_dataset
from tests.scoring.ml.everything import SMALLEST, write_everything
from tests.scoring.ml.tiny import tiny_encoder

pytestmark = pytest.mark.django_db
COMPARED = ("item", "system_a", "system_b", "rater", "aspect", "verdict")


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """Everything that training reads, with texts that spreadsheets take for formulas, line breaks, steps and
    speakers."""
    folder = tmp_path / "original"
    folder.mkdir()
    write_everything(folder)

    def change(name: str, rows: dict[int, dict]) -> None:
        path = folder / f"{name}.jsonl"
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for number, more in rows.items():
            lines[number].update(more)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    change("outputs", {0: {"text": '=1+1, "quoted"\nand é'}, 1: {"text": "'tis"}, 2: {"text": ""}, 7: {"step": 3}})
    change("items", {0: {"source": "name[The Cat]", "meta": {"domain": "food"}}, 1: {"context": []}})
    change("dialogues", {0: {"turns": ["-a", "b"], "speakers": ["A", "B"]}})
    (folder / "systems.jsonl").write_text('{"id": "s0", "kind": "human"}\n', encoding="utf-8")
    return folder


def test_every_export_is_the_same_dataset_and_can_be_trained_on(original, tmp_path):
    call_command("load", str(original), "--project", "all", verbosity=0)
    found = {}
    for name in FORMATS:
        call_command("dump", "all", str(tmp_path / name), "--format", name, verbosity=0)
        found[name] = read_dataset(tmp_path / name)
    packed = tmp_path / "packed"
    packed.mkdir()
    for path in (tmp_path / "jsonl").iterdir():
        is_table = path.suffix == ".jsonl"
        content = path.read_bytes()
        target = packed / (f"{path.name}.gz" if is_table else path.name)
        target.write_bytes(gzip.compress(content) if is_table else content)
    found["gzip"] = read_dataset(packed)
    first = found["jsonl"]
    assert len(first.ratings) == 384
    assert len(first.comparisons) == 24
    for name, data in found.items():
        for table in ("systems", "items", "outputs", "ratings", "comparisons", "dialogues", "aspects"):
            assert getattr(data, table) == getattr(first, table), (name, table)
        assert data == first, name
    # No loaded row is missing: exports sort rows and put every item into a group.
    source = read_dataset(original)
    assert {row.text for row in first.outputs} == {row.text for row in source.outputs}
    assert {(r.rater, r.item, r.system, r.aspect, r.value, r.step) for r in first.ratings} == {
        (r.rater, r.item, r.system, r.aspect, r.value, r.step) for r in source.ratings
    }
    encoder = tiny_encoder("bert", tmp_path / "encoder")
    values = [
        fit("adem", found[name], encoder=encoder, **SMALLEST["adem"]).score(first.outputs_with_context())
        for name in ("jsonl", "parquet", "safe-csv")
    ]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])


def test_recompute_reads_every_export_like_load(original, tmp_path):
    """`evalapp.stats` may not import the parsers of `load`: docs/decisions/recompute-reads-exports.md."""
    call_command("load", str(original), "--project", "all", verbosity=0)
    for name in FORMATS:
        call_command("dump", "all", str(tmp_path / name), "--format", name, verbosity=0)
        call_command("load", str(tmp_path / name), "--project", f"from-{name}", verbosity=0)
        folder = ExportFolder(tmp_path / name)
        stored = Rating.objects.filter(output__item__project__slug=f"from-{name}").values_list(
            "output__item__key", "output__system__name", "output__step", "rater", "aspect__name", "value"
        )
        read = [
            (row["item"], row["system"], row.get("step"), row["rater"], row["aspect"], float(row["value"]))
            for row in folder.rows("ratings")
        ]
        assert len(read) == 384
        assert Counter(read) == Counter(stored), name
        outputs = Output.objects.filter(item__project__slug=f"from-{name}").values_list(
            "item__key", "system__name", "step", "text"
        )
        assert {(o["item"], o["system"], o.get("step"), o["text"]) for o in folder.rows("outputs")} == set(outputs)
        compared = Comparison.objects.filter(output_a__item__project__slug=f"from-{name}").values_list(
            "output_a__item__key",
            "output_a__system__name",
            "output_b__system__name",
            "rater",
            "aspect__name",
            "verdict",
        )
        read = [tuple(row[key] for key in COMPARED) for row in folder.rows("comparisons")]
        assert len(read) == 24
        assert Counter(read) == Counter(compared), name


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("ratings.csv", "item;system;rater;aspect;value\ni;s;r;q;3\n", "rater is missing"),
        ("ratings.csv", "sep=,\nitem,system,rater,aspect,value\ni,s,r,q,3\n", "rater is missing"),
        ("ratings.csv", "Item,System,Rater,Aspect,Value\ni,s,r,q,3\n", "rater is missing"),
        ("ratings.csv", 'item,system,rater,aspect,value\ni,s,r,q,"3,5"\n', "cannot be read"),
        ("ratings.jsonl", '{"item": "i", "system": "s", "rater": 7, "aspect": "q", "value": 3}\n', "not a text"),
        ("ratings.jsonl", '{"item": "i", "system": "s", "rater": "r", "aspect": "q", "value": NaN}\n', "not a number"),
        ("ratings.jsonl", '{"item": "i", "system": "s", "rater": "r", "aspect": "q", "value": true}\n', "not a number"),
        ("ratings-gpt.jsonl", "", "would not be read"),
        ("ratings.ndjson", "", "would not be read"),
        ("Ratings.jsonl", "", "would not be read"),
    ],
)
def test_recompute_refuses_input_that_only_load_reads(tmp_path, file, content, problem):
    """Input that no export contains is an error with a remedy; rows are never skipped or misread."""
    (tmp_path / file).write_text(content, encoding="utf-8")
    with pytest.raises(FolderError, match=problem) as error:
        list(ExportFolder(tmp_path).rows("ratings"))
    assert any(way in str(error.value) for way in ("export", "cannot be read"))
