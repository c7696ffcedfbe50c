"""Machine outputs of the training data as false replies in other conversations (option `own_outputs`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evalapp.translation import gettext as _
from scoring.ml.errors import TrainingDataError
from scoring.ml.evaluators.unreferenced.conversations import Sets, groups_in, prepare
from scoring.ml.training.job import FitJob
from scoring.ml.training.record import name_group
from scoring.ml.types import Dataset


def collect_outputs(job: FitJob, sets: Sets, name: str) -> list[tuple[str, str]]:
    """Return (group, text) of the machine outputs that the part `name` ("train" or "dev") of a `job` with the
    conversations `sets` learns from, at most `pool_size`, drawn by seed; none without the option.

    Without a dev part of its own, outputs of the held-out groups belong to dev. Raises `TrainingDataError` if the
    training part has no machine output.
    """
    if not job.flag("own_outputs"):
        return []
    held_out = set(groups_in(sets.dev))
    if job.dev is None:
        rows = [row for row in _list_outputs(job, job.train, held_out) if (row[0] in held_out) == (name == "dev")]
    else:
        rows = _list_outputs(job, job.dev if name == "dev" else job.train, set(groups_in([*sets.train, *sets.dev])))
    if not rows and name == "train":
        raise TrainingDataError(
            job.name, _("own_outputs needs outputs of machine systems. Upload some, or leave it out")
        )
    drawn = job.rng(f"{name}:outputs").permutation(len(rows))[: job.integer("pool_size")]
    return [rows[place] for place in sorted(drawn.tolist())]


def _list_outputs(job: FitJob, dataset: Dataset, dialogues: Collection[str]) -> list[tuple[str, str]]:
    """The distinct outputs, sorted. An item whose group is one of the `dialogues` ("dialogue:ID") belongs to it."""
    kinds = {system.id: system.kind for system in dataset.systems}
    group_of = {item.id: (item.group, name_group(item.group, item.id)) for item in dataset.items}
    rows = set()
    for output in dataset.outputs:
        text = prepare(output.text, job.flag("lower_case"))
        if text and kinds.get(output.system, "machine") == "machine":
            group, own = group_of[output.item]
            dialogue = f"dialogue:{group}"
            rows.add((dialogue if dialogue in dialogues else own, text))
    return sorted(rows)


def join_groups(groups: Sequence[str], outputs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the split `groups` of conversations and those of the `outputs`, sorted."""
    return tuple(sorted({*groups, *(group for group, _text in outputs)}))
