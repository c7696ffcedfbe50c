"""Separate vectors of the two texts of a pair, from the tokens of an input. Imports torch."""

from __future__ import annotations

import torch

from scoring.ml.encoders.forward import token_vectors
from scoring.ml.engine import Batch

#: Vectors of a pair: a, b, |a - b|, a * b.
PARTS = 4


def number_sides(ids: torch.Tensor, mask: torch.Tensor, separator: int, between: int) -> torch.Tensor:
    """Return (rows, tokens): 0 for tokens of the first text, 1 for the second, 2 elsewhere.

    `ids` and `mask` are (rows, tokens). An input ends with one `separator` and has `between` separators between its
    texts, as in `[CLS] c [SEP] a [SEP] b [SEP]` and `<s> c </s></s> a </s></s> b </s>`: the last text is the second,
    the one before it the first. In `[CLS] a [SEP] b [SEP]` the first includes the class token.
    """
    kept = mask.bool()
    ends = (ids == separator) & kept
    seen = ends.cumsum(dim=1)
    last = seen[:, -1:]
    sides = torch.full_like(seen, 2)
    sides[kept & ~ends & (seen == last - 1)] = 1
    sides[kept & ~ends & (seen == last - 1 - between)] = 0
    return sides


def pool_sides(hidden: torch.Tensor, sides: torch.Tensor) -> torch.Tensor:
    """Return (rows, 4 width): a, b, |a - b| and a * b of the mean vectors a and b of both texts.

    `hidden` is (rows, tokens, width), `sides` (rows, tokens) as from `number_sides`. A text without tokens is a vector
    of zeros.
    """
    means = []
    for side in (0, 1):
        kept = (sides == side).unsqueeze(-1).to(hidden.dtype)
        means.append((hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp_min(1.0))
    return _together(*means)


def side_vectors(encoder: torch.nn.Module, batch: Batch, separator: int, between: int) -> torch.Tensor:
    """Return `pool_sides` of the last hidden states of `encoder` for a `batch`, without gradients, and without padding
    where that is faster.

    `separator` and `between` are those of `number_sides`.
    """
    hidden = token_vectors(encoder, batch)
    mask = batch.attention_mask.bool()
    sides = number_sides(batch.input_ids, mask, separator, between)
    # Each row has three places: its first text, its second, and the rest.
    owner = (sides + 3 * torch.arange(len(sides), device=sides.device)[:, None])[mask]
    sums = torch.zeros((3 * len(sides), hidden.shape[1]), dtype=torch.float32, device=hidden.device)
    sums.index_add_(0, owner, hidden.float())
    counts = torch.bincount(owner, minlength=len(sums)).clamp_min(1)
    means = (sums / counts[:, None]).view(len(sides), 3, -1)
    return _together(means[:, 0], means[:, 1]).to(hidden.dtype)


def _together(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.cat([a, b, (a - b).abs(), a * b], dim=1)
