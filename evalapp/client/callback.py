"""Early stopping by the comparative evaluator in a `transformers` training. Needs transformers and torch; the rule
and the time-outs are in `evalapp.client.stopping`."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

#: `generate(model, inputs)` -> one text for each input.
Generate = Callable[[Any, Sequence[Input]], Sequence[str]]
JOURNAL = "comparative_stopping.jsonl"
#: Among processes: no checkpoint. Step 0 is one, with `eval_on_start`.
NONE = -1


def as_prompt(one: Input) -> str:
    """The turns, each on a line of its own."""
    return (one if isinstance(one, str) else "\n".join(one)) + "\n"


@contextmanager
def _training_untouched(model: Any = None) -> Iterator[None]:
    """Whatever is drawn or seeded inside, the random numbers of Python, NumPy and PyTorch (CPU and all CUDA devices) go
    on as if it had not been, and each part of `model` is in the mode it was in, training or evaluation."""
    python, arrays, tensors = random.getstate(), np.random.get_state(), torch.get_rng_state()
    # Where CUDA was not begun, training has drawn nothing there, and asking would begin it.
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


class Generation:
    """Texts from `model.generate`, for causal and sequence-to-sequence models: greedy, or sampled from a seed of its
    own, which leaves the random numbers of training alone. Long prompts lose their beginning.

    It writes in the thread that calls it. Its time is looked at after each token and before each batch; it may be
    exceeded by one forward pass of one batch, and where a model's own `generate` takes no notice of `max_time`, by the
    whole of a batch. With a smaller `batch_size` that is less.

    `prompt` makes the text that the model continues or translates, by default the turns on lines.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        max_new_tokens: int = 40,
        sample: bool = False,
        temperature: float = 1.0,
        top_p: float = 1.0,
        seed: int = 13,
        batch_size: int = 16,
        max_prompt_tokens: int = 256,
        prompt: Callable[[Input], str] = as_prompt,
    ) -> None:
        self.tokenizer, self.prompt, self.seed = tokenizer, prompt, seed
        self.batch_size, self.max_prompt_tokens = batch_size, max_prompt_tokens
        self.options: dict[str, Any] = {"max_new_tokens": max_new_tokens, "do_sample": sample}
        if sample:
            self.options |= {"temperature": temperature, "top_p": top_p, "top_k": 0}

    def __call__(self, model: Any, inputs: Sequence[Input], seconds: float | None = None) -> list[str]:
        """One text for each input. Raises TookTooLong when `seconds` are not enough."""
        began = time.monotonic()
        device = next(model.parameters()).device
        texts: list[str] = []
        with torch.no_grad(), _training_untouched():
            torch.manual_seed(self.seed)
            for start in range(0, len(inputs), self.batch_size):
                left = None if seconds is None else seconds - (time.monotonic() - began)
                if left is not None and left <= 0:
                    break
                texts += self._batch(model, inputs[start : start + self.batch_size], device, left)
        took = time.monotonic() - began
        if seconds is not None and took > seconds:
            whole = min(len(texts), len(inputs) - 1)  # the last one may have been cut
            raise TookTooLong(f"{whole} of {len(inputs)} texts were written in {took:.3g} s, of {seconds:.3g} s")
        return texts

    def _batch(self, model: Any, inputs: Sequence[Input], device: Any, seconds: float | None) -> list[str]:
        encoder_decoder = bool(model.config.is_encoder_decoder)
        pad = self._pad(model)
        rows = [self._ids(one, pad) for one in inputs]
        width = max(map(len, rows))
        ids = torch.full((len(rows), width), pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for k, row in enumerate(rows):
            place = slice(0, len(row)) if encoder_decoder else slice(width - len(row), width)
            ids[k, place] = torch.tensor(row, dtype=torch.long)
            mask[k, place] = 1
        made = model.generate(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            pad_token_id=pad,
            max_time=seconds,
            **self.options,
        )
        new = made if encoder_decoder else made[:, width:]
        return [text.strip() for text in self.tokenizer.batch_decode(new, skip_special_tokens=True)]

    def _ids(self, one: Input, pad: int) -> list[int]:
        ids: list[int] = self.tokenizer(self.prompt(one))["input_ids"]
        return ids[-self.max_prompt_tokens :] or [pad]

    def _pad(self, model: Any) -> int:
        candidates = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, model.config.pad_token_id)
        return next((number for number in candidates if isinstance(number, int)), 0)


