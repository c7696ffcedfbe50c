"""The toy evaluator's line of the catalogue; no torch here, as in every real entry."""

from __future__ import annotations

from scoring.ml.catalogue import RECOMMENDED, Entry, Option, must_be_trained
from scoring.ml.training.options import FINETUNING, SCORING

ENTRY = Entry(
    name="toy",
    kind="trained",
    summary="A number regressed on one vector.",
    build=must_be_trained,
    scale=(None, None),
    needs=("encoder",),
    options=SCORING,
    profiles=(RECOMMENDED,),
    implementation="tests.scoring.ml.training.toy:Toy",
    train_options=(*FINETUNING, Option("frozen", "bool", False, "Leave the encoder as it is.")),
    train_needs=("ratings",),
    aspect="one",
)
