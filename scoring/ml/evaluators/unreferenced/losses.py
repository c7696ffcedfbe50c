"""Losses over a true reply and its false ones, and the options that each loss reads.

Explained in docs/explanation/evaluators/unreferenced.md#loss.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from evalapp.translation import gettext as _
from scoring.ml.errors import InvalidOption
from scoring.ml.training.job import FitJob

#: These options change the weight of true replies, which the hinge loss compares with each false one of their row.
_OF_NCE = ("positive_weight", "paraphrased")


def check_loss(job: FitJob) -> None:
    """Raise `InvalidOption` for an option of the `job` that its loss does not read."""
    if job.text("loss") != "hinge":
        return
    default = job.entry.parse_train_options(job.profile, {})
    for name in _OF_NCE:
        if job.options[name] != default[name]:
            raise InvalidOption(job.name, name, _("is not read by loss=hinge: leave it out, or take loss=nce"))


def nce_loss(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Mean over all replies of -log s for true and -log(1 - s) for false ones, s = sigmoid(logit), weighted.

    `logits` and `weights` (rows, replies), `targets` (replies,) of 0 and 1; weight 0 leaves a reply out. Sinha et al.
    2020, equation 2, as released: a plain mean.
    """
    wanted = targets.expand_as(logits)
    total = functional.binary_cross_entropy_with_logits(logits, wanted, weight=weights, reduction="sum")
    return total / weights.sum().clamp_min(1e-9)


def hinge_loss(logits: Tensor, targets: Tensor, weights: Tensor, margin: float) -> Tensor:
    """Return the mean over the false replies of max(0, margin - s(true) + s(false)), s = sigmoid(logit) (Tao et al.
    2018).

    `logits` and `weights` are (rows, replies), `targets` (replies,) 0 or 1. The first reply of a row is the true one,
    compared with the false ones of the row.
    """
    scores = torch.sigmoid(logits)
    false = targets < 0.5
    gaps = functional.relu(margin - scores[:, :1] + scores[:, false])
    counted = weights[:, false]
    return (gaps * counted).sum() / counted.sum().clamp_min(1e-9)
