"""Items: search, filters, one item side by side, kinds of systems; few queries at any size."""

from __future__ import annotations

import pytest
from django.urls import reverse

from annotation.models import Item, System
from tests.factories import make_items, make_outputs, make_ratings
from tests.taking import COMPARISONS, ITEMS, OUTPUTS, RATINGS, WHOLE, take_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client, cast):
    client.force_login(cast.viewer)
    return client


def found(client, **query) -> list[str]:
    page = client.get(reverse("annotation:item-list", args=["alpha"]), query)
    assert page.status_code == 200
    return [item.key for item, _ in page.context["rows"]]


def test_search_and_filters(viewer, cast):
    more = [{"id": "i3", "context": ['She said "no" – twice'], "group": "h", "meta": {"d": "x", "n": 3, "ok": True}}]
    take_in(cast.project, {**WHOLE, "items.jsonl": [*ITEMS, *more], "ratings.jsonl": RATINGS[:1]})
    assert found(viewer) == ["i1", "i2", "i3"]
    assert found(viewer, q="hello") == ["i1"]
    assert found(viewer, q="FACT") == ["i2"]
    assert found(viewer, q='"no" –') == ["i3"]
    assert found(viewer, q="day", scope="output") == ["i1"]
    assert found(viewer, q="I3", scope="id") == ["i3"]
    assert found(viewer, group="h") == ["i3"]
    assert found(viewer, meta="d=x") == ["i1", "i3"]
    assert found(viewer, meta="n=3") == found(viewer, meta="ok=true") == ["i3"]
    assert found(viewer, meta="d=y") == []
    assert found(viewer, system="t") == ["i1"]
    assert found(viewer, rated="yes") == ["i1"]
    assert found(viewer, rated="no") == ["i2", "i3"]
    assert found(viewer, q="hello", rated="no") == []
    page = viewer.get(reverse("annotation:item-list", args=["alpha"]), {"meta": "nonsense"})
    assert page.status_code == 400


def test_empty_project_shows_how_to_start(viewer):
    page = viewer.get(reverse("annotation:item-list", args=["alpha"]))
    assert b"No items yet." in page.content
    assert b"evalapp load" in page.content


def test_one_item_side_by_side(viewer, cast):
    turing = {**COMPARISONS[0], "system_b": {"reference": 1}, "verdict": "a"}
    second = {**RATINGS[0], "rater": "q", "value": 1, "simulated": True}
    take_in(cast.project, {**WHOLE, "ratings.jsonl": [*RATINGS, second], "comparisons.jsonl": [*COMPARISONS, turing]})
    item = Item.objects.get(key="i1")
    page = viewer.get(reverse("annotation:item-show", args=["alpha", item.pk]))
    view = page.context["view"]
    assert [row.output.system.name for row in view.outputs] == ["s", "t"]
    assert view.outputs[0].ratings == {"quality": {"mean": 2.5, "n": 2, "simulated": True}}
    assert [(pair["b"], pair["reference"], pair["n"]) for pair in view.comparisons] == [(None, 1, 1), ("t", None, 1)]
    text = page.content.decode()
    for part in ("Hello?", "Hi.", "Good day.", "2.50", "simulated", "reference 1"):
        assert part in text
    assert reverse("scoring:item-scores", args=["alpha", item.pk]) in text
    assert page.context["before"] is None
    assert page.context["after"] == Item.objects.get(key="i2").pk


def test_user_text_is_escaped(viewer, cast):
    evil = "<script>alert(1)</script>"
    take_in(cast.project, {"items.jsonl": [{"id": evil, "context": [evil], "references": [evil], "meta": {evil: evil}}],
                           "outputs.jsonl": [{"item": evil, "system": evil, "text": evil}]})  # fmt: skip
    for address in (
        reverse("annotation:item-list", args=["alpha"]),
        reverse("annotation:item-show", args=["alpha", Item.objects.get().pk]),
        reverse("annotation:system-list", args=["alpha"]),
    ):
        assert b"<script>alert" not in viewer.get(address).content


def test_kinds_of_systems_are_set_on_a_page(client, cast):
    take_in(cast.project, {"items.jsonl": ITEMS, "outputs.jsonl": OUTPUTS})
    system = System.objects.get(name="t")
    address = reverse("annotation:system-kind", args=["alpha", system.pk])
    client.force_login(cast.viewer)
    assert client.post(address, {"kind": "human"}).status_code == 403
    client.force_login(cast.researcher)
    assert client.post(address, {"kind": "human"}).status_code == 302
    system.refresh_from_db()
    assert (system.kind, system.declared) == ("human", True)
    assert client.post(address, {"kind": "robot"}).status_code == 400
    assert b"human" in client.get(reverse("annotation:system-list", args=["alpha"])).content


@pytest.mark.parametrize("n", [200, 2000])
def test_few_queries_at_any_size(viewer, cast, n, django_assert_max_num_queries):
    items = make_items(cast.project, 3)
    make_ratings(cast.project, make_outputs(cast.project, items))
    Item.objects.bulk_create(Item(project=cast.project, key=f"x{k:05d}", context=["a"], group=str(k)) for k in range(n))
    with django_assert_max_num_queries(15):
        page = viewer.get(reverse("annotation:item-list", args=["alpha"]))
    assert len(page.context["rows"]) == 50
    with django_assert_max_num_queries(15):
        viewer.get(reverse("annotation:item-show", args=["alpha", items[0].pk]))
    with django_assert_max_num_queries(15):
        viewer.get(reverse("annotation:system-list", args=["alpha"]))


def test_pages_link_to_each_other(viewer, cast):
    Item.objects.bulk_create(Item(project=cast.project, key=f"x{k:03d}", context=["a"], group="g") for k in range(120))
    first = viewer.get(reverse("annotation:item-list", args=["alpha"]))
    second = found(viewer, cursor=first.context["page"].next)
    assert second[0] == "x050"
    assert second[-1] == "x099"


def test_permissions(client, cast):
    take_in(cast.project, {"items.jsonl": ITEMS})
    pk = Item.objects.first().pk
    addresses = [reverse("annotation:item-list", args=["alpha"]), reverse("annotation:item-show", args=["alpha", pk]),
                 reverse("annotation:system-list", args=["alpha"])]  # fmt: skip
    for person, status in ((cast.annotator, 403), (cast.stranger, 404), (cast.owner, 200)):
        client.force_login(person)
        assert [client.get(address).status_code for address in addresses] == [status] * 3
    client.force_login(cast.stranger)
    assert client.get(reverse("annotation:item-show", args=["alpha-foreign", pk])).status_code == 404


def test_meta_key_named_like_a_method_is_shown(viewer, cast):
    """In a template, `meta.items` returns the value of the key “items”, which breaks the loop over the other keys."""
    meta = {"items": "several", "keys": "two", "domain": "hotel"}
    take_in(cast.project, {"items.jsonl": [{"id": "i1", "context": ["Hello?"], "meta": meta}]})
    page = viewer.get(reverse("annotation:item-show", args=["alpha", Item.objects.get().pk])).content.decode()
    for name, value in meta.items():
        assert name in page
        assert value in page
