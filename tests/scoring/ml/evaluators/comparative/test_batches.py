"""Batches: every judged pair once per epoch, the same for the same epoch, the curriculum by stages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.comparative import batches as module
from scoring.ml.evaluators.comparative.batches import HeldOut, JudgedDraw, PairBatches, SupervisedDraw, encode_pairs
from scoring.ml.evaluators.comparative.inputs import PairReader
from scoring.ml.evaluators.comparative.material import Material
from scoring.ml.evaluators.comparative.pairs import Pair, Samples, StrongPairs, WeakPairs
from scoring.ml.registry import get_entry
from scoring.ml.training.job import FitJob
from scoring.ml.types import Record
from tests.scoring.ml.evaluators.comparative.data import make


@pytest.fixture(scope="module")
def reader(tiny_family) -> PairReader:
    return PairReader(find_encoder(tiny_family("bert")))


@pytest.fixture
def job(tmp_path) -> FitJob:
    return FitJob(get_entry("comparative"), make(), None, "recommended", {}, 13, tmp_path)


def pairs(n: int) -> list[Pair]:
    records = Samples.of(make(20)).generated
    return [Pair(records[k], records[k + 1], (0.1, 0.2, 0.7)) for k in range(n)]


def list_rows(batches: PairBatches) -> list[tuple[tuple[int, ...], float]]:
    found = []
    for number in range(len(batches)):
        batch = batches[number]
        for ids, mask, target in zip(batch["input_ids"], batch["attention_mask"], batch["targets"], strict=True):
            found.append((tuple(ids[mask.bool()].tolist()), round(float(target[2]), 3)))
    return found


def test_every_judged_pair_once_per_epoch_in_either_order(reader, job):
    given = pairs(37)
    batches = PairBatches(JudgedDraw(given, job), 37, 8, reader, job, epochs=30)
    batches.set_epoch(0)
    first = list_rows(batches)
    assert (len(batches), len(first)) == (5, 37)
    expected = {}
    for pair in given:
        for side in (pair, pair.mirrored()):
            encodings, targets = encode_pairs(reader, [side])
            expected[encodings[0].ids] = round(float(targets[0, 2]), 3)
    assert all(expected[ids] == target for ids, target in first)
    sides = [target for _, target in first]
    assert 5 < sides.count(0.7) < 32
    batches.set_epoch(1)
    assert list_rows(batches) != first
    batches.set_epoch(0)
    assert list_rows(batches) == first
    # A resumed training first requests a batch in the middle.
    fresh = PairBatches(JudgedDraw(given, job), 37, 8, reader, job, epochs=30)
    fresh.set_epoch(0)
    assert torch.equal(fresh[3]["input_ids"], batches[3]["input_ids"])
    with pytest.raises(IndexError):
        batches[5]


def test_strong_and_weak_pairs_alternate(job):
    data = make(12)
    samples = Samples.of(data)
    strong = StrongPairs(samples, same_context=0.8, tie=True)
    weak = WeakPairs(data, samples, margin=0.1, curriculum=True, same_context=0.8, smoothing=0.1, tie=True)
    draw = SupervisedDraw(strong, weak, n_pairs=400, epochs=2, job=job)

    def from_weak(found: list[Pair]) -> list[float]:
        return [
            abs((p.a.step or 0) - (p.b.step or 0)) / 1000
            for p in found
            if p.a.system == p.b.system == "ngram" and p.a.step != p.b.step
        ]

    begin, end = draw(0, 0, 100), draw(1, 300, 400)
    assert len(from_weak(begin)) == len(from_weak(end)) == 50
    assert set(np.round(from_weak(begin), 3)) == {0.9}
    assert min(from_weak(end)) == pytest.approx(0.3)
    assert draw(0, 0, 100) == begin
    alone = SupervisedDraw(None, weak, n_pairs=400, epochs=2, job=job)(0, 0, 100)
    assert len(from_weak(alone)) == 100


def test_curriculum_ends_with_the_training(job):
    """docs/explanation/evaluators/comparative.md#weak-pairs: m(p) falls with the progress of training, which a step
    limit may end."""
    entry = get_entry("comparative")
    options = entry.parse_train_options("recommended", {"strong": "no", "human": "no", "pairs_per_epoch": 320,
                                                        "epochs": 3, "max_steps": 3})  # fmt: skip
    (phase,) = Material(replace(job, options=options)).phases()
    assert (phase.steps, phase.n_pairs) == (3, 320)
    last = phase.draw(0, 64, 96)
    margins = {round(abs((p.a.step or 0) - (p.b.step or 0)) / 1000, 3) for p in last}
    # After two of three steps m(2/3) = 0.217; if 30 steps were to come, it would be 0.742.
    assert min(margins) == 0.3


def test_evenly_divided_raters_make_a_tie(reader):
    """Once, it counted as "worse" in both orders."""
    one, two = Samples.of(make(20)).generated[:2]
    given = [Pair(one, two, (0.5, 0.0, 0.5)), Pair(two, one, (0.5, 0.0, 0.5)), Pair(one, two, (0.1, 0.2, 0.7))]
    held_out = HeldOut(given, reader, "cpu")
    assert held_out.truth.tolist() == [1, 1, 2]
    assert held_out.majority == pytest.approx(2 / 3)


def test_the_head_learns_every_drawn_pair_from_both_sides_where_texts_are_read_alone(reader, job, monkeypatch):
    """All epochs with the curriculum's whole range of margins, and judged pairs once; where texts are read together,
    the first epoch from one side."""
    data = make(12)
    weak = WeakPairs(data, Samples.of(data), margin=0.1, curriculum=True, same_context=0.8, smoothing=0.1, tie=True)
    draw = SupervisedDraw(None, weak, n_pairs=40, epochs=3, job=job)
    alone = PairReader(reader.tokenizer.source, texts=4)

    def list_pairs(one: PairReader, drawn: SupervisedDraw | JudgedDraw = draw) -> list[Pair]:
        return PairBatches(drawn, 40, 4, one, job, epochs=3).list_head_pairs()

    def list_margins(found: list[Pair]) -> set[float]:
        return {round(abs((p.a.step or 0) - (p.b.step or 0)) / 1000, 1) for p in found if p.a.step != p.b.step}

    found = list_pairs(alone)
    assert found[120:] == [pair.mirrored() for pair in found[:120]]
    assert list_margins(found) == {0.3, 0.6, 0.9}
    assert list_pairs(reader) == draw(0, 0, 40)
    assert list_margins(list_pairs(reader)) == {0.9}
    judged = list_pairs(alone, JudgedDraw(pairs(40), job))
    assert len(judged) == 80
    assert {frozenset((p.a.item, p.b.item)) for p in judged} == {frozenset((p.a.item, p.b.item)) for p in pairs(40)}
    monkeypatch.setattr(module, "MOST_HEAD_PAIRS", 100)
    few = list_pairs(alone)
    assert few[:40] == found[:120:3]
    assert len(few) == 80


def test_short_training_has_ten_stages(reader, job):
    draw = JudgedDraw(pairs(37), job)
    assert PairBatches(draw, 32 * 100, 32, reader, job, epochs=3).chunk == 16
    assert PairBatches(draw, 320, 32, reader, job, epochs=3).chunk == 3
    assert PairBatches(draw, 32, 32, reader, job, epochs=1).chunk == 1


def test_pairs_of_an_item_are_neighbours_where_texts_are_read_alone(reader, job):
    """Eight items with three pairs of three texts each, six pairs in a batch: six texts instead of up to twelve."""
    words = ["cat", "dog", "tea"]
    records = {(n, word): Record(f"{word} {n}", item=f"i{n}") for n in range(8) for word in words}
    given = [
        Pair(records[n, words[k]], records[n, words[(k + 1) % 3]], (0.0, 0.0, 1.0)) for n in range(8) for k in range(3)
    ]
    alone = PairReader(reader.tokenizer.source, texts=2)
    batches = PairBatches(JudgedDraw(given, job), len(given), 6, alone, job, epochs=10)
    assert [len(batches[n]["places"]) for n in range(4)] == [6] * 4
    assert [len(batches[n]["input_ids"]) for n in range(4)] == [6] * 4
