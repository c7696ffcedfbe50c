"""The home page and the overview of a project."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from django.utils.safestring import mark_safe

from evalapp.common import overview
from evalapp.common.models import Run
from evalapp.common.overview import Step
from tests.pages import read_page


def test_signed_out_page_introduces_the_product(client, db):
    page = read_page(client.get("/"))
    assert "Sign in" in page
    assert "by invitation" in page


def test_own_projects_show_the_role(client, cast):
    client.force_login(cast.viewer)
    page = read_page(client.get("/"))
    assert "Alpha" in page
    assert "Viewer" in page
    assert "New project" not in page


def test_home_of_a_person_without_projects(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("neu"))
    page = read_page(client.get("/"))
    assert 'class="empty"' in page
    assert reverse("accounts:project-create") not in page


def test_failed_deletion_is_shown_with_a_remedy(client, cast):
    failed = Run.objects.create(
        project=cast.foreign, kind="delete", title="Delete Beta", input_hash="1", state="failed", error="No room.",
        created_by=cast.owner,
    )  # fmt: skip
    client.force_login(cast.owner)
    page = read_page(client.get("/"))
    assert re.search(rf'role="alert" data-deletion="{failed.pk}"><p><strong>Delete Beta [^<]+</strong> No room\.', page)
    assert f"manage.py retry {failed.pk}" in page


def test_overview_shows_the_next_step(client, cast):
    client.force_login(cast.owner)
    page = read_page(client.get("/projects/alpha/"))
    assert "Next steps" in page
    assert 'aria-current="page">Overview' in page


def test_annotator_is_led_to_the_work(client, cast):
    client.force_login(cast.annotator)
    assert client.get("/projects/alpha/").url == "/my/"


@pytest.fixture
def _ports(monkeypatch):
    for name in ("_sections", "_steps", "_counts"):
        monkeypatch.setattr(overview, name, {})


@pytest.mark.usefixtures("_ports")
def test_apps_add_their_sections_in_order(client, cast):
    overview.register_section("b", 20, lambda request, project: mark_safe("<section>two</section>"))
    overview.register_section("a", 10, lambda request, project: "<b>one</b>")
    overview.register_section("c", 30, lambda request, project: None)
    overview.register_step("x", 10, lambda request, project: Step("Load", "why", "/x/", "Go", done=True))
    overview.register_step("y", 20, lambda request, project: Step("Judge", "why", "/y/", "Start"))
    overview.register_count("Rows", 10, lambda request, projects: {project.pk: 1234 for project in projects})
    client.force_login(cast.viewer)
    page = read_page(client.get("/projects/alpha/"))
    assert page.index("&lt;b&gt;one") < page.index("<section>two"), "only what is marked safe is HTML"
    assert 'class="button primary" href="/y/"' in page
    assert "1,234" in page


def test_overview_needs_few_queries(client, cast, django_assert_max_num_queries):
    client.force_login(cast.owner)
    with django_assert_max_num_queries(25):
        client.get("/projects/alpha/")


def test_error_pages_offer_a_way_out(client, cast):
    client.force_login(cast.stranger)
    answer = client.get("/projects/alpha/")
    assert answer.status_code == 404
    page = read_page(answer)
    assert "My projects" in page
    assert "not found" in page
    part = read_page(client.get("/projects/alpha/", headers={"HX-Request": "true"}))
    assert "<html" not in part
    api = client.get("/api/v1/nowhere/")
    assert api.headers["Content-Type"] == "application/problem+json"
