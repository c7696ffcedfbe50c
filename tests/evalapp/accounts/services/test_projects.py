"""Projects: permission to create, short names, deletion."""

from __future__ import annotations

import pytest

from evalapp.accounts.models import Membership, Project
from evalapp.accounts.services import create_project, delete_project, may_create_projects, update_project
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent
from tests.cast import person


def test_creator_owns_the_project(cast):
    project = create_project(slug="beta", name="Beta", owner=cast.researcher, task="translation")
    assert Membership.objects.get(project=project).role == "owner"
    assert project.task == "translation"


@pytest.mark.parametrize("slug", ["", "With Space", "Ä", "-x", "new", "x" * 64, "a/b"])
def test_short_names_are_checked(cast, slug):
    with pytest.raises(BadInput):
        create_project(slug=slug, owner=cast.owner)


def test_taken_short_name(cast):
    with pytest.raises(Conflict, match="taken"):
        create_project(slug="alpha", owner=cast.owner)


def test_only_researchers_may_create_projects(cast):
    may = [may_create_projects(user) for user in (cast.owner, cast.researcher, cast.annotator, cast.viewer)]
    assert may == [True, True, False, False]
    assert not may_create_projects(person("ugo"))


def test_changes_are_recorded_by_name_only(cast):
    update_project(project=cast.project, actor=cast.owner, name="Alpha", notes="secret plan")
    assert AuditEvent.objects.get(verb="project.changed").detail == {"fields": ["notes"]}
    with pytest.raises(BadInput, match="no field slug"):
        update_project(project=cast.project, actor=cast.owner, slug="other")


def test_deletion_needs_the_name_and_is_audited(cast):
    with pytest.raises(BadInput, match="Type “alpha”"):
        delete_project(project=cast.project, actor=cast.owner, confirmation="Alpha")
    delete_project(project=cast.project, actor=cast.owner, confirmation="alpha")
    assert not Project.objects.filter(slug="alpha").exists()
    assert AuditEvent.objects.get(verb="project.deleted").object == "alpha"


@pytest.mark.parametrize("lang", ["zz123", "e", "en_GB", "en, de", "en-", "englishlanguage"])
def test_languages_have_the_form_of_a_tag(cast, lang):
    with pytest.raises(BadInput, match="is not a language tag") as refused:
        create_project(slug="beta", owner=cast.owner, lang=lang)
    assert [fault.field for fault in refused.value.faults] == ["lang"]
    with pytest.raises(BadInput):
        update_project(project=cast.project, actor=cast.owner, lang=lang)
    for good in ("de", "yue", "pt-BR", "zh-Hant-TW", "en-de", "und", ""):
        update_project(project=cast.project, actor=cast.owner, lang=good)


@pytest.mark.parametrize("field", ["name", "task", "lang", "licence"])
def test_single_line_fields_refuse_control_characters(cast, field):
    """As in dataset.json, so that exports can be loaded again."""
    for text in ("a\nb", "a\u2028b", "a\u202eb"):
        with pytest.raises(BadInput) as refused:
            update_project(project=cast.project, actor=cast.owner, **{field: text})
        assert [fault.field for fault in refused.value.faults] == [field]
        with pytest.raises(BadInput):
            create_project(slug="beta", owner=cast.owner, **{field: text})
    update_project(project=cast.project, actor=cast.owner, notes="a\nb", source="c\nd")
