"""Uploads while the disk is nearly full are refused before anything is stored, by every route."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.models import Upload
from evalapp.common import room
from evalapp.common.errors import NoRoom
from retrieval.models import Corpus, CorpusPart

Usage = namedtuple("Usage", "total used free")
pytestmark = pytest.mark.django_db


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, settings: Any):
    settings.MIN_FREE_BYTES = 200_000_000

    def free(megabytes: float) -> None:
        monkeypatch.setattr(room.shutil, "disk_usage", lambda path: Usage(1e12, 0, int(megabytes * 1e6)))

    return free


def test_free_space_accounts_for_the_upload(disk):
    """On one disk a file is briefly stored twice: 50 MB take 100."""
    disk(301)
    room.check_room(50_000_000)
    with pytest.raises(NoRoom, match="200 MB must stay free"):
        room.check_room(51_000_000)
    disk(199)
    with pytest.raises(NoRoom):
        room.check_room()


def test_temporary_folder_may_be_on_another_disk(disk, settings, tmp_path, monkeypatch):
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    devices = {str(django_settings.DATA_DIR): 1, str(tmp_path): 2}
    monkeypatch.setattr(room.Path, "stat", lambda path: namedtuple("Stat", "st_dev")(devices[str(path)]))
    free = {str(django_settings.DATA_DIR): 300_000_000, str(tmp_path): 60_000_000}
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: Usage(0, 0, free[str(path)]))
    room.check_room(59_000_000)
    with pytest.raises(NoRoom):
        room.check_room(61_000_000)


def test_every_upload_route_refuses(disk, cast):
    client = Client()
    client.force_login(cast.owner)
    disk(199)
    file = {"file": SimpleUploadedFile("items.jsonl", b'{"id": "a"}')}
    doors = {
        "/api/v1/projects/alpha/uploads/": file,
        "/api/v1/projects/alpha/corpora/": {"name": "c", **file},
        "/api/v1/projects/alpha/evaluators/trained/": {"name": "e", "files": SimpleUploadedFile("card.json", b"{}")},
    }
    for path, body in doors.items():
        answer = client.post(path, body)
        assert answer.status_code == 507, (path, answer.content[:300])
        assert answer.json()["type"].endswith("no-room")
        body.get("file", SimpleUploadedFile("x", b"")).seek(0)
    kind = "multipart/form-data; boundary=b"
    large = client.generic("POST", "/projects/alpha/uploads/", b"x", content_type=kind, CONTENT_LENGTH="9000000")
    assert large.status_code == 507
    assert b"The disk of the server is nearly full" in large.content
    assert (Upload.objects.count(), Corpus.objects.count(), CorpusPart.objects.count()) == (0, 0, 0)
    disk(201)
    assert client.post("/api/v1/projects/alpha/uploads/", file).status_code == 202
