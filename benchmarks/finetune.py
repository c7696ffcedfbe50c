"""Fine-tuning of pairs by the comparative evaluator's training against a bare loop of torch with the same shapes.

The bare loop uses the same network, batches, AdamW, schedule, clipping and steps: only forward, backward and step. The
evaluator's side includes everything `fit` does in a step: drawing, tokenising, the Trainer, progress. Both start from
the same weights; their order alternates. Seconds of the training alone, without loading, and CPU seconds of the steps
after the first, which other load disturbs less.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from _texts import OWN, machine, spread
from transformers import get_linear_schedule_with_warmup

from scoring.ml import Dataset, Item, Output, System
from scoring.ml.evaluators.comparative.batches import PairBatches
from scoring.ml.evaluators.comparative.material import Material
from scoring.ml.evaluators.comparative.training import new_network, train_network
from scoring.ml.registry import get_entry
from scoring.ml.training.job import FitJob, Report, ignore_progress


def make_data(n_items: int) -> Dataset:
    """Built-in sentences as contexts, references and outputs of different lengths."""

    def text(number: int, sentences: int) -> str:
        return " ".join(OWN[(number * 7 + k * 5) % len(OWN)] for k in range(sentences))

    items = tuple(
        Item(f"i{n}", (text(n, 1), text(n + 3, 1 + n % 3)), references=(text(n + 5, 1 + n % 2),), group=f"g{n}")
        for n in range(n_items)
    )
    outputs = tuple(Output(f"i{n}", "machine", text(n + 11, 1 + n % 4)) for n in range(n_items))
    return Dataset("own", systems=(System("machine"),), items=items, outputs=outputs)


def make_job(data: Dataset, folder: Path, given: argparse.Namespace, report: Report = ignore_progress) -> FitJob:
    entry = get_entry("comparative")
    options = {
        "weak": "no",
        "human": "no",
        "epochs": 1,
        "batch_size": given.batch_size,
        "pairs_per_epoch": given.batch_size * given.steps,
        "train_device": given.device,
        "train_dtype": "bf16" if given.bf16 else "fp32",
        "encoder": given.encoder,
    }
    return FitJob(entry, data, None, "recommended", entry.parse_train_options("recommended", options), given.seed,
                  folder, None, report)  # fmt: skip


def run_ours(data: Dataset, given: argparse.Namespace) -> tuple[float, float, float]:
    """Clock seconds, CPU seconds, and the sum of all weights, which shows that both learned the same."""
    stamps: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        job = make_job(data, Path(folder), given, lambda progress: stamps.append(time.process_time()))
        network, found, _ = train_network(job, Material(job))
    return found.seconds, stamps[-1] - stamps[-given.steps], weights_sum(network)


def run_bare(data: Dataset, given: argparse.Namespace) -> tuple[float, float, float]:
    job = make_job(data, Path(), given)
    material = Material(job)
    phase = material.phases()[0]
    batches = PairBatches(phase.draw, phase.n_pairs, phase.batch_size, material.reader, job, epochs=1)
    device = torch.device(given.device)
    ready = [{name: value.to(device) for name, value in batches[n].items()} for n in range(len(batches))]
    network = new_network(job, material.tie, material.aspect).to(device).train()
    torch.manual_seed(job.torch_seed("supervised"))
    plain = [p for name, p in network.named_parameters() if name.endswith("bias") or "norm" in name.lower()]
    chosen = {id(p) for p in plain}
    decayed = [p for p in network.parameters() if id(p) not in chosen]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=job.number("learning_rate"), fused=True)
    schedule = get_linear_schedule_with_warmup(optimiser, len(ready) // 10, len(ready))
    started, stamps = time.monotonic(), []
    for inputs in ready:
        with torch.autocast(device.type, torch.bfloat16, enabled=given.bf16):
            loss = network(**inputs)["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        stamps.append(time.process_time())
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.monotonic() - started, stamps[-1] - stamps[0], weights_sum(network)


def weights_sum(network: torch.nn.Module) -> float:
    return float(sum(value.double().abs().sum().item() for value in network.state_dict().values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", help="name or folder; without it the installed one")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, help="threads of torch; without it all cores")
    parser.add_argument("--bf16", action="store_true")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    data = make_data(given.items)
    sides = {"ours": run_ours, "bare": run_bare}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    processor: dict[str, list[float]] = {name: [] for name in sides}
    sums: dict[str, float] = {}
    for run in range(given.runs + 1):
        for name in sorted(sides, reverse=bool(run % 2)):
            found, used, sums[name] = sides[name](data, given)
            if run:  # the first warms up
                seconds[name].append(found)
                processor[name].append(used)
    report = {
        "benchmark": "finetune",
        "machine": {**machine(), "device": given.device, "threads": torch.get_num_threads()},
        "encoder": given.encoder or "installed",
        "steps": given.steps,
        "batch_size": given.batch_size,
        "bf16": given.bf16,
        "runs": given.runs,
        "seconds": {name: spread(values) for name, values in seconds.items()},
        "ours_over_bare": spread([o / b for o, b in zip(seconds["ours"], seconds["bare"], strict=True)]),
        "processor_seconds": {name: spread(values) for name, values in processor.items()},
        "ours_over_bare_by_processor": spread(
            [o / b for o, b in zip(processor["ours"], processor["bare"], strict=True)]
        ),
        "relative_difference_of_weights": abs(sums["ours"] / sums["bare"] - 1),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
