"""Static files are collected when their content differs from the collected files, whatever the file times."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command

from evalapp.management.commands import up
from evalapp.settings import base


@pytest.fixture
def checkout(tmp_path, settings):
    """A checkout with one script, and a data folder that others may share."""

    def make(name: str, content: str, when: float) -> Path:
        source = tmp_path / name
        source.mkdir(exist_ok=True)
        (source / "judge.js").write_text(content)
        for path in (source / "judge.js", source):
            os.utime(path, (when, when))
        settings.STATICFILES_DIRS = [source]
        return source

    settings.STORAGES = base.STORAGES
    settings.STATIC_ROOT = tmp_path / "data" / "static"
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    finders.get_finder.cache_clear()
    yield make
    finders.get_finder.cache_clear()


def served(settings) -> str:
    manifest = json.loads((Path(settings.STATIC_ROOT) / "staticfiles.json").read_text())
    return (Path(settings.STATIC_ROOT) / manifest["paths"]["judge.js"]).read_text()


def test_static_files_are_collected_when_their_content_differs(checkout, settings):
    """Two checkouts share a data folder; all times of the second, a rollback, are older. Then the same by hand."""
    now = time.time()
    turns = (("new", "let version = 2", now), ("old", "let version = 1", now - 1e6), ("new", "let version = 2", now))
    for name, content, when in turns:
        checkout(name, content, when)
        finders.get_finder.cache_clear()
        assert up.is_static_stale(), name
        up.collect_static()
        assert not up.is_static_stale()
        assert served(settings) == content
    checkout("new", "let version = 3", now)  # the same name, size and time
    assert up.is_static_stale()
    up.collect_static()
    checkout("old", "let version = 1", now - 1e6)
    finders.get_finder.cache_clear()
    call_command("collectstatic", interactive=False, verbosity=0)  # by another process
    checkout("new", "let version = 3", now)
    finders.get_finder.cache_clear()
    assert up.is_static_stale(), "the stamp is of these files, the manifest of others"


def test_interrupted_collection_is_repeated(checkout, settings, monkeypatch):
    checkout("one", "let version = 1", time.time())
    up.collect_static()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(up, "call_command", killed)
    with pytest.raises(KeyboardInterrupt):
        up.collect_static()
    assert up.is_static_stale()
