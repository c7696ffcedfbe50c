"""No failed side figure breaks a table, a page or an export: each is made to fail, and the rest is checked."""

from __future__ import annotations

import ast
import io
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.urls import reverse

from annotation.models import Aspect, Comparison, Output, System
from annotation.services import exports
from evalapp.common.runner import execute_run
from evalapp.side_figures import FAILED, collect_failures, failure_sentence
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.pairs.query import PairsQuery
from scoring.boards.recompute import recompute_folder
from scoring.boards.references.query import EnhancedQuery
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Leaderboard, Score, ScoreSet
from scoring.services.leaderboards import compute_leaderboard
from tests.annotation.services.judging_helpers import open_for
from tests.annotation.views.test_campaign_quality import judge
from tests.factories import make_items
from tests.pages import list_failed_figures
from tests.writing import fill_ports, open_task_view, send, start_writing

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]

DAVIDSON = SystemsQuery(aspect="quality", method="davidson")
RATED = EvaluatorsQuery(aspect="quality", level="segment")
RANKED = EvaluatorsQuery(aspect="quality", level="system", people="win-rate")
DIALOGUES = EvaluatorsQuery(aspect="quality", level="dialogue")
SETS = EnhancedQuery(aspect="quality", references="original,good")
DETAIL = AgreementQuery(aspect="quality", judged="ratings")
PAIRS = PairsQuery(aspect="quality")
BOARDS, STATS = "scoring.boards", "evalapp.stats.planning"

#: Where the figure is computed, its name, the function made to fail, the table that contains it.
TABLES = [
    ("systems/rankings.py", "How many more comparisons separate ranks 1 and 2", "systems.rankings.estimate_separation",
     DAVIDSON),
    ("systems/rankings.py", "How many changed judgements swap ranks 1 and 2", "systems.rankings.fragility", DAVIDSON),
    ("systems/rankings.py", "The bias of the side", "systems.rankings.side_bias", DAVIDSON),
    ("systems/rankings.py", "The bias of the length", "systems.rankings.length_bias", DAVIDSON),
    ("metrics/by_ratings.py", "The noise ceiling", "metrics.by_ratings.compute_ceiling", RATED),
    ("metrics/by_ratings.py", "The tests between evaluators", "metrics.by_ratings.tell_apart", RATED),
    ("metrics/by_ratings.py", "The accuracies of pairs", "metrics.by_ratings.extra_figures", RATED),
    ("metrics/by_ratings.py", "The coefficients divided by the noise ceiling", "metrics.by_ratings.corrected", RATED),
    ("side_figures.py", "The note of the table", "metrics.by_ratings._note", RATED),
    ("metrics/compute.py", "The judgements that evaluators save", "metrics.compute._find_saved", RATED),
    ("references/compute.py", "The differences between reference sets", "references.compute.compare", SETS),
    ("metrics/ranked.py", "The tests between evaluators", "metrics.ranked._tell_apart", RANKED),
    ("metrics/ranked.py", "The pairwise accuracy of systems", "metrics.ranked.system_pairwise_accuracy", RANKED),
    ("side_figures.py", "The note of the table", "metrics.ranked._note", RANKED),
    ("metrics/dialogues.py", "The calibrated correlations of systems", "metrics.dialogues._with_calibrated",
     DIALOGUES),
    ("pairs/compute.py", "The tests between evaluators", "pairs.compute._tell_apart", PAIRS),
    ("pairs/compute.py", "What one person reaches against the others", "pairs.compute.one_against_others",
     PAIRS),
    ("pairs/compute.py", "The chance level", "pairs.compute.chance_level", PAIRS),
    ("pairs/compute.py", "The difference to length", "pairs.compute._less", PAIRS),
    ("side_figures.py", "The note of the table", "pairs.compute._note", PAIRS),
    ("agreement/compute.py", "The calibrated means of systems", "agreement.compute.calibrate_raters", DETAIL),
    ("agreement/compute.py", "The components of variance", "agreement.compute.variance_components", DETAIL),
    ("agreement/compute.py", "How often each value was given", "agreement.compute.prevalence", DETAIL),
    ("agreement/compute.py", "The reports of raters", "agreement.compute.rater_reports", DETAIL),
    ("scoring/services/leaderboards.py", "Which scores are outdated",
     "scoring.services.leaderboards.with_staleness", RATED),
]  # fmt: skip

