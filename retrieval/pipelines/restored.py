"""After a restore: no backup holds the indexes, so each is built again from the pairs of its corpus."""

from __future__ import annotations

from collections.abc import Callable

from evalapp.common.errors import EvalappError

from ..models import Corpus
from .index import bring_up
from .work import Plain


def build_indexes(say: Callable[[str], None]) -> list[str]:
    """One line for each corpus whose index could not be built, with the command that builds it."""
    Corpus.objects.update(embedded_revision=0, elastic_revision=0)
    left = []
    for corpus in Corpus.objects.filter(revision__gt=0).select_related("project", "home", "run").order_by("pk"):
        place = corpus.project or corpus.home
        try:
            say(f"indexing the corpus {corpus.name}")
            bring_up(corpus, Plain(say), again=True)
        except EvalappError as error:
            slug = place.slug if place else "-"
            left.append(f"{error.detail} Then: manage.py reindex {slug} --corpus {corpus.name}")
    return left
