"""The catalogue entry of `shared-bert`. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml import option_checks
from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry, Option, must_be_trained
from scoring.ml.options import SCORING
from scoring.ml.training.options import BATCH_SIZE, EPOCHS, FINETUNING, LEARNING_RATE, RATINGS

OPTIONS = (
    *(option for option in FINETUNING if option not in (BATCH_SIZE, EPOCHS, LEARNING_RATE)),
    replace(BATCH_SIZE, default=16),
    replace(EPOCHS, default=5),
    replace(LEARNING_RATE, default=3e-5),
    RATINGS,
    Option(
        "aspects",
        "str",
        None,
        "Aspects to learn together, with commas between; none is every rated aspect.",
    ),
    Option(
        "threshold",
        "float",
        None,
        "Lowest median rating of a good output; none is seven tenths of the scale, rounded up (5 of 1 to 6) unless "
        "ratings are finer than half points.",
    ),
    Option(
        "beta",
        "str",
        "share",
        "Weight of good outputs in the loss: `share`, the share of bad ones per aspect; `grid`, the best on the dev "
        "part of values up to 25 per cent around that share; or numbers with commas between.",
        check=option_checks.shares_or("share", "grid"),
    ),
    Option(
        "shared",
        "bool",
        True,
        "One encoder for all aspects; otherwise one for each, the system that the paper compares with.",
    ),
    Option(
        "pooling",
        "str",
        "mean",
        "The text's vector: mean of its tokens; the first token; or the encoder's own pooler, where it has a "
        "trained one (BERT).",
        choices=("mean", "cls", "pooler"),
    ),
    Option(
        "inputs",
        "str",
        "both",
        "Input of the network: output and reference; the output alone; the reference alone. The last two are controls:"
        " they cannot know whether the two agree.",
        choices=("both", "text", "reference"),
        advanced=True,
    ),
    Option(
        "max_references",
        "int",
        None,
        "Largest number of references per output in an epoch, drawn for each epoch; none is all.",
        minimum=1,
    ),
    Option(
        "split",
        "str",
        "group",
        "How a dev part is held out if none is given: by whole groups, or by rows as in the paper, where the same "
        "output may be in both parts. Trainings of a project always hold out whole groups. With rows, metrics are over"
        " rows, not outputs.",
        choices=("group", "row"),
        advanced=True,
    ),
    Option("optimizer", "str", "adamw", "AdamW with decay and warm-up, or plain Adam.", choices=("adamw", "adam")),
)

ENTRIES = (
    Entry(
        name="shared-bert",
        kind="trained",
        summary="Probability that people rate the output as good, for each aspect; one encoder reads output and "
        "reference.",
        build=must_be_trained,
        scale=(0.0, 1.0),
        needs=("references", "encoder"),
        options=(
            *SCORING,
            Option("aspect", "str", None, "The aspect that is the score; none is the mean over all it learned."),
            Option(
                "references",
                "str",
                "mean",
                "Several references: the mean of the probabilities against each, or the highest.",
                choices=("mean", "max"),
            ),
        ),
        profiles=(RECOMMENDED, PAPER),
        citation="Reddy 2022, Automating Human Evaluation of Dialogue Systems",
        implementation="scoring.ml.evaluators.shared_bert.evaluator:SharedBert",
        train_options=OPTIONS,
        train_needs=("ratings", "references"),
        aspect="many",
        profile_defaults={
            RECOMMENDED: {"max_references": 4},
            PAPER: {
                "learning_rate": 3e-4,
                "beta": "grid",
                "pooling": "pooler",
                "split": "row",
                "optimizer": "adam",
            },
        },
    ),
)
