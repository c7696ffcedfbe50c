"""The API of webhooks: create, change, renew, test, deliveries, repeat."""

from __future__ import annotations

import pytest

from evalapp.accounts.services import create_token
from evalapp.events.models import Delivery, Webhook
from evalapp.events.services.delivering import deliver

JSON = "application/json"


@pytest.fixture
def api(client, cast):
    _, secret = create_token(user=cast.owner, name="t", scopes=["manage"])
    client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {secret}"
    return client


def test_from_creation_to_deletion(api, cast, receiver, sent):
    body = {"name": "lab", "url": receiver.url, "events": ["run.failed"]}
    made = api.post("/api/v1/projects/alpha/webhooks/", body, JSON)
    assert made.status_code == 201
    assert made.json()["secret"].startswith("whsec_")
    assert made.headers["Cache-Control"] == "no-store"
    own = f"/api/v1/webhooks/{made.json()['id']}/"
    listed = api.get("/api/v1/projects/alpha/webhooks/").json()["results"]
    assert [row["name"] for row in listed] == ["lab"]
    assert "secret" not in listed[0]
    changed = api.patch(own, {"events": ["progress.weekly", "run.failed"]}, JSON).json()
    assert changed["events"] == ["run.failed", "progress.weekly"]
    renewed = api.post(f"{own}secret/").json()
    assert renewed["secret"] not in ("", made.json()["secret"])
    tested = api.post(f"{own}test/")
    assert (tested.status_code, tested.json()["type"], tested.json()["state"]) == (201, "webhook.test", "waiting")
    assert api.post(f"/api/v1/deliveries/{tested.json()['id']}/repeat/").status_code == 409
    deliver(tested.json()["id"])
    (row,) = api.get(f"{own}deliveries/").json()["results"]
    assert (row["state"], row["status"], row["attempts"]) == ("delivered", 204, 1)
    repeated = api.post(f"/api/v1/deliveries/{row['id']}/repeat/").json()
    assert (repeated["event"], repeated["id"] != row["id"]) == (row["event"], True)
    assert api.delete(own).status_code == 204
    assert (Webhook.objects.count(), Delivery.objects.count()) == (0, 0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "https://elsewhere.example.org/"}, "url"),
        ({"url": "not an address"}, "url"),
        ({"events": []}, "events"),
        ({"events": ["no.event"]}, "events"),
        ({"name": ""}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"more": 1}, "more"),
    ],
)
def test_bad_input_is_refused_with_its_field(api, cast, receiver, change, field):
    body = {"name": "lab", "url": receiver.url, "events": ["run.failed"], **change}
    refused = api.post("/api/v1/projects/alpha/webhooks/", body, JSON)
    assert refused.status_code == 400
    assert field in {fault["field"].split(".")[0].split("[")[0] for fault in refused.json()["errors"]}
    assert not Webhook.objects.exists()
