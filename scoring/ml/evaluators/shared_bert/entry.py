"""The catalogue entry of `shared-bert`. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml import option_checks
from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry
from scoring.ml.options import SCORING, choice, flag, integer, number, text
from scoring.ml.training.options import BATCH_SIZE, EPOCHS, FINETUNING, LEARNING_RATE, RATINGS

OPTIONS = (
    *(option for option in FINETUNING if option not in (BATCH_SIZE, EPOCHS, LEARNING_RATE)),
    replace(BATCH_SIZE, default=16),
    replace(EPOCHS, default=5),
    replace(LEARNING_RATE, default=3e-5),
    RATINGS,
    choice(
        "labels",
        ("graded", "binary"),
        "What is learned: graded, the mean rating as a share of its scale; binary, good or not by the median and the "
        "threshold, as in the paper.",
    ),
    text("aspects", None, "Aspects to learn together, with commas between; none is every rated aspect."),
    number(
        "threshold",
        None,
        "Lowest median rating of a good output, for binary labels and for figures of two classes; none is seven tenths "
        "of the scale, rounded up (5 of 1 to 6) unless ratings are finer than half points.",
    ),
    text(
        "beta",
        "share",
        "Weight of good outputs in the loss: `share`, the share of bad ones per aspect; `grid`, the best on the dev "
        "part of values up to 25 per cent around that share; or numbers with commas between.",
        check=option_checks.shares_or("share", "grid"),
    ),
    flag(
        "shared", True, "One encoder for all aspects; otherwise one for each, the system that the paper compares with."
    ),
    choice(
        "pooling",
        ("mean", "cls", "pooler"),
        "The text's vector: mean of its tokens; the first token; or the encoder's own pooler, where it has a "
        "trained one (BERT).",
    ),
    flag(
        "context",
        False,
        "With features=separate, also read what the output answers: its source and the last turns of its context. "
        "Where contexts are long, training takes several times as long, except with stages=head.",
    ),
    flag(
        "nearest",
        False,
        "With features=separate, compare an output with the one of its references whose vector is nearest by cosine, "
        "not with each of them.",
    ),
    choice(
        "inputs",
        ("both", "text", "reference"),
        "Input of the network: output and reference; the output alone; the reference alone. The last two are controls:"
        " they cannot know whether the two agree.",
        advanced=True,
    ),
    integer(
        "max_references",
        None,
        "Largest number of references per output in an epoch, drawn for each epoch; none is all. With nearest=true it "
        "is one.",
        minimum=1,
    ),
    choice(
        "split",
        ("group", "row"),
        "How a dev part is held out if none is given: by whole groups, or by rows as in the paper, where the same "
        "output may be in both parts. Trainings of a project always hold out whole groups. With rows, metrics are over"
        " rows, not outputs.",
        advanced=True,
    ),
    choice("optimizer", ("adamw", "adam"), "AdamW with decay and warm-up, or plain Adam."),
)

ENTRIES = (
    Entry(
        name="shared-bert",
        kind="trained",
        summary="How good people would rate the output, from 0 to 1, for each aspect; an encoder reads output and "
        "reference.",
        scale=(0.0, 1.0),
        needs=("references", "encoder"),
        options=(
            *SCORING,
            text("aspect", None, "The aspect that is the score; none is the mean over all it learned."),
            choice(
                "references",
                ("auto", "nearest", "mean", "max"),
                "Several references: the probability against the one with the nearest vector, which needs texts that "
                "are read alone; the mean of those against each; or the highest. auto: as in its training, nearest or "
                "mean.",
            ),
        ),
        profiles=(RECOMMENDED, PAPER),
        citation="Reddy 2022, Automating Human Evaluation of Dialogue Systems",
        papers=("a-2022-automating",),
        implementation="scoring.ml.evaluators.shared_bert.evaluator:SharedBert",
        train_options=OPTIONS,
        train_needs=("ratings", "references"),
        aspect="many",
        revision=2,
        profile_defaults={
            RECOMMENDED: {"max_references": 4, "features": "separate", "nearest": True},
            PAPER: {
                "labels": "binary",
                "stages": "together",
                "learning_rate": 3e-4,
                "beta": "grid",
                "pooling": "pooler",
                "split": "row",
                "optimizer": "adam",
            },
        },
    ),
)
