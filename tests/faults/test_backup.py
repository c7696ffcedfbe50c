"""A backup is the complete state at one moment, even while data change; a restore is complete or has no effect, in
either database, however it is interrupted."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import stat
import threading
import time
import zipfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, connections, transaction
from django.db.migrations.recorder import MigrationRecorder

from evalapp.common.backup import journal, tables
from evalapp.common.backup.container import Reader
from evalapp.common.backup.restoring import restore_backup, settle
from evalapp.common.backup.writing import make_backup
from evalapp.common.errors import BadInput, Conflict, EvalappError, Unavailable
from evalapp.common.hooks import Hook

from .backup_world import (
    Installation,
    compute_digests,
    compute_leaderboards,
    fill_installation,
    kill_at,
    make_postgres_installation,
    make_sqlite_installation,
)

pytestmark = pytest.mark.promise("backup")
#: Tables that a restore changes on purpose: runs return to the queue, indexes are rebuilt, the audit log records it.
CHANGED_BY_RESTORE = {"common_run", "common_runlog", "retrieval_corpus", "retrieval_corpuspart", "common_auditevent"}


class ExampleBackup:
    """A filled installation on SQLite, its backup, and its expected content."""

    def __init__(self, home: Path, migrated: Path) -> None:
        self.home, self.migrated = home, migrated
        self.installation = make_sqlite_installation(home / "source", migrated)
        self.file = home / "backup.zip"
        with self.installation.django():
            self.project = fill_installation()
            self.made = make_backup(target=self.file)
            self.digests = compute_digests()
            self.last = {t.name: tables.read_last_key(connection, t) for t in _tables()}
            self.tables = compute_leaderboards(self.project)  # created after the backup, so these rows are not in it

    def empty(self, folder: Path) -> Installation:
        return make_sqlite_installation(folder, self.migrated)


def _tables() -> list[tables.Table]:
    from django.apps import apps

    return tables.list_tables(apps)


@pytest.fixture(scope="module")
def backup(tmp_path_factory: Any, migrated_file: Path, django_db_blocker: Any) -> Iterator[ExampleBackup]:
    with django_db_blocker.unblock():
        yield ExampleBackup(tmp_path_factory.mktemp("backup"), migrated_file)


@pytest.fixture
def empty(backup: ExampleBackup, tmp_path: Path, django_db_blocker: Any) -> Iterator[Installation]:
    """An installation with empty tables, to which Django is connected."""
    target = backup.empty(tmp_path / "target")
    with django_db_blocker.unblock(), target.django():
        yield target


def is_empty() -> bool:
    return not any(tables.is_filled(connection, t) for t in _tables() if t.name not in tables.MADE_BY_MIGRATE)


def assert_restored(backup: ExampleBackup) -> None:
    """Check that all rows are equal, except the fields that a restore changes on purpose."""
    from evalapp.common.models import AuditEvent, Run
    from retrieval.models import Corpus

    now = compute_digests()
    for name, digest in backup.digests.items():
        if name not in CHANGED_BY_RESTORE:
            assert now[name] == digest, name
    for name, last in backup.last.items():
        assert (tables.read_last_key(connection, _get_table(name)) or 0) >= (last or 0), name
    assert now["common_auditevent"][0] == backup.digests["common_auditevent"][0] + 1
    restored = AuditEvent.objects.get(verb=journal.VERB)
    assert restored.detail["fingerprint"]
    states = dict(Run.objects.values_list("title", "state"))
    assert states == {"running": "queued", "succeeded": "succeeded", "queued": "queued"}
    assert "restored from a backup" in Run.objects.get(title="running").log.get().text
    corpus = Corpus.objects.get()
    assert (corpus.state, corpus.count) == ("ready", 2)


def _get_table(name: str) -> tables.Table:
    return next(table for table in _tables() if table.name == name)


def test_participants_continue_by_their_link_after_a_restore(tmp_path, migrated_file, django_db_blocker):
    from annotation.models import Participant
    from tests.annotation.hired import Study, Visitor
    from tests.cast import make_cast

    source = make_sqlite_installation(tmp_path / "source", migrated_file)
    target = make_sqlite_installation(tmp_path / "target", migrated_file)
    with django_db_blocker.unblock(), source.django():
        study = Study(make_cast(), outcomes={"passed": {"code": "C-PASS"}}, personal_codes=False)
        nora, otto = Visitor(study, "id-1"), Visitor(study, "id-2")
        nora.finish()
        otto.begin()
        otto.answer()
        rows = list(Participant.objects.order_by("pk").values())
        made = make_backup(target=tmp_path / "backup.zip")
    with django_db_blocker.unblock(), target.django():
        restore_backup(path=tmp_path / "backup.zip", fingerprint=made.fingerprint)
        assert list(Participant.objects.order_by("pk").values()) == rows
        otto.client.cookies.pop("sessionid")
        assert otto.open().redirect_chain[-1][0] == f"/my/{study.campaign.pk}/"
        assert b"C-PASS" in otto.finish().content
        assert Visitor(study, "id-1").open().status_code == 403, "still bound to the browser"
        assert study.get_states() == {"id-1": "passed", "id-2": "passed"}


# ---- equality ------------------------------------------------------------------------------------------------


def test_everything_is_restored(backup, empty, record_property):
    from annotation.models import Rating
    from evalapp.common import audit_chain

    assert stat.S_IMODE(backup.file.stat().st_mode) == 0o600
    done = restore_backup(path=backup.file, fingerprint=backup.made.fingerprint)
    assert (done.rows, done.files, done.missing, done.left) == (backup.made.rows, 6, (), ())
    assert_restored(backup)
    assert compute_leaderboards(backup.project) == backup.tables
    assert audit_chain.verify().faults == ()
    assert audit_chain.verify().sealed == 5
    assert [check.state for check in audit_chain.checks()] == ["ok"]
    output = Rating.objects.first().output
    rating = Rating.objects.create(
        project=backup.project, output=output, aspect=Rating.objects.first().aspect, rater="new", value=2
    )
    assert rating.pk > backup.last["annotation_rating"]  # not the primary key of the deleted row
    names = empty.list_files()
    assert [name for name in names if "index/" not in name and "/.lock" not in name] == [
        "artefacts/1/run-1/fold-0/config.json", "artefacts/1/run-1/model.safetensors", "corpora/1/part-1.jsonl",
        "exports/2/outputs.jsonl", "uploads/1/000", "uploads/1/001",
    ]  # fmt: skip
    for name in names:
        if "index/" not in name and "/.lock" not in name:
            source = backup.installation.folder / name
            assert (empty.folder / name).read_bytes() == source.read_bytes()
    assert not (empty.folder / "uploads/1/001").is_symlink()
    record_property("figure", f"{done.rows:,} rows and {done.files} files back, hashes and boards equal")


@pytest.mark.server("postgres")
def test_backup_moves_to_postgresql_and_back(backup, tmp_path, migrated_url, django_db_blocker):
    """SQLite -> PostgreSQL -> the same PostgreSQL, replaced -> SQLite: the same rows, the same leaderboards."""
    from annotation.triggers import stand

    postgres, sqlite = make_postgres_installation(tmp_path / "one", migrated_url), backup.empty(tmp_path / "two")
    file, next_file = backup.file, tmp_path / "next.zip"
    with django_db_blocker.unblock():
        for installation in (postgres, postgres, sqlite):
            with installation.django():
                restore_backup(path=file, replace=installation is postgres)
                now = compute_digests()
                assert not [
                    n for n, digest in backup.digests.items() if n not in CHANGED_BY_RESTORE and now[n] != digest
                ]
                assert compute_leaderboards(backup.project) == backup.tables
                assert stand(connection)
                _check_triggers()
                if file == backup.file:
                    assert_restored(backup)
                    make_backup(target=next_file)
                    file = next_file


def _check_triggers() -> None:
    """Check that the triggers suspended during the restore are active again."""
    from annotation.models import Comparison, Item, Rating

    item = Item.objects.filter(judged=True).first()
    with transaction.atomic():
        Comparison.objects.filter(output_a__item=item).delete()
        Rating.objects.filter(output__item=item).delete()
        item.refresh_from_db()
        assert not item.judged
        transaction.set_rollback(True)


# ---- consistency -----------------------------------------------------------------------------------------------


def _write_pairs(stop: threading.Event, backup: ExampleBackup, written: list[int]) -> None:
    """Write ratings and audit entries, one of each in a transaction, so that their numbers are always equal."""
    from annotation.models import Rating
    from evalapp.common import audit

    first = Rating.objects.select_related("output", "aspect", "project").first()
    while not stop.is_set():
        with transaction.atomic():
            Rating.objects.create(
                project=first.project, output=first.output, aspect=first.aspect, rater=f"w{len(written)}", value=3
            )
            audit.record(verb="test.written", project=first.project)
        written.append(1)
    connections["default"].close()


def _check_backups_during_writes(backup: ExampleBackup, folder: Path) -> None:
    stop, written = threading.Event(), []
    writer = threading.Thread(target=_write_pairs, args=(stop, backup, written))
    writer.start()
    try:
        for number in range(3):
            before = len(written)
            file = folder / f"backup-{number}.zip"
            make_backup(target=file)
            while len(written) == before:
                time.sleep(0.01)
            with Reader(file) as reader:
                entries = {entry.name: entry for entry in reader.manifest.tables}
                ratings = sum("w" in map(_get_prefix, row) for row in reader.read_rows(entries["annotation_rating"]))
                events = sum("test.written" in row for row in reader.read_rows(entries["common_auditevent"]))
            assert ratings == events
            assert events >= (0, 1, 1)[number]
    finally:
        stop.set()
        writer.join()
    assert len(written) > 3


def _get_prefix(value: Any) -> Any:
    return value[:1] if isinstance(value, str) and value[1:].isdigit() else None


def test_backup_is_consistent(backup, tmp_path, django_db_blocker, monkeypatch):
    """A thread continues to write without delay, and the backups contain no partial transactions."""
    monkeypatch.setattr(tables, "read_rows", _slowly(tables.read_rows))
    source = make_sqlite_installation(tmp_path / "source")
    shutil.copy(backup.installation.folder / "evalapp.sqlite3", source.folder)
    with django_db_blocker.unblock(), source.django():
        _check_backups_during_writes(backup, tmp_path)


@pytest.mark.server("postgres")
def test_backup_of_postgresql_is_consistent(backup, tmp_path, migrated_url, django_db_blocker, monkeypatch):
    monkeypatch.setattr(tables, "read_rows", _slowly(tables.read_rows))
    source = make_postgres_installation(tmp_path / "source", migrated_url)
    with django_db_blocker.unblock(), source.django():
        restore_backup(path=backup.file, index=False)
        _check_backups_during_writes(backup, tmp_path)


def _slowly(rows_of: Any) -> Any:
    """Let other threads run between two tables."""

    def slow(*args: Any) -> Any:
        time.sleep(0.003)
        return rows_of(*args)

    return slow


def test_file_deleted_during_the_backup_is_included(backup, tmp_path, django_db_blocker, monkeypatch):
    """A file that was missing before is reported, and the backup continues."""
    from django.conf import settings

    shutil.copytree(backup.installation.folder, tmp_path / "source", symlinks=True)
    source = Installation(tmp_path / "source", f"sqlite:///{tmp_path / 'source/evalapp.sqlite3'}")
    model = "1/run-1/model.safetensors"
    original = tables.list_tables

    def delete_file(apps: Any) -> Any:
        (settings.ARTEFACTS_DIR / model).unlink()
        return original(apps)

    with django_db_blocker.unblock(), source.django():
        monkeypatch.setattr(tables, "list_tables", delete_file)
        assert make_backup(target=tmp_path / "a").missing == ()
        monkeypatch.undo()
        shutil.rmtree(settings.ARTEFACTS_DIR / "1/run-1")
        assert make_backup(target=tmp_path / "b").missing == ("artefacts/1/run-1",)
    with zipfile.ZipFile(tmp_path / "a") as file:
        assert file.read(f"files/artefacts/{model}") == (backup.installation.folder / "artefacts" / model).read_bytes()


def test_file_system_without_hard_links_is_supported(backup, tmp_path, monkeypatch, django_db_blocker):
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with django_db_blocker.unblock(), backup.installation.django():
        assert make_backup(target=tmp_path / "a").files == backup.made.files
        with pytest.raises(Conflict, match="--overwrite"):
            make_backup(target=tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


# ---- rejected before anything is changed ------------------------------------------------------------------------


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the marker before the first change is written."""
    monkeypatch.setattr(journal, "write", lambda entry: pytest.fail("the restore is about to change something"))