class ComparativeStopping(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Stops a `Trainer` when its model keeps losing against its own predecessors.

    At each evaluation the model writes a text for each of the fixed `inputs`; `comparer` compares them with the texts
    of the last `previous` checkpoints, and training stops after `patience` checks in a row with a win rate below the
    lose rate (Zhou and Xu 2020; see `evalapp.stats.planning.stopping`). `comparer` is anything with `compare(a, b)`, a
    folder     with a comparative evaluator, or one that the server has trained, by its name there:
    `client.evaluator("comparative-1", project="weekend")`. The server is asked once when training begins, and what it
    refuses (a name that compares nothing, a token that may not) is raised there.

    Training gets the same weights as without the callback: what `generate` and the comparer draw or seed leaves its
    random numbers alone (Python, NumPy, PyTorch), and the model is in the mode it was in. Only what was given up after
    its time-out, and goes on in its thread, may still draw from them.

    One check takes at most `timeout` seconds, generation included, whether a comparer hangs, a server is down or a
    `generate` never ends; only `Generation`, which writes in training's own thread, may exceed it by one forward pass,
    or by one batch where the model's `generate` takes no notice of `max_time`. Training goes on; the first failure is
    logged. After a check that has used up its time, which is logged each time, the next one is left out, after another
    one the next 2, then 4, 8, ..., until one ends in time. While something that was given up still runs, checks are
    left out, too.

    `generate(model, inputs)` gives the texts; by default `Generation` with the trainer's `processing_class`. A function
    of your own runs in a thread beside training, which waits for it: if it is given up, what it still does may use a
    model that is training again, and its texts are thrown away.

    The step of the checkpoint preceding the present run of lost checks is `best_step`, its folder, if it was saved,
    `best_checkpoint`. Both also stand in `state.best_global_step` and `state.best_model_checkpoint`, so that
    `save_total_limit` spares that folder, unless the training chooses by a metric (`metric_for_best_model`, which
    `load_best_model_at_end` implies). With `save_total_limit=1` the newest checkpoint is kept beside it while training
    lasts, and deleted by the `Trainer` at the end; with 2 both stay. Counts and rates of each check are added to
    `state.log_history`; the texts are kept in `comparative_stopping.jsonl` in the output folder, from which a resumed
    training goes on, if its inputs are the same; else the checks begin anew, and the old file is kept.

    With several processes the first one generates and compares and tells the others. Parameters must be whole in one
    process: FSDP and DeepSpeed stage 3 are not served.
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
        with _training_untouched():  # a Trainer that has been made has drawn its seed already
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
            with _training_untouched():
                self.monitor.resume(state.global_step)
                self.monitor.ask_first()

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        if not self._training or self.stopped or state.global_step == self._last_step:
            return control
        self._last_step = state.global_step
        rule = self.monitor.rule
        if state.is_world_process_zero and not rule.should_stop:  # it has, when a stopped training is resumed
            self._check(state, kwargs["model"])
        self.stopped, best = _agree(rule.should_stop, rule.best, args.device)
        self._name_best(args, state, best)
        if self.stopped:
            control.should_training_stop = True
            log.info("step %s: the model keeps losing; the best checkpoint is that of step %s", state.global_step, best)
        return control

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.best_step is not None:
            self._name_best(args, state, self.best_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._training = False
        if self.monitor.missed:
            log.warning("%s checks went without a comparison", self.monitor.missed)

    def _check(self, state: TrainerState, model: Any) -> None:
        generate, inputs = self.generate, self.monitor.inputs
        assert generate is not None  # set when training began
        with _training_untouched(model):
            model.eval()
            if isinstance(generate, Generation):
                check = self.monitor.check(
                    state.global_step, lambda left: generate(model, inputs, seconds=left), beside=False
                )
            else:
                check = self.monitor.check(state.global_step, lambda left: _without_gradients(generate, model, inputs))
        row: dict[str, Any] = {"epoch": state.epoch, "step": state.global_step}
        row |= {"comparative_wins": check.wins, "comparative_ties": check.ties, "comparative_losses": check.losses}
        if check.n:
            row |= {"comparative_win_rate": check.win_rate, "comparative_lose_rate": check.lose_rate}
        row["comparative_best_step"] = self.monitor.rule.best
        state.log_history.append(row)

    def _name_best(self, args: TrainingArguments, state: TrainerState, best: int | None) -> None:
        self.best_step = best
        folder = Path(str(args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{best}"
        self.best_checkpoint = folder if best and folder.is_dir() else None
        if args.metric_for_best_model is None and best:
            state.best_global_step = best
            if self.best_checkpoint is not None:
                state.best_model_checkpoint = str(self.best_checkpoint)


def _without_gradients(generate: Generate, model: Any, inputs: Sequence[Input]) -> Sequence[str]:
    with torch.no_grad():  # holds for this thread only
        return generate(model, inputs)


def _agree(stop: bool, best: Any, device: Any) -> tuple[bool, int | None]:
    """What the first process decided, in all of them; they save and stop together or wait for each other for ever."""
    step = int(best) if best is not None else NONE
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        told = torch.tensor([int(stop), step], device=device)
        torch.distributed.broadcast(told, src=0)
        stop, step = bool(told[0]), int(told[1])
    return stop, None if step == NONE else step