#: Figures of a campaign's quality.
WATCHED = [
    ("The ranking so far", "_rows"), ("The margin of a system", "precision"), ("Agreement as it grows", "growth"),
    ("Answers over time", "drift"), ("The advice to stop", "advice"), ("The power so far", "power_left"),
    ("The bias of the side", "sides"),
]  # fmt: skip

#: Figures shown only on a page: name, function made to fail, and the table behind the page.
SHOWN = [
    ("systems/columns.py", "The lines that join systems", "boards.systems.columns.joined", DAVIDSON),
    ("systems/columns.py", "The bars of wins, ties and losses", "boards.systems.columns._bar", DAVIDSON),
    ("systems/columns.py", "How far the order is that of people", "boards.systems.columns._agreement_shown", DAVIDSON),
    ("systems/columns.py", "The letters of systems", "boards.systems.columns.assign_letters", DAVIDSON),
    ("scoring/views/boards.py", "The plot", "boards.systems.columns._describe", DAVIDSON),
    ("systems/columns.py", "What the model adjusted for", "boards.systems.columns.describe_effects", DAVIDSON),
    ("scoring/boards/render/cells.py", "The remarks on figures", "boards.render.cells.list_remarks", PAIRS),
]

#: In an export: the function made to fail, and the line that reports it.
EXPORTED = [
    ("annotation/exporters/card.py", "The head of README.md", "annotation.exporters.card._yaml"),
    ("annotation/exporters/card.py", "The summary of README.md", "annotation.exporters.card._about"),
    ("annotation/exporters/card.py", "The list of files of README.md", "annotation.exporters.card._files"),
    ("annotation/exporters/card.py", "The judgements of README.md", "annotation.exporters.card._judgements"),
    ("annotation/exporters/card.py", "The scores of README.md", "annotation.exporters.card._scores"),
    ("annotation/exporters/card.py", "The use of README.md", "annotation.exporters.card._use"),
    ("annotation/exporters/card.py", "The agreement of README.md and DATASHEET.md",
     "annotation.exporters.facts.AspectFacts.agreement"),
    ("annotation/exporters/datasheet.py", "Section 2 of DATASHEET.md", "annotation.exporters.datasheet._evaluated"),
    ("annotation/exporters/datasheet.py", "Section 7 of DATASHEET.md", "annotation.exporters.datasheet._outcome"),
    ("scoring/services/leaderboards.py", "A table of systems", "scoring.boards.systems.compute.compute"),
    ("scoring/selectors/exports.py", "A table of agreement", "scoring.selectors.exports._without_raters"),
]  # fmt: skip

#: Figures that separate tests below make fail.
OTHERS = [
    ("evalapp/common/overview.py", "A section of this overview"), ("evalapp/common/overview.py", "A next step"),
    ("evalapp/common/overview.py", "The column {}"),
    ("annotation/views/campaign_quality.py", "The plots of this page"),
    ("annotation/selectors/campaigns_quality.py", "The reports of raters"),
    ("annotation/exporters/datasheet.py", "A campaign of DATASHEET.md"),
    ("annotation/views/writing_plots.py", "The plot {}"),
    ("annotation/views/writing_context.py", "The plot of reliability"),
    ("scoring/pipelines/games.py", "The agreement of the order with human judgements"),
    ("scoring/views/steps.py", "The best steps"), ("scoring/views/agreement.py", "The growth of reliability"),
    ("render/page.py", "The p-values of all pairs"),
    ("scoring/views/plots.py", "The plot"), ("scoring/views/evaluators.py", "The curves of the training"),
    ("scoring/views/trained.py", "The curve of the loss"), ("scoring/views/writing_gold.py", "The plots of this page"),
    ("metrics/by_ratings.py", "The correlations over all outputs, training data included"),
]  # fmt: skip


