"""Training of a network whose encoder learns, with `transformers.Trainer`: checkpoints, resume, best evaluation,
progress.

The evaluator provides loss and batches: its network returns the loss, and `Batches` are ready batches. Several
processes may share a training (`several.py` starts them): each reads its rows of every batch; the first one evaluates,
decides and writes.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import torch
from transformers import (
    PreTrainedConfig,
    PreTrainedModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging as transformers_logging

from scoring.ml.engine import resolve_device
from scoring.ml.network import Network
from scoring.ml.training.curve import BEST, Curve, Evaluate, FinetuneResult, all_finite, finite_or_none, read_result
from scoring.ml.training.head import HEAD, HasHead, HeadData, fit_head, is_head, restore_head, store_head
from scoring.ml.training.job import FitJob
from scoring.ml.training.store import read_tensors, write_whole
from scoring.ml.training.threads import keep_threads
from scoring.ml.training.together import WEIGHT, Shares, Together, current_group

COMPLETE = "complete"
#: Values of `FinetuneSettings.stages`.
TOGETHER, BOTH, BEST_STAGE = "together", "both", "best"
#: Number of weights from which memory left over by earlier phases is worth collecting.
COLLECT_FROM = 50_000_000
CHECKPOINT_SECONDS = 60.0
#: Bytes of a batch's activations from which they are computed again for the gradients instead of being kept.
MOST_ACTIVATIONS = 4 << 30


class Batches(Protocol):
    """One epoch of ready batches: keyword arguments of the network's `forward`, tensors on the CPU.

    A batch must depend on the epoch and its number only, so that a resumed training sees the same batches.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> dict[str, Any]: ...

    def set_epoch(self, epoch: int) -> None:
        """Draw the epoch's batches; called before each epoch."""


@runtime_checkable
class HeadBatches(Batches, Protocol):
    """Batches that also give what the head alone learns from."""

    def head_data(self, network: Any) -> HeadData:
        """Features by the frozen encoder of `network`, with the values and groups of their rows."""


@dataclass(frozen=True)
class FinetuneSettings:
    """Training ends after `epochs` or `max_steps`, or after `patience` evaluations without improvement (None = never).
    Evaluations happen every `evaluate_every` steps (None = every epoch).

    `better` names the metric that chooses the weights; with `lower_is_better` the lowest value wins. Warm-up is a share
    of all steps; afterwards the rate falls linearly to 0, or stays with schedule "constant".

    `stages`: "together" trains head and encoder from the given weights; "head" fits the head alone; "both" fits the
    head first and then trains both; "best" as well, and without a better evaluation the head alone is kept.
    `head_learning_rate` None is `learning_rate`. `from_head`: the head has been trained before, so it is fitted with a
    penalty on the distance to it.
    """

    learning_rate: float
    epochs: int
    better: str = "loss"
    lower_is_better: bool = True
    weight_decay: float = 0.01
    warmup: float = 0.1
    schedule: str = "linear"
    max_grad_norm: float = 1.0
    adam: bool = False
    evaluate_every: int | None = None
    patience: int | None = None
    max_steps: int | None = None
    bf16: bool = False
    gradient_checkpointing: bool = False
    device: str = "auto"
    #: The metrics of an evaluation that enter the curve; None is all.
    curve: tuple[str, ...] | None = None
    stages: str = TOGETHER
    head_learning_rate: float | None = None
    from_head: bool = False


