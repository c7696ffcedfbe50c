"""Small files that unpack to huge sizes, one folder each, and a process that loads them all and reports its memory:
`python bombs.py FOLDER`, with EVALAPP_DATA set to a folder with an empty database."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[3]
ROW = 990_000
MEGABYTE = 1 << 20


def make_all(folder: Path) -> None:
    for name, write in BOMBS.items():
        (folder / name).mkdir(parents=True)
        write(folder / name)


def dictionary(folder: Path) -> None:
    """FAULTS D2: 150 rows with the same 10 MB string, in a file of about a kilobyte."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 150, pa.int32()), pa.array(["x" * 10_000_000]))
    keys = [f"i{k}" for k in range(150)]
    _items(folder, 150)
    pq.write_table(pa.table({"item": keys, "system": ["s"] * 150, "text": text}), folder / "outputs.parquet")


def many_allowed(folder: Path) -> None:
    """Each row is short enough; together they are 400 times the limit for a file of this size."""
    n = 40_000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int8()), pa.array(["x" * ROW]))
    pq.write_table(pa.table({"query": text, "response": ["r"] * n}), folder / "corpus.parquet")


def nested(folder: Path) -> None:
    lists = [["y" * 100_000] * 500] * 20
    pq.write_table(pa.table({"id": [f"i{k}" for k in range(20)], "references": lists}), folder / "items.parquet")


def long_string(folder: Path) -> None:
    table = pa.table({"id": ["i"], "source": ["z" * 300_000_000]})
    pq.write_table(table, folder / "items.parquet", compression="zstd", use_dictionary=False)


def huge_count(folder: Path) -> None:
    n = 100_000_000
    lists = pa.ListArray.from_arrays([0, n], pa.nulls(n, pa.string()))
    pq.write_table(pa.table({"id": ["i"], "references": lists}), folder / "items.parquet", compression="zstd")


def wide(folder: Path) -> None:
    pq.write_table(pa.table({f"c{k}": [1] for k in range(20_000)}), folder / "items.parquet")


def gzip_line(folder: Path) -> None:
    """One line of 150 MB."""
    with gzip.open(folder / "items.jsonl.gz", "wb", 1) as file:
        file.write(b'{"id": "i", "source": "')
        for _ in range(150):
            file.write(b"a" * MEGABYTE)
        file.write(b'"}\n')


def gzip_field(folder: Path) -> None:
    with gzip.open(folder / "items.csv.gz", "wb", 1) as file:
        file.write(b'id,source\ni,"')
        for _ in range(50):
            file.write(b"a\n" * (MEGABYTE // 2))


def long_rows(folder: Path) -> None:
    """A valid file: 400 rows of almost a megabyte."""
    _items(folder, 400)
    with gzip.open(folder / "outputs.jsonl.gz", "wb", 1) as file:
        for k in range(400):
            file.write(json.dumps({"item": f"i{k}", "system": "s", "text": "b" * ROW}).encode() + b"\n")


def document(folder: Path) -> None:
    """60 MB of empty lists, which would take more than a gigabyte."""
    _items(folder, 1)
    with gzip.open(folder / "leaderboard.json", "wb", 1) as file:
        file.write(b'{"boards": [' + b"[]," * (20 * MEGABYTE) + b"[]]}")


def filters(folder: Path) -> None:
    with gzip.open(folder / "filters.jsonl.gz", "wb", 1) as file:
        for k in range(300):
            file.write(json.dumps({"name": f"f{k}", "raters": ["r"], "reason": "c" * ROW}).encode() + b"\n")


def long_names(folder: Path) -> None:
    """A thousand faults that quote a name of almost a megabyte each."""
    name = "d" * (ROW // 2)
    with gzip.open(folder / "items.jsonl.gz", "wb", 1) as file:
        for k in range(800):
            file.write(f'{{"id": "i{k}", "{name}": 1, "{name}": 2}}\n'.encode())


def doubled_keys(folder: Path) -> None:
    """Each duplicate key makes the fast JSON parser leak memory."""
    name = "e" * 30_000
    with gzip.open(folder / "items.jsonl.gz", "wb", 1) as file:
        for k in range(20_000):
            file.write(f'{{"id": "i{k}", "{name}": 1, "{name}": 2}}\n'.encode())


def _items(folder: Path, n: int) -> None:
    (folder / "items.jsonl").write_text("".join(json.dumps({"id": f"i{k}"}) + "\n" for k in range(n)))


BOMBS = {
    write.__name__: write
    for write in (
        dictionary, many_allowed, nested, long_string, huge_count, wide, gzip_line, gzip_field, long_rows, document,
        filters, long_names, doubled_keys,
    )
}  # fmt: skip


def load_all(folder: Path) -> Iterator[dict[str, object]]:
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from annotation.models import Upload

    for path in sorted(folder.iterdir()):
        said = io.StringIO()
        slug = f"p-{path.name.replace('_', '-')}"
        for _ in range(2 if path.name == "long_rows" else 1):
            with contextlib.suppress(SystemExit):
                call_command("load", str(path), "--project", slug, stdout=said, stderr=said)
        yield {
            "bomb": path.name,
            "said": said.getvalue()[:5000],
            "own_mb": peak_mb(),
            "child_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
            "stored": Upload.objects.filter(project__slug=slug, state="done").count(),
        }


def peak_mb() -> int:
    """VmHWM: the peak memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


if __name__ == "__main__":
    for found in load_all(Path(sys.argv[1])):
        print(json.dumps(found), flush=True)
