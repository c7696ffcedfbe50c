"""The callback in a real `Trainer`: a tiny random GPT-2 for a few steps, with comparers that follow a script, hang or
fail. Scripted texts from `generate` identify the checkpoint."""

from __future__ import annotations

import json
import logging
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch
from transformers import GPT2LMHeadModel, T5Config, T5ForConditionalGeneration, Trainer, TrainerCallback

from evalapp.client import BadRequest, Client, ConnectionFailed, NotAllowed, NotFound
from evalapp.client.callback import ComparativeStopping, Generation, _preserve_state
from evalapp.client.stopping import TookTooLong
from tests.cast import make_cast
from tests.evalapp.client.tiny import ByNumber, Lengths, Letters, Numbers, Rows, arguments, tiny
from tests.evalapp.common.conftest import file_database

__all__ = ["file_database"]
ROOT = Path(__file__).resolve().parents[3]


def train(folder, callback, model=None, resume=None, **changes) -> Trainer:
    trainer = Trainer(
        model or tiny(), arguments(folder, **changes), train_dataset=Rows(), eval_dataset=Rows(), callbacks=[callback]
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def test_stops_by_the_rule_and_names_the_best_earlier_checkpoint(tmp_path):
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


def draw() -> float:
    return random.random() + float(np.random.rand()) + float(torch.rand(()))


class Drawing(Numbers):
    """Draws random numbers from every generator."""

    def __call__(self, model, inputs):
        model.train()
        return super().__call__(model, [draw() for _ in inputs])


class Seeding(Numbers):
    def __call__(self, model, inputs):
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        return super().__call__(model, inputs)


class Undecided:
    """A comparer that decides at random."""

    def compare(self, a, b):
        return [draw() - 1.5 for _ in a]


class RandomNumbers(TrainerCallback):
    """Records what training draws after each evaluation. GPT-2 uses such numbers for dropout."""

    def __init__(self) -> None:
        self.drawn: list[float] = []

    def on_evaluate(self, args, state, control, **kwargs):
        self.drawn.append(draw())


def trained(folder, *callbacks) -> tuple[list[float], list[torch.Tensor]]:
    numbers = RandomNumbers()
    settings = arguments(folder, max_steps=4, save_strategy="no")
    trainer = Trainer(tiny(), settings, train_dataset=Rows(), eval_dataset=Rows(), callbacks=[*callbacks, numbers])
    trainer.train()
    return numbers.drawn, list(trainer.model.parameters())


@pytest.mark.parametrize(
    ("comparer", "generate"),
    [
        (Lengths(), Generation(Letters(), max_new_tokens=3, sample=True)),
        (ByNumber(), Drawing(1, 2)),
        (ByNumber(), Seeding(1, 2)),
        (Undecided(), Numbers(1)),
    ],
    ids=["sampling", "drawing", "seeding", "comparing"],
)
def test_training_is_unchanged_by_the_callback(tmp_path, comparer, generate):
    numbers, weights = trained(tmp_path / "a")
    callback = ComparativeStopping(comparer, ["ab"], generate=generate)
    same_numbers, same_weights = trained(tmp_path / "b", callback)
    assert same_numbers == numbers
    assert all(map(torch.equal, same_weights, weights))
    assert [check.n for check in callback.monitor.rule.checks] == [0, 1, 2, 2]


def test_loading_a_comparer_draws_no_random_numbers_from_training(monkeypatch):
    monkeypatch.setattr("scoring.ml.load", lambda folder: draw() and ByNumber())
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    ComparativeStopping("folder", ["x"], generate=Numbers(1))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("begun", [True, False])
def test_random_state_of_every_cuda_device_is_restored(monkeypatch, begun):
    """No such device exists here, so the states are marked. If CUDA is not initialised, a check does not initialise
    it."""
    states, put = [[torch.tensor([1]), torch.tensor([2])]], []
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: begun)
    monkeypatch.setattr("torch.cuda.get_rng_state_all", states.pop)
    monkeypatch.setattr("torch.cuda.set_rng_state_all", put.append)
    with _preserve_state():
        pass
    assert [[int(state) for state in found] for found in put] == ([[1, 2]] if begun else [])
    assert len(states) == (not begun)


def test_each_module_keeps_its_mode(tmp_path):
    """A module may be frozen in evaluation mode while the others are trained."""
    seen = []

    class Modes(TrainerCallback):
        def on_evaluate(self, args, state, control, model, **kwargs):
            if not seen:
                model.train()
                model.transformer.wte.eval()
            seen.append([part.training for part in model.modules()])

    callback = ComparativeStopping(ByNumber(), ["x"], generate=Drawing(1))
    settings = arguments(tmp_path, max_steps=1, save_strategy="no")
    trainer = Trainer(
        tiny(), settings, train_dataset=Rows(), eval_dataset=Rows(), callbacks=[modes := Modes(), callback, modes]
    )
    trainer.train()
    assert seen[0] == seen[1]
    assert set(seen[0]) == {True, False}


