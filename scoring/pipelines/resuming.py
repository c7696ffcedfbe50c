"""What an earlier attempt of a training left in its work folder, in words: whoever cancelled it and tries again sees
where it goes on. Only files are looked at; the training itself finds its checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BEGINS_ANEW = "No checkpoint was saved yet: {} begins anew."


def words_of_earlier(folder: Path, folds: int) -> list[str]:
    """A line for the folds that are done, and for each phase of the models that are not."""
    from scoring.ml.base import ARTIFACT

    if folds < 2:
        return _of_model(folder, "") or [BEGINS_ANEW.format("it")]
    places = [folder / f"fold-{number}" for number in range(folds)]
    done = [place for place in places if (place / "model" / ARTIFACT).is_file()]
    lines = []
    if done:
        # One after the other.
        named = "Fold 1" if len(done) == 1 else f"Folds 1 to {len(done)}"
        lines.append(f"{named} of {folds} {'is' if len(done) == 1 else 'are'} done.")
    for number, place in enumerate(places, start=1):
        if place not in done and (place / "work").is_dir():
            name = f"fold {number} of {folds}"
            lines += _of_model(place / "work", name) or ([BEGINS_ANEW.format(name)] if done else [])
    return lines or [BEGINS_ANEW.format("it")]


def _of_model(work: Path, name: str) -> list[str]:
    """Of every phase that has a checkpoint, in the order in which they were written."""
    found = [(path, phase) for phase in work.iterdir() if phase.is_dir() and (path := _mark_of(phase)) is not None]
    found.sort(key=lambda pair: (pair[0].stat().st_mtime_ns, pair[1].name))
    return [_words(path, ", ".join(filter(None, (name, phase.name)))) for path, phase in found]


def _mark_of(phase: Path) -> Path | None:
    """The file that says how far a phase is."""
    from scoring.ml.training.curve import DONE
    from scoring.ml.training.finetune import COMPLETE
    from scoring.ml.training.loop import STATE

    whole = [path for path in phase.glob("checkpoint-*") if (path / COMPLETE).is_file()]
    newest = max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    marks = (phase / DONE, phase / f"{STATE}.json", *([newest / "trainer_state.json"] if newest is not None else []))
    return next((path for path in marks if path.is_file()), None)


def _words(mark: Path, where: str) -> str:
    from scoring.ml.training.curve import DONE

    said: dict[str, Any] = json.loads(mark.read_text(encoding="utf-8"))
    if mark.name == DONE:
        return f"All {said['steps']:,} steps are done ({where})."
    # Of the loop, or of the Trainer of transformers; loops of before did not note of how many.
    step, total = said.get("steps", said.get("global_step", 0)), said.get("total", said.get("max_steps"))
    return f"Goes on from step {step:,}{f' of {total:,}' if total else ''} ({where})."
