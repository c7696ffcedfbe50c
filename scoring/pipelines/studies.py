"""Studies: read the data, split them once, train and measure step by step, tabulate. The result of each step is stored,
so a retried or repeated study computes only what is missing."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext
from scoring.ml.studies.kinds import get_kind, list_variants

from ..selectors.datasets import DataChoice, build_dataset, judged_aspects
from ..selectors.studies import find_stored
from ..selectors.written_kinds import texts_by_kind
from ..services.reports import no_texts
from ..services.studies import StudyOptions, store_step, sweep_steps
from .shared import refuse_scoring_errors, work_folder
from .training_report import sum_ranges

if TYPE_CHECKING:
    from scoring.ml.studies.measures import StudyData
    from scoring.ml.studies.steps import Design, Step
    from scoring.ml.training.job import Plan, TrainingProgress


@dataclass(frozen=True)
class Study:
    """A study that these data can have: its steps by digest, plans of variants by label (seeds do not change the time),
    and the variants left out, with the reasons."""

    design: Design
    data: StudyData
    steps: Mapping[str, Step]
    plans: Mapping[str, Plan | None]
    left_out: Mapping[str, str]
    stored: Mapping[str, Mapping[str, Any]]

    @property
    def missing(self) -> dict[str, Step]:
        """The steps without a stored result."""
        return {digest: step for digest, step in self.steps.items() if digest not in self.stored}


def run(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `study`; its result has the tables."""
    options = StudyOptions(**params)
    sweep_steps(project=context.project)
    with refuse_scoring_errors():
        study = _prepare(context, options)
        cost = _describe_cost(study)
        context.log(cost["text"])
        for label, reason in study.left_out.items():
            context.log(_("Left out: %(label)s. %(reason)s") % {"label": label, "reason": reason})
        results = _compute(context, study)
        result = _tabulate(context, options, study, results)
    shutil.rmtree(work_folder(context.run), ignore_errors=True)
    return result


