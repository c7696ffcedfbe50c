"""Dropout that knows nothing of the other rows."""

from __future__ import annotations

import torch

from scoring.ml.layers.counter_dropout import monte_carlo, row_seeds


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
    # 120,000 draws: the share lies within four standard errors of .7 * .9.
    assert abs(float(kept) - 0.63) < 4 * (0.63 * 0.37 / 120_000) ** 0.5
    torch.testing.assert_close(found[found != 0], torch.full_like(found[found != 0], 1 / 0.7 / 0.9))
    assert module(x) is not None
    assert torch.equal(module(x), x)


def test_a_row_does_not_see_its_neighbours_or_its_padding() -> None:
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


def test_neighbouring_features_places_and_passes_are_independent() -> None:
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


def test_row_seeds_ignore_padding_and_tell_orders_apart() -> None:
    ids = torch.tensor([[5, 6, 7, 0, 0], [6, 5, 7, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0]])
    seeds = row_seeds(ids, mask, 1)
    assert torch.equal(seeds, row_seeds(ids[:, :3], mask[:, :3], 1))
    assert seeds[0] != seeds[1]
    assert not torch.equal(seeds, row_seeds(ids, mask, 2))
