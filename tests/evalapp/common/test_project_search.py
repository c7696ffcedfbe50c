"""The search in a project: every kind of object, nothing of other projects, and few queries."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import WritingCampaign
from annotation.services.campaigns import create_campaign
from evalapp.common.errors import BadInput
from evalapp.common.project_search import LIMIT, search_project
from tests.cast import make_cast
from tests.factories import make_items, make_outputs


def search(project, query):
    return {str(kind): [match.title for match in matches] for kind, matches in search_project(project, query)}


def test_items_are_found_by_id_context_and_output(cast):
    items = make_items(cast.project, 3)
    outputs = make_outputs(cast.project, items, ("one", "two"))
    outputs[0].text = "a needle in the hay"
    outputs[0].save()
    items[1].context = ["Where is the needle?"]
    items[1].save()
    assert set(search(cast.project, "needle")["Items"]) == {items[0].key, items[1].key}
    assert search(cast.project, items[2].key)["Items"] == [items[2].key]
    assert search(cast.project, "two")["Systems"] == ["two"]
    assert "Items" not in search(cast.foreign, "needle")


def test_evaluators_people_runs_and_help(cast):
    assert "bertscore" in search(cast.project, "bertsc")["Evaluators"]
    assert search(cast.project, "p-anna")["People"] == ["p-anna"]
    assert "People" not in search(cast.foreign, "p-anna")
    assert any("Agreement" in title for title in search(cast.project, "krippendorff")["Help"])
    assert search(cast.project, "  ") == {}
    with pytest.raises(BadInput):
        search_project(cast.project, "a\0b")


def test_campaigns_of_both_kinds_are_found(cast):
    plan = {"name": "Quick look", "kind": "likert", "aspects": [{"name": "quality", "low": 1, "high": 5}]}
    campaign = create_campaign(project=cast.project, user=cast.researcher, plan=plan)
    WritingCampaign.objects.create(project=cast.project, name="Look again", slug="again")
    kinds = dict(search_project(cast.project, "look"))
    titles = {
        match.title: match.url for kind, matches in kinds.items() if str(kind) == "Campaigns" for match in matches
    }
    assert set(titles) == {"Quick look", "Look again"}
    assert titles["Quick look"].endswith(f"/campaigns/{campaign.pk}/")


def test_an_item_may_lack_context_and_source(cast):
    item = make_items(cast.project, 1)[0]
    item.context, item.source = [], None
    item.save()
    assert search(cast.project, item.key)["Items"] == [item.key]


def test_systems_come_in_natural_order(cast):
    make_outputs(cast.project, make_items(cast.project, 1), ("model-10", "model-9", "model-1"))
    assert search(cast.project, "model")["Systems"] == ["model-1", "model-9", "model-10"]


def test_postgres_finds_the_same(postgres_db):
    cast = make_cast()
    make_outputs(cast.project, make_items(cast.project, 2), ("needle-10", "needle-9"))
    WritingCampaign.objects.create(project=cast.project, name="Needles", slug="needles")
    found = search(cast.project, "needle")
    assert (found["Systems"], found["Campaigns"]) == (["needle-9", "needle-10"], ["Needles"])


def test_a_kind_has_a_limit(cast):
    make_items(cast.project, LIMIT + 3)
    assert len(search(cast.project, "i")["Items"]) == LIMIT


def test_the_page(cast, django_assert_max_num_queries):
    client = Client()
    client.force_login(cast.researcher)
    make_outputs(cast.project, make_items(cast.project, 20), ("one", "two"))
    address = reverse("project-search", args=[cast.project.slug])
    client.get(address)
    with django_assert_max_num_queries(15):
        page = client.get(address, {"q": "one"})
    assert page.status_code == 200
    assert 'value="one"' in page.content.decode()
    client.force_login(cast.annotator)
    assert client.get(address, {"q": "one"}).status_code == 403
    assert 'role="search"' not in client.get("/my/").content.decode()
