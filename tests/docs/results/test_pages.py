"""Committed pages are those that the runner writes from the rows in `tables/`; no figure is written by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"
STUDIES = sorted(path.stem for path in (RESULTS / "studies").glob("*.toml"))


@pytest.fixture(scope="module")
def page(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("page")


@pytest.fixture(scope="module")
def study(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("study")


@pytest.mark.parametrize("name", STUDIES)
def test_committed_pages_are_those_of_the_runner(page: ModuleType, study: ModuleType, name: str) -> None:
    for path, text in page.write_files(study.read_study(name)).items():
        committed = (RESULTS / path).read_text(encoding="utf-8")
        assert committed == text, f"{path} differs: python docs/results/run.py --pages"


def test_the_list_of_results_has_every_question(page: ModuleType, study: ModuleType) -> None:
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert text == page.write_readme(study.read_studies())
    for name in STUDIES:
        for question in study.read_study(name).questions:
            assert f"({name}.md#{page.anchor(question.title)})" in text
            assert len(question.short.split()) <= 15, question.short


def test_no_other_page_or_figure_is_left(page: ModuleType, study: ModuleType) -> None:
    written = {"README.md"} | {path for name in STUDIES for path in page.write_files(study.read_study(name))}
    left = {str(path.relative_to(RESULTS)) for pattern in ("*.md", "figures/*") for path in RESULTS.glob(pattern)}
    assert left == written
    assert {path.stem for path in (RESULTS / "tables").glob("*")} == set(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_figures_in_an_answer_come_from_its_table(page: ModuleType, study: ModuleType, name: str) -> None:
    for question in study.read_study(name).questions:
        by_hand = page.PLACE.sub("", question.answer)
        assert not re.search(r"\d\.\d", by_hand), question.answer
        assert not re.search(r"\d\.\d", question.short)
        assert page.PLACE.search(question.answer), "an answer shows a figure"


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_complete(module: Callable[[str], ModuleType], study: ModuleType, name: str) -> None:
    one = study.read_study(name)
    experiment = module(f"experiments.{one.experiment}")
    assert callable(experiment.compute)
    assert callable(experiment.tabulate)
    assert one.caveats
    for question in one.questions:
        rows = [row for row in one.tables if row["table"] == question.id]
        assert len(rows) > 1, question.id
        label, *columns = question.columns
        assert all(row[label] for row in rows)
        empty = [column for column in columns if all(row.get(column) is None for row in rows)]
        assert not empty, f"{question.id} has empty columns"


@pytest.mark.parametrize("name", STUDIES)
def test_figures_are_valid_svg_with_every_row(page: ModuleType, study: ModuleType, name: str) -> None:
    one = study.read_study(name)
    for question in one.questions:
        root = ElementTree.fromstring(page.draw_figure(question, one.tables))
        texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
        for label in question.figure.get("rows", ()):
            assert label in texts
        width = float(root.attrib["viewBox"].split()[2])
        circles = list(root.iter("{http://www.w3.org/2000/svg}circle"))
        assert circles
        assert all(0 <= float(node.attrib["cx"]) <= width for node in circles)


def test_figures_as_text(page: ModuleType) -> None:
    cells = [None, 3, 1234, 0.1234, -0.001, 11000.4, "a/b", {"value": None}]
    assert [page.estimate(cell, 2) for cell in cells] == ["-", "3", "1,234", "0.12", "0.00", "11,000", "a/b", "-"]
    assert page.estimate({"value": 0.5, "low": 0.4, "high": 0.6}, 3) == "0.500 [0.400, 0.600]"
    assert page.estimate({"value": 2.0, "sd": 1.0, "defined": 3, "of": 5}, 1) == "2.0 ± 1.0 (3 of 5)"


def test_figures_over_seeds(study: ModuleType) -> None:
    # Mean 2, SD 1 (n - 1) of 1, 2, 3.
    assert study.over_seeds([1.0, 2.0, 3.0, None]) == {"value": 2.0, "sd": 1.0, "defined": 3, "of": 4}
    assert study.over_seeds([0.25]) == {"value": 0.25}
    assert study.over_seeds([None, float("nan")]) is None
    found = study.t_interval([1.0, 2.0, 3.0])
    assert (found["low"], found["high"]) == pytest.approx(stats.t.interval(0.95, 2, loc=2.0, scale=3**-0.5), abs=1e-7)
    assert study.t_interval([1.0, 3.0]) == {"value": 2.0}  # of two values an interval says nothing


def test_axes_cover_their_values_with_round_ticks(page: ModuleType) -> None:
    for low, high in ((-0.4, 0.7), (0.906, 0.993), (100.0, 30_000.0), (0.5, 0.5)):
        scale = page.Scale.around([low, high])
        assert scale.low <= low <= high <= scale.high
        assert 2 <= len(scale.ticks) <= 12
        steps = np.diff(scale.ticks)
        assert steps == pytest.approx(np.full(len(steps), steps[0]))
        assert scale.x(scale.low) == page.MARGIN