def _cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def _flip(data: bytes) -> bytes:
    index = data.index(b"tables/annotation_rating.jsonl") + 200
    return data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]


@pytest.mark.parametrize("damage", [_cut, _flip])
def test_damaged_file_touches_nothing(backup, empty, damage, untouched):
    bad = empty.folder.parent / "bad"
    bad.write_bytes(damage(backup.file.read_bytes()))
    before = empty.list_files()
    with pytest.raises(BadInput, match="nothing was changed"):
        restore_backup(path=bad)
    assert is_empty()
    assert empty.list_files() == before


def test_tampered_file_touches_nothing(backup, empty, untouched):
    """A valid file with one changed answer, and one with a changed manifest."""
    from evalapp.common.backup.container import MANIFEST

    bad = empty.folder.parent / "bad"
    name = "tables/annotation_rating.jsonl"
    with zipfile.ZipFile(backup.file) as old, zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info.filename, data.replace(b'"r1"', b'"r9"') if info.filename == name else data)
    before = empty.list_files()
    with pytest.raises(BadInput, match=f"{name} was changed"):
        restore_backup(path=bad)
    with zipfile.ZipFile(backup.file) as old, zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info.filename, data.replace(b"2026", b"2027") if info.filename == MANIFEST else data)
    with pytest.raises(BadInput, match="is another backup"):
        restore_backup(path=bad, fingerprint=backup.made.fingerprint)
    assert is_empty()
    assert empty.list_files() == before


