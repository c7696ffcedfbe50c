"""Describe the checkpoints that an earlier attempt of a training left in its work folder, for the log. The training
finds its checkpoints itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESTARTS = "No checkpoint was saved yet: {} starts from the beginning."


def describe_checkpoints(folder: Path, folds: int) -> list[str]:
    """Return a line for the completed folds, and one for each phase of the incomplete models."""
    from scoring.ml.base import ARTIFACT

    if folds < 2:
        return _describe_model(folder, "") or [RESTARTS.format("it")]
    models = [folder / f"fold-{number}" for number in range(folds)]
    done = [model for model in models if (model / "model" / ARTIFACT).is_file()]
    lines = []
    if done:
        lines.append(
            f"Fold 1 of {folds} is done." if len(done) == 1 else f"Folds 1 to {len(done)} of {folds} are done."
        )
    for number, model in enumerate(models, start=1):
        if model not in done and (model / "work").is_dir():
            name = f"fold {number} of {folds}"
            lines += _describe_model(model / "work", name) or ([RESTARTS.format(name)] if done else [])
    return lines or [RESTARTS.format("it")]


def _describe_model(work: Path, name: str) -> list[str]:
    """Return a line for each phase that has a checkpoint, in the order of writing."""
    marks = [(mark, phase) for phase in work.iterdir() if phase.is_dir() and (mark := _find_mark(phase)) is not None]
    marks.sort(key=lambda pair: (pair[0].stat().st_mtime_ns, pair[1].name))
    return [_describe_mark(mark, ", ".join(filter(None, (name, phase.name)))) for mark, phase in marks]


def _find_mark(phase: Path) -> Path | None:
    """Return the file with the progress of a phase."""
    from scoring.ml.training.curve import DONE
    from scoring.ml.training.finetune import COMPLETE
    from scoring.ml.training.loop import STATE

    complete = [path for path in phase.glob("checkpoint-*") if (path / COMPLETE).is_file()]
    newest = max(complete, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    marks = (phase / DONE, phase / f"{STATE}.json", *([newest / "trainer_state.json"] if newest is not None else []))
    return next((path for path in marks if path.is_file()), None)


def _describe_mark(mark: Path, where: str) -> str:
    from scoring.ml.training.curve import DONE

    state: dict[str, Any] = json.loads(mark.read_text(encoding="utf-8"))
    if mark.name == DONE:
        return f"All {state['steps']:,} steps are done ({where})."
    # The keys of our loop, or of the Trainer of transformers; loops of version 0.1 have no total.
    step, total = state.get("steps", state.get("global_step", 0)), state.get("total", state.get("max_steps"))
    return f"Continues at step {step:,}{f' of {total:,}' if total else ''} ({where})."
