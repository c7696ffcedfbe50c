"""Installations for tests of backups: a folder and a database to which Django in this process can be connected, example
data of every kind, and child processes that are killed in the middle of a restore."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.db import connections
from django.test import override_settings

_FOLDERS = {"UPLOADS_DIR": "uploads", "EXPORTS_DIR": "exports", "ARTEFACTS_DIR": "artefacts",
            "CORPORA_DIR": "corpora", "STAGING_DIR": "staging"}  # fmt: skip
#: Texts and numbers that caused errors in earlier versions.
UNUSUAL = "tab\t line\n return\r back\\slash \\N \\. 'quote' \"double\" {} é 漢字 🙂 \u2028"
BITS = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 2**53 + 2.0, 1e22, struct.unpack("d", b"\x01" * 8)[0]]


@dataclass(frozen=True)
class Installation:
    folder: Path
    url: str

    @contextmanager
    def django(self) -> Iterator[None]:
        """Connect Django to this installation, in this thread and in threads started within the block."""
        from evalapp.settings import base

        usual, before = connections["default"], connections.settings["default"]
        with patch.dict(os.environ, DATABASE_URL=self.url):
            config = base.database()
        connections.settings["default"] = connections.configure_settings({"default": config})["default"]
        del connections["default"]
        folders = {name: self.folder / part for name, part in _FOLDERS.items()}
        try:
            with override_settings(
                DATA_DIR=self.folder, MIGRATION_MODULES={}, ELASTICSEARCH_URL="", REDIS_URL="redis://127.0.0.1:1/0",
                **folders,
            ):  # fmt: skip
                yield
        finally:
            connections["default"].close()
            connections.settings["default"] = before
            connections["default"] = usual

    def list_files(self) -> list[str]:
        """Return all files except those of the database."""
        return sorted(
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith(("evalapp.sqlite3", "up.lock"))
        )


def make_sqlite_installation(folder: Path, migrated: Path | None = None) -> Installation:
    """`migrated`: a database file with all tables, which is copied; without it, the database has no tables."""
    folder.mkdir(parents=True)
    if migrated is not None:
        shutil.copy(migrated, folder / "evalapp.sqlite3")
    return Installation(folder, f"sqlite:///{folder / 'evalapp.sqlite3'}")


def make_postgres_installation(folder: Path, url: str) -> Installation:
    folder.mkdir(parents=True)
    return Installation(folder, url)


def fill_installation() -> Any:
    """Create rows in most tables and files in every folder of the connected installation; return the project."""
    from annotation.models import Comparison, Item, Rating, Upload
    from evalapp.common import audit, audit_chain
    from evalapp.common.models import Run
    from tests.cast import make_cast
    from tests.factories import make_outputs, make_ratings
    from tests.judging import make_texts

    cast = make_cast()
    project = cast.project
    make_texts(cast, 4)
    items = list(Item.objects.filter(project=project).order_by("pk"))
    outputs = make_outputs(project, items, ("one", "two", "three"))
    aspect = make_ratings(project, outputs, raters=3)
    rows = list(Rating.objects.order_by("pk")[: len(BITS)])
    for row, value in zip(rows, BITS, strict=True):
        row.meta = {"z": value, "a": [UNUSUAL, None, {"n": 10**25, "deep": [[[]]]}], "": True}
        row.save()
    Rating.objects.filter(pk=rows[0].pk).update(value=BITS[1], rater=UNUSUAL[:60])
    for first, second in zip(outputs[:4], outputs[4:8], strict=True):
        Comparison.objects.create(
            project=project, output_a=first, output_b=second, aspect=aspect, rater="r0", verdict="a"
        )
    Item.objects.filter(pk=items[0].pk).update(source=UNUSUAL, context=[UNUSUAL])
    deleted = Rating.objects.create(project=project, output=outputs[0], aspect=aspect, rater="gone", value=1)
    deleted.delete()  # its primary key must not be reused
    for state in ("running", "succeeded", "queued"):
        run = Run.objects.create(
            project=project, kind="export", title=state, params={"n": state}, input_hash=state, state=state,
            attempt=1, worker="elsewhere:1", heartbeat=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), rate=1 / 3,
        )  # fmt: skip
    upload = Upload.objects.create(project=project, run=run, title="Upload", state="done")
    _put_files(project, upload, Run.objects.get(state="succeeded"))
    for number in range(5):
        audit.record(verb="campaign.opened", project=project, actor=cast.owner, object=UNUSUAL, n=number / 7)
    while audit_chain.seal():
        pass
    _add_scores(project, outputs)
    return project


def _put_files(project: Any, upload: Any, export: Any) -> None:
    from django.conf import settings

    from retrieval.models import Corpus, CorpusPart
    from scoring.models import Evaluator

    corpus = Corpus.objects.create(project=project, name="replies", state="ready", revision=1, embedded_revision=1)
    part = CorpusPart.objects.create(corpus=corpus, kind="file", title="c.jsonl", state="stored", revision=1, rows=2)
    Evaluator.objects.create(project=project, slug="mine", name="ream", kind="trained", folder=f"{project.pk}/run-1")
    elsewhere = settings.DATA_DIR / "elsewhere.jsonl"
    elsewhere.write_text("{}\n")
    pairs = b'{"query":"how are you","response":"well"}\n{"query":"where are you","response":"here"}\n'
    for path, data in {
        settings.UPLOADS_DIR / f"{upload.pk}/000": b"x" * 3_000_000,
        settings.EXPORTS_DIR / f"{export.pk}/outputs.jsonl": b"{}\n",
        settings.ARTEFACTS_DIR / f"{project.pk}/run-1/model.safetensors": bytes(range(256)) * 100,
        settings.ARTEFACTS_DIR / f"{project.pk}/run-1/fold-0/config.json": b"{}",
        settings.ARTEFACTS_DIR / "columns/1/cache.npz": b"cached",
        settings.CORPORA_DIR / f"{corpus.pk}/part-{part.pk}.jsonl": pairs,
        settings.CORPORA_DIR / f"{corpus.pk}/index/manifest.json": b"cached",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (settings.UPLOADS_DIR / f"{upload.pk}/001").symlink_to(elsewhere)


def _add_scores(project: Any, outputs: list[Any]) -> None:
    """Create two evaluators with scores, for a leaderboard of evaluators: a metric and another program; and a template
    with an answer of a language model."""
    from django.utils import timezone

    from scoring.models import Evaluator, JudgeAnswer, JudgeTemplate, Score, ScoreSet

    JudgeTemplate.objects.create(project=project, name="mine", version=1, kind="pointwise", text="{output}\nRate it.")
    JudgeAnswer.objects.create(
        project=project, endpoint="hosted", digest="0" * 64, model="large-2", answer={"text": "4"}, characters=90,
        prompt_tokens=20, completion_tokens=1, cost=0.002, seconds=0.5,
    )  # fmt: skip
    for number, (slug, kind) in enumerate((("length", "sentinel"), ("overlap", "external"))):
        evaluator = Evaluator.objects.create(project=project, slug=slug, name=slug, kind=kind)
        rows = ScoreSet.objects.create(
            project=project, evaluator=evaluator, signature=slug, short_signature=slug, references="original",
            data_hash="-", scored_at=timezone.now(), n_scores=len(outputs), systems=[], summary={},
        )  # fmt: skip
        Score.objects.bulk_create(
            Score(score_set=rows, output=output, value=((index * 7 + number * 3) % 11) / 3, input_hash=index)
            for index, output in enumerate(outputs)
        )


def compute_leaderboards(project: Any) -> list[Any]:
    """Compute leaderboards of systems and of evaluators from the current data."""
    from scoring.boards.metrics.query import EvaluatorsQuery
    from scoring.boards.systems.query import SystemsQuery
    from scoring.models import Leaderboard
    from scoring.selectors.leaderboards import parse_query
    from scoring.services.leaderboards import get_leaderboard

    Leaderboard.objects.all().delete()
    leaderboards = []
    for query_class, params in (
        (SystemsQuery, {}),
        (SystemsQuery, {"method": "bradley-terry"}),
        (SystemsQuery, {"by": "length"}),
        (EvaluatorsQuery, {}),
    ):
        arguments = [project] if query_class is SystemsQuery else []
        query = parse_query(query_class, {"references": "original", **params}, *arguments)
        leaderboards.append(get_leaderboard(project=project, query=query).table)
    assert all(table["rows"] for table in leaderboards)
    Leaderboard.objects.all().delete()
    return leaderboards


def compute_digests() -> dict[str, tuple[int, str]]:
    from django.apps import apps

    from evalapp.common.backup import tables

    return {table.name: tables.compute_digest(connections["default"], table) for table in tables.list_tables(apps)}


def kill_at(target: str, work: Callable[[], Any], *, after: bool) -> None:
    """Run `work` in a child process and kill it (SIGKILL) when it enters the function `target` or, with `after`, has
    just left it."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()

    def child() -> None:
        import importlib

        connection = connections["default"]
        if connection.connection is not None:
            connection.connection = None  # the parent process continues to use it
        path, _, name = target.rpartition(".")
        module, _, owner = path.partition(":")
        parent: Any = importlib.import_module(module)
        parent = getattr(parent, owner) if owner else parent
        original = getattr(parent, name)

        def stop(*args: Any, **more: Any) -> None:
            if after:
                original(*args, **more)
            sender.send("reached")
            signal.pause()

        setattr(parent, name, stop)
        try:
            work()
        except BaseException as error:
            sender.send(repr(error))
        os._exit(1)

    process = context.Process(target=child)
    process.start()
    try:
        assert receiver.poll(120), f"{target} was not reached"
        message = receiver.recv()
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    assert message == "reached", message