def test_rows_that_differ_from_the_backup_are_refused(backup, empty, monkeypatch):
    """The database stores other values than it was given; the final comparison detects this."""
    from evalapp.common.backup import values

    monkeypatch.setitem(values._SQLITE, "float", lambda value: round(float(value), 6))
    with pytest.raises(EvalappError, match="differ from the backup once they are in this database"):
        restore_backup(path=backup.file)
    assert is_empty()
    assert empty.list_files() == []


def test_full_installation_is_not_overwritten(backup, empty):
    from evalapp.accounts.models import User

    User.objects.create_user("ada")
    with pytest.raises(Conflict, match=r"not empty \(accounts_user\).*--replace"):
        restore_backup(path=backup.file)
    assert User.objects.get().username == "ada"
    with pytest.raises(CommandError, match="--yes"):
        call_command("restore", str(backup.file), "--replace")
    (empty.folder / "uploads/9").mkdir(parents=True)
    (empty.folder / "uploads/9/000").write_text("old")
    done = restore_backup(path=backup.file, replace=True)
    assert done.rows == backup.made.rows
    assert not User.objects.filter(username="ada").exists()
    assert not (empty.folder / "uploads/9").exists()
    assert_restored(backup)


def test_files_without_rows_are_not_lost(backup, empty):
    (empty.folder / "corpora").mkdir()
    (empty.folder / "corpora/mine").write_text("mine")
    with pytest.raises(Conflict, match=r"There are files in .*corpora"):
        restore_backup(path=backup.file)
    assert is_empty()


