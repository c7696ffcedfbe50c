"""The characters a name may contain, and the checks wherever names are entered."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from django.apps import apps
from django.db import models
from django.test import Client

from annotation.allocation.plan import read_plan
from annotation.allocation.recruitment import read_participant_id, read_recruitment
from annotation.allocation.writing_plan import read_writing_plan
from annotation.parsers import shorten_name
from evalapp.accounts.models import Membership, Project, User
from evalapp.accounts.services import create_invitation
from evalapp.markup import escape_latex, show_hidden
from evalapp.names import explain_hidden, find_hidden, strip_hidden, strip_invisible
from tests.pages import read_flashes

#: From the Unicode character database (UnicodeData.txt, DerivedCoreProperties.txt): code point and its name.
HIDDEN = {
    "\x00": "U+0000 NULL", "\t": "U+0009 TAB", "\n": "U+000A LINE FEED", "\r": "U+000D CARRIAGE RETURN",
    "\x1b": "U+001B CONTROL CHARACTER", "\x85": "U+0085 CONTROL CHARACTER", "\xad": "U+00AD SOFT HYPHEN",
    "\u034f": "U+034F COMBINING GRAPHEME JOINER", "\u061c": "U+061C ARABIC LETTER MARK",
    "\u115f": "U+115F HANGUL CHOSEONG FILLER", "\u200b": "U+200B ZERO WIDTH SPACE",
    "\u200d": "U+200D ZERO WIDTH JOINER", "\u200e": "U+200E LEFT-TO-RIGHT MARK",
    "\u2028": "U+2028 LINE SEPARATOR", "\u2029": "U+2029 PARAGRAPH SEPARATOR",
    "\u202e": "U+202E RIGHT-TO-LEFT OVERRIDE", "\u2060": "U+2060 WORD JOINER",
    "\u2066": "U+2066 LEFT-TO-RIGHT ISOLATE", "\u2800": "U+2800 BRAILLE PATTERN BLANK",
    "\u3164": "U+3164 HANGUL FILLER", "\ufe0f": "U+FE0F VARIATION SELECTOR-16",
    "\ufeff": "U+FEFF ZERO WIDTH NO-BREAK SPACE", "\U000e0041": "U+E0041 TAG LATIN CAPITAL LETTER A",
}  # fmt: skip
PLAIN = [
    "", "Olga Núñez", "e\u0301", "Zoë O’Brien-Łukasz, Jr.", "王小明", "Ольга", "أحمد", "अनिल", "สมชาย", "김철수",
    "a\xa0b", "GPT-4 (0613) #2 | 50 %", "😀",
]  # fmt: skip
BAD = "owner\u202e"
#: Names whose spelling needs a joiner or a variation selector (Unicode Standard Annex 31, section 2.3.1; emoji-test.txt
#: and emoji-zwj-sequences.txt of Unicode Technical Standard 51; Ideographic Variation Database).
JOINED = {
    "Persian given name": "علی\u200cرضا", "Persian with a vowel mark": "عَلیِ\u200cرضا",
    "Azerbaijani family name": "قره\u200cباغی", "Sinhala: Sri Lanka": "ශ්\u200dරී ලංකා",
    "Malayalam chillu": "ന്\u200d", "Hindi without a ligature": "क्\u200cष", "Hindi half form": "क्\u200dष",
    "Bengali: Rachel": "র\u200d্যাচেল", "heart": "❤\ufe0f", "telephone": "☎\ufe0f Hotline", "key 1": "1\ufe0f\u20e3",
    "woman technologist": "👩\u200d💻", "woman firefighter, medium skin": "👩🏽\u200d🚒", "man, red hair": "👨\u200d🦰",
    "family": "👨\u200d👩\u200d👧\u200d👦", "rainbow flag": "🏳\ufe0f\u200d🌈", "Katsuragi": "葛\U000e0100城",
}  # fmt: skip
#: The same characters where they change nothing, or nothing visible.
NOT_JOINED = {
    "Latin letters": "ow\u200dner", "Latin letters, too": "ali\u200creza",
    "after a letter that never joins": "محمد\u200cرضا",
    "at the end": "علی\u200c", "at the beginning": "\u200cعلی", "twice": "علی\u200c\u200cرضا",
    "without a virama": "क\u200dष", "before a vowel sign": "क्\u200dा", "after one emoji": "👩\u200d",
    "between digits": "1\u200d2",
    "a letter is no emoji": "a\ufe0f", "a digit is no key": "1\ufe0f", "an ideograph is no emoji": "王\ufe0f",
    "a letter is no ideograph": "a\U000e0100", "two selectors": "❤\ufe0f\ufe0f",
}  # fmt: skip


@pytest.mark.parametrize("character", HIDDEN, ids=HIDDEN.values())
def test_hidden_characters_are_found_and_named(character):
    assert find_hidden(f"a{character}b{character}") == [HIDDEN[character]]
    assert HIDDEN[character] in explain_hidden(f"a{character}b")
    assert strip_hidden(f"a{character}b") == "ab"


@pytest.mark.parametrize("name", PLAIN)
def test_names_in_every_script_are_accepted(name):
    assert (find_hidden(name), explain_hidden(name), strip_hidden(name)) == ([], "", name)


@pytest.mark.parametrize("name", JOINED.values(), ids=JOINED)
def test_joiners_are_accepted_where_they_are_visible(name):
    assert (find_hidden(name), explain_hidden(name), strip_hidden(name), show_hidden(name)) == ([], "", name, name)
    assert escape_latex(f"{name}_1") == f"{name}\\_1"
    # Names that differ only in joiners still count as lookalikes.
    assert strip_invisible(name) != name


@pytest.mark.parametrize("name", NOT_JOINED.values(), ids=NOT_JOINED)
def test_joiners_are_refused_elsewhere(name):
    assert len(find_hidden(name)) == 1
    assert strip_hidden(name) != name
    assert find_hidden(strip_hidden(name)) == []
    assert "<U+" in show_hidden(name)


def test_rule_needs_no_django():
    code = "import sys, evalapp.names; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_campaign_plans_refuse_hidden_characters_by_field():
    plan = {"name": f"Fluency{BAD}", "slug": "x\u200b", "kind": "likert", "aspects": ["fine", f"quality{BAD}"]}
    found, problems = read_plan(plan)
    assert found is None
    assert [where for where, _ in problems] == ["name", "slug", "aspects[1].name"]
    found, problems = read_writing_plan({"name": f"More{BAD}", "slug": "x\u200b", "kind": "ream"})
    assert found is None
    assert [where for where, _ in problems][:2] == ["name", "slug"]
    found, problems = read_recruitment({"label": f"May{BAD}", "places": 3})
    assert found is None
    assert [where for where, _ in problems] == ["label"]
    assert read_participant_id(f"5f2a{BAD}")[1]


def test_hidden_characters_are_removed_from_file_names():
    assert shorten_name("items\u202e-b.jsonl") == "items-b.jsonl"


#: Address, body with a name, and fields named by the refusal. Pages and commands call the same services.
DOORS = [
    ("projects/", {"slug": "beta", "name": BAD, "task": BAD, "lang": BAD}, ["name", "task", "lang"]),
    ("PATCH projects/alpha/", {"name": BAD}, ["name"]),
    ("tokens/", {"name": BAD, "scopes": ["read"]}, ["name"]),
    ("projects/alpha/invitations/", {"role": "viewer", "label": BAD}, ["label"]),
    ("projects/alpha/campaigns/", {"name": BAD, "kind": "likert", "aspects": ["a"]}, ["name"]),
    ("projects/alpha/campaigns/", {"name": "n", "kind": "likert", "aspects": [BAD]}, ["aspects[0].name"]),
    ("projects/alpha/writing/", {"name": BAD, "kind": "ream"}, ["name"]),
    ("projects/alpha/corpora/", {"name": "c", "licence": BAD, "source": BAD}, ["licence", "source"]),
    ("projects/alpha/corpora/", {"name": BAD}, ["name"]),
    ("projects/alpha/rater-filters/", {"name": BAD, "raters": ["r"], "reason": "r"}, ["name"]),
]


@pytest.mark.parametrize(("door", "body", "fields"), DOORS)
@pytest.mark.django_db
def test_api_refuses_hidden_characters_by_field(cast, door, body, fields):
    method, path = door.split() if " " in door else ("POST", door)
    client = Client()
    client.force_login(cast.owner)
    answer = client.generic(method, f"/api/v1/{path}", json.dumps(body), content_type="application/json")
    assert answer.status_code == 400, answer.content
    named = {fault["field"] for fault in answer.json()["errors"]}
    assert set(fields) <= named, answer.json()
    assert Project.objects.filter(slug="beta").count() == 0


@pytest.mark.django_db
def test_pages_refuse_hidden_characters_at_the_field(cast):
    client = Client()
    client.force_login(cast.owner)
    for path, form in (
        ("/account/", {"first_name": BAD, "email": ""}),
        ("/projects/alpha/settings/", {"name": BAD, "task": "t", "lang": "en"}),
        ("/projects/new/", {"name": BAD, "slug": "beta", "task": "t", "lang": "en"}),
        ("/account/tokens/", {"name": BAD, "scopes": ["read"], "days": "3"}),
    ):
        answer = client.post(path, form)
        assert answer.status_code == 422, path
        assert b"U+202E RIGHT-TO-LEFT OVERRIDE" in answer.content, path
    cast.owner.refresh_from_db()
    assert cast.owner.first_name == ""


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["علی\u200cرضا", "👩\u200d🔬 Lab ❤\ufe0f"])
def test_people_and_projects_may_use_joiners(cast, name):
    client = Client()
    client.force_login(cast.owner)
    assert client.post("/account/", {"first_name": name, "email": ""}).status_code == 302
    assert (
        client.post("/projects/new/", {"name": name, "slug": "beta", "task": "dialogue", "lang": "fa"}).status_code
        == 302
    )
    cast.owner.refresh_from_db()
    assert cast.owner.first_name == Project.objects.get(slug="beta").name == name
    assert name in client.get("/projects/alpha/people/").content.decode()


@pytest.mark.django_db
def test_old_name_may_stay_while_other_fields_change(cast):
    """Data older than the rule: changing another field is not refused."""
    Project.objects.filter(pk=cast.project.pk).update(name=BAD)
    client = Client()
    client.force_login(cast.owner)
    answer = client.patch("/api/v1/projects/alpha/", {"notes": "n"}, content_type="application/json")
    assert answer.status_code == 200


@pytest.mark.django_db
def test_joining_checks_the_name(cast):
    _, secret = create_invitation(project=cast.project, role="annotator", actor=cast.owner)
    answer = Client().post(
        f"/invitations/{secret}/", {"username": "ow\u200bner", "password": "correct-horse-battery", "email": ""}
    )
    assert answer.status_code == 422
    assert not User.objects.filter(username__startswith="ow").exists()


@pytest.mark.django_db
def test_members_page_shows_user_names(cast):
    """An annotator with the display name “owner” is shown as anna, on the page, in labels and in messages."""
    User.objects.filter(pk=cast.annotator.pk).update(first_name="owner")
    client = Client()
    client.force_login(cast.owner)
    page = client.get("/projects/alpha/people/").content.decode()
    assert "owner (anna)" in page
    assert 'aria-label="Role of owner (anna)"' in page
    member = Membership.objects.get(user=cast.annotator)
    done = client.post(f"/projects/alpha/people/{member.pk}/role/", {"role": "viewer"}, follow=True)
    assert any("owner (anna)" in words for _, words in read_flashes(done))
    rows = client.get("/api/v1/projects/alpha/members/").json()["results"]
    assert [(row["username"], row["name"]) for row in rows if row["name"] == "owner"] == [("anna", "owner")]


#: Short texts that people enter in one of the places above or in a campaign plan.
TAKEN_AT_A_DOOR = {
    "User.username", "User.first_name", "Project.slug", "Project.name", "Project.task", "Project.lang",
    "Invitation.label", "Invitation.landing", "ApiToken.name", "Upload.title", "Campaign.slug", "Campaign.name",
    "RaterFilter.name", "WritingCampaign.slug", "WritingCampaign.name", "Corpus.name", "Corpus.language",
    "Corpus.licence", "Corpus.source", "CorpusPart.title", "Snapshot.slug", "Snapshot.title", "SharedReport.label",
    "JudgeTemplate.name",
    "Recruitment.label", "Participant.external_id", "ParticipantBan.external_id", "Webhook.name",
    "Webhook.url", "Invitation.email", "Mail.to",
}  # fmt: skip
#: Read from row files, whose parser decides (annotation.parsers), or named by a trained evaluator's slug.
READ_FROM_ROWS = {
    "System.name", "Aspect.name", "Item.key", "Item.group", "ReferenceSet.name", "Dialogue.key", "Rating.rater",
    "Comparison.rater", "WrittenElsewhere.submission", "AttemptElsewhere.campaign", "AttemptElsewhere.submission",
    "UploadFault.file", "UploadFault.field", "Evaluator.slug", "Evaluator.name", "ScoreSet.references",
    "ScoreSet.aspect", "WritingCampaign.evaluator", "WritingCampaign.corpus",
}  # fmt: skip
#: Free text that is not used as a name or key.
SENTENCES = {
    "CampaignAspect.question", "Assignment.skip_reason", "WritingTask.skip_reason", "WrittenReference.reason",
    "ParticipantBan.reason",
}  # fmt: skip
#: Not editable, or only as a digest, a state or a number.
MADE_BY_PROGRAMS = {
    "User.password", "User.last_name", "User.email", "Membership.pseudonym", "Invitation.digest", "ApiToken.prefix",
    "ApiToken.digest", "AttemptCount.key", "AttemptCount.limit", "Run.kind", "Run.title", "Run.queue",
    "Run.input_hash", "Run.worker", "Run.unit", "Run.phase", "IdempotencyKey.key", "IdempotencyKey.body",
    "IdempotencyKey.worker", "WorkerBeat.name", "WorkerBeat.host", "AuditEvent.verb", "AuditEvent.object",
    "AuditEvent.scope", "AuditEvent.salt", "AuditEvent.content", "AuditEvent.link", "AuditHead.link",
    "Upload.content_hash", "UploadChange.table", "Campaign.rater_suffix", "Assignment.public", "Judgement.body_hash",
    "WritingUnit.arm", "WritingMember.arm", "WritingTask.arm", "WritingTask.public",
    "WritingCandidate.public", "WritingAttempt.why", "WritingAttempt.body_hash", "WrittenReference.public",
    "WrittenReference.state_before", "Corpus.version", "CorpusPart.sha256", "OutboxRow.name", "Leaderboard.key",
    "Leaderboard.stamp", "Snapshot.stamp", "Evaluator.folder", "Evaluator.signature", "ScoreSet.signature",
    "ScoreSet.short_signature", "ScoreSet.data_hash", "Score.note", "CurvePoint.series", "SharedReport.digest",
    "StudyStep.digest", "StudyStep.label", "JudgeAnswer.endpoint", "JudgeAnswer.digest", "JudgeAnswer.model",
    "Recruitment.digest", "Participant.browser", "Participant.code", "Event.key", "Event.kind", "Event.path",
    "Identity.email", "Identity.issuer", "Identity.subject", "Mail.about", "Mail.error", "Mail.subject",
    "Webhook.digest", "Webhook.salt",
}  # fmt: skip


def test_every_short_text_column_has_a_rule():
    """A new column goes into one of the sets above; a column that people edit is tested there."""
    rooms = ("accounts", "common", "events", "annotation", "retrieval", "scoring")
    there = {
        f"{model.__name__}.{field.name}"
        for model in apps.get_models()
        if model._meta.app_label in rooms
        for field in model._meta.local_fields
        if isinstance(field, models.CharField) and not field.choices
    }
    known = [TAKEN_AT_A_DOOR, READ_FROM_ROWS, SENTENCES, MADE_BY_PROGRAMS]
    assert there == set().union(*known)
    assert sum(map(len, known)) == len(there)