def check(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `study-plan`: the steps of a study and their time."""
    options = StudyOptions(**params)
    with refuse_scoring_errors():
        study = _prepare(context, options)
        cost = _describe_cost(study)
    context.log(cost["text"])
    url = f"/projects/{context.project.slug}/studies/?check={context.run.pk}#check"
    return {**cost, "left_out": dict(study.left_out), "study": options.study, "url": url}


def _prepare(context: RunContext, options: StudyOptions) -> Study:
    from scoring.ml.studies import steps as library

    context.progress(0, None, "rows", "reading")
    kind = get_kind(options.study)
    given = {**options.options, **({"encoder": options.encoder} if options.encoder else {})}
    design = library.Design(kind, options.seed, options.seeds, options.profile, given)
    data = _read_data(context.project, options)
    variants = list_variants(kind, options.evaluators)
    context.progress(0, None, "variants", "checking")
    plans, left_out = library.plan_variants(variants, data, design, lambda _progress: context.check())
    if all(variant.is_rival for variant in variants if variant.label in plans):
        raise BadInput(" ".join([_("These data can train no evaluator of the study."), *left_out.values()]))
    kept = [variant for variant in variants if variant.label in plans]
    steps = {library.digest_step(step, data, design): step for step in library.list_steps(kept, design)}
    return Study(design, data, steps, plans, left_out, find_stored(context.project, list(steps)))


def _read_data(project: Project, options: StudyOptions) -> StudyData:
    from scoring.ml.studies.measures import StudyData
    from scoring.ml.studies.steps import split_data
    from scoring.ml.training.record import name_group

    choice = DataChoice(references=options.references or ORIGINAL)
    dataset = build_dataset(project, choice, dialogues=True)
    parts = split_data(dataset, options.seed, options.held_out / 100)
    judged = judged_aspects(project, ("ratings", "comparisons"), choice)
    data = StudyData(*parts, tuple([options.aspect] if options.aspect else judged))
    if options.study != "robustness":
        return data
    tested = {name_group(item.group, item.id) for item in data.test.items}
    kinds = {
        kind: [record for record in records if name_group(record.group, record.item) in tested]
        for kind, records in texts_by_kind(project, seed=options.seed).items()
    }
    if not any(records for kind, records in kinds.items() if kind != "MGE"):
        raise no_texts(project)
    return replace(data, kinds=kinds)


def _describe_cost(study: Study) -> dict[str, Any]:
    """Return the numbers of steps, stored results and trainings, and the time of the trainings, with a sentence."""
    planned = [study.plans[step.variants[0].label] for step in study.missing.values()]
    plans = [plan for plan in planned if plan is not None]
    time = sum_ranges([plan.seconds_range for plan in plans])
    n_stored = len(study.steps) - len(study.missing)
    names = {"steps": len(study.steps), "trainings": len(plans), "stored": n_stored, "time": time["time"]}
    text = _("%(steps)d steps, %(stored)d computed before; %(trainings)d trainings; time: %(time)s.")
    if not plans:
        text = _("%(steps)d steps, %(stored)d computed before; nothing to train.")
    notes = list(dict.fromkeys(note for plan in plans for note in plan.notes))
    return {"text": text % names, "steps": len(study.steps), "trainings": len(plans), "stored": n_stored, **time,
            "notes": notes, "counts": _count(study.data)}  # fmt: skip


def _count(data: StudyData) -> dict[str, dict[str, int]]:
    """Return the sizes of the parts."""
    parts = {"train": data.train, "dev": data.dev, "test": data.test}
    return {
        name: {
            "items": len(part.items),
            "groups": len({item.group or item.id for item in part.items}),
            "outputs": len(part.outputs),
            "dialogues": len(part.dialogues),
        }
        for name, part in parts.items()
    }


def _compute(context: RunContext, study: Study) -> list[tuple[Step, Mapping[str, Any]]]:
    """Return the steps with their results; each is stored as soon as it is computed."""
    from scoring.ml.studies.steps import compute_step

    results: list[tuple[Step, Mapping[str, Any]]] = []
    total = len(study.steps)
    for done, (digest, step) in enumerate(study.steps.items()):
        stored = study.stored.get(digest)
        if stored is None:
            folder = work_folder(context.run) / digest[:16]
            folder.mkdir(parents=True, exist_ok=True)
            stored = compute_step(step, study.data, study.design, folder, _report(context, done, total, step.label))
            context.make_sure()
            store_step(project=context.project, digest=digest, label=step.label, result=stored)
            shutil.rmtree(folder, ignore_errors=True)
            context.log(_("%(step)s: %(seconds)s s") % {"step": step.label, "seconds": f"{stored['seconds']:,.0f}"})
        results.append((step, stored))
    context.progress(total, total, "steps", "tabulating")
    return results


def _report(context: RunContext, done: int, total: int, label: str) -> Any:
    def report(progress: TrainingProgress) -> None:
        counts = f"{progress.done:,}" if progress.total is None else f"{progress.done:,}/{progress.total:,}"
        context.progress(done, total, "steps", f"{label}: {progress.phase} {counts}")

    return report


def _tabulate(
    context: RunContext, options: StudyOptions, study: Study, results: list[tuple[Step, Mapping[str, Any]]]
) -> dict[str, Any]:
    from scoring.ml.studies.table import tabulate

    data = study.data
    judged = [row for part in (data.train, data.dev, data.test) for row in (*part.ratings, *part.comparisons)]
    signatures: dict[str, str] = {}
    for _step, result in results:
        for label, signature in result["signatures"].items():
            signatures.setdefault(label, signature)
    return {
        "study": options.study,
        "project": context.project.slug,
        "evaluators": options.evaluators,
        "aspects": list(data.aspects),
        "seeds": sorted({step.seed for step, _result in results if step.seed is not None}),
        "seed": options.seed,
        "held_out": options.held_out,
        "references": options.references,
        "counts": _count(data),
        "n_simulated": sum(row.simulated for row in judged),
        "left_out": dict(study.left_out),
        "signatures": signatures,
        "seconds": round(sum(result["seconds"] for _step, result in results), 1),
        "tables": tabulate(study.design.kind, results, data, list(study.plans)),
        "url": f"/projects/{context.project.slug}/studies/{context.run.pk}/",
    }
