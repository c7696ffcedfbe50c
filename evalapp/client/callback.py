"""Early stopping by the comparative evaluator in a `transformers` training. Needs transformers and torch; rule and
time-outs are in `evalapp.client.stopping`."""

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evalapp.client.errors import InvalidArgument, MissingPackage
from evalapp.client.stopping import Comparer, Input, Monitor, TookTooLong
from evalapp.stats.planning.stopping import PATIENCE, PREVIOUS

try:
    import torch
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
except ImportError as error:
    raise MissingPackage("transformers[torch]", "evalapp.client.callback") from error

log = logging.getLogger(__name__)

#: `generate(model, inputs)` -> a text for each input.
Generate = Callable[[Any, Sequence[Input]], Sequence[str]]
JOURNAL = "comparative_stopping.jsonl"
#: No checkpoint, in messages between processes. Step 0 is a checkpoint with `eval_on_start`.
NONE = -1


def join_turns(turns: Input) -> str:
    """Return `turns`, a text or several, as lines."""
    return (turns if isinstance(turns, str) else "\n".join(turns)) + "\n"


@contextmanager
def _preserve_state(model: Any = None) -> Iterator[None]:
    """Restore the random states of Python, NumPy and PyTorch (CPU and all CUDA devices) and the mode of each module of
    `model` (training or evaluation) after the block."""
    python, arrays, tensors = random.getstate(), np.random.get_state(), torch.get_rng_state()
    # Reading the state would initialise CUDA.
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    modes = [(part, part.training) for part in model.modules()] if model is not None else []
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)
        torch.set_rng_state(tensors)
        if devices:
            torch.cuda.set_rng_state_all(devices)
        for part, was_training in modes:
            part.training = was_training


@dataclass(eq=False)
class Generation:
    """Generates texts by `model.generate`, for causal and sequence-to-sequence models: greedily, or sampled from `seed`
    without changing the random numbers of training. Prompts longer than `max_prompt_tokens` are truncated on the left.

    `tokenizer` is the model's; `max_new_tokens`, `temperature`, `top_p` and `sample` are options of generation;
    `prompt` converts an input to text (default: its turns as lines). Texts are generated in the calling thread, in
    batches of `batch_size`. The time is checked after each token and before each batch, so it may be exceeded by a
    forward pass, or by a whole batch if the model's `generate` ignores `max_time`."""

    tokenizer: Any
    _: KW_ONLY
    max_new_tokens: int = 40
    sample: bool = False
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 13
    batch_size: int = 16
    max_prompt_tokens: int = 256
    prompt: Callable[[Input], str] = join_turns

    @property
    def options(self) -> dict[str, Any]:
        """The options of `model.generate`."""
        sampled = {"temperature": self.temperature, "top_p": self.top_p, "top_k": 0} if self.sample else {}
        return {"max_new_tokens": self.max_new_tokens, "do_sample": self.sample, **sampled}

    def __call__(self, model: Any, inputs: Sequence[Input], seconds: float | None = None) -> list[str]:
        """Return a text for each input. Raises TookTooLong after `seconds`."""
        began = time.monotonic()
        device = next(model.parameters()).device
        texts: list[str] = []
        with torch.no_grad(), _preserve_state():
            torch.manual_seed(self.seed)
            for start in range(0, len(inputs), self.batch_size):
                left = None if seconds is None else seconds - (time.monotonic() - began)
                if left is not None and left <= 0:
                    break
                texts += self._batch(model, inputs[start : start + self.batch_size], device, left)
        took = time.monotonic() - began
        if seconds is not None and took > seconds:
            complete = min(len(texts), len(inputs) - 1)  # the last one may be truncated
            raise TookTooLong(f"{complete} of {len(inputs)} texts were written in {took:.3g} s, of {seconds:.3g} s")
        return texts

    def _batch(self, model: Any, inputs: Sequence[Input], device: Any, seconds: float | None) -> list[str]:
        encoder_decoder = bool(model.config.is_encoder_decoder)
        pad = self._pad(model)
        rows = [self._encode(turns, pad) for turns in inputs]
        width = max(map(len, rows))
        ids = torch.full((len(rows), width), pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for k, row in enumerate(rows):
            place = slice(0, len(row)) if encoder_decoder else slice(width - len(row), width)
            ids[k, place] = torch.tensor(row, dtype=torch.long)
            mask[k, place] = 1
        generated = model.generate(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            pad_token_id=pad,
            max_time=seconds,
            **self.options,
        )
        new = generated if encoder_decoder else generated[:, width:]
        return [text.strip() for text in self.tokenizer.batch_decode(new, skip_special_tokens=True)]

    def _encode(self, turns: Input, pad: int) -> list[int]:
        ids: list[int] = self.tokenizer(self.prompt(turns))["input_ids"]
        return ids[-self.max_prompt_tokens :] or [pad]

    def _pad(self, model: Any) -> int:
        candidates = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, model.config.pad_token_id)
        return next((number for number in candidates if isinstance(number, int)), 0)


