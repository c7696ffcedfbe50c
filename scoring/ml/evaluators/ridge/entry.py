"""The catalogue entry of `ridge`. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml.catalogue import RECOMMENDED, Entry
from scoring.ml.options import ENCODER, POOLING, SCORING, choice, number, text
from scoring.ml.training import options

RIDGE = Entry(
    name="ridge",
    kind="trained",
    summary="Predicts human judgements by a linear regression on frozen text vectors; trained in seconds, for each "
    "aspect.",
    scale=(None, None),
    needs=("encoder",),
    options=(*SCORING, text("aspect", None, "The aspect that is the score; none is the mean over all it learned.")),
    profiles=(RECOMMENDED,),
    citation="Hoerl and Kennard 1970, Ridge Regression: Biased Estimation for Nonorthogonal Problems",
    papers=("hoerl-kennard-1970-ridge",),
    implementation="scoring.ml.evaluators.ridge.evaluator:Ridge",
    train_options=(
        ENCODER,
        options.RATINGS,
        text("aspects", None, "Aspects to learn together, with commas between; none is every judged aspect."),
        choice(
            "judgements",
            ("ratings", "comparisons"),
            "What an aspect is learned from if it has both. An aspect with one kind is learned from that.",
        ),
        number(
            "l2",
            None,
            "Weight of squares as a share of the mean square of the features; none is the best of a grid, found by "
            "leaving out one group at a time.",
            minimum=0,
            advanced=True,
        ),
        replace(POOLING, advanced=True),
        replace(options.MAX_LENGTH, advanced=True),
        options.TRAIN_DEVICE,
    ),
    train_needs=("judgements",),
    aspect="many",
    identical_is_best=False,
)
ENTRIES = (RIDGE,)
