"""The catalogue's line of `adversarial`; no torch here."""

from __future__ import annotations

from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry, Option, must_be_trained
from scoring.ml.training.options import FINETUNING, INPUTS, SCORING

OPTIONS = (
    *FINETUNING,
    INPUTS,
    Option(
        "pooling",
        "str",
        "mean",
        "The vector of a text in its context: mean of its tokens, or its first token.",
        choices=("mean", "cls"),
    ),
    Option(
        "balance",
        "str",
        "draw",
        "How people's texts and machines' come to count alike: of the larger class as many are drawn as the smaller "
        "one has, redrawn in each epoch; or all are read and weighted.",
        choices=("draw", "weight"),
    ),
    Option(
        "systems_alike",
        "bool",
        True,
        "Machines' texts are drawn so that every system takes part as often; without it, as often as it has texts. "
        "Weighted classes weigh the systems so.",
        advanced=True,
    ),
)

ENTRIES = (
    Entry(
        name="adversarial",
        kind="trained",
        summary="How likely a trained reader finds it that a person wrote the text; it never compares two texts.",
        build=must_be_trained,
        scale=(0.0, 1.0),
        needs=("encoder",),
        options=SCORING,
        profiles=(RECOMMENDED, PAPER),
        citation="Zhou & Xu 2020, the adversarial baseline of Learning to compare for better training and evaluation "
        "of open domain natural language generation models",
        implementation="scoring.ml.evaluators.adversarial.evaluator:Adversarial",
        train_options=OPTIONS,
        train_needs=("outputs", "references"),
        profile_defaults={RECOMMENDED: {"patience": 2}, PAPER: {"pooling": "cls", "systems_alike": False}},
    ),
)
