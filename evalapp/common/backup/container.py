"""The file of a backup: a zip archive whose last member, `manifest.json`, describes all others. Writing never seeks, so
the target may be a pipe. Reading trusts nothing that has not been compared with the manifest."""

import hashlib
import json
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Self

from pydantic import Field, TypeAdapter

from ..errors import BadInput
from .files import CHUNK, ROOTS, is_safe
from .values import Column

FORMAT = "evalapp-backup"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
MAX_MANIFEST = 256_000_000
#: Longest line of a row, in bytes; also checked when writing, so that every written backup can be read.
MAX_LINE = 256_000_000
#: Endings of files that are compressed already.
_COMPRESSED = (".safetensors", ".npz", ".gz", ".zip", ".parquet", ".png", ".pdf")
#: Exceptions of the libraries for bytes that are not a zip archive.
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError
)  # fmt: skip
_PLAIN_FILE = (stat.S_IFREG | 0o600) << 16

Count = Annotated[int, Field(ge=0)]


class Damaged(BadInput):
    code, title = "damaged-backup", "The backup is damaged or incomplete"


@dataclass(frozen=True)
class TableEntry:
    """Expected content of a table: columns, number of rows, hash over the rows, and last automatic key."""

    name: str
    columns: tuple[Column, ...]
    rows: Count
    digest: str
    last: Count | None

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
    #: Member -> (size in bytes, SHA-256).
    members: dict[str, tuple[Count, str]]
    left_out: dict[str, str]
    missing: tuple[str, ...]

    def as_bytes(self) -> bytes:
        return json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}, indent=1).encode()

    @property
    def files(self) -> list[str]:
        return [name for name in self.members if name.startswith("files/")]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def summary(self) -> dict[str, Any]:
        counts = {"tables": len(self.tables), "rows": self.rows, "files": len(self.files)}
        return {**counts, "missing": self.missing}


# ---- writing ------------------------------------------------------------------------------------------------


class Writer:
    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=3)
        self.members: dict[str, tuple[int, str]] = {}

    @contextmanager
    def member(self, name: str) -> Iterator[Callable[[bytes], None]]:
        """Yield a function that writes bytes to a new member."""
        info = zipfile.ZipInfo(name)
        info.external_attr = _PLAIN_FILE
        info.compress_type = zipfile.ZIP_STORED if name.endswith(_COMPRESSED) else zipfile.ZIP_DEFLATED
        info._compresslevel = 3
        digest, size = hashlib.sha256(), 0
        with self._zip.open(info, "w", force_zip64=True) as member:

            def write(data: bytes) -> None:
                nonlocal size
                member.write(data)
                digest.update(data)
                size += len(data)

            yield write
        self.members[name] = (size, digest.hexdigest())

    def finish(self, manifest: Manifest) -> str:
        """Write the manifest as the last member. Returns its hash, which identifies the whole file."""
        data = manifest.as_bytes()
        info = zipfile.ZipInfo(MANIFEST)
        info.external_attr, info.compress_type = _PLAIN_FILE, zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data)
        self._zip.close()
        return hashlib.sha256(data).hexdigest()


# ---- reading ------------------------------------------------------------------------------------------------


class Reader:
    """An open backup. The constructor reads the list of members and the manifest; `check` reads everything."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error
        except _UNREADABLE as error:
            raise self.damaged("the file is truncated or not a backup") from error
        try:
            self._infos = self._read_members(path.stat().st_size)
            data = b"".join(self._unpack(MANIFEST, self._infos[MANIFEST].file_size))
            self.fingerprint = hashlib.sha256(data).hexdigest()
            self.manifest = self._parse_manifest(data)
            self._compare_members()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def damaged(self, why: str) -> Damaged:
        return Damaged(f"{self.path}: {why}. Use another backup; nothing was changed.")

    def check(self, progress: Callable[[str], None]) -> None:
        """Read every byte and compare it with the manifest."""
        for name in self.manifest.members:
            progress(name)
            for _ in self.read_chunks(name):
                pass
        for table in self.manifest.tables:
            if sum(1 for _ in self.read_rows(table)) != table.rows:
                raise self.damaged(f"{table.member} does not have {table.rows:,} rows")

    def read_chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a member; raise `Damaged` after the last if they differ from the manifest."""
        size, expected = self.manifest.members[name]
        digest = hashlib.sha256()
        for chunk in self._unpack(name, size):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != expected:
            raise self.damaged(f"{name} was changed")

    def read_rows(self, table: TableEntry) -> Iterator[list[Any]]:
        for line in self._read_lines(table.member):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self.damaged(f"a row of {table.member} cannot be read") from error
            is_row = isinstance(row, list) and len(row) == len(table.columns)
            if not is_row or any(isinstance(value, list | dict) for value in row):
                raise self.damaged(f"a line of {table.member} is not a row")
            yield row

    def _read_lines(self, name: str) -> Iterator[bytes]:
        rest: list[bytes] = []
        length = 0
        for chunk in self.read_chunks(name):
            *lines, last = chunk.split(b"\n")
            if lines:
                yield b"".join([*rest, lines[0]])
                yield from lines[1:]
                rest, length = [], 0
            rest.append(last)
            length += len(last)
            if length > MAX_LINE:
                raise self.damaged(f"{name} has a row of more than {MAX_LINE // 1_000_000} MB")
        if length:
            raise self.damaged(f"{name} ends within a row")

    def _unpack(self, name: str, size: int) -> Iterator[bytes]:
        """Yield at most `size` bytes, however large the unpacked member is."""
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

    def _read_members(self, size: int) -> dict[str, zipfile.ZipInfo]:
        infos: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            name = f"{info.filename[:200]!r}"
            if info.is_dir() or stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                raise self.damaged(f"{name} is a folder or a link")
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.damaged(f"{name} has an unknown compression")
            if info.filename in infos:
                raise self.damaged(f"it contains {name} twice")
            infos[info.filename] = info
        if sum(info.compress_size for info in infos.values()) > size:
            raise self.damaged("its members overlap")
        if MANIFEST not in infos:
            raise self.damaged("it has no manifest")
        if infos[MANIFEST].file_size > MAX_MANIFEST:
            raise self.damaged("its manifest is too long")
        return infos

    def _parse_manifest(self, data: bytes) -> Manifest:
        try:
            body = json.loads(data)
            if body["format"] != FORMAT:
                raise self.damaged("it is not a backup of this product")
            if body["format_version"] != FORMAT_VERSION:
                version = str(body["product_version"])[:50]
                text = f"{self.path} was written in another format, by version {version}. Restore it with that version."
                raise BadInput(text)
            return TypeAdapter(Manifest).validate_json(data, strict=True)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self.damaged("its manifest cannot be read") from error

    def _compare_members(self) -> None:
        """Check that the members are those of the manifest and that their names have a place in an installation."""
        expected = {*self.manifest.members, MANIFEST}
        if (odd := sorted(expected ^ set(self._infos))) or MANIFEST in self.manifest.members:
            raise self.damaged(f"{(odd or [MANIFEST])[0][:200]!r} is missing or not in the manifest")
        tables = {table.member for table in self.manifest.tables}
        for name in self.manifest.members:
            kind, _, rest = name.partition("/")
            root, _, path = rest.partition("/")
            if name not in tables and not (kind == "files" and root in ROOTS and is_safe(path)):
                raise self.damaged(f"{name[:200]!r} has no place in a backup")
        if len(tables) != len(self.manifest.tables) or not tables <= set(self.manifest.members):
            raise self.damaged("the tables of its manifest are not those that it contains")
