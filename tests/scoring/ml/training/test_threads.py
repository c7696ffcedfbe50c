"""A training keeps its number of threads."""

from __future__ import annotations

from pathlib import Path

import torch

from scoring.ml.training.threads import keep_threads


def test_continued_training_uses_the_same_number_of_threads(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert keep_threads(tmp_path) == 1
        torch.set_num_threads(2)
        assert keep_threads(tmp_path) == 1
        assert torch.get_num_threads() == 1
        assert keep_threads(tmp_path / "another") == 1
    finally:
        torch.set_num_threads(before)
