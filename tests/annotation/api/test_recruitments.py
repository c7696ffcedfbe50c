"""Links for hired participants in the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from annotation.models import Participant
from tests.annotation.hired import Study, Visitor
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.researcher)
    return client


def send(client: Client, method: str, address: str, body: Any = None) -> Any:
    return getattr(client, method)(f"/api/v1/{address}", body, content_type="application/json")


def test_from_the_settings_to_the_payment(cast: Cast, client: Client) -> None:
    study = Study(cast)
    body = {"places": 9, "platform": "prolific", "pay": 2}
    made = send(client, "post", f"campaigns/{study.campaign.pk}/recruitments/", body)
    assert made.status_code == 201
    assert Client().get(made.json()["address"] + "?PROLIFIC_PID=x").status_code == 200
    listed = client.get(f"/api/v1/campaigns/{study.campaign.pk}/recruitments/").json()
    assert [row["places"] for row in listed] == [9, 5]
    assert "address" not in listed[0]
    changed = send(client, "patch", f"recruitments/{study.link.pk}/", {"pay": 3, "currency": "EUR"})
    assert (changed.json()["settings"]["pay"], changed.json()["places"]) == (3, 5)
    Visitor(study, "id-1").finish()
    (row,) = client.get(f"/api/v1/recruitments/{study.link.pk}/participants/").json()
    assert (row["participant"], row["state"], row["pay"], row["currency"], row["meta"]) == (
        "id-1", "passed", 3, "EUR", {},
    )  # fmt: skip
    assert send(client, "post", f"participants/{row['id']}/withdraw/").status_code == 204
    assert Participant.objects.get().state == "withdrawn"


@pytest.mark.parametrize("body", [{}, {"places": "many"}, {"places": 1, "outcomes": {"won": {}}}, []])
def test_faulty_settings_are_refused_with_their_field(cast: Cast, client: Client, body: Any) -> None:
    study = Study(cast)
    answer = send(client, "post", f"campaigns/{study.campaign.pk}/recruitments/", body)
    assert answer.status_code == 400
    assert study.campaign.recruitments.count() == 1


def test_places_cannot_be_taken_away_from_participants(cast: Cast, client: Client) -> None:
    study = Study(cast)
    for name in ("id-1", "id-2"):
        Visitor(study, name).begin()
    assert send(client, "patch", f"recruitments/{study.link.pk}/", {"places": 1}).status_code == 400
    assert send(client, "patch", f"recruitments/{study.link.pk}/", {"places": 2}).status_code == 200


def test_another_platform_brings_its_parameters(cast: Cast, client: Client) -> None:
    study = Study(cast, platform="mturk")
    settings = send(client, "patch", f"recruitments/{study.link.pk}/", {"platform": "prolific"}).json()["settings"]
    assert (settings["id_parameter"], settings["meta_parameters"]) == ("PROLIFIC_PID", ["STUDY_ID", "SESSION_ID"])
    body = {"platform": "prolific", "id_parameter": "pid"}
    settings = send(client, "patch", f"recruitments/{study.link.pk}/", body).json()["settings"]
    assert (settings["id_parameter"], settings["meta_parameters"]) == ("pid", ["STUDY_ID", "SESSION_ID"])
