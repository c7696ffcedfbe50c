"""Two items whose reliabilities are small fractions, and an additive network: everything can be worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scoring.ml.evaluators.ream.gold import ItemGold
from scoring.ml.evaluators.ream.training import PreparedItems
from scoring.ml.registry import get_entry
from scoring.ml.training.job import FitJob
from scoring.ml.types import Dataset

PEOPLE = np.array([1.0, 2.0, 3.0])


class Total(torch.nn.Module):
    """The reliability of a set is the sum of a number per reference."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor, groups: Sequence[torch.Tensor]) -> torch.Tensor:
        return self.weight * torch.cat([x[rows, 0].sum(dim=1) for rows in groups])


def prepared() -> PreparedItems:
    """Items A and B with two references and one answer to another query each. Scores of the three outputs are the
    columns; the human scores are 1, 2, 3.

    A: (0) has a reliability of 1, (1) of -1, both (3, 2, 4) of 1/2, and with or instead of one the stranger: (0, 2) and
    (0, 1, 2) of 0, (1, 2) and (2) below. B: (0) of -1, (1) of 1, both (4, 2, 3) of -1/2; (0, 2) and (0, 1, 2) of 0, (2)
    of .866, (1, 2) of .982.
    """
    a = np.array([[0.0, 3.0, 4.0], [2.0, 2.0, 0.0], [4.0, 1.0, 0.0]])
    b = np.array([[4.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    vectors = np.array([[0.8], [-0.3], [-0.4], [-1.1], [0.7], [-1.2]], dtype=np.float32)
    return PreparedItems([ItemGold(a, PEOPLE, 2), ItemGold(b, PEOPLE, 2)], [0, 3], vectors)


def job(folder: Path, **options: Any) -> FitJob:
    """A training without work, for its options and its generators."""
    entry = get_entry("ream")
    return FitJob(entry, Dataset("none"), None, "recommended", entry.parse_train_options("recommended", options), 13,
                  folder)  # fmt: skip
