"""Dropout whose mask depends on the input, the layer and the pass alone, never on the other rows of a batch.

Masks of `torch.nn.Dropout` come from one stream: what a text draws depends on its neighbours. Here each is a hash of
(row seed, token place, feature, layer, pass), so Monte-Carlo passes are batch- and order-invariant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Odd constants of splitmix64 and its relatives, as signed numbers; products wrap around.
_STEPS = (-7046029254386353131, -4417276706812531889, 1609587929392839161, -4658895280553007687)
#: Draws in a hash of 64 bits: of 16 bits each.
_DRAWS, _BITS = 4, 16
# Modules whose own dropouts act on weights of attention or on tables of relative places.
_ATTENTION = "SelfAttention"
_MIX = (-4658895280553007687, -7723592293110705685)


class CounterDropout(torch.nn.Module):
    """Takes the place of a `torch.nn.Dropout` while `monte_carlo` is active; drops with the same probability, rounded
    up to a multiple of 2^-16."""

    def __init__(self, p: float, layer: int, state: PassState) -> None:
        super().__init__()
        self.p, self.layer, self.state = p, layer, state

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(rows, tokens, features) or (rows, features) with each element 0 with probability p, else divided by 1 - p;
        values of another shape, such as attention weights, are unchanged."""
        seeds = self.state.seeds
        if self.p <= 0 or seeds is None or values.ndim not in (2, 3) or len(values) != len(seeds):
            return values
        n_features = values.shape[-1]
        key = seeds.to(values.device) + _wrapped(self.layer * _STEPS[2] + self.state.number * _STEPS[3])
        for size, step in zip((*values.shape[1:-1], -(-n_features // _DRAWS)), _STEPS, strict=False):
            key = key[..., None] + torch.arange(size, device=values.device, dtype=torch.int64) * step
        # Four neighbouring features share a hash: computing hashes takes most of the time of a mask.
        draws = _mix(key).view(torch.int16)[..., :n_features]
        dropped = math.ceil(self.p * (1 << _BITS))
        kept = (draws >= dropped - (1 << _BITS - 1)).to(values.dtype)
        return kept.mul_(values).mul_(1.0 / (1.0 - dropped / (1 << _BITS)))


class PassState:
    """The number of the pass and the seeds of its rows."""

    def __init__(self) -> None:
        self.seeds: torch.Tensor | None = None
        self.number = 0


@contextmanager
def monte_carlo(module: torch.nn.Module) -> Iterator[PassState]:
    """While active, all dropouts of `module` use the yielded state; set its `seeds` and `number`.

    Only dropouts on token vectors are replaced; the module must be in evaluation mode, so that dropout inside attention
    stays off. DeBERTa and MPNet have attention dropout in modules as well; some see no rows.
    """
    state = PassState()
    replaced = _on_vectors(module)
    try:
        for layer, owner, name, child in replaced:
            setattr(owner, name, CounterDropout(child.p, layer, state))
        yield state
    finally:
        for _, owner, name, child in replaced:
            setattr(owner, name, child)


def has_dropout(module: torch.nn.Module) -> bool:
    """Return whether passes of a `module` under `monte_carlo` can differ: in some encoders, such as ModernBERT, all
    dropouts are 0."""
    return any(child.p > 0 for *_, child in _on_vectors(module))


def _on_vectors(module: torch.nn.Module) -> list[tuple[int, torch.nn.Module, str, torch.nn.Dropout]]:
    """The dropouts on vectors of tokens: number, owner, name in it, dropout."""
    result: list[tuple[torch.nn.Module, str, torch.nn.Dropout]] = []
    for owner in list(module.modules()):
        for name, child in list(owner.named_children()):
            if isinstance(child, torch.nn.Dropout):
                result.append((owner, name, child))
    # Numbered before those inside attention are left out, whatever an architecture calls attention.
    return [(layer, *one) for layer, one in enumerate(result) if not type(one[0]).__name__.endswith(_ATTENTION)]


def row_seeds(input_ids: torch.Tensor, attention_mask: torch.Tensor, seed: int) -> torch.Tensor:
    """Return (rows,) a 64-bit hash of the tokens of each row and the `seed`, independent of padding; `input_ids` and
    `attention_mask` are (rows, tokens)."""
    places = torch.arange(1, input_ids.shape[1] + 1, device=input_ids.device, dtype=torch.int64)
    token = _mix((input_ids.to(torch.int64) + 1) * _STEPS[0] + places * _STEPS[1])
    return _mix((token * attention_mask.to(torch.int64)).sum(dim=1) + _wrapped(seed * _STEPS[2]))


def _mix(key: torch.Tensor) -> torch.Tensor:
    """The finaliser of splitmix64; shifts are logical."""
    # In place: most of the time goes to memory.
    key = _shifted(key, 30).bitwise_xor_(key).mul_(_MIX[0])
    key = _shifted(key, 27).bitwise_xor_(key).mul_(_MIX[1])
    return _shifted(key, 31).bitwise_xor_(key)


def _wrapped(number: int) -> int:
    """The number as a signed 64-bit integer."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _shifted(key: torch.Tensor, by: int) -> torch.Tensor:
    return (key >> by).bitwise_and_((1 << (64 - by)) - 1)
