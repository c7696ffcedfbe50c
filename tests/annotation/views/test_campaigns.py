"""The researcher's pages of campaigns as plain forms: plan, practice and controls, open, invite, watch, close."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Campaign, ItemFlag, Judgement, Unit
from annotation.selectors.campaigns import make_campaign_plan
from annotation.services.campaigns import open_campaign
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.judging_acts import flag_assignment
from annotation.views.campaign_overview import make_campaign_step, render_campaigns_section
from evalapp.accounts.models import Invitation, Membership
from tests.cast import Cast
from tests.judging import ONE_QUESTION, make_draft, make_texts, open_comparison, open_rating
from tests.pages import read_flashes, read_page

pytestmark = pytest.mark.django_db
BASE = "/projects/alpha/campaigns/"


@pytest.fixture
def rita(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.researcher)
    return client


def read(response: Any, status: int = 200) -> str:
    text = read_page(response)
    assert response.status_code == status, text[:3000]
    return text


def list_faulty(text: str) -> set[str]:
    """The fields on a page that have an error."""
    return set(re.findall(r'<ul class="errorlist" id="id_([\w-]+)_error"', text))


def typed(**changes: Any) -> dict[str, Any]:
    """The values a person types into the form of a new campaign."""
    return {
        "name": "Naturalness of replies",
        "kind": "likert",
        "aspects-TOTAL_FORMS": "2",
        "aspects-INITIAL_FORMS": "0",
        "aspects-0-name": "naturalness",
        "aspects-0-question": "How natural is it?",
        "aspects-0-low": "1",
        "aspects-0-high": "6",
        "aspects-0-step": "1",
        "aspects-0-labels": "1 = awkward\n6 = native",
        "aspects-1-name": "",
        "items_choice": "all",
        "sample": "",
        "systems": ["sys-alpha", "sys-beta"],
        "steps": "all",
        "overlap": "2",
        "max_per_annotator": "40",
        "lease_minutes": "30",
        "guidelines": "Rate the **reply**.",
        "allow_note": "on",
        "allow_skip": "on",
        "control_rate": "10",
        "repeat_share": "5",
        "repeat_gap": "10",
        "seed": "13",
        **changes,
    }


def answer(user: Any, campaign: Campaign, **values: Any) -> None:
    from uuid import uuid4

    shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
    assert shown is not None
    submit_answer(user=user, public=shown.public, submission=uuid4(), answer=values, seconds=12.0)


# ---- the list ---------------------------------------------------------------------------------------------


def test_viewer_sees_but_may_not_plan(cast: Cast) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    client = Client()
    client.force_login(cast.viewer)
    assert "New campaign" not in read(client.get(BASE))
    assert "Open campaign" not in read(client.get(f"{BASE}{campaign.pk}/"))
    read(client.get(f"{BASE}new/"), 403)
    read(client.post(f"{BASE}{campaign.pk}/open/"), 403)
    read(client.get(f"{BASE}{campaign.pk}/people/"), 403)


@pytest.mark.parametrize(("name", "status"), [("annotator", 403), ("stranger", 404)])
def test_annotators_and_strangers_see_nothing(cast: Cast, name: str, status: int) -> None:
    campaign = open_rating(cast)
    client = Client()
    client.force_login(getattr(cast, name))
    for path in (
        "",
        "new/",
        *(f"{campaign.pk}/{tail}" for tail in ("", "judgements/", "texts/", "flags/", "preview/")),
    ):
        text = read(client.get(BASE + path), status)
        assert "sys-alpha" not in text


def test_campaign_of_another_project_is_not_found(cast: Cast) -> None:
    campaign = open_rating(cast)
    client = Client()
    client.force_login(cast.stranger)
    read(client.get(f"/projects/alpha-foreign/campaigns/{campaign.pk}/"), 404)


# ---- planning ---------------------------------------------------------------------------------------------


def estimate(text: str) -> str | None:
    match = re.search(r'id="estimate"[^>]*data-estimate="(\d*)"', text)
    return match and match[1]


def test_estimate_follows_the_form_and_stores_nothing(cast: Cast, rita: Client) -> None:
    make_texts(cast, 5)
    read(rita.get(f"{BASE}new/"))
    address = f"{BASE}estimate/"
    assert estimate(read(rita.post(address, typed()))) == "20"  # 5 items, 2 systems, 2 annotators
    assert estimate(read(rita.post(address, typed(overlap="3", systems=["sys-alpha"])))) == "15"
    assert estimate(read(rita.post(address, typed(sample="2")))) == "8"
    unnamed = typed(name="", **{"aspects-0-name": "", "aspects-0-question": ""})
    assert estimate(read(rita.post(address, unnamed))) == "20"
    assert estimate(read(rita.post(address, typed(kind="pairwise", overlap="1")))) == "5"
    unclear = read(rita.post(address, typed(overlap="none")))
    assert estimate(unclear) == ""
    assert "Overlap" in unclear
    assert not Campaign.objects.exists()


def test_estimate_equals_that_of_the_stored_draft(cast: Cast, rita: Client) -> None:
    make_texts(cast, 5)
    for kind in ("likert", "pairwise", "turing"):
        plan = typed(kind=kind, name=f"As {kind}", overlap="2")
        found = estimate(read(rita.post(f"{BASE}estimate/", plan)))
        rita.post(f"{BASE}new/", plan)
        shown = rita.get(f"{BASE}{Campaign.objects.latest('pk').pk}/").context["estimate"]
        assert found == str(shown["judgements"]), kind


def test_estimate_without_script_is_a_button_of_the_form(cast: Cast, rita: Client) -> None:
    make_texts(cast, 5)
    text = read(rita.post(f"{BASE}new/", typed(do="estimate", name="")))
    assert estimate(text) == "20"
    assert 'value="estimate" formnovalidate' in text
    assert not list_faulty(text)
    assert not Campaign.objects.exists()


def test_without_outputs_the_next_step_is_an_upload(cast: Cast, rita: Client) -> None:
    uploads = reverse("annotation:upload-list", args=["alpha"])
    assert f'class="button primary" href="{uploads}"' in read(rita.get(BASE))
    make_texts(cast)
    text = read(rita.get(BASE))
    assert f'class="button primary" href="{BASE}new/"' in text
    assert "evalapp campaign alpha PLAN.json --open" in text


def test_link_is_shown_right_after_opening(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    assert 'name="invite"' in read(rita.get(f"{BASE}{campaign.pk}/"))
    response = rita.post(f"{BASE}{campaign.pk}/open/", {"invite": "7"})
    text = read(response)
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.OPEN
    made = Invitation.objects.get()
    assert (made.max_uses, made.role, made.landing) == (7, "annotator", f"/my/{campaign.pk}/")
    assert 'id="secret-invitation"' in text
    assert 'data-copy="secret-invitation"' in text
    assert "no-store" in response["Cache-Control"]
    again = read(rita.get(f"{BASE}{campaign.pk}/people/"))
    assert 'id="secret-invitation"' not in again, "it is shown once"


@pytest.mark.parametrize(("invite", "warned"), [("", []), ("0", []), ("many", ["warning"])])
def test_opening_without_a_link_leads_to_the_campaign(cast: Cast, rita: Client, invite: str, warned: list[str]) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    response = rita.post(f"{BASE}{campaign.pk}/open/", {"invite": invite})
    assert response["Location"] == f"{BASE}{campaign.pk}/"
    levels = [level for level, _text in read_flashes(rita.get(response["Location"]))]
    assert [level for level in levels if level == "warning"] == warned
    assert not Invitation.objects.exists()


def test_creates_a_draft_by_form(cast: Cast, rita: Client) -> None:
    make_texts(cast, 5)
    assert "sys-alpha (5 outputs)" in read(rita.get(f"{BASE}new/"))
    text = read(rita.post(f"{BASE}new/", typed(), follow=True))
    campaign = Campaign.objects.get()
    assert campaign.state == "draft"
    plan = make_campaign_plan(campaign)
    assert plan["slug"] == "naturalness-of-replies"
    assert plan["aspects"] == [
        {"name": "naturalness", "question": "How natural is it?", "low": 1, "high": 6, "step": 1,
         "labels": {"1": "awkward", "6": "native"}}
    ]  # fmt: skip
    assert plan["options"]["control_rate"] == 0.1
    assert plan["options"]["allow_revise"] is False
    # 5 items, 2 systems, overlap 2: 20 judgements, at 15 s each 5 minutes.
    assert "10 × 2" in text
    assert "5 min" in text
    assert "10 min" in read(rita.get(f"{BASE}{campaign.pk}/?seconds=30"))


def test_errors_appear_at_their_field_and_input_is_kept(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    wrong = typed(**{"name": "", "overlap": "0", "aspects-0-high": "1", "guidelines": "keep *this*"})
    text = read(rita.post(f"{BASE}new/", wrong), 422)
    assert "keep *this*" in text
    assert 'value="How natural is it?"' in text
    assert {"name", "overlap"} <= list_faulty(text)
    assert re.search(r'name="systems" value="sys-beta"[^>]* checked', text)
    text = read(rita.post(f"{BASE}new/", typed(**{"aspects-0-high": "1"})), 422)
    row = re.search(r'<fieldset class="aspect">.*?</fieldset>', text, re.S)[0]
    assert 'class="errorlist' in row
    assert Campaign.objects.count() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"aspects-0-name": "", "aspects-0-question": ""}, "Name at least one aspect"),
        ({"aspects-0-name": ""}, "Give the question a short name."),
        ({"aspects-0-labels": "awkward"}, "Enter the value"),
        ({"items_choice": "groups"}, "Enter the words, groups or items."),
        ({"aspects-1-name": "naturalness"}, "An aspect is named twice."),
        ({"control_rate": "80"}, "less than or equal to 50"),
    ],
)
def test_each_error_has_its_message(cast: Cast, rita: Client, change: dict[str, str], message: str) -> None:
    make_texts(cast)
    assert message in read(rita.post(f"{BASE}new/", typed(**change)), 422)


def test_adds_a_question_without_script(cast: Cast, rita: Client) -> None:
    text = read(rita.post(f"{BASE}new/", typed(do="add-aspect", name="")))
    assert 'name="aspects-2-name"' in text
    assert 'value="How natural is it?"' in text
    assert list_faulty(text) == set()
    assert Campaign.objects.count() == 0


def test_guidelines_preview(cast: Cast, rita: Client) -> None:
    text = read(rita.post(f"{BASE}new/", typed(do="preview", guidelines="Be **kind** <script>x</script>")))
    assert "<strong>kind</strong>" in text
    fragment = read(rita.post(f"{BASE}guidelines/", {"guidelines": "Be **kind**"}, headers={"HX-Request": "true"}))
    assert "<strong>kind</strong>" in fragment
    assert "<html" not in fragment


def test_scale_of_the_project_is_kept(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    rita.post(f"{BASE}new/", typed())
    text = read(rita.post(f"{BASE}new/", typed(**{"aspects-0-high": "5", "name": "Other"})), 422)
    assert "is rated from 1 to 6 in this project" in text
    assert 'value="naturalness"' in read(rita.get(f"{BASE}new/"))  # offered with its scale


def test_two_campaigns_of_one_name_get_two_addresses(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    for _ in range(2):
        read(rita.post(f"{BASE}new/", typed(), follow=True))
    assert set(Campaign.objects.values_list("slug", flat=True)) == {
        "naturalness-of-replies",
        "naturalness-of-replies-2",
    }


def test_changes_a_draft_and_starts_from_a_copy(cast: Cast, rita: Client) -> None:
    make_texts(cast, 6)
    read(rita.post(f"{BASE}new/", typed(), follow=True))
    campaign = Campaign.objects.get()
    text = read(rita.get(f"{BASE}{campaign.pk}/plan/"))
    assert "1 = awkward" in text
    change = typed(kind="pairwise", pairs="4", items_choice="keys", items_text="i000\ni001\ni002\ni003\n", sample="2")
    read(rita.post(f"{BASE}{campaign.pk}/plan/", change, follow=True))
    campaign.refresh_from_db()
    assert campaign.plan["items"] == {"keys": ["i000", "i001", "i002", "i003"], "sample": 2}
    assert campaign.plan["pairs"] == 4
    copy = rita.get(f"{BASE}new/?from={campaign.pk}").content.decode()
    assert "i000\ni001" in copy
    read(rita.post(f"{BASE}{campaign.pk}/plan/", typed(), follow=True))
    campaign.refresh_from_db()
    assert campaign.kind == "likert"


def test_empty_plan_is_reported(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    text = read(rita.post(f"{BASE}new/", typed(items_choice="search", items_text="nowhere"), follow=True))
    assert 'class="note warn"' in text
    assert '/open/"' not in text


def test_preview_shows_the_page_and_submits_nothing(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    text = read(rita.get(f"{BASE}{campaign.pk}/preview/"))
    assert "Text 0-0." in text
    assert "How natural is it?" in text
    assert "csrfmiddlewaretoken" not in re.search(r"<article.*</article>", text, re.S)[0]
    assert "No text here" in read(rita.get(f"{BASE}{campaign.pk}/preview/?text=999"))


def test_deletes_a_draft_after_confirmation(cast: Cast, rita: Client) -> None:
    campaign = make_draft(cast)
    assert "Delete “Replies”?" in read(rita.get(f"{BASE}{campaign.pk}/delete/"))
    read(rita.post(f"{BASE}{campaign.pk}/delete/", follow=True))
    assert not Campaign.objects.exists()


# ---- practice and controls --------------------------------------------------------------------------------


def test_adds_practice_and_controls_by_form(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    url = f"{BASE}{campaign.pk}/checks/"
    assert "i003" in read(rita.get(url + "?q=i003"))
    assert "Text 3-1." in read(rita.get(url + "?item=i003"))
    row = {"item": "i003", "list": "practice", "output_a": "sys-beta|", "low.naturalness": "5", "high.naturalness": "6",
           "why": "Nothing is missing."}  # fmt: skip
    text = read(rita.post(url, row, follow=True))
    assert "naturalness 5 to 6" in text
    assert "Nothing is missing." in text
    read(rita.post(url, {**row, "item": "i004", "list": "controls"}, follow=True))
    assert list(campaign.units.order_by("pk").values_list("kind", flat=True)) == ["practice", "control"]
    text = read(rita.post(f"{url}practice/0/remove/", follow=True))
    assert list(campaign.units.values_list("kind", flat=True)) == ["control"]


def test_invalid_check_keeps_the_input(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    url = f"{BASE}{campaign.pk}/checks/"
    row = {"item": "i003", "list": "controls", "output_a": "sys-beta|", "low.naturalness": "9", "why": "kept words"}
    text = read(rita.post(url, row), 422)
    assert re.search(r'class="errorlist[^>]*>\s*<li>[^<]*\b9\b', text)
    assert "kept words" in text
    assert re.search(r'value="sys-beta\|" required checked', text)
    text = read(rita.post(url, {**row, "low.naturalness": ""}), 422)
    assert "Give the expected answer to at least one question." in text


def test_pastes_checks_as_json(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    url = f"{BASE}{campaign.pk}/checks/"
    rows = '{"practice": [{"item": "i000", "system": "sys-alpha", "expected": {"naturalness": [5, 6]}, "why": "x"}]}'
    read(rita.post(url, {"do": "paste", "pasted": rows}, follow=True))
    read(rita.post(url, {"do": "paste", "pasted": rows.replace("i000", "i001")}, follow=True))
    assert campaign.units.filter(kind=Unit.Kind.PRACTICE).count() == 2
    for wrong, message in (
        (rows.replace("i000", "i999"), "practice, row 1, item: The project has no item “i999”."),
        (rows.replace("naturalness", "charm"), "has no question “charm”"),
        ("[1, 2]", "Paste one object"),
        ("{", "This is not JSON (line 1"),
    ):
        text = read(rita.post(url, {"do": "paste", "pasted": wrong}), 422)
        assert message in text
        assert campaign.units.count() == 2


def test_checks_of_a_comparison(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    campaign = make_draft(cast, kind="pairwise", aspects=[{"name": "quality", "question": "Better?"}])
    row = {"item": "i001", "list": "practice", "output_a": "sys-beta|", "output_b": "sys-alpha|",
           "verdict.quality": ["a", "tie"], "why": "x"}  # fmt: skip
    text = read(rita.post(f"{BASE}{campaign.pk}/checks/", row, follow=True))
    assert "sys-beta / sys-alpha" in text
    assert campaign.units.get().expected == {"quality": ["a", "tie"]}


def test_checks_are_fixed_once_open(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast)
    assert "fixed once" in read(rita.get(f"{BASE}{campaign.pk}/checks/"), 409)


# ---- opening, watching, closing ---------------------------------------------------------------------------


def test_open_pause_resume_close(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    campaign = make_draft(cast)
    url = f"{BASE}{campaign.pk}/"
    for move, words in (("open", "The campaign is open"), ("pause", "Paused."), ("resume", "open again")):
        assert words in read(rita.post(f"{url}{move}/", follow=True))
    assert "Close “Replies”?" in read(rita.get(f"{url}close/"))
    campaign.refresh_from_db()
    assert campaign.state == "open"
    assert "The campaign is closed" in read(rita.post(f"{url}close/", follow=True))
    assert "not possible" in read(rita.post(f"{url}pause/", follow=True))
    read(rita.post(f"{url}explode/"), 404)


def test_watch_page_shows_progress(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast, items=3, aspects=ONE_QUESTION, overlap=2)
    for user in (cast.annotator, cast.owner):
        for value in (2, 5, 6):
            answer(user, campaign, naturalness=value)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    flag_assignment(user=cast.annotator, public=shown.public, reason="broken", text="half a word")
    text = read(rita.get(f"{BASE}{campaign.pk}/"))
    assert "6 of 12 judgements" in text
    assert "p-anna" in text
    assert "12 s" in text
    assert 'hx-trigger="every 5s"' in text
    live = read(rita.get(f"{BASE}{campaign.pk}/", headers={"HX-Request": "true"}))
    assert live.lstrip().startswith('<div id="live"')
    assert "half a word" in read(rita.get(f"{BASE}{campaign.pk}/flags/"))
    rita.post(f"{BASE}{campaign.pk}/close/")
    assert 'hx-trigger="every' not in read(rita.get(f"{BASE}{campaign.pk}/", headers={"HX-Request": "true"}))


def test_only_owners_see_annotator_names_on_the_watch_page(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    answer(cast.annotator, campaign, naturalness=2)
    olga, vic = Client(), Client()
    olga.force_login(cast.owner)
    vic.force_login(cast.viewer)
    named = [">anna<" in read(who.get(f"{BASE}{campaign.pk}/")) for who in (olga, rita, vic)]
    assert named == [True, False, False]


def test_agreement_without_answers_is_a_dash_with_a_reason(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    get_next_assignment(user=cast.annotator, campaign_id=campaign.pk)
    assert "no answers yet" in read(rita.get(f"{BASE}{campaign.pk}/"))


def test_side_bias_is_shown_for_comparisons(cast: Cast, rita: Client) -> None:
    campaign = open_comparison(cast)
    for verdict in ("a", "a", "b"):
        answer(cast.annotator, campaign, quality=verdict)
    assert "2 : 1" in read(rita.get(f"{BASE}{campaign.pk}/"))


def test_verdicts_name_the_system_on_either_side(cast: Cast, rita: Client) -> None:
    campaign = open_comparison(cast, items=1)
    answer(cast.annotator, campaign, quality="a")
    row = Judgement.objects.select_related("assignment__unit__output_b__system").get()
    unit = row.assignment.unit
    winner = unit.output_b if row.assignment.side_swapped else unit.output_a
    text = read(rita.get(f"{BASE}{campaign.pk}/judgements/"))
    assert f'<span class="nowrap">{winner.system.name}</span>' in text


def test_lists_of_judgements_and_texts(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast, aspects=ONE_QUESTION)
    answer(cast.annotator, campaign, naturalness=4)
    answer(cast.owner, campaign, naturalness=3)
    text = read(rita.get(f"{BASE}{campaign.pk}/judgements/"))
    assert text.count("<tr>") == 3
    only = read(rita.get(f"{BASE}{campaign.pk}/judgements/?rater=p-anna"))
    assert only.count("<tr>") == 2
    assert "1 of 1" in read(rita.get(f"{BASE}{campaign.pk}/texts/"))


def test_flag_is_resolved(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast)
    shown = get_next_assignment(user=cast.annotator, campaign_id=campaign.pk).shown
    flag_assignment(user=cast.annotator, public=shown.public, reason="broken")
    flag = ItemFlag.objects.get()
    text = read(rita.post(f"{BASE}{campaign.pk}/flags/{flag.pk}/resolve/", follow=True))
    assert "No open flags." in text
    assert "resolved" in read(rita.get(f"{BASE}{campaign.pk}/flags/?resolved=1"))


def test_running_campaign_changes_guidelines_and_limits_only(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast)
    url = f"{BASE}{campaign.pk}/plan/"
    text = read(rita.get(url))
    assert "aspects-0-name" not in text
    changed = {"name": "Replies", "guidelines": "New **words**", "lease_minutes": "5", "max_per_annotator": "3",
               "allow_note": "on", "control_rate": "0"}  # fmt: skip
    read(rita.post(url, changed, follow=True))
    campaign.refresh_from_db()
    assert (campaign.guidelines, campaign.lease_minutes, campaign.max_per_annotator) == ("New **words**", 5, 3)
    assert campaign.options["allow_skip"] is False
    assert "still here" in read(rita.post(url, {**changed, "lease_minutes": "0", "guidelines": "still here"}), 422)


# ---- invitations ------------------------------------------------------------------------------------------


def test_invitation_link_leads_to_the_texts(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast)
    url = f"{BASE}{campaign.pk}/people/"
    response = rita.post(url, {"label": "first years", "max_uses": "5", "days": "7"})
    text = read(response)
    assert response["Cache-Control"] == "no-store"
    link = re.search(r'value="(http://testserver/invitations/[^"]+)"', text)[1]
    assert link not in read(rita.get(url))
    newcomer = Client()
    details = {
        "username": "nina",
        "email": "n@example.org",
        "password1": "a-long-enough-one",
        "password": "a-long-enough-one",
    }
    landed = newcomer.post(link.removeprefix("http://testserver"), details, follow=True)
    assert [address for address, _ in landed.redirect_chain][-2:] == [
        f"/my/{campaign.pk}/", f"/my/{campaign.pk}/guidelines/",
    ]  # fmt: skip
    begun = newcomer.post(landed.redirect_chain[-1][0], follow=True)
    assert begun.redirect_chain[-1][0] == f"/my/{campaign.pk}/"
    assert "data-id=" in read(begun)
    assert Membership.objects.get(user__username="nina").role == "annotator"
    assert "1 of 5" in read(rita.get(url))
    invitation = Invitation.objects.get()
    read(rita.post(f"{url}{invitation.pk}/revoke/", follow=True))
    assert Invitation.objects.get().revoked_at <= timezone.now()
    read(newcomer.get(link.removeprefix("http://testserver")), 404)


def test_link_needs_valid_numbers(cast: Cast, rita: Client) -> None:
    campaign = open_rating(cast)
    text = read(rita.post(f"{BASE}{campaign.pk}/people/", {"label": "kept", "max_uses": "0", "days": "9"}), 422)
    assert 'value="kept"' in text
    assert Invitation.objects.count() == 0


# ---- overview, cost ---------------------------------------------------------------------------------------


def test_overview_leads_from_empty_to_open(cast: Cast, rita: Client) -> None:
    make_texts(cast)
    assert "Collect human judgements" in read(rita.get("/projects/alpha/"))
    campaign = make_draft(cast)
    assert "Open the campaign" in read(rita.get("/projects/alpha/"))
    open_campaign(campaign=campaign, user=cast.researcher)
    answer(cast.annotator, campaign, naturalness=4, relevance=3)
    assert "1 of 12 judgements" in read(rita.get("/projects/alpha/"))


@pytest.mark.parametrize("tail", ["", "judgements/", "texts/", "flags/", "people/", "preview/"])
def test_campaign_pages_need_few_queries(
    cast: Cast, rita: Client, django_assert_max_num_queries: Any, tail: str
) -> None:
    campaign = open_rating(cast, items=12, aspects=ONE_QUESTION, overlap=2)
    for user in (cast.annotator, cast.owner, cast.researcher):
        for _ in range(6):
            answer(user, campaign, naturalness=3)
        shown = get_next_assignment(user=user, campaign_id=campaign.pk).shown
        flag_assignment(user=user, public=shown.public, reason="broken")
    with django_assert_max_num_queries(15):
        read(rita.get(f"{BASE}{campaign.pk}/{tail}"))


def test_list_needs_few_queries(cast: Cast, rita: Client, django_assert_max_num_queries: Any) -> None:
    make_texts(cast)
    for number in range(12):
        make_draft(cast, name=f"Campaign {number}")
    with django_assert_max_num_queries(15):
        read(rita.get(BASE))


def test_overview_needs_three_queries(cast: Cast, rf: Any, django_assert_max_num_queries: Any) -> None:
    open_rating(cast)
    request = rf.get("/projects/alpha/")
    request.user = cast.researcher
    cast.project.role = "researcher"
    with django_assert_max_num_queries(3):
        assert "Replies" in render_campaigns_section(request, cast.project)
        assert make_campaign_step(request, cast.project).done


def test_empty_lists_show_the_command_for_this_project(client, cast):
    client.force_login(cast.researcher)
    for path, words in (
        ("items/", "evalapp load FOLDER --project alpha"),
        ("", "<dd>0</dd>"),
    ):
        assert words in read_page(client.get(f"/projects/alpha/{path}"))
