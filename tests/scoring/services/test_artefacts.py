"""Uploaded evaluators: the number of files per request, and the fate of files whose run was given up."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evalapp.common.errors import Conflict
from evalapp.common.models import Run
from evalapp.common.queue import cancel_run, retry_run
from evalapp.common.runner import RunCancelled, execute_run
from scoring.ml.artefact import ALLOWED, REQUIRED
from scoring.ml.trained import TrainedEvaluator
from scoring.models import Evaluator
from scoring.selectors.training import artefact_folder, list_files
from scoring.services.artefacts import KEEP_INCOMING, incoming_folder, receive_artefact, sweep_incoming
from scoring.services.evaluators import delete_evaluator
from scoring.services.training import MOST_FOLDS, TrainingOptions, start_training
from tests.scoring.training import train

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> Path:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"
    return settings.ARTEFACTS_DIR


def test_files_are_accepted_up_to_the_limit_and_the_refusal_gives_the_number(cast, settings):
    """Django reads a hundred, and the error only said that the request could not be read."""
    most = MOST_FOLDS * len(ALLOWED) + 1
    assert most == settings.DATA_UPLOAD_MAX_NUMBER_FILES
    browser = Client(raise_request_exception=False)
    browser.force_login(cast.researcher)

    def send(n: int, base: str = "/api/v1/projects/alpha/evaluators/trained/"):
        return browser.post(base, {"files": [SimpleUploadedFile("card.md", b"x") for _ in range(n)]})

    read = send(most)
    assert (read.status_code, "card.md" in read.json()["detail"]) == (400, True)
    refused = send(most + 1)
    assert (refused.status_code, refused.headers["Content-Type"]) == (413, "application/problem+json")
    assert refused.json()["type"].endswith("#too-large")
    assert "At most 361 files" in refused.json()["detail"]
    page = send(most + 1, "/projects/alpha/evaluators/upload/")
    assert (page.status_code, "At most 361 files" in page.content.decode()) == (413, True)


def send(project, evaluator: Evaluator, name: str = "") -> Run:
    folder = artefact_folder(evaluator)
    files = [SimpleUploadedFile(file.name, (folder / file.name).read_bytes()) for file in list_files(evaluator)]
    return receive_artefact(project=project, user=None, name=name, files={"files": files})


def offers_to_retry(run: Run, user) -> bool:
    browser = Client()
    browser.force_login(user)
    page = browser.get(reverse("run", args=[run.project.slug, run.pk]))
    assert page.status_code == 200
    return reverse("run-retry", args=[run.project.slug, run.pk]) in page.content.decode()


def test_refused_upload_cannot_be_retried(toy):
    """The button could only report that the files are gone."""
    files = [SimpleUploadedFile(name, b"{}") for name in REQUIRED]
    run = execute_run(receive_artefact(project=toy.project, user=None, name="", files={"files": files}).pk)
    assert run.state == Run.State.FAILED
    assert not offers_to_retry(run, toy.owner)


def what_is_left(root: Path, project) -> list[str]:
    return sorted(path.name for path in (root / str(project.pk)).glob("*")) + sorted(
        path.name for path in (root / "incoming").glob("*")
    )


@pytest.fixture
def cut_off(monkeypatch):
    """Cancels it once the folder is written, before the row exists."""
    save = TrainedEvaluator.save_pretrained

    def save_and_stop(self: TrainedEvaluator, folder: Path) -> None:
        save(self, folder)
        if folder.name.startswith("run-"):
            (folder.parent / f".{folder.name}.{'0' * 32}").mkdir()
            raise RunCancelled

    def stop() -> None:
        monkeypatch.setattr(TrainedEvaluator, "save_pretrained", save_and_stop)

    return stop


def test_cancelled_upload_leaves_nothing(toy, artefacts, cut_off):
    """Once, uploaded files stayed forever, and so did the folder of a row that was never created."""
    evaluator = train(toy.project, folds=1)
    waiting = send(toy.foreign, evaluator, "one")
    assert what_is_left(artefacts, toy.foreign) == [waiting.params["incoming"]]
    cancel_run(run=waiting)
    assert what_is_left(artefacts, toy.foreign) == []
    cut_off()
    run = execute_run(send(toy.foreign, evaluator, "two").pk)
    assert run.state == Run.State.CANCELLED
    assert not offers_to_retry(run, toy.stranger)
    assert what_is_left(artefacts, toy.foreign) == []
    assert list((artefacts / str(toy.foreign.pk)).iterdir()) == []
    with pytest.raises(Conflict, match="The input of this run has been removed"):
        retry_run(run=run)
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED


def test_training_cancelled_while_storing_leaves_no_folder(toy, artefacts, cut_off):
    cut_off()
    options = {"frozen": True, "epochs": 1}
    run = start_training(
        project=toy.project, options=TrainingOptions("toy", folds=1, options=options), send=False, any_encoder=True
    )
    assert execute_run(run.pk).state == Run.State.CANCELLED
    assert list((artefacts / str(toy.project.pk)).iterdir()) == []


def test_upload_whose_name_was_taken_meanwhile_can_be_retried(toy, artefacts, django_capture_on_commit_callbacks):
    evaluator = train(toy.project, folds=1)
    run = send(toy.foreign, evaluator, "copy")
    taken = Evaluator.objects.create(project=toy.foreign, slug="copy", name="toy", kind=Evaluator.Kind.TRAINED)
    run = execute_run(run.pk)
    assert (run.state, "is now taken" in run.error) == (Run.State.FAILED, True)
    assert offers_to_retry(run, toy.stranger)
    assert what_is_left(artefacts, toy.foreign) == [run.params["incoming"]]
    with django_capture_on_commit_callbacks(execute=True):
        delete_evaluator(evaluator=taken)
    retry_run(run=run)
    run = execute_run(run.pk)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert what_is_left(artefacts, toy.foreign) == [f"run-{run.pk}"]


def test_old_uploads_are_deleted_unless_their_run_may_need_them(toy, artefacts):
    now, ended = timezone.now(), Run.State.FAILED
    long_ago = now - KEEP_INCOMING - timedelta(hours=1)
    runs = {"waiting": (Run.State.QUEUED, None), "ended": (ended, long_ago), "retry": (ended, now), "nobody": None}
    for name, state in runs.items():
        incoming_folder(name).mkdir(parents=True)
        os.utime(incoming_folder(name), (long_ago.timestamp(),) * 2)
        if state is not None:
            Run.objects.create(
                project=toy.foreign, kind="artefact", title=name, params={"incoming": name}, input_hash=name,
                state=state[0], finished_at=state[1],
            )  # fmt: skip
    incoming_folder("coming").mkdir()
    sweep_incoming()
    assert what_is_left(artefacts, toy.foreign) == ["coming", "retry", "waiting"]
    # A training also cleans up.
    Run.objects.filter(title="retry").update(finished_at=long_ago)
    train(toy.project, folds=1)
    assert what_is_left(artefacts, toy.foreign) == ["coming", "waiting"]