def full_name(target: str) -> str:
    """Modules of boards are named without their package."""
    return target if target.startswith(("annotation", "evalapp", "scoring")) else f"{BOARDS}.{target}"


def fail(*_: object, **__: object) -> object:
    raise ZeroDivisionError("injected")


def address(project, query) -> str:
    """The page of a table."""
    names = {"systems": "systems", "evaluators": "evaluation", "enhanced": "enhanced", "agreement": "agreement"}
    kind = str(query.kind)
    url = reverse("scoring:evaluation-board", args=[project.slug, kind]) if kind not in names else reverse(
        f"scoring:{names[kind]}", args=[project.slug]
    )  # fmt: skip
    return f"{url}?{urlencode(query.non_default_params)}"


@pytest.mark.parametrize(("file", "name", "target", "query"), TABLES, ids=lambda value: str(value)[:40])
def test_table_and_page_appear_without_the_figure(
    few_draws, whole, client, monkeypatch, caplog, lenient_figures, file, name, target, query
):  # fmt: skip
    project = whole.project
    if query is DIALOGUES or query is PAIRS:
        Leaderboard.objects.filter(project=project).delete()
    if "length" in name:
        Output.objects.filter(project=project, system__name="sys-a").update(text="longer than the others of its item")
    before = compute_leaderboard(project=project, query=query).table
    assert "failed" not in before
    monkeypatch.setattr(full_name(target), fail)
    with caplog.at_level(logging.ERROR):
        table = compute_leaderboard(project=project, query=query).table
    assert table["failed"] == [name]
    assert any(record.exc_info and "injected" in str(record.exc_info[1]) for record in caplog.records)
    key = "label" if table["kind"] == "systems" else "name" if table["kind"] == "agreement" else "evaluator"
    assert [row[key] for row in table["rows"]] == [row[key] for row in before["rows"]]
    main = {"systems": "value", "agreement": "value", "evaluators": "pearson", "enhanced": "cells"}.get(
        table["kind"], "n"
    )
    assert [row[main] for row in table["rows"]] == [row[main] for row in before["rows"]]
    client.force_login(whole.researcher)
    page = client.get(address(project, query))
    assert page.status_code == 200
    assert failure_sentence([name]) in page.content.decode().replace("&#x27;", "'")
    out = io.StringIO()
    command = {"systems": "systems", "agreement": "agreement"}.get(table["kind"], "meta")
    if table["kind"] in ("systems", "agreement") or query in (RATED, RANKED, DIALOGUES):
        given = query.non_default_params
        call_command(command, project.slug, stdout=out, **given)
        assert failure_sentence([name]) in out.getvalue()


@pytest.mark.parametrize(("file", "name", "target", "query"), SHOWN, ids=lambda value: str(value)[:40])
def test_page_appears_without_its_own_figures(
    few_draws, whole, client, monkeypatch, lenient_figures, file, name, target, query
):  # fmt: skip
    client.force_login(whole.researcher)
    compute_leaderboard(project=whole.project, query=query)
    monkeypatch.setattr(f"scoring.{target}", fail)
    for headers in ({}, {"HX-Request": "true"}):
        page = client.get(address(whole.project, query), headers=headers)
        assert page.status_code == 200
        assert failure_sentence([name]) in page.content.decode().replace("&#x27;", "'")
        assert "length" in page.content.decode() or "sys-a" in page.content.decode()


