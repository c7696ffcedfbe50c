"""Scores made by another program, from the upload to an export that recomputes: they count like computed ones."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from evalapp.accounts.models import Project
from evalapp.common.runner import execute_run
from scoring.boards.recompute import recompute_folder
from scoring.boards.systems.query import SystemsQuery
from scoring.models import Leaderboard, ScoreSet
from scoring.selectors.exports import list_exported_queries
from scoring.services.combining import CombineOptions, start_combination
from scoring.services.leaderboards import get_leaderboard
from scoring.services.scores import apply_evaluator
from tests.annotation.mapping.test_scores import make_metrics_folder
from tests.flows.test_leaderboards import write_folder as write_data

pytestmark = pytest.mark.django_db
#: Metrics whose system score is the mean. Trivial baselines are marked in tables, as uploaded scores are not.
METRICS = ("bleu-4", "rouge-l", "token-f1")


def load(folder, project, *arguments):
    out = io.StringIO()
    call_command("load", str(folder), "--project", project, *arguments, stdout=out, stderr=out)
    return out.getvalue()


def write_scores(folder, project, **names):
    """Write the stored scores of evaluators as another program would."""
    folder.mkdir(exist_ok=True)
    rows = []
    for score_set in ScoreSet.objects.filter(project=project).select_related("evaluator"):
        for score in score_set.scores.select_related("output__item", "output__system"):
            rows.append({
                "item": score.output.item.key, "system": score.output.system.name, "score": score.value,
                "evaluator": names.get(score_set.evaluator.slug, score_set.evaluator.slug),
                "reference_set": score_set.references, "signature": score_set.signature,
            })  # fmt: skip
    (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def without_names(value):
    """A table without what tells built-in from uploaded scores: names, kinds, signatures, times, primary keys."""
    unlike = {"score_set", "scored_at", "signature", "short_signature", "kind", "name", "evaluator", "slug", "project"}
    if isinstance(value, dict):
        return {key: without_names(part) for key, part in value.items() if key not in unlike}
    if isinstance(value, list):
        return [without_names(part) for part in value]
    return value.replace("-external", "").replace("--project two", "--project one") if isinstance(value, str) else value


def find_tables(project):
    """Every table of an export, by kind and settings."""
    tables = {}
    for query in list_exported_queries(project):
        tables[str(query)] = get_leaderboard(project=project, query=query).table
    for score_set in ScoreSet.objects.filter(project=project).select_related("evaluator"):
        slug = score_set.evaluator.slug
        table = get_leaderboard(project=project, query=SystemsQuery(by=slug)).table
        tables[slug.removesuffix("-external")] = table
    return tables


@pytest.fixture
def built_in(tmp_path):
    """A project with scores of built-in metrics, and a folder with the same scores as files."""
    (tmp_path / "data").mkdir()
    write_data(tmp_path / "data")
    load(tmp_path / "data", "one")
    project = Project.objects.get(slug="one")
    for name in METRICS:
        execute_run(apply_evaluator(project=project, evaluator=name, send=False).pk)
    write_scores(tmp_path / "scores", project)
    return project


def test_uploaded_scores_give_the_same_figures(built_in, tmp_path, few_draws):
    load(tmp_path / "data", "two")
    load(tmp_path / "scores", "two")
    uploaded = Project.objects.get(slug="two")
    for project, names in ((built_in, METRICS), (uploaded, tuple(f"{name}-external" for name in METRICS))):
        execute_run(start_combination(project=project, options=CombineOptions(names, name="both"), send=False).pk)
    one, two = find_tables(built_in), find_tables(uploaded)
    assert one.keys() == two.keys()
    assert len(one) > 5
    for name in one:
        assert without_names(one[name]) == without_names(two[name]), name


def test_export_of_uploaded_scores_loads_and_recomputes(built_in, tmp_path, few_draws):
    load(tmp_path / "data", "two")
    load(tmp_path / "scores", "two")
    uploaded = Project.objects.get(slug="two")
    rows = [{"system": name, "evaluator": "COMET", "score": k, "higher_is_better": False} for k, name in enumerate(
        ("alpha-net", "beta-net", "gamma-net"))]  # fmt: skip
    (tmp_path / "scores" / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    load(tmp_path / "scores", "two")
    for query in list_exported_queries(uploaded):
        get_leaderboard(project=uploaded, query=query)
    kinds = {row.evaluator.kind for row in ScoreSet.objects.filter(project=uploaded)}
    assert kinds == {"external"}
    assert Leaderboard.objects.filter(project=uploaded).exists()
    first, second = tmp_path / "first", tmp_path / "second"
    call_command("dump", "two", str(first), stdout=io.StringIO())
    outcomes = recompute_folder(first)
    assert outcomes
    assert all(not one.differences for one in outcomes), [one.differences for one in outcomes]
    load(first, "three")
    call_command("dump", "three", str(second), stdout=io.StringIO())
    for path in sorted(Path(first).iterdir()):
        if path.suffix == ".jsonl" or path.name == "leaderboard.json":
            assert path.read_text() == (second / path.name).read_text(), path.name


def test_snapshot_keeps_uploaded_scores_that_are_replaced(built_in, tmp_path, few_draws):
    def run(*arguments):
        out = io.StringIO()
        call_command(*arguments, stdout=out)
        return json.loads(out.getvalue())

    load(tmp_path / "data", "two")
    load(tmp_path / "scores", "two")
    taken = "by=bleu-4-external"
    run("snapshot", "two", "take", "--set", taken, "--name", "first", "--json")
    before = run("snapshot", "two", "show", "first", "--json")["table"]
    path = tmp_path / "scores" / "scores.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "score": 1 - row["score"]}) + "\n" for row in rows))
    load(tmp_path / "scores", "two", "--replace")
    now = run("systems", "two", "--by", "bleu-4-external", "--json")
    assert run("snapshot", "two", "show", "first", "--json")["table"] == before
    assert [row["value"] for row in now["rows"]] != [row["value"] for row in before["rows"]]
    changes = run("snapshot", "two", "compare", "first", "now", "--json")
    assert any(row["difference"] for row in changes["rows"])


def test_uploaded_scores_on_pages(built_in, cast, client, tmp_path):
    from django.core.files.uploadedfile import SimpleUploadedFile

    from annotation.models import Upload
    from evalapp.accounts.models import Membership

    project = built_in
    Membership.objects.create(project=project, user=cast.researcher, role="researcher")
    client.force_login(cast.researcher)
    uploads = f"/projects/{project.slug}/uploads/"
    sample = client.get(f"{uploads}samples/scores.csv")
    assert b"".join(sample.streaming_content).startswith(b"item,system,evaluator,score")
    lines = ["system,item,evaluator,score,higher_is_better"]
    lines += [
        f"{row.system.name},{row.item.key},COMET,{len(row.text) / 10},false"
        for row in project.outputs.select_related("system", "item")
    ]

    def send(**more):
        file = SimpleUploadedFile("scores.csv", "\n".join(lines).encode())
        answer = client.post(uploads, {"files": file, **more})
        assert answer.status_code == 302, answer.content.decode()
        upload = Upload.objects.latest("pk")
        execute_run(upload.run_id)
        upload.refresh_from_db()
        return upload

    upload = send()
    assert upload.state == "done", list(upload.faults.all())
    shown = client.get(f"/projects/{project.slug}/evaluators/comet/").content.decode()
    assert "Scores from outside, uploaded by" in shown
    for words in (cast.researcher.username, "scores.csv", "the scores are negated", "Upload again"):
        assert words in shown
    assert "Apply again" not in shown
    assert client.get(f"/projects/{project.slug}/evaluators/apply/comet/").status_code == 400
    listed = client.get(f"/projects/{project.slug}/evaluators/").content.decode()
    assert "external" in listed
    board = client.get(f"/projects/{project.slug}/systems/?by=comet").content.decode()
    assert "its values are negated" in board
    metrics = client.get(f"/projects/{project.slug}/evaluation/?aspect=quality").content.decode()
    assert "negated: lower is better" in metrics
    # Another score needs the choice to replace.
    lines[1] = lines[1].replace(",false", "1,false")
    assert send().state == "faulty"
    assert send(replace="on").state == "done"
    deleted = client.get(f"/projects/{project.slug}/evaluators/comet/scores/delete/").content.decode()
    assert "upload the scores again" in deleted


def test_folder_of_mt_metrics_eval_and_a_wide_table(tmp_path, db):
    folder = make_metrics_folder(tmp_path)
    out = io.StringIO()
    call_command("load", str(folder), "--propose", "--map", str(tmp_path / "map.json"), stdout=out, stderr=out)
    load(folder, "wmt", "--map", str(tmp_path / "map.json"))
    project = Project.objects.get(slug="wmt")
    sets = {row.evaluator.slug: row for row in ScoreSet.objects.filter(project=project)}
    assert {slug: row.n_scores for slug, row in sets.items()} == {"bleu-refa": 0, "comet-src": 3}
    assert [row["value"] for row in sets["bleu-refa"].systems] == [31.5, 12]
    assert sets["bleu-refa"].references == "original"
    board = get_leaderboard(project=project, query=SystemsQuery(by="bleu-refa")).table
    assert [(row["system"], row["value"]) for row in board["rows"]] == [("gpt", 31.5), ("llama", 12)]
    # A wide table with another metric for the same items.
    (tmp_path / "wide.csv").write_text("id,gpt_chrf,llama_chrf\n1,50,20\n2,60,10\n")
    mapping = {"shape": "wide", "columns": {"item": "id"}, "scores": [{"pattern": "{system}_{evaluator}"}]}
    (tmp_path / "wide.json").write_text(json.dumps(mapping))
    load(tmp_path / "wide.csv", "wmt", "--map", str(tmp_path / "wide.json"))
    found = ScoreSet.objects.get(project=project, evaluator__slug="chrf-external")
    assert [row["mean"] for row in found.summary] == [55, 15]
    (tmp_path / "wide.csv").write_text("id,gpt_chrf,llama_chrf\n1,50,many\n9,60,10\n")
    with pytest.raises(SystemExit):
        load(tmp_path / "wide.csv", "wmt", "--map", str(tmp_path / "wide.json"))
