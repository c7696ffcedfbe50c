"""Whether a project has outputs or judgements yet. Several page sections ask; `remember_counts` answers them all."""

from collections.abc import Mapping

from annotation.models import Comparison, Item, Output, Rating
from evalapp.accounts.models import Project


def remember_counts(project: Project, counts: Mapping[str, int]) -> None:
    """Cache on the instance how many items, outputs, ratings and comparisons the project has."""
    project._counts = counts


def has_items(project: Project) -> bool:
    return _has_rows(project, items=Item)


def has_outputs(project: Project) -> bool:
    return _has_rows(project, outputs=Output)


def has_judgements(project: Project) -> bool:
    return _has_rows(project, ratings=Rating, comparisons=Comparison)


def _has_rows(project: Project, **models: type[Item | Output | Rating | Comparison]) -> bool:
    """Return whether one of the tables has rows of the project; the answer is cached on the instance."""
    counts: Mapping[str, int] = getattr(project, "_counts", {})
    for name, model in models.items():
        if name not in counts:
            counts = {**counts, name: int(model._default_manager.filter(project=project).exists())}
            project._counts = counts
        if counts[name]:
            return True
    return False
