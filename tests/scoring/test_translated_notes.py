"""Notes of statistics and titles of runs, which are stored in English, are translated on pages."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from annotation.services.exports import request_export
from evalapp.stored_notes import NOTES
from evalapp.stored_rankings import SENTENCES
from evalapp.stored_runs import TITLES
from evalapp.stored_texts import translate_stored
from tests.architecture.test_gettext_pages import find_unmarked
from tests.browser.world import make_world
from tests.cast import Cast

#: Pages with notes, sentences or titles.
VIEWS = (
    "scoring:systems", "scoring:evaluation", "scoring:evaluation-board", "scoring:agreement",
    "scoring:agreement-power", "scoring:alignment", "scoring:judge-report", "scoring:snapshot", "scoring:study",
    "scoring:item-scores", "scoring:steps", "run", "home",
)  # fmt: skip


def mark(message: str) -> str:
    return f"⟦{message}⟧" if message else message


def mark_plural(singular: str, plural: str, number: int) -> str:
    return mark(singular if number == 1 else plural)


def mark_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark every message that is translated from now on."""
    for name, marker in (("gettext", mark), ("ngettext", mark_plural)):
        monkeypatch.setattr(f"django.utils.translation._trans.{name}", marker, raising=False)


def find_missed(html: str) -> set[str]:
    """Return the unmarked texts of a page that were made from templates."""
    return {text for text in find_unmarked(html) if text.count(" ") > 1 and translate_stored(text) != text}


@pytest.mark.django_db
def test_pages_translate_stored_texts(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(cast)
    mark_texts(monkeypatch)
    fixed = {text for text in (*NOTES, *SENTENCES) if "%" not in text}
    missed: dict[tuple[str, str], set[str]] = {}
    seen: set[str] = set()
    for view in VIEWS:
        for user, path in world.pages[view]:
            client = Client()
            if user:
                client.force_login(user)
            html = client.get(path).content.decode()
            seen |= {text for text in re.findall(r"⟦([^⟦⟧]*)⟧", html) if text in fixed}
            if found := find_missed(html):
                missed[view, path] = found
    assert missed == {}
    assert seen, "no page shows a note"


@pytest.mark.django_db
def test_titles_of_runs_are_stored_in_english(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    mark_texts(monkeypatch)
    run = request_export(project=cast.project, user=cast.owner)
    assert run.title.startswith("Export of ")
    assert translate_stored(run.title) == mark(run.title)
    assert "Export of %(project)s as %(format)s" in TITLES


def test_missed_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    mark_texts(monkeypatch)
    assert find_missed("<p>all ratings are equal</p><p>⟦all ratings are equal⟧</p><p>three other words</p>") == {
        "all ratings are equal"
    }
