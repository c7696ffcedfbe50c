"""A tiny random GPT-2 and a few training rows, with comparers and a `generate` that follow a script. Django-free, since
separate processes also import it."""

from __future__ import annotations

import threading

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments


class Letters:
    """A tokenizer of lower-case letters: a is 3; 0 pads, 1 begins, 2 ends."""

    pad_token_id, bos_token_id, eos_token_id = None, 1, 2

    def __call__(self, text):
        return {"input_ids": [3 + (ord(letter) - 97) % 26 for letter in text if letter.isalpha()]}

    def batch_decode(self, rows, skip_special_tokens):
        return ["".join(chr(94 + int(k)) for k in row if int(k) > 2) for row in rows]


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        ids = torch.arange(index, index + 6) % 26 + 3
        return {"input_ids": ids, "labels": ids}


def tiny(**changes) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=29, n_positions=64, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=2, **changes
    )
    return GPT2LMHeadModel(config)


def arguments(folder, **changes) -> TrainingArguments:
    usual = {
        "output_dir": str(folder), "max_steps": 12, "eval_strategy": "steps", "eval_steps": 1, "save_strategy": "steps",
        "save_steps": 1, "save_total_limit": 2, "per_device_train_batch_size": 4, "per_device_eval_batch_size": 32,
        "report_to": [], "use_cpu": True, "disable_tqdm": True, "logging_steps": 100, "seed": 3,
        "dataloader_pin_memory": False, "save_only_model": True, "learning_rate": 1e-3,
    }  # fmt: skip
    return TrainingArguments(**{**usual, **changes})


class ByNumber:
    """The text with the larger number wins."""

    def compare(self, a, b):
        return np.sign([float(x.text) - float(y.text) for x, y in zip(a, b, strict=True)])


class Numbers:
    """A `generate` whose texts encode the quality of the checkpoint."""

    def __init__(self, *numbers: float) -> None:
        self.numbers, self.modes = list(numbers), []

    def __call__(self, model, inputs):
        self.modes.append((model.training, torch.is_grad_enabled(), threading.current_thread().name))
        number = self.numbers.pop(0) if len(self.numbers) > 1 else self.numbers[0]
        return [str(number)] * len(inputs)


class Lengths:
    """The longer text wins."""

    def compare(self, a, b):
        return [len(x.text) - len(y.text) for x, y in zip(a, b, strict=True)]
