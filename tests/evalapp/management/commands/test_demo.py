"""`demo`: filled once, left alone afterwards, recreated on request."""

from __future__ import annotations

import io
import json
import shutil

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Campaign, Item, Output, Rating
from evalapp.accounts.models import Membership, Project, User
from evalapp.common.models import Run
from evalapp.management.commands import demo
from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.aspects.query import AspectsQuery
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.pairs.query import PairsQuery
from scoring.boards.slices.query import SlicesQuery
from scoring.boards.systems.query import SystemsQuery
from scoring.selectors.leaderboards import compute_stamp, find_leaderboard

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture(scope="module")
def thin_files(demo_files, tmp_path_factory):
    """The demonstration's data with every twentieth judgement: storing all takes most of the time."""
    folder = tmp_path_factory.mktemp("thin")
    shutil.copytree(demo_files, folder, dirs_exist_ok=True)
    for name in ("ratings.jsonl", "comparisons.jsonl"):
        lines = (folder / name).read_text("utf-8").splitlines(keepends=True)
        (folder / name).write_text("".join(lines[::20]), "utf-8")
    return folder


@pytest.fixture(autouse=True)
def _quick(monkeypatch, thin_files):
    """Limits the evaluators to two and waits for no worker."""
    monkeypatch.setattr(
        "evalapp.demo.build.build", lambda folder: shutil.copytree(thin_files, folder, dirs_exist_ok=True)
    )
    monkeypatch.setattr(demo, "EVALUATORS", ("length", "random"))
    monkeypatch.setattr(demo.Command, "_wait_for_worker", lambda self: False)
    monkeypatch.setattr(demo, "PATIENCE_FOR_SCORES", 0.0)


def run(*arguments: str) -> dict:
    out = io.StringIO()
    call_command("demo", *arguments, "--json", stdout=out, stderr=io.StringIO())
    return json.loads(out.getvalue())


def test_fills_keeps_and_recreates():
    first = run()
    assert sorted(first["passwords"]) == ["annotator", "owner", "researcher"]
    assert User.objects.get(username="annotator").check_password(first["passwords"]["annotator"])
    project = Project.objects.get(slug="demo")
    roles = dict(Membership.objects.filter(project=project).values_list("user__username", "role"))
    assert roles == {"owner": "owner", "researcher": "researcher", "annotator": "annotator"}
    assert Output.objects.filter(project=project).count() > 1000
    assert Campaign.objects.filter(project=project, state="open").count() == 3
    assert list(Run.objects.filter(kind="score").values_list("state", flat=True)) == ["succeeded"] * 2
    # Pages of leaderboards find their tables ready, however large.
    for name, query in {
        "systems": SystemsQuery(), "evaluation": EvaluatorsQuery(), "agreement": AgreementQuery(),
        "evaluation/aspects": AspectsQuery(), "evaluation/slices": SlicesQuery(), "evaluation/matrix": MatrixQuery(),
        "evaluation/pairs": PairsQuery(),
    }.items():  # fmt: skip
        kept = find_leaderboard(project, query)
        assert kept is not None, name
        assert kept.stamp == compute_stamp(project, query), name
    ratings = Rating.objects.filter(project=project).count()
    assert ratings > 100

    second = run()
    assert second == {"project": "demo", "loaded": False, "passwords": {}, "runs": []}
    assert Rating.objects.filter(project=project).count() == ratings

    third = run("--reset")
    assert third["loaded"] is True
    assert not User.objects.get(username="owner").check_password(first["passwords"]["owner"])
    assert Project.objects.get(slug="demo").pk != project.pk


def test_own_folder(tmp_path, monkeypatch):
    """It has no references: evaluators that need some are skipped with a message, later ones are applied."""
    monkeypatch.setattr(demo, "EVALUATORS", ("chrf", "length"))
    folder = tmp_path / "My data"
    folder.mkdir()
    (folder / "items.jsonl").write_text('{"id": "i1", "context": ["Hello?"]}\n')
    (folder / "outputs.jsonl").write_text('{"item": "i1", "system": "s", "text": "Hello."}\n')
    told = io.StringIO()
    call_command("demo", "--data", str(folder), stdout=io.StringIO(), stderr=told)
    assert "chrf: skipped. " in told.getvalue()
    assert [run.params["evaluator"] for run in Run.objects.filter(kind="score")] == ["length"]
    assert Output.objects.filter(project__slug="my-data").count() == 1
    assert not Campaign.objects.exists()


def test_foreign_account_is_left_alone():
    User.objects.create_user("owner", password="mine-and-mine-only")
    for arguments in ((), ("--reset",)):
        with pytest.raises(CommandError, match="does not belong to the demonstration"):
            run(*arguments)
    assert not Project.objects.exists(), "nor is a project made in their name"
    assert User.objects.get(username="owner").check_password("mine-and-mine-only")
    User.objects.filter(username="owner").update(username="annotator")
    with pytest.raises(CommandError, match="nothing was changed"):
        run("--reset")
    assert list(User.objects.values_list("username", flat=True)) == ["annotator"]


@pytest.mark.parametrize("reset", [(), ("--reset",)])
def test_foreign_project_of_that_name_is_left_alone(cast, tmp_path, reset):
    """Once, people of the demonstration became its owners, its data were added, and `--reset` deleted it."""
    folder = tmp_path / "alpha"
    folder.mkdir()
    (folder / "items.jsonl").write_text('{"id": "i1", "context": ["Hello?"]}\n')
    members = set(Membership.objects.values_list("project", "user"))
    with pytest.raises(CommandError, match="“alpha”"):
        run("--data", str(folder), *reset)
    Project.objects.filter(slug="alpha").update(slug="demo")
    with pytest.raises(CommandError, match="“demo”"):
        run(*reset)
    assert set(Membership.objects.values_list("project", "user")) == members
    assert not User.objects.filter(username="owner").exists()
    assert not Item.objects.exists()


def test_worker_gets_trainings_to_apply(monkeypatch):
    monkeypatch.setattr(demo.Command, "_wait_for_worker", lambda self: True)
    # The data of these tests are too few for ream.
    monkeypatch.setattr("scoring.pipelines.train.check_training", lambda project, **params: {})
    first = run()
    trainings = {training.params["evaluator"]: training for training in Run.objects.filter(kind="train")}
    assert set(trainings) == {name for name, _ in demo.TRAININGS}
    assert {training.pk for training in trainings.values()} <= set(first["runs"])
    assert {(training.state, training.params["apply"]) for training in trainings.values()} == {("queued", True)}
    # The five of the papers come before the rival.
    assert [training.params["evaluator"] for training in sorted(trainings.values(), key=lambda one: one.pk)][
        -1
    ] == "adem"
    assert trainings["adem"].params["folds"] == 5
    assert trainings["ream"].params["options"]["foreign"] == 5
    assert trainings["shared-bert"].params["folds"] == 2
    assert trainings["shared-bert"].params["options"]["epochs"] == 2
    assert run()["runs"] == []
