"""What the scripts of this folder share: results kept per setting and seed, arguments, figures as text.

A script computes each (setting, seed) once, appends it as a line of JSON to `rows/` beside its page, and writes the
page from all lines; started again it goes on with what is missing. Texts and judgements of a set are data, which stay
out of `rows/`: what holds any is kept aside, in the output folder.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import math
import os
import platform
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scoring.ml import Dataset

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).resolve().parent
Result = dict[str, Any]
#: The module that says how long a training will take.
ESTIMATES = "estimate"
#: Of a section that has no results; how the line on what was read begins; and a section of the page before.
ABSENT = "Not computed yet."
READ = "Encoder: "
KEPT = "*Of an earlier run, whose rows were not kept."
#: What is no figure of a result, a signature with the hash of its weights among it; nor is any name with "seconds".
ASIDE_FROM_FIGURES = ("load", "code", "resumed", "signature")
#: The sentences of `code_line`.
CODE_SAID = re.compile(r"Code of the evaluators: state \w+\.|\*\*[^*]+ of these results were computed by .+? since\.")


def state_of_code(*evaluators: str, root: Path = ROOT) -> str:
    """Eight digits that change with the evaluators' code, not with comments, docstrings and what estimates times before
    a training. With names, folders of `scoring/ml/evaluators`: the code these share with the others, and their own;
    another evaluator changes nothing."""
    digest = hashlib.sha256()
    apart = root / "scoring/ml/evaluators"
    for path in sorted((root / "scoring/ml").rglob("*.py")):
        if path.stem == ESTIMATES:
            continue
        if not evaluators or apart not in path.parents or path.relative_to(apart).parts[0] in evaluators:
            said = meaning(path.read_text(encoding="utf-8"))
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + said.encode() + b"\0")
    return digest.hexdigest()[:8]


def meaning(source: str) -> str:
    """A module's syntax tree without its docstrings, its `plan` and what that imports to estimate times."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            described = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            node.body = [one for one in node.body[int(described) :] if not estimates(one)]
    return ast.dump(tree)


def estimates(node: ast.stmt) -> bool:
    """Whether a statement serves the dry check alone."""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").endswith(f".{ESTIMATES}")
    return isinstance(node, ast.FunctionDef) and node.name == "plan"


