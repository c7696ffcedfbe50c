"""Incomplete or manipulated backups are refused: every case is a file that a person could send."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalapp.common.backup.container import MANIFEST, Damaged, Manifest, Reader, TableEntry, Writer
from evalapp.common.backup.files import is_safe
from evalapp.common.backup.values import Column
from evalapp.common.errors import BadInput

pytestmark = pytest.mark.promise("backup")
COLUMNS = (Column("id", "integer"), Column("text", "text"))
ROWS = b'[1,"one"]\n[2,"two"]\n'
MEMBER = "tables/annotation_item.jsonl"


def write(path: Path, members: dict[str, bytes] | None = None, change: Callable[[dict], Any] | None = None) -> Path:
    """A small backup; `change` may alter the manifest, as an attacker could."""
    with path.open("wb") as file:
        writer = Writer(file)
        for name, data in (members or {MEMBER: ROWS, "files/uploads/1/000": b"x" * 1000}).items():
            with writer.member(name) as sink:
                sink(data)
        table = TableEntry("annotation_item", COLUMNS, 2, "", 2)
        manifest = Manifest("0.1.0", "2026-01-01T00:00:00+00:00", "sqlite", {}, (table,), writer.members, {}, ())
        if change is not None:
            body = json.loads(manifest.as_bytes())
            change(body)
            data = json.dumps(body).encode()
            manifest = replace(manifest)
            object.__setattr__(manifest, "as_bytes", lambda: data)
        writer.finish(manifest)
    return path


def check(path: Path) -> Manifest:
    with Reader(path) as reader:
        reader.check(lambda name: None)
        return reader.manifest


def test_written_backup_is_read(tmp_path):
    path = write(tmp_path / "a")
    with Reader(path) as reader:
        reader.check(lambda name: None)
        assert list(reader.read_rows(reader.manifest.tables[0])) == [[1, "one"], [2, "two"]]
        assert reader.manifest.files == ["files/uploads/1/000"]
        assert len(reader.fingerprint) == 64


def test_backup_can_be_written_to_a_pipe(tmp_path):
    """The writer never seeks backwards."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.data += bytes(data)
            return len(data)

    pipe = Pipe()
    writer = Writer(pipe)  # type: ignore[arg-type]
    with writer.member(MEMBER) as sink:
        sink(ROWS)
    table = TableEntry("annotation_item", COLUMNS, 2, "", 2)
    writer.finish(Manifest("0", "", "sqlite", {}, (table,), writer.members, {}, ()))
    (tmp_path / "a").write_bytes(pipe.data)
    assert check(tmp_path / "a").rows == 2


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9, 0.999])
def test_truncated_file_is_refused(tmp_path, share):
    path = write(tmp_path / "a")
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(BadInput, match="nothing was changed"):
        check(path)


def test_every_changed_byte_is_detected(tmp_path):
    """Changes each byte of the file in turn: the file is refused, or the byte has no meaning (dates and the like); the
    content is never different."""
    path = write(tmp_path / "a", {MEMBER: ROWS})
    whole, told = path.read_bytes(), check(path)
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            same = check(path)
        except BadInput:
            refused += 1
        else:
            assert same == told, place
    assert refused > len(whole) / 2


