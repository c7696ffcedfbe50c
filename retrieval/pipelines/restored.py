"""Rebuilds the indexes after a restore, because backups contain only the pairs."""

from collections.abc import Callable

from evalapp.common.errors import EvalappError

from ..models import Corpus
from .index import update_index
from .work import CommandWork


def build_indexes(say: Callable[[str], None]) -> list[str]:
    """Rebuild all indexes. Returns a line for each failure, with the command that repeats it."""
    Corpus.objects.update(embedded_revision=0, elastic_revision=0)
    failures = []
    for corpus in Corpus.objects.filter(revision__gt=0).select_related("project", "home", "run").order_by("pk"):
        place = corpus.project or corpus.home
        try:
            say(f"indexing the corpus {corpus.name}")
            update_index(corpus, CommandWork(say), again=True)
        except EvalappError as error:
            slug = place.slug if place else "-"
            failures.append(f"{error.detail} Then: evalapp reindex {slug} --corpus {corpus.name}")
    return failures