class Store:
    """Lines `{"setting", "seed", "result"}` of two files, `path` and `aside`; in the second also those without
    "result", of what was begun, and in the first those with "again", of what was computed once more to compare. A
    half-written last line counts as absent. `again`: what shall be compared so, each as SETTING@SEED."""

    def __init__(self, path: Path, aside: Path, code: str = "", again: Iterable[str] = ()) -> None:
        self.path, self.aside, self.code, self.again = path, aside, code, set(again)
        self.checks: list[Result] = []
        self.rows: dict[tuple[str, int], Result] = {}
        self.begun: set[tuple[str, int]] = set()
        self.data: set[tuple[str, int]] = set()
        for file in (path, aside):
            file.parent.mkdir(parents=True, exist_ok=True)
            for row in lines_of(file):
                key = (row["setting"], row["seed"])
                if "again" in row:
                    self.checks.append({"setting": row["setting"], "seed": row["seed"], **row["again"]})
                    continue
                self.begun.add(key)
                if "result" in row:
                    self.rows[key] = row["result"]
                    self.data |= {key} if file == aside else set()
        unknown = self.again - {f"{setting}@{seed}" for setting, seed in self.rows}
        if unknown:
            raise SystemExit(f"{path} has no result {', '.join(sorted(unknown))}: say SETTING@SEED as it has them")

    def once(self, setting: str, seed: int, work: Callable[[], Result], *, data: bool = False) -> Result:
        """The result that stands there, or that of `work`, kept with its seconds, the machine's load before it and the
        state of the code; `resumed` where an earlier run was cut off in it, whose seconds are not known. `data`: it
        holds texts or judgements of a set."""
        key = (setting, seed)
        if f"{setting}@{seed}" in self.again and key in self.rows:
            self._compare(setting, seed, work)
        if key not in self.rows:
            print(f"{setting}, seed {seed} ...", flush=True)
            resumed = {"resumed": True} if key in self.begun else {}
            append(self.aside, {"setting": setting, "seed": seed})
            load, began = round(os.getloadavg()[0], 1), time.monotonic()
            found = plain(work())
            seconds = round(time.monotonic() - began, 1)
            self.rows[key] = {**found, **resumed, "wall_seconds": seconds, "load": load, "code": self.code}
            self.data |= {key} if data else set()
            append(self.aside if data else self.path, {"setting": setting, "seed": seed, "result": self.rows[key]})
            print(f"  {seconds:.0f} s", flush=True)
        return self.rows[key]

    def lacks(self, setting: str, seed: int) -> bool:
        """Whether a result is missing, or to be compared."""
        return (setting, seed) not in self.rows or f"{setting}@{seed}" in self.again

    def _compare(self, setting: str, seed: int, work: Callable[[], Result]) -> None:
        """Compute a result once more and note how far the largest difference of its figures is."""
        print(f"{setting}, seed {seed}, again ...", flush=True)
        self.again.discard(f"{setting}@{seed}")
        began = time.monotonic()
        most = farthest(self.rows[setting, seed], plain(work()))
        seconds = round(time.monotonic() - began, 1)
        if not math.isfinite(most):
            raise SystemExit(f"{setting}, seed {seed}: other results than the row has; remove the row to keep the new")
        found = {"difference": float(f"{most:.1g}"), "wall_seconds": seconds, "code": self.code}
        self.checks.append({"setting": setting, "seed": seed, **found})
        append(self.path, {"setting": setting, "seed": seed, "again": found})
        print(f"  {seconds:.0f} s, largest difference {most:.1g}", flush=True)

    def of(self, setting: str, seeds: Iterable[int]) -> list[Result]:
        """The results that are there, in the order of the seeds."""
        return [self.rows[setting, seed] for seed in seeds if (setting, seed) in self.rows]

    def figures(self) -> list[Result]:
        """All results that hold no data."""
        return [row for key, row in self.rows.items() if key not in self.data]


def farthest(one: Any, two: Any) -> float:
    """The largest absolute difference of two results' figures; infinite where they are not of one form."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        kept = [
            {name: value for name, value in each.items() if name not in ASIDE_FROM_FIGURES and "seconds" not in name}
            for each in (one, two)
        ]
        if kept[0].keys() != kept[1].keys():
            return math.inf
        return max((farthest(value, kept[1][name]) for name, value in kept[0].items()), default=0.0)
    if isinstance(one, list) and isinstance(two, list):
        if len(one) != len(two):
            return math.inf
        return max((farthest(*pair) for pair in zip(one, two, strict=True)), default=0.0)
    if isinstance(one, int | float) and isinstance(two, int | float):
        return float(abs(one - two))
    return 0.0 if one == two else math.inf


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file; none where there is no file."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


def append(path: Path, content: Mapping[str, Any]) -> None:
    """One line more, on the disk when this returns; behind a half-written line it begins a new one."""
    ended = path.is_file() and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * ended + json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def plain(value: Any) -> Any:
    """JSON's own types, eight digits of each figure; nan and infinities become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return value


@dataclass(frozen=True)
class Given:
    """The arguments every script has."""

    data: Path
    out: Path
    seeds: tuple[int, ...]
    encoder: str | None
    quick: bool
    page_only: bool
    only: tuple[str, ...]
    items: int | None
    again: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        """Whether a part of the script shall run."""
        return not self.only or part in self.only


