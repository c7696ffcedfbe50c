"""The toy evaluator's entry in the catalogue; no torch here, as in every real entry."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml.catalogue import RECOMMENDED, Entry, Option
from scoring.ml.options import SCORING
from scoring.ml.training.options import FINETUNING, LEARNING_RATE

ENTRY = Entry(
    name="toy",
    kind="trained",
    summary="A number regressed on one vector.",
    scale=(None, None),
    needs=("encoder",),
    options=SCORING,
    profiles=(RECOMMENDED,),
    implementation="tests.scoring.ml.training.toy:Toy",
    train_options=(
        *(option for option in FINETUNING if option != LEARNING_RATE),
        # Without the option's maximum, so that a training can diverge.
        replace(LEARNING_RATE, maximum=None),
        Option("frozen", "bool", False, "Leave the encoder as it is."),
    ),
    train_needs=("ratings",),
    aspect="one",
)
