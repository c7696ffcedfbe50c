"""An undefeated system, a winless one and two that were never compared with the rest, wherever a table is shown."""

from __future__ import annotations

import csv
import io

import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.models import Aspect, Comparison, Output
from scoring.boards.recompute import recompute_folder
from scoring.services.snapshots import take_snapshot
from tests.factories import make_items, make_outputs
from tests.pages import read_page

pytestmark = pytest.mark.django_db

MODELS = ("bradley-terry", "davidson", "rao-kupper")


@pytest.fixture
def judged(cast):
    """best beats x and y 12 : 0, x and y 6 : 6, both beat last 12 : 0; p and q are only compared with each other."""
    project = cast.project
    items = make_items(project, 12)
    make_outputs(project, items, ("best", "x", "y", "last", "p", "q"))
    aspect = Aspect.objects.create(project=project, name="preference")
    of = {
        (row.item_id, row.system.name): row for row in Output.objects.filter(project=project).select_related("system")
    }
    pairs = [("best", "x"), ("best", "y"), ("x", "last"), ("y", "last")]
    rows = [(item, *pair, "a") for item in items for pair in pairs]
    rows += [(item, *pair, "ab"[k % 2]) for k, item in enumerate(items) for pair in (("x", "y"), ("p", "q"))]
    Comparison.objects.bulk_create(
        Comparison(
            project=project, aspect=aspect, rater="r", verdict=verdict, output_a=of[item.pk, a], output_b=of[item.pk, b]
        )
        for item, a, b, verdict in rows
    )  # fmt: skip
    return cast


PLACES = {"best": 1, "x": 2, "y": 2, "last": 4, "p": None, "q": None}


@pytest.mark.parametrize("method", MODELS)
def test_page_files_plot_and_api_agree(judged, client, method):
    client.force_login(judged.researcher)
    slug, given = judged.project.slug, {"method": method, "aspect": "preference"}
    page = read_page(client.get(reverse("scoring:systems", args=[slug]), given))
    table = client.get(reverse("scoring:systems-file", args=[slug, "json"]), given).json()
    note = table["extras"]["connectivity"]["note"]
    assert "2 parts" in note
    assert page.index('id="connectivity"') < page.index(note[1:]) < page.index("<table")
    notes = {row["label"]: row["note"] for row in table["rows"]}
    assert notes["best"] in page
    assert notes["best"] not in {notes["last"], notes["x"], ""}
    assert {row["label"]: row["rank"] for row in table["rows"]} == PLACES
    assert [row["label"] for row in table["rows"]][:4] == ["best", "x", "y", "last"]
    assert {row["label"] for row in table["rows"] if row["value"] is not None} == {"x", "y"}
    # Twelve wins over each of two systems, on twelve items: certain by Firth's penalty.
    assert [(row["rank_low"], row["rank_high"]) for row in table["rows"]][:4] == [(1, 1), (2, 3), (2, 3), (4, 4)]
    answer = client.get(f"/api/v1/projects/{slug}/leaderboards/systems/", given).json()
    assert [row["rank"] for row in answer["rows"]] == [row["rank"] for row in table["rows"]]
    rows = list(
        csv.DictReader(
            io.StringIO(client.get(reverse("scoring:systems-file", args=[slug, "csv"]), given).content.decode())
        )
    )
    assert {row["system"]: row["rank"] for row in rows} == {name: str(rank or "") for name, rank in PLACES.items()}
    assert rows[0]["value"] == ""
    assert rows[0]["note"] == notes["best"]
    latex = read_page(client.get(reverse("scoring:systems-file", args=[slug, "tex"]), given))
    assert "1 & best & -- & " in latex
    assert "- & p & -- & " in latex
    assert f"% best: {notes['best']}" in latex
    assert latex.index(f"% {note}") < latex.index(r"\begin{tabular}")
    svg = client.get(reverse("scoring:systems-svg", args=[slug]), given).content.decode()
    assert "best rank 1, no finite rating" in svg  # in words, for a screen reader
    assert svg.count("rank 1, no finite rating") >= 2  # and drawn
    assert client.get(reverse("scoring:systems-pdf", args=[slug]), given).status_code == 200
    out = io.StringIO()
    call_command("systems", slug, stdout=out, **given)
    lines = out.getvalue().splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("Note: ") and "2 parts" in line)
    assert first < next(k for k, line in enumerate(lines) if line.startswith("rank"))
    row = next(line for line in lines if line.split()[1:2] == ["best"])
    assert row.split()[0] == "1"
    assert row.endswith(notes["best"])


@pytest.mark.parametrize("method", ["win-rate", "glicko2"])
def test_methods_with_finite_values_also_rank_one_component(judged, client, method):
    client.force_login(judged.researcher)
    given = {"method": method, "aspect": "preference"}
    table = client.get(reverse("scoring:systems-file", args=[judged.project.slug, "json"]), given)
    page = read_page(client.get(reverse("scoring:systems", args=[judged.project.slug]), given))
    if table.status_code == 200:  # games of many systems are played in a run
        rows = table.json()["rows"]
        assert {row["label"] for row in rows if row["rank"] is None} == {"p", "q"}
        assert {row["label"] for row in rows if row["value"] is None} == {"p", "q"}
        assert page.index('id="connectivity"') < page.index("<table")
    else:
        assert method == "glicko2"


def test_exports_recompute_equal_and_snapshots_stay(judged, client, tmp_path):
    from scoring.boards.systems.query import SystemsQuery
    from scoring.services.leaderboards import compute_leaderboard

    project = judged.project
    for method in (*MODELS, "win-rate", "glicko2"):
        compute_leaderboard(project=project, query=SystemsQuery(aspect="preference", method=method))
    call_command("dump", project.slug, str(tmp_path / "out"), stdout=io.StringIO(), stderr=io.StringIO())
    outcomes = recompute_folder(tmp_path / "out")
    assert len(outcomes) >= 5
    assert [str(difference) for outcome in outcomes for difference in outcome.differences] == []
    assert all(outcome.is_equal for outcome in outcomes)
    query = SystemsQuery(aspect="preference", method="davidson")
    take_snapshot(project=project, user=judged.owner, slug="now", query=query)
    client.force_login(judged.researcher)
    page = client.get(reverse("scoring:snapshot", args=[project.slug, "now"]))
    assert page.status_code == 200
    assert "won every comparison" in read_page(page)
