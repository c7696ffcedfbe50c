"""Glicko-2: Glickman's worked example, the two tie rules, arrays against single games, the glicko2 package."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalapp.stats.ranking.glicko2 import Player, play, solve_log_variance, update
from evalapp.stats.ranking.glicko2_games import find_levels, play_games, solve_log_variances


def near(player: Player, rating: float, deviation: float, volatility: float | None = None) -> None:
    assert player.rating == pytest.approx(rating, abs=6e-5)
    assert player.deviation == pytest.approx(deviation, abs=6e-5)
    if volatility is not None:
        assert player.volatility == pytest.approx(volatility, abs=6e-8)


def test_glickmans_example():
    """Glickman 2012: 1464.06 and 151.52 with his rounded intermediate figures; unrounded in
    docs/explanation/statistics/comparisons.md#worked-numbers."""
    games = [(Player(1400, 30), 1.0), (Player(1550, 100), 0.0), (Player(1700, 300), 0.0)]
    near(update(Player(1500, 200), games), 1464.0507, 151.5165, 0.0599960)


def test_two_new_players():
    """The same steps, calculated independently of the code."""
    winner, loser = play(Player(), Player(), 1.0)
    near(winner, 1662.3109, 290.3190)
    near(loser, 1337.6891, 290.3190)


@pytest.mark.parametrize(("tie", "low", "high"), [("half", 1409.0745, 1594.8703), ("paper", 1402.6797, 1598.4742)])
def test_draw_by_both_rules(tie, low, high):
    """Calculated independently of the code: 1409.07 / 1594.87 and 1402.68 / 1598.47."""
    a, b = play(Player(1400, 80), Player(1600, 60), 0.5, tie=tie)
    assert a.rating == pytest.approx(low, abs=6e-5)
    assert b.rating == pytest.approx(high, abs=6e-5)


def test_draw_rule_of_the_paper_shares_win_and_loss():
    a, b = Player(1400, 80), Player(1600, 60)
    won, lost = play(a, b, 1.0)
    one, two = play(a, b, 0.5, tie="paper", share=0.25)
    assert one.rating - a.rating == pytest.approx(0.25 * (won.rating - a.rating))
    assert b.rating - two.rating == pytest.approx(0.25 * (b.rating - lost.rating))
    assert (one.volatility, two.volatility) == (a.volatility, b.volatility)
    # 1 / phi'^2 = 1 / (phi^2 + sigma^2) + 1 / v does not depend on the result.
    assert one.deviation == pytest.approx(play(a, b, 0.5)[0].deviation, abs=1e-3)
    equal = play(Player(1500, 80), Player(1500, 60), 0.5, tie="paper")
    assert (equal[0].rating, equal[1].rating) == (1500.0, 1500.0)
    assert equal[0].deviation < 80


def test_inactive_player_stays_as_uncertain_as_before():
    found = play_games(3, [0] * 20, [1] * 20, [1] * 20)
    assert (found.rating[2], found.deviation[2], found.volatility[2], found.games[2]) == (1500, 350, 0.06, 0)
    assert found.games.tolist() == [20, 20, 0]
    assert update(Player(1600, 90), []) == Player(1600, 90)


def sequence(n_players: int, n_games: int, seed: int):
    rng = np.random.default_rng(seed)
    one = rng.integers(n_players, size=n_games)
    two = (one + rng.integers(1, n_players, size=n_games)) % n_players
    return one, two, rng.choice([0.0, 0.5, 1.0], n_games)


