"""A temporary folder for corpora, and no index left open."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def corpora_dir(settings, tmp_path: Path):
    from retrieval.services import handles

    settings.CORPORA_DIR = tmp_path / "corpora"
    settings.ELASTICSEARCH_URL = ""
    handles.forget()
    yield settings.CORPORA_DIR
    handles.forget()
