"""The callback in a real `Trainer`: a tiny random GPT-2 on a few steps, with comparers that follow a script, hang or
fail. A checkpoint is told apart by the texts a scripted `generate` gives it."""

from __future__ import annotations

import json
import logging
import threading
import time

import httpx
import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments

from evalapp.client import BadRequest, Client, ConnectionFailed, NotAllowed, NotFound
from evalapp.client.callback import ComparativeStopping, Generation
from evalapp.client.stopping import TookTooLong
from tests.cast import make_cast
from tests.evalapp.common.conftest import file_database

__all__ = ["file_database"]


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
    """The text with the greater number wins."""

    def compare(self, a, b):
        return np.sign([float(x.text) - float(y.text) for x, y in zip(a, b, strict=True)])


class Numbers:
    """A `generate` whose texts say how good the checkpoint is."""

    def __init__(self, *numbers: float) -> None:
        self.numbers, self.modes = list(numbers), []

    def __call__(self, model, inputs):
        self.modes.append((model.training, torch.is_grad_enabled(), threading.current_thread().name))
        number = self.numbers.pop(0) if len(self.numbers) > 1 else self.numbers[0]
        return [str(number)] * len(inputs)


def train(folder, callback, model=None, resume=None, **changes) -> Trainer:
    trainer = Trainer(
        model or tiny(), arguments(folder, **changes), train_dataset=Rows(), eval_dataset=Rows(), callbacks=[callback]
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def test_it_stops_by_the_rule_and_names_the_checkpoint_before_the_run(tmp_path):
    generate = Numbers(1, 2, 3, 2, 1.5, 1, 0.5, 0.2)
    callback = ComparativeStopping(ByNumber(), ["x", ["y", "z"]], generate=generate)
    trainer = train(tmp_path, callback)
    # step 3 has the best texts; steps 4 to 8 lose against their two predecessors
    assert trainer.state.global_step == 8
    assert (callback.stopped, callback.best_step) == (True, 3)
    assert callback.best_checkpoint == tmp_path / "checkpoint-3"
    assert (callback.best_checkpoint / "model.safetensors").exists()  # spared by save_total_limit=2
    assert trainer.state.best_global_step == 3
    assert trainer.state.best_model_checkpoint == str(tmp_path / "checkpoint-3")
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-3", "checkpoint-8"]
    rows = [row for row in trainer.state.log_history if "comparative_wins" in row]
    assert [row["comparative_best_step"] for row in rows] == [1, 2, 3, 3, 3, 3, 3, 3]
    assert (rows[3]["comparative_wins"], rows[3]["comparative_ties"], rows[3]["comparative_losses"]) == (0, 2, 2)
    assert rows[4]["comparative_lose_rate"] == 1.0
    assert "comparative_lose_rate" not in rows[0]
    saved = json.loads((tmp_path / "checkpoint-8" / "trainer_state.json").read_text())
    assert saved["best_global_step"] == 3
    assert set(generate.modes) == {(False, False, "comparative-stopping")}


def test_training_is_the_same_as_without(tmp_path):
    plain = Trainer(tiny(), arguments(tmp_path / "a", max_steps=3), train_dataset=Rows(), eval_dataset=Rows())
    plain.train()
    generation = Generation(Letters(), max_new_tokens=3, sample=True)
    callback = ComparativeStopping(Lengths(), ["ab"], generate=generation)
    watched = train(tmp_path / "b", callback, max_steps=3)
    for one, other in zip(plain.model.parameters(), watched.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert callback.monitor.missed == 0


class Lengths:
    def compare(self, a, b):
        return [len(x.text) - len(y.text) for x, y in zip(a, b, strict=True)]


def test_it_writes_with_the_model_itself(tmp_path):
    callback = ComparativeStopping(Lengths(), ["abc", "de"])
    trainer = Trainer(
        tiny(),
        arguments(tmp_path, max_steps=3, save_strategy="no"),
        train_dataset=Rows(),
        eval_dataset=Rows(),
        callbacks=[callback],
        processing_class=Letters(),
        data_collator=lambda rows: {key: torch.stack([row[key] for row in rows]) for key in rows[0]},
    )
    trainer.train()
    assert [check.n for check in callback.monitor.rule.checks] == [0, 2, 4]
    lines = (tmp_path / "comparative_stopping.jsonl").read_text().splitlines()
    assert [len(json.loads(line)["texts"]) for line in lines] == [2, 2, 2]


def test_without_a_way_to_generate_it_says_so_at_the_start(tmp_path):
    with pytest.raises(ValueError, match="generate=, or a Trainer with processing_class"):
        train(tmp_path, ComparativeStopping(ByNumber(), ["x"]))


class Hanging:
    def __init__(self) -> None:
        self.release = threading.Event()

    def compare(self, a, b):
        self.release.wait(60)
        return [-1] * len(a)


def test_a_hanging_comparer_holds_training_up_once(tmp_path, caplog):
    comparer = Hanging()
    callback = ComparativeStopping(comparer, ["x"], generate=Numbers(1), timeout=1.0)
    start = time.monotonic()
    with caplog.at_level(logging.WARNING, logger="evalapp.client"):
        trainer = train(tmp_path, callback, max_steps=5, save_strategy="no")
    assert time.monotonic() - start < 50  # of sixty seconds
    comparer.release.set()
    assert trainer.state.global_step == 5
    assert not callback.stopped
    said = [record.message for record in caplog.records if record.name.startswith("evalapp.")]
    assert [line.split(" (")[0] for line in said] == [
        "step 2 is not compared with its predecessors",
        "4 checks went without a comparison",
    ]


def test_a_server_that_is_down(tmp_path, caplog):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", "t", retries=0) as client:
        callback = ComparativeStopping(client.evaluator("comparative-1"), ["x"], generate=Numbers(1), patience=1)
        trainer = train(tmp_path, callback, max_steps=4, save_strategy="no")
        with pytest.raises(ConnectionFailed):
            client.evaluator("comparative-1").score(["x"])
    assert trainer.state.global_step == 4
    assert callback.monitor.missed == 3
    assert caplog.text.count("could not be asked before training begins (ConnectionFailed") == 1
    assert caplog.text.count("is not compared with its predecessors (ConnectionFailed") == 1


@pytest.mark.parametrize(
    ("name", "scopes", "error", "words"),
    [
        ("comparative", ["read"], BadRequest, "name one that was trained"),
        ("comparative-9", ["read"], NotFound, "comparative-9"),
        ("comparative-9", ["annotate"], NotAllowed, "lacks the scope “read”"),
    ],
)
def test_what_the_server_refuses_is_said_before_training_begins(file_database, name, scopes, error, words):
    """A file, since the comparer asks from a thread of its own."""
    from evalapp.accounts.services import create_token
    from evalapp.wsgi import application

    secret = create_token(user=make_cast().researcher, name="client", scopes=scopes, days=1)[1]
    client = Client("http://testserver", secret, transport=httpx.WSGITransport(app=application), retries=0)
    folder = file_database / "training"
    with pytest.raises(error, match=words):
        train(folder, ComparativeStopping(client.evaluator(name), ["x"], generate=Numbers(1)), max_steps=3)
    assert not list(folder.glob("checkpoint-*"))


def test_a_resumed_training_goes_on_where_it_was(tmp_path):
    numbers = [1, 3, 2, 1.5, 1, 0.5, 0.2]
    whole = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(*numbers), patience=4)
    train(tmp_path / "whole", whole, save_total_limit=None, save_only_model=False)
    first = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(*numbers), patience=4)
    folder = tmp_path / "parts"
    train(folder, first, max_steps=4, save_total_limit=None, save_only_model=False)
    second = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(*numbers[4:]), patience=4)
    trainer = train(folder, second, resume=str(folder / "checkpoint-4"), save_total_limit=None, save_only_model=False)
    assert second.monitor.rule.checks == whole.monitor.rule.checks
    assert (whole.best_step, second.best_step, second.stopped) == (3, 3, True)
    assert second.best_checkpoint == folder / "checkpoint-3"
    again = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(9), patience=4)
    last = str(folder / f"checkpoint-{trainer.state.global_step}")
    train(folder, again, resume=last, save_total_limit=None, save_only_model=False)
    assert (again.stopped, again.best_step) == (True, 3)