def test_generates_with_the_model_itself(tmp_path):
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


def test_missing_generate_is_reported_at_the_start(tmp_path):
    with pytest.raises(ValueError, match="generate=, or a Trainer with processing_class"):
        train(tmp_path, ComparativeStopping(ByNumber(), ["x"]))


class Hanging:
    def __init__(self) -> None:
        self.release = threading.Event()

    def compare(self, a, b):
        self.release.wait(60)
        return [-1] * len(a)


def test_hanging_comparer_delays_training_once(tmp_path, caplog):
    comparer = Hanging()
    callback = ComparativeStopping(comparer, ["x"], generate=Numbers(1), timeout=1.0)
    start = time.monotonic()
    with caplog.at_level(logging.WARNING, logger="evalapp.client"):
        trainer = train(tmp_path, callback, max_steps=5, save_strategy="no")
    assert time.monotonic() - start < 50  # out of sixty seconds
    comparer.release.set()
    assert trainer.state.global_step == 5
    assert not callback.stopped
    said = [record.message for record in caplog.records if record.name.startswith("evalapp.")]
    assert [line.split(" (")[0] for line in said] == [
        "step 2 is not compared with earlier checkpoints",
        "4 checks went without a comparison",
    ]


class Deaf(GPT2LMHeadModel):
    """Its `generate` ignores `max_time` but records it."""

    def generate(self, input_ids, max_time=None, **options):
        self.given = [*getattr(self, "given", []), (len(input_ids), max_time)]
        time.sleep(0.3)
        return input_ids


def test_model_that_ignores_the_time_limit_costs_less_and_less(tmp_path, caplog):
    generate = Generation(Letters(), max_new_tokens=4)
    callback = ComparativeStopping(Lengths(), ["ab"], generate=generate, timeout=0.2)
    with caplog.at_level(logging.WARNING, logger="evalapp.client"):
        trainer = train(tmp_path, callback, model=Deaf(tiny().config), save_strategy="no")
    assert (trainer.state.global_step, len(trainer.model.given)) == (12, 4)  # at steps 1, 3, 6 and 11
    assert caplog.text.count("0 of 1 texts were written in 0.3") == 4
    assert callback.monitor.missed == 12
    assert not callback.stopped


def test_unavailable_server(tmp_path, caplog):
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", "t", retries=0) as client:
        callback = ComparativeStopping(client.evaluator("comparative-1"), ["x"], generate=Numbers(1), patience=1)
        trainer = train(tmp_path, callback, max_steps=4, save_strategy="no")
        with pytest.raises(ConnectionFailed):
            client.evaluator("comparative-1").score(["x"])
    assert trainer.state.global_step == 4
    assert callback.monitor.missed == 3
    assert caplog.text.count("could not be tried before training (ConnectionFailed") == 1
    assert caplog.text.count("is not compared with earlier checkpoints (ConnectionFailed") == 1


@pytest.mark.parametrize(
    ("name", "scopes", "error", "words"),
    [
        ("comparative", ["read"], BadRequest, "must be trained"),
        ("comparative-9", ["read"], NotFound, "comparative-9"),
        ("comparative-9", ["annotate"], NotAllowed, "lacks the scope “read”"),
    ],
)
def test_refusal_of_the_server_is_raised_before_training(file_database, name, scopes, error, words):
    """A file, since the comparer runs in another thread."""
    from evalapp.accounts.services import create_token
    from evalapp.wsgi import application

    secret = create_token(user=make_cast().researcher, name="client", scopes=scopes, days=1)[1]
    client = Client("http://testserver", secret, transport=httpx.WSGITransport(app=application), retries=0)
    folder = file_database / "training"
    with pytest.raises(error, match=words):
        train(folder, ComparativeStopping(client.evaluator(name), ["x"], generate=Numbers(1)), max_steps=3)
    assert not list(folder.glob("checkpoint-*"))


def test_resumed_training_continues_its_state(tmp_path):
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


def test_training_that_selects_by_a_metric_keeps_its_best(tmp_path):
    callback = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(3, 2, 1), patience=2)
    trainer = train(tmp_path, callback, load_best_model_at_end=True, save_total_limit=None)
    assert (trainer.state.global_step, callback.best_step) == (3, 1)
    assert trainer.state.best_model_checkpoint == str(tmp_path / "checkpoint-3")  # by eval_loss, which is still falling
    assert callback.best_checkpoint == tmp_path / "checkpoint-1"


def test_one_check_for_several_evaluation_sets(tmp_path):
    callback = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(1, 2, 3))
    settings = arguments(tmp_path, max_steps=3, save_strategy="no")
    both = {"a": Rows(), "b": Rows()}
    Trainer(tiny(), settings, train_dataset=Rows(), eval_dataset=both, callbacks=[callback]).train()
    assert [check.checkpoint for check in callback.monitor.rule.checks] == [1, 2, 3]