@pytest.mark.parametrize("tie", ["half", "paper"])
def test_parallel_games_equal_sequential_ones(tie):
    """With 200 players the levels are wide, so arrays are used; the expected value plays the games one by one."""
    one, two, score = sequence(200, 2000, 5)
    levels = find_levels(one[None], two[None], 200)[0]
    assert len(one) / levels.max() > 12
    found = play_games(200, one, two, score, tie=tie)
    players = [Player() for _ in range(200)]
    for i, j, s in zip(one, two, score, strict=True):
        players[i], players[j] = play(players[i], players[j], s, tie=tie)
    np.testing.assert_allclose(found.rating, [p.rating for p in players], rtol=1e-9)
    np.testing.assert_allclose(found.deviation, [p.deviation for p in players], rtol=1e-9)
    np.testing.assert_allclose(found.volatility, [p.volatility for p in players], rtol=1e-9)


def test_game_may_count_any_value_between_loss_and_win():
    """Glickman 2012 by hand for s = .37 of 1400/80 against 1600/60; it is not a draw under either rule."""
    a, b, s = Player(1400, 80), Player(1600, 60), 0.37
    for tie in ("half", "paper"):
        found = play(a, b, s, tie=tie)
        for me, you, score, after in ((a, b, s, found[0]), (b, a, 1 - s, found[1])):
            mu, phi = (me.rating - 1500) / 173.7178, me.deviation / 173.7178
            mu_j, phi_j = (you.rating - 1500) / 173.7178, you.deviation / 173.7178
            g = 1 / math.sqrt(1 + 3 * phi_j**2 / math.pi**2)
            e = 1 / (1 + math.exp(-g * (mu - mu_j)))
            v = 1 / (g**2 * e * (1 - e))
            # The volatility is the root of f(x) = 0, found here by bisection.
            delta2, start = (v * g * (score - e)) ** 2, math.log(0.06**2)
            low, high = start - 5, start + 5
            for _ in range(200):
                x = (low + high) / 2
                grown = math.exp(x)
                f = grown * (delta2 - phi**2 - v - grown) / (2 * (phi**2 + v + grown) ** 2) - (x - start) / 0.25
                low, high = (x, high) if f > 0 else (low, x)
            variance = 1 / (1 / (phi**2 + math.exp(x)) + 1 / v)
            assert after.rating == pytest.approx(173.7178 * (mu + variance * g * (score - e)) + 1500, rel=1e-9)
            assert after.deviation == pytest.approx(173.7178 * math.sqrt(variance), rel=1e-9)
            assert after.volatility == pytest.approx(math.exp(x / 2), rel=1e-6)
    lost, drawn = play(a, b, 0.0)[0], play(a, b, 0.5)[0]
    assert lost.rating < play(a, b, s)[0].rating < drawn.rating


def test_parallel_games_equal_sequential_ones_for_any_score():
    """Wide levels, where arrays are used, and few players, where games are played one by one."""
    for n in (200, 3):
        one, two, _ = sequence(n, 2000, 6)
        score = np.random.default_rng(8).random(2000)
        score[:200] = np.random.default_rng(9).choice([0.0, 0.5, 1.0], 200)
        found = play_games(n, one, two, score)
        players = [Player() for _ in range(n)]
        for i, j, s in zip(one, two, score.tolist(), strict=True):
            players[i], players[j] = play(players[i], players[j], s)
        np.testing.assert_allclose(found.rating, [p.rating for p in players], rtol=1e-9)
        np.testing.assert_allclose(found.deviation, [p.deviation for p in players], rtol=1e-9)
        np.testing.assert_allclose(found.volatility, [p.volatility for p in players], rtol=1e-9)


@pytest.mark.parametrize("tau", [0.3, 0.5, 1.2])
def test_iteration_in_arrays_converges_like_single_games(tau):
    """Upsets of every size, certain and uncertain players: zero, one, two and many steps; both choices of B, k above
    1."""
    rng = np.random.default_rng(3)
    n = 4000
    base = np.exp(rng.uniform(-4, 6, n))
    delta2 = base * np.exp(rng.uniform(-9, 7, n))
    variance = np.exp(rng.uniform(-9, 1, n))
    a = np.log(variance)
    found, grown = np.empty(n), np.empty(n)
    solve_log_variances(delta2, base, a, variance, tau, found, grown)
    rows = zip(*(column.tolist() for column in (delta2, base, a, variance)), strict=True)
    alone = [solve_log_variance(*row, tau) for row in rows]
    difference = np.abs(found - [value for value, _ in alone])
    # If f is 0 up to rounding, the iteration may end one step earlier or later, within its tolerance of 1e-6.
    assert difference.max() < 1e-6
    assert np.quantile(difference, 0.99) < 1e-12
    np.testing.assert_allclose(grown, np.exp(found), rtol=1e-12)


