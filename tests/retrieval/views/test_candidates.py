"""The candidate list next to the editor: rows with opaque ids, search, one line when it is empty, and access."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import WritingCandidate
from annotation.selectors.writing import get_own_task, read_candidate_texts
from retrieval.models import Corpus
from tests.pages import read_page
from tests.retrieval.corpora import make_corpus
from tests.writing import CORPUS, fill_ports, open_task_view, replace_hooks, start_writing

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("corpora_dir")]

PAIRS = [("Hello there? Yes?", f"Reply {n} <b>.") for n in range(30)] + [("A number of years", "Something else.")]


@pytest.fixture
def view(cast, monkeypatch):
    fake = fill_ports(monkeypatch)
    make_corpus(cast.project, CORPUS, PAIRS, licence="CC0")
    replace_hooks(monkeypatch, find_candidates="retrieval.services.candidates:find_candidates")
    assert fake.asked == 0
    campaign = start_writing(cast, items=1, options={"candidates": 25})
    return open_task_view(cast.annotator, campaign)


@pytest.fixture
def annotator(cast) -> Client:
    client = Client()
    client.force_login(cast.annotator)
    return client


def get(client: Client, view, query: str = ""):
    return client.get(reverse("retrieval:candidates", args=[view.public]) + query)


def test_candidates_are_listed_and_remembered(annotator, view, cast):
    page = read_page(get(annotator, view))
    ids = re.findall(r'data-candidate="(\w+)"', page)
    assert len(ids) == 25
    assert "5 more" in page
    assert "<b>" not in page
    assert "CC0" in page
    assert 'class="use small"' in page
    texts = read_candidate_texts(get_own_task(user=cast.annotator, public=view.public), ids)
    assert [texts[id] for id in ids[:2]] == ["Reply 0 <b>.", "Reply 1 <b>."]
    assert re.findall(r'data-candidate="(\w+)"', read_page(get(annotator, view))) == ids
    assert WritingCandidate.objects.count() == 25


def test_words_can_be_searched(annotator, view):
    page = read_page(get(annotator, view, "?q=years"))
    assert "Something else." in page
    assert page.count("<li") == 1
    none = read_page(get(annotator, view, "?q=zebra"))
    assert '<p class="note">' in none
    assert "<li" not in none


def test_missing_corpus_is_one_line(annotator, view):
    Corpus.objects.all().delete()
    response = get(annotator, view)
    assert response.status_code == 200
    assert "no longer exists" in read_page(response)


def test_deleting_a_corpus_in_use_is_refused(view, cast):
    client = Client()
    client.force_login(cast.researcher)
    page = read_page(client.get(reverse("retrieval:corpus-delete", args=["alpha", CORPUS])))
    assert 'data-writing="1"' in page


def test_other_people_cannot_see_candidates(view, cast):
    for user in (cast.researcher, cast.owner, cast.viewer, cast.stranger):
        client = Client()
        client.force_login(user)
        assert get(client, view).status_code == 404
