"""The API of uploads: multipart and row bodies, 202 with address, report, undo, limits and refusals."""

from __future__ import annotations

import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from annotation.models import Item, Output, Reference, Upload
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from tests.taking import ITEMS, OUTPUTS, RATINGS, WHOLE, as_bytes, list_errors, take_in

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/projects/alpha/uploads/"


@pytest.fixture
def api(cast):
    client = APIClient()
    client.force_login(cast.researcher)
    return client


def test_several_files_then_report_then_undo(api):
    sent = [SimpleUploadedFile(name, as_bytes(rows)) for name, rows in WHOLE.items()]
    answer = api.post(ADDRESS, {"file": sent}, format="multipart")
    assert answer.status_code == 202
    assert answer["Location"] == answer.json()["url"]
    assert answer.json()["state"] == "received"
    execute_run(Run.objects.get().pk)
    body = api.get(answer["Location"]).json()
    assert body["state"] == "done"
    assert body["counts"]["outputs"] == {"rows": 3, "added": 3, "same": 0, "replaced": 0, "faulty": 0}
    assert body["faults"] == []
    assert api.delete(answer["Location"]).status_code == 204
    assert not Item.objects.exists()
    again = api.delete(answer["Location"])
    assert again.status_code == 409
    assert again["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-ndjson", "".join(json.dumps(row) + "\n" for row in OUTPUTS)),
        ("text/csv", "item,system,text\ni1,s,Hello.\ni1,t,Good day.\ni2,s,So long.\n"),
        ("text/tab-separated-values", "item\tsystem\ttext\ni1\ts\tHello.\ni1\tt\tGood day.\ni2\ts\tSo long.\n"),
    ],
)
def test_rows_as_the_body(api, cast, content_type, body):
    take_in(cast.project, {"items.jsonl": ITEMS})
    answer = api.generic("POST", f"{ADDRESS}?kind=outputs", body, content_type=content_type)
    assert answer.status_code == 202, answer.content
    upload = Upload.objects.latest("pk")
    execute_run(upload.run_id)
    upload.refresh_from_db()
    assert upload.state == "done", list_errors(upload)
    assert Output.objects.count() == 3


def test_references_of_a_named_set_as_the_body(api, cast):
    take_in(cast.project, {"items.jsonl": ITEMS})
    body = "set,item,position,text,meta\nmore,i1,0,Welcome.,\nmore,i1,x,Good day.,{}\n"
    for text, state in ((body, "faulty"), (body.replace(",x,", ",1,"), "done")):
        answer = api.generic("POST", f"{ADDRESS}?kind=references", text, content_type="text/csv")
        execute_run(Upload.objects.latest("pk").run_id)
        assert api.get(answer["Location"]).json()["state"] == state
    (fault,) = Upload.objects.get(state="faulty").faults.all()
    assert (fault.line, fault.field) == (3, "position")
    stored = Reference.objects.filter(set__name="more").order_by("position")
    assert list(stored.values_list("text", flat=True)) == ["Welcome.", "Good day."]


def test_dry_run_replace_and_faults(api, cast):
    take_in(cast.project, {name: WHOLE[name] for name in ("dataset.json", "items.jsonl", "outputs.jsonl")})
    row = {**OUTPUTS[0], "text": "New."}
    for query, state in (("kind=outputs", "faulty"), ("kind=outputs&dry_run=1&replace=1", "checked"),
                         ("kind=outputs&replace=1", "done")):  # fmt: skip
        answer = api.generic("POST", f"{ADDRESS}?{query}", json.dumps(row), content_type="application/x-ndjson")
        execute_run(Upload.objects.latest("pk").run_id)
        body = api.get(answer["Location"]).json()
        assert body["state"] == state, body
    faulty = api.get(f"/api/v1/uploads/{Upload.objects.filter(state='faulty').get().pk}/").json()
    assert faulty["faults"][0]["line"] == 1
    assert faulty["faults"][0]["file"] == "outputs.jsonl"
    assert "faults were found" in faulty["error"] or "fault was found" in faulty["error"]


def test_undo_in_use_is_refused_with_a_list(api, cast):
    upload = take_in(cast.project, {name: WHOLE[name] for name in ("dataset.json", "items.jsonl", "outputs.jsonl")})
    take_in(cast.project, {"ratings.jsonl": RATINGS})
    answer = api.delete(f"/api/v1/uploads/{upload.pk}/")
    assert answer.status_code == 409
    assert any(re.match(r"2 ratings\b", error["message"]) for error in answer.json()["errors"])


