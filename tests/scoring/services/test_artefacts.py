"""Evaluators that are sent: how many files one request may bring, and what becomes of those whose run was given up."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from scoring.ml.artefact import ALLOWED
from scoring.services.training import MOST_FOLDS

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def artefacts(settings, tmp_path: Path) -> Path:
    settings.ARTEFACTS_DIR = tmp_path / "artefacts"
    return settings.ARTEFACTS_DIR


def test_as_many_files_as_folds_may_have_are_read_and_more_are_refused_with_their_number(cast, settings):
    """Django reads a hundred, and no more was said than that the request could not be read."""
    most = MOST_FOLDS * len(ALLOWED) + 1
    assert most == settings.DATA_UPLOAD_MAX_NUMBER_FILES
    browser = Client(raise_request_exception=False)
    browser.force_login(cast.researcher)

    def send(n: int, base: str = "/api/v1/projects/alpha/evaluators/trained/"):
        return browser.post(base, {"files": [SimpleUploadedFile("card.md", b"x") for _ in range(n)]})

    read = send(most)
    assert (read.status_code, "card.md was sent twice" in read.json()["detail"]) == (400, True)
    refused = send(most + 1)
    assert (refused.status_code, refused.headers["Content-Type"]) == (413, "application/problem+json")
    assert refused.json()["type"].endswith("#too-large")
    assert "At most 321 files" in refused.json()["detail"]
    page = send(most + 1, "/projects/alpha/evaluators/upload/")
    assert (page.status_code, "At most 321 files" in page.content.decode()) == (413, True)
