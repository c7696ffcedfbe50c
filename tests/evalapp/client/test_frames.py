"""Rows from data frames and numpy, and one-line descriptions of large values (FAULTS F5)."""

from __future__ import annotations

import json
import subprocess
import sys
from operator import methodcaller

import numpy as np
import pandas as pd
import pytest

from evalapp.client.errors import InvalidArgument
from evalapp.client.evaluators import OnlineScores
from evalapp.client.json_lines import dump_line
from evalapp.client.leaderboards import Leaderboard
from evalapp.client.uploads import iterate_rows
from scoring.ml import load
from scoring.ml.base import Scores
from scoring.ml.types import Dataset, Item, Output


def test_numpy_numbers_and_missing_values():
    row = {
        "step": np.int64(100), "value": np.float32(0.5), "flag": np.bool_(True), "list": np.array([1, 2]),
        "nan": float("nan"), "na": pd.NA, "nat": pd.NaT, "text": "a\u00e9", "meta": {"x": [np.float64("nan"), None]},
    }  # fmt: skip
    assert json.loads(dump_line(row, 1)) == {
        "step": 100, "value": 0.5, "flag": True, "list": [1, 2], "nan": None, "na": None, "nat": None, "text": "aé",
        "meta": {"x": [None, None]},
    }  # fmt: skip
    assert json.loads(dump_line({"value": np.float32("nan")}, 1)) == {"value": None}


@pytest.mark.parametrize("value", [float("inf"), np.float64("-inf"), object(), {1, 2}, "\ud800"])
def test_values_without_json_form_are_refused(value):
    with pytest.raises(InvalidArgument, match=r"row 7 .*JSON"):
        dump_line({"value": value}, 7)


def test_frame_rows_come_in_batches_without_the_index():
    frame = pd.DataFrame({"item": [7, 8], "system": ["a", None], "step": [100.0, np.nan]}, index=["x", "y"])
    rows = [json.loads(dump_line(row, k)) for k, row in enumerate(iterate_rows(frame), 1)]
    assert rows == [{"item": 7, "system": "a", "step": 100.0}, {"item": 8, "system": None, "step": None}]
    long = pd.DataFrame({"id": range(25_000)})
    assert [row["id"] for row in iterate_rows(long)] == list(range(25_000))


def test_client_needs_neither_pandas_nor_numpy():
    code = "import sys, evalapp.client; sys.exit(bool({'numpy', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_scores_of_the_library_in_notebooks(capsys):
    metric = load("token-f1")
    metric.score(["a <b>", "", "c"], ["a d", "e", "c"], progress=True)
    html = methodcaller("_repr_html_")(metric.details)
    assert "<th>score</th>" in html
    assert "<td>0.5</td>" in html
    frame = metric.details.to_pandas()
    assert frame["score"].tolist() == [0.5, 0.0, 1.0]
    assert "2/2" in capsys.readouterr().err


def test_descriptions_are_one_short_line():
    items = tuple(Item(f"i{k}", context=("long " * 100,)) for k in range(500))
    outputs = tuple(Output(item.id, "s", "text " * 100) for item in items)
    dataset = Dataset("mine", items=items, outputs=outputs)
    assert repr(dataset) == "<Dataset 'mine': 500 items, 500 outputs>"
    assert repr(Dataset("empty")) == "<Dataset 'empty': no rows>"
    many = tuple(["too long"] * 5000)
    for large in (
        Scores(np.zeros(5000), many, "chrf|v:1"),
        Leaderboard({"rows": [{"system": "s", "value": 1}] * 5000, "signature": "method:mean"}),
        OnlineScores((0.5,) * 5000, ("chrf|v:1",), many),
    ):
        assert len(repr(large)) < 400, type(large)
