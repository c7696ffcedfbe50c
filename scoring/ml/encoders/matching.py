"""Similarities between the token vectors of texts, for all pairs of a query at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]


class Side(NamedTuple):
    """The tokens of multiple texts, concatenated: vectors (tokens, width), weights (tokens,), tokens per text.

    Every text has at least one token; a weight of 0 lets a token be matched without matching itself.
    """

    vectors: torch.Tensor
    weights: npt.NDArray[np.float64]
    lengths: Ints


def greedy_match(hyps: Side, refs: Side) -> tuple[Floats, Floats]:
    """Return precision and recall (H, R) of greedy matching of unit vectors, for all texts in `hyps` and `refs`.

    P[h, r] = sum over tokens i of h of w_i max over tokens j of r of <h_i, r_j>, weights scaled to sum 1 in each text;
    R with the sides exchanged; both in -1..1. nan for a text whose weights are all 0. Source: Zhang et al. 2020,
    BERTScore.
    """
    product = refs.vectors @ hyps.vectors.T  # (tokens of references, tokens of hypotheses)
    if product.device.type == "cpu":
        similar = product.numpy()
        for_hyps = np.maximum.reduceat(similar, _starts(refs.lengths), axis=0)
        for_refs = np.maximum.reduceat(np.ascontiguousarray(similar.T), _starts(hyps.lengths), axis=0)
    else:
        for_hyps = segment_max(product, refs.lengths).cpu().numpy()
        for_refs = segment_max(product.T.contiguous(), hyps.lengths).cpu().numpy()
    return _weighted(for_hyps, hyps).T, _weighted(for_refs, refs)


def segment_max(values: torch.Tensor, lengths: Ints) -> torch.Tensor:
    """Return (segments, n) the largest value in each segment of the rows of `values` (rows, n); `lengths` are the rows
    of each segment. This form is fast on a GPU."""
    import torch

    return torch.segment_reduce(values, "max", lengths=torch.from_numpy(lengths).to(values.device), axis=0)


def _weighted(best: npt.NDArray[np.float32], side: Side) -> Floats:
    """(rows, texts) the weighted mean over the tokens of each text."""
    starts = _starts(side.lengths)
    sums = np.add.reduceat(side.weights, starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Cosines of unit vectors in single precision may be a little above 1.
        return np.clip(np.add.reduceat(best * side.weights, starts, axis=1) / sums, -1.0, 1.0)


def mean_vectors(side: Side) -> Floats:
    """Return (texts, width) the mean of the tokens with weight in each text of a `side`; nan without any."""
    vectors = side.vectors.cpu().numpy().astype(np.float64)
    starts = _starts(side.lengths)
    sums = np.add.reduceat(vectors * side.weights[:, None], starts, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums / np.add.reduceat(side.weights, starts)[:, None]


def extreme_vectors(side: Side) -> Floats:
    """Return (texts, width) in each dimension the value furthest from zero among the tokens with weight in each text of
    a `side`.

    Of two equally distant values the positive one counts; nan without any token. Source: Forgues et al. 2014.
    """
    vectors = side.vectors.cpu().numpy().astype(np.float64)
    starts, inside = _starts(side.lengths), (side.weights > 0)[:, None]
    high = np.maximum.reduceat(np.where(inside, vectors, -np.inf), starts, axis=0)
    low = np.minimum.reduceat(np.where(inside, vectors, np.inf), starts, axis=0)
    extreme = np.where(high >= -low, high, low)
    return np.where(np.isfinite(high), extreme, np.nan)


def cosines(one: Floats, two: Floats) -> Floats:
    """(n, m) cosine of every row of `one` with every row of `two`; nan where a row is nan or zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        first = one / np.linalg.norm(one, axis=1, keepdims=True)
        second = two / np.linalg.norm(two, axis=1, keepdims=True)
    return np.clip(first @ second.T, -1.0, 1.0)


def _starts(lengths: Ints) -> Ints:
    return np.cumsum(lengths) - lengths
