"""Peak memory and time of exports from a SQLite database, in every layout. Prints JSON.

    python benchmarks/exports.py [--items 10000 100000] [--formats xlsx argilla ...] [--seed 13]

The texts are short: a project has two systems, for each item two outputs with a rating each, and a comparison. Each
export runs in a process of its own. The folder that is sent to the Hugging Face hub is that of `parquet`.

`tables` is the computation of the usual leaderboards, which an export with scores runs first unless they are stored;
the exports find them stored. SQLite does not map the database into memory here, because the pages of the file would
count as memory of the process.
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
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SLUG = "exports"
SYSTEMS = ("one", "two")
TABLES = "tables"
FORMATS = (TABLES, "jsonl", "parquet", "xlsx", "wide-csv", "preferences", "mt-metrics-eval", "label-studio", "argilla")
WORDS = ["an", "old", "road", "over", "quiet", "hills", "with", "rain", "and", "light", "wind", "in", "early", "spring"]


def set_up() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
    import django

    django.setup()


def fill(n_items: int, seed: int) -> None:
    """Create the tables of the database and the rows of the project."""
    set_up()
    from django.core.management import call_command

    from annotation.models import Aspect, Comparison, Item, Output, Rating, Reference, ReferenceSet, System
    from annotation.models.data import ORIGINAL
    from evalapp.accounts.models import Project

    call_command("migrate", verbosity=0)
    draw = random.Random(seed)

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(4, 12)))

    project = Project.objects.create(slug=SLUG, name="Exports", task="dialogue")
    aspect = Aspect.objects.create(project=project, name="quality", low=1, high=5)
    systems = System.objects.bulk_create(System(project=project, name=name) for name in SYSTEMS)
    references = ReferenceSet.objects.create(project=project, name=ORIGINAL)
    for first in range(0, n_items, 1000):
        items = Item.objects.bulk_create(
            Item(project=project, key=f"i{k:06d}", context=[text()], group=f"g{k // 3}")
            for k in range(first, min(first + 1000, n_items))
        )
        Reference.objects.bulk_create(Reference(set=references, item=item, position=0, text=text()) for item in items)
        outputs = Output.objects.bulk_create(
            Output(project=project, item=item, system=system, text=text()) for item in items for system in systems
        )
        Rating.objects.bulk_create(
            Rating(project=project, output=output, aspect=aspect, rater="ann", value=draw.randint(1, 5))
            for output in outputs
        )
        Comparison.objects.bulk_create(
            Comparison(
                project=project, output_a=a, output_b=b, aspect=aspect, rater="ann", verdict=draw.choice("ab")
            )
            for a, b in zip(outputs[::2], outputs[1::2], strict=True)
        )  # fmt: skip


def export(name: str, folder: Path) -> dict[str, Any]:
    """Write one export in this process and measure it."""
    set_up()
    from django.db import connection

    from annotation.exporters.options import ExportOptions
    from annotation.pipelines.exports import write_export
    from annotation.services import hooks
    from evalapp.accounts.models import Project

    connection.ensure_connection()
    connection.cursor().execute("PRAGMA mmap_size=0")
    project = Project.objects.get(slug=SLUG)
    before = get_peak()
    started, busy = time.perf_counter(), time.process_time()
    if name == TABLES:
        hooks.prepare_export(project=project, tick=lambda done, total: None)
        files = []
    else:
        files = write_export(project, folder, ExportOptions(name), lambda done: None)
    return {
        "format": name, "seconds": round(time.perf_counter() - started, 1),
        "processor_seconds": round(time.process_time() - busy, 1), "before_mb": round(before),
        "peak_mb": round(get_peak()), "written_mb": round(sum(file["bytes"] for file in files) / 1e6, 1),
    }  # fmt: skip


def get_peak() -> float:
    """The peak resident size of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--formats", nargs="+", default=list(FORMATS), choices=FORMATS)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--fill", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        fill(options.fill, options.seed)
        return
    if options.one:
        print(json.dumps(export(options.one[0], Path(options.one[1]))))
        return
    results = []
    for n_items in options.items:
        with tempfile.TemporaryDirectory(prefix="evalapp-exports-") as data:
            environment = {**os.environ, "EVALAPP_DATA": data, "LOG_LEVEL": "WARNING"}
            environment.pop("DATABASE_URL", None)
            command = [sys.executable, __file__, "--seed", str(options.seed)]
            subprocess.run([*command, "--fill", str(n_items)], env=environment, check=True)
            for name in options.formats:
                with tempfile.TemporaryDirectory(prefix="evalapp-export-") as folder:
                    done = subprocess.run(
                        [*command, "--one", name, folder],
                        env=environment,
                        check=True,
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                results.append({"items": n_items, **json.loads(done.stdout.splitlines()[-1])})
                print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(json.dumps({"benchmark": "exports", "seed": options.seed, "results": results}, indent=1))


if __name__ == "__main__":
    main()
