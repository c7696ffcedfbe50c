"""Statistics of texts whose sums give a system's score: a resampled interval must be based on the score itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scoring.ml import cross_fit, fit, load
from scoring.ml.types import Dataset, Item, Output, Record
from tests.scoring.ml.tiny import tiny_encoder

TEXTS = ["the cat sat on the mat", "a dog ran", "you like tea and cats", "no", "", "the mat on the cat sat there"]
REFERENCES = [
    ("the cat is on the mat", "a cat sat"),
    ("a dog ran away",),
    ("do you like tea",),
    (),
    ("yes",),
    ("mats",),
]
QUICK = {"epochs": 1, "batch_size": 4, "max_steps": 2}


def records(n: int = 24) -> list[Record]:
    return [
        Record(TEXTS[k % 6], REFERENCES[(k * 5) % 6], item=f"i{k}", group=f"g{k // 2}", system="s") for k in range(n)
    ]


def agrees(measure, found: list[Record], rel: float = 1e-9) -> None:
    """Sums over all, over parts, and over repeated texts, against the score of exactly these texts."""
    rows = measure.system_statistics(found)
    assert rows.shape[0] == len(found)
    counts = np.random.default_rng(3).integers(0, 3, (5, len(found)))
    drawn = measure.from_sums(counts @ rows)
    for count, value in zip(counts, drawn, strict=True):
        again = [record for record, times in zip(found, count, strict=True) for _ in range(times)]
        assert value == pytest.approx(measure.system_score(again), rel=rel)
    assert float(measure.from_sums(rows.sum(axis=0))) == pytest.approx(measure.system_score(found), rel=rel)
    assert np.isnan(measure.from_sums(np.zeros(rows.shape[1])))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bleu-corpus", {}),
        ("bleu-corpus", {"smooth": "method5"}),
        ("chrf", {}),
        ("chrf", {"word_order": 2}),
    ],
    ids=["bleu", "bleu of five orders", "chrf", "chrf++"],
)
def test_texts_with_references(name: str, options: dict[str, object]) -> None:
    agrees(load(name, **options), records())
    nothing = [record for record in records() if not record.references]
    assert nothing
    assert np.isnan(load(name, **options).system_score(nothing))


def test_perplexity(tmp_path: Path) -> None:
    """By a model that does not change with the texts, unlike n-grams of other items' references."""
    from tests.scoring.ml.causal import tiny_causal

    measure = load("perplexity", encoder=tiny_causal("gpt2", tmp_path))
    agrees(measure, [record for record in records() if record.text], 1e-6)
    assert measure.system_statistics([Record(""), Record(" ")]).tolist() == [[0.0, 0.0]] * 2


def test_perception_and_its_folds(tmp_path: Path) -> None:
    encoder = tiny_encoder("bert", tmp_path / "encoder", dropout=0.1)
    items = tuple(Item(f"i{k}", ("hello",), references=("cat sat on mat",), group=f"g{k}") for k in range(24))
    outputs = tuple(Output(item.id, "s", TEXTS[k % 4]) for k, item in enumerate(items))
    data = Dataset("hand", items=items, outputs=outputs)
    reader = fit("perception", data, encoder=encoder, penalty="none", **QUICK)
    reader.options["mc_passes"] = 3
    # An empty text's 0 is certain; a text without references has no value.
    assert reader.system_statistics([Record("", ("cat",))]).tolist() == [[0.0, 2.0, 0.0, 1.0]]
    assert reader.system_statistics([Record("cat")]).tolist() == [[0.0] * 4]
    agrees(reader, data.outputs_with_context(), 1e-6)
    folds = cross_fit("perception", data, folds=2, folder=tmp_path / "f", encoder=encoder, penalty="none", **QUICK)
    for member in folds.members:
        member.options["mc_passes"] = 3
    agrees(folds, data.outputs_with_context(), 1e-6)


def test_measures_that_are_not_sums_have_no_statistics() -> None:
    assert load("distinct-1").system_statistics(records()) is None
    assert load("length").system_statistics(records()) is None
    with pytest.raises(NotImplementedError, match="distinct-1"):
        load("distinct-1").from_sums(np.zeros(2))
