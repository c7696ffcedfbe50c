"""A new board is one package: once registered, it has a page, an API, files, snapshots, exports and recomputation."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import reverse

from scoring.boards import registry
from scoring.boards.leaderboard_file import list_faults
from scoring.boards.recompute import recompute_folder
from scoring.boards.render.console import as_text
from scoring.services.leaderboards import get_leaderboard
from scoring.services.snapshots import take_snapshot
from tests.scoring.boards.added.query import CountsQuery

pytestmark = pytest.mark.django_db
PACKAGE = Path(__file__).parent / "added"


@pytest.fixture
def counts():
    yield registry.register("tests.scoring.boards.added")
    registry.unregister("counts")


def test_a_board_is_one_package_of_few_files(counts):
    files = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert files == ["__init__.py", "columns.py", "compute.py", "query.py", "table.py"]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.glob("*.py"))
    assert lines < 150


def test_page_files_and_api_show_a_registered_board(counts, scored, client):
    client.force_login(scored.viewer)
    slug = scored.project.slug
    table = get_leaderboard(project=scored.project, query=CountsQuery(aspect="quality")).table
    assert {row["evaluator"]: row["cells"][0]["value"] for row in table["rows"]}["length"] == 1.0
    page = client.get(reverse("scoring:evaluation-board", args=[slug, "counts"]) + "?aspect=quality")
    assert page.status_code == 200
    assert CountsQuery.tab in page.content.decode()
    assert "scored" in page.content.decode()
    assert "length" in page.content.decode()
    for ending, text in (("csv", "length,scored,1.0"), ("tex", "token-f1 & $1.000$"), ("json", '"kind": "counts"')):
        file = client.get(reverse("scoring:evaluation-board-file", args=[slug, "counts", ending]) + "?aspect=quality")
        assert text in file.content.decode()
    answer = client.get(reverse("api-leaderboard", args=[slug, "counts"]), {"aspect": "quality"})
    assert answer.json()["rows"] == table["rows"]
    assert "length" in as_text(table)


def test_tab_flag_and_form_of_a_registered_board(counts, scored, client):
    client.force_login(scored.viewer)
    page = client.get(reverse("scoring:evaluation-board", args=[scored.project.slug, "counts"]))
    tabs = {tab["url"]: tab["is_current"] for tab in page.context["tabs"]}
    assert tabs[f"/projects/{scored.project.slug}/evaluation/counts/"]
    assert sum(tabs.values()) == 1
    assert set(page.context["form"].fields) <= set(CountsQuery.form_fields)
    assert "systems" in page.context["form"].fields
    out = io.StringIO()
    call_command("meta", scored.project.slug, "--counts", "--json", stdout=out)
    assert json.loads(out.getvalue())["kind"] == "counts"


def test_export_and_recomputation_have_a_registered_board(counts, scored, tmp_path):
    get_leaderboard(project=scored.project, query=CountsQuery(aspect="quality"))
    snapshot = take_snapshot(project=scored.project, user=scored.owner, query=CountsQuery(aspect="quality"))
    assert snapshot.table["kind"] == "counts"
    call_command("dump", scored.project.slug, str(tmp_path / "out"), stdout=io.StringIO())
    document = json.loads((tmp_path / "out" / "leaderboard.json").read_text(encoding="utf-8"))
    assert list(list_faults(document)) == []
    outcomes = {outcome.exported["kind"]: outcome for outcome in recompute_folder(tmp_path / "out")}
    assert outcomes["counts"].is_equal
    assert outcomes["counts"].n_numbers > 3


def test_an_unknown_board_has_no_page(scored, client):
    client.force_login(scored.viewer)
    for kind in ("counts", "systems"):
        assert client.get(f"/projects/{scored.project.slug}/evaluation/{kind}/").status_code == 404
