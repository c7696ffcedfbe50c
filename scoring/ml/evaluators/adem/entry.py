"""The catalogue entry of ADEM. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry
from scoring.ml.options import ENCODER, POOLING, SCORING, choice, flag, integer, number
from scoring.ml.training import options

_OPTIONS = (
    choice(
        "method",
        ("ridge", "gradient"),
        "How the two matrices are found: ridge solves for both at once; gradient descends, as in the paper.",
    ),
    integer("components", 50, "Principal components kept of the text vectors.", minimum=1, advanced=True),
    flag(
        "affine",
        True,
        "A constant in addition to each vector's components, so that a score may depend on a single text.",
        advanced=True,
    ),
    number(
        "l2",
        None,
        "Weight of squares: of the distance from the identity with ridge (none: the best of a grid on the held-out "
        "part), of the matrices themselves with gradient (none is .01).",
        minimum=0,
        advanced=True,
    ),
    number("l1", 0.0, "Weight of absolute values; gradient only.", minimum=0, advanced=True),
    replace(POOLING, advanced=True),
)
ADEM = Entry(
    name="adem",
    kind="trained",
    summary="Predicts human ratings from products of context, reference and reply: two matrices on frozen text "
    "vectors.",
    scale=(None, None),
    needs=("references", "context", "encoder"),
    options=SCORING,
    profiles=(RECOMMENDED, PAPER),
    citation="Lowe et al. 2017, Towards an Automatic Turing Test: Learning to Evaluate Dialogue Responses",
    papers=("lowe-etal-2017-towards",),
    implementation="scoring.ml.evaluators.adem.evaluator:Adem",
    train_options=(
        ENCODER,
        options.INPUTS,
        options.RATINGS,
        *_OPTIONS,
        replace(options.MAX_LENGTH, advanced=True),
        replace(options.BATCH_SIZE, advanced=True, help="Examples in one step; gradient only."),
        replace(options.EPOCHS, default=100, help="Largest number of passes over the training data; gradient only."),
        replace(options.LEARNING_RATE, default=1e-3, help="Step size of the optimiser; gradient only."),
        replace(
            options.PATIENCE,
            default=10,
            help="Stop after this number of passes without improvement; gradient only; none never stops early.",
        ),
        replace(options.MAX_STEPS, help="Stop after this number of steps; gradient only; none is no limit."),
        options.TRAIN_DEVICE,
    ),
    train_needs=("ratings", "references"),
    aspect="one",
    profile_defaults={PAPER: {"method": "gradient", "affine": False, "l1": 1e-3}},
)
ENTRIES = (ADEM,)
