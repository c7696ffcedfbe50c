"""The page of exports: request, follow, download as an attachment."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalapp.common.models import AuditEvent, Run
from evalapp.common.runner import execute_run
from tests.taking import WHOLE, take_in

pytestmark = pytest.mark.django_db


def test_request_and_download(client, cast):
    take_in(cast.project, WHOLE)
    client.force_login(cast.researcher)
    address = reverse("annotation:export-list", args=["alpha"])
    assert b"No exports yet." in client.get(address).content
    assert client.post(address, {"format": "csv"}).status_code == 302
    run = Run.objects.get(kind="export")
    assert b'hx-trigger="every 1s"' in client.get(address).content
    execute_run(run.pk)
    page = client.get(address, headers={"HX-Request": "true"}).content
    assert b"hx-trigger" not in page
    assert b"alpha-csv.zip" in page
    client.force_login(cast.viewer)
    file = client.get(reverse("annotation:export-file", args=["alpha", run.pk, "items.csv"]))
    assert file.status_code == 200
    assert file["Content-Disposition"] == 'attachment; filename="items.csv"'
    assert file["X-Content-Type-Options"] == "nosniff"
    assert b"".join(file.streaming_content).startswith(b"id,context,source,references,group,meta\r\n")
    assert client.post(address, {"format": "csv"}).status_code == 403
    assert client.get(reverse("annotation:export-file", args=["alpha", run.pk, "secret_key"])).status_code == 404
    delete = reverse("annotation:export-delete", args=["alpha", run.pk])
    assert client.post(delete).status_code == 403
    client.force_login(cast.stranger)
    assert client.get(reverse("annotation:export-file", args=["alpha", run.pk, "items.csv"])).status_code == 404
    client.force_login(cast.researcher)
    assert client.post(delete).status_code == 302
    assert b"alpha-csv.zip" not in client.get(address).content
    assert client.get(reverse("annotation:export-file", args=["alpha", run.pk, "items.csv"])).status_code == 404
    verbs = list(
        AuditEvent.objects.filter(project=cast.project, verb__startswith="export").values_list("verb", flat=True)
    )
    assert sorted(verbs) == ["export.deleted", "export.requested"]


def test_unknown_format_is_refused(client, cast):
    client.force_login(cast.owner)
    assert client.post(reverse("annotation:export-list", args=["alpha"]), {"format": "docx"}).status_code == 400
    assert not Run.objects.exists()
