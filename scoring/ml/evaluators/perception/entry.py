"""The catalogue entry of `perception`. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml import option_checks
from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry
from scoring.ml.options import POOLING, SCORING, choice, flag, integer, number, text
from scoring.ml.training.options import FINETUNING, GRADIENT_CHECKPOINTING, INPUTS

OPTIONS = (
    # Recomputed activations and a gradient of a gradient do not go together.
    *(option for option in FINETUNING if option != GRADIENT_CHECKPOINTING),
    choice(
        "models",
        ("shared", "per_system"),
        "One model for all systems, which makes them comparable; or one model for each system, as in the paper.",
    ),
    flag(
        "conditional",
        True,
        "Read each text after its context and against references of the same item; otherwise texts are read alone and "
        "against references of any item.",
    ),
    integer(
        "n_references",
        4,
        "Number of references per text if not conditional: redrawn in every epoch of training; in scoring the same for "
        "all texts, and not part of the training.",
        minimum=1,
    ),
    replace(
        INPUTS,
        help="Input of the network: context and text, or the text alone. (Context alone could only give 1/2.)",
        choices=("both", "text"),
    ),
    POOLING,
    choice(
        "penalty",
        ("none", "auto", "pair", "interpolate", "pooled"),
        "Gradient penalty: none; on the embeddings of both texts (pair, equation 5); between the two (as WGAN-GP); on "
        "the pooled vectors (cheap, only bounds the last layer). auto trains with pair and with none, and keeps pair "
        "where more held-out pairs are right by it; without held-out texts it is pair.",
    ),
    number("penalty_weight", 10.0, "Weight of the gradient penalty (WGAN-GP's 10).", minimum=0),
    integer(
        "penalty_every",
        4,
        "Apply the penalty at every n-th step with n times the weight: nearly as good and much faster.",
        minimum=1,
    ),
    flag(
        "confidence",
        True,
        "Learn the confidence c of each pair, with hints for unsure ones (DeVries & Taylor); without it c = 1.",
    ),
    number("budget", 0.3, "Target of the confidence loss; its weight adapts to it.", minimum=0, advanced=True),
    text(
        "learning_rates",
        None,
        "Learning rates with commas between, the best on the dev part is kept; none takes learning_rate.",
        advanced=True,
        check=option_checks.learning_rates,
    ),
)

ENTRIES = (
    Entry(
        name="perception",
        kind="trained",
        summary="How often a trained discriminator takes a system's text for a reference; 0.5 is chance level.",
        scale=(0.0, 1.0),
        needs=("references", "encoder"),
        options=(
            *SCORING,
            choice(
                "uncertainty",
                ("both", "data", "model", "none"),
                "Weights of a system's texts in its score: certainty of data and model, either alone, or none.",
            ),
            integer("mc_passes", 5, "Passes with dropout behind the model's certainty.", minimum=2),
            choice(
                "p_gen",
                ("single", "mc_mean"),
                "Probability in a system's score: from a pass without dropout, or the mean over passes with dropout.",
                advanced=True,
            ),
        ),
        system_score="corpus",
        profiles=(RECOMMENDED, PAPER),
        citation="Gu, Wu & Yu 2021, Perception Score: a learned metric for open-ended text generation evaluation",
        papers=("gu-etal-2021-perception",),
        implementation="scoring.ml.evaluators.perception.evaluator:Perception",
        train_options=OPTIONS,
        train_needs=("outputs", "references"),
        revision=4,
        profile_defaults={
            PAPER: {
                "stages": "together",
                "models": "per_system",
                "pooling": "cls",
                "penalty": "pair",
                "penalty_every": 1,
            }
        },
    ),
)
