"""Dropout that does not depend on the other rows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModel, MPNetConfig

from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.source import find_encoder
from scoring.ml.layers.counter_dropout import monte_carlo, row_seeds
from tests.scoring.ml.tiny import tiny_encoder


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "mpnet", "modernbert"])
def test_every_family_supports_it(family: str, tmp_path: Path) -> None:
    """DeBERTa and MPNet have modules for attention dropout, DeBERTa another one on its table of relative positions."""
    if family == "mpnet":
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
        AutoModel.from_config(MPNetConfig(**sizes, vocab_size=60)).save_pretrained(tmp_path)
    else:
        tiny_encoder(family, tmp_path, dropout=0.1)
    model = load_model(find_encoder(str(tmp_path)))
    # As many rows as DeBERTa's table of relative positions.
    ids = torch.randint(5, 30, (16, 7), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[0, 4:] = 0
    with torch.inference_mode(), monte_carlo(model) as state:
        state.seeds = row_seeds(ids, mask, 13)
        together = model(input_ids=ids, attention_mask=mask).last_hidden_state[0, :4]
        state.seeds = state.seeds[:1]
        alone = model(input_ids=ids[:1, :4], attention_mask=mask[:1, :4]).last_hidden_state[0]
        state.number = 1
        other = model(input_ids=ids[:1, :4], attention_mask=mask[:1, :4]).last_hidden_state[0]
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    assert (other - alone).abs().max() > 1e-3


class Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Dropout(0.3), torch.nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.two(self.one(x))
        return found


def test_rates_and_scale() -> None:
    module = Two().eval()
    x = torch.ones(50, 40, 60)
    with monte_carlo(module) as state:
        state.seeds = torch.arange(50)
        found = module(x)
    kept = (found != 0).double().mean()
    # 120,000 draws: the share is within four standard errors of .7 * .9.
    assert abs(float(kept) - 0.63) < 4 * (0.63 * 0.37 / 120_000) ** 0.5
    # Probabilities are rounded up to multiples of 2^-16.
    torch.testing.assert_close(found[found != 0], torch.full_like(found[found != 0], 1 / 0.7 / 0.9), rtol=1e-4, atol=0)
    assert module(x) is not None
    assert torch.equal(module(x), x)


def test_row_does_not_depend_on_its_neighbours_or_padding() -> None:
    module = Two().eval()
    x = torch.randn(4, 5, 6)
    seeds = torch.tensor([11, 22, 33, 44])
    with monte_carlo(module) as state:
        state.seeds = seeds
        together = module(x)
        state.seeds = seeds[2:3]
        alone = module(torch.nn.functional.pad(x[2:3], (0, 0, 0, 3)))
        state.number = 1
        another = module(x[2:3])
    torch.testing.assert_close(together[2:3], alone[:, :5])
    assert not torch.equal(another, alone[:, :5])


def test_neighbouring_features_positions_and_passes_are_independent() -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(0.5)).eval()
    draws = []
    with monte_carlo(module) as state:
        state.seeds = torch.arange(64)
        for number in range(4):
            state.number = number
            draws.append((module(torch.ones(64, 32, 32)) > 0).double())
    stack = torch.stack(draws)
    n = stack[0].numel()
    for a, b in ((stack[0], stack[1]), (stack[0][:, 1:], stack[0][:, :-1]), (stack[0][..., 1:], stack[0][..., :-1])):
        correlation = ((a - 0.5) * (b - 0.5)).mean() * 4
        assert abs(float(correlation)) < 5 / n**0.5


def test_row_seeds_ignore_padding_and_distinguish_orders() -> None:
    ids = torch.tensor([[5, 6, 7, 0, 0], [6, 5, 7, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0]])
    seeds = row_seeds(ids, mask, 1)
    assert torch.equal(seeds, row_seeds(ids[:, :3], mask[:, :3], 1))
    assert seeds[0] != seeds[1]
    assert not torch.equal(seeds, row_seeds(ids, mask, 2))


def test_masks_by_whole_numbers() -> None:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014) in Python's whole numbers. Each hash has the draws of
    four features, as signed numbers of 16 bits from its lowest bits on: an element stays if its draw is at least the
    threshold, below which a share of p of these numbers lies."""
    size, shifts = 1 << 64, ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
    place, feature, layer, number = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xBF58476D1CE4E5B9
    seeds = [5, -7]
    module = Two().eval()
    with monte_carlo(module) as state:
        state.seeds, state.number = torch.tensor(seeds), 3
        found = module.two(torch.ones(2, 3, 39))
    for row, seed in enumerate(seeds):
        for token in range(3):
            for column in range(39):
                key = (seed + token * place + column // 4 * feature + 1 * layer + 3 * number) % size
                for shift, factor in shifts:
                    key = (key ^ (key >> shift)) * factor % size
                draw = (key >> 16 * (column % 4)) % 2**16
                draw -= 2**16 if draw >= 2**15 else 0
                kept = draw >= 6554 - 2**15  # 6,554 is the least whole number that is at least .1 * 2^16
                assert float(found[row, token, column]) == pytest.approx(1 / (1 - 6554 / 2**16) if kept else 0.0)
