"""A really full disk, which is a small one in memory: users see a one-line message, nothing is damaged or partly
written, and a retry succeeds as soon as there is space."""

from __future__ import annotations

import errno
import gc
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation.models import Judgement, Output, Upload
from annotation.services.exports import get_export_folder, request_export
from evalapp.common.models import Run
from evalapp.common.outages import DiskFull, explain
from evalapp.common.runner import execute_run
from retrieval.index.inversion import _new
from scoring.ml.training.store import write_folder, write_json, write_whole
from scoring.models import Evaluator
from scoring.services.training import TrainingOptions, start_training
from tests.annotation.services.judging_helpers import answer_to, open_for
from tests.cast import Cast, make_cast
from tests.faults.stack import Stack
from tests.faults.timed_requests import get_page
from tests.scoring.training import fill as fill_with_ratings
from tests.scoring.training import put_toy_into_catalogue
from tests.taking import ITEMS

pytestmark = [pytest.mark.slow, pytest.mark.promise("disk")]
MESSAGE = "The disk of the server is full"
MEGABYTES = 8


class Disk:
    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def free_bytes(self) -> int:
        stats = os.statvfs(self.path)
        return stats.f_bavail * stats.f_frsize

    def fill(self, left: int = 0) -> None:
        """Fill the disk except for `left` bytes."""
        with (self.path / "ballast").open("ab") as file:
            file.write(bytes(max(0, self.free_bytes - left)))
        assert self.free_bytes <= left

    def free(self) -> None:
        (self.path / "ballast").unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here ({done.stderr.strip()}); run the tests as root")
    try:
        yield Disk(path)
    finally:
        gc.collect()  # deletes temporary upload files
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def cast(disk: Disk, migrated_file: Path, django_db_blocker: Any) -> Iterator[Cast]:
    """The cast in an installation with its database and folders on the small disk."""
    with Stack(disk.path / "data") as stack, django_db_blocker.unblock():
        shutil.copy(migrated_file, stack.folder / "evalapp.sqlite3")
        with stack.django():
            yield make_cast()
            connection.close()


