"""Rows as DataFrames."""

from __future__ import annotations

from evalapp.client.rows import to_frame


def test_integers_stay_exact_with_missing_values():
    """2^53 + 1 is not representable as a float."""
    rows = [
        {"id": 1, "step": None, "judgement": 2**53 + 1, "value": 3},
        {"id": 2, "step": 3, "judgement": 7, "value": None},
        {"id": 3, "judgement": None},
    ]
    frame = to_frame(rows)
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds == {"id": "int64", "step": "Int64", "judgement": "Int64", "value": "float64"}
    assert frame["step"].isna().tolist() == [True, False, True]
    assert (frame["step"][1], frame["judgement"][0], frame["judgement"][1]) == (3, 2**53 + 1, 7)
    assert to_frame([{"step": None}, {"step": None}])["step"].tolist() == [None, None]
    assert to_frame([{"step": 1.5}, {"step": None}])["step"][0] == 1.5
    assert to_frame([]).empty
