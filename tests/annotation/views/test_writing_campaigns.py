"""The researcher's pages of writing campaigns: plan, open, watch, lists, withdraw."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Reference, WritingCampaign, WrittenReference
from annotation.services.campaigns import create_writing
from annotation.services.writing_acts import skip_task
from annotation.views.writing_context import CONSTRAINT_WORDS
from evalapp.accounts.models import Invitation
from evalapp.accounts.roles import Role
from tests.cast import Cast, join, person
from tests.factories import make_items
from tests.pages import fetch_figures, read_page
from tests.writing import (
    CORPUS,
    EVALUATOR,
    FakePorts,
    draft_writing,
    fill_ports,
    open_task_view,
    replace_hooks,
    send,
    start_writing,
)

pytestmark = pytest.mark.django_db

FIELDS: dict[str, Any] = {
    "name": "More replies", "kind": "ream", "evaluator": EVALUATOR, "corpus": CORPUS, "arms": ["scores", "control"],
    "assign": "annotator", "mode": "free", "group_size": 3, "max_attempts": 3, "min_gain": 0.0, "target": 4,
    "candidates": 50, "candidate_turns": 1, "own_text": "on", "constraint": "free", "confirmations": 0,
    "shared_words": 0, "items_choice": "all", "items_text": "", "start_set": "original", "lease_minutes": 30,
    "guidelines": "Write **replies**.", "seed": 13,
}  # fmt: skip


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePorts:
    return fill_ports(monkeypatch)


@pytest.fixture
def rita(client: Client, cast: Cast) -> Client:
    client.force_login(cast.researcher)
    return client


def read_steps(html: str) -> dict[str, str]:
    """The next steps of a project: whether each is done or next, by the address that it links to."""
    steps = html.partition('<ol class="steps">')[2].partition("</ol>")[0].split("<li")[1:]
    found = [re.search(r'^(?: class="(\w+)")?>.* href="([^"]+)"', step) for step in steps]
    return {match[2]: match[1] or "" for match in found if match}


def at(cast: Cast, name: str, *arguments: Any) -> str:
    return reverse(f"annotation:writing{'-' if name else ''}{name}", args=[cast.project.slug, *arguments])


def test_estimate_names_the_task_by_its_arms(rita: Client, cast: Cast, fake: FakePorts) -> None:
    """Without the arm with scores, nothing is called “with a reliability score”."""
    make_items(cast.project, 3, 1)
    scored = read_page(rita.post(at(cast, "estimate"), {**FIELDS, "name": ""}))
    unscored = read_page(rita.post(at(cast, "estimate"), {**FIELDS, "arms": ["control"], "evaluator": ""}))
    kinds = [re.search(r'<dd data-kind="ream">([^<]+)<', page) for page in (scored, unscored)]
    assert kinds[0]
    assert kinds[1]
    assert kinds[0][1] != kinds[1][1]
    assert 'data-estimate="3"' in scored
    rita.post(at(cast, "new"), {**FIELDS, "arms": ["control"], "evaluator": ""})
    draft = read_page(rita.get(at(cast, "", WritingCampaign.objects.get().pk)))
    assert kinds[1][1] in draft
    assert kinds[0][1] not in draft


def test_plan_draft_open_and_watch(rita: Client, cast: Cast, fake: FakePorts) -> None:
    make_items(cast.project, 3, 1)
    page = rita.get(at(cast, "new"))
    assert page.context["form"].initial["arms"] == ["scores", "control"]
    answer = rita.post(at(cast, "new"), FIELDS)
    campaign = WritingCampaign.objects.get()
    assert answer.url == at(cast, "", campaign.pk)
    assert (campaign.slug, campaign.corpus, campaign.options["candidate_turns"]) == ("more-replies", CORPUS, 1)
    html = read_page(rita.get(at(cast, "", campaign.pk)))
    assert '<dd data-arms="scores control" data-assign="annotator">' in html
    assert re.search(r'<dd id="plan-candidates" data-turns="1">[^<]*\b50\b[^<]*\breplies\b', html)
    assert "<strong>replies</strong>" in html
    again = rita.get(at(cast, "edit", campaign.pk)).context["form"].initial
    assert {name: again[name] for name in ("arms", "target", "start_set")} == {
        "arms": ["scores", "control"], "target": 4, "start_set": "original",
    }  # fmt: skip
    rita.post(at(cast, "edit", campaign.pk), {**FIELDS, "target": 3})
    rita.post(at(cast, "move", campaign.pk, "open"))
    campaign.refresh_from_db()
    assert (campaign.state, campaign.options["target"], campaign.unit_count) == ("open", 3, 3)
    html = read_page(rita.get(at(cast, "", campaign.pk)))
    assert "No judgements yet." in html
    assert 'aria-current="page">Campaigns</a>' in html
    assert at(cast, "", campaign.pk) in read_page(rita.get(
        reverse("annotation:campaign-list", args=[cast.project.slug])
    ))  # fmt: skip


def test_without_an_evaluator_the_form_offers_training_or_no_scores(
    rita: Client, cast: Cast, fake: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_hooks(monkeypatch, list_reliability_evaluators=lambda project: [])
    page = rita.get(at(cast, "new"))
    html = read_page(page)
    assert '<input type="hidden" name="evaluator" value="">' in html
    assert '<select name="evaluator"' not in html
    assert reverse("scoring:train", args=[cast.project.slug, "ream"]) in html
    assert page.context["form"].initial["arms"] == ["control"]
    make_items(cast.project, 1, 1)
    refused = rita.post(at(cast, "new"), {**FIELDS, "evaluator": ""})
    assert refused.status_code == 422
    assert set(refused.context["form"].errors) == {"evaluator"}
    assert 'class="errorlist"' in read_page(refused)
    assert rita.post(at(cast, "new"), {**FIELDS, "evaluator": "", "arms": ["control"]}).status_code == 302


def test_overview_shows_written_texts_and_the_next_step(
    rita: Client, cast: Cast, fake: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = reverse("project", args=[cast.project.slug])
    make_items(cast.project, 2, 1)
    assert at(cast, "new") in read_page(rita.get(url))  # a suitable evaluator exists
    campaign = create_writing(user=cast.researcher, project=cast.project, plan={"name": "Mine", "corpus": CORPUS})
    assert read_steps(read_page(rita.get(url)))[at(cast, "", campaign.pk)] != "done"
    WritingCampaign.objects.filter(pk=campaign.pk).update(evaluator=EVALUATOR)
    rita.post(at(cast, "move", campaign.pk, "open"))
    html = read_page(rita.get(url))
    assert "Writing references" in html
    assert read_steps(html)[at(cast, "", campaign.pk)] == "done"


def test_constraint_campaign(rita: Client, cast: Cast, fake: FakePorts) -> None:
    make_items(cast.project, 1, 1)
    typed = {**FIELDS, "kind": "constraint", "constraint": "avoid-original-words", "instruction": "Other words."}
    assert rita.post(at(cast, "new"), typed).status_code == 302
    campaign = WritingCampaign.objects.get()
    assert (campaign.options["arms"], campaign.options["constraint"]) == (["control"], "avoid-original-words")
    html = read_page(rita.get(at(cast, "preview", campaign.pk)))
    assert str(CONSTRAINT_WORDS["avoid-original-words"]) in html
    assert "Answer 0 to i000." in html


def test_errors_appear_at_their_fields(rita: Client, cast: Cast, fake: FakePorts) -> None:
    answer = rita.post(at(cast, "new"), {**FIELDS, "name": "", "target": 0, "items_choice": "keys"})
    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {"name", "target", "items_text"}


def test_draft_lists_obstacles_to_opening(rita: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = draft_writing(cast, evaluator="ream-9", options={"arms": ["scores"]})
    html = read_page(rita.get(at(cast, "", campaign.pk)))
    assert re.search(r"data-problem>[^<]*“ream-9”", html)
    assert at(cast, "move", campaign.pk, "open") not in html
    campaign.evaluator = EVALUATOR
    campaign.save()
    html = read_page(rita.get(at(cast, "", campaign.pk)))
    assert "data-problem" not in html
    assert at(cast, "move", campaign.pk, "open") in html


def test_preview_by_arm_hides_scores_where_there_are_none(rita: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = draft_writing(cast, options={"arms": ["scores", "control"]})
    url = at(cast, "preview", campaign.pk)
    assert 'id="score"' in read_page(rita.get(url, {"arm": "scores"}))
    assert 'id="score"' not in read_page(rita.get(url, {"arm": "control"}))
    assert "No item here." in read_page(rita.get(url, {"item": "99"}))


def test_watch_page_compares_arms_with_plots(rita: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=3, options={"arms": ["scores", "control"], "target": 5})
    otto = person("otto")
    join(cast.project, otto, Role.ANNOTATOR)
    for user in (cast.annotator, otto):
        view = open_task_view(user, campaign)
        for number in range(2):
            send(user, view, f"A good reply number {number} by {user.username}.")
    reason = "I do not understand it."
    skip_task(user=otto, public=view.public, reason=reason)
    html = read_page(rita.get(at(cast, "", campaign.pk)))
    assert reason in html
    assert html.count('class="curve rounds"') == 2
    assert "Comparison of arms" in html
    assert [file[:5] for file in fetch_figures(rita, html)] == [b"<svg ", b"%PDF-"] * 2
    assert "<dd><a href=" in html
    assert "p-anna" in html
    assert "Predicted reliability" in html
    assert "style=" not in html
    part = read_page(rita.get(at(cast, "", campaign.pk), headers={"HX-Request": "true"}))
    assert part.lstrip().startswith('<div id="live"')


def test_references_are_listed_withdrawn_and_restored(rita: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1, options={"target": 5})
    view = open_task_view(cast.annotator, campaign)
    send(cast.annotator, view, "A plain reply.")
    send(cast.annotator, view, "A good reply.")
    written = WrittenReference.objects.get()
    html = read_page(rita.get(at(cast, "references", campaign.pk)))
    assert "A good reply." in html
    assert "own text" in html
    html = read_page(rita.get(at(cast, "attempts", campaign.pk), {"arm": "scores"}))
    assert re.search(r'data-decision="edit">[^<]+<p [^>]*data-why="no-gain">[^<]+</p>', html)
    assert "Withdraw this reference?" in read_page(rita.get(at(cast, "withdraw", campaign.pk, written.pk)))
    rita.post(at(cast, "withdraw", campaign.pk, written.pk), {"reason": "a copy"})
    assert not Reference.objects.filter(text="A good reply.").exists()
    html = read_page(rita.get(at(cast, "references", campaign.pk), {"rater": "p-anna"}))
    assert re.search(r"Withdrawn.*a copy", html, re.DOTALL)
    rita.post(at(cast, "restore", campaign.pk, written.pk))
    assert Reference.objects.filter(text="A good reply.").count() == 1


def test_pause_close_and_delete(rita: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    for move, state in (("pause", "paused"), ("resume", "open"), ("close", "closed")):
        rita.post(at(cast, "move", campaign.pk, move))
        campaign.refresh_from_db()
        assert campaign.state == state
    form = rita.get(at(cast, "edit", campaign.pk)).context["form"]
    assert set(form.fields) == {"name", "guidelines", "max_per_annotator", "lease_minutes"}
    assert "Delete “More replies”?" in read_page(rita.get(at(cast, "delete", campaign.pk)))
    rita.post(at(cast, "delete", campaign.pk))
    assert not WritingCampaign.objects.exists()


def test_invitations_lead_to_the_first_item(rita: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    url = at(cast, "people", campaign.pk)
    made = rita.post(url, {"label": "students", "max_uses": 3, "days": 7})
    assert "Invitation link created." in read_page(made)
    row = Invitation.objects.get()
    assert row.landing == reverse("annotation:write", args=[campaign.pk])
    rita.post(at(cast, "invitation-revoke", campaign.pk, row.pk))
    row.refresh_from_db()
    assert row.revoked_at is not None


def test_viewers_watch_but_change_nothing(client: Client, cast: Cast, fake: FakePorts) -> None:
    campaign = start_writing(cast, items=1)
    client.force_login(cast.viewer)
    assert client.get(at(cast, "", campaign.pk)).status_code == 200
    assert client.get(at(cast, "new")).status_code == 403
    assert client.post(at(cast, "move", campaign.pk, "pause")).status_code == 403
    client.force_login(cast.annotator)
    assert client.get(at(cast, "references", campaign.pk)).status_code in (403, 404)
