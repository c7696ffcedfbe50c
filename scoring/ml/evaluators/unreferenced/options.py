"""The options of MAUDE and its rivals, named and explained alike. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml.catalogue import Option
from scoring.ml.options import ENCODER, POOLING
from scoring.ml.training.options import (
    BATCH_SIZE,
    EPOCHS,
    INPUTS,
    LEARNING_RATE,
    MAX_LENGTH,
    MAX_STEPS,
    PATIENCE,
    TRAIN_DEVICE,
)

NEGATIVES = (
    Option(
        "negatives",
        "str",
        "all",
        "Kinds of false replies: all available ones; syntax (words dropped, shuffled, repeated); semantics (a reply of"
        " another conversation, of a model, or translated there and back).",
        choices=("all", "syntax", "semantics"),
    ),
    Option(
        "variants",
        "int",
        1,
        "Number of broken forms made of each reply; one is drawn in each epoch. Each must be encoded.",
        minimum=1,
        advanced=True,
    ),
    Option(
        "keep_identical",
        "bool",
        False,
        "Keep a false reply that equals its true one (as released) instead of drawing again or leaving it out.",
        advanced=True,
    ),
    Option(
        "generator",
        "str",
        None,
        "Folder of a language model (sequence-to-sequence or causal) that answers contexts; its replies to other "
        "conversations are false replies. None makes no such replies.",
        advanced=True,
        names_model=True,
    ),
    Option(
        "translator",
        "str",
        None,
        "Folder of a translation model into another language; with back_translator it gives back-translated replies.",
        advanced=True,
        names_model=True,
    ),
    Option(
        "back_translator",
        "str",
        None,
        "Folder of a translation model back into the language of the texts.",
        advanced=True,
        names_model=True,
    ),
    Option(
        "pool_size",
        "int",
        2000,
        "Number of replies that generator and translators make; they are slow.",
        minimum=10,
        advanced=True,
    ),
    Option(
        "paraphrased",
        "float",
        0.0,
        "Probability that a reply's own back-translation is added as a second true reply (printed: .5; "
        "released: 0). Needs both translators.",
        minimum=0,
        maximum=1,
        advanced=True,
    ),
)
LOSS = (
    Option("loss", "str", "nce", "nce (binary cross-entropy) or hinge.", choices=("nce", "hinge"), advanced=True),
    Option("margin", "float", 0.5, "Margin between true and false replies in the hinge loss.", minimum=0,
           advanced=True),
    Option(
        "positive_weight",
        "float",
        None,
        "Weight of a true reply in the loss; none is the number of its false ones, 1 is as released.",
        minimum=0,
        advanced=True,
    ),
)  # fmt: skip
TEXT = (
    Option("lower_case", "bool", True, "Read all texts in lower case.", advanced=True),
    replace(MAX_LENGTH, help="Longest text in tokens; none is what the encoder reads.", advanced=True),
)
TRAINING = (
    replace(BATCH_SIZE, default=128, help="Approximate number of true replies in one step."),
    replace(EPOCHS, default=20, help="Largest number of passes over the training data."),
    replace(LEARNING_RATE, default=1e-3),
    replace(PATIENCE, default=3),
    MAX_STEPS,
    Option("max_grad_norm", "float", 0.5, "Largest norm of the gradient.", minimum=0, advanced=True),
    TRAIN_DEVICE,
)
VECTORS = (
    replace(POOLING, advanced=True),
    Option(
        "cache_dtype",
        "str",
        "fp16",
        "Number format of the vectors cached on disk during training.",
        choices=("fp16", "fp32"),
        advanced=True,
    ),
)
DIFFERENCE = Option(
    "difference",
    "str",
    "abs",
    "Difference of context and reply: absolute as in the released code, or signed as in the paper.",
    choices=("abs", "signed"),
    advanced=True,
)
CLASSIFIER = (
    Option("decoder", "int", 200, "Width of the classifier's inner layer.", minimum=1, advanced=True),
    Option("dropout", "float", 0.2, "Dropout in the classifier.", minimum=0, maximum=0.9, advanced=True),
)
TRANSITION = (
    Option("down", "int", 300, "Width of the projected utterance vectors.", minimum=1, advanced=True),
    Option("hidden", "int", 300, "Width of the recurrent layers.", minimum=1, advanced=True),
    Option("layers", "int", 1, "Number of recurrent layers.", minimum=1),
    Option(
        "bidirectional",
        "bool",
        False,
        "Read a context from both ends. Scoring a growing dialogue then reads its vectors again at every turn.",
    ),
    Option(
        "batches",
        "str",
        "conversations",
        "Content of a batch: whole conversations, each read once for all its replies (fast; in one direction only), or"
        " single replies.",
        choices=("conversations", "replies"),
        advanced=True,
    ),
    Option(
        "pad_attended",
        "bool",
        False,
        "As released: a turn is padded to the longest of its context and the padding read as text.",
        advanced=True,
    ),
    Option(
        "pool_zeros",
        "bool",
        False,
        "As released: in training the largest value is also taken over the zeros of padded turns.",
        advanced=True,
    ),
)
READER = (
    Option("embedding", "int", 128, "Width of the word embeddings, which start at random.", minimum=1, advanced=True),
    Option("hidden", "int", 128, "Width of the recurrent layer in each direction.", minimum=1, advanced=True),
    Option("cell", "str", "lstm", "Type of the recurrent layer.", choices=("lstm", "gru"), advanced=True),
)
COMMON = (ENCODER, INPUTS, *NEGATIVES, *LOSS, *TEXT, *TRAINING)
#: Settings that the released code and its logged runs share.
RELEASED = {
    "learning_rate": 1e-4,
    "epochs": 50,
    "patience": None,
    "variants": 3,
    "keep_identical": True,
    "positive_weight": 1.0,
}
