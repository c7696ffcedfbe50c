from __future__ import annotations

from annotation.models import Slot
from annotation.services.judging import get_next_assignment
from tests.annotation.services.judging_helpers import open_for, send


def test_every_version_is_listed_with_original_sides(cast, client, django_assert_max_num_queries):
    campaign = open_for(cast, "pairwise")
    Slot.objects.update(swapped=True)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    send(cast.annotator, campaign, shown.public, "a", seconds=2)
    following = send(cast.annotator, campaign, shown.public, "tie", replaces=1, then="next").next
    send(cast.annotator, campaign, following.public, "b")
    client.force_login(cast.viewer)
    with django_assert_max_num_queries(10):
        rows = client.get(f"/api/v1/campaigns/{campaign.pk}/judgements/").json()["results"]
    assert [(row["version"], row["current"], row["answer"]["pairwise-quality"]) for row in rows] == [
        (1, True, "a"), (2, True, "tie"), (1, False, "b"),
    ]  # fmt: skip
    assert {row["rater"] for row in rows} == {"p-anna"}
    assert {(row["system"], row["system_b"]) for row in rows} == {("sys-a", "sys-b")}
    current = client.get(f"/api/v1/campaigns/{campaign.pk}/judgements/?current=1").json()["results"]
    assert len(current) == 2
    page = client.get(f"/api/v1/campaigns/{campaign.pk}/judgements/?limit=2").json()
    assert len(page["results"]) == 2
    assert page["next"]
