"""One vector per text from the token vectors of an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import torch

Pooling: TypeAlias = Literal["cls", "mean", "max"]


def pool(hidden: torch.Tensor, mask: torch.Tensor, how: Pooling) -> torch.Tensor:
    """Return (rows, width) from `hidden` (rows, tokens, width) and `mask` (rows, tokens), 1 for tokens; padding never
    enters.

    `how` cls is the first token, mean the mean over the tokens, max the largest value of each feature.
    """
    if how == "cls":
        return hidden[:, 0]
    kept = mask.unsqueeze(-1).to(hidden.dtype)
    if how == "mean":
        return (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp_min(1.0)
    return hidden.masked_fill(kept == 0, float("-inf")).amax(dim=1)
