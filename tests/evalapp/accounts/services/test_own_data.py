"""People can view, download and withdraw their stored data; ratings stay without a link to a name."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client

from annotation.models import Judgement, Rating, Reference, WrittenReference
from annotation.services.judging import get_next_assignment, submit_answer
from annotation.services.judging_acts import flag_assignment
from annotation.services.writing_later import restore_reference
from evalapp.accounts.models import Membership, User
from evalapp.accounts.services import create_token
from evalapp.common import audit_chain
from evalapp.common.errors import Conflict
from tests.cast import PASSWORD, Cast
from tests.judging import open_rating
from tests.pages import is_refused_sign_in, read_flashes
from tests.writing import fill_ports, open_task_view, send, start_writing

pytestmark = [pytest.mark.django_db, pytest.mark.promise("own-data")]
WORDS = ("a note of mine", "a remark of mine", "a good text of mine")


@pytest.fixture
def anna(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Anna has judged with a note, flagged, started an answer, written a text, and created a token."""
    fill_ports(monkeypatch)
    user = cast.annotator
    campaign = open_rating(cast, items=3)
    turn = get_next_assignment(user=user, campaign_id=campaign.pk)
    public = turn.shown.public
    flag_assignment(user=user, public=public, reason="broken", text=WORDS[1])
    answer = {"naturalness": 4, "relevance": 3}
    submit_answer(user=user, public=public, submission=uuid4(), answer=answer, note=WORDS[0], seconds=7.5)
    client = Client()
    client.force_login(user)
    following = get_next_assignment(user=user, campaign_id=campaign.pk).shown.public
    draft = json.dumps({"version": 0, "draft": {"answer": {}, "note": "draft of mine"}})
    client.patch(f"/api/v1/assignments/{following}/", draft, content_type="application/json")
    return client


def write(cast: Cast) -> WrittenReference:
    cast.project = cast.foreign  # her second project, so that items do not collide
    Membership.objects.create(project=cast.foreign, user=cast.annotator, role="annotator", pseudonym="p-2")
    Membership.objects.create(project=cast.foreign, user=cast.researcher, role="researcher", pseudonym="p-3")
    campaign = start_writing(cast, items=1, references=1, options={"target": 4})
    send(cast.annotator, open_task_view(cast.annotator, campaign), WORDS[2])
    return WrittenReference.objects.get()