def arguments(
    description: str, *, seeds: Sequence[int], parts: Sequence[str] = (), without: Sequence[str] = ()
) -> Given:
    """Reads the command line; a script that makes nothing of some options says `without` which. `--quick` tries
    everything on few items and prints the page instead of writing it."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options: dict[str, dict[str, Any]] = {
        "data": {"type": Path, "default": PAGES.parents[2] / "shared/data", "help": "folder of the sets"},
        "out": {
            "type": Path, "default": Path("results"), "help": "folder of checkpoints, and of results that hold data",
        },
        "seeds": {"type": int, "nargs": "+", "default": list(seeds)},
        "encoder": {"help": "name or folder; without it the installed MiniLM"},
        "items": {
            "type": int, "help": "only about so many items, whole groups drawn by hash; the page says so",
        },
        "quick": {"action": "store_true", "default": False, "help": "few items, one epoch, no page written"},
        "page-only": {
            "action": "store_true", "default": False, "help": "write the page from the results that are there",
        },
        "only": {"nargs": "+", "choices": parts, "default": [], "help": "only these parts"},
        "again": {
            "nargs": "+", "default": [], "metavar": "SETTING@SEED",
            "help": "compute these results of the rows once more, say how far their figures are, keep that",
        },
    }  # fmt: skip
    for name, how in options.items():
        if name in without or (name == "only" and not parts):
            parser.set_defaults(**{name.replace("-", "_"): how.get("default")})
        else:
            parser.add_argument(f"--{name}", **how)
    found = parser.parse_args()
    if "data" not in without and not found.data.is_dir():
        parser.error(f"{found.data} is no folder: say with --data where the sets of human-rated text are")
    found.seeds = tuple(found.seeds[:2] if found.quick else found.seeds)
    return Given(**{
        name: tuple(value) if name in ("only", "again") else value for name, value in vars(found).items()
    })  # fmt: skip


def store_of(given: Given, name: str, *evaluators: str) -> Store:
    """The files of a script's results, of these evaluators; other encoders have files of their own, and trial runs,
    which leave nothing among the rows."""
    suffix = "" if given.encoder is None else "-" + "".join(c if c.isalnum() else "_" for c in given.encoder)
    size = "" if given.items is None else f"-{given.items}-items"
    file = f"{name}{suffix}{size}{'-quick' if given.quick else ''}"
    rows = given.out if given.quick else PAGES / "rows"
    return Store(rows / f"{file}.jsonl", given.out / f"{file}-aside.jsonl", state_of_code(*evaluators), given.again)


def work_folder(given: Given, *names: object) -> Path:
    """Where the checkpoints of one training stand, apart for each way the script may be called."""
    kind = "-quick" if given.quick else "" if given.items is None else f"-{given.items}-items"
    encoder = "" if given.encoder is None else "-" + given.encoder
    parts = "-".join("".join(c if c.isalnum() else "_" for c in str(name)) for name in (*names, encoder))
    return given.out / "work" / (parts + kind)


def forget(folder: Path) -> None:
    """Checkpoints and models of a training whose figures are known: they are large, and the seed makes them again."""
    shutil.rmtree(folder, ignore_errors=True)


def drawn(data: Dataset, given: Given, quick: int) -> Dataset:
    """All items, or about as many as were asked for (`quick` in a trial run), in whole groups."""
    wanted = quick if given.quick else given.items
    if wanted is None or wanted >= len(data.items):
        return data
    share = wanted / len(data.items)
    return data.split(seed=1, shares=(share, 1 - share))[0]


def what_was_read(given: Given) -> str:
    """Encoder, seeds, and whether all items were read, for the head of a page."""
    items = "all items" if given.items is None else f"about {given.items} items of each set, drawn by whole groups"
    encoder = given.encoder or "the installed MiniLM"
    return f"Encoder: {encoder}. Profile: recommended. Seeds: {', '.join(map(str, given.seeds))}. Data: {items}."


def publish(given: Given, name: str, lines: Sequence[str]) -> None:
    """Write the page, or print it in a trial run. What was not computed this time stays as it was, and says so."""
    text = "\n".join(lines).rstrip() + "\n"
    if given.quick:
        print(text)
        return
    page = PAGES / f"{name}.md"
    if page.is_file():
        text = with_kept(text, page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")
    print(f"written: {page}")


def with_kept(new: str, old: str) -> str:
    """The new page; sections that hold nothing yet are those of the old page, with a line on what that had read, where
    it is not what the new page has, and on its code."""
    before = dict(sections_of(old))
    read = next((line for line in old.splitlines() if line.startswith(READ)), "")
    source = ["" if read in new.splitlines() else read, *CODE_SAID.findall(old)[:1]]
    result = []
    for head, body in sections_of(new):
        kept = before.get(head, "").strip()
        if body.strip() != ABSENT or kept in ("", ABSENT):
            result.append(f"{head}\n{body}" if head else body)
            continue
        said = "" if kept.startswith(KEPT) else f"{' '.join([KEPT, *filter(None, source)])}*\n\n"
        result.append(f"{head}\n\n{said}{kept}\n")
    return "\n".join(part.rstrip("\n") + "\n" for part in result)


def sections_of(text: str) -> list[tuple[str, str]]:
    """(heading, what follows it) for every heading below the first; the beginning has none."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if line.startswith(("## ", "### ")):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return [(head, "\n".join(body)) for head, body in found]


