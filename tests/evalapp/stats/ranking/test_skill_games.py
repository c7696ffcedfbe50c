"""The games that Glicko-2 uses: the end of a window, and the draw of a pair."""

from __future__ import annotations

import numpy as np
import pytest

from evalapp.stats.ranking.skill import WINDOW, VerdictTable, _Stream, rank_by_games


def test_window_ends_when_every_player_has_played_fifty_games():
    """Two systems play every game: the order is recorded after 50 games and, unchanged, after 100."""
    always = VerdictTable.of(["x", "y"], [0], [1], [1])
    found = rank_by_games(always, seeds=3)
    assert (found.converged, found.games) == (1.0, 2 * WINDOW)
    assert [row.games for row in found.systems] == [2 * WINDOW, 2 * WINDOW]


@pytest.mark.parametrize("windows", [1, 3])
def test_window_of_several_ends_with_the_last_player_at_fifty(windows):
    pairs = [(0, 1), (0, 2), (1, 2), (0, 3)]
    table = VerdictTable.of(list("wxyz"), [a for a, _ in pairs], [b for _, b in pairs], [1, 0, -1, 1])
    stream = _Stream(table, np.random.default_rng(4), 10**6, fixed=False)
    for _ in range(4):
        one, two, score, sizes = stream.take(windows)
        assert len(one) == len(two) == len(score) == sum(sizes)
        assert len(sizes) == windows
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            games = np.stack([one, two], axis=1)[end - size : end]
            assert np.bincount(games.ravel(), minlength=4).min() == WINDOW
            assert np.bincount(games[:-1].ravel(), minlength=4).min() == WINDOW - 1


def test_every_pair_is_equally_likely_whatever_its_verdicts():
    """x and y have one verdict, y and z have 999: drawn by verdict, x would play 2 games of 2,000."""
    table = VerdictTable.of(["x", "y", "z"], [0] + [1] * 999, [1] + [2] * 999, [1] * 1000)
    found = rank_by_games(table, seeds=4, fixed_games=2000)
    games = {row.system: row.games for row in found.systems}
    # Each of 8,000 games involves x with a probability of 1/2: 4,000 +- 45 of all, 1,000 +- 11 on average.
    assert games["x"] == pytest.approx(1000, abs=60)
    assert games["z"] == pytest.approx(1000, abs=60)
    assert games["y"] == 2000


def test_every_verdict_of_a_pair_is_equally_likely():
    """One of four verdicts is a loss, so a quarter of the games are."""
    stream = _Stream(VerdictTable.of(["x", "y"], [0] * 4, [1] * 4, [1, 1, -1, 0]), np.random.default_rng(1), 8000, True)
    *_, score, _ = stream.take(80)
    assert len(score) == 8000
    # +- 39 games of 2,000 lost and as many drawn; 4,000 won.
    assert [int((score == value).sum()) for value in (0.0, 0.5, 1.0)] == pytest.approx([2000, 2000, 4000], abs=200)
