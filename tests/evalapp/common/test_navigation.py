"""Navigation of a project: groups by role, the current entry, and error pages that keep it."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory
from django.urls import get_resolver, reverse

from evalapp.accounts.models import Project
from evalapp.common.navigation import GROUPS, find_parent, list_groups


def list_for(user, project, name="project", *parts):
    request = RequestFactory().get(reverse(name, args=[project.slug, *parts]))
    request.user = user
    return list_groups(request, Project.objects.get(pk=project.pk))  # a project keeps the role of its first reader


def find_current(groups):
    return [(group.label, place.label) for group in groups for place in group.places if place.is_current]


def test_every_place_exists(cast):
    shown = [place.url for group in list_for(cast.owner, cast.project) for place in group.places]
    assert shown == [reverse(place.name, args=[cast.project.slug]) for _label, listed in GROUPS for place in listed]


def test_groups_follow_the_role(cast):
    def labels(user):
        return {str(place.label) for group in list_for(user, cast.project) for place in group.places}

    assert labels(cast.annotator) == {"Overview"}
    assert labels(cast.viewer) < labels(cast.researcher) < labels(cast.owner)
    assert labels(cast.researcher) - labels(cast.viewer) == {"Uploads"}
    assert labels(cast.owner) - labels(cast.researcher) == {"Settings", "Webhooks"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("project", ("Overview", "Overview")),
        ("annotation:item-list", ("Data", "Items")),
        ("annotation:system-list", ("Data", "Systems and their kinds")),
        ("annotation:campaign-new", ("Collect", "Campaigns")),
        ("annotation:writing-new", ("Collect", "Campaigns")),
        ("scoring:evaluator-upload", ("Metrics", "Evaluators")),
        ("scoring:robustness", ("Metrics", "Robustness")),
        ("scoring:systems", ("Results", "Systems")),
        ("scoring:steps", ("Results", "Checkpoints")),
        ("scoring:agreement-power", ("Results", "Agreement")),
    ],
)
def test_the_longest_address_is_the_current_entry(cast, name, expected):
    assert find_current(list_for(cast.researcher, cast.project, name)) == [expected]


HOME = "projects/<slug:slug>/"


def list_addresses(patterns=None, start=""):
    for row in get_resolver().url_patterns if patterns is None else patterns:
        address = start + str(row.pattern)
        yield from list_addresses(row.url_patterns, address) if hasattr(row, "url_patterns") else [address]


#: The search finds things of all places.
WITHOUT_PLACE = {"search"}


def test_every_page_of_a_project_belongs_to_a_place(cast):
    """A page elsewhere would have no tabs and no way back."""
    parts = {address.removeprefix(HOME).split("/")[0] for address in list_addresses() if address.startswith(HOME)}
    assert {"items", "campaigns", "evaluators", "judges"} <= parts
    found = set()
    for part in sorted(parts - {""}):
        request = RequestFactory().get(f"/projects/{cast.project.slug}/{part}/")
        request.user = cast.owner
        if not find_current(list_groups(request, Project.objects.get(pk=cast.project.pk))):
            found.add(part)
    assert found == WITHOUT_PLACE


@pytest.mark.parametrize("page", ["items/1000000000/", "no/such/page/", "no-%00-page/"])
def test_error_pages_keep_the_navigation_of_members_only(cast, page):
    client = Client()
    address = reverse("project", args=[cast.project.slug]) + page
    items = f'href="{reverse("annotation:item-list", args=[cast.project.slug])}"'
    client.force_login(cast.researcher)
    page = client.get(address)
    assert page.status_code == 404
    assert items in page.content.decode()
    client.force_login(cast.stranger)
    page = client.get(address)
    assert page.status_code == 404
    assert items not in page.content.decode()
    assert cast.project.name not in page.content.decode()


def test_pages_below_an_entry_lead_back_to_it(cast):
    groups = list_for(cast.researcher, cast.project, "scoring:evaluator-upload")
    request = RequestFactory().get(reverse("scoring:evaluator-upload", args=[cast.project.slug]))
    assert find_parent(request, groups).url == reverse("scoring:evaluator-list", args=[cast.project.slug])
    request = RequestFactory().get(reverse("scoring:robustness", args=[cast.project.slug]))
    assert find_parent(request, list_for(cast.researcher, cast.project, "scoring:robustness")) is None
