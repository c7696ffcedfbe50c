"""The catalogue entry of `ream`. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml import option_checks
from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry
from scoring.ml.metrics import pairwise_names
from scoring.ml.options import ENCODER, POOLING, SCORING, choice, flag, integer, number, text
from scoring.ml.text.tokens import BLEU_TOKENIZERS
from scoring.ml.training.options import BATCH_SIZE, EPOCHS, INPUTS, LEARNING_RATE, PATIENCE, RATINGS, TRAIN_DEVICE

#: Ways to make negatives.
NEGATIVES = ("remove", "add", "replace")

OPTIONS = (
    ENCODER,
    choice(
        "pairing",
        ("separate", "joint"),
        "Read query and reference each alone and multiply their vectors, which suits encoders trained for single "
        "texts; or both together, as in the paper.",
    ),
    integer("max_length", 128, "Longest pair of query and reference, or text read alone, in tokens.", minimum=8),
    integer("layer", -1, "Layer of the encoder whose vectors are used: -1 the last, -2 the one before it."),
    POOLING,
    replace(
        INPUTS,
        help="Input of the network: query and references; references alone; the query alone. The last two are "
        "controls: they cannot know whether a reference answers its query.",
    ),
    choice("metric", pairwise_names(), "The multi-reference metric whose reliability is learned.", default="bleu-star"),
    RATINGS,
    flag("lowercase", False, "Let the metric ignore case, if it can."),
    choice(
        "tokenize",
        ("auto", *BLEU_TOKENIZERS),
        "Tokeniser of the metric, if it has a choice; auto takes the one of the language.",
        advanced=True,
    ),
    text(
        "sizes",
        "1,2,3,5,7,10",
        "Sizes of the reference sets drawn for training, with commas between; those an item cannot fill are left out.",
        check=option_checks.whole_numbers,
    ),
    integer("combinations", 25, "Sets drawn of each size and item.", minimum=1),
    choice(
        "attention_kind",
        ("gatv2", "gat"),
        "Graph attention whose ranking of neighbours depends on the node (gatv2), or the paper's (gat).",
    ),
    integer("heads", 4, "Heads of the attention.", minimum=1),
    number("margin", 0.05, "Margin of the contrastive loss.", minimum=0),
    flag("gold_margin", False, "Take the true difference of the two reliabilities as margin instead."),
    integer(
        "pretrain",
        5,
        "Passes by the contrastive loss alone over all items with references, before ratings are learned from; these "
        "need no ratings. 0 leaves them out.",
        minimum=0,
    ),
    flag(
        "shrink",
        True,
        "Shrink gold reliabilities towards their mean by the share that is not chance: few outputs say little.",
    ),
    number("contrast", 1.0, "Weight of the contrastive loss (eta).", minimum=0),
    text(
        "negatives",
        "remove,add,replace",
        "Kinds of negatives: any of remove, add, replace, with commas between.",
        check=option_checks.any_names(NEGATIVES),
    ),
    integer("foreign", 20, "Answers to other queries for each item, used in negatives.", minimum=1, advanced=True),
    number("weight_decay", 1e-5, "L2 penalty of Adam (lambda).", minimum=0, advanced=True),
    flag("tune_encoder", False, "Also train the encoder: slower, for large data."),
    number(
        "encoder_learning_rate", 2e-5, "Step size of the encoder, where it learns.", minimum=0, maximum=1, advanced=True
    ),
    replace(BATCH_SIZE, default=128),
    replace(EPOCHS, default=50),
    replace(LEARNING_RATE, default=5e-4),
    replace(PATIENCE, default=5),
    TRAIN_DEVICE,
)

ENTRIES = (
    Entry(
        name="ream",
        kind="trained",
        summary="Predicts how well a metric with given references agrees with people; selects helpful references.",
        scale=(None, None),
        needs=("references", "encoder"),
        options=(
            *SCORING,
            choice("use", ("selected", "all"), "Score with the references it selects from the item's, or with all."),
            choice(
                "attention",
                ("dense", "pyg"),
                "How the attention is computed: matrices, or edge lists of torch-geometric for very large sets.",
                advanced=True,
            ),
        ),
        profiles=(RECOMMENDED, PAPER),
        citation="Gao et al. 2021, REAM#: an enhancement approach to reference-based evaluation metrics",
        papers=("gao-etal-2021-ream",),
        implementation="scoring.ml.evaluators.ream.evaluator:Ream",
        train_options=OPTIONS,
        train_needs=("ratings", "references"),
        aspect="one",
        judges_references=True,
        revision=2,
        profile_defaults={
            PAPER: {
                "pairing": "joint",
                "pretrain": 0,
                "shrink": False,
                "layer": -2,
                "max_length": 64,
                "pooling": "cls",
                "sizes": "3,5,7,10",
                "attention_kind": "gat",
                "heads": 1,
            },
        },
    ),
)