def test_a_training_that_chooses_by_a_metric_keeps_its_own_best(tmp_path):
    callback = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(3, 2, 1), patience=2)
    trainer = train(tmp_path, callback, load_best_model_at_end=True, save_total_limit=None)
    assert (trainer.state.global_step, callback.best_step) == (3, 1)
    assert trainer.state.best_model_checkpoint == str(tmp_path / "checkpoint-3")  # by eval_loss, which still falls
    assert callback.best_checkpoint == tmp_path / "checkpoint-1"


# ---- generation -----------------------------------------------------------------------------------------------


def test_a_batch_writes_what_single_texts_do():
    model, inputs = tiny().eval(), ["a", "bcdef", ["gh", "ijk"], ""]
    options = {"max_new_tokens": 6}
    together = Generation(Letters(), **options)(model, inputs)
    alone = [Generation(Letters(), **options, batch_size=1)(model, [one])[0] for one in inputs]
    assert together == alone
    assert len(together) == 4


def test_long_prompts_lose_their_beginning():
    model = tiny().eval()
    cut = Generation(Letters(), max_new_tokens=4, max_prompt_tokens=3)
    assert cut(model, ["xyzabc"]) == cut(model, ["abc"])


def test_sampling_is_seeded_and_leaves_the_random_numbers_alone():
    model = tiny().eval()
    sampled = Generation(Letters(), max_new_tokens=12, sample=True)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = sampled(model, ["abc", "d"])
    assert torch.equal(torch.rand(3), expected)
    assert sampled(model, ["abc", "d"]) == first
    assert Generation(Letters(), max_new_tokens=12, sample=True, seed=14)(model, ["abc", "d"]) != first


def test_a_sequence_to_sequence_model():
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=29, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, pad_token_id=0, eos_token_id=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    model, inputs = T5ForConditionalGeneration(config).eval(), ["a", "bcdef"]
    together = Generation(Letters(), max_new_tokens=5)(model, inputs)
    assert together == [Generation(Letters(), max_new_tokens=5)(model, [one])[0] for one in inputs]
    assert all(len(text) <= 5 for text in together)


def test_generating_ends_when_its_time_is_over():
    model = tiny().eval()
    with pytest.raises(TookTooLong):
        Generation(Letters(), max_new_tokens=50, batch_size=1)(model, ["abc"] * 500, seconds=0.05)
