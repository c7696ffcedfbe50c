"""A link to one campaign opens only that campaign, in pages, API and services alike; a project link opens all
campaigns."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Campaign, CampaignMember
from annotation.selectors.judging import list_my_campaigns
from annotation.selectors.writing import list_my_writing
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.writing_handout import get_next_task
from evalapp.accounts.models import Invitation, Membership
from evalapp.accounts.roles import Role
from evalapp.accounts.services import accept_invitation, change_role, create_invitation, remove_member
from evalapp.common.errors import NotAllowed, NotThere
from evalapp.common.models import AuditEvent
from tests.cast import Cast, person
from tests.judging import ONE_QUESTION, make_draft, open_rating
from tests.pages import read_flashes
from tests.writing import fill_ports, start_writing

pytestmark = pytest.mark.django_db


class World:
    """A project with two judging campaigns and one writing campaign, and a person who joins by link."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.first = open_rating(cast, aspects=ONE_QUESTION)
        self.second = self.open_again("second")
        self.writing = start_writing(cast, 0)
        self.nora = person("nora")

    def open_again(self, slug: str) -> Campaign:
        from annotation.services.campaigns import open_campaign

        draft = make_draft(self.cast, aspects=ONE_QUESTION, slug=slug)
        return open_campaign(campaign=draft, user=self.cast.researcher)

    def get_page(self, campaign: Any) -> str:
        return reverse("annotation:judge" if isinstance(campaign, Campaign) else "annotation:write", args=[campaign.pk])

    def link(self, campaign: Any = None, **more: Any) -> str:
        landing = "" if campaign is None else self.get_page(campaign)
        plan = {"project": self.cast.project, "role": Role.ANNOTATOR, "actor": self.cast.researcher, **more}
        return create_invitation(landing=landing, **plan)[1]

    def join(self, campaign: Any = None, **more: Any) -> Membership:
        return accept_invitation(secret=self.link(campaign, **more), user=self.nora)[0]

    def opened(self) -> list[bool]:
        """Whether each of the three campaigns is open to the user; pages, API and services must agree."""
        client = Client()
        client.force_login(self.nora)
        found = []
        for campaign in (self.first, self.second, self.writing):
            judging = isinstance(campaign, Campaign)
            mine = list_my_campaigns(user=self.nora) if judging else list_my_writing(user=self.nora)
            address = f"/api/v1/{'campaigns' if judging else 'writing'}/{campaign.pk}/next/"
            call = client.post(address, {}, content_type="application/json")
            answers = {
                "service": _is_allowed(get_next_assignment if judging else get_next_task, self.nora, campaign.pk),
                "page": client.get(self.get_page(campaign)).status_code == 200,
                "guidelines": client.get(self.get_page(campaign) + "guidelines/").status_code == 200,
                "list": campaign.pk in [row.campaign.pk for row in mine],
                "api": call.status_code in (200, 204),
            }
            assert len(set(answers.values())) == 1, answers
            found.append(answers["page"])
        return found


def _is_allowed(hand_out: Any, user: Any, pk: int) -> bool:
    try:
        hand_out(user=user, campaign_id=pk)
    except (NotAllowed, NotThere):
        return False
    return True


