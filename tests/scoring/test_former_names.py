"""Automatic selection of references was called "annotate" before 0.2.0: stored rows and former names still work."""

from __future__ import annotations

import importlib

import pytest
from django.apps import apps
from django.core.management import get_commands, load_command_class

from annotation.models import ReferenceSet
from evalapp.common.jobs import get_job
from evalapp.common.models import Run
from scoring.selectors.reference_sets import get_kind, sets_chosen_by
from tests.scoring.reference_selection import SeeThrough, fill_references, see_through

pytestmark = pytest.mark.django_db
migration = importlib.import_module("scoring.migrations.0007_reference_selection")


def test_stored_runs_are_renamed_and_back(cast):
    runs = [
        Run.objects.create(project=cast.project, kind=kind, input_hash=kind)
        for kind in ("annotate", "annotate-preview", "score")
    ]
    for change, expected in (
        (migration.rename_runs, ["select-references", "preview-references", "score"]),
        (migration.restore_runs, ["annotate", "annotate-preview", "score"]),
    ):
        change(apps, None)
        rows = Run.objects.filter(pk__in=[run.pk for run in runs]).order_by("pk")
        assert list(rows.values_list("kind", flat=True)) == expected


def test_former_kind_starts_a_run_of_the_new_kind(cast, monkeypatch):
    fill_references(cast.project)
    see_through(monkeypatch, cast.project, judge=[SeeThrough("judge")])
    run = get_job("annotate").ask(project=cast.project, user=cast.owner, params={"evaluator": "judge", "into": "new"})
    assert run.kind == "select-references"
    again = get_job("select-references").ask(
        project=cast.project, user=cast.owner, params={"evaluator": "judge", "into": "new"}
    )
    assert again == run


def test_former_command_has_the_same_options():
    former, new = (load_command_class(get_commands()[name], name) for name in ("annotate", "select_references"))
    options = [
        {flag for action in command.create_parser("manage.py", "x")._actions for flag in action.option_strings}
        for command in (former, new)
    ]
    assert options[0] == options[1]


def test_set_of_version_0_1_is_a_selected_one(cast):
    row = ReferenceSet.objects.create(project=cast.project, name="old", meta={"kind": "annotate", "evaluator": "judge"})
    assert get_kind(row) == "selected"
    assert sets_chosen_by(cast.project, "judge") == [row]
