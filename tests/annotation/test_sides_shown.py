"""The migration that adds the first-shown side to older campaign comparisons."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from annotation.models import Comparison
from annotation.services.judging import get_next_assignment
from tests.annotation.services.judging_helpers import open_for, send


@pytest.mark.django_db
def test_older_comparisons_get_the_side_shown_first(cast):
    campaign = open_for(cast, "pairwise", items=12)
    while found := get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown:
        send(cast.annotator, campaign, found.public)
    kept = dict(Comparison.objects.values_list("pk", "meta"))
    assert {True} < {meta.get("swapped") for meta in kept.values()}
    Comparison.objects.update(meta={"propensity": 0.5})
    uploaded = Comparison.objects.first()
    Comparison.objects.filter(pk=uploaded.pk).update(judgement=None)
    import_module("annotation.migrations.0007_sides_shown").fill(apps, None)
    found = dict(Comparison.objects.values_list("pk", "meta"))
    assert found.pop(uploaded.pk) == {"propensity": 0.5}
    assert found == {pk: {"propensity": 0.5, **kept[pk]} for pk in found}
