"""Skill ratings of texts: each text is a player that always gives this text. No torch.

Explained in docs/explanation/evaluators/comparative.md#scores-of-single-texts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from evalapp.stats.ranking.glicko2 import TieRule
from evalapp.stats.ranking.glicko2_games import play_games
from scoring.ml.base import Partial
from scoring.ml.encodings import Ints
from scoring.ml.evaluators.comparative.verdicts import Floats

#: Compares the texts at two lists of places: the points of the first ones, and which pairs were truncated.
Judge = Callable[[Ints, Ints], tuple[Floats, npt.NDArray[np.bool_]]]


def rate_texts(order: Ints, n_games: int, seed: int, tie: TieRule, judge: Judge) -> Partial:
    """Return the Glicko-2 ratings of texts after `n_games` games between random ones, drawn by `seed`.

    `order` numbers the texts for the draws, so that the games need not depend on the order of rows. Every pair that
    meets is judged once; `tie` is the rule of draws."""
    n = len(order)
    if n < 2:
        reason = "there is no other text to play against"
        return Partial(np.full(n, np.nan), reasons=dict.fromkeys(range(n), reason))
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=n_games)
    second = (first + rng.integers(1, n, size=n_games)) % n
    low, high = np.minimum(first, second), np.maximum(first, second)
    keys, places = np.unique(low * n + high, return_inverse=True)
    scores, truncated = judge(order[keys // n], order[keys % n])
    ratings = play_games(n, low, high, scores[places.reshape(-1)], tie=tie)
    # A text counts as truncated if every pair with it was truncated; a short text is truncated only next to a long one.
    sides = np.stack([keys // n, keys % n])
    met = np.bincount(sides.reshape(-1), minlength=n)
    cut = (met > 0) & (np.bincount(sides[:, truncated].reshape(-1), minlength=n) == met)
    # Without any game the initial rating says nothing about a text.
    games = np.bincount(np.concatenate([low, high]), minlength=n)
    values = np.where(games > 0, ratings.rating, np.nan)
    never = f"none of {n_games} games came to it: take more plays"
    rows = np.argsort(order)
    return Partial(values[rows], cut[rows], reasons=dict.fromkeys(np.flatnonzero(games[rows] == 0).tolist(), never))
