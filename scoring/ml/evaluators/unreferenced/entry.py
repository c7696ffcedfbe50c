"""The catalogue entries of MAUDE and its rivals, and their options, named and explained alike. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry
from scoring.ml.options import ENCODER, POOLING, SCORING, choice, flag, integer, number, text
from scoring.ml.training import options

NEGATIVES = (
    choice(
        "negatives",
        ("all", "syntax", "semantics"),
        "Kinds of false replies: all available ones; syntax (words dropped, shuffled, repeated); semantics (a reply of"
        " another conversation, of a model, or translated there and back).",
    ),
    integer(
        "variants",
        1,
        "Number of broken forms made of each reply; one is drawn in each epoch. Each must be encoded.",
        minimum=1,
        advanced=True,
    ),
    flag(
        "keep_identical",
        False,
        "Keep a false reply that equals its true one (as released) instead of drawing again or leaving it out.",
        advanced=True,
    ),
    text(
        "generator",
        None,
        "Folder of a language model (sequence-to-sequence or causal) that answers contexts; its replies to other "
        "conversations are false replies. None makes no such replies.",
        advanced=True,
        names_model=True,
    ),
    flag(
        "own_outputs",
        False,
        "Outputs of the machine systems in the data to other conversations are false replies of models.",
    ),
    text(
        "translator",
        None,
        "Folder of a translation model into another language; with back_translator it gives back-translated replies.",
        advanced=True,
        names_model=True,
    ),
    text(
        "back_translator",
        None,
        "Folder of a translation model back into the language of the texts.",
        advanced=True,
        names_model=True,
    ),
    text(
        "paraphraser",
        None,
        "Folder of a sequence-to-sequence model that says a reply in other words, in place of both translators.",
        advanced=True,
        names_model=True,
    ),
    integer(
        "pool_size",
        2000,
        "Number of replies that generator, translators or paraphraser make; they are slow. At most as many own_outputs "
        "are drawn.",
        minimum=10,
        advanced=True,
    ),
    number(
        "paraphrased",
        0.0,
        "Probability that a reply's own back-translation or paraphrase is added as a second true reply (printed: .5; "
        "released: 0). Needs both translators or a paraphraser.",
        minimum=0,
        maximum=1,
        advanced=True,
    ),
)
LOSS = (
    choice("loss", ("nce", "hinge"), "nce (binary cross-entropy) or hinge.", advanced=True),
    number("margin", 0.5, "Margin between true and false replies in the hinge loss.", minimum=0, advanced=True),
    number(
        "positive_weight",
        None,
        "Weight of a true reply in the loss; none is the number of its false ones, 1 is as released.",
        minimum=0,
        advanced=True,
    ),
)
TEXT = (
    flag("lower_case", True, "Read all texts in lower case.", advanced=True),
    replace(options.MAX_LENGTH, help="Longest text in tokens; none is what the encoder reads.", advanced=True),
)
TRAINING = (
    replace(options.BATCH_SIZE, default=128, help="Approximate number of true replies in one step."),
    replace(options.EPOCHS, default=20, help="Largest number of passes over the training data."),
    replace(options.LEARNING_RATE, default=1e-3),
    replace(options.PATIENCE, default=3),
    options.MAX_STEPS,
    number("max_grad_norm", 0.5, "Largest norm of the gradient.", minimum=0, advanced=True),
    options.TRAIN_DEVICE,
)
VECTORS = (
    replace(POOLING, advanced=True),
    choice(
        "cache_dtype", ("fp16", "fp32"), "Number format of the vectors cached on disk during training.", advanced=True
    ),
)
DIFFERENCE = choice(
    "difference",
    ("abs", "signed"),
    "Difference of context and reply: absolute as in the released code, or signed as in the paper.",
    advanced=True,
)
CLASSIFIER = (
    integer("decoder", 200, "Width of the classifier's inner layer.", minimum=1, advanced=True),
    number("dropout", 0.2, "Dropout in the classifier.", minimum=0, maximum=0.9, advanced=True),
)
TRANSITION = (
    integer("down", 300, "Width of the projected utterance vectors.", minimum=1, advanced=True),
    integer("hidden", 300, "Width of the recurrent layers.", minimum=1, advanced=True),
    integer("layers", 1, "Number of recurrent layers.", minimum=1),
    flag(
        "bidirectional",
        False,
        "Read a context from both ends. Scoring a growing dialogue then reads its vectors again at every turn.",
    ),
    choice(
        "batches",
        ("conversations", "replies"),
        "Content of a batch: whole conversations, each read once for all its replies (fast; in one direction only), or"
        " single replies.",
        advanced=True,
    ),
    flag(
        "pad_attended",
        False,
        "As released: a turn is padded to the longest of its context and the padding read as text.",
        advanced=True,
    ),
    flag(
        "pool_zeros",
        False,
        "As released: in training the largest value is also taken over the zeros of padded turns.",
        advanced=True,
    ),
)
READER = (
    integer("embedding", 128, "Width of the word embeddings, which start at random.", minimum=1, advanced=True),
    integer("hidden", 128, "Width of the recurrent layer in each direction.", minimum=1, advanced=True),
    choice("cell", ("lstm", "gru"), "Type of the recurrent layer.", advanced=True),
)
COMMON = (ENCODER, options.INPUTS, *NEGATIVES, *LOSS, *TEXT, *TRAINING)
#: Settings that the released code and its logged runs share.
RELEASED = {
    "learning_rate": 1e-4,
    "epochs": 50,
    "patience": None,
    "variants": 3,
    "keep_identical": True,
    "positive_weight": 1.0,
}

_PLACE = "scoring.ml.evaluators.unreferenced"
_FORMS = (
    choice(
        "form",
        ("unreferenced", "referenced", "blended"),
        "Kind of score: unreferenced (does the reply follow its context), referenced (is it similar to a reference), "
        "or blended (both; comparable only among texts scored together).",
    ),
    choice("blend", ("min", "max", "arithmetic", "geometric"), "How both scores are combined.", advanced=True),
)
MAUDE = Entry(
    name="maude",
    kind="trained",
    summary="Whether a reply follows its dialogue: a recurrent network over frozen utterance vectors, no reference.",
    scale=(0.0, 1.0),
    needs=("context", "encoder"),
    options=SCORING,
    profiles=(RECOMMENDED, PAPER),
    citation="Sinha et al. 2020, Learning an Unreferenced Metric for Online Dialogue Evaluation",
    papers=("sinha-etal-2020-learning",),
    implementation=f"{_PLACE}.maude:Maude",
    train_options=(*COMMON, *VECTORS, *TRANSITION, DIFFERENCE, *CLASSIFIER),
    train_needs=("dialogues",),
    profile_defaults={
        PAPER: {
            **RELEASED,
            "layers": 2,
            "pooling": "cls",
            "batches": "replies",
            "pad_attended": True,
            "pool_zeros": True,
        }
    },
)
BERT_NLI = replace(
    MAUDE,
    name="bert-nli",
    summary="Whether a reply follows its dialogue: one frozen vector of the whole context, no reference.",
    citation="Sinha et al. 2020, Learning an Unreferenced Metric for Online Dialogue Evaluation (DistilBERT-NLI)",
    papers=("sinha-etal-2020-learning",),
    implementation=f"{_PLACE}.rivals:BertNli",
    train_options=(*COMMON, *VECTORS, DIFFERENCE, *CLASSIFIER),
    profile_defaults={PAPER: {**RELEASED, "pooling": "cls", "batch_size": 64}},
)
INFERSENT = replace(
    MAUDE,
    name="infersent",
    summary="Whether a reply follows its dialogue: learned recurrent encoders of context and reply, no reference.",
    citation="Conneau et al. 2017, Supervised Learning of Universal Sentence Representations; as in Sinha et al. 2020",
    papers=("conneau-etal-2017-supervised", "sinha-etal-2020-learning"),
    implementation=f"{_PLACE}.rivals:InferSent",
    train_options=(*COMMON, *READER, DIFFERENCE, *CLASSIFIER),
    profile_defaults={
        RECOMMENDED: {"max_length": 64},
        PAPER: {**RELEASED, "embedding": 300, "hidden": 300, "batch_size": 1024, "dropout": 0.0},
    },
)
RUBER = replace(
    MAUDE,
    name="ruber",
    summary="Whether a reply follows its context, its similarity to a reference, or both blended.",
    scale=(-1.0, 1.0),
    options=(*SCORING, *_FORMS),
    citation="Tao et al. 2018, RUBER: An Unsupervised Method for Automatic Evaluation of Open-Domain Dialog Systems",
    papers=("tao-etal-2018-ruber",),
    implementation=f"{_PLACE}.ruber:Ruber",
    train_options=(*COMMON, *READER, *CLASSIFIER),
    profile_defaults={
        RECOMMENDED: {"max_length": 64},
        PAPER: {**RELEASED, "embedding": 300, "hidden": 300, "dropout": 0.0},
    },
)
ENTRIES = (MAUDE, RUBER, INFERSENT, BERT_NLI)
