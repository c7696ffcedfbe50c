"""`evalapp score` on text files against the programs sacrebleu and bert-score on the same files in the same run.

Whole processes are timed, from start to printed result. Clock time is reported with CPU time, which other load disturbs
less. bert-score runs on the installed encoder and its layer, at several batch sizes; its fastest counts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _texts import OWN, machine, spread

ROOT = Path(__file__).resolve().parent.parent
OURS = [sys.executable, "-m", "evalapp", "score"]


class Run(NamedTuple):
    """Clock and CPU seconds of a process, and its score."""

    clock: float
    processor: float
    score: float


def write_files(folder: Path, n: int, seed: int) -> None:
    """Write references of two recombined sentences each, and outputs in which words are replaced."""
    rng = random.Random(seed)
    words = sorted({word for text in OWN for word in text.split()})
    # Rare words, so that the vocabulary grows with the lines as in real texts.
    rare = [f"{word.strip('.,!?;')}{number}" for word in words[:100] for number in range(300)]

    def draw() -> list[str]:
        one, two = rng.choice(OWN).split(), rng.choice(OWN).split()
        both = one[: rng.randint(1, len(one))] + two[rng.randint(0, len(two) - 1) :]
        return [rare[min(int(rng.paretovariate(0.6)), len(rare) - 1)] if rng.random() < 0.1 else w for w in both]

    with (folder / "ref.txt").open("w") as refs, (folder / "system.txt").open("w") as outputs:
        for _ in range(n):
            ref = draw() + draw()
            refs.write(" ".join(ref) + "\n")
            outputs.write(" ".join(w if rng.random() < 0.7 else rng.choice(words) for w in ref) + "\n")


def time_program(command: list[str], folder: Path, score: str) -> Run:
    """Run a program and read its score by the pattern `score`."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    match = re.search(score, done.stdout)
    assert match, done.stdout
    return Run(clock, processor, float(match[1]))


def compare(ours: list[str], peers: dict[str, list[str]], patterns: tuple[str, str], folder: Path, runs: int) -> dict:
    """Time a command of ours and those of a peer in turn; the fastest of the peer's counts."""
    own: list[Run] = []
    theirs: dict[str, list[Run]] = {name: [] for name in peers}
    for _ in range(runs):
        own.append(time_program([*OURS, "-i", "system.txt", "-r", "ref.txt", "--json", *ours], folder, patterns[0]))
        for name, command in peers.items():
            theirs[name].append(time_program(command, folder, patterns[1]))
    fastest = min(theirs, key=lambda name: min(run.clock for run in theirs[name]))
    pairs = list(zip(theirs[fastest], own, strict=True))
    return {
        "seconds": spread([run.clock for run in own]),
        "peer_seconds": {name: spread([run.clock for run in rows]) for name, rows in theirs.items()},
        "fastest": fastest,
        "times_faster": spread([peer.clock / run.clock for peer, run in pairs]),
        "times_faster_processor": spread([peer.processor / run.processor for peer, run in pairs]),
        "difference": max(abs(peer.score - run.score) for peer, run in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000, help="lines for sacrebleu; 0: few lines only")
    parser.add_argument("--few-lines", type=int, default=2_000, help="lines for bert-score; 0 leaves it out")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--threads", type=int, help="threads of all programs; without it all cores")
    given = parser.parse_args()
    if given.threads:
        os.environ["OMP_NUM_THREADS"] = str(given.threads)
    report = {"benchmark": "score_files", "machine": machine(), "seed": given.seed, "runs": given.runs}
    report["threads"] = given.threads
    score = r'"score": ([-\d.e]+)'
    sacrebleu = [sys.executable, "-m", "sacrebleu", "ref.txt", "-i", "system.txt", "-w", "10", "-m"]
    for lines in filter(None, (100, given.lines)):
        with tempfile.TemporaryDirectory() as name:
            write_files(Path(name), lines, given.seed)
            for metric in ("bleu", "chrf"):
                report[f"{metric} {lines}"] = compare(
                    ["-m", metric], {"sacrebleu": [*sacrebleu, metric]}, (score, score), Path(name), given.runs
                )
    if given.few_lines:
        from scoring.ml import load

        bertscore: Any = load("bertscore")
        peer = [
            str(Path(sys.executable).with_name("bert-score")), "-r", "ref.txt", "-c", "system.txt", "-m",
            str(bertscore.source.folder), "-l", str(bertscore.layer), "-b",
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as name:
            write_files(Path(name), given.few_lines, given.seed)
            report[f"bertscore {given.few_lines}"] = compare(
                ["-m", "bertscore"],
                {f"batch size {size}": [*peer, str(size)] for size in given.batch_sizes},
                (score, r"F1: ([\d.]+)"), Path(name), given.runs,
            )  # fmt: skip
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
