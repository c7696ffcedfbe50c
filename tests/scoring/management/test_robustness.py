"""The robustness report of texts that people wrote under constraints: the row of each text, and its baseline."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.models import Output, Reference, WritingCampaign, WrittenReference
from annotation.services.campaigns import create_writing, open_campaign
from annotation.services.writing_later import withdraw_reference
from evalapp.common.errors import BadInput
from evalapp.common.jobs import get_job
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from scoring.selectors.written_kinds import find_sources, texts_by_kind
from tests.cast import Cast
from tests.factories import make_items, make_outputs
from tests.pages import read_page
from tests.writing import fill_ports, open_task_view, send

pytestmark = pytest.mark.django_db
ORIGINAL = "Answer 0 to i000."


@pytest.fixture
def written(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Cast:
    """One item with its original; texts written freely, as a paraphrase, and wrongly; and a withdrawn text."""
    fill_ports(monkeypatch)
    items = make_items(cast.project, 2, 1)
    make_outputs(cast.project, items)
    for slug, constraint, texts in (
        ("free", "free", ["Something quite else.", "A text to be taken out."]),
        ("other", "avoid-original-words", ["Words of my own."]),
        ("wrong", "minimally-wrong", ["Answer 0 to nobody."]),
    ):
        plan = {
            "name": slug, "slug": slug, "kind": "constraint", "items": {"keys": ["i000"]},
            "options": {"constraint": constraint, "target": 3},
        }  # fmt: skip
        campaign = create_writing(user=cast.researcher, project=cast.project, plan=plan)
        open_campaign(user=cast.researcher, campaign=campaign)
        view = open_task_view(cast.annotator, campaign)
        for text in texts:
            view = send(cast.annotator, view, text).view
    taken = WrittenReference.objects.get(text="A text to be taken out.")
    withdraw_reference(user=cast.researcher, reference_id=taken.pk)
    return cast


def report(*words: str) -> str:
    out = io.StringIO()
    call_command("robustness", *words, "--project", "alpha", "--here", stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_each_text_is_in_the_row_of_its_constraint_against_the_original(written):
    found = texts_by_kind(written.project)
    assert list(found) == ["MGE", "HWE", "LDHWE", "HWEBQ", "AE"]
    assert {kind: [record.text for record in records] for kind, records in found.items() if kind != "MGE"} == {
        "HWE": ["Something quite else."], "LDHWE": ["Words of my own."], "HWEBQ": [], "AE": ["Answer 0 to nobody."],
    }  # fmt: skip
    machines = Output.objects.filter(item__key="i000", system__kind="machine")
    assert sorted(record.text for record in found["MGE"]) == sorted(machines.values_list("text", flat=True))
    assert {record.references for records in found.values() for record in records} == {(ORIGINAL,)}
    assert {record.item for records in found.values() for record in records} == {"i000"}


def test_report(written):
    found = json.loads(report("token-f1", "--json"))
    rows = {row["kind"]: row for row in found["rows"]}
    # Three of four words shared with the original; none.
    assert (rows["AE"]["n"], rows["AE"]["score"]) == (1, pytest.approx(0.75))
    assert (rows["LDHWE"]["n"], rows["LDHWE"]["mean"], rows["LDHWE"]["sd"]) == (1, 0.0, None)
    assert (rows["HWEBQ"]["n"], rows["HWEBQ"]["score"]) == (0, None)
    assert found["signature"].startswith("token-f1|")
    assert found["n_in_training"] == 0
    text = report("token-f1")
    assert "minimally edited" in text
    assert "0.750" in text


def test_without_such_texts_it_explains_what_to_do(cast):
    make_items(cast.project, 1, 1)
    with pytest.raises(CommandError, match="Start a writing campaign of that kind first"):
        report("token-f1")
    assert not WritingCampaign.objects.exists()


def bring_wrong_answers(project) -> None:
    """Three items with three references each; two with their own wrong answers, one being empty."""
    for number, item in enumerate(make_items(project, 3, 3)):
        item.meta = [{"adversarial_negatives": ["Wrong 0.", "Wrong."]}, {"adversarial_negatives": [""]}, {}][number]
        item.save()


def test_wrong_answers_of_items_are_also_texts(cast):
    bring_wrong_answers(cast.project)
    found = texts_by_kind(cast.project)
    first, second, third = (
        Reference.objects.filter(item__key="i000").order_by("position").values_list("text", flat=True)
    )
    assert {kind: [record.text for record in records] for kind, records in found.items()} == {
        "MGE": [], "HWE": [third], "LDHWE": [second], "HWEBQ": [], "AE": ["Wrong 0."],
    }  # fmt: skip
    assert {record.references for records in found.values() for record in records} == {(first,)}
    assert set(find_sources(cast.project).missing) == {"HWEBQ"}
    rows = {row["kind"]: row["n"] for row in json.loads(report("token-f1", "--json"))["rows"]}
    assert rows == {"MGE": 0, "HWE": 1, "LDHWE": 1, "HWEBQ": 0, "AE": 1}


def list_missing(page):
    return re.search(r'data-missing="([^"]*)"', page)[1].split()


def test_page_reports_missing_scores_computes_in_a_run_and_shows_the_table(written, client):
    url = reverse("scoring:robustness", args=["alpha"])
    client.force_login(written.researcher)
    page = read_page(client.get(url))
    assert "HWEBQ" in list_missing(page)
    assert client.post(url, {"evaluator": "perception"}).status_code == 422
    sent = client.post(url, {"evaluator": "token-f1"})
    run = Run.objects.get(kind="robustness")
    assert sent.headers["Location"] == reverse("run", args=["alpha", run.pk])
    assert f"run {run.pk}</a> (waiting)" in read_page(client.get(url))
    assert execute_run(run.pk).state == "succeeded"
    run.refresh_from_db()
    # Machine outputs, and one text of each of three kinds.
    assert (run.done, run.total) == (sum(row["n"] for row in run.result["rows"]),) * 2
    page = read_page(client.get(url))
    assert "0.750" in page
    assert "token-f1|" in page
    client.force_login(written.viewer)
    assert client.post(url, {"evaluator": "token-f1"}).status_code == 403


def test_empty_page_explains_how_to_collect_texts(cast, client):
    client.force_login(cast.researcher)
    page = read_page(client.get(reverse("scoring:robustness", args=["alpha"])))
    assert {"HWE", "LDHWE", "HWEBQ", "AE"} <= set(list_missing(page))
    assert reverse("annotation:writing-new", args=["alpha"]) in page
    with pytest.raises(BadInput, match="is unknown"):
        get_job("robustness").ask(project=cast.project, user=None, params={"evaluator": "length", "folds": 3})