def everything() -> str:
    """All rows of all tables, as text."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            found.append(repr(cursor.fetchall()))
    return "".join(found)


def test_stored_data_are_shown_and_can_be_downloaded(anna, cast):
    write(cast)
    _, secret = create_token(user=cast.annotator, name="script", scopes=["read"])
    page = anna.get("/account/data/").content.decode()
    assert '<tr data-part="judgements">' in page
    answer = anna.get("/account/data/file/")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="my-data.json"'
    data: dict[str, Any] = answer.json()
    assert data["account"][0]["email"] == "anna@example.org"
    assert data["judgements"][0]["answer"] == {"naturalness": 4, "relevance": 3}
    assert (data["judgements"][0]["note"], data["judgements"][0]["seconds"]) == (WORDS[0], 7.5)
    assert data["flags"][0]["text"] == WORDS[1]
    assert data["drafts"][0]["draft"]["note"] == "draft of mine"
    assert data["references"][0]["text"] == data["attempts"][0]["text"] == WORDS[2]
    assert {row["judges_as"] for row in data["projects"]} == {"p-anna", "p-2"}
    text = answer.content.decode()
    assert secret not in text
    for hidden in ("sys-alpha", "sys-beta", "digest", "control", "score", "argon", "rita", "olga"):
        assert hidden not in text.replace('"to"', "")


def test_other_peoples_data_are_not_shown(anna, cast):
    other = Client()
    other.force_login(cast.viewer)
    text = other.get("/account/data/file/").content.decode()
    assert not [word for word in (*WORDS, "anna") if word in text]


def test_written_texts_can_be_withdrawn_and_ratings_stay(anna, cast):
    row = write(cast)
    ratings = list(Rating.objects.order_by("pk").values_list("rater", "value"))
    assert ratings
    assert Reference.objects.filter(text=WORDS[2]).exists()
    ((level, words),) = read_flashes(anna.post("/account/data/", {"act": "withdraw"}, follow=True))
    counts = re.findall(r"(\d+) (\w+)", words)
    assert level == "success"
    assert counts == [("1", name) for name in ("references", "notes", "flags", "drafts", "attempts")]
    left = everything()
    assert not [word for word in (*WORDS, "draft of mine") if word in left]
    assert list(Rating.objects.order_by("pk").values_list("rater", "value")) == ratings
    assert Judgement.objects.get().answer == {"naturalness": 4, "relevance": 3}
    with pytest.raises(Conflict, match="the text was deleted"):
        restore_reference(user=cast.researcher, reference_id=row.pk)
    assert audit_chain.verify().faults == ()
    again = anna.post("/account/data/", {"act": "withdraw"}, follow=True).content.decode()
    assert "no texts" in again


def test_closed_account_leaves_ratings_without_a_name(anna, cast):
    user = cast.annotator
    User.objects.filter(pk=user.pk).update(first_name="Anna Muster")
    create_token(user=user, name="script", scopes=["read"])
    Client().post("/account/sign-in/", {"username": "anna", "password": "wrong"})
    ratings = list(Rating.objects.order_by("pk").values_list("rater", "value"))
    refused = anna.post("/account/data/", {"act": "close", "password": "not mine at all"})
    assert refused.status_code == 422
    assert anna.get("/account/").status_code == 200
    assert anna.post("/account/data/", {"act": "close", "password": PASSWORD}).status_code == 302
    assert anna.get("/account/").status_code == 302
    assert list(Rating.objects.order_by("pk").values_list("rater", "value")) == ratings
    assert not Membership.objects.filter(user=user).exists()
    left = everything().replace("p-anna", "")  # the pseudonym in this test; real ones are random
    assert not [word for word in ("'anna'", "anna@", "Anna Muster", '"anna"') if word in left]
    assert audit_chain.verify().faults == ()
    again = Client().post("/account/sign-in/", {"username": "anna", "password": PASSWORD})
    assert is_refused_sign_in(again)


def test_name_of_a_closed_account_cannot_be_reused(anna, cast):
    User.objects.create_user(f"closed-{cast.annotator.pk}")
    assert anna.post("/account/data/", {"act": "close", "password": PASSWORD}).status_code == 302
    assert User.objects.get(pk=cast.annotator.pk).username.startswith(f"closed-{cast.annotator.pk}-")


def test_last_owner_must_hand_over_first(cast):
    olga = Client()
    olga.force_login(cast.owner)
    page = olga.post("/account/data/", {"act": "close", "password": PASSWORD})
    assert page.status_code == 422
    assert re.search(r'class="errorlist[^>]*><li>[^<]*\bAlpha\b', page.content.decode())
    assert User.objects.get(pk=cast.owner.pk).is_active


@pytest.mark.promise("mail")
def test_mail_addresses_are_visible_to_their_owner_and_to_project_owners_on_one_page(anna, cast):
    """Visits every page and list of the project with each role: addresses appear only on the people page, for
    owners."""
    from tests.security.test_blind import doors

    shown = {"/projects/alpha/people/", "/api/v1/projects/alpha/members/"}
    told: dict[str, set[str]] = {}
    for who in (cast.owner, cast.researcher, cast.viewer):
        client = Client()
        client.force_login(who)
        # The owner sees most, so text absent for her is absent for others.
        for path in doors(1, "x", "") if who == cast.owner else shown:
            answer = client.get(path)
            if not answer.streaming and b"anna@example.org" in answer.content:
                told.setdefault(who.username, set()).add(path)
    assert told == {"olga": shown}
