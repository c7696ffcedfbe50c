"""The mark that says which training the checkpoints of a folder belong to; no other training may continue from them."""

from __future__ import annotations

import json
from typing import Any

from evalapp.translation import gettext as _
from evalapp.versions import read_settings
from scoring.ml.errors import InvalidOption
from scoring.ml.signature import VERSION
from scoring.ml.training.job import FitJob
from scoring.ml.training.record import data_hash
from scoring.ml.training.store import write_json

MARK = "job.json"
# The device may change, and so may the location of the encoder, which is identified by its weights.
_FREE = ("train_device", "encoder")


def claim_folder(job: FitJob) -> None:
    """Write the job's settings to its folder, or compare them with the settings there. Raises `InvalidOption` if they
    differ: weights of another training would otherwise appear under this one's seed, options and data."""
    said: dict[str, Any] = {
        "evaluator": job.name,
        "profile": job.profile,
        "seed": job.seed,
        "aspect": job.aspect,
        "train": data_hash(job.train, job.track),
        "dev": None if job.dev is None else data_hash(job.dev, job.track),
        # The language changes how metrics tokenise, and thereby the training targets.
        "language": job.train.lang,
        "encoder": job.encoder.weights if "encoder" in job.options else None,
        "options": {key: value for key, value in job.options.items() if key not in _FREE},
        "version": VERSION,
    }
    path = job.folder / MARK
    if not path.is_file():
        write_json(path, said)
        return
    result = {"language": job.train.lang, **json.loads(path.read_text(encoding="utf-8"))}
    # An option that only one side has was added or removed by a version. Before `processes` existed, one process
    # trained.
    options = {**said["options"], "processes": 1, **read_settings(result["options"], result.get("version"))}
    compared = [key for key in said if key not in ("options", "version")]
    differing = [key for key in compared if result.get(key) != said[key]]
    differing += [key for key, value in said["options"].items() if options[key] != value]
    if differing:
        text = _(
            "holds the checkpoints of a training with other %(differing)s: take another folder, or remove %(folder)s"
        )
        raise InvalidOption(job.name, "folder", text, differing=", ".join(differing), folder=job.folder)
