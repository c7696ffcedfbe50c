"""Systems are listed in natural order: m2 before m10, on every database (FAULTS F2)."""

from __future__ import annotations

import random

import pytest
from django.urls import reverse

from annotation.models import System
from annotation.selectors.data import list_system_names, list_systems
from evalapp.common.pagination import page_of_list
from tests.taking import take_in

NAMES = ["1", "2", "10", "B2", "a", "m", "m1", "m2", "m2b10", "m10", "m10a", "é2", "é10"]


def test_list_pages_link_forward_and_back():
    rows = list(range(7))
    first = page_of_list(rows, size=3)
    assert (first.rows, first.previous) == ([0, 1, 2], None)
    second = page_of_list(rows, cursor=first.next, size=3)
    last = page_of_list(rows, cursor=second.next, size=3)
    assert (second.rows, last.rows, last.next) == ([3, 4, 5], [6], None)
    assert page_of_list(rows, cursor=last.previous, size=3).rows == [3, 4, 5]
    assert page_of_list([], size=3).rows == []


@pytest.mark.django_db
def test_pages_use_natural_order(cast, client):
    outputs = [{"item": "i1", "system": name, "text": "t"} for name in random.Random(5).sample(NAMES, len(NAMES))]
    assert take_in(cast.project, {"items.jsonl": [{"id": "i1"}], "outputs.jsonl": outputs}).state == "done"
    assert [system.name for system in list_systems(cast.project)] == list_system_names(cast.project) == NAMES
    client.force_login(cast.owner)
    page = client.get(reverse("annotation:system-list", args=["alpha"]))
    assert [system.name for system in page.context["page"].rows] == NAMES
    item = cast.project.items.get()
    shown = client.get(reverse("annotation:item-show", args=["alpha", item.pk]))
    assert [row.output.system.name for row in shown.context["view"].outputs] == NAMES
    assert System.objects.filter(project=cast.project).count() == len(NAMES)
