"""Pages of uploads: send, report, store, undo; permissions; htmx polling."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.models import Item, Upload
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from tests.pages import read_page
from tests.taking import ITEMS, OUTPUTS, RATINGS, WHOLE, as_bytes, take_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def researcher(client, cast):
    client.force_login(cast.researcher)
    return client


def test_send_check_and_read_the_report(researcher, cast):
    bad = [{**RATINGS[0], "value": 99}]
    sent = [SimpleUploadedFile(name, as_bytes(rows)) for name, rows in {**WHOLE, "ratings.jsonl": bad}.items()]
    answer = researcher.post(reverse("annotation:upload-list", args=["alpha"]), {"files": sent})
    upload = Upload.objects.get()
    assert answer.status_code == 302
    assert answer["Location"] == reverse("annotation:upload-show", args=["alpha", upload.pk])
    page = researcher.get(answer["Location"])
    assert b'hx-trigger="every 1s"' in page.content
    assert b"data-unserved=" in page.content
    execute_run(upload.run_id)
    fragment = researcher.get(answer["Location"], headers={"HX-Request": "true"})
    assert b"<html" not in fragment.content
    assert b"hx-trigger" not in fragment.content
    cells = r'<td class="num">1</td><td>value</td><td dir="auto">[^<]*\b99\b'
    assert re.search(cells, re.sub(r">\s+<", "><", read_page(fragment)))


def test_dry_run_is_stored_and_undone_by_buttons(researcher, cast):
    sent = [SimpleUploadedFile(name, as_bytes(rows)) for name, rows in WHOLE.items()]
    researcher.post(reverse("annotation:upload-list", args=["alpha"]), {"files": sent, "dry_run": "on"})
    upload = Upload.objects.get()
    execute_run(upload.run_id)
    assert not Item.objects.exists()
    show = reverse("annotation:upload-show", args=["alpha", upload.pk])
    assert b"Store rows" in researcher.get(show).content
    researcher.post(reverse("annotation:upload-store", args=["alpha", upload.pk]))
    upload.refresh_from_db()
    execute_run(upload.run_id)
    assert Item.objects.count() == 2
    assert b"Undo upload" in researcher.get(show).content
    researcher.post(reverse("annotation:upload-undo", args=["alpha", upload.pk]))
    assert not Item.objects.exists()


def test_refused_undo_shows_the_list(researcher, cast):
    upload = take_in(cast.project, {name: WHOLE[name] for name in ("dataset.json", "items.jsonl", "outputs.jsonl")})
    take_in(cast.project, {"ratings.jsonl": RATINGS})
    answer = researcher.post(reverse("annotation:upload-undo", args=["alpha", upload.pk]))
    assert answer.status_code == 409
    assert re.search(r'role="alert">.*<li>2 ratings [^<]+</li>', read_page(answer))


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ([], "required"),
        ([("photo.png", b"\x89PNG\r\n\x1a\n\0\0\0")], "has-error"),
    ],
)
def test_invalid_files_keep_the_form(researcher, sent, message):
    data = {"files": [SimpleUploadedFile(name, content) for name, content in sent], "kind": ""}
    answer = researcher.post(reverse("annotation:upload-list", args=["alpha"]), data)
    assert answer.status_code == 422
    assert message in answer.content.decode()


def test_empty_file_is_reported_by_name(researcher):
    data = {"files": [SimpleUploadedFile("items.jsonl", b""), SimpleUploadedFile("outputs.jsonl", as_bytes(OUTPUTS))]}
    researcher.post(reverse("annotation:upload-list", args=["alpha"]), data)
    upload = Upload.objects.get()
    execute_run(upload.run_id)
    assert [fault.file for fault in upload.faults.all() if "empty" in fault.message] == ["items.jsonl"]


def test_oversized_body_is_refused_before_reading(researcher, settings):
    settings.MAX_UPLOAD_BYTES = 10_000
    address = reverse("annotation:upload-list", args=["alpha"])
    answer = researcher.generic("POST", address, b"x", content_type="multipart/form-data", CONTENT_LENGTH="10001")
    assert answer.status_code == 413
    # Other pages accept only a form.
    answer = researcher.generic("POST", "/", b"x", content_type="multipart/form-data", CONTENT_LENGTH="6000000")
    assert answer.status_code == 413


def test_permissions(client, cast):
    upload = take_in(cast.project, {"items.jsonl": ITEMS})
    address = reverse("annotation:upload-list", args=["alpha"])
    show = reverse("annotation:upload-show", args=["alpha", upload.pk])
    undo = reverse("annotation:upload-undo", args=["alpha", upload.pk])
    for person, get, post in (
        (cast.viewer, 200, 403), (cast.annotator, 403, 403), (cast.stranger, 404, 404), (None, 302, 302),
    ):  # fmt: skip
        client.logout()
        if person is not None:
            client.force_login(person)
        assert [client.get(address).status_code, client.get(show).status_code] == [get, get]
        assert [client.post(address).status_code, client.post(undo).status_code] == [post, post]
    client.force_login(cast.owner)
    assert client.get(reverse("annotation:upload-show", args=["alpha-foreign", upload.pk])).status_code == 404
    assert Upload.objects.get().state == Upload.State.DONE


def test_list_needs_few_queries(researcher, cast, django_assert_max_num_queries):
    run = Run.objects.create(project=cast.project, kind="import", title="x", input_hash="x", state="succeeded")
    Upload.objects.bulk_create(
        Upload(project=cast.project, title=f"u{n}", run=run, state="done", created_by=cast.owner) for n in range(120)
    )
    with django_assert_max_num_queries(15):
        page = researcher.get(reverse("annotation:upload-list", args=["alpha"]))
    assert page.content.count(b"<tr>") == 51