class ComparativeStopping(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Stops a `Trainer` when its model keeps losing against its own earlier checkpoints.

        trainer.add_callback(ComparativeStopping("comparative-1/", inputs=dev_contexts))

    At each evaluation the model generates a text for each of the fixed `inputs`; `comparer` compares them with the
    texts of the last `previous` checkpoints, and training stops after `patience` consecutive checks with a win rate
    below the lose rate (Zhou and Xu 2020; see `evalapp.stats.planning.stopping`). `comparer` is an object with
    `compare(a, b)`, the folder of a comparative evaluator, or one that the server has trained:
    `client.evaluator("comparative-1", project="weekend")`. The server is tried once when training begins; errors such
    as an unknown name or a missing scope are raised there.

    The callback does not change the trained weights: random states (Python, NumPy, PyTorch) and the mode of the model
    are restored. Only a call that exceeded its time-out and continues in its thread may still draw random numbers.

    A check takes at most `timeout` seconds including generation, even if a comparer or `generate` hangs or the server
    is down. `Generation`, which runs in the thread of training, may exceed it by a forward pass, or by a batch if the
    model's `generate` ignores `max_time`. Training continues after a failed check; the first failure is logged. After a
    check that exceeded its time, which is always logged, the next one is skipped, after another one the next 2, then 4,
    8, ..., until one ends in time. Checks are also skipped while an earlier call is still running.

    `generate(model, inputs)` returns the texts (default: `Generation` with the trainer's `processing_class`). Your own
    function runs in a separate thread, for which training waits; after a time-out it may still use the model while it
    is trained, and its texts are discarded.

    `best_step` is the step of the checkpoint before the current series of lost checks, `best_checkpoint` its folder if
    it was saved. Both are also set as `state.best_global_step` and `state.best_model_checkpoint`, so that
    `save_total_limit` keeps that folder, unless the training selects by a metric (`metric_for_best_model`, which
    `load_best_model_at_end` implies). With `save_total_limit=1` the newest checkpoint is also kept during training and
    deleted by the `Trainer` at the end; with 2 both remain. Counts and rates of each check are added to
    `state.log_history`. The texts are stored in `comparative_stopping.jsonl` in the output folder, from which a resumed
    training continues if its inputs are the same; otherwise the checks start again, and the old file is kept.

    With several processes, the first one generates, compares and informs the others. Parameters must be complete in one
    process: FSDP and DeepSpeed stage 3 are not supported.
    """

    def __init__(
        self,
        comparer: Comparer | str | Path,
        inputs: Sequence[Input],
        *,
        generate: Generate | None = None,
        previous: int = PREVIOUS,
        patience: int = PATIENCE,
        timeout: float = 120.0,
    ) -> None:
        with _preserve_state():  # an existing Trainer has set its seed already
            self.monitor = Monitor(comparer, inputs, previous=previous, patience=patience, timeout=timeout)
        self.generate = generate
        self.best_step: int | None = None
        self.best_checkpoint: Path | None = None
        self.stopped = False
        self._training = False
        self._last_step = -1

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Resume from the journal and try the comparer. `args`, `state` and `control` are those of transformers."""
        if self.generate is None:
            tokenizer = kwargs.get("processing_class")
            if tokenizer is None:
                raise InvalidArgument(
                    "ComparativeStopping needs generate=, or a Trainer with processing_class=tokenizer"
                )
            self.generate = Generation(tokenizer)
        self._training, self._last_step, self.stopped = True, -1, False
        self.best_step = self.best_checkpoint = None
        if state.is_world_process_zero:
            self.monitor.journal = Path(str(args.output_dir)) / JOURNAL
            with _preserve_state():
                self.monitor.resume(state.global_step)
                self.monitor.try_server()

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        """Check the model; stop training if it keeps losing. `args`, `state` and `control` are those of
        transformers."""
        if not self._training or self.stopped or state.global_step == self._last_step:
            return control
        self._last_step = state.global_step
        rule = self.monitor.rule
        if state.is_world_process_zero and not rule.should_stop:  # it should if a stopped training is resumed
            self._check(state, kwargs["model"])
        self.stopped, best = _broadcast(rule.should_stop, rule.best, args.device)
        self._set_best(args, state, best)
        if self.stopped:
            control.should_training_stop = True
            log.info("step %s: the model keeps losing; the best checkpoint is that of step %s", state.global_step, best)
        return control

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Set the best checkpoint once it is saved. `args`, `state` and `control` are those of transformers."""
        if self.best_step is not None:
            self._set_best(args, state, self.best_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Log the number of failed checks. `args`, `state` and `control` are those of transformers."""
        self._training = False
        if self.monitor.missed:
            log.warning("%s checks went without a comparison", self.monitor.missed)

    def _check(self, state: TrainerState, model: Any) -> None:
        generate, inputs = self.generate, self.monitor.inputs
        assert generate is not None  # set when training began
        with _preserve_state(model):
            model.eval()
            if isinstance(generate, Generation):
                check = self.monitor.check(
                    state.global_step, lambda left: generate(model, inputs, seconds=left), in_thread=False
                )
            else:
                check = self.monitor.check(state.global_step, lambda left: _without_gradients(generate, model, inputs))
        row: dict[str, Any] = {"epoch": state.epoch, "step": state.global_step}
        row |= {"comparative_wins": check.wins, "comparative_ties": check.ties, "comparative_losses": check.losses}
        if check.n:
            row |= {"comparative_win_rate": check.win_rate, "comparative_lose_rate": check.lose_rate}
        row["comparative_best_step"] = self.monitor.rule.best
        state.log_history.append(row)

    def _set_best(self, args: TrainingArguments, state: TrainerState, best: int | None) -> None:
        self.best_step = best
        folder = Path(str(args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{best}"
        self.best_checkpoint = folder if best and folder.is_dir() else None
        if args.metric_for_best_model is None and best:
            state.best_global_step = best
            if self.best_checkpoint is not None:
                state.best_model_checkpoint = str(self.best_checkpoint)


def _without_gradients(generate: Generate, model: Any, inputs: Sequence[Input]) -> Sequence[str]:
    with torch.no_grad():  # applies to this thread only
        return generate(model, inputs)


def _broadcast(stop: bool, best: Any, device: Any) -> tuple[bool, int | None]:
    """Return the decision of the first process in all processes; otherwise they would wait for each other forever."""
    step = int(best) if best is not None else NONE
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        decision = torch.tensor([int(stop), step], device=device)
        torch.distributed.broadcast(decision, src=0)
        stop, step = bool(decision[0]), int(decision[1])
    return stop, None if step == NONE else step
