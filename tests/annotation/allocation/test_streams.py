from __future__ import annotations

from collections import Counter

from annotation.allocation.streams import SPAN, coin, draw


def test_draw_is_a_function_of_its_labels():
    assert draw(13, "order", 1) == draw(13, "order", 1)
    assert draw(13, "order", 1) != draw(13, "order", 2)
    assert draw(1, "1") == draw("1", 1)  # labels are texts
    assert draw("a", "b") != draw("ab")


def test_draws_fill_the_span_evenly():
    tenths = Counter(draw("test", k) * 10 // SPAN for k in range(20_000))
    assert set(tenths) == set(range(10))
    # Binomial(20,000, 0.1): mean 2,000, SD 42; five SD on either side.
    assert all(abs(count - 2000) < 5 * 42 for count in tenths.values())


def test_coin_is_fair():
    heads = sum(coin("side", k) for k in range(20_000))
    assert abs(heads - 10_000) < 5 * 71
