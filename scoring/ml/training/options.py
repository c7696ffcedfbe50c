"""Options that most evaluators share, so that they are named and explained alike."""

from __future__ import annotations

from scoring.ml import option_checks
from scoring.ml.options import ENCODER, choice, flag, integer, number, text

MAX_LENGTH = integer("max_length", None, "Longest input in tokens; none is what the encoder reads.", minimum=8)
INPUTS = choice(
    "inputs",
    ("both", "text", "context"),
    "Input of the network: both; text alone; context alone. The last two are controls: they cannot know whether a "
    "text fits its context.",
    advanced=True,
)
RATINGS = choice(
    "ratings",
    ("raw", "z", "z-shrunk", "rank"),
    "How ratings by different raters are made comparable: raw; z-scores per rater (z-shrunk: mean and spread shrunk "
    "towards those of all raters); rank within an item.",
)
BATCH_SIZE = integer("batch_size", 32, "Examples in one step.", minimum=1)
EPOCHS = integer("epochs", 3, "Passes over the training data.", minimum=1)
LEARNING_RATE = number("learning_rate", 2e-5, "Step size of the optimiser.", minimum=0, maximum=1)
HEAD_LEARNING_RATE = number(
    "head_learning_rate",
    None,
    "Step size for the weights outside the encoder; none is learning_rate.",
    minimum=0,
    maximum=1,
)
STAGES = choice(
    "stages",
    ("best", "both", "head", "together"),
    "best fits the head to its optimum on the frozen encoder, then trains both, and keeps the one that is better on "
    "the held-out part; both always keeps the second; head trains the head alone, which takes seconds; together trains "
    "both from a random head, as in the papers.",
)
FEATURES = choice(
    "features",
    ("joint", "separate"),
    "joint: the encoder reads the texts that are judged together as one input, as in the papers. separate: it reads "
    "each alone, and the head their vectors a and b, |a - b| and a * b; with stages=head training takes seconds.",
)
PATIENCE = integer(
    "patience",
    None,
    "Stop after this number of evaluations without improvement; none never stops early.",
    minimum=1,
    optional=True,
)
MAX_STEPS = integer(
    "max_steps",
    None,
    "Stop each part of the training after this number of steps; none is no limit.",
    minimum=1,
    advanced=True,
)
TRAIN_DTYPE = choice(
    "train_dtype",
    ("fp32", "bf16"),
    "Number format of training; bf16 is faster on GPUs and on processors with bf16 units.",
    advanced=True,
)
GRADIENT_CHECKPOINTING = flag(
    "gradient_checkpointing", False, "Save memory in training by recomputing activations.", advanced=True
)
TRAIN_DEVICE = text("train_device", "auto", "auto, cpu, cuda or cuda:N.", advanced=True, check=option_checks.device)
#: Common machines have no more GPUs; every process is a Python with torch and the encoder.
MOST_PROCESSES = 16
PROCESSES = integer(
    "processes",
    1,
    "Number of GPUs that share the training, each with its rows of every batch of batch_size. Weights equal those of "
    "one GPU up to rounding, apart from random dropout and hints. With train_device=cpu the processes share the "
    "processor, which saves no time.",
    minimum=1,
    maximum=MOST_PROCESSES,
    advanced=True,
)

#: Options of every evaluator whose encoder learns.
FINETUNING = (
    ENCODER,
    MAX_LENGTH,
    BATCH_SIZE,
    EPOCHS,
    STAGES,
    FEATURES,
    LEARNING_RATE,
    HEAD_LEARNING_RATE,
    PATIENCE,
    MAX_STEPS,
    TRAIN_DTYPE,
    GRADIENT_CHECKPOINTING,
    TRAIN_DEVICE,
    PROCESSES,
)