def test_export_is_written_without_the_failed_part(few_draws, whole, monkeypatch, tmp_path, lenient_figures):
    for _, _, target in EXPORTED:
        monkeypatch.setattr(full_name(target), fail)
    Leaderboard.objects.filter(project=whole.project, kind="systems").delete()
    monkeypatch.setattr(f"{BOARDS}.systems.rankings.side_bias", fail)
    out = io.StringIO()
    call_command("dump", whole.project.slug, str(tmp_path / "out"), stdout=out, stderr=io.StringIO())
    said = {"The agreement of README.md and DATASHEET.md"}  # the parts that contain it fail as a whole
    card = (tmp_path / "out" / "README.md").read_text()
    for _, name, _ in EXPORTED:
        shown = name[0].lower() + name[1:]
        assert name in said or shown in card or name in card, name
        assert name in said or shown in out.getvalue() or name in out.getvalue(), name
    assert "## Not in this export" in card
    sheet = (tmp_path / "out" / "DATASHEET.md").read_text()
    assert "## 7 Results" in sheet
    assert "not available: it could not be computed" in sheet
    assert sum(1 for _ in (tmp_path / "out" / "outputs.jsonl").open()) == 24
    kinds = {entry["kind"] for entry in json.loads((tmp_path / "out" / "leaderboard.json").read_text())["tables"]}
    assert {"evaluators", "enhanced", "matrix"} <= kinds
    assert not {"systems", "agreement"} & kinds


def test_agreement_of_an_export_may_fail(few_draws, whole, monkeypatch, tmp_path, lenient_figures):
    monkeypatch.setattr("annotation.exporters.facts.AspectFacts.agreement", fail)
    call_command("dump", whole.project.slug, str(tmp_path / "out"), stdout=io.StringIO(), stderr=io.StringIO())
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"({FAILED}" in card
    assert "README.md and DATASHEET.md" in card


def test_export_run_names_the_failed_part(few_draws, whole, monkeypatch, lenient_figures):
    monkeypatch.setattr("annotation.exporters.card._judgements", fail)
    run = exports.request_export(project=whole.project, user=whole.owner)
    run = execute_run(run.pk)
    assert run.state == "succeeded", run.error
    assert run.result["failed"] == ["The judgements of README.md"]


@pytest.mark.parametrize(("name", "target"), WATCHED)
def test_campaign_quality_appears_without_the_figure(cast, client, monkeypatch, lenient_figures, name, target):
    campaign = open_for(cast, "pairwise", items=12, systems=("sys-a", "sys-b", "sys-c"), pairs=30)
    judge(cast.annotator, campaign, lambda shown: "ab"[shown.unit_id % 2])
    cache.clear()
    monkeypatch.setattr(f"{STATS}.watching.{target}", fail)
    client.force_login(cast.researcher)
    url = reverse("annotation:campaign-quality", args=["alpha", campaign.pk])
    page = client.get(url)
    assert page.status_code == 200
    assert failure_sentence([name]) in page.content.decode().replace("&#x27;", "'")
    # The failure is not cached: once repaired, the next view has the figure.
    monkeypatch.undo()
    assert "data-failed" not in client.get(url).content.decode()


@pytest.mark.parametrize(
    "target", ["annotation.views.campaign_quality._plots", "evalapp.stats.agreement.raters.rater_reports"]
)
def test_plots_and_reports_of_a_campaign_may_fail(cast, client, monkeypatch, lenient_figures, target):
    campaign = open_for(cast, "pairwise", items=12, systems=("sys-a", "sys-b", "sys-c"), pairs=30)
    judge(cast.annotator, campaign, lambda shown: "ab"[shown.unit_id % 2])
    cache.clear()
    monkeypatch.setattr(full_name(target), fail)
    client.force_login(cast.researcher)
    page = client.get(reverse("annotation:campaign-quality", args=["alpha", campaign.pk]))
    assert page.status_code == 200
    assert "data-failed" in page.content.decode()


def test_overview_appears_without_a_section(cast, client, monkeypatch, lenient_figures):
    from evalapp.common import overview

    for name in ("_sections", "_steps", "_counts"):
        registered = getattr(overview, name)
        broken = next(iter(registered))
        monkeypatch.setitem(registered, broken, (registered[broken][0], fail))
    client.force_login(cast.researcher)
    page = client.get(reverse("project", args=["alpha"]))
    assert page.status_code == 200
    assert "data-failed" in page.content.decode()


