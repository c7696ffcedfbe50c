"""Options of everything that scores with an encoder, so that they are named and explained alike. No torch here."""

from __future__ import annotations

from scoring.ml import option_checks
from scoring.ml.catalogue import Option

ENCODER = Option(
    "encoder",
    "str",
    None,
    "Name or folder of a transformers encoder; none is the installed MiniLM.",
    names_model=True,
)
POOLING = Option(
    "pooling", "str", "mean", "Vector of a text: the mean of its tokens, or its first token.", choices=("mean", "cls")
)
#: Number format, device and batches of scoring.
SCORING = (
    Option("dtype", "str", "fp32", "Number format of the network; bf16 is faster on a GPU.", choices=("fp32", "bf16")),
    Option("device", "str", "auto", "auto, cpu, cuda or cuda:N.", check=option_checks.device),
    Option("batch_tokens", "int", None, "Token budget of a batch; none suits the device.", minimum=1),
)
