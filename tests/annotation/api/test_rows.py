"""Lists of a project's rows: values, filters, cursors, permission, number of queries."""

from __future__ import annotations

import base64

import pytest
from rest_framework.test import APIClient

from annotation.models import Item, Output, System
from tests.taking import COMPARISONS, WHOLE, take_in

pytestmark = pytest.mark.django_db

NAMES = ["items", "systems", "outputs", "references", "ratings", "comparisons", "dialogues"]


@pytest.fixture
def api(cast):
    turing = {**COMPARISONS[0], "system_b": {"reference": 0}}
    talk = [{"dialogue": "d", "rater": "r", "aspect": "quality", "value": 3}]
    take_in(
        cast.project,
        {**WHOLE, "comparisons.jsonl": [*COMPARISONS, turing], "dialogues.jsonl": [{"id": "d", "turns": ["x"]}],
         "ratings.jsonl": [*WHOLE["ratings.jsonl"], *talk]},
    )  # fmt: skip
    client = APIClient()
    client.force_authenticate(cast.viewer)
    return client


def rows(api, name: str, **query) -> list[dict]:
    answer = api.get(f"/api/v1/projects/alpha/{name}/", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


@pytest.mark.parametrize("name", NAMES)
def test_misspelt_filter_is_refused(api, name):
    answer = api.get(f"/api/v1/projects/alpha/{name}/", {"sytem": "s", "limit": 5})
    assert answer.status_code == 400
    assert [fault["field"] for fault in answer.json()["errors"]] == ["sytem"]


def test_values(api):
    assert rows(api, "items")[0] | {"id": 0} == {
        "id": 0, "key": "i1", "context": ["Hello?"], "source": None, "group": "g", "meta": {"d": "x"},
    }  # fmt: skip
    assert [(row["item"], row["position"], row["set"]) for row in rows(api, "references")] == [
        ("i1", 0, "original"), ("i1", 1, "original"),
    ]  # fmt: skip
    ratings = rows(api, "ratings")
    assert [(row["item"], row["system"], row["dialogue"], row["value"]) for row in ratings] == [
        ("i1", "s", None, 4.0), ("i2", "s", None, 2.5), (None, None, "d", 3.0),
    ]  # fmt: skip
    comparisons = rows(api, "comparisons")
    assert [(row["system_a"], row["system_b"], row["reference"]) for row in comparisons] == [
        ("s", "t", None), ("s", None, 0),
    ]  # fmt: skip


def test_filters_and_cursor(api):
    assert [row["text"] for row in rows(api, "outputs", item="i1", system="t")] == ["Good day."]
    assert rows(api, "ratings", system="t") == []
    assert rows(api, "items", key="a\0b") == []
    first = api.get("/api/v1/projects/alpha/outputs/", {"limit": 2}).json()
    second = api.get(first["next"]).json()
    assert [row["id"] for row in first["results"] + second["results"]] == list(
        Output.objects.order_by("pk").values_list("pk", flat=True)
    )
    assert second["next"] is None


@pytest.mark.parametrize("name", NAMES)
def test_few_queries(api, cast, name, django_assert_max_num_queries):
    Item.objects.bulk_create(Item(project=cast.project, key=f"x{k:04d}", context=["a"], group="g") for k in range(300))
    system = System.objects.get(name="s")
    Output.objects.bulk_create(
        Output(project=cast.project, item=item, system=system, text="x")
        for item in Item.objects.filter(key__startswith="x")
    )
    with django_assert_max_num_queries(8):
        rows(api, name, limit=200)


@pytest.mark.parametrize("name", NAMES)
def test_permissions(cast, name):
    for person, status in ((cast.annotator, 403), (cast.stranger, 404), (cast.owner, 200)):
        client = APIClient()
        client.force_authenticate(person)
        assert client.get(f"/api/v1/projects/alpha/{name}/").status_code == status


def test_kind_of_a_system(api, cast):
    address = f"/api/v1/systems/{System.objects.get(name='t').pk}/"
    assert api.get(address).json()["kind"] == "machine"
    assert api.patch(address, {"kind": "human"}, format="json").status_code == 403
    api.force_authenticate(cast.researcher)
    assert api.patch(address, {"kind": "human"}, format="json").json()["kind"] == "human"
    assert api.patch(address, {"kind": "robot"}, format="json").status_code == 400
    also = api.patch(address, {"kind": "machine", "name": "better"}, format="json")
    assert (also.status_code, also.json()["errors"][0]["field"]) == (400, "name")
    assert api.get(address).json()["kind"] == "human"
    api.force_authenticate(cast.stranger)
    assert api.get(address).status_code == 404


def test_one_item(api, cast):
    address = f"/api/v1/items/{Item.objects.get(key='i1').pk}/"
    assert api.get(address).json()["key"] == "i1"
    api.force_authenticate(cast.annotator)
    assert api.get(address).status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "²"},
        {"limit": "9" * 5000},
        {"cursor": base64.urlsafe_b64encode(b'{"a": 1, "b": 2}').decode()},
        {"cursor": base64.urlsafe_b64encode(b"[0, Infinity]").decode()},
    ],
)
def test_invalid_page_is_a_bad_request(api, query):
    assert api.get("/api/v1/projects/alpha/items/", query).status_code == 400
