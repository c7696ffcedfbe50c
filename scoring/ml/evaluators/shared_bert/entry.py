"""The catalogue's line of `shared-bert`; no torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml import option_checks
from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry, Option, must_be_trained
from scoring.ml.training.options import BATCH_SIZE, EPOCHS, FINETUNING, LEARNING_RATE, RATINGS, SCORING

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
        "An output is good from this median on; none is seven tenths of the scale, rounded up (5 of 1 to 6). Where "
        "ratings are finer than half points nothing is rounded up.",
    ),
    Option(
        "beta",
        "str",
        "share",
        "Weight of the good ones in the loss: `share` of the bad ones per aspect; `grid` chooses it on the dev part "
        "with models of their own, five to twenty-five per cent around that share; or numbers with commas between.",
        check=option_checks.shares_or("share", "grid"),
    ),
    Option(
        "shared", "bool", True, "One encoder for all aspects; without it one encoder each, the paper's rival system."
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
        "What the network may read: output and reference; the output alone; the reference alone. The last two are "
        "sentinels: they cannot know whether the two agree.",
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
        "How a dev part is taken where none is given, as from Python: by whole groups, or by rows as in the paper, "
        "so that the same output may be in both parts. Trainings of a project always give a part of whole groups. "
        "By rows, metrics are over rows, not outputs.",
        choices=("group", "row"),
        advanced=True,
    ),
    Option("optimizer", "str", "adamw", "AdamW with decay and warm-up, or plain Adam.", choices=("adamw", "adam")),
)

ENTRIES = (
    Entry(
        name="shared-bert",
        kind="trained",
        summary="One encoder reads output and reference; a head per aspect says how likely people find it good.",
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
