"""Tables of 100,000 rows (spreadsheets: 10,000) converted by a mapping: rows per second, rows per second of processor
time (for a machine that others use as well), and peak memory of a process that reads the file, converts every row and
checks it as an import does. The peer reads the same file in the same run:
pandas for CSV, JSON lines and Parquet, openpyxl for spreadsheets; it only makes a dictionary of every row.

    python benchmarks/mapping.py [--rows 100000] [--sheet-rows 10000] [--repeat 3]

A wide table: an id, a prompt, a reference, the outputs of two systems, and a rating of each. Every row becomes five
rows of the interchange format.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORDS = [f"{a}{b}" for a in ("ba", "do", "ki", "lu", "me", "no", "ra", "si") for b in ("n", "r", "st", "t", "m", "l")]
COLUMNS = ["id", "prompt", "reference", "gpt_output", "llama_output", "gpt_fluency", "llama_fluency"]
FORMATS = ("csv", "jsonl", "json", "parquet", "xlsx")
MAPPING = {
    "shape": "wide", "columns": {"item": "id", "context": "prompt", "references": "reference"},
    "outputs": [{"pattern": "{system}_output"}], "ratings": [{"pattern": "{system}_fluency", "aspect": "fluency"}],
    "constants": {"rater": "r"},
}  # fmt: skip


def make_rows(count: int, seed: int = 13) -> Iterator[dict[str, Any]]:
    draw = random.Random(seed)
    for k in range(count):
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(6, 18))) for _ in range(4)]
        values = [f"item-{k:07d}", *texts, draw.randint(1, 5), draw.randint(1, 5)]
        yield dict(zip(COLUMNS, values, strict=True))


def write_table(path: Path, count: int) -> None:
    import pandas

    if path.suffix == ".xlsx":
        import openpyxl

        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()
        sheet.append(COLUMNS)
        for row in make_rows(count):
            sheet.append(list(row.values()))
        book.save(path)
        return
    frame = pandas.DataFrame(make_rows(count))
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=path.suffix == ".jsonl")


def convert_table(path: Path) -> int:
    sys.path.insert(0, str(ROOT))
    from annotation.mapping import ConvertedRow, convert_rows, open_table, read_mapping
    from annotation.parsers import KINDS

    made = 0
    for row in convert_rows(open_table(path), read_mapping(MAPPING)):
        assert isinstance(row, ConvertedRow), row
        KINDS[row.table].check(row.values, lambda field, message: None)
        made += 1
    return made


def read_with_peer(path: Path) -> int:
    if path.suffix == ".xlsx":
        import openpyxl

        rows = openpyxl.load_workbook(path, read_only=True, data_only=True).worksheets[0].iter_rows(values_only=True)
        header = next(rows)
        return sum(1 for row in rows if dict(zip(header, row, strict=True)))
    import pandas

    if path.suffix == ".csv":
        frame = pandas.read_csv(path)
    elif path.suffix == ".parquet":
        frame = pandas.read_parquet(path)
    else:
        frame = pandas.read_json(path, orient="records", lines=path.suffix == ".jsonl")
    return len(frame.to_dict("records"))


def measure(path: Path, who: str) -> dict[str, float]:
    """In a process of its own: seconds, seconds of processor time, and peak memory, with its children, in MB."""
    done = subprocess.run(
        [sys.executable, __file__, "--worker", who, str(path)], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def work(who: str, path: Path) -> None:
    start, cpu_start = time.perf_counter(), time.process_time()
    made = convert_table(path) if who == "ours" else read_with_peer(path)
    seconds = time.perf_counter() - start
    # The peak since this program started; ru_maxrss would include the process that started it.
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = time.process_time() - cpu_start + below.ru_utime + below.ru_stime
    print(
        json.dumps({"seconds": seconds, "cpu": cpu, "made": made, "memory_mb": round((peak + below.ru_maxrss) / 1024)})
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sheet-rows", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument("--worker", nargs=2, metavar=("WHO", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.worker[0], Path(given.worker[1]))
        return
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for ending in given.formats:
            count = given.sheet_rows if ending == "xlsx" else given.rows
            path = Path(folder) / f"table.{ending}"
            write_table(path, count)
            runs = [(measure(path, "ours"), measure(path, "peer")) for _ in range(given.repeat)]
            ratios = [peer["seconds"] / ours["seconds"] for ours, peer in runs]
            cpu_ratios = [peer["cpu"] / ours["cpu"] for ours, peer in runs]
            best = min(ours["seconds"] for ours, _peer in runs)
            results.append({
                "format": ending, "rows": count, "rows_per_second": round(count / best),
                "peer_rows_per_second": round(count / min(peer["seconds"] for _ours, peer in runs)),
                "ratio": round(statistics.median(ratios), 3), "ratios": [round(one, 3) for one in ratios],
                "rows_per_cpu_second": round(count / min(ours["cpu"] for ours, _peer in runs)),
                "peer_rows_per_cpu_second": round(count / min(peer["cpu"] for _ours, peer in runs)),
                "cpu_ratio": round(statistics.median(cpu_ratios), 3), "cpu_ratios": [round(k, 3) for k in cpu_ratios],
                "memory_mb": max(ours["memory_mb"] for ours, _peer in runs),
                "peer_memory_mb": max(peer["memory_mb"] for _ours, peer in runs),
            })  # fmt: skip
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
