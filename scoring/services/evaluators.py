"""Store, mark and delete evaluators and their files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from annotation.models import WritingCampaign
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import Conflict
from evalapp.common.models import Run
from evalapp.common.naming import in_sentence
from evalapp.stored_texts import translate_stored

from ..models import Evaluator, ScoreSet
from ..selectors.judge_answers import list_asked_answers
from .training import require_free_name

#: Run parameters that name evaluators (see `names_in`; a test compares them with the kinds of run).
NAMES_OF_ONE = ("evaluator", "slug", "mix", "other", "init")
NAMES_OF_SEVERAL = ("evaluators", "parts")


def publish_evaluator(*, run: Run, row: Evaluator) -> Evaluator:
    """Store the new row of an evaluator whose complete artefact is in its folder. Idempotent per run."""
    with transaction.atomic():
        stored = Evaluator.objects.filter(project=run.project, run=run, kind=Evaluator.Kind.TRAINED).first()
        if stored is not None:
            return stored
        require_free_name(run, row.slug)
        row.save()
        audit.record(verb="evaluator.stored", project=run.project, actor=run.created_by, object=row)
    return row


def mark_damaged(*, evaluator: Evaluator, damage: str) -> None:
    """Mark an evaluator whose folder has changed or is incomplete, until it loads again without error."""
    Evaluator.objects.filter(pk=evaluator.pk).update(state=Evaluator.State.DAMAGED, damage=damage)


def mark_ready(*, evaluator: Evaluator) -> None:
    rows = Evaluator.objects.filter(pk=evaluator.pk, state=Evaluator.State.DAMAGED)
    rows.update(state=Evaluator.State.READY, damage="")


def delete_evaluator(*, evaluator: Evaluator, user: Any = None, with_answers: bool = False) -> None:
    """Delete an evaluator with its scores and files, and the stored answers to a judge if `with_answers`.

    Combinations that include it keep their scores but can no longer be updated. Raises `Conflict` while an active run
    or an open writing campaign uses it.
    """
    if evaluator.is_external:
        text = _("Delete the scores of %(name)s, or undo their upload; the evaluator goes with them.")
        raise Conflict(text % {"name": evaluator.slug})
    if not (evaluator.is_trained or evaluator.is_combined or evaluator.is_judge):
        text = _(
            "Only trained and combined evaluators and judges can be deleted; apply others again to replace scores."
        )
        raise Conflict(text)
    active = Run.objects.filter(project=evaluator.project, state__in=Run.ACTIVE).order_by("pk")
    refuse_used(evaluator, next((run for run in active if evaluator.slug in names_in(run.params)), None))
    at_work = WritingCampaign.objects.filter(
        project=evaluator.project,
        evaluator=evaluator.slug,
        state__in=[WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED],
    )
    if campaign := at_work.order_by("pk").first():
        text = _("The writing campaign “%(campaign)s” uses the scores of %(name)s. Close that campaign first.")
        raise Conflict(text % {"campaign": campaign.name, "name": evaluator.slug})
    folder = Path(settings.ARTEFACTS_DIR) / evaluator.folder if evaluator.folder else None
    with transaction.atomic():
        facts = {}
        if with_answers and evaluator.is_judge:
            facts["answers"] = list_asked_answers(evaluator).delete()[0]
        audit.record(verb="evaluator.deleted", project=evaluator.project, actor=user, object=evaluator, **facts)
        ScoreSet.objects.filter(evaluator=evaluator).delete()
        evaluator.delete()
        if folder is not None:
            transaction.on_commit(lambda: shutil.rmtree(folder, ignore_errors=True))


def refuse_used(evaluator: Evaluator, run: Run | None) -> None:
    """Raise `Conflict` if there is an active run that uses the evaluator."""
    if run is not None:
        state = in_sentence(run.get_state_display())
        text = _("Run %(run)s (%(title)s) is %(state)s and uses %(name)s. Wait for its end, or cancel it first.")
        title = translate_stored(run.title)
        raise Conflict(text % {"run": run.pk, "title": title, "state": state, "name": evaluator.slug})


def names_in(params: Mapping[str, Any]) -> set[str]:
    """Return the evaluators that the parameters of a run name, as input or output, for every kind of run."""
    single = [params.get(name) for name in NAMES_OF_ONE]
    lists = [name for key in NAMES_OF_SEVERAL for name in params.get(key) or ()]
    query = params.get("query")
    asked = query if isinstance(query, Mapping) else {}
    tables = [asked.get("by"), asked.get("assist"), *str(asked.get("evaluators") or "").split(",")]
    return {name for name in (*single, *lists, *tables) if isinstance(name, str) and name}


def remove_artefacts(*, project: Project) -> None:
    """Remove the files of a deleted project: trained evaluators and work folders of unfinished runs."""
    root = Path(settings.ARTEFACTS_DIR)
    shutil.rmtree(root / str(project.pk), ignore_errors=True)
    for number in Run.objects.filter(project=project, kind__in=["train", "select-references", "study"]).values_list(
        "pk", flat=True
    ):
        shutil.rmtree(root / "work" / str(number), ignore_errors=True)
    for params in Run.objects.filter(project=project, kind="artefact").values_list("params", flat=True):
        if name := params.get("incoming"):
            shutil.rmtree(root / "incoming" / name, ignore_errors=True)
