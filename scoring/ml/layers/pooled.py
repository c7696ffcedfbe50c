"""Pooled vectors of a batch at inference, over the encoder's unpadded forward where there is one."""

from __future__ import annotations

import torch

from scoring.ml.encoders.forward import first_vectors, token_vectors
from scoring.ml.engine import Batch
from scoring.ml.layers.pooling import Pooling


def pooled_vectors(encoder: torch.nn.Module, batch: Batch, how: Pooling) -> torch.Tensor:
    """(rows, width) as `pooling.pool` of the encoder's last hidden states; for use without gradients."""
    if how == "cls":
        return first_vectors(encoder, batch)
    hidden = token_vectors(encoder, batch)
    lengths = torch.from_numpy(batch.lengths).to(hidden.device)
    if how == "max":
        return torch.stack([part.amax(dim=0) for part in hidden.split(batch.lengths.tolist())])
    owner = torch.repeat_interleave(torch.arange(len(lengths), device=hidden.device), lengths)
    sums = torch.zeros((len(lengths), hidden.shape[1]), dtype=torch.float32, device=hidden.device)
    return sums.index_add_(0, owner, hidden.float()) / lengths[:, None]