def test_upset_between_certain_players_takes_the_logarithm_branch():
    """delta^2 > phi^2 + v: the volatility rises; both ways of computing agree."""
    a, b = Player(1200, 40), Player(2300, 40)
    won = play(a, b, 1.0)[0]
    assert won.volatility > 0.06
    one = np.repeat(np.arange(0, 60, 2), 1)
    found = play_games(60, one, one + 1, np.ones(30))
    assert found.rating[0] == pytest.approx(play(Player(), Player(), 1.0)[0].rating, abs=1e-9)


def test_games_of_one_level_share_no_player():
    one, two, _ = sequence(9, 300, 2)
    levels = find_levels(np.stack([one, one]), np.stack([two, two]), 9)
    np.testing.assert_array_equal(levels[0], levels[1])
    np.testing.assert_array_equal(levels[:1], find_levels(one[None], two[None], 9))
    for level in range(1, levels.max() + 1):
        here = np.concatenate([one[levels[0] == level], two[levels[0] == level]])
        assert len(set(here.tolist())) == len(here)


def test_nobody_plays_against_itself():
    with pytest.raises(ValueError, match="against itself"):
        play_games(2, [1], [1], [1])


def test_equals_the_glicko2_package_with_its_formula_corrected():
    """glicko2 2.1.0 uses the player's mu where step 5 of Glickman 2012 has its phi; with phi the results agree."""
    glicko2 = pytest.importorskip("glicko2")

    class Mended(glicko2.Player):
        def _f(self, x, delta, v, a):
            phi2, e = (self.rd / 173.7178) ** 2, math.exp(x)
            return e * (delta**2 - phi2 - v - e) / (2 * (phi2 + v + e) ** 2) - (x - a) / self._tau**2

    one, two, score = sequence(8, 400, 3)
    players = [Mended() for _ in range(8)]
    for i, j, s in zip(one.tolist(), two.tolist(), score.tolist(), strict=True):
        a, b = (players[i].rating, players[i].rd), (players[j].rating, players[j].rd)
        players[i].update_player([b[0]], [b[1]], [s])
        players[j].update_player([a[0]], [a[1]], [1 - s])
    found = play_games(8, one, two, score)
    np.testing.assert_allclose(found.rating, [p.rating for p in players], rtol=1e-9)
    np.testing.assert_allclose(found.deviation, [p.rd for p in players], rtol=1e-9)
    as_it_is = glicko2.Player(1500, 200)
    as_it_is.update_player([1400, 1550, 1700], [30, 100, 300], [1, 0, 0])
    assert as_it_is.vol != pytest.approx(0.0599960, abs=1e-9)


@pytest.mark.parametrize("tie", ["half", "paper"])
@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_players_far_apart(tie, score):
    """About 6,000 points apart, 1 - E is 0 in double precision."""
    strong, weak = Player(9000, 30), Player(1500, 30)
    for a, b in (play(strong, weak, score, tie=tie), play(weak, strong, score, tie=tie)):
        assert all(math.isfinite(x) for p in (a, b) for x in (p.rating, p.deviation, p.volatility))
    assert math.isfinite(update(Player(1e6, 30), [(weak, score)]).rating)
    # The certain win changes almost nothing.
    assert play(strong, weak, 1.0)[0].rating == pytest.approx(9000, abs=1e-6)
