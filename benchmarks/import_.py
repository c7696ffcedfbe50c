"""Import of 100,000 items and 500,000 outputs with every check, on the database of DATABASE_URL (SQLite by default).
Prints JSON: rows per second and peak resident memory of the importing process, and of smaller sizes for comparison.

    python benchmarks/import_.py [--items 100000] [--systems 5] [--repeat 1]

Each size runs in a separate process with an empty data folder and an empty database, which it migrates first; on
PostgreSQL, the database named by DATABASE_URL must be empty, and keeps the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = [f"{a}{b}" for a in ("ba", "do", "ki", "lu", "me", "no", "ra", "si") for b in ("n", "r", "st", "t", "m", "l")]


def make_folder(folder: Path, items: int, systems: int, seed: int = 13) -> None:
    """Contexts of two turns, one reference, outputs of 12 words on average: typical dialogue data."""
    draw = random.Random(seed)

    def text(low: int, high: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(low, high)))

    (folder / "dataset.json").write_text(json.dumps({"name": "benchmark", "task": "dialogue", "lang": "en"}))
    with (folder / "items.jsonl").open("w") as file:
        for k in range(items):
            row = {"id": f"item-{k:07d}", "context": [text(6, 18), text(6, 18)], "source": None,
                   "references": [text(6, 18)], "group": f"g{k // 3}", "meta": {}}  # fmt: skip
            file.write(json.dumps(row) + "\n")
    with (folder / "outputs.jsonl").open("w") as file:
        for k in range(items):
            for s in range(systems):
                row = {"item": f"item-{k:07d}", "system": f"system-{s}", "text": text(6, 18), "step": None, "meta": {}}
                file.write(json.dumps(row) + "\n")


def import_once(folder: Path, again: bool) -> dict:
    """Imports in this process and measures it."""
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from evalapp.accounts.models import Project

    call_command("migrate", verbosity=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    slug = f"bench-{os.getpid()}"
    with Path(os.devnull).open("w") as nowhere:
        started, busy = time.perf_counter(), time.process_time()
        call_command("load", str(folder), "--project", slug, stdout=nowhere, stderr=nowhere)
        seconds, busy = time.perf_counter() - started, time.process_time() - busy
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        second = None
        if again:
            started = time.perf_counter()
            call_command("load", str(folder), "--project", slug, stdout=nowhere, stderr=nowhere)
            second = time.perf_counter() - started
    project = Project.objects.get(slug=slug)
    rows = project.items.count() + project.outputs.count()
    return {
        "database": connection.vendor, "rows": rows, "seconds": round(seconds, 2), "cpu_seconds": round(busy, 2),
        "rows_per_second": round(rows / seconds), "peak_mb": round(peak), "before_mb": round(before),
        "again_rows_per_second": None if second is None else round(rows / second),
        "peak_mb_with_second": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--systems", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="load the same folder a second time, too")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(import_once(options.one, options.again)))
        return
    results = []
    for items in (options.items // 10, options.items):
        with tempfile.TemporaryDirectory() as folder:
            make_folder(Path(folder), items, options.systems)
            for _ in range(options.repeat):
                with tempfile.TemporaryDirectory() as data:
                    command = [sys.executable, __file__, "--one", folder] + ["--again"] * options.again
                    environment = {**os.environ, "EVALAPP_DATA": data}
                    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                    results.append(json.loads(done.stdout.splitlines()[-1]))
    print(json.dumps({"benchmark": "import", "results": results}, indent=1))


if __name__ == "__main__":
    main()
