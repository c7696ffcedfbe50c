"""Trainings of a project that learn from further projects as well: permission, what counts as seen, and the record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from annotation.models import Aspect, Item
from evalapp.accounts.models import Membership, Project
from evalapp.common.errors import BadInput
from evalapp.common.models import AuditEvent, Run
from evalapp.common.runner import execute_run
from scoring.ml import load
from scoring.ml.registry import get_entry
from scoring.models import Evaluator, ScoreSet
from scoring.pipelines.train import check_training
from scoring.selectors.training import artefact_folder
from scoring.services.training import TrainingOptions, plan_params, start_check, start_checked, start_training
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.training import fill, train

pytestmark = pytest.mark.django_db
QUICK = {"frozen": True, "epochs": 1}


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> None:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"


@pytest.fixture
def other(toy) -> Project:
    """A project of 12 items: those of the toy project's first four items, and eight with content of their own."""
    project = Project.objects.create(slug="other", name="Other data")
    fill(project)
    for item in Item.objects.filter(project=project, key__gte="i004"):
        item.context = [f"Elsewhere {item.key}"]
        item.save()
    return project


def test_groups_of_both_are_learned_from_and_nothing_that_is_held_out(toy, other):
    found = train(toy.project, folds=1, projects=("other",))
    model = found.record["models"][0]
    [row] = model["sets"]
    assert (row["name"], row["groups"] + row["dev_groups"] + row["left_out"]) == ("other", 12)
    scorer = load(artefact_folder(found))
    seen = scorer.trained_on
    # A group of the other project with content of this one is where this one's is; held out here, it is left out.
    shared = {f"g{k:03d}" for k in range(4)}
    assert {f"other/{group}" for group in shared} & seen == {f"other/{group}" for group in shared & seen}
    assert row["left_out"] == len(shared - seen)
    assert f"|train:{toy.project.name}+other@" in found.signature
    card = (artefact_folder(found) / "card.md").read_text(encoding="utf-8")
    assert f"| Also learned from other | {row['groups']} groups, {row['dev_groups']} held out" in card


def test_folds_leave_the_content_of_their_fold_out(toy, other):
    found = train(toy.project, folds=3, projects=("other",))
    members = load(artefact_folder(found)).members
    for k in range(4):
        saw = [f"g{k:03d}" in member.trained_on for member in members]
        assert saw == [f"other/g{k:03d}" in member.trained_on for member in members]
        assert saw.count(False) == 1
    assert all(f"other/g{k:03d}" in member.trained_on for k in range(4, 12) for member in members)


def test_heads_of_further_projects_are_recorded_and_not_scored_here(toy, other, tmp_path):
    encoder = tiny_encoder("bert", tmp_path / "encoder")
    options = TrainingOptions("ridge", folds=2, encoder=encoder, projects=("other",), apply=True)
    run = execute_run(start_training(project=toy.project, options=options, send=False, any_encoder=True).pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    found = Evaluator.objects.get(run=run)
    assert found.record["aspects"] == ["quality", "quality (other)"]
    execute_run(run.result["score_run"])
    assert list(ScoreSet.objects.filter(evaluator=found).values_list("aspect", flat=True)) == ["quality"]


def test_dry_check_counts_further_projects(toy, other):
    params = plan_params(toy.project, TrainingOptions("toy", folds=1, options=QUICK, projects=("other",)))
    alone = plan_params(toy.project, TrainingOptions("toy", folds=1, options=QUICK))
    plan = check_training(toy.project, **params)
    assert plan["sets"][0].startswith("other: ")
    assert sum(plan["examples"].values()) > sum(check_training(toy.project, **alone)["examples"].values())


@pytest.mark.parametrize("role", ["annotator", None])
def test_further_project_must_be_readable(toy, other, role):
    if role:
        Membership.objects.create(project=other, user=toy.researcher, role=role, pseudonym="r7")
    with pytest.raises(BadInput) as refused:
        start_check(
            project=toy.project, user=toy.researcher, options=TrainingOptions("toy", projects=("other",)), send=False
        )
    assert [fault.field for fault in refused.value.faults] == ["projects"]
    assert ("not found" in refused.value.detail) is (role is None)


def test_permission_is_checked_again_when_the_run_starts(toy, other):
    member = Membership.objects.create(project=other, user=toy.researcher, role="viewer", pseudonym="r7")
    options = TrainingOptions("toy", folds=1, options=QUICK, projects=("other",))
    check = execute_run(start_check(project=toy.project, user=toy.researcher, options=options, send=False).pk)
    assert check.state == Run.State.SUCCEEDED, check.error
    run = start_checked(project=toy.project, user=toy.researcher, check=check)
    assert run.params["projects"] == ["other"]
    assert AuditEvent.objects.filter(project=other, verb="data.learned", object=f"{toy.project.slug}/toy-1").exists()
    member.delete()
    run = execute_run(run.pk)
    assert (run.state, run.error) == (Run.State.FAILED, "Project “other” not found.")


@pytest.mark.parametrize(
    ("change", "evaluator", "text"),
    [
        ({"low": 1, "high": 6}, "ream", "It rates “quality” from 1 to 6, {here} from 1 to 5: one aspect needs one"),
        ({"name": "fluency"}, "ream", "It has no ratings of “quality”."),
    ],
)
def test_aspect_must_be_the_same_for_an_evaluator_of_one_aspect(toy, other, change, evaluator, text):
    Aspect.objects.filter(project=other).update(**change)
    with pytest.raises(BadInput) as refused:
        plan_params(toy.project, TrainingOptions(evaluator, projects=("other",)))
    assert text.format(here=toy.project.slug) in refused.value.detail


def test_project_without_judgements_is_refused(toy):
    Project.objects.create(slug="empty", name="Empty")
    with pytest.raises(BadInput, match="ridge cannot learn from empty"):
        plan_params(toy.project, TrainingOptions("ridge", projects=("empty",)))


@pytest.mark.parametrize("names", [("other", "other"), ("here",)])
def test_project_named_twice_is_refused(toy, other, names):
    names = tuple(toy.project.slug if name == "here" else name for name in names)
    with pytest.raises(BadInput, match="is named twice"):
        plan_params(toy.project, TrainingOptions("toy", projects=names))


def test_command_takes_several_projects(toy, other, capsys):
    arguments = ["train", "toy", "--project", toy.project.slug, "--project", "other", "--folds", "1", "--check"]
    call_command(*arguments, "--set", "frozen=yes", "--json")
    assert json.loads(capsys.readouterr().out)["plan"]["sets"][0].startswith("other: ")


def test_programs_name_a_project_by_keyword(toy, capsys):
    call_command("train", "toy", project=toy.project.slug, folds=1, check=True, set=[("frozen", "yes")], json=True)
    assert json.loads(capsys.readouterr().out)["plan"]["sets"] == []


def test_page_offers_readable_projects(toy, other, client):
    client.force_login(toy.researcher)
    address = f"/projects/{toy.project.slug}/evaluators/train/{get_entry('ridge').name}/"
    assert "Further projects" not in client.get(address).content.decode()
    Membership.objects.create(project=other, user=toy.researcher, role="viewer", pseudonym="r7")
    assert "Other data" in client.get(address).content.decode()
    form = {"profile": "recommended", "folds": "2", "seed": "13", "name": "", "projects": "other"}
    check = client.post(address, form)
    run = Run.objects.get(kind="plan")
    assert run.params["projects"] == ["other"]
    run = execute_run(run.pk)
    page = client.get(check["Location"].partition("#")[0]).content.decode()
    assert run.state == Run.State.SUCCEEDED, run.error
    assert "Further project other: " in page
