"""Adding one text incrementally, compared with the full forward pass."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from scoring.ml.evaluators.ream import incremental
from scoring.ml.evaluators.ream.incremental import GrownSet
from scoring.ml.evaluators.ream.network import ReamNetwork

KINDS = ("gat", "gatv2")


def network(kind: str, width: int = 24, heads: int = 3) -> ReamNetwork:
    torch.manual_seed(2)
    found = ReamNetwork.from_source(None, {"width": width, "attention_kind": kind, "heads": heads}).eval()
    assert isinstance(found, ReamNetwork)
    torch.nn.init.normal_(found.attention.bias)
    return found


def whole(net: ReamNetwork, x: torch.Tensor) -> float:
    with torch.inference_mode():
        return float(net(x, [torch.arange(len(x))[None]])[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_set_and_each_added_text_equal_the_full_forward_pass(kind, n, monkeypatch):
    monkeypatch.setattr(incremental, "LARGEST", 24 * 50)  # several chunks
    net, draw = network(kind), torch.Generator().manual_seed(n)
    x, more = torch.randn(n, 24, generator=draw) * 2, torch.randn(5, 24, generator=draw) * 2
    known = GrownSet.of(net, x)
    assert known.value() == pytest.approx(whole(net, x), abs=2e-6)
    expected = [whole(net, torch.cat([x, each[None]])) for each in more]
    np.testing.assert_allclose(known.with_each(more).numpy(), expected, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_text_is_added_to_the_empty_set(kind):
    net = network(kind)
    x = torch.randn(3, 24, generator=torch.Generator().manual_seed(4)) * 3
    known = GrownSet.of(net, x[:0])
    assert math.isnan(known.value())
    expected = [whole(net, each[None]) for each in x]
    np.testing.assert_allclose(known.with_each(x).numpy(), expected, atol=2e-6)
