"""The process that reads a Parquet file for `parquet.read_parquet`: the file on stdin, limits as arguments, lines of
JSON on stdout. `[number, row]` is a row, `[number, row, wrong]` one of any layout with cells that cannot be read (each
with the path to it and a message), `[number, field, message, keys]` a faulty row, `[number, message, "stop"]` the
reason why reading stopped. For `parquet.read_columns` the only line is `[0, names of columns]`.

Text columns are read as dictionaries, so that repeated values are in memory once, and the size of each row is counted
before it is created. Columns with much text in a row group are read plainly, because their dictionary would hold all of
it."""

import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from annotation.parsers.faults import Limits, StopReading
from annotation.parsers.limited_process import print_lines
from annotation.parsers.rows import lower_known
from annotation.parsers.strict_json import KEYS, NUL, decode_object, has_nul, identify
from annotation.parsers.writer import COLUMNS
from evalapp.translation import gettext as _

#: The maximum number of rows and bytes in memory.
_ROWS, _BYTES = 1000, 8 << 20
#: Limits on columns and parts of the file's metadata, because the library allocates memory for each before reading.
_MOST_COLUMNS, _MOST_PARTS, _LONGEST_NAME = 1000, 200_000, 1 << 20
_BOUNDS = {"thrift_container_size_limit": _MOST_PARTS, "thrift_string_size_limit": _LONGEST_NAME << 5}
_BUFFER = 1 << 16
#: The most bytes of a column in a row group, uncompressed, that is read as a dictionary.
_MOST_DICTIONARY = 32 << 20
#: The maximum length of an identifying value.
_LONGEST_KEY = 1000
#: Columns with objects or lists of objects, as JSON text.
OBJECTS = frozenset({"meta", "written", "candidate_source", "options", "systems", "judge", "tokens", "told"})
_PLAIN = (str, int, float, bool)
#: Cells that cannot be read: the path of names and positions, and why.
Wrong = list[list[Any]]


class _Sized:
    """A batch of rows with the bytes of each cell."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.cells = {name: _sizes(batch.column(k)) for k, name in enumerate(batch.schema.names)}
        self.rows = np.sum(list(self.cells.values()), axis=0) if self.cells else np.zeros(len(batch), np.int64)

    def parts(self, longest: int) -> Iterator[tuple[int, int, bool]]:
        """(first, end, whether it is a single row longer than `longest`), in order; other parts have at most
        `_BYTES`."""
        first, size_so_far = 0, 0
        for k, size in enumerate(self.rows.tolist()):
            if size <= longest and size_so_far + size <= _BYTES:
                size_so_far += size
                continue
            if k > first:
                yield first, k, False
            first, size_so_far = k, size
            if size > longest:
                yield k, k + 1, True
                first, size_so_far = k + 1, 0
        if first < len(self.rows):
            yield first, len(self.rows), False

    def cut(self, first: int, end: int) -> list[dict[str, Any]]:
        columns = [column.slice(first, end - first) for column in self.batch.columns]
        names, lists = self.batch.schema.names, [_list_values(column) for column in columns]
        return [dict(zip(names, cells, strict=True)) for cells in zip(*lists, strict=True)]

    def keys(self, k: int) -> dict[str, Any]:
        """The identifying values of a row."""
        short = [name for name in KEYS if name in self.cells and self.cells[name][k] <= _LONGEST_KEY]
        return identify({name: self.batch.column(name)[k].as_py() for name in short})


def _list_values(array: pa.Array) -> list[Any]:
    """The values of a column. NumPy makes texts, and numbers without nulls, several times as fast as `to_pylist`."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    if is_text or (not array.null_count and (is_number or pa.types.is_boolean(kind))):
        with suppress(pa.ArrowException):  # `to_pylist` says which byte is not UTF-8
            return list(array.to_numpy(zero_copy_only=False).tolist())
    return list(array.to_pylist())