def test_backup_of_a_newer_version_is_explained(backup, empty, monkeypatch):
    from evalapp.common.backup.container import Manifest

    original = Manifest.as_bytes
    newer = backup.home / "newer"
    with monkeypatch.context() as patched, backup.installation.django():
        patched.setattr(
            Manifest, "as_bytes", lambda self: original(self).replace(b'"0001_initial"', b'"0001_initial", "9999_x"', 1)
        )
        make_backup(target=newer)
    with pytest.raises(Conflict, match=r"\w+\.9999_x"):
        restore_backup(path=newer)
    MigrationRecorder(connection).record_applied("common", "9999_y")
    for work in (
        lambda: restore_backup(path=backup.file, replace=True),
        lambda: make_backup(target=backup.home / "no"),
    ):
        with pytest.raises(Conflict, match=r"newer version.*common\.9999_y"):
            work()
    assert is_empty()


# ---- killed, and disk full ---------------------------------------------------------------------------------------

_MODULE = "evalapp.common.backup"


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (f"{_MODULE}.tables:Filling.end", False),
        (f"{_MODULE}.files:.place_all", True),
        (f"{_MODULE}.files:.forget", False),
    ],
    ids=["during rows", "after files", "before cleanup"],
)
def test_killed_restore_is_nothing_or_all(backup, empty, target, after, monkeypatch):
    """`kill -9` in the middle: doctor reports it. Afterwards everything is as before, or complete if the rows were
    already committed."""
    kill_at(target.replace(":.", "."), lambda: restore_backup(path=backup.file), after=after)
    connection.close()
    committed = "forget" in target
    assert is_empty() is not committed
    [line] = journal.checks()
    assert line.name == "restore"
    assert ("rows are there" if committed else "was interrupted; nothing of it counts") in line.found
    if not committed:
        restore_backup(path=backup.file)  # cleans up, then restores
    else:
        settle()
    assert journal.checks() == []
    names = [path.name for path in empty.folder.iterdir()]
    assert not [name for name in names if "-restore-" in name or "-before-" in name]
    if committed:
        assert {name: found for name, found in compute_digests().items() if name not in CHANGED_BY_RESTORE} == {
            name: found for name, found in backup.digests.items() if name not in CHANGED_BY_RESTORE
        }
        assert (empty.folder / "uploads/1/000").stat().st_size == 3_000_000
    else:
        assert_restored(backup)