def test_equal_lengths_of_rated_texts_break_nothing(cast, client, tmp_path):
    """Items 1, 2; A "no", B "ja", C "maybe"; A beats B, B beats A, C beats A: only A and B can be rated."""
    project, texts = cast.project, {"A": "no", "B": "ja", "C": "maybe"}
    items = make_items(project, 2)
    systems = {name: System.objects.create(project=project, name=name) for name in texts}
    outputs = {
        (item.pk, name): Output.objects.create(project=project, item=item, system=systems[name], text=text)
        for item in items for name, text in texts.items()
    }  # fmt: skip
    aspect = Aspect.objects.create(project=project, name="preference")
    for item, a, b in ((items[0], "A", "B"), (items[1], "B", "A"), (items[0], "C", "A")):
        sides = {"output_a": outputs[item.pk, a], "output_b": outputs[item.pk, b]}
        Comparison.objects.create(project=project, aspect=aspect, rater="r", verdict="a", **sides)
    client.force_login(cast.researcher)
    for method in ("win-rate", "bradley-terry", "davidson", "rao-kupper", "glicko2"):
        for covariates in ("none", "length") if method in ("bradley-terry", "davidson", "rao-kupper") else ("none",):
            query = SystemsQuery(aspect=aspect.name, method=method, covariates=covariates)
            page = client.get(address(project, query))
            assert page.status_code == 200
            assert "data-failed" not in page.content.decode()
    table = Leaderboard.objects.get(project=project, params__method="bradley-terry", params__covariates="none").table
    assert "the texts of the systems that can be rated are equally long" in " ".join(table["findings"])
    assert {row["label"]: row["rank"] for row in table["rows"]} == {"C": 1, "A": 2, "B": 2}
    call_command("dump", project.slug, str(tmp_path / "out"), stdout=io.StringIO(), stderr=io.StringIO())
    assert all(outcome.is_equal for outcome in recompute_folder(tmp_path / "out"))


def test_campaign_in_the_datasheet_may_fail(cast, monkeypatch, tmp_path, lenient_figures):
    open_for(cast, "pairwise", items=4, systems=("sys-a", "sys-b"), pairs=4)
    monkeypatch.setattr("annotation.exporters.datasheet._campaign", fail)
    call_command("dump", "alpha", str(tmp_path / "out"), stdout=io.StringIO(), stderr=io.StringIO())
    assert "A campaign of DATASHEET.md could not be computed" in (tmp_path / "out" / "README.md").read_text()


def test_writing_pages_appear_without_their_plots(cast, client, monkeypatch, lenient_figures):
    ports = fill_ports(monkeypatch)
    campaign = start_writing(cast, items=2, references=2)
    assert ports is not None
    view = open_task_view(cast.annotator, campaign)
    send(cast.annotator, view, "a first reference of the item")
    monkeypatch.setattr("annotation.views.writing_context.draw_growth", fail)
    monkeypatch.setattr("annotation.views.writing_plots.draw_rounds", fail)
    client.force_login(cast.annotator)
    page = client.get(reverse("annotation:write", args=[campaign.pk]), follow=True)
    assert page.status_code == 200
    assert len(list_failed_figures(page.content.decode())) == 1
    client.force_login(cast.researcher)
    page = client.get(reverse("annotation:writing", args=["alpha", campaign.pk]))
    assert page.status_code == 200
    assert "data-failed" in page.content.decode()


def test_page_of_agreement_appears_without_growth(scored, client, monkeypatch, lenient_figures):
    monkeypatch.setattr("scoring.views.agreement.plan_growth", fail)
    client.force_login(scored.researcher)
    page = client.get(reverse("scoring:agreement", args=["alpha"]))
    assert page.status_code == 200
    assert len(list_failed_figures(page.content.decode())) == 1


