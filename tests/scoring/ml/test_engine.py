"""The inference engine: batches, order, duplicates, running out of memory."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from scoring.ml import engine as module
from scoring.ml.encodings import Encodings, TokenizedTexts
from scoring.ml.engine import Encoding, Engine, collate, deduplicate, plan_batches, resolve_device
from scoring.ml.errors import ScoringError


def make_encodings(n: int = 50, seed: int = 1) -> list[Encoding]:
    rng = random.Random(seed)
    return [Encoding(tuple(rng.choices(range(1, 100), k=rng.randint(1, 20)))) for _ in range(n)]


def masked_sum(batch) -> torch.Tensor:
    """Depends on every token and on the mask, but not on padding."""
    return (batch.input_ids * batch.attention_mask).sum(dim=1, keepdim=True).float()


EXPECTED = torch.tensor([[float(sum(e.ids))] for e in make_encodings()])


def test_plan_batches_is_sorted_within_budget_and_complete():
    lengths = [len(e.ids) for e in make_encodings(200)]
    batches = plan_batches(lengths, 64)
    assert sorted(np.concatenate(batches)) == list(range(200))
    tops = [lengths[batch[0]] for batch in batches]
    assert tops == sorted(tops, reverse=True)
    assert all(len(batch) * lengths[batch[0]] <= 64 for batch in batches)


def test_input_longer_than_the_budget_is_alone():
    assert [batch.tolist() for batch in plan_batches([2, 99, 2], 4)] == [[1], [0, 2]]


def test_quarter_full_batch_ends_where_the_length_changes():
    assert [batch.tolist() for batch in plan_batches([5, 5, 4, 4, 4], 40)] == [[0, 1], [2, 3, 4]]
    assert [batch.tolist() for batch in plan_batches([5, 4, 4, 4, 3], 40)] == [[0, 1, 2, 3], [4]]
    assert [batch.tolist() for batch in plan_batches([3, 2, 1], 40)] == [[0, 1, 2]]


def test_deduplicate_keeps_first_appearance():
    unique, places = deduplicate(["b", "a", "b"])
    assert unique == ["b", "a"]
    assert places.tolist() == [0, 1, 0]


def test_collate_pads_right_with_mask_and_types():
    batch = collate([Encoding((5, 6, 7), (0, 0, 1)), Encoding((8,), (1,))], pad_id=9, device="cpu")
    assert batch.input_ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert batch.attention_mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("budget", [1, 37, 10_000])
def test_results_come_back_in_order_at_any_budget(budget):
    engine = Engine(device="cpu", batch_tokens=budget)
    torch.testing.assert_close(engine.map(make_encodings(), masked_sum), EXPECTED)


def test_shuffled_inputs_give_shuffled_results():
    encodings = make_encodings()
    order = random.Random(3).sample(range(50), 50)
    found = Engine(device="cpu").map([encodings[i] for i in order], masked_sum)
    torch.testing.assert_close(found, EXPECTED[order])


def test_duplicates_run_once():
    rows = []

    def count(batch) -> torch.Tensor:
        rows.append(len(batch.input_ids))
        return masked_sum(batch)

    found = Engine(device="cpu").map([Encoding((1, 2))] * 5 + [Encoding((3,))], count)
    assert sum(rows) == 2
    assert found[:, 0].tolist() == [3, 3, 3, 3, 3, 3]


def test_batches_are_halved_until_they_fit_and_stay_so():
    sizes = []

    def cramped(batch) -> torch.Tensor:
        sizes.append(batch.input_ids.numel())
        if batch.input_ids.numel() > 60:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return masked_sum(batch)

    engine = Engine(device="cpu", batch_tokens=400)
    torch.testing.assert_close(engine.map(make_encodings(), cramped), EXPECTED)
    assert engine.batch_tokens <= 60
    assert sum(size > 60 for size in sizes) <= 4  # 400, 200, 100 and then it fits
    sizes.clear()
    engine.map(make_encodings(), cramped)
    assert max(sizes) <= 60


def test_running_out_of_main_memory_is_also_recognised():
    def cramped(batch) -> torch.Tensor:
        if len(batch.input_ids) > 1:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate")
        return masked_sum(batch)

    torch.testing.assert_close(Engine(device="cpu").map(make_encodings(), cramped), EXPECTED)


def test_single_input_that_does_not_fit_suggests_a_remedy():
    def full(batch) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(ScoringError, match=r"20 tokens .*max_length"):
        Engine(device="cpu").map([Encoding(tuple(range(20)))], full)


def test_other_errors_are_raised():
    def broken(batch) -> torch.Tensor:
        raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        Engine(device="cpu").map(make_encodings(3), broken)


def test_no_gradient_is_recorded():
    weight = torch.ones(1, requires_grad=True)
    found = Engine(device="cpu").map(make_encodings(3), lambda batch: masked_sum(batch) * weight)
    assert not found.requires_grad


def test_no_inputs():
    assert Engine(device="cpu").map([], masked_sum).shape == (0,)


def test_device():
    assert resolve_device("cpu") == "cpu"
    if torch.cuda.is_available():
        assert resolve_device("auto") == "cuda"
    else:
        assert resolve_device("auto") == "cpu"
        with pytest.raises(ScoringError, match="no GPU"):
            resolve_device("cuda:1")
    with pytest.raises(ScoringError, match=r"auto, cpu, cuda .*cuda:N.*“foo”"):
        resolve_device("foo")


def tokenize(items: list[int]) -> TokenizedTexts:
    return TokenizedTexts(
        Encodings.of([Encoding((item, 1)) for item in items]), np.array([item % 2 == 0 for item in items])
    )


def test_items_are_tokenised_in_chunks_and_progress_reaches_the_end(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ITEMS", 10)
    sizes, seen = [], []

    def counted(items: list[int]) -> TokenizedTexts:
        sizes.append(len(items))
        return tokenize(items)

    items = list(range(25))
    found, cut = Engine(device="cpu", batch_tokens=8).score(
        items, counted, masked_sum, progress=lambda done, total: seen.append((done, total))
    )
    assert found[:, 0].tolist() == [item + 1 for item in items]
    assert cut.tolist() == [item % 2 == 0 for item in items]
    assert sizes == [10, 10, 5]
    assert seen == sorted(seen)
    assert len(seen) > 3
    assert seen[-1] == (25, 25)


def test_progress_callback_may_stop_the_work():
    def stop(done: int, total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        Engine(device="cpu").score([1, 2], tokenize, masked_sum, progress=stop)
    assert Engine(device="cpu").score([], tokenize, masked_sum)[0].shape == (0,)
