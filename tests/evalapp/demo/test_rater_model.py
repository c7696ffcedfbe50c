from __future__ import annotations

import random
from statistics import mean, pstdev

from evalapp.demo.rater_model import Panel, Rater, make_raters


def test_raters_are_drawn_from_the_seed() -> None:
    assert make_raters(7) == make_raters(7) != make_raters(8)
    assert [rater.name for rater in make_raters(7)] == [f"sim-{n:02d}" for n in range(1, 11)]


def test_odd_raters_are_odd() -> None:
    raters = {rater.name: rater for rater in make_raters(7)}
    usual = [rater for name, rater in raters.items() if name < "sim-09"]
    assert raters["sim-09"].noise > max(rater.noise for rater in usual)
    assert raters["sim-10"].spread < min(rater.spread for rater in usual)


def test_rating_without_noise_follows_the_formula() -> None:
    # 3 + 0.4 + 1.5 * (4 - 3) = 4.9, rounded to 5; 3 + 0.4 + 1.5 * (1 - 3) = 0.4, clipped to 1.
    rater = Rater("r", bias=0.4, spread=1.5, noise=0.0, tie_width=0.3)
    assert rater.rate(4, random.Random(1)) == 5
    assert rater.rate(1, random.Random(1)) == 1


def test_noise_spreads_the_ratings() -> None:
    calm, careless = (Rater("r", 0, 1, noise, 0.3) for noise in (0.1, 1.5))
    rng = random.Random(3)
    assert pstdev(calm.rate(3, rng) for _ in range(400)) < 0.1
    assert pstdev(careless.rate(3, rng) for _ in range(400)) > 1
    assert abs(mean(careless.rate(3, rng) for _ in range(400)) - 3) < 0.25


def test_verdicts_without_noise() -> None:
    rater, rng = Rater("r", 0, 1, 0.0, 0.3), random.Random(1)
    assert rater.compare(4, 2, rng) == "a"
    assert rater.compare(2, 4, rng) == "b"
    assert rater.compare(3.1, 3, rng) == "tie"
    assert rater.compare(1.1, 1, rng) == "both_bad"
    assert rater.find_human(4, 4.5, rng) == "cannot_decide"
    assert rater.find_human(2, 4.5, rng) == "b"


def test_panel_keeps_the_load_even() -> None:
    panel = Panel(make_raters(7), random.Random(1))
    names = [rater.name for _ in range(50) for rater in panel.choose(3)]
    assert {names.count(name) for name in set(names)} == {15}
    assert len(set(names)) == 10
