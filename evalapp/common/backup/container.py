"""The file of a backup: a zip of members, the last of which, `manifest.json`, says what each must be. Writing streams,
so that the file may be a pipe; reading trusts nothing it has not compared."""

from __future__ import annotations

import hashlib
import json
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from ..errors import BadInput
from .files import CHUNK, ROOTS, is_safe
from .values import KINDS, Column

FORMAT = "evalapp-backup"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
MOST_MANIFEST = 256_000_000
#: Longest row as a line; the same when writing, so that whatever was written can be read.
MOST_LINE = 256_000_000
#: What is packed already.
_PACKED = (".safetensors", ".npz", ".gz", ".zip", ".parquet", ".png", ".pdf")
#: What the libraries raise for bytes that are no zip.
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError
)  # fmt: skip
_PLAIN_FILE = (stat.S_IFREG | 0o600) << 16


class Damaged(BadInput):
    code, title = "damaged-backup", "This is no whole backup"


@dataclass(frozen=True)
class TableEntry:
    """What a table must be: its columns, how many rows, a hash over them, and the last number given to a row."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    digest: str
    last: int | None

    @property
    def member(self) -> str:
        return f"tables/{self.name}.jsonl"


@dataclass(frozen=True)
class Manifest:
    product_version: str
    made_at: str
    vendor: str
    migrations: dict[str, list[str]]
    tables: tuple[TableEntry, ...]
    #: Member -> [bytes, SHA-256].
    members: dict[str, tuple[int, str]]
    left_out: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def as_bytes(self) -> bytes:
        body = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        body["tables"] = [
            {**asdict(table), "columns": [[column.name, column.kind] for column in table.columns]}
            for table in self.tables
        ]
        return json.dumps(body, indent=1).encode()

    @property
    def files(self) -> list[str]:
        return [name for name in self.members if name.startswith("files/")]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)


# ---- writing ------------------------------------------------------------------------------------------------


class Writer:
    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=3)
        self.members: dict[str, tuple[int, str]] = {}

    @contextmanager
    def member(self, name: str) -> Iterator[Callable[[bytes], None]]:
        """A function that takes the bytes of this member."""
        info = zipfile.ZipInfo(name)
        info.external_attr = _PLAIN_FILE
        info.compress_type = zipfile.ZIP_STORED if name.endswith(_PACKED) else zipfile.ZIP_DEFLATED
        info._compresslevel = 3
        digest, size = hashlib.sha256(), 0
        with self._zip.open(info, "w", force_zip64=True) as sink:

            def write(data: bytes) -> None:
                nonlocal size
                sink.write(data)
                digest.update(data)
                size += len(data)

            yield write
        self.members[name] = (size, digest.hexdigest())

    def finish(self, manifest: Manifest) -> str:
        """The manifest as the last member; its hash, which stands for the whole file."""
        data = manifest.as_bytes()
        info = zipfile.ZipInfo(MANIFEST)
        info.external_attr, info.compress_type = _PLAIN_FILE, zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data)
        self._zip.close()
        return hashlib.sha256(data).hexdigest()


# ---- reading ------------------------------------------------------------------------------------------------


class Reader:
    """An open backup. Making one reads the list of members and the manifest; `check` reads everything."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error
        except _UNREADABLE as error:
            raise self.damaged("it is cut short, or no backup at all") from error
        try:
            self._infos = self._members(path.stat().st_size)
            data = b"".join(self._chunks(MANIFEST, self._infos[MANIFEST].file_size))
            self.fingerprint = hashlib.sha256(data).hexdigest()
            self.manifest = self._manifest(data)
            self._compare()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def damaged(self, why: str) -> Damaged:
        return Damaged(f"{self.path}: {why}. Take another backup; nothing was changed.")

    def check(self, progress: Callable[[str], None]) -> None:
        """Read every byte and compare it with the manifest."""
        for name in self.manifest.members:
            progress(name)
            for _ in self.chunks(name):
                pass
        for table in self.manifest.tables:
            if sum(1 for _ in self.rows(table)) != table.rows:
                raise self.damaged(f"{table.member} does not have the {table.rows:,} rows it should")

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of a member; after the last it is known that they are those of the manifest."""
        size, expected = self.manifest.members[name]
        digest = hashlib.sha256()
        for chunk in self._chunks(name, size):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != expected:
            raise self.damaged(f"{name} was changed")

    def rows(self, table: TableEntry) -> Iterator[list[Any]]:
        width = len(table.columns)
        for line in self._lines(table.member):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self.damaged(f"{table.member} has a row that cannot be read") from error
            if not isinstance(row, list) or len(row) != width or any(isinstance(v, (list, dict)) for v in row):
                raise self.damaged(f"{table.member} has a row that is none")
            yield row

    def _lines(self, name: str) -> Iterator[bytes]:
        rest: list[bytes] = []
        waiting = 0
        for chunk in self.chunks(name):
            *whole, last = chunk.split(b"\n")
            if whole:
                yield b"".join([*rest, whole[0]])
                yield from whole[1:]
                rest, waiting = [], 0
            rest.append(last)
            waiting += len(last)
            if waiting > MOST_LINE:
                raise self.damaged(f"{name} has a row of more than {MOST_LINE // 1_000_000} MB")
        if waiting:
            raise self.damaged(f"{name} ends within a row")

    def _chunks(self, name: str, size: int) -> Iterator[bytes]:
        """Never more than `size` bytes, whatever the member unpacks to."""
        left = size
        try:
            with self._zip.open(self._infos[name]) as member:
                while chunk := member.read(min(CHUNK, left + 1)):
                    left -= len(chunk)
                    if left < 0:
                        raise self.damaged(f"{name} is longer than it should be")
                    yield chunk
        except _UNREADABLE as error:
            raise self.damaged(f"{name} is damaged") from error
        except OSError as error:
            raise BadInput(f"{self.path} cannot be read: {error.strerror or error}.") from error
        if left:
            raise self.damaged(f"{name} is cut short")

    def _members(self, size: int) -> dict[str, zipfile.ZipInfo]:
        infos: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir() or kind not in (0, stat.S_IFREG):
                raise self.damaged(f"{info.filename[:200]!r} is a folder or a link")
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.damaged(f"{info.filename[:200]!r} is packed in an unknown way")
            if info.filename in infos:
                raise self.damaged(f"{info.filename[:200]!r} stands in it twice")
            infos[info.filename] = info
        if sum(info.compress_size for info in infos.values()) > size:
            raise self.damaged("its members overlap")
        if MANIFEST not in infos:
            raise self.damaged("it has no manifest")
        if infos[MANIFEST].file_size > MOST_MANIFEST:
            raise self.damaged("its manifest is too long")
        return infos

    def _manifest(self, data: bytes) -> Manifest:
        try:
            body = json.loads(data)
            if body["format"] != FORMAT:
                raise self.damaged("it is no backup of this product")
            if body["format_version"] != FORMAT_VERSION:
                version = str(body["product_version"])[:50]
                text = f"{self.path} was written in another format, by version {version}. Restore it with that version."
                raise BadInput(text)
            return _parse(body)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self.damaged("its manifest cannot be read") from error

    def _compare(self) -> None:
        """The list of members is that of the manifest, and no name leads anywhere else."""
        wanted = {*self.manifest.members, MANIFEST}
        if (odd := sorted(wanted ^ set(self._infos))) or len(wanted) != len(self.manifest.members) + 1:
            raise self.damaged(f"{(odd or [MANIFEST])[0][:200]!r} is missing, or nothing is known of it")
        tables = {table.member for table in self.manifest.tables}
        for name in self.manifest.members:
            kind, _, rest = name.partition("/")
            root, _, path = rest.partition("/")
            if name not in tables and not (kind == "files" and root in ROOTS and is_safe(path)):
                raise self.damaged(f"{name[:200]!r} has no place in a backup")
        if len(tables) != len(self.manifest.tables) or not tables <= set(self.manifest.members):
            raise self.damaged("the tables of its manifest are not those it holds")


def _parse(body: dict[str, Any]) -> Manifest:
    """Raises ValueError, TypeError or KeyError for whatever is not as it should be."""
    tables = []
    for entry in body["tables"]:
        columns = tuple(Column(_text(name), _text(kind)) for name, kind in entry["columns"])
        if not {column.kind for column in columns} <= set(KINDS.values()):
            raise ValueError("unknown kind of column")
        last = entry["last"]
        tables.append(
            TableEntry(
                _text(entry["name"]), columns, _count(entry["rows"]), _text(entry["digest"]),
                None if last is None else _count(last),
            )
        )  # fmt: skip
    members = {_text(name): (_count(size), _text(digest)) for name, (size, digest) in body["members"].items()}
    migrations = {_text(app): [_text(name) for name in names] for app, names in body["migrations"].items()}
    left_out = {_text(name): _text(why) for name, why in body["left_out"].items()}
    missing = tuple(_text(name) for name in body["missing"])
    named = (_text(body[key]) for key in ("product_version", "made_at", "vendor"))
    version, made_at, vendor = named
    return Manifest(version, made_at, vendor, migrations, tuple(tables), members, left_out, missing)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("not a count")
    return value
