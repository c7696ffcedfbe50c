"""The shape of every figure: value, interval, n, reason."""

from __future__ import annotations

import json
import math
from io import StringIO
from types import SimpleNamespace

import pytest

from evalapp.stats.core.estimate import Estimate


def test_defined_estimate_has_no_reason():
    estimate = Estimate(0.5, 0.4, 0.6, 10)
    assert estimate.is_defined
    assert estimate.has_interval
    assert estimate.as_dict() == {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10, "note": ""}


def test_undefined_estimate_is_nan_with_a_reason_and_none_in_json():
    estimate = Estimate.undefined("fewer than 3 pairs", 2)
    assert math.isnan(estimate.value)
    assert not estimate.is_defined
    assert not estimate.has_interval
    plain = {"value": None, "low": None, "high": None, "n": 2, "note": "fewer than 3 pairs"}
    assert json.loads(json.dumps(estimate.as_dict(), allow_nan=False)) == plain


def test_undefined_estimate_without_a_reason_is_refused():
    with pytest.raises(ValueError, match="reason"):
        Estimate.undefined("")


def test_notes_are_joined():
    assert Estimate.point(1.0, 3, "one").with_note("two").note == "one; two"
    assert Estimate.point(1.0, 3).with_note("two").note == "two"


def test_notebooks_show_value_interval_and_number():
    """IPython shows `_repr_html_` of a result, and `_repr_pretty_` of those in lists and dictionaries."""
    estimate = Estimate(0.123456, 0.1, 0.2, 1200, "few <groups>")
    assert str(estimate) == "0.1235 [0.1, 0.2], n = 1,200 (few <groups>)"
    assert estimate._repr_html_() == "<span>0.1235 [0.1, 0.2], n = 1,200 (few &lt;groups&gt;)</span>"
    shown = StringIO()
    estimate._repr_pretty_(SimpleNamespace(text=shown.write), False)
    assert shown.getvalue() == str(estimate)
    assert str(Estimate.point(2.0, 3)) == "2, n = 3"
    assert str(Estimate.undefined("no pairs")) == "undefined, n = 0 (no pairs)"
