"""The home page and the overview of a project."""

from __future__ import annotations

import re

import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils.safestring import mark_safe

from evalapp.common import audit, overview
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
    assert f"evalapp retry {failed.pk}" in page


def test_overview_shows_the_next_step(client, cast):
    client.force_login(cast.owner)
    page = read_page(client.get("/projects/alpha/"))
    assert "Next steps" in page
    assert 'aria-current="page">Overview' in page


def test_viewers_are_not_sent_to_pages_that_refuse_them(client, cast):
    upload = reverse("annotation:upload-list", args=["alpha"])
    for user, has in ((cast.researcher, True), (cast.viewer, False)):
        client.force_login(user)
        assert (f'class="button primary" href="{upload}"' in read_page(client.get("/projects/alpha/"))) == has


def test_annotator_is_led_to_the_work(client, cast):
    client.force_login(cast.annotator)
    assert client.get("/projects/alpha/").url == "/my/"


@pytest.fixture
def _ports(monkeypatch):
    for name in ("_sections", "_steps", "_figures"):
        monkeypatch.setattr(overview, name, {})


@pytest.mark.usefixtures("_ports")
def test_apps_add_their_sections_in_order(client, cast):
    overview.register_section("b", 20, lambda request, project: mark_safe("<section>two</section>"))
    overview.register_section("a", 10, lambda request, project: "<b>one</b>")
    overview.register_section("c", 30, lambda request, project: None)
    overview.register_step("x", 10, lambda request, project: Step("Load", "why", "/x/", "Go", done=True))
    overview.register_step("y", 20, lambda request, project: Step("Judge", "why", "/y/", "Start"))
    overview.register_figures("rows", 10, lambda request, project: [("Rows", 1234)])
    client.force_login(cast.viewer)
    page = read_page(client.get("/projects/alpha/"))
    assert page.index("&lt;b&gt;one") < page.index("<section>two"), "only what is marked safe is HTML"
    assert 'class="button primary" href="/y/"' in page
    assert "1,234" in page


def test_overview_needs_few_queries(client, cast, django_assert_max_num_queries):
    client.force_login(cast.owner)
    with django_assert_max_num_queries(15):
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


def read_figures(page):
    part = page.partition("data-figures")[2].partition("</dl>")[0]
    return dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", part))


def test_overview_counts_judgements_references_and_people(client, cast, monkeypatch):
    from annotation.models import Rating
    from annotation.views import overview as data
    from tests.factories import make_items, make_outputs, make_ratings

    make_ratings(cast.project, make_outputs(cast.project, make_items(cast.project, 5)))
    client.force_login(cast.viewer)
    shown = read_figures(read_page(client.get("/projects/alpha/")))
    # 5 items with 2 references and 2 systems, which 2 people rated; 4 members
    assert shown == {
        "Items": "5", "Outputs": "10", "References": "10", "Ratings": "20", "Comparisons": "0", "People": "4",
    }  # fmt: skip
    Rating.objects.first().delete()
    assert read_figures(read_page(client.get("/projects/alpha/")))["Ratings"] == "19", "small projects count anew"
    monkeypatch.setattr(data, "COUNTED_ANEW", 10)
    client.get("/projects/alpha/")
    Rating.objects.all().delete()
    assert read_figures(read_page(client.get("/projects/alpha/")))["Ratings"] == "19", "large projects do not"
    cache.clear()


def test_overview_shows_the_newest_ten_events(client, cast):
    for number in range(12):
        audit.record(verb="snapshot.taken", project=cast.project, actor=cast.owner, object=f"snapshot-{number}")
    audit.record(verb="campaign.opened", project=cast.project, actor=cast.researcher, object="Fluency")
    audit.record(verb="token.created", project=cast.project, actor=cast.researcher, object="secret-token")
    audit.record(verb="snapshot.taken", project=cast.foreign, object="foreign-snapshot")
    Run.objects.create(project=cast.project, kind="score", title="Score with chrF", state="succeeded", input_hash="1")
    client.force_login(cast.viewer)
    part = read_page(client.get("/projects/alpha/")).partition("data-activity")[2].partition("</ul>")[0]
    titles = re.findall(r'class="title"[^>]*>([^<]*)</a>', part)
    assert [title.strip() for title in titles] == [
        "Score with chrF", "Fluency", *(f"snapshot-{number}" for number in range(11, 3, -1)),
    ]  # fmt: skip


def test_overview_without_events_has_no_list(client, cast):
    client.force_login(cast.owner)
    page = read_page(client.get("/projects/alpha/"))
    assert "data-activity" not in page
    assert 'class="button primary" href="/projects/alpha/uploads/"' in page
