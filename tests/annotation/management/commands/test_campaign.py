from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Campaign, Reference, ReferenceSet, WritingCampaign
from tests.factories import make_items, make_outputs

PLANS = [
    {"name": "Naturalness", "kind": "likert", "aspects": ["natural"], "overlap": 2},
    {"name": "Better", "kind": "pairwise", "aspects": ["better"]},
]


@pytest.fixture
def project(cast):
    make_outputs(cast.project, make_items(cast.project, 3))
    return cast.project


def run(tmp_path, plans, *options):
    path = tmp_path / "plan.json"
    path.write_text(plans if isinstance(plans, str) else json.dumps(plans))
    out = StringIO()
    call_command("campaign", "alpha", str(path), "--json", *options, stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def test_plans_open_campaigns_and_repeating_changes_nothing(tmp_path, project):
    found = run(tmp_path, PLANS, "--open")
    assert [(row["slug"], row["state"], row["units"], row["slots"]) for row in found["campaigns"]] == [
        ("naturalness", "open", 6, 12), ("better", "open", 3, 3),
    ]  # fmt: skip
    again = run(tmp_path, PLANS, "--open")
    assert [row["kept"] for row in again["campaigns"]] == [True, True]
    assert Campaign.objects.count() == 2


def test_draft_is_opened_later(tmp_path, project):
    assert run(tmp_path, PLANS[0])["campaigns"][0]["state"] == "draft"
    assert run(tmp_path, PLANS[0], "--open", "--as", "rita")["campaigns"][0]["state"] == "open"


@pytest.mark.parametrize("plans", ["no json", {"name": "x"}])
def test_errors_end_with_exit_code_1(tmp_path, project, plans):
    with pytest.raises(CommandError) as caught:
        run(tmp_path, plans)
    assert caught.value.returncode == 1
    assert not Campaign.objects.exists()


def test_unknown_project_and_file(tmp_path, project):
    with pytest.raises(CommandError, match="no project"):
        call_command("campaign", "nowhere", "plan.json")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("campaign", "alpha", str(tmp_path / "none.json"))


def test_writing_plan_opens_with_the_judging_plans(tmp_path, project):
    plan = {
        "name": "Other words", "kind": "constraint",
        "options": {"constraint": "free", "instruction": "Another one.", "target": 1},
    }  # fmt: skip
    found = run(tmp_path, [PLANS[0], plan], "--open")["campaigns"]
    assert [(row["slug"], row["state"]) for row in found] == [("naturalness", "open"), ("other-words", "open")]
    assert found[1]["items"] == 3
    again = run(tmp_path, [PLANS[0], plan], "--open")["campaigns"]
    assert [row["kept"] for row in again] == [True, True]
    assert WritingCampaign.objects.count() == 1
    assert not Reference.objects.filter(set=ReferenceSet.objects.get(name="other-words")).exists()


def test_invalid_writing_plan_names_its_errors(tmp_path, project):
    with pytest.raises(CommandError, match="minimally-wrong") as caught:
        run(tmp_path, [{"name": "x", "kind": "constraint", "options": {"constraint": "rhyme"}}])
    assert caught.value.returncode == 1
    assert not WritingCampaign.objects.exists()
