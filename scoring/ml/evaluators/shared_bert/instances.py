"""The pairs of rated output and reference that `shared-bert` learns from and is measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from evalapp.stats.agreement.normalise import RatingMethod
from evalapp.translation import gettext as _
from scoring.ml.encodings import Ints
from scoring.ml.errors import TrainingDataError
from scoring.ml.evaluators.shared_bert.labels import (
    Floats,
    LabelledOutputs,
    label_outputs,
    make_rule,
    pairs_with_references,
)
from scoring.ml.training.checks import refuse_nan
from scoring.ml.training.gold import aspects_with
from scoring.ml.training.job import FitJob
from scoring.ml.training.split import DEV_SHARE, split_dataset
from scoring.ml.types import Dataset

#: Share of the rows that only measures, where the split is by rows.
TEST_SHARE = 0.1


@dataclass(frozen=True)
class Instances:
    """(output, reference) pairs: `outputs` (n,) rows of `labelled`, `references` (n,) texts."""

    labelled: LabelledOutputs
    outputs: Ints
    references: tuple[str, ...]

    def targets(self, job: FitJob) -> Floats:
        """(outputs, aspects) what the `job` learns: grades, or labels of two classes."""
        return self.labelled.grades if learns_grades(job) else self.labelled.labels

    def take(self, rows: Ints) -> Instances:
        """The pairs of the rows."""
        return Instances(self.labelled, self.outputs[rows], tuple(self.references[int(row)] for row in rows))

    @classmethod
    def of(cls, labelled: LabelledOutputs) -> Instances:
        """Every rated output with each of its references."""
        pairs = pairs_with_references(labelled)
        return cls(labelled, np.array([row for row, _ in pairs], dtype=np.int64), tuple(ref for _, ref in pairs))


def learns_grades(job: FitJob) -> bool:
    """Whether the `job` learns grades from 0 to 1, not two classes."""
    return job.text("labels") == "graded"


def get_instances(job: FitJob) -> tuple[Instances, Instances, Instances]:
    """Return the train, dev and test pairs of a `job`, computed once for check and training."""
    return job.once("instances", lambda: _instances(job))


def _instances(job: FitJob) -> tuple[Instances, Instances, Instances]:
    """Train, dev and test pairs. Without a dev part, one is taken from the training part, by groups or by rows."""
    aspects = _aspects(job)
    method = cast(RatingMethod, job.text("ratings"))
    given = job.options["threshold"]
    cut = None if given is None else float(given)
    refuse_nan(job.name, job.train, aspects)
    rules = [make_rule(job.train, aspect, method, cut) for aspect in aspects]

    def labelled(data: Dataset) -> Instances:
        return Instances.of(label_outputs(data, aspects, method=method, rules=rules, track=job.track))

    whole = labelled(job.train)
    if not len(whole.outputs):
        raise TrainingDataError(job.name, _nothing_left(whole.labelled))
    nothing = whole.take(np.zeros(0, dtype=np.int64))
    if job.dev is not None:
        dev = labelled(job.dev) if job.dev.ratings else nothing
        return whole, dev, nothing
    if job.text("split") == "row":
        order = job.rng("rows").permutation(len(whole.outputs))
        n_dev, n_test = round(DEV_SHARE * len(order)), round(TEST_SHARE * len(order))
        parts = order[n_dev + n_test :], order[:n_dev], order[n_dev : n_dev + n_test]
        return whole.take(parts[0]), whole.take(parts[1]), whole.take(parts[2])
    train, held_out = split_dataset(job)
    if held_out is None:
        return whole, nothing, nothing
    return labelled(train), labelled(held_out), nothing


def _nothing_left(labelled: LabelledOutputs) -> str:
    """The error if no rated output is left, with the way out."""
    if not labelled.n_empty and not labelled.n_alone:
        return "no output is rated, and it does not learn from ratings of dialogues: rate outputs"
    if not labelled.n_alone:
        return f"all {labelled.n_empty:,} rated outputs are empty: rate outputs with a text"
    if not labelled.n_empty:
        return "none of the rated outputs has a reference: add references to the items"
    return (
        f"{labelled.n_empty:,} rated outputs are empty and the other {labelled.n_alone:,} have no reference: add "
        "references to the items"
    )


def _aspects(job: FitJob) -> tuple[str, ...]:
    there = aspects_with(job.train, "ratings")
    if not there:
        raise TrainingDataError(job.name, _("the data hold no ratings. Collect some in a campaign, or load them."))
    wish = job.options["aspects"] or job.aspect
    if wish is None:
        return tuple(sorted(there))
    asked = tuple(dict.fromkeys(name.strip() for name in str(wish).split(",") if name.strip()))
    unknown = [name for name in asked if name not in there]
    if unknown or not asked:
        text = _("there are no ratings of %(unknown)s; there are: %(there)s")
        raise TrainingDataError(job.name, text, unknown=", ".join(unknown) or "that aspect", there=", ".join(there))
    return asked