def finetune(
    network: Network,
    batches: Batches,
    settings: FinetuneSettings,
    job: FitJob,
    *,
    phase: str = "training",
    evaluate: Evaluate | None = None,
    after_step: Callable[[Network, int], None] | None = None,
) -> FinetuneResult:
    """Train `network` in place on `batches`; it ends with its best weights, in evaluation mode.

    Checkpoints are in `job.phase_folder(phase)`. A training started there again continues from the last complete one
    and ends with the same weights (on CPU; on a GPU up to non-deterministic kernels); a finished phase is not repeated.
    `settings` say when the training ends and which metric of `evaluate` chooses the weights. A loss or weights that are
    not finite end the training: the last row of its log then has `diverged`, and `kept`, the step of the best weights
    or None; without best weights, `network` is not usable. `after_step(network, step)` may change buffers of the
    network only. If several processes share the training, only the first calls `evaluate`; all other parts of an
    evaluator must behave identically in each process. Unless the stages are "together", `network` is a `HasHead` and
    `batches` are `HeadBatches`.
    """
    folder = job.phase_folder(phase)
    done = read_result(folder, network)
    if done is not None:
        # A training leaves the network on the device.
        network.to(torch.device(resolve_device(settings.device)))  # type: ignore[arg-type]
        return done
    together = current_group()
    if together.processes != job.processes:
        raise RuntimeError(f"{phase} is to be trained by {job.processes} processes, not by {together.processes}")
    folder.mkdir(parents=True, exist_ok=True)
    keep_threads(job.folder)
    set_seed(job.torch_seed(phase))
    keeper = _Keeper(batches, settings, job, phase, evaluate, after_step, together)
    checkpoint = together.agree(lambda: last_checkpoint(folder))
    # A checkpoint contains the head, and the best weights since.
    if settings.stages != TOGETHER and checkpoint is None:
        keeper.steps = _prepare_head(network, batches, settings, job, phase, together)
        keeper.judge_head(network)
        if settings.stages == HEAD:
            return keeper.end(network)
    transformers_logging.disable_progress_bar()
    alone = together.processes == 1
    trainer = _Trainer(
        together,
        settings.head_learning_rate,
        model=network,
        args=_arguments(folder, settings, job, phase, len(batches), together),
        # A dataset whose rows are batches.
        train_dataset=batches if alone else Shares(batches, network, together.processes),
        data_collator=_only,
        callbacks=[keeper],
    )
    trainer.remove_callback(PrinterCallback)
    if sum(weights.numel() for weights in network.parameters()) < COLLECT_FROM:
        # The trainer would collect the garbage of the whole process, which takes longer than a short training.
        trainer.accelerator.free_memory = lambda *objects: list(objects)
    if not together.first:
        # Otherwise dropout would be the same in all processes.
        set_seed(job.torch_seed(f"{phase}:process {together.rank}"))
    keeper.restore(checkpoint, network)
    network.train()
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return keeper.end(network)


