"""The command `score -i FILE`: arguments, exit codes, output. No Django here, so that it starts at once.

python -m scoring.ml.score_files.command -i sysA.txt sysB.txt -r ref.txt -m bleu chrf --paired bootstrap
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from scoring.ml.errors import ScoringError

#: Exit statuses: done; wrong usage, files or names; stdout was closed (128 plus the number of SIGPIPE).
GOOD, BAD_INPUT, NO_READER = 0, 2, 141
DEFAULT_METRICS = ("bleu-corpus", "chrf")
TESTS = ("bootstrap", "permutation")
#: Values of all resamples are held in memory.
MOST_RESAMPLES = 1_000_000
DESCRIPTION = (
    "Score text files with a line per segment, without project or database. Exit code 0: done; 2: wrong usage, files "
    "or names."
)


def add_file_arguments(parser: Any) -> None:
    """Add the arguments for files to a `parser` or a group of arguments."""
    parser.add_argument(
        "-i", "--input", nargs="+", metavar="FILE", help="outputs: a file per system, a line per segment; - is stdin"
    )
    parser.add_argument(
        "-r", "--ref", nargs="+", default=[], metavar="FILE", help="references: a file per reference set"
    )
    parser.add_argument("-s", "--source", metavar="FILE", help="sources, a line per segment")
    parser.add_argument("-c", "--context", metavar="FILE", help="the turns before each segment")
    parser.add_argument(
        "-m", "--metrics", nargs="+", default=list(DEFAULT_METRICS), metavar="METRIC",
        help="names, aliases (bleu, BERTScore) or folders of saved evaluators, options behind a colon: "
        f"chrf:word_order=2 (default: {' '.join(DEFAULT_METRICS)})",
    )  # fmt: skip
    parser.add_argument("--paired", choices=TESTS, help="test all pairs of systems on the same segments")
    parser.add_argument(
        "--groups", metavar="FILE",
        help="the document or dialogue of each segment, an id per line: tests and intervals draw whole groups",
    )  # fmt: skip
    parser.add_argument("--intervals", action="store_true", help="bootstrap intervals without tests")
    parser.add_argument(
        "--resamples", type=read_resamples, default=0, metavar="N",
        help="resamples or exchanges (default: what Holm's adjustment over all pairs needs, at least 1,000)",
    )  # fmt: skip
    parser.add_argument("--seed", type=read_seed, default=13, help="seed of the draws (default: 13)")
    parser.add_argument("--tabs", action="store_true", help="tabs separate references, and turns of a context")
    parser.add_argument("--encoding", default="utf-8", help="encoding of all files (default: utf-8)")
    parser.add_argument("--digits", type=int, choices=range(13), metavar="N", help="digits behind the point")
    parser.add_argument("--segments", metavar="FILE", help="also write the scores of all segments as a TSV file")
    parser.add_argument("--latex", action="store_true", help="print a LaTeX table (booktabs)")


def read_resamples(text: str) -> int:
    """Return the number in the `text` of an argument; raises `argparse.ArgumentTypeError`."""
    if not text.isdecimal() or not 1 <= int(text) <= MOST_RESAMPLES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_RESAMPLES:,}")
    return int(text)


def read_seed(text: str) -> int:
    """Return the seed in the `text` of an argument; raises `argparse.ArgumentTypeError`."""
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return int(text)


def main(arguments: Sequence[str] | None = None, prog: str = "evalapp score") -> int:
    """Run the command with these `arguments` (default: those of the process) and return the exit status; `prog` is its
    name in messages."""
    parser = argparse.ArgumentParser(prog=prog, description=DESCRIPTION, allow_abbrev=False)
    add_file_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout and nothing else")
    options = vars(parser.parse_args(arguments))
    if not options["input"]:
        parser.error("-i FILE is needed: the outputs of a system (or --project SLUG, which scores a project)")
    try:
        return score_files(options, sys.stdout, sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def score_files(options: dict[str, Any], out: TextIO, err: TextIO) -> int:
    """Score with parsed `options`, print the result to `out` and remarks to `err`, and return the exit status."""
    try:
        report = _compute(options)
        if options["segments"]:
            _write_segments(report, options["segments"])
    except ScoringError as error:
        if options["json"]:
            out.write(_describe_error(error) + "\n")
        else:
            err.write(f"{error}\n")
        return BAD_INPUT
    from scoring.ml.score_files.rendering import as_json, as_latex, as_text

    if options["json"]:
        out.write(json.dumps(as_json(report), ensure_ascii=False) + "\n")
    else:
        out.write(as_latex(report) if options["latex"] else as_text(report))
        out.flush()
        for note in report.list_notes():
            err.write(f"{note}\n")
    out.flush()
    return GOOD


def _describe_error(error: ScoringError) -> str:
    """The error as the commands of an installation write it in JSON."""
    from scoring.ml.score_files.reading import FileFault

    faults: list[dict[str, Any]] = []
    if isinstance(error, FileFault):
        place = {"file": error.file} if error.line is None else {"file": error.file, "line": error.line}
        faults.append({"message": error.message, **place})
    return json.dumps({"error": "bad-input", "detail": str(error), "errors": faults}, ensure_ascii=False)


def _compute(options: dict[str, Any]) -> Any:
    from evalapp.stats.ranking.paired_systems import SystemTests
    from scoring.ml.score_files import compute, reading
    from scoring.ml.score_files.rendering import Report

    if options["latex"] and options["json"]:
        raise ScoringError("--latex and --json exclude each other: choose one")
    if options["paired"] and len(options["input"]) < 2:
        raise ScoringError("--paired compares systems: name at least two files with -i, or use --intervals")
    if options["segments"]:
        _check_not_read(options)
    if options["groups"] and not (options["paired"] or options["intervals"]):
        raise ScoringError("--groups changes tests and intervals only: add --paired TEST or --intervals")
    metrics = [(text, compute.load_metric(text)) for text in dict.fromkeys(options["metrics"])]
    inputs = reading.read_inputs(
        options["input"], options["ref"], options["source"], options["context"], options["groups"],
        encoding=options["encoding"], tabs=options["tabs"],
    )  # fmt: skip
    for text, metric in metrics:
        compute.check_inputs(metric, text, inputs)
    tests = None
    if options["paired"] or options["intervals"]:
        tests = SystemTests(options["paired"], k=options["resamples"], seed=options["seed"])
    return Report(
        results=tuple(
            compute.score_systems(label, metric, inputs, tests=tests, with_segments=bool(options["segments"]))
            for label, metric in metrics
        ),
        n_segments=inputs.n_segments,
        n_references=max(map(len, inputs.references or [()])),
        n_groups=None if inputs.groups is None else len(set(inputs.groups)),
        tests=tests,
        notes=inputs.notes,
        digits=options["digits"],
    )


def _check_not_read(options: dict[str, Any]) -> None:
    """Raise `ScoringError` if the scores would replace a file that is read."""
    read = [*options["input"], *options["ref"], options["source"], options["context"], options["groups"]]
    target = Path(options["segments"]).resolve()
    if any(path is not None and Path(path).resolve() == target for path in read):
        raise ScoringError(f"--segments {options['segments']}: is one of the files that are read; name another file")


def _write_segments(report: Any, path: str) -> None:
    from scoring.ml.score_files.rendering import segment_lines

    try:
        with Path(path).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in segment_lines(report))
    except OSError as error:
        raise ScoringError(f"--segments {path}: cannot be written: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