def sign_in(user: Any) -> Client:
    """Call it before the disk is full, because it stores a session."""
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def query_database(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()


def empty_log() -> None:
    """Move SQLite's write-ahead log into the database file, so that the next write needs space."""
    query_database("PRAGMA wal_checkpoint(TRUNCATE)")


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


def test_answer_without_disk_space_is_rejected_and_accepted_later(cast, disk):
    campaign = open_for(cast)
    client = sign_in(cast.annotator)
    task = client.post(f"/api/v1/campaigns/{campaign.pk}/next/", {}, content_type="application/json").json()
    body = {"submission": str(uuid4()), "answer": answer_to(campaign)}
    address = f"/api/v1/assignments/{task['id']}/submit/"
    empty_log()
    disk.fill()
    refused = client.post(address, body, content_type="application/json")
    assert refused.status_code == 503
    assert MESSAGE in refused.json()["detail"]
    page = client.post(reverse("annotation:judge-skip", args=[campaign.pk, task["id"]]), {})
    assert (page.status_code, MESSAGE in page.content.decode()) == (503, True)
    assert client.get(reverse("annotation:my-work")).status_code == 200  # reading continues
    assert Judgement.objects.count() == 0
    disk.free()
    assert client.post(address, body, content_type="application/json").status_code == 200
    assert client.post(address, body, content_type="application/json").status_code == 200
    assert Judgement.objects.count() == 1
    assert query_database("PRAGMA integrity_check") == ("ok",)


@pytest.mark.parametrize("arriving", [False, True])
def test_upload_without_disk_space_leaves_nothing_behind(cast, disk, settings, arriving):
    settings.MIN_FREE_BYTES = 0  # this disk is smaller than the usual reserve
    if arriving:  # the folder for incoming bodies is also full
        settings.FILE_UPLOAD_TEMP_DIR = str(disk.path)
    rows = [{**ITEMS[0], "id": f"i{n}", "source": "words " * 50} for n in range(3000)]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    client, address = sign_in(cast.researcher), reverse("annotation:upload-list", args=["alpha"])

    def send() -> Any:
        return client.post(address, {"files": [SimpleUploadedFile("items.jsonl", content)]})

    disk.fill(left=len(content) // 2)
    refused = send()
    assert (refused.status_code, 'data-error="no-room"' in refused.content.decode()) == (507, True)
    assert (Upload.objects.count(), Run.objects.count(), list_names(settings.UPLOADS_DIR)) == (0, 0, [])
    assert not list(disk.path.glob("*.upload*"))
    disk.free()
    assert send().status_code == 302
    assert not list(disk.path.glob("*.upload*"))
    upload = Upload.objects.get()
    disk.fill(left=200_000)  # the rows are checked in a separate file, which now has no space
    run = execute_run(upload.run_id)
    assert run is not None
    assert (run.state, MESSAGE in run.error) == (Run.State.FAILED, True)
    assert cast.project.items.count() == 0
    assert MESSAGE in get_page(cast.owner, reverse("run", args=["alpha", run.pk])).text.replace("&#x27;", "'")
    assert list_names(settings.STAGING_DIR) == []
    disk.free()
    client.post(reverse("run-retry", args=["alpha", run.pk]))
    again = execute_run(run.pk)
    assert again is not None
    assert again.state == Run.State.SUCCEEDED, again.error
    assert cast.project.items.count() == len(rows)
    assert query_database("PRAGMA integrity_check") == ("ok",)


def test_export_without_disk_space_leaves_no_partial_files_and_ends_later(cast, disk):
    open_for(cast)
    Output.objects.update(text="A long text. " * 20_000)
    run = request_export(project=cast.project, user=cast.owner)
    empty_log()
    disk.fill(left=300_000)
    failed = execute_run(run.pk)
    assert failed is not None
    assert (failed.state, MESSAGE in failed.error) == (Run.State.FAILED, True)
    assert not get_export_folder(run).exists()
    disk.free()
    assert sign_in(cast.owner).post(reverse("run-retry", args=["alpha", run.pk])).status_code == 302
    empty_log()
    disk.fill()  # not even the state of the run can be written: the worker waits
    threading.Timer(1.0, disk.free).start()
    while execute_run(run.pk) is None:
        time.sleep(0.05)
    run.refresh_from_db()
    assert run.state == Run.State.SUCCEEDED, run.error
    assert (get_export_folder(run) / run.result["archive"]).stat().st_size == run.result["bytes"]


def test_training_without_disk_space_reports_it_and_continues_later(cast, disk, monkeypatch, settings):
    from scoring.ml import registry

    put_toy_into_catalogue(monkeypatch)
    fill_with_ratings(cast.project)
    options = TrainingOptions("toy", options={"frozen": True, "epochs": 2}, folds=1)
    run = start_training(project=cast.project, options=options, send=False, any_encoder=True)
    empty_log()
    disk.fill(left=40_000)  # enough for the failed run, not for its event or the trained files
    failed = execute_run(run.pk)
    assert failed is not None
    assert (failed.state, MESSAGE in failed.error) == (Run.State.FAILED, True), failed.error
    assert not Evaluator.objects.filter(kind=Evaluator.Kind.TRAINED).exists()
    disk.free()
    sign_in(cast.owner).post(reverse("run-retry", args=["alpha", run.pk]))
    done = execute_run(run.pk)
    assert done is not None
    assert done.state == Run.State.SUCCEEDED, done.error
    assert Evaluator.objects.get(kind=Evaluator.Kind.TRAINED).slug == done.result["evaluator"]
    assert not [name for name in list_names(settings.ARTEFACTS_DIR) if name.startswith(".")]
    registry.catalogue.cache_clear()


def test_file_and_folder_writes_are_atomic(disk):
    """These functions write checkpoints and artefacts; the final rename is the only visible step."""

    def write(content: bytes) -> Any:
        return lambda draft: (draft / "model.bin").write_bytes(content)

    artefact, checkpoint = disk.path / "artefact", disk.path / "checkpoint.bin"
    write_folder(artefact, write(b"old"))
    write_whole(checkpoint, lambda draft: draft.write_bytes(b"old"))
    write_json(disk.path / "state.json", {"step": 1})
    disk.fill(left=40_960)
    for attempt in (
        lambda: write_folder(artefact, write(bytes(1 << 20))),
        lambda: write_whole(checkpoint, lambda draft: draft.write_bytes(bytes(1 << 20))),
        lambda: write_whole(checkpoint, lambda draft: np.zeros(1 << 18).tofile(draft)),
        lambda: write_json(disk.path / "state.json", ["word"] * 100_000),
    ):
        with pytest.raises(OSError, match=r"No space|written") as error:
            attempt()
        assert isinstance(explain(error.value), DiskFull)
    assert list_names(disk.path) == ["artefact", "ballast", "checkpoint.bin", "model.bin", "state.json"]
    assert (artefact / "model.bin").read_bytes() == checkpoint.read_bytes() == b"old"
    disk.free()
    write_folder(artefact, write(b"new"))
    assert (artefact / "model.bin").read_bytes() == b"new"


def test_mapped_file_reserves_space_before_writing(disk):
    """Otherwise a write without space would kill the process with SIGBUS and without a message."""
    disk.fill(left=65_536)
    with pytest.raises(OSError, match="No space") as error:
        _new(disk.path / "lists.npy", np.uint32, (1 << 18,))
    assert error.value.errno == errno.ENOSPC
    disk.free()
    array = _new(disk.path / "lists.npy", np.uint32, (1 << 18,))
    array[:] = 7
    assert int(np.load(disk.path / "lists.npy").sum()) == 7 << 18