def _prepare_head(
    network: Network, batches: Batches, settings: FinetuneSettings, job: FitJob, phase: str, together: Together
) -> int:
    """Fit the head or load the one that was fitted; the number of iterations if nothing else follows, else 0."""
    folder = job.phase_folder(phase)
    network.to(torch.device(resolve_device(settings.device)))  # type: ignore[arg-type]
    fitted = restore_head(network, folder)
    if fitted is None:
        assert isinstance(network, HasHead)
        assert isinstance(batches, HeadBatches)
        network.eval()
        fitted = fit_head(
            network, batches.head_data(network), job, phase, near=settings.from_head or network.has_trained_head
        )
        if together.first:
            store_head(network, fitted, folder)
    return fitted.iterations if settings.stages == HEAD else 0


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint in `folder`; incomplete ones are removed."""
    result = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    for path in reversed(result):
        if (path / COMPLETE).is_file():
            return path
        shutil.rmtree(path, ignore_errors=True)
    return None


def _only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return rows[0]


class _Trainer(Trainer):
    """Keeps the order of the batches and uses the network's own loss."""

    model_accepts_loss_kwargs = False

    def __init__(self, together: Together, head_learning_rate: float | None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.together, self.head_learning_rate = together, head_learning_rate

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """One group of weights per learning rate and decay, if the head has a rate of its own."""
        if self.optimizer is None and self.head_learning_rate is not None:
            network = cast(Network, self.model)
            decayed = set(self.get_decay_parameter_names(network))
            kind, options = self.get_optimizer_cls_and_kwargs(self.args, network)
            groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
            for name, parameter in network.named_parameters():
                if parameter.requires_grad:
                    groups.setdefault((is_head(name), name in decayed), []).append(parameter)
            rates = {True: self.head_learning_rate, False: self.args.learning_rate}
            self.optimizer = kind(
                [
                    {"params": members, "lr": rates[head], "weight_decay": self.args.weight_decay if decays else 0.0}
                    for (head, decays), members in groups.items()
                ],
                **options,
            )
        return super().create_optimizer(model)

    def _get_train_sampler(self, train_dataset: Any = None) -> torch.utils.data.Sampler[int]:
        rows: Any = train_dataset if train_dataset is not None else self.train_dataset
        return torch.utils.data.SequentialSampler(rows)

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **more: Any) -> Any:
        """The loss of a share, weighted so that the mean over the processes is the loss of the batch.

        On a processor, a batch of long texts is recomputed layer by layer, which gives the same gradients: 32 texts of
        512 tokens keep about 10 GB with a small encoder. Graphics cards have attention that keeps less."""
        texts = inputs.get("input_ids")
        if texts is not None and texts.device.type == "cpu" and not self.args.activation_checkpointing:
            _recompute(cast(Network, self.model), texts.shape)
        if self.together.processes == 1:
            return super().compute_loss(model, inputs, *args, **more)
        weight = inputs.pop(WEIGHT)
        network = cast(Network, self.model)
        network.over_all = lambda value: self.together.mean(weight * value)
        return weight * model(**inputs)["loss"]


def estimate_activations(config: PreTrainedConfig, shape: Sequence[int]) -> int:
    """The bytes that an encoder keeps for the gradients of a batch of `shape` (texts, tokens), about: 20 vectors of
    each token in each layer, and three weights between each two tokens of a text in each head, 4 bytes a number."""
    texts, tokens = shape
    of_token = 20 * config.hidden_size + 3 * config.num_attention_heads * tokens
    return int(4 * config.num_hidden_layers * texts * tokens * of_token)


def _recompute(network: Network, shape: Sequence[int]) -> None:
    """Keep all activations of a batch of this `shape`, or only those between layers if there are too many."""
    encoder = next(one for one in network.modules() if isinstance(one, PreTrainedModel) and one is not network)
    many = encoder.supports_gradient_checkpointing and estimate_activations(encoder.config, shape) > MOST_ACTIVATIONS
    if many and not network.is_activation_checkpointing:
        network.activation_checkpointing_enable({"use_reentrant": False})
    elif not many and network.is_activation_checkpointing:
        network.activation_checkpointing_disable()


@dataclass
class _Arguments(TrainingArguments):
    """Pin the Trainer to one device; otherwise it would use all GPUs and split our ready batches across them."""

    one_device: str = "cpu"

    @cached_property
    def _setup_devices(self) -> torch.device:
        result: torch.device = super()._setup_devices
        if self.use_cpu:
            return result
        self._n_gpu = 1
        asked = torch.device(self.one_device)
        device = torch.device("cuda", asked.index or 0)
        torch.cuda.set_device(device)
        return device