def machine_line(results: Sequence[Result], code: str, checks: Sequence[Result] = ()) -> str:
    """Where, under what load and by which code the results were computed, with their whole time."""
    import torch
    import transformers

    hours = sum(result["wall_seconds"] for result in results) / 3600
    loads = [result["load"] for result in results]
    load = f"load {min(loads):g} to {max(loads):g} before each" if loads else "no result yet"
    took = "took at least" if any(result.get("resumed") for result in results) else "took"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} cores"
    return (
        f"Page written on {platform.machine()}, {device}, torch {torch.__version__}, transformers "
        f"{transformers.__version__}; {len(results)} results {took} {hours:.2f} h together, {load}. "
        f"{code_line(results, code)} {again_line(checks, code)}"
    ).rstrip()


def code_line(results: Sequence[Result], code: str) -> str:
    """How many results are of an older code than the page's; nothing where all are of this one."""
    earlier = sum(result.get("code") != code for result in results)
    if not earlier:
        return f"Code of the evaluators: state {code}." if results else ""
    many = "All" if earlier == len(results) else f"{earlier} of {len(results)}"
    return (
        f"**{many} of these results were computed by an earlier state of the evaluators' code** than this page's "
        f"({code}): CHANGELOG, under Changed and Fixed, says what has changed since."
    )


def again_line(checks: Sequence[Result], code: str) -> str:
    """Which results this code computed again, and how far their figures were from what stands on the page."""
    ours = [row for row in checks if row["code"] == code]
    if not ours:
        return ""
    names = "; ".join(f"{row['setting']} (seed {row['seed']})" for row in ours)
    most = max(row["difference"] for row in ours)
    said = "every figure came out the same"
    if most:
        said = f"no figure differs by more than {most:.0e}, which another processor alone can cause ([how](README.md))"
    return f"Computed again by this page's code, to see whether it still gives the same: {names}; {said}."


def number(value: float | None, digits: int = 3) -> str:
    """A figure without its leading zero, as the tables of this folder have them; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def mean_sd(values: Sequence[float | None], digits: int = 3) -> str:
    """Mean ± SD (n - 1) over seeds; one value stands alone."""
    defined = [value for value in values if value is not None]
    if not defined:
        return "-"
    if len(defined) == 1:
        return number(defined[0], digits)
    return f"{number(statistics.mean(defined), digits)} ± {number(statistics.stdev(defined), digits)}"


def mean_interval(values: Sequence[float | None], digits: int = 3) -> str:
    """Mean [95 % interval by t] over seeds or folds; without an interval when there is one value."""
    defined = [value for value in values if value is not None]
    if len(defined) < 2:
        return mean_sd(defined, digits)
    low, high = t_interval(defined)
    return f"{number(statistics.mean(defined), digits)} [{number(low, digits)}, {number(high, digits)}]"


def t_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean by Student's t."""
    n = len(values)
    reach = statistics.stdev(values) / n**0.5 * float(stats.t.ppf(0.975, n - 1))
    return statistics.mean(values) - reach, statistics.mean(values) + reach


def estimate(found: Mapping[str, Any] | None, digits: int = 3) -> str:
    """value [low, high] of `Estimate.as_dict`."""
    if found is None or found["value"] is None:
        return "-"
    if found["low"] is None or found["high"] is None:
        return number(found["value"], digits)
    return f"{number(found['value'], digits)} [{number(found['low'], digits)}, {number(found['high'], digits)}]"


def minutes(results: Sequence[Result]) -> str:
    """The median time of a result; at least so long where one was cut off and resumed."""
    if not results:
        return "-"
    sign = "≥ " if any(result.get("resumed") for result in results) else ""
    return f"{sign}{statistics.median(result['wall_seconds'] for result in results) / 60:.1f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