def _sizes(array: pa.Array) -> np.ndarray[Any, Any]:
    """Bytes of each value, decoded."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _sizes(array.storage)
    if pa.types.is_dictionary(kind):
        inner = _sizes(array.dictionary)
        places = pc.fill_null(array.indices, len(inner)).to_numpy(zero_copy_only=False)
        return np.append(inner, 0)[places]
    if pa.types.is_struct(kind):
        return np.sum([_sizes(array.field(k)) for k in range(kind.num_fields)], axis=0) + np.zeros(len(array), np.int64)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        sums = np.append(0, np.cumsum(_sizes(array.values) + 8))
        places = array.offsets.to_numpy(zero_copy_only=False)
        return sums[places[1:]] - sums[places[:-1]]
    if pa.types.is_fixed_size_list(kind):
        inner = _sizes(array.flatten()) if not array.null_count else np.zeros(0, np.int64)
        if len(inner) == len(array) * kind.list_size:
            return inner.reshape(len(array), kind.list_size).sum(axis=1)
    elif pa.types.is_primitive(kind) or pa.types.is_null(kind) or pa.types.is_decimal(kind):
        return np.full(len(array), 8, np.int64)
    else:
        lengths = pc.fill_null(pc.binary_length(array), 0)
        return lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    raise pa.ArrowNotImplementedError(f"columns of the type {kind} are not read")


def _open_file(path: Any) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(path, **_BOUNDS)
    except (pa.ArrowException, OSError) as error:
        raise StopReading(_("The file ends in .parquet and is not Parquet, or is damaged. Write it again.")) from error
    if file.metadata.num_columns > _MOST_COLUMNS:
        raise StopReading(
            _(
                "The file has more than %(most)s columns. Leave out those that are not needed.",
                most=f"{_MOST_COLUMNS:,}",
            )
        )
    return file


def read_columns(path: Any) -> Iterator[list[Any]]:
    """The line with the names of the columns; those of the parts of objects instead of the objects."""
    yield [0, [name for field in _open_file(path).schema_arrow for name in _name_parts(field.name, field.type)]]


def _name_parts(name: str, kind: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(kind) and kind.num_fields:
        for k in range(kind.num_fields):
            part = kind.field(k)
            yield from _name_parts(f"{name}.{part.name}", part.type)
    else:
        yield name


def read_all(path: Any, limits: Limits, table: str = "", is_lenient: bool = False) -> Iterator[list[Any]]:
    """The lines to write, see above. `is_lenient`: see `parquet.read_parquet`."""
    described = _open_file(path).metadata
    if described.num_rows > limits.rows:
        raise StopReading(limits.describe_rows())
    groups = [described.row_group(k) for k in range(described.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > limits.total_bytes:
        raise StopReading(limits.describe_size())
    texts = [
        column.path
        for k, column in enumerate(described.schema.column(k) for k in range(described.num_columns))
        if column.physical_type == "BYTE_ARRAY"
        and all(group.column(k).total_uncompressed_size <= _MOST_DICTIONARY for group in groups)
    ]
    widest = max((group.total_byte_size / group.num_rows for group in groups if group.num_rows > 0), default=1)
    file = pq.ParquetFile(path, read_dictionary=texts, buffer_size=_BUFFER, pre_buffer=False, **_BOUNDS)
    objects = OBJECTS & frozenset(COLUMNS.get(table, OBJECTS))
    number = total = 0
    try:
        for batch in file.iter_batches(max(1, min(_ROWS, int(_BYTES / max(widest, 1)))), use_threads=False):
            names = lower_known(batch.schema.names, table)
            if doubled := sorted({name for name in names if names.count(name) > 1}):
                raise StopReading(_("The file has two columns “%(column)s”. Rename or remove one.", column=doubled[0]))
            sized = _Sized(batch.rename_columns(names))
            for first, end, is_long in sized.parts(limits.row_bytes):
                if is_long:
                    yield [number + end, "", too_long(int(sized.rows[first]), limits), sized.keys(first)]
                    continue
                total += int(sized.rows[first:end].sum())
                if total > limits.total_bytes:
                    raise StopReading(limits.describe_size(), number + first + 1)
                for k, cells in enumerate(sized.cut(first, end), number + first + 1):
                    yield _check_lenient(cells, k) if is_lenient else check_cells(cells, k, objects)
            number += len(batch)
            if number > limits.rows:
                raise StopReading(limits.describe_rows())
    except MemoryError as error:
        raise StopReading(
            _(
                "The rows after row %(number)s unpack to more than %(memory)d MB at once. Write the file without "
                "dictionaries and in smaller row groups, as pandas does with "
                "to_parquet(path, use_dictionary=False, row_group_size=10000), or as JSONL.",
                number=f"{number:,}",
                memory=memory_for(limits) >> 20,
            ),
            number + 1,
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise StopReading(_("The Parquet file is damaged (%(error)s). Write it again.", error=error), number) from error
    except UnicodeDecodeError as error:
        raise StopReading(_("A text is not UTF-8. Write the file again."), number + 1) from error


def too_long(size: int, limits: Limits) -> str:
    return _(
        "The row is %(size)s bytes long; the maximum is %(limit)s. Shorten it, or raise MAX_ROW_KB.",
        size=f"{size:,}",
        limit=f"{limits.row_bytes:,}",
    )


def check_cells(cells: dict[str, Any], number: int, objects: frozenset[str] = OBJECTS) -> list[Any]:
    """The row, or its error."""
    row: dict[str, Any] = {}
    for name, value in cells.items():
        if value is None:
            continue
        fault = ""
        if isinstance(value, Decimal):  # databases write 3.5 like this
            value = int(value) if value == value.to_integral_value() else float(value)
        if type(value) is str and (name in objects or (name == "system_b" and value.startswith('{"reference"'))):
            try:
                value = decode_object(value.encode())
            except ValueError as error:
                fault = _("%(name)s must contain JSON: %(error)s.", name=name, error=error)
        if type(value) is str:
            fault = fault or (NUL if "\0" in value else "")
        elif not _is_finite(value):
            fault = _("%(name)s is NaN or infinite. Write null, or leave the row out.", name=name)
        elif not _is_plain(value):
            fault = _(
                "%(name)s is %(type)s; write text, a number, true or false, or a list.",
                name=name,
                type=type(value).__name__,
            )
        elif has_nul(value):
            fault = NUL
        if fault:
            return [number, *(("", _(NUL)) if fault is NUL else (name, fault)), identify(cells)]
        row[name] = value
    return [number, row]


def _check_lenient(cells: dict[str, Any], number: int) -> list[Any]:
    """The row of a file of any layout, or its error. Most cells are texts and numbers, which stay as they are."""
    row: dict[str, Any] = {}
    for name, value in cells.items():
        kind = type(value)
        if (kind is str and "\0" not in value) or kind is int or (kind is float and math.isfinite(value)):
            row[name] = value
        elif value is not None:
            wrong: Wrong = []
            checked = check_cells(simplify(cells, (), wrong), number, frozenset())
            return [*checked, wrong] if wrong and len(checked) == 2 else checked
    return [number, row]


def simplify(value: Any, path: tuple[str | int, ...], wrong: Wrong) -> Any:
    """The value as JSON has it: times as text, without NaN; bytes as the text that they are in UTF-8, as older programs
    write texts, or in `wrong`. `path`: the names and positions that lead to the value."""
    if isinstance(value, list) and value and all(isinstance(part, tuple) and len(part) == 2 for part in value):
        value = dict(value)  # a map
    if isinstance(value, dict):
        return {str(name): simplify(part, (*path, str(name)), wrong) for name, part in value.items()}
    if isinstance(value, list):
        return [simplify(part, (*path, k), wrong) for k, part in enumerate(value)]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return _read_bytes(value, path, wrong)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if value is None or isinstance(value, _PLAIN) else str(value)


def _read_bytes(value: bytes, path: tuple[str | int, ...], wrong: Wrong) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return text
    wrong.append([list(path), _("It has bytes that are no text in UTF-8. Write the column as texts or numbers.")])
    return _("(%(n)s bytes)", n=f"{len(value):,}")


def _is_finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_finite(part) for part in value)
    return not isinstance(value, float) or math.isfinite(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(part) for part in value)
    if isinstance(value, dict):
        return all(_is_plain(part) for part in value.values())
    return value is None or isinstance(value, _PLAIN)


def memory_for(limits: Limits) -> int:
    """The number of bytes that may be allocated in addition to the loaded libraries."""
    return max(320 << 20, 8 * limits.row_bytes)


def main() -> int:
    limits, table, mode = Limits(*map(int, sys.argv[1:4])), sys.argv[4], sys.argv[5]
    file = open(0, "rb", closefd=False)  # noqa: SIM115
    lines = read_columns(file) if mode == "columns" else read_all(file, limits, table, is_lenient=mode == "lenient")
    return print_lines(lines, memory_for(limits))


if __name__ == "__main__":
    sys.exit(main())