def _arguments(
    folder: Path, settings: FinetuneSettings, job: FitJob, phase: str, steps_per_epoch: int, together: Together
) -> _Arguments:
    device = resolve_device(settings.device)
    if together.processes > 1 and device.startswith("cuda"):
        device = f"cuda:{together.rank}"
    # `max_steps` replaces the number of epochs in the Trainer even if it is larger.
    every = steps_per_epoch * settings.epochs
    return _Arguments(
        one_device=device,
        output_dir=str(folder),
        per_device_train_batch_size=1,
        num_train_epochs=settings.epochs,
        max_steps=-1 if settings.max_steps is None else min(settings.max_steps, every),
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        # Adam is AdamW without decay.
        optim="adamw_torch_fused",
        max_grad_norm=settings.max_grad_norm,
        warmup_steps=settings.warmup,
        lr_scheduler_type=settings.schedule,
        bf16=settings.bf16,
        activation_checkpointing=settings.gradient_checkpointing,
        activation_checkpointing_kwargs={"use_reentrant": False} if settings.gradient_checkpointing else None,
        save_strategy="no",
        save_total_limit=2,
        eval_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=job.torch_seed(phase),
        data_seed=job.torch_seed(phase),
        use_cpu=device == "cpu",
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        label_names=[],
        # The encoder's own pooler may be unused. The setting also keeps gradients in the same buckets from the first
        # step on, so that a resumed training sums them in the same order.
        ddp_find_unused_parameters=True,
        # Buffers are equal in all processes: everything that changes them is averaged.
        ddp_broadcast_buffers=False,
    )


