"""The form of a training: what an option can be given, and what comes back of it."""

from __future__ import annotations

import pytest

from scoring.ml.registry import get_entry
from scoring.services.training import plan_params
from scoring.train_form import TrainForm, initial_from
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db


def test_an_option_that_a_profile_sets_may_be_none(cast):
    """Fields of numbers took no "none": all references, or training without early stop, could be had elsewhere only."""
    items = make_items(cast.project, 4)
    make_ratings(cast.project, make_outputs(cast.project, items))
    for name, option in (("shared-bert", "max_references"), ("ream", "patience"), ("adem", "patience")):
        entry = get_entry(name)
        plain = {"profile": "recommended", "aspect": "quality", "folds": 2, "seed": 13, "name": "", "references": ""}

        def params(value, entry=entry, option=option, plain=plain):
            form = TrainForm({**plain, f"option_{option}": value}, project=cast.project, entry=entry)
            assert form.is_valid(), form.errors
            return plan_params(cast.project, form.wishes())

        assert params("none")["options"][option] is None
        assert params("7")["options"][option] == 7
        assert params("")["options"][option] == entry.train_defaults("recommended")[option]
        again = initial_from(entry, params("none"))
        assert again[f"option_{option}"] == "none"
        assert params(again[f"option_{option}"])["options"][option] is None
        assert f"option_{option}" not in initial_from(entry, params(""))
        assert "Or write none." in str(TrainForm(project=cast.project, entry=entry)[f"option_{option}"].help_text)


def test_what_needs_no_judgements_needs_no_aspect(cast):
    """`comparative` learns from people's and machines' texts in a project where nobody judged anything: the form asked
    for an aspect, and there was none to choose."""
    make_outputs(cast.project, make_items(cast.project, 4))
    entry = get_entry("comparative")
    asked = {"profile": "recommended", "folds": 2, "seed": 13, "name": ""}
    form = TrainForm(asked, project=cast.project, entry=entry)
    assert form.is_valid(), form.errors
    assert plan_params(cast.project, form.wishes())["aspect"] == ""
    assert not TrainForm(asked, project=cast.project, entry=get_entry("ream")).is_valid()
    make_ratings(cast.project, [])
    shown = str(TrainForm(project=cast.project, entry=entry)["aspect"])
    assert shown.index("quality") < shown.index("none, or the only one")
