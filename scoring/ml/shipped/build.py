"""Builds the evaluator `maude-base`: MAUDE's network over frozen vectors, trained on the Self-dialogue Corpus.

    python -m scoring.ml.shipped.build --data FOLDER_OF_THE_CORPUS --rated FOLDER_OF_RATED_SETS --work FOLDER
        --out scoring/ml/shipped/maude-base

`--data` is a folder in the interchange format with `dialogues.jsonl` (or `.jsonl.gz`), a row per dialogue with `id` and
`turns`. `--work` keeps vectors and checkpoints; the same command continues an interrupted run from them. `--out` is
replaced by the finished folder; the printed hash of its weights belongs in `SHIPPED`. With `--rated`, a folder of the
sets in `measure.RATED`, the card says how the evaluator agrees with people on them; they choose nothing.

The same data, seed and library versions give the same weights on the same kind of machine. On one core it takes about
30 minutes, 20 for encoding.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scoring.ml.artefact import weights_hash
from scoring.ml.dataset import read_dataset
from scoring.ml.shipped.measure import measure_agreement
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.fit import fit
from scoring.ml.training.job import TrainingProgress
from scoring.ml.types import Dataset, Record

SEED = 13
NAME = "maude-base"
SOURCE = (
    "Corpus: Fainberg et al. 2018, Talking to myself: self-dialogues as data for conversational agents "
    "(github.com/jfainberg/self_dialogue_corpus), BSD 3-Clause, Copyright (c) 2017; licence text in "
    "scoring/ml/shipped/LICENCE.self-dialogue-corpus. Each dialogue was written by one person in both roles, on films, "
    "music or sport."
)
#: Dialogues that are drawn, and the share that chooses the weights: one core encodes as many in 20 minutes.
DIALOGUES, DEV_SHARE = 7000, 0.1
OPTIONS: Mapping[str, Any] = {"train_device": "cpu"}
#: The file's scores are checked on these texts, which are nobody's data.
FIXTURES = (
    Record("I would bring a tent and a warm sleeping bag.", context=("What do you take along to the mountains?",)),
    Record("My sister plays the trumpet.", context=("What do you take along to the mountains?",)),
    Record("tent warm a would bag bring and sleeping", context=("What do you take along to the mountains?",)),
    Record("Yes, twice, and I cried both times.", context=("Have you seen the film about the lost dog?",)),
    Record("I don't know.", context=("Have you seen the film about the lost dog?",)),
    Record("The keeper was the best player.", context=("Did you watch the match?", "I did, it was so close!")),
    Record("A pinch of salt is enough.", context=("Did you watch the match?", "I did, it was so close!")),
    Record("the the the the the", context=("Did you watch the match?", "I did, it was so close!")),
    Record("Their second album is my favourite.", context=("Who do you listen to?", "Old jazz bands.", "Which?")),
    Record("", context=("Who do you listen to?", "Old jazz bands.", "Which?")),
)


def draw_dialogues(whole: Dataset, n: int, seed: int) -> tuple[Dataset, Dataset]:
    """Return `n` dialogues of `whole` drawn by `seed`, in two parts: to learn from, and a tenth to choose the weights.

    Fewer than `n` dialogues are all taken.
    """
    order = np.random.default_rng(seed).permutation(len(whole.dialogues))[:n]
    drawn = [whole.dialogues[int(place)] for place in order]
    n_dev = max(2, round(DEV_SHARE * len(drawn)))
    return replace(whole, dialogues=tuple(drawn[n_dev:])), replace(whole, dialogues=tuple(drawn[:n_dev]))


def build(
    data: Path,
    work: Path,
    out: Path,
    *,
    rated: Path | None = None,
    dialogues: int = DIALOGUES,
    seed: int = SEED,
    progress: Callable[[TrainingProgress], object] | None = None,
    **options: Any,
) -> TrainedEvaluator:
    """Train on part of the dialogues in the folder `data`, write the evaluator to the folder `out` and return it.

    `work` keeps vectors and checkpoints; `rated` has rated sets for the card. `options` replace those of `OPTIONS`.
    Raises the errors of `read_dataset` and `fit`.
    """
    whole = read_dataset(data)
    train, dev = draw_dialogues(whole, dialogues, seed)
    evaluator = fit(
        "maude", train, dev=dev, seed=seed, folder=work, progress=progress, **{**OPTIONS, **options}
    ).with_fixtures(FIXTURES)
    notes = (
        f"It learned from {len(train.dialogues):,} dialogues of the Self-dialogue Corpus, drawn by its seed from "
        f"{len(whole.dialogues):,}; {len(dev.dialogues):,} others chose the weights. {SOURCE}",
        *evaluator.record.notes,
    )
    elsewhere = () if rated is None else measure_agreement(evaluator, NAME, rated, seed)
    record = replace(evaluator.record, notes=notes, elsewhere=elsewhere)
    result = type(evaluator)(evaluator.entry, replace(evaluator.artefact, record=record))
    result.save_pretrained(out)
    return result


def main(arguments: Sequence[str]) -> int:
    """Build as the options say and print the metrics on the held-out dialogues."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, text in (("data", "the corpus"), ("work", "vectors and checkpoints"), ("out", "the finished evaluator")):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FOLDER", help=text)
    parser.add_argument("--dialogues", type=int, default=DIALOGUES, help="how many are drawn (default %(default)s)")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of maude")
    parser.add_argument("--rated", type=Path, metavar="FOLDER", help="rated sets for the card")
    given = parser.parse_args(arguments)
    options = dict(text.split("=", 1) for text in given.option)
    evaluator = build(
        given.data, given.work, given.out, rated=given.rated, dialogues=given.dialogues, progress=_print_progress(),
        **options,
    )  # fmt: skip
    print({**evaluator.record.examples, **evaluator.record.metrics})
    print("weights", weights_hash(evaluator.artefact.network))
    return 0


def _print_progress() -> Callable[[TrainingProgress], object]:
    """A callback that prints a line every ten seconds."""
    printed = [0.0]

    def report(state: TrainingProgress) -> None:
        if time.monotonic() - printed[0] >= 10:
            printed[0] = time.monotonic()
            print(state.phase, state.done, state.total, dict(state.metrics), file=sys.stderr, flush=True)

    return report


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
