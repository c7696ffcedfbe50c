"""Training that begins with the weights of a trained evaluator, and what it has seen.

Explained in docs/explanation/evaluators/README.md#warm-start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evalapp.translation import gettext as _
from scoring.ml.base import ARTIFACT
from scoring.ml.catalogue import Entry
from scoring.ml.errors import InvalidOption
from scoring.ml.network import Network
from scoring.ml.training.head import is_head
from scoring.ml.training.record import TrainingRecord, hash_contents, list_groups
from scoring.ml.types import Dataset

if TYPE_CHECKING:
    from scoring.ml.artefact import Artefact
    from scoring.ml.trained import TrainedEvaluator
    from scoring.ml.training.job import FitJob

Given: TypeAlias = "str | Path | TrainedEvaluator"


def read_start(entry: Entry, init: Given, options: Mapping[str, Any]) -> Artefact:
    """Return the artefact that a training of `entry` begins with: that of an evaluator, or in a folder.

    `options` are those the caller gives. Raises `InvalidOption` for an evaluator of another kind, one without a trained
    encoder, one of several models, and if an encoder is given as well.
    """
    from scoring.ml.artefact import read_artefact
    from scoring.ml.training.options import STAGES

    def refuse(text: str, **values: Any) -> InvalidOption:
        return InvalidOption(entry.name, "init", text, **values)

    if STAGES not in entry.train_options:
        raise refuse(_("is not for it: its encoder stays frozen, so that there is nothing to begin with"))
    if options.get("encoder") is not None:
        raise refuse(_("brings its encoder: leave out encoder"))
    if isinstance(init, str | Path):
        if not (Path(init) / ARTIFACT).is_file():
            raise refuse(_("%(folder)s is not the folder of a single trained evaluator"), folder=str(init))
        artefact = read_artefact(Path(init), entry.load_implementation().network_class)
    else:
        found = getattr(init, "artefact", None)
        if found is None:
            raise refuse(_("must be a trained evaluator with a single model, or its folder"))
        artefact = found
    if artefact.evaluator != entry.name:
        raise refuse(_("is a %(found)s: begin with a %(name)s"), found=artefact.evaluator, name=entry.name)
    if any(name.startswith("others.") for name in artefact.network.state_dict()):
        raise refuse(_("has several encoders: begin with an evaluator that shares one"))
    return artefact


def begin_network(job: FitJob, network: Network, aspects: Sequence[str] = ()) -> None:
    """Give a new `network` the encoder of the evaluator that the `job` begins with, if any, and its head if that has
    the same `aspects` and shape. Buffers such as counts of steps start again."""
    if job.init is None:
        return
    theirs = job.init.network.state_dict()
    ours = dict(network.named_parameters())
    encoder = {name: value for name, value in theirs.items() if name in ours and not is_head(name)}
    head = {name: value for name, value in theirs.items() if name in ours and is_head(name)}
    shapes = {name: value.shape for name, value in ours.items() if is_head(name)}
    network.load_state_dict(encoder, strict=False)
    same = tuple(aspects) == job.init.aspects and shapes == {name: value.shape for name, value in head.items()}
    if same:
        network.load_state_dict(head, strict=False)
    network.has_trained_head = same


def add_earlier(job: FitJob, record: TrainingRecord) -> TrainingRecord:
    """Return the `record` of a `job` with everything that its start has seen as well: its groups, items and contents
    count as training data. A note says if the held-out part was among them."""
    if job.init is None:
        return record
    before = job.init.record
    groups = {*record.groups, *before.groups, *before.dev_groups}
    seen = set(before.contents)
    dev_seen = 0
    if job.dev is not None:
        known = set(before.groups) | set(before.dev_groups)
        for group in list_groups(job.dev):
            own = _select_group(job.dev, group)
            contents = hash_contents(replace(record, groups=(group,), dev_groups=()), own)
            dev_seen += group in known or not seen.isdisjoint(contents)
    notes = list(record.notes)
    if dev_seen:
        text = "%s of %s held-out groups were seen by the evaluator it began with: figures on them are too optimistic."
        notes.append(text % (dev_seen, len(list_groups(job.dev))))
    return replace(
        record,
        groups=tuple(sorted(groups)),
        items=tuple(sorted({*record.items, *before.items})),
        contents=tuple(sorted({*record.contents, *before.contents})),
        notes=tuple(notes),
        init={
            "evaluator": job.init.evaluator, "weights": str(job.init_weights), "dataset": before.dataset,
            "data_hash": before.data_hash,
        },
    )  # fmt: skip


def _select_group(dataset: Dataset, group: str) -> Dataset:
    from scoring.ml.training.record import name_group

    return replace(
        dataset,
        items=tuple(item for item in dataset.items if name_group(item.group, item.id) == group),
        dialogues=tuple(one for one in dataset.dialogues if f"dialogue:{one.id}" == group),
    )
