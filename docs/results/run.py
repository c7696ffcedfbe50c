"""Compute a study's rows, its tables and its page.

python docs/results/run.py STUDY --data FOLDER_OF_SETS --out FOLDER
python docs/results/run.py --pages
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1])]

from page import save_pages  # noqa: E402
from study import Run, Study, read_studies, read_study  # noqa: E402


def read_arguments() -> argparse.Namespace:
    names = sorted(path.stem for path in (FOLDER / "studies").glob("*.toml"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", choices=names)
    parser.add_argument("--data", type=Path, default=FOLDER.parents[2] / "shared/data", help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path("results"), help="checkpoints, and results that hold data")
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of the study's")
    parser.add_argument("--encoder", help="name or folder; without it the installed MiniLM")
    parser.add_argument("--items", type=int, help="about so many items, whole groups drawn by hash; 0 for all")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="compute only these parts")
    parser.add_argument("--again", nargs="+", default=[], metavar="SETTING@SEED", help="repeat results and compare")
    parser.add_argument("--tables", action="store_true", help="compute no rows, only the tables and the page")
    parser.add_argument("--quick", action="store_true", help="try everything on few items; write no rows or pages")
    parser.add_argument("--pages", action="store_true", help="write all pages from the stored tables")
    options = parser.parse_args()
    if (options.study is None) != options.pages:
        parser.error("name a study, or write all pages with --pages")
    return options


def make_run(study: Study, options: argparse.Namespace) -> Run:
    unknown = set(options.only) - set(study.parts)
    if unknown:
        raise SystemExit(f"{study.name} has no part {', '.join(sorted(unknown))}; it has {', '.join(study.parts)}")
    seeds = tuple(options.seeds or study.seeds)[: 2 if options.quick else None]
    items = study.items if options.items is None else options.items or None
    return Run(
        study, options.data, options.out, seeds, options.encoder, items, options.quick, tuple(options.only),
        tuple(options.again),
    )  # fmt: skip


def merge_tables(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The new rows in place of the old ones of the same table and label; other old rows stay."""

    def key(one: Mapping[str, Any]) -> tuple[Any, ...]:
        label = None if one["table"] == "facts" else list(one.values())[1]
        return one["table"], label

    made = {key(one): one for one in new}
    known = {key(one) for one in old}
    kept = [made.get(key(one), one) for one in old]
    return [*kept, *(one for place, one in made.items() if place not in known)]


def main() -> None:
    options = read_arguments()
    if options.pages:
        save_pages(read_studies())
        return
    study = read_study(options.study)
    if not options.data.is_dir():
        raise SystemExit(f"{options.data} is no folder: name the folder of the data sets with --data")
    run, experiment = make_run(study, options), importlib.import_module(f"experiments.{study.experiment}")
    if not options.tables:
        experiment.compute(run)
    tables = merge_tables(study.tables, list(experiment.tabulate(run)))
    lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in tables)
    if run.quick:
        print(lines)
        return
    (FOLDER / "tables" / f"{study.name}.jsonl").write_text(lines, encoding="utf-8")
    save_pages([study])


if __name__ == "__main__":
    main()
