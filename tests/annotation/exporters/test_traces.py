"""The record of how a judgement was made, as exported."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from annotation.exporters.traces import _judgement


@pytest.mark.parametrize(("swapped", "verdict"), [(False, "a"), (True, "b")])
def test_answer_names_systems_in_row_order(swapped, verdict):
    """If the sides were swapped on screen, choosing the first text means `system_b`, in the export as in the API."""
    first, second = (SimpleNamespace(system=SimpleNamespace(name=name), step=None) for name in ("s", "t"))
    unit = SimpleNamespace(
        pk=7, kind="normal", item=SimpleNamespace(key="i"), output_a=first, output_b=second, reference=None
    )
    held = SimpleNamespace(unit=unit, repeat_number=0, order_number=3, side_swapped=swapped, propensity=None)
    found = SimpleNamespace(assignment=held, version=1, extra=False, passed=None, answer={"quality": "a"})
    row = _judgement(found, SimpleNamespace(slug="c"), "r", {})
    assert (row["system"], row["system_b"], row["swapped"]) == ("s", "t", swapped)
    assert row["answer"] == {"quality": verdict}
