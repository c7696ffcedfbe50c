"""Further projects that a training learns from as well: who may use them, what they lack, and their data.

Explained in docs/explanation/evaluators/README.md#several-data-sets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.models import Aspect
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, Conflict, EvalappError, NotThere

from .datasets import DataChoice, build_dataset, judged_aspects
from .training import find_training_data, judgements_for, missing_for

if TYPE_CHECKING:
    from scoring.ml import Entry
    from scoring.ml.training.sets import FurtherSets

FIELD = "projects"


def list_further(project: Project, user: Any) -> QuerySet[Project]:
    """Return the projects that a training of `project` may learn from as well: those that the user may read."""
    return Project.objects.visible_to(user, "read").filter(deleting_at=None).exclude(pk=project.pk).order_by("slug")


def list_aspects(options: Mapping[str, Any]) -> list[str]:
    """Return the aspects that the option `aspects` of a training names; none means all."""
    return [name.strip() for name in str(options.get("aspects") or "").split(",") if name.strip()]


def find_further(project: Project, slugs: Sequence[str], user: Any) -> list[Project]:
    """Return the projects named `slugs`. Raises `BadInput` if one is not there, not readable for the user, or the
    project of the training itself; `user` None may read all."""
    result = []
    for slug in slugs:
        try:
            if slug == project.slug or slugs.count(slug) > 1:
                raise Conflict(_("“%(slug)s” is named twice.") % {"slug": slug})
            result.append(_find(slug, user))
        except EvalappError as error:
            raise BadInput.for_field(FIELD, error.detail) from error
    return result


def _find(slug: str, user: Any) -> Project:
    if user is not None:
        return get_project(user=user, slug=slug, need="read")
    found = Project.objects.filter(slug=slug, deleting_at=None).first()
    if found is None:
        raise NotThere(_("Project “%(slug)s” not found.") % {"slug": slug})
    return found


def check_further(
    project: Project, entry: Entry, further: Sequence[Project], *, aspect: str, uses_people: bool, choice: DataChoice
) -> None:
    """Raise `BadInput` if a further project lacks what this training learns from. A single-aspect evaluator needs
    judgements of the same aspect on the same scale everywhere."""
    for other in further:
        lacking = missing_for(entry, find_training_data(other))
        if not lacking and uses_people and entry.aspect == "one":
            lacking = _compare_aspect(project, other, entry, _find_aspect(project, entry, aspect, choice))
        if lacking:
            text = _("%(name)s cannot learn from %(project)s.") % {"name": entry.name, "project": other.slug}
            raise BadInput.for_field(FIELD, " ".join([text, *lacking]))


def _find_aspect(project: Project, entry: Entry, aspect: str, choice: DataChoice) -> str:
    """Return the aspect that a single-aspect evaluator learns: the named one, or the only judged one."""
    return aspect or next(iter(judged_aspects(project, judgements_for(entry), choice)), "")


def _compare_aspect(project: Project, other: Project, entry: Entry, aspect: str) -> list[str]:
    if not aspect:
        return []
    kinds = judgements_for(entry)
    if aspect not in judged_aspects(other, kinds):
        text = _("It has no %(kinds)s of “%(aspect)s”.")
        return [text % {"kinds": _(" or ").join(map(_, kinds)), "aspect": aspect}]
    ours, theirs = (_describe_scale(one, aspect) for one in (project, other))
    if ours == theirs:
        return []
    text = _("It rates “%(aspect)s” %(theirs)s, %(project)s %(ours)s: one aspect needs one scale.")
    return [text % {"aspect": aspect, "theirs": theirs, "ours": ours, "project": project.slug}]


def _describe_scale(project: Project, aspect: str) -> str:
    row = Aspect.objects.get(project=project, name=aspect)
    return _("from %(low)g to %(high)g") % {"low": row.low, "high": row.high} if row.low is not None else _("freely")


def read_further(
    project: Project, entry: Entry, further: Sequence[Project], *, aspect: str, seed: int, data: Mapping[str, Any]
) -> FurtherSets | None:
    """Return the data of the further projects, to be added to the parts of a training; None without any."""
    from scoring.ml.training.sets import FurtherSets

    if not further:
        return None
    dialogues = not entry.train_needs or "dialogues" in entry.train_needs
    others = [replace(build_dataset(other, dialogues=dialogues), name=other.slug) for other in further]
    shared = [_find_aspect(project, entry, aspect, DataChoice.from_dict(data))] if entry.aspect == "one" else []
    return FurtherSets(others, seed, shared)


def add_scales(options: Mapping[str, Any], entry: Entry, further: Collection[Project]) -> dict[str, Any]:
    """Return the options of a training with the scales of the further projects beside the chosen aspects."""
    from scoring.ml.training.sets import name_scale

    listed = list_aspects(options)
    if not listed:
        return dict(options)
    judged = {other.slug: judged_aspects(other, judgements_for(entry)) for other in further}
    added = [name_scale(name, slug) for slug, names in judged.items() for name in listed if name in names]
    return {**options, "aspects": ",".join([*listed, *added])}
