"""Projects on pages."""

from __future__ import annotations

import pytest

from evalapp.accounts.models import Project


def test_researcher_creates_a_project(client, cast):
    client.force_login(cast.researcher)
    form = {"name": "Beta", "slug": "beta", "task": "dialogue", "lang": "en", "notes": ""}
    assert client.post("/projects/new/", form).url == "/projects/beta/"
    assert Project.objects.get(slug="beta").created_by == cast.researcher


def test_taken_or_reserved_short_name_is_reported_at_its_field(client, cast):
    client.force_login(cast.researcher)
    for slug, text in (("alpha", "taken"), ("new", "reserved"), ("A B", "a-z")):
        answer = client.post("/projects/new/", {"name": "B", "slug": slug, "task": "d", "lang": "en"})
        assert answer.status_code == 422
        assert text in answer.content.decode()


def test_language_that_is_no_tag_is_reported_at_its_field(client, cast):
    client.force_login(cast.researcher)
    answer = client.post("/projects/new/", {"name": "B", "slug": "b", "task": "zz", "lang": "zz123"})
    assert answer.status_code == 422
    assert "“zz123” is not a language tag" in answer.content.decode()


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Weekend chat, part 2", "weekend-chat-part-2"),
        ("Gespräche: Bäcker", "gesprache-backer"),
        ("Straße, Øre, Łódź, Œuvre", "strasse-ore-lodz-oeuvre"),
    ],
)
def test_an_empty_short_name_follows_the_name(client, cast, name, slug):
    client.force_login(cast.researcher)
    form = {"name": name, "slug": "", "task": "dialogue", "lang": "en"}
    assert client.post("/projects/new/", form).url == f"/projects/{slug}/"


def test_a_name_without_latin_letters_needs_a_short_name(client, cast):
    client.force_login(cast.researcher)
    answer = client.post("/projects/new/", {"name": "模型", "slug": "", "task": "dialogue", "lang": "zh"})
    assert answer.status_code == 422
    assert "slug" in answer.context["form"].errors


def test_annotator_cannot_create_a_project(client, cast):
    client.force_login(cast.annotator)
    assert client.get("/projects/new/").status_code == 403


def test_settings_and_deletion(client, cast):
    client.force_login(cast.owner)
    form = {"name": "Alpha two", "task": "dialogue", "lang": "en", "licence": "", "source": "", "notes": ""}
    assert client.post("/projects/alpha/settings/", form).status_code == 302
    assert "Alpha two" in client.get("/projects/alpha/").content.decode()
    answer = client.post("/projects/alpha/settings/", {**form, "name": ""})
    assert answer.status_code == 422
    assert "Alpha two</a>" in answer.content.decode(), "the header keeps the stored name"
    assert client.post("/projects/alpha/settings/delete/", {"confirmation": "beta"}).status_code == 422
    assert client.post("/projects/alpha/settings/delete/", {"confirmation": "alpha"}).url == "/"
    assert not Project.objects.filter(slug="alpha").exists()