def test_model_before_the_first_step_may_be_the_best(tmp_path, caplog):
    callback = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(9, 8, 7), patience=2)
    with caplog.at_level(logging.INFO, logger="evalapp.client"):
        trainer = train(tmp_path, callback, eval_on_start=True)
    assert (trainer.state.global_step, callback.best_step, callback.best_checkpoint) == (2, 0, None)
    assert "step 2: the model keeps losing; the best checkpoint is that of step 0" in caplog.text


def test_with_room_for_one_checkpoint_the_best_remains(tmp_path):
    """During training the newest is also stored, to continue from after a crash."""
    saved = []

    class Saved(TrainerCallback):
        def on_save(self, args, state, control, **kwargs):
            saved.append(sorted(int(path.name.split("-")[1]) for path in tmp_path.glob("checkpoint-*")))

    callback = ComparativeStopping(ByNumber(), ["x"], generate=Numbers(2, 3, 1, 0.5), patience=2)
    settings = arguments(tmp_path, save_total_limit=1)
    trainer = Trainer(tiny(), settings, train_dataset=Rows(), eval_dataset=Rows(), callbacks=[callback, Saved()])
    trainer.train()
    assert saved == [[1], [2], [2, 3], [2, 4]]
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]
    assert callback.best_checkpoint == tmp_path / "checkpoint-2"


@pytest.mark.slow
def test_two_processes_stop_together_on_the_first_ones_decision(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    env |= {"MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "tests.evalapp.client.one_of_two", str(tmp_path)]
    both = [
        subprocess.Popen(
            command, cwd=ROOT, env={**env, "RANK": rank, "LOCAL_RANK": rank}, text=True,
            stdout=subprocess.PIPE, stderr=(tmp_path / f"said-{rank}").open("w"),
        )
        for rank in ("0", "1")
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=240)[0] for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0, 0], (tmp_path / "said-1").read_text()[-2000:]
    first, second = [json.loads(text.splitlines()[-1]) for text in said]
    assert first == {**second, "asked": 4}
    assert second["asked"] == 0
    assert (second["step"], second["stopped"], second["best"], second["folder"]) == (4, True, 2, "checkpoint-2")


# ---- generation -----------------------------------------------------------------------------------------------


def test_batch_writes_the_same_as_single_texts():
    model, inputs = tiny().eval(), ["a", "bcdef", ["gh", "ijk"], ""]
    options = {"max_new_tokens": 6}
    together = Generation(Letters(), **options)(model, inputs)
    alone = [Generation(Letters(), **options, batch_size=1)(model, [one])[0] for one in inputs]
    assert together == alone
    assert len(together) == 4


def test_long_prompts_are_truncated_at_the_start():
    model = tiny().eval()
    cut = Generation(Letters(), max_new_tokens=4, max_prompt_tokens=3)
    assert cut(model, ["xyzabc"]) == cut(model, ["abc"])


def test_sampling_is_seeded_and_preserves_the_random_state():
    model = tiny().eval()
    sampled = Generation(Letters(), max_new_tokens=12, sample=True)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = sampled(model, ["abc", "d"])
    assert torch.equal(torch.rand(3), expected)
    assert sampled(model, ["abc", "d"]) == first
    assert Generation(Letters(), max_new_tokens=12, sample=True, seed=14)(model, ["abc", "d"]) != first


def test_sequence_to_sequence_model():
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=29, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, pad_token_id=0, eos_token_id=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    model, inputs = T5ForConditionalGeneration(config).eval(), ["a", "bcdef"]
    together = Generation(Letters(), max_new_tokens=5)(model, inputs)
    assert together == [Generation(Letters(), max_new_tokens=5)(model, [one])[0] for one in inputs]
    assert all(len(text) <= 5 for text in together)


def test_generation_ends_at_its_time_limit():
    model = tiny().eval()
    with pytest.raises(TookTooLong):
        Generation(Letters(), max_new_tokens=50, batch_size=1)(model, ["abc"] * 500, seconds=0.05)


def test_each_batch_gets_the_remaining_time():
    model = Deaf(tiny().config).eval()
    generation = Generation(Letters(), batch_size=2)
    generation(model, ["abc"] * 3)
    generation(model, ["abc"] * 3, seconds=60)
    assert model.given[:2] == [(2, None), (1, None)]
    (_, first), (_, second) = model.given[2:]
    assert 0 < second <= first - 0.3 < first <= 60


def test_batch_ends_at_its_time_limit():
    """There is time for a few of 10,000 tokens; each takes at least the pause."""

    class Slow(GPT2LMHeadModel):
        steps = 0

        def forward(self, *args, **options):
            self.steps += 1
            time.sleep(0.01)
            return super().forward(*args, **options)

    config = tiny().config
    config.n_positions = 512
    model = Slow(config).eval()
    model.generation_config.eos_token_id = None
    with pytest.raises(TookTooLong, match=r"0 of 1 texts were written in .* s, of 0\.1 s"):
        Generation(Letters(), max_new_tokens=400)(model, ["abc"], seconds=0.1)
    assert 1 <= model.steps <= 12
