"""What notebooks show and take: DataFrames both ways, short descriptions, progress bars."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from html.parser import HTMLParser
from operator import methodcaller

import numpy as np
import pandas as pd
import pytest
from django.urls import reverse
from django.utils import timezone

from evalapp.accounts.models import Project
from evalapp.client import UploadFaulty, WrongOrder
from evalapp.client.leaderboards import Leaderboard
from evalapp.common.models import Run
from evalapp.hub_access import allow_access
from tests.scoring.ml.hub_server import serve_hub
from tests.taking import WHOLE, as_bytes, written

pytestmark = pytest.mark.django_db


@pytest.fixture
def filled(rita, tmp_path):
    for name, rows in WHOLE.items():
        (tmp_path / name).write_bytes(as_bytes(rows))
    project = rita.project("alpha")
    project.upload(*(tmp_path / name for name in WHOLE))
    return project


class Table(HTMLParser):
    """The cells of a table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.is_cell = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.is_cell = tag in ("td", "th")
        if self.is_cell:
            self.cells.append("")

    def handle_data(self, data):
        if self.is_cell:
            self.cells[-1] += data


def show(value) -> list[str]:
    """The cells that a notebook shows of a value."""
    return Table(methodcaller("_repr_html_")(value)).cells


def test_frames_of_a_project_make_an_equal_project(filled, connect, cast, tmp_path):
    frames = filled.to_pandas()
    assert {"items", "outputs", "ratings", "comparisons"} <= set(frames)
    twin = connect(cast.researcher, "read", "write", "manage").create_project("twin")
    upload = twin.from_pandas(frames, dataset=WHOLE["dataset.json"])
    assert upload.counts["ratings"]["added"] == 2
    assert written(Project.objects.get(slug="twin"), tmp_path / "a") == written(cast.project, tmp_path / "b")


def test_exports_behind_frames_are_deleted(filled, settings):
    before = set(settings.EXPORTS_DIR.glob("*"))
    filled.to_pandas()
    assert list(filled.exports()) == []
    assert set(settings.EXPORTS_DIR.glob("*")) == before
    lost = filled.start("export", temporary=True).wait()
    assert (settings.EXPORTS_DIR / str(lost.id)).is_dir()
    Run.objects.filter(pk=lost.id).update(finished_at=timezone.now() - timedelta(days=2))
    filled.export("csv")
    assert not (settings.EXPORTS_DIR / str(lost.id)).exists()


def test_missing_values_are_named_where_a_value_is_needed(filled):
    rows = pd.DataFrame(
        {"item": ["i1", "i1"], "system": ["s", "t"], "rater": "x", "aspect": "quality", "step": [np.nan, np.nan],
         "value": [np.float64(3), np.nan]}
    )  # fmt: skip
    with pytest.raises(UploadFaulty) as error:
        filled.upload_rows("ratings", rows)
    assert [(fault.line, fault.field) for fault in error.value.faults] == [(2, "value")]
    assert filled.upload_rows("ratings", rows[:1]).counts["ratings"]["added"] == 1


def test_descriptions_are_short_and_escaped(filled, rita):
    run = filled.score("length").wait()
    export = filled.export()
    for one in (filled, run, export, filled.uploads().first()):
        assert len(repr(one)) < 200
        assert "succeeded" in repr(one) or one in (filled, filled.uploads().first())
        assert show(one)[0] == type(one).__name__
    assert show(filled.outputs())[:4] == ["id", "item", "system", "step"]
    assert "Hello." in show(filled.outputs())
    board = filled.leaderboard("systems", aspect="quality", method="mean")
    assert show(board)[:2] == ["rank", "system"]
    wild = Leaderboard({"rows": [{"rank": k, "system": "<script>", "value": math.pi} for k in range(30)]})
    assert show(wild)[:7] == ["rank", "system", "value", "0", "<script>", "3.142", "1"]
    assert len(show(wild)) == 3 + 3 * 20


def test_true_shows_a_bar_for_each_phase(filled, capsys):
    filled.score("length").wait(progress=True)
    filled.to_pandas(progress=True)
    shown = capsys.readouterr().err
    assert re.search(r"downloading outputs.jsonl: 100%", shown)


def test_leaderboard_as_latex_equals_the_file_of_its_page(filled, client, cast):
    board = filled.leaderboard("systems", aspect="quality", method="mean")
    client.force_login(cast.researcher)
    address = reverse("scoring:systems-file", args=["alpha", "tex"])
    page = client.get(address, {"aspect": "quality", "method": "mean"})
    assert board.to_latex() == page.content.decode()
    assert r"\toprule" in board.to_latex()
    with pytest.raises(WrongOrder):
        Leaderboard(board.table).to_latex()


def test_export_is_sent_to_a_hub(filled, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_test")
    with serve_hub() as hub, allow_access():
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
        assert filled.export().push_to_hub("my-lab/alpha", private=False) == f"{hub.url}/datasets/my-lab/alpha"
        assert hub.private == {"my-lab/alpha": False}
        assert {"README.md", "items.jsonl", "dataset.json"} <= set(hub.files["my-lab/alpha"])


def test_curves_of_checkpoints(filled):
    steps = [
        {"item": item, "system": "m", "step": step, "text": "x" * step} for item in ("i1", "i2") for step in (1, 9)
    ]
    filled.upload_rows("outputs", steps)
    rated = [{**row, "rater": "r", "aspect": "quality", "value": 1 + row["step"] % 4} for row in steps]
    filled.upload_rows("ratings", [{key: row[key] for key in row if key != "text"} for row in rated])
    filled.score("length").wait()
    curves = filled.checkpoint_curves("length", aspect="quality").to_pandas()
    assert curves[["by", "system", "step"]].values.tolist() == [
        ["people", "m", 1], ["people", "m", 9], ["length", "m", 1], ["length", "m", 9],
    ]  # fmt: skip
    assert curves["value"].tolist() == pytest.approx([2, 2, 1, 1])
