"""What an upload report says of names that look alike, and how equal faults are put together (FAULTS D9, F2)."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from annotation.models import System
from tests.taking import faults_of, take_in

pytestmark = pytest.mark.django_db
NFC, NFD = "caf\u00e9", "cafe\u0301"
SAME = "differ only in Unicode form, white space or characters that cannot be seen"


def _outputs(*systems):
    return [{"item": "i1", "system": name, "text": "t"} for name in systems]


@pytest.fixture
def project(cast):
    return cast.project


def test_two_systems_of_one_upload_and_one_stored(project):
    files = {"items.jsonl": [{"id": "i1"}], "outputs.jsonl": _outputs(NFC, NFD, "gpt", "other")}
    upload = take_in(project, files)
    assert upload.state == "done", faults_of(upload)
    assert upload.options["hints"] == [
        f"The systems “{NFD}” (U+0301) and “{NFC}” (U+00E9) {SAME}. Are they one? Then give them one name."
    ]
    later = take_in(project, {"outputs.jsonl": _outputs("gpt\u200b", "g p t")})
    (hint,) = later.options["hints"]
    assert hint.startswith("The systems “g p t” (U+0020 U+0020) and “gpt” and “gpt<U+200B>” (U+200B) differ")
    assert take_in(project, {"outputs.jsonl": _outputs("gpt", "other")}).options["hints"] == []
    assert System.objects.filter(project=project).count() == 6


def test_items_aspects_and_raters(project, client, cast, capsys, tmp_path):
    rows = [
        {"item": f"i{k}", "system": "s", "rater": rater, "aspect": aspect, "value": 1}
        for k, (rater, aspect) in enumerate([("r 1", NFC), ("r1", NFD)])
    ]
    items = [{"id": "i0"}, {"id": "i1"}, {"id": NFC}, {"id": NFD}]
    outputs = [{"item": f"i{k}", "system": "s", "text": "t"} for k in range(2)]
    upload = take_in(project, {"items.jsonl": items, "outputs.jsonl": outputs, "ratings.jsonl": rows})
    assert upload.state == "done", faults_of(upload)
    assert [hint.split()[1] for hint in upload.options["hints"]] == ["aspects", "items", "raters"]
    client.force_login(cast.owner)
    page = client.get(f"/projects/alpha/uploads/{upload.pk}/").content.decode()
    assert "Names that look alike" in page
    assert f"The items “{NFD}” (U+0301) and “{NFC}” (U+00E9)" in page
    assert client.get(f"/api/v1/uploads/{upload.pk}/").json()["hints"] == upload.options["hints"]
    (tmp_path / "items.jsonl").write_text(json.dumps({"id": f"{NFC} "}) + "\n")
    call_command("load", str(tmp_path), "--project", "alpha")
    assert "hint: The items " in capsys.readouterr().err


def test_sixty_rows_that_say_the_same_are_one_line(project):
    rows = [{"item": "nope", "system": f"s{k}", "text": "t"} for k in range(60)]
    upload = take_in(project, {"items.jsonl": [{"id": "i1"}], "outputs.jsonl": rows})
    assert upload.fault_count == 60
    assert faults_of(upload) == [
        "outputs.jsonl:1: There is no item “nope”, neither in this upload nor stored. (60 rows: 1, 2, 3, ...)"
    ]
    assert upload.counts["outputs"]["faulty"] == 60


def test_equal_faults_of_reading_are_one_line_and_others_stay(project):
    items = [{"id": "a"}, {"id": 1.5}, {"id": "b", "source": 3}, {"id": 2.5}]
    found = faults_of(take_in(project, {"items.jsonl": items}))
    assert found == [
        "items.jsonl:2: id must be text; write it in quotes. (2 rows: 2, 4)",
        "items.jsonl:3: source must be text or null.",
    ]


def test_more_than_a_thousand_rows_of_one_fault_are_counted(project):
    rows = [{"item": "nope", "system": "s", "text": "t", "step": k} for k in range(2500)]
    upload = take_in(project, {"outputs.jsonl": rows})
    assert upload.fault_count == 2500
    assert [text.split("stored.")[1] for text in faults_of(upload)] == [" (2,500 rows: 1, 2, 3, ...)"]


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_missing_name_that_exists_in_another_form_is_named(project, is_stored):
    there = {"items.jsonl": [{"id": NFC}], "outputs.jsonl": [{"item": NFC, "system": NFC, "text": "t"}]}
    if is_stored:
        take_in(project, there)
        there = {}
    upload = take_in(project, {**there, "outputs-b.jsonl": [{"item": NFD, "system": "s", "text": "t"}]})
    (fault,) = faults_of(upload)
    assert fault.endswith(f"There is “{NFC}” (U+00E9), which {SAME.replace('differ', 'differs')}.")
    rating = {"item": NFC, "system": NFD, "rater": "r", "aspect": "q", "value": 1}
    (fault,) = faults_of(take_in(project, {**there, "ratings.jsonl": [rating]}))
    assert f"There is “{NFC}” (U+00E9)" in fault


@pytest.mark.parametrize("name", ["good\nbad", "a\u2028b", "a\u202eb", "a\tb", "a\x85b"])
def test_names_that_break_a_line_are_refused_at_the_door(project, name):
    for files in (
        {"items.jsonl": [{"id": name}]},
        {"systems.jsonl": [{"id": name}]},
        {"outputs.jsonl": [{"item": "i1", "system": name, "text": "t"}], "items.jsonl": [{"id": "i1"}]},
        {"dataset.json": {"name": "x", "aspects": [{"name": name, "min": 1, "max": 5}]}},
        {"dialogues.jsonl": [{"id": name, "turns": ["x"]}]},
    ):
        upload = take_in(project, files)
        assert upload.state == "faulty", files
        assert "holds a line break, a control character or a change of direction" in faults_of(upload)[0]