@pytest.fixture
def world(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> World:
    fill_ports(monkeypatch)
    return World(cast)


def test_campaign_link_opens_only_that_campaign(world: World) -> None:
    world.join(world.first)
    assert world.opened() == [True, False, False]


def test_writing_campaign_link_opens_only_that_campaign(world: World) -> None:
    world.join(world.writing)
    assert world.opened() == [False, False, True]


def test_project_link_opens_all_campaigns(world: World) -> None:
    world.join()
    assert world.opened() == [True, True, True]


def test_further_links_open_more_campaigns_and_are_used_once(world: World) -> None:
    world.join(world.first)
    world.join(world.writing)
    assert world.opened() == [True, False, True]
    again = world.link(world.first)
    accept_invitation(secret=again, user=world.nora)
    assert list(Invitation.objects.order_by("pk").values_list("uses", flat=True)) == [1, 1, 0]
    world.join()
    assert world.opened() == [True, True, True]


def test_members_of_the_whole_project_keep_their_access(world: World) -> None:
    world.join()
    world.join(world.first)
    assert world.opened() == [True, True, True]
    assert list(Invitation.objects.order_by("pk").values_list("uses", flat=True)) == [1, 0]


def test_used_up_link_opens_no_further_campaign(world: World) -> None:
    secret = world.link(world.second)
    accept_invitation(secret=secret, user=person("otto"))
    world.join(world.first)
    with pytest.raises(NotThere):
        accept_invitation(secret=secret, user=world.nora)
    assert world.opened() == [True, False, False]


def test_returning_by_another_link_limits_access_to_it(world: World) -> None:
    """Their rows of the first campaign still exist, with an open assignment."""
    member = world.join()
    shown = get_next_assignment(user=world.nora, campaign_id=world.first.pk).shown
    assert shown is not None
    remove_member(member=member, actor=world.cast.owner)
    world.join(world.second)
    assert CampaignMember.objects.filter(annotator=world.nora, campaign=world.first).exists()
    assert world.opened() == [False, True, False]
    with pytest.raises(NotAllowed, match="Your invitation is for other campaigns"):
        submit_answer(user=world.nora, public=shown.public, submission=uuid4(), answer={"naturalness": 3})


def test_new_role_removes_the_limit(world: World) -> None:
    member = world.join(world.first)
    member = change_role(member=member, role=Role.RESEARCHER, actor=world.cast.owner)
    assert world.opened() == [True, True, True]
    change_role(member=member, role=Role.ANNOTATOR, actor=world.cast.owner)
    assert world.opened() == [True, True, True]


def test_links_with_other_roles_or_targets_are_not_limited(world: World) -> None:
    page = world.get_page(world.first)
    made = [
        (Role.VIEWER, page, ""), (Role.ANNOTATOR, "/my/", ""), (Role.ANNOTATOR, "", ""),
        (Role.ANNOTATOR, "/no/such/page/", ""), (Role.ANNOTATOR, page, f"judging:{world.first.pk}"),
        (Role.ANNOTATOR, page + "?from=mail#top", f"judging:{world.first.pk}"),
        (Role.ANNOTATOR, world.get_page(world.writing), f"writing:{world.writing.pk}"),
    ]  # fmt: skip
    assert [Invitation(role=role, landing=landing).campaign for role, landing, _ in made] == [row[2] for row in made]


@pytest.mark.parametrize("kind", ["judging", "writing"])
@pytest.mark.parametrize("door", ["page", "api"])
def test_page_and_api_links_are_equivalent(world: World, client: Client, kind: str, door: str) -> None:
    campaign = world.first if kind == "judging" else world.writing
    client.force_login(world.cast.owner)
    if door == "api":
        wishes = {"role": "annotator", "landing": world.get_page(campaign)}
        made = client.post("/api/v1/projects/alpha/invitations/", wishes, content_type="application/json")
        link = made.json()["link"]
    else:
        name = "annotation:campaign-people" if kind == "judging" else "annotation:writing-people"
        page = client.post(reverse(name, args=["alpha", campaign.pk]), {"max_uses": 1, "days": 3, "label": ""})
        assert f'data-only-campaign="{campaign.pk}"' in page.content.decode()
        link = page.context["link"]
    path = "/invitations/" + link.partition("/invitations/")[2]
    anonymous = Client().get(path).content.decode()
    assert f'data-campaign="{kind}"' in anonymous
    other = Client()
    other.force_login(world.nora)
    assert other.post(path)["Location"] == world.get_page(campaign)
    assert world.opened() == [kind == "judging", False, kind == "writing"]
    members = client.get("/api/v1/projects/alpha/members/").json()["results"]
    assert {row["username"]: row["campaigns"] for row in members}["nora"] == [f"{kind}:{campaign.pk}"]
    people = client.get(reverse("accounts:member-list", args=["alpha"])).content.decode()
    assert 'data-campaigns="1"' in people


def test_link_opens_nothing_in_another_project(world: World) -> None:
    cast = world.cast
    draft = Campaign.objects.create(project=cast.foreign, slug="theirs", name="Theirs", kind="likert", created_by=None)
    refused = [
        reverse("annotation:judge", args=[draft.pk]), reverse("annotation:my-guidelines", args=[draft.pk]),
        "/my/999999/", "/my/writing/999999/", f"/projects/{cast.foreign.slug}/items/?page=2",
    ]  # fmt: skip
    client = Client()
    client.force_login(cast.owner)
    for role in (Role.ANNOTATOR, Role.RESEARCHER):
        for landing in refused:
            body = {"role": role.value, "landing": landing}
            answer = client.post("/api/v1/projects/alpha/invitations/", body, content_type="application/json")
            assert answer.status_code == 400, landing
            assert [fault["field"] for fault in answer.json()["errors"]] == ["landing"]
            page = client.post("/projects/alpha/people/invite/", {**body, "max_uses": 1, "days": 1})
            assert page.status_code == 422
            assert "this project" in page.content.decode().lower()
    assert not Invitation.objects.exists()
    for landing in (
        world.get_page(world.first),
        world.get_page(world.writing),
        "/my/",
        "/projects/alpha/items/",
        "/nope/",
    ):
        create_invitation(project=cast.project, role=Role.ANNOTATOR, actor=cast.owner, landing=landing)


def test_owner_removes_the_limit_to_one_campaign(world: World) -> None:
    cast = world.cast
    member = world.join(world.first)
    assert world.opened() == [True, False, False]
    client = Client()
    client.force_login(cast.owner)
    page = client.get("/projects/alpha/people/").content.decode()
    assert page.count('data-campaigns="1"') == page.count('name="all_campaigns"') == 1
    url = reverse("accounts:member-role", args=["alpha", member.pk])
    done = client.post(url, {"role": "annotator", "all_campaigns": "1"}, follow=True)
    ((level, words),) = read_flashes(done)
    assert (level, "nora" in words) == ("success", True)
    assert 'name="all_campaigns"' not in done.content.decode()
    assert world.opened() == [True, True, True]
    assert AuditEvent.objects.filter(verb="member.changed", object="nora").count() == 1
    # The same through the API; only managers may do it.
    Membership.objects.filter(pk=member.pk).update(campaigns=["judging:1"])
    address = f"/api/v1/projects/alpha/members/{member.pk}/"
    answer = client.patch(address, {"role": "annotator", "all_campaigns": True}, content_type="application/json")
    assert (answer.status_code, answer.json()["campaigns"]) == (200, None)
    Membership.objects.filter(pk=member.pk).update(campaigns=["judging:1"])
    client.patch(address, {"role": "annotator"}, content_type="application/json")
    client.force_login(cast.viewer)
    assert "Allow all campaigns" not in client.get("/projects/alpha/people/").content.decode()
    assert client.post(url, {"role": "annotator", "all_campaigns": "1"}).status_code == 403
    member.refresh_from_db()
    assert member.campaigns == ["judging:1"]