def tampered(source: Path, target: Path, name: str, data: bytes) -> Path:
    """A valid zip with other bytes in one member."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, data if info.filename == name else old.read(info))
    return target


def test_changed_member_is_refused(tmp_path):
    path = write(tmp_path / "a")
    for name, data in ((MEMBER, ROWS.replace(b"two", b"owt")), ("files/uploads/1/000", b"y" * 1000)):
        with pytest.raises(Damaged, match=f"{name} was changed"):
            check(tampered(path, tmp_path / "b", name, data))
    with pytest.raises(Damaged, match="longer than it should be"):
        check(tampered(path, tmp_path / "b", MEMBER, ROWS * 2))
    with pytest.raises(Damaged, match="cut short"):
        check(tampered(path, tmp_path / "b", MEMBER, ROWS[:10]))


def add(path: Path, name: str, mode: int = stat.S_IFREG | 0o600) -> Path:
    with zipfile.ZipFile(path, "a") as file:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        file.writestr(info, b"x")
    return path


@pytest.mark.parametrize(
    "name",
    [
        "files/uploads/../../etc/cron.d/x", "/etc/passwd", "files/uploads//x", "files/uploads/./x", "files/other/x",
        "files/uploads/a\\..\\b", "files/uploads/a\x01b", "files/uploads/" + "a" * 300, "files/uploads", "secret_key",
    ],
)  # fmt: skip
def test_no_name_leads_outside_the_folder(tmp_path, name):
    """Such a name is refused even if the manifest lists it with the right hash."""
    path = write(tmp_path / "a", {MEMBER: ROWS, name: b"x"})
    with pytest.raises(Damaged, match=r"has no place in a backup|missing or not in the manifest"):
        check(path)


def test_links_folders_unknown_and_duplicate_members_are_refused(tmp_path):
    with pytest.raises(Damaged, match="folder or a link"):
        check(add(write(tmp_path / "a"), "files/uploads/1/link", stat.S_IFLNK | 0o777))
    with pytest.raises(Damaged, match="folder or a link"):
        check(add(write(tmp_path / "a"), "files/uploads/2/"))
    with pytest.raises(Damaged, match="not in the manifest"):
        check(add(write(tmp_path / "a"), "files/uploads/1/001"))
    with pytest.warns(UserWarning, match="Duplicate name"):
        add(write(tmp_path / "a"), MEMBER)
    with pytest.raises(Damaged, match="twice"):
        check(tmp_path / "a")


def _counting(read: Callable[..., bytes], taken: list[int]) -> Callable[..., bytes]:
    def counted(self: Any, n: int | None = -1) -> bytes:
        data = read(self, n)
        taken.append(len(data))
        return data

    return counted


def test_bombs_unpack_no_more_than_declared(tmp_path, monkeypatch):
    """30 MB of zeros declared as 20 bytes: 21 are unpacked. Endless rows, and endlessly nested rows."""
    path = write(tmp_path / "a", {MEMBER: ROWS})
    taken = []
    monkeypatch.setattr(zipfile.ZipExtFile, "read", _counting(zipfile.ZipExtFile.read, taken))
    with pytest.raises(Damaged, match="longer than it should be"):
        check(tampered(path, tmp_path / "b", MEMBER, b"0" * 30_000_000))
    assert len(ROWS) + 1 in taken
    assert max(taken) < 10_000
    with pytest.raises(Damaged, match="ends within a row"):
        check(write(tmp_path / "c", {MEMBER: ROWS[:-1]}))
    deep = b"[" * 100_000 + b"\n"
    with pytest.raises(Damaged, match="cannot be read"):
        check(write(tmp_path / "d", {MEMBER: deep}))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("tables"),
        lambda body: body.pop("missing"),
        lambda body: body["tables"][0].update(rows=3),
        lambda body: body["tables"][0].update(rows=-1),
        lambda body: body["tables"][0].update(columns=[["id", "pickle"]]),
        lambda body: body["tables"].append(body["tables"][0]),
        lambda body: body["members"].pop(MEMBER),
        lambda body: body["members"].update({MEMBER: [10**12, "0"]}),
        lambda body: body.update(format="other"),
        lambda body: body.update(migrations=[1, 2]),
        lambda body: body["tables"][0].update(name="../x"),
    ],
)
def test_contradicting_manifest_is_refused(tmp_path, change):
    with pytest.raises(Damaged, match="nothing was changed"):
        check(write(tmp_path / "a", change=change))


def test_other_format_names_the_version_to_use(tmp_path):
    with pytest.raises(BadInput, match=r"by version 9\.9\. Restore it with that version"):
        check(write(tmp_path / "a", change=lambda body: body.update(format_version=2, product_version="9.9")))


def test_fingerprint_identifies_the_manifest(tmp_path):
    path = write(tmp_path / "a")
    with Reader(path) as reader, zipfile.ZipFile(path) as file:
        assert reader.fingerprint == hashlib.sha256(file.read(MANIFEST)).hexdigest()


@pytest.mark.parametrize(
    ("path", "safe"),
    [("1/000", True), ("3/run-7/model.safetensors", True), ("été/ß", True), ("..", False), ("a/../b", False),
     ("/a", False), ("a/", False), ("a\nb", False), ("", False), ("a\x00", False), ("é" * 200, False)],
)  # fmt: skip
def test_safe_paths(path, safe):
    assert is_safe(path) is safe
