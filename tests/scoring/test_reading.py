"""Texts that the encoder cannot read: a warning before scoring in page, command and API, counts and notes
afterwards."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse
from rest_framework.test import APIClient

from annotation.models import Output
from scoring.ml.registry import get_entry
from scoring.models import Score, ScoreSet
from scoring.selectors.reading import warn_unreadable
from tests.factories import make_items, make_outputs

pytestmark = pytest.mark.django_db
THAI = "วันนี้อากาศดีมาก"
SAID = "the encoder all-MiniLM-L6-v2 knows no word of 4"


@pytest.fixture
def project(cast):
    """One system's outputs are Thai, which the installed encoder does not know; another output has a Thai word."""
    outputs = make_outputs(cast.project, make_items(cast.project, 4))
    Output.objects.filter(system__name="sys-b").update(text=THAI)
    Output.objects.filter(pk=outputs[0].pk).update(text=f"Good day {THAI}")
    return cast.project


def test_every_entry_point_warns_before_scoring(project, cast, client):
    client.force_login(cast.researcher)
    page = client.get(reverse("scoring:evaluator-apply", args=["alpha", "bertscore"])).content.decode()
    assert SAID in page
    assert (
        "knows no word" not in client.get(reverse("scoring:evaluator-apply", args=["alpha", "chrf"])).content.decode()
    )
    api = APIClient()
    api.force_authenticate(cast.researcher)
    options = {"kind": "score", "evaluator": "bertscore"}
    answer = api.post("/api/v1/projects/alpha/runs/", options, format="json")
    assert answer.status_code == 202
    assert SAID in str(answer.json()["log"])


def test_english_texts_give_no_warning(cast):
    make_outputs(cast.project, make_items(cast.project, 4))
    assert warn_unreadable(cast.project, get_entry("bertscore"), {}) == ""
    assert warn_unreadable(cast.project, get_entry("length"), {}) == ""


@pytest.mark.slow
def test_command_warns_and_counts_unknown_words(project):
    err, out = StringIO(), StringIO()
    call_command("score", "embedding-average", "--project", "alpha", "--here", stdout=out, stderr=err)
    told = out.getvalue() + err.getvalue()
    assert SAID in told
    assert "1 have words that the encoder does not know" in told
    assert "4 undefined: text: the encoder all-MiniLM-L6-v2 knows no word of it" in told
    found = ScoreSet.objects.get()
    assert (found.n_scores, found.n_undefined, found.n_unknown) == (8, 4, 1)
    assert list(Score.objects.filter(value__isnull=False).exclude(note="").values_list("note", flat=True)) == [
        "some words are unknown to the encoder"
    ]