@pytest.mark.parametrize(
    ("query", "content_type", "body", "status"),
    [
        ("", "application/x-ndjson", "{}", 400),
        ("?kind=nonsense", "application/x-ndjson", "{}", 400),
        ("?kind=outputs&dry_run=maybe", "application/x-ndjson", "{}", 400),
        ("?kind=outputs", "application/json", "{}", 415),
        ("?kind=outputs", "application/zip", "x", 415),
        ("", "multipart/form-data; boundary=x", "--x--", 400),
    ],
)
def test_refusals(api, query, content_type, body, status):
    answer = api.generic("POST", ADDRESS + query, body, content_type=content_type)
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert not Upload.objects.exists()


def test_announced_length_alone_is_refused(api, settings):
    settings.MAX_UPLOAD_BYTES = 10
    answer = api.generic(
        "POST", f"{ADDRESS}?kind=items", '{"id": "much too long"}', content_type="application/x-ndjson"
    )
    assert answer.status_code == 413
    assert answer["Content-Type"] == "application/problem+json"


def test_permissions(cast):
    upload = take_in(cast.project, {"items.jsonl": ITEMS})
    one = f"/api/v1/uploads/{upload.pk}/"
    for person, read, write in ((cast.viewer, 200, 403), (cast.annotator, 403, 403), (cast.stranger, 404, 404)):
        client = APIClient()
        client.force_authenticate(person)
        assert [client.get(ADDRESS).status_code, client.get(one).status_code] == [read, read]
        sent = client.generic("POST", f"{ADDRESS}?kind=items", '{"id": "x"}', content_type="application/x-ndjson")
        assert [sent.status_code, client.delete(one).status_code] == [write, write]
    assert APIClient().get(ADDRESS).status_code == 401
    assert Upload.objects.count() == 1


def test_run_stores_the_checked_rows(api, cast):
    checked = take_in(cast.project, {"items.jsonl": ITEMS}, dry_run=True)
    elsewhere = take_in(Project.objects.create(slug="twin", name="twin"), {"items.jsonl": ITEMS}, dry_run=True)
    address = "/api/v1/projects/alpha/runs/"
    for upload, status in ((None, 400), ("1", 400), (True, 400), (10**30, 400), (2**62, 404), (elsewhere.pk, 404)):
        assert api.post(address, {"kind": "import", "upload": upload}, format="json").status_code == status, upload
    answer = api.post(address, {"kind": "import", "upload": checked.pk}, format="json")
    assert answer.status_code == 202
    execute_run(answer.json()["id"])
    assert Item.objects.filter(project=cast.project).count() == 2
    assert api.post(address, {"kind": "import", "upload": checked.pk}, format="json").status_code == 409


SHEET = b"id,prompt,gpt,llama\nq1,Any plans for today?,The lake trail.,No plans at all.\n"
MAPPING = {
    "shape": "wide", "columns": {"item": "id", "context": "prompt"},
    "outputs": [{"column": "gpt", "system": "gpt"}, {"column": "llama", "system": "llama"}],
}  # fmt: skip


@pytest.mark.parametrize("part", [json.dumps(MAPPING), "file", "auto"])
def test_file_of_other_columns_with_a_mapping(api, part):
    mapping = SimpleUploadedFile("m.json", json.dumps(MAPPING).encode()) if part == "file" else part
    sent = {"file": SimpleUploadedFile("may.csv", SHEET), "mapping": mapping}
    answer = api.post(ADDRESS, sent, format="multipart")
    assert answer.status_code == 202, answer.content
    assert answer.json()["options"]["mapping"]["columns"] == MAPPING["columns"]
    execute_run(Run.objects.get().pk)
    assert sorted(Output.objects.values_list("system__name", "text")) == [
        ("gpt", "The lake trail."), ("llama", "No plans at all."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ('{"shape": "wide", "outputs": [{"column": "gpt"}]}', "outputs[0]"),
        ("{", "mapping"),
        ("no-such-preset", "mapping"),
    ],
)
def test_wrong_mapping_names_its_member_and_stores_nothing(api, settings, part, place):
    before = set(settings.UPLOADS_DIR.glob("*"))
    sent = {"file": SimpleUploadedFile("may.csv", SHEET), "mapping": part}
    answer = api.post(ADDRESS, sent, format="multipart")
    assert answer.status_code == 400, answer.content
    assert place in {error["field"] for error in answer.json()["errors"]}
    assert not Upload.objects.exists()
    assert set(settings.UPLOADS_DIR.glob("*")) == before


def test_mapping_that_is_a_guess_is_refused_with_its_questions(api):
    sent = {"file": SimpleUploadedFile("may.csv", b"prompt,response\nHungry?,A bit.\nTired?,No.\n"), "mapping": "auto"}
    answer = api.post(ADDRESS, sent, format="multipart")
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == ["constants.system"]
