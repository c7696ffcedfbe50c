"""Principal components, the scale of the first scores, and both matrices of ADEM in closed form. numpy only."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
#: Weights of the ridge tried, as shares of the mean square of the features.
GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


class Components(NamedTuple):
    """Components of contexts, references and replies, (n, size) each."""

    c: Floats
    r: Floats
    y: Floats

    def take(self, rows: npt.NDArray[np.intp]) -> Components:
        """The components of the rows."""
        return Components(self.c[rows], self.r[rows], self.y[rows])


def principal_axes(vectors: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the mean (width,) and the `n` axes (width, n) of largest variance of `vectors` (texts, width), each with
    its largest entry positive."""
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    _, axes = np.linalg.eigh(centred.T @ centred)
    chosen = axes[:, ::-1][:, :n]
    signs = np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])])
    return mean, chosen * np.where(signs == 0, 1.0, signs)


def first_scale(products: Floats, low: float, high: float) -> tuple[float, float]:
    """alpha and beta for which (products - alpha) / beta = middle + (high - low) (x - mean) / range of x.

    With a scale of 1 to 5: 3 + 4 (x - mean) / range, as Lowe et al. start. Equal products keep beta 1.
    """
    spread = float(products.max() - products.min())
    beta = spread / (high - low) if spread > 0 and high > low else 1.0
    return float(products.mean()) - beta * (low + high) / 2, beta


def kernel(a: Components, b: Components) -> Floats:
    """Return (n, m) the inner products of the features [c y', r y'] of `a` and `b`, without computing the features."""
    return np.asarray((a.c @ b.c.T + a.r @ b.r.T) * (a.y @ b.y.T))


def features(parts: Components) -> Floats:
    """Return (n, 2 size^2) the products of every pair of components in `parts`: context with reply, reference with
    reply."""
    n = len(parts.y)
    pairs = [np.einsum("ni,nj->nij", side, parts.y).reshape(n, -1) for side in (parts.c, parts.r)]
    return np.concatenate(pairs, axis=1)


def solve(parts: Components, targets: Floats, weight: float) -> Floats:
    """Return w (2 size^2,) that minimises |F w - targets|^2 + weight * mean(|f|^2) * |w|^2 over the features F of
    `parts`.

    Solved in the smaller of the two spaces.
    """
    n, size = len(targets), parts.y.shape[1]
    diagonal = ((parts.c**2).sum(axis=1) + (parts.r**2).sum(axis=1)) * (parts.y**2).sum(axis=1)
    ridge = weight * float(diagonal.mean()) + 1e-12
    f = features(parts)
    if n <= 2 * size**2:
        inner = kernel(parts, parts)
        inner[np.diag_indices(n)] += ridge
        return np.asarray(f.T @ np.linalg.solve(inner, targets))
    inner = f.T @ f
    inner[np.diag_indices(len(inner))] += ridge
    return np.asarray(np.linalg.solve(inner, f.T @ targets))
