"""Systems are listed as people count: m2 before m10, on every database (FAULTS F2)."""

from __future__ import annotations

import random

import pytest
from django.urls import reverse

from annotation.models import System
from annotation.selectors.data import list_systems, system_names
from evalapp.common.pagination import page_of_list
from evalapp.names import natural_key
from tests.taking import take_in

NAMES = ["1", "2", "10", "B2", "a", "m", "m1", "m2", "m2b10", "m10", "m10a", "é2", "é10"]


def test_the_key_sorts_as_people_count():
    mixed = random.Random(3).sample(NAMES, len(NAMES))
    assert sorted(mixed, key=natural_key) == ["1", "2", "10", "B2", "a", "m", "m1", "m2", "m2b10", "m10", "m10a",
                                              "é2", "é10"]  # fmt: skip
    # Equal numbers written otherwise have one order, whatever came first.
    assert sorted(["m02", "m2"], key=natural_key) == sorted(["m2", "m02"], key=natural_key)


def test_pages_of_a_list_lead_on_and_back():
    rows = list(range(7))
    first = page_of_list(rows, size=3)
    assert (first.rows, first.previous) == ([0, 1, 2], None)
    second = page_of_list(rows, cursor=first.next, size=3)
    last = page_of_list(rows, cursor=second.next, size=3)
    assert (second.rows, last.rows, last.next) == ([3, 4, 5], [6], None)
    assert page_of_list(rows, cursor=last.previous, size=3).rows == [3, 4, 5]
    assert page_of_list([], size=3).rows == []


@pytest.mark.django_db
def test_pages_list_them_so(cast, client):
    outputs = [{"item": "i1", "system": name, "text": "t"} for name in random.Random(5).sample(NAMES, len(NAMES))]
    assert take_in(cast.project, {"items.jsonl": [{"id": "i1"}], "outputs.jsonl": outputs}).state == "done"
    assert [system.name for system in list_systems(cast.project)] == system_names(cast.project) == NAMES
    client.force_login(cast.owner)
    page = client.get(reverse("annotation:system-list", args=["alpha"]))
    assert [system.name for system in page.context["page"].rows] == NAMES
    item = cast.project.items.get()
    shown = client.get(reverse("annotation:item-show", args=["alpha", item.pk]))
    assert [row.output.system.name for row in shown.context["view"].outputs] == NAMES
    ids = ["q10", "q2", "q1", "q1b"]
    take_in(cast.project, {"items.jsonl": [{"id": key, "context": ["said"]} for key in ids]})
    for query in ("", "?q=said&scope=context"):
        listed = client.get(reverse("annotation:item-list", args=["alpha"]) + query).context["rows"]
        assert [item.key for item, _ in listed if item.key != "i1"] == ["q1", "q1b", "q2", "q10"]
    q2 = cast.project.items.get(key="q2")
    shown = client.get(reverse("annotation:item-show", args=["alpha", q2.pk])).context
    keys = dict(cast.project.items.values_list("pk", "key"))
    assert (keys[shown["before"]], keys[shown["after"]]) == ("q1b", "q10")
    assert System.objects.filter(project=cast.project).count() == len(NAMES)
