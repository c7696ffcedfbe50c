"""Options that most evaluators share, so that they are named and explained alike."""

from __future__ import annotations

from scoring.ml import option_checks
from scoring.ml.catalogue import Option
from scoring.ml.options import ENCODER

MAX_LENGTH = Option("max_length", "int", None, "Longest input in tokens; none is what the encoder reads.", minimum=8)
INPUTS = Option(
    "inputs",
    "str",
    "both",
    "Input of the network: both; text alone; context alone. The last two are controls: they cannot know whether a "
    "text fits its context.",
    choices=("both", "text", "context"),
    advanced=True,
)
RATINGS = Option(
    "ratings",
    "str",
    "raw",
    "How ratings by different raters are made comparable: raw; z-scores per rater (z-shrunk: mean and spread shrunk "
    "towards those of all raters); rank within an item.",
    choices=("raw", "z", "z-shrunk", "rank"),
)
BATCH_SIZE = Option("batch_size", "int", 32, "Examples in one step.", minimum=1)
EPOCHS = Option("epochs", "int", 3, "Passes over the training data.", minimum=1)
LEARNING_RATE = Option("learning_rate", "float", 2e-5, "Step size of the optimiser.", minimum=0, maximum=1)
PATIENCE = Option(
    "patience",
    "int",
    None,
    "Stop after this number of evaluations without improvement; none never stops early.",
    minimum=1,
    optional=True,
)
MAX_STEPS = Option(
    "max_steps",
    "int",
    None,
    "Stop each part of the training after this number of steps; none is no limit.",
    minimum=1,
    advanced=True,
)
TRAIN_DTYPE = Option(
    "train_dtype", "str", "fp32", "Number format of training.", choices=("fp32", "bf16"), advanced=True
)
GRADIENT_CHECKPOINTING = Option(
    "gradient_checkpointing", "bool", False, "Save memory in training by recomputing activations.", advanced=True
)
TRAIN_DEVICE = Option(
    "train_device", "str", "auto", "auto, cpu, cuda or cuda:N.", advanced=True, check=option_checks.device
)
#: Common machines have no more GPUs; every process is a Python with torch and the encoder.
MOST_PROCESSES = 16
PROCESSES = Option(
    "processes",
    "int",
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
    LEARNING_RATE,
    PATIENCE,
    MAX_STEPS,
    TRAIN_DTYPE,
    GRADIENT_CHECKPOINTING,
    TRAIN_DEVICE,
    PROCESSES,
)
