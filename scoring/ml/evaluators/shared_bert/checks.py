"""Checks of the options of `shared-bert` before any training."""

from __future__ import annotations

from evalapp.translation import gettext as _
from scoring.ml.encoders.loading import weight_names
from scoring.ml.errors import EncoderError, InvalidOption, TrainingDataError
from scoring.ml.training.job import FitJob


def check_beta(job: FitJob, n_aspects: int, *, held_out: bool) -> None:
    """Raise `TrainingDataError` if the `job` has beta=grid but nothing `held_out`, and `InvalidOption` unless the
    option has a weight for each of `n_aspects`."""
    wish = job.text("beta")
    if wish == "grid" and not held_out:
        raise TrainingDataError(job.name, _("beta=grid needs held-out data to choose on: give a dev part"))
    if wish not in ("share", "grid"):
        beta_numbers(job.name, wish, n_aspects)


def beta_numbers(name: str, text: str, n: int) -> tuple[float, ...]:
    """Return the `text` of the option `beta` of the evaluator `name` as `n` weights. Raises `InvalidOption`."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) == 1:
        values *= n
    if len(values) != n or not all(0 < value < 1 for value in values):
        message = _("must be share, grid, or %(n)s numbers between 0 and 1, not %(text)r")
        raise InvalidOption(name, "beta", message, n=n, text=text)
    return values


def check_pooler(job: FitJob) -> None:
    """Raise `EncoderError` if the `job` asks for the encoder's own pooler and it has none: transformers would
    initialise one at random."""
    if job.text("pooling") != "pooler":
        return
    names = weight_names(job.encoder)
    if not all(any(name.endswith(f"pooler.dense.{part}") for name in names) for part in ("weight", "bias")):
        raise EncoderError(job.encoder.name, "has no pooler of its own: take pooling=mean or pooling=cls")
