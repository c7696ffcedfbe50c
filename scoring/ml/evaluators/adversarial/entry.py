"""The catalogue entry of `adversarial`. No torch here."""

from __future__ import annotations

from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry
from scoring.ml.options import POOLING, SCORING, choice, flag
from scoring.ml.training.options import FINETUNING, INPUTS

OPTIONS = (
    *FINETUNING,
    INPUTS,
    POOLING,
    choice(
        "balance",
        ("draw", "weight"),
        "How human and machine texts are balanced: draw reads equally many of both in each epoch; weight reads all and"
        " weights the classes.",
    ),
    flag(
        "systems_alike",
        True,
        "Balance the systems among the machine texts as well; otherwise each counts by its number of texts.",
        advanced=True,
    ),
)

ENTRIES = (
    Entry(
        name="adversarial",
        kind="trained",
        summary="Probability that a person wrote the text, by a trained discriminator; it never compares two texts.",
        scale=(0.0, 1.0),
        needs=("encoder",),
        options=SCORING,
        profiles=(RECOMMENDED, PAPER),
        citation="Zhou & Xu 2020, the adversarial baseline of Learning to compare for better training and evaluation "
        "of open domain natural language generation models",
        papers=("zhou-xu-2020-learning",),
        implementation="scoring.ml.evaluators.adversarial.evaluator:Adversarial",
        train_options=OPTIONS,
        train_needs=("outputs", "references"),
        profile_defaults={
            RECOMMENDED: {"patience": 2},
            PAPER: {"stages": "together", "pooling": "cls", "systems_alike": False},
        },
        revision=2,
    ),
)
