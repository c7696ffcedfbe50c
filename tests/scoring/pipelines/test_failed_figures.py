"""After a failed side figure: the lifetime of its table, `recompute` of its export, and the image instead of a plot."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from annotation.models import Output
from evalapp.common.models import Run
from evalapp.plot_style import INK
from evalapp.side_figures import FAILED, collect_failures
from scoring.boards.aspects.query import AspectsQuery
from scoring.boards.recompute import _Comparison, main, recompute_folder
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Evaluator, Leaderboard
from scoring.selectors.leaderboards import RETRY_SECONDS, find_leaderboard
from scoring.selectors.reports import CURVES
from scoring.services.leaderboards import compute_leaderboard, get_leaderboard
from scoring.services.snapshots import take_snapshot
from tests.pages import list_failed_figures
from tests.scoring.pipelines.test_side_figures import BOARDS, RATED, TABLES, address, fail, full_name
from tests.scoring.study_results import make_study

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("file", "name", "target", "query"), TABLES, ids=lambda value: str(value)[:40])
def test_recompute_reports_the_figure_missing_in_the_export(
    few_draws, whole, monkeypatch, capsys, tmp_path, lenient_figures, file, name, target, query
):  # fmt: skip
    project, folder = whole.project, tmp_path / "out"
    Leaderboard.objects.filter(project=project).delete()
    if "length" in name:
        Output.objects.filter(project=project, system__name="sys-a").update(text="longer than the others of its item")
    with monkeypatch.context() as broken:
        broken.setattr(full_name(target), fail)
        compute_leaderboard(project=project, query=query)
        call_command("dump", project.slug, str(folder), stdout=io.StringIO(), stderr=io.StringIO())
    outcomes = recompute_folder(folder)
    assert [str(one) for outcome in outcomes for one in outcome.differences] == []
    assert all(outcome.is_equal for outcome in outcomes)
    lacking = [outcome for outcome in outcomes if outcome.failed]
    assert {failed for outcome in lacking for failed in outcome.failed} == {name}
    assert main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert any(line.endswith(f": {name}") for line in said.splitlines())
    assert f"all equal; {len(lacking)} lack figures that had failed in the export." in said
    assert "DIFFERENT" not in said
    # Existing figures are compared as always.
    path = folder / "leaderboard.json"
    document = json.loads(path.read_text())
    changed = next(one for one in document["tables"] if one["table"].get("failed"))
    changed["table"]["rows"][0]["evaluator" if "evaluator" in changed["table"]["rows"][0] else "label"] = "another"
    path.write_text(json.dumps(document))
    assert main([str(folder)]) == 1
    assert "1 NOT equal" in capsys.readouterr().out


def test_changed_number_is_found_next_to_a_missing_figure():
    kept = {
        "rows": [{"evaluator": "m", "value": 0.5, "pa": {"value": None, "n": 0, "note": FAILED}}],
        "findings": ["b"],
    }
    found = {
        "rows": [{"evaluator": "m", "value": 0.6, "pa": {"value": 1.0, "n": 3, "note": ""}}],
        "findings": ["a", "b"],
    }
    comparison = _Comparison(is_incomplete=True)
    comparison.walk("", kept, found)
    assert [one.where for one in comparison.differences] == ["rows[m].value"]
    assert comparison.missing == ["rows[m].pa", "findings"]
    strict = _Comparison()
    strict.walk("", kept, found)
    assert len(strict.differences) > 1
    # A figure that the export has but the data do not give is a difference.
    comparison = _Comparison(is_incomplete=True)
    comparison.walk(
        "", {"findings": ["a", "b"], "test": "|test:none|k:1"}, {"findings": ["b"], "test": "|test:none|k:2"}
    )
    assert [one.where for one in comparison.differences] == ["findings (rows)", "findings[0]", "test"]


def test_table_without_a_figure_expires(few_draws, whole, client, monkeypatch, lenient_figures):
    project, url = whole.project, address(whole.project, RATED)
    client.force_login(whole.researcher)
    with monkeypatch.context() as broken:
        broken.setattr(f"{BOARDS}.metrics.by_ratings.compute_ceiling", fail)
        Leaderboard.objects.filter(project=project).delete()
        (name,) = list_failed_figures(client.get(url).content.decode())
    row = find_leaderboard(project, RATED)
    assert row.table["failed"] == [name]
    assert "ceiling" in name
    # Not at once: a page that reloads itself, and its plots, do not recompute it each time.
    assert get_leaderboard(project=project, query=RATED).computed_at == row.computed_at
    ago = timezone.now() - timedelta(seconds=RETRY_SECONDS + 1)
    Leaderboard.objects.filter(pk=row.pk).update(computed_at=ago, seconds=RETRY_SECONDS)
    assert get_leaderboard(project=project, query=RATED).computed_at == ago  # later, because computing takes long
    Leaderboard.objects.filter(pk=row.pk).update(seconds=1.0)
    assert "data-failed" not in client.get(url).content.decode()
    row.refresh_from_db()
    assert "failed" not in row.table
    assert row.computed_at > ago
    # A complete one does not expire.
    Leaderboard.objects.filter(pk=row.pk).update(computed_at=ago)
    assert get_leaderboard(project=project, query=RATED).computed_at == ago


def test_table_of_tables_names_their_failures(few_draws, whole, monkeypatch, lenient_figures):
    Leaderboard.objects.filter(project=whole.project).delete()
    monkeypatch.setattr(f"{BOARDS}.metrics.by_ratings.compute_ceiling", fail)
    assert compute_leaderboard(project=whole.project, query=AspectsQuery()).table["failed"] == ["The noise ceiling"]


#: Every plot with an address: its name and further arguments.
PLOTS = [
    ("systems-svg", []), ("evaluation-svg", []), ("scatter-svg", ["token-f1"]), ("evaluation-board-svg", ["matrix"]),
    ("distribution-svg", ["token-f1"]), ("reliability-curves-svg", [1, "system"]), ("steps-svg", ["people"]),
    ("agreement-svg", []), ("enhanced-svg", []), ("agreement-growth-svg", []),
    ("snapshot-svg", ["kept"]), ("study-svg", ["study"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), PLOTS)
def test_failed_plot_answers_with_an_image(
    few_draws, whole, client, monkeypatch, caplog, lenient_figures, name, arguments
):  # fmt: skip
    cache.clear()
    run = Run.objects.create(project=whole.project, kind=CURVES, state="succeeded", result={
        "panels": {"system": {"lines": [{"name": "m", "points": [{"value": 0.5}]}], "axes": ["x", "y"]}}
    })  # fmt: skip
    arguments = [run.pk, "system"] if name == "reliability-curves-svg" else arguments
    arguments = [make_study(whole.project).pk] if name == "study-svg" else arguments
    Output.objects.filter(project=whole.project).update(step=100)
    client.force_login(whole.researcher)
    take_snapshot(project=whole.project, query=SystemsQuery(), slug="kept")
    url = reverse(f"scoring:{name}", args=["alpha", *arguments])
    with monkeypatch.context() as broken:
        for drawn in ("forest", "groups", "scatter", "distribution", "lines", "heat"):
            broken.setattr(f"scoring.plots.drawing.draw_{drawn}", fail)
        for theme, (_, ink, _) in INK.items():
            answer = client.get(url, {"theme": theme, "v": "1"})
            assert (answer.status_code, answer["Content-Type"]) == (500, "image/svg+xml; charset=utf-8")
            assert "no-store" in answer["Cache-Control"]
            root = ElementTree.fromstring(answer.content)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert root.attrib["fill"] == ink
            assert "".join(root.itertext()).strip()  # says that it failed
        file = client.get(url.removesuffix(".svg") + ".pdf")
        assert (file.status_code, file["Content-Type"]) == (500, "text/plain; charset=utf-8")
        assert file.content.startswith(b"This plot could not be drawn")
    assert any(record.exc_info and "injected" in str(record.exc_info[1]) for record in caplog.records)
    # The failure was not cached.
    assert client.get(url, {"v": "1"}).status_code == 200


def test_every_plot_with_an_address_is_made_to_fail():
    from scoring.urls import PROJECT

    assert {str(one.name) for one in PROJECT if str(one.name).endswith("-svg")} == {name for name, _ in PLOTS}


def test_pages_appear_without_their_curves(scored, client, monkeypatch, lenient_figures):
    """The page of a trained evaluator, of a training, and of the gold reliability of references."""
    from scoring.views import evaluators, trained, writing_gold

    for module, name in ((evaluators, "draw_folds"), (trained, "draw_folds"), (writing_gold, "plot")):
        monkeypatch.setattr(module, name, fail)
    client.force_login(scored.researcher)
    run = Run.objects.create(project=scored.project, kind="train", title="Train x", state="succeeded")
    page = client.get(reverse("scoring:training-curve", args=["alpha", run.pk]))
    assert page.status_code == 200
    assert len(list_failed_figures(page.content.decode())) == 1
    row = Evaluator.objects.get(project=scored.project, slug="token-f1")
    with collect_failures() as failed:
        shown = evaluators._training(RequestFactory().get("/"), row)
    assert (len(failed), shown["losses"], shown["figures"]) == (1, None, [])