def test_killed_replacement_brings_back_the_replaced_data(backup, empty, monkeypatch):
    """Also if the recovery itself is interrupted."""
    from evalapp.accounts.models import User

    User.objects.create_user("ada")
    (empty.folder / "uploads/9").mkdir(parents=True)
    (empty.folder / "uploads/9/000").write_text("old")
    before = empty.list_files()
    kill_at(f"{_MODULE}.files.place_all", lambda: restore_backup(path=backup.file, replace=True), after=True)
    connection.close()
    assert (empty.folder / "uploads/1/000").exists()  # the restored files
    rmtree, removed = shutil.rmtree, []

    def fail_after_first(path: Path) -> None:
        if removed:
            raise OSError(errno.EIO, "broken", str(path))
        removed.append(path)
        rmtree(path)

    with monkeypatch.context() as patched:
        patched.setattr(f"{_MODULE}.files.shutil.rmtree", fail_after_first)
        with pytest.raises(OSError, match="broken"):
            settle()  # the old data are back, but the restored files are only partly removed
    assert len(removed) == 1
    settle()
    assert User.objects.get().username == "ada"
    assert empty.list_files() == before


def test_existing_files_remain_if_the_backup_has_no_files(backup, empty, tmp_path, monkeypatch):
    """The restore is killed before the first folder is moved; the backup has no folder to replace the existing one."""
    bare = tmp_path / "bare"
    with monkeypatch.context() as patched, backup.installation.django():
        patched.setattr(f"{_MODULE}.writing.BACKUP_FILES", Hook())
        make_backup(target=bare)
    (empty.folder / "uploads/9").mkdir(parents=True)
    (empty.folder / "uploads/9/000").write_text("old")
    before = empty.list_files()
    kill_at(f"{_MODULE}.files.place_all", lambda: restore_backup(path=bare, replace=True), after=False)
    connection.close()
    settle()
    assert empty.list_files() == before


@pytest.fixture
def limited_space() -> Iterator[None]:
    """Limit files to 200 kB: writing more is a system error, as on a full disk."""
    before, usual = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, usual)


def test_full_disk_leaves_no_partial_files(backup, empty, request):
    request.getfixturevalue("limited_space")
    big = empty.folder.parent / "copy"
    more = [backup.installation.folder / "uploads/1" / name for name in ("002", "003")]
    for path in more:
        path.write_bytes(os.urandom(150_000))
    with backup.installation.django(), pytest.raises(Unavailable, match=os.strerror(errno.EFBIG)):
        make_backup(target=big)
    for path in more:
        path.unlink()
    assert not big.exists()
    assert not list(big.parent.glob(".copy*"))
    with pytest.raises(Unavailable, match="nothing was changed"):
        restore_backup(path=backup.file)
    assert is_empty()
    assert empty.list_files() == []


# ---- the commands ----------------------------------------------------------------------------------------------


def test_commands(backup, empty, tmp_path, capsys):
    import json

    with backup.installation.django():
        file = tmp_path / "b.zip"
        call_command("backup", str(file), "--json")
        made = json.loads(capsys.readouterr().out)
        with pytest.raises(CommandError, match="--overwrite"):
            call_command("backup", str(file))
        out = StringIO()
        call_command("backup", str(file), "--overwrite", stdout=out)
        assert "password hashes" in out.getvalue()
        with pytest.raises(CommandError, match="does not exist"):
            call_command("backup", str(tmp_path / "no/b.zip"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["b.zip", "target"]
    assert made["rows"] == backup.made.rows
    out = StringIO()
    call_command("restore", str(file), "--check", stdout=out)
    assert "complete: made" in out.getvalue()
    assert is_empty()
    call_command("restore", str(file), "--no-index", "--json")
    done = json.loads(capsys.readouterr().out)
    assert done["left"] == ["Build the search indexes: evalapp reindex SLUG"]
    assert done["runs"] == {"returned": 1, "failed": 0, "cancelled": 0}


def test_backup_works_through_a_pipe(backup, empty, tmp_path, monkeypatch, capsysbinary):
    """`backup - | restore -`"""
    import io
    import sys

    with backup.installation.django():
        call_command("backup", "-")
        output = capsysbinary.readouterr().out
    assert output[:2] == b"PK"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(output)))
    call_command("restore", "-", stdout=StringIO())
    assert_restored(backup)
    assert not list(empty.folder.glob(".restore-*"))