def test_page_of_steps_appears_without_the_best(scored, client, monkeypatch, lenient_figures):
    Output.objects.filter(project=scored.project).update(step=100)
    monkeypatch.setattr("scoring.views.steps.best_steps", fail)
    client.force_login(scored.researcher)
    page = client.get(reverse("scoring:steps", args=["alpha"]))
    assert page.status_code == 200
    assert len(list_failed_figures(page.content.decode())) == 1


def test_p_values_and_agreement_of_games_may_fail(monkeypatch, lenient_figures):
    from scoring.boards.render.page import list_p_values as _pairs
    from scoring.pipelines import games

    with collect_failures() as failed:
        assert _pairs({"test": {"names": ["a", "b"]}}) == []
    assert failed == ["The p-values of all pairs"]
    monkeypatch.setattr(games, "systems_by_games", lambda *_, **__: {"rows": [1], "extras": {}, "findings": []})
    monkeypatch.setattr(games, "_as_columns", lambda *_: None)
    monkeypatch.setattr(games, "compare_with_people", fail)
    context = SimpleNamespace(project=None, progress=lambda *_: None)
    options = SimpleNamespace(systems="all", items=9, seeds=1, seed=1)
    judge = SimpleNamespace(slug="judge", signature="", tie_rule="half", unknown_tokens=None)
    texts = SimpleNamespace(without=[], n_pairs=1)
    with collect_failures() as failed:
        table = games._make_table(context, options, judge, judge, None, texts)
    assert (table["rows"], table["extras"]["people"]) == ([1], [])
    assert failed == ["The agreement of the order with human judgements"]


def test_training_data_figures_may_fail(few_draws, scored, monkeypatch, lenient_figures):
    from scoring.boards.metrics import by_ratings as meta_tables

    ScoreSet.objects.filter(project=scored.project, evaluator__slug="token-f1").update(n_in_training=3)
    Score.objects.filter(score_set__evaluator__slug="token-f1", output__item__in=scored.project.items.all()[:1]).update(
        in_training=True
    )
    whole_table = compute_leaderboard(project=scored.project, query=RATED).table
    assert whole_table["rows"][0]["whole"] is not None
    correlate = meta_tables._correlate

    def only_compared(one, people, compared, rows, settings):
        return fail() if compared is people else correlate(one, people, compared, rows, settings)

    monkeypatch.setattr(meta_tables, "_correlate", only_compared)
    table = compute_leaderboard(project=scored.project, query=RATED).table
    assert table["failed"] == ["The correlations over all outputs, training data included"]
    assert [row["pearson"] for row in table["rows"]] == [row["pearson"] for row in whole_table["rows"]]


def names_in_source() -> set[tuple[str, str]]:
    """(file, name) of every `side_figure(...)` and `side_value(...)` in the product; interpolated values become {}."""
    found = set()
    for room in ("evalapp", "annotation", "retrieval", "scoring"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "side_figure(" in text or "side_value(" in text else ():
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("side_figure", "side_value"):
                    argument = node.args[0]
                    parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
                    name = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
                    found.add((str(path.relative_to(ROOT)), name))
    return found


def test_every_side_figure_is_made_to_fail():
    """A new figure needs a line in a table above: where it fails, the rest must have been checked."""

    def matches(file, name, known_file, known):
        head, mark, tail = name.partition("{}")
        fits = known.startswith(head) and known.endswith(tail) if mark else known == name
        return file.endswith(known_file) and (fits or known == name)

    known = [(file, name) for file, name, *_ in [*TABLES, *SHOWN, *EXPORTED]] + OTHERS
    known += [("stats/planning/watching.py", name) for name, _ in WATCHED]
    in_source = sorted(names_in_source())
    assert [source for source in in_source if not any(matches(*source, *pair) for pair in known)] == []
    stale = [pair for pair in known if not any(matches(*source, *pair) for source in in_source)]
    assert stale == []
