"""Further tables of evaluators by page, file, plot, API and command."""

from __future__ import annotations

import io
import json
import tracemalloc

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.models import Item, Rating
from scoring.boards.render.cells import list_remarks
from scoring.models import Leaderboard, Score
from scoring.selectors import item_keys as keys
from scoring.selectors.item_keys import item_keys
from tests.pages import read_page

pytestmark = pytest.mark.django_db


def place(name, *rest):
    return reverse(f"scoring:{name}", args=["alpha", *rest])


def command(*words):
    out = io.StringIO()
    call_command("meta", "alpha", *words, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def parted(scored):
    for number, item in enumerate(Item.objects.filter(project=scored.project).order_by("key")):
        item.meta = {"topic": "food" if number < 4 else "travel", "number": number, "same": 1}
        item.save()
    return scored


def test_slices_of_items(parted, client):
    client.force_login(parted.viewer)
    assert item_keys(parted.project) == ["number", "topic"]
    shown = read_page(client.get(place("evaluation-board", "slices") + "?key=topic&intervals=1"))
    assert "food" in shown
    assert "unshrunk" in shown
    unknown = client.get(place("evaluation-board", "slices") + "?key=nothing")
    assert "topic" in read_page(unknown)
    assert not unknown.context["table"]
    table = command("--slices", "topic")
    assert [part["name"] for part in table["parts"]] == ["food", "travel"]
    assert [part["n"] for part in table["parts"]] == [12, 12]
    answer = client.get(reverse("api-leaderboard-slices", args=["alpha"]), {"key": "topic"}).json()
    assert answer["rows"][0]["cells"][0]["raw"] == table["rows"][0]["cells"][0]["raw"]
    lines = client.get(place("evaluation-board-file", "slices", "csv") + "?key=topic").content.decode().splitlines()
    assert lines[0].startswith("evaluator,column,value,low,high,n,note,raw")
    assert len(lines) == 1 + 3 * 2
    assert "food" in read_page(client.get(place("evaluation-board-file", "slices", "tex") + "?key=topic"))


def test_long_texts_outside_the_slice_values_take_no_memory(parted, monkeypatch):
    """Once, all were in memory at the same time, and each row of the column had the width of the longest."""
    for number, item in enumerate(Item.objects.order_by("key")):
        item.meta["document"] = str(number % 2) + "x" * 1_000_000
        item.save()
    monkeypatch.setattr(keys, "METAS", 1)
    rated = Rating.objects.order_by("output").values_list("output", flat=True).distinct()
    outputs = np.array(rated)
    tracemalloc.start()
    assert item_keys(parted.project) == ["number", "topic"]
    topics, documents = (keys.load_parts(parted.project, outputs, key) for key in ("topic", "document"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(set(column.tolist())) for column in (topics, documents)] == [2, 2]
    assert len(documents) == 24
    assert peak < 8_000_000  # 8 documents, two distinct ones: several copies, and these


def test_without_slices_the_page_says_what_is_missing(scored, client):
    client.force_login(scored.viewer)
    shown = read_page(client.get(place("evaluation-board", "slices")))
    assert "`meta`" in shown
    assert 'data-board="slices"' not in shown


def test_evaluators_against_each_other(scored, client):
    client.force_login(scored.viewer)
    table = command("--matrix")
    names = [row["evaluator"] for row in table["rows"]]
    values = {
        name: np.array(Score.objects.filter(score_set__evaluator__slug=name).order_by("output_id").values_list("value"))
        for name in names
    }
    first = table["rows"][0]["cells"][1]
    assert first["value"] == pytest.approx(np.corrcoef(values[names[0]].T, values[names[1]].T)[0, 1])
    assert first["n"] == 24
    assert "rated or not" in read_page(client.get(place("evaluation-board", "matrix")))
    svg = client.get(place("evaluation-board-svg", "matrix")).content.decode()
    assert "<desc" in svg
    assert f"{names[1]}, {names[0]}: " in svg  # the triangle below the diagonal
    wrong = client.get(reverse("api-leaderboard-matrix", args=["alpha"]), {"coefficient": "kendall"})
    assert wrong.status_code == 400


def test_aspect_table_uses_the_tables_of_the_aspects(scored, client):
    from tests.factories import make_ratings

    make_ratings(scored.project, list(scored.project.outputs.all()[:12]), aspect="clarity")
    client.force_login(scored.viewer)
    shown = read_page(client.get(place("evaluation-board", "aspects")))
    assert "noise ceiling" in shown
    table = command("--aspects")
    assert [aspect["aspect"] for aspect in table["aspects"]] == ["quality", "clarity"]
    mine = {row["evaluator"]: row["cells"] for row in table["rows"]}["length"]
    main = {row["evaluator"]: row for row in command("--aspect", "clarity")["rows"]}["length"]
    assert mine[1]["value"] == main["pearson"]["value"]
    assert (
        Leaderboard.objects.filter(kind="evaluators").count() == 2
    )  # computed on the way, and used by their own pages
    out = io.StringIO()
    call_command("meta", "alpha", "--aspects", stdout=out)
    assert "clarity" in out.getvalue().splitlines()[0]
    # An option that the selected level does not have is ignored, not an error.
    assert client.get(place("evaluation-board", "aspects") + "?level=system&coefficient=acc-eq").status_code == 200
    assert client.get(place("evaluation") + "?level=system&coefficient=acc-eq&grouping=item").status_code == 200


@pytest.mark.parametrize(
    ("kind", "words", "n"), [("slices", "weight ", "n 24"), ("matrix", " to ", "n 24"), ("aspects", " to ", "n 24")]
)
def test_intervals_are_in_the_cells_for_keyboard_users(parted, client, kind, words, n):
    # A slice of fewer than 5 items has no interval.
    moved = Item.objects.filter(project=parted.project, meta__number=3)
    moved.update(meta={"topic": "travel", "number": 3, "same": 1})
    client.force_login(parted.viewer)
    text = read_page(client.get(place("evaluation-board", kind) + "?intervals=1" + "&key=topic" * (kind == "slices")))
    body = text[text.index("<tbody>") : text.index("</tbody>")]
    cells = [part.split("</td>")[0] for part in body.split("<td")[1:]]
    shown = [cell for cell in cells if " to " in cell]
    assert len(shown) >= 3
    assert any(words in cell for cell in shown)
    assert not [cell for cell in shown if "title=" in cell]
    assert "rest the pointer" not in text
    # n is stated once, in the caption or the heading.
    assert n in text[text.index("<caption>") : text.index("<tbody>")]
    assert n not in body


def test_explanation_of_marks_appears_once_below():
    def cell(note, low=0.1):
        return {"value": 0.2, "low": low, "high": 0.3, "n": 5, "note": note}

    rows = [
        {"evaluator": name, "cells": [cell("") if name == "a" else None, cell("few groups")]}
        for name in ("a", "b", *(f"c{number}" for number in range(20)))
    ]
    table = {"kind": "aspects", "aspects": [{"aspect": "x"}, {"aspect": "y"}], "rows": rows}
    (remark,) = list_remarks(table)
    assert remark.startswith("Few groups: a in y, b in y, ")
    assert remark.endswith(" and 14 more.")