class _Keeper(Curve, TrainerCallback):
    """Epochs, evaluations, best weights, checkpoints by the clock, progress."""

    def __init__(
        self,
        batches: Batches,
        settings: FinetuneSettings,
        job: FitJob,
        phase: str,
        evaluate: Evaluate | None,
        after_step: Callable[[Network, int], None] | None,
        together: Together,
    ) -> None:
        super().__init__(
            job, phase, settings.better, lower_is_better=settings.lower_is_better, patience=settings.patience
        )
        self.together, self.batches, self.settings = together, batches, settings
        self.evaluate, self.after_step = evaluate, after_step
        self.diverged = False
        self.saved_at = self.began

    def restore(self, checkpoint: Path | None, network: Network) -> None:
        if checkpoint is None:
            return
        content = json.loads((checkpoint / COMPLETE).read_text(encoding="utf-8"))
        total, n = content.pop("open_losses", (0.0, 0))
        network.open_losses = total, n
        for key, value in content.items():
            setattr(self, key, value)

    def judge_head(self, network: Network) -> None:
        """Evaluate the head alone; with the stages "best" it is the one to beat."""
        network.eval()
        row: dict[str, Any] = {"step": 0, "epoch": 0.0, "loss": None, "stage": HEAD}
        if self.evaluate is not None:
            self.latest = self.together.agree(lambda: self._figures(network))
            drawn = self.settings.curve or tuple(self.latest)
            row |= {f"dev_{key}": finite_or_none(self.latest[key]) for key in drawn}
            row |= {"chosen_by": self.better, "alone": finite_or_none(self.latest[self.better])}
            if self.settings.stages != BOTH:
                self.judge(network, self.latest)
                self.worse = 0
        self.log.append(row)

    def note_stages(self) -> None:
        """Add to the row of the head what was kept, and the best figure after fine-tuning."""
        first = self.log[0] if self.log else {}
        if first.get("alone") is None or self.settings.stages == HEAD:
            return
        values = [row.get(f"dev_{self.better}") for row in self.log[1:]]
        known = [value for value in values if value is not None]
        tuned = max(known, key=lambda value: self.sign * value) if known else None
        alone = self.best_step == 0 and self.settings.stages == BEST_STAGE
        first |= {"tuned": tuned, "kept_stage": HEAD if alone else "fine-tuned"}

    def end(self, network: Network) -> FinetuneResult:
        network.over_all = float
        self.note_stages()
        if self.best is None:
            self.write_best(network)
        self.together.wait()
        if self.best is not None:
            network.load_state_dict(read_tensors(self.folder / BEST))
        network.eval()
        if not self.together.first:
            return FinetuneResult(tuple(self.log), self.metrics, self.steps, self.seconds)
        result = self.finish()
        for path in self.folder.glob("checkpoint-*"):
            shutil.rmtree(path, ignore_errors=True)
        return result

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **more: Any) -> None:
        self.first_step = state.global_step
        self.began = self.saved_at = time.monotonic()

    def on_epoch_begin(self, args: Any, state: TrainerState, control: TrainerControl, **more: Any) -> None:
        self.batches.set_epoch(int(state.epoch or 0))

    def on_step_end(
        self, args: Any, state: TrainerState, control: TrainerControl, model: Any = None, **more: Any
    ) -> None:
        self.steps = state.global_step
        network: Network = getattr(model, "module", model)
        # Equal in every process: it belongs to the whole batch.
        if network.last_loss is not None and not math.isfinite(network.last_loss):
            self._diverge(state, control)
            self._report(network, state, saving=True)
            return
        if self.after_step is not None:
            self.after_step(network, state.global_step)
        every = self.settings.evaluate_every
        if every is not None and state.global_step % every == 0:
            self._evaluate(network, state, control)
        # The evaluation that ends an epoch comes after its last step: a checkpoint between the two would lose it.
        ends = state.global_step % len(self.batches) == 0 or state.global_step == state.max_steps
        if not ends:
            self._save_if_due(control)
        self._report(network, state, saving=ends or control.should_save or control.should_training_stop)

    def on_epoch_end(
        self, args: Any, state: TrainerState, control: TrainerControl, model: Any = None, **more: Any
    ) -> None:
        if self.settings.evaluate_every is None and not self.diverged:
            self._evaluate(getattr(model, "module", model), state, control)
        self._save_if_due(control)

    def _save_if_due(self, control: TrainerControl) -> None:
        # Not after the stop: a run that resumed there would not know that the training had ended.
        if control.should_training_stop:
            return
        if self.together.agree(lambda: time.monotonic() - self.saved_at > CHECKPOINT_SECONDS):
            control.should_save = True

    def on_save(self, args: Any, state: TrainerState, control: TrainerControl, model: Any = None, **more: Any) -> None:
        """Mark a checkpoint as complete; the Trainer writes its files one after another."""
        # Each process has written the state of its random generators.
        self.together.wait()
        if self.together.first:
            path = self.folder / f"checkpoint-{state.global_step}"
            network: Network = getattr(model, "module", model)
            content = json.dumps({**self.state(), "seconds_before": self.seconds, "open_losses": network.open_losses})
            write_whole(path / COMPLETE, lambda draft: draft.write_text(content, encoding="utf-8"))
        self.saved_at = time.monotonic()

    def _evaluate(self, network: Network, state: TrainerState, control: TrainerControl) -> None:
        # Comparisons with nan could give a valid metric that looks like the best one.
        if not self.together.agree(lambda: all_finite(network)):
            self._diverge(state, control)
            return
        row: dict[str, Any] = {"step": state.global_step, "epoch": round(float(state.epoch or 0), 4)}
        row |= {"loss": network.mean_loss(), "seconds": round(self.seconds, 3)}
        if self.evaluate is not None:
            self.latest = self.together.agree(lambda: self._figures(network))
            drawn = self.settings.curve or tuple(self.latest)
            row |= {f"dev_{key}": finite_or_none(self.latest[key]) for key in drawn}
            if self.judge(network, self.latest):
                control.should_training_stop = True
        self.log.append(row)

    def _diverge(self, state: TrainerState, control: TrainerControl) -> None:
        self.diverge(round(float(state.epoch or 0), 4))
        self.diverged = control.should_training_stop = True

    def _figures(self, network: Network) -> dict[str, float]:
        assert self.evaluate is not None
        network.eval()
        with torch.no_grad(), torch.random.fork_rng(range(torch.cuda.device_count())):
            result = {key: float(value) for key, value in self.evaluate(network).items()}
        network.train()
        return result

    def write_best(self, network: Network) -> None:
        if self.together.first:
            super().write_best(network)

    def _report(self, network: Network, state: TrainerState, *, saving: bool) -> None:
        shown = self.settings.curve or tuple(self.latest)
        self.report(state.max_steps, float(state.epoch or 0), network.last_loss, saving=saving, shown=shown)
