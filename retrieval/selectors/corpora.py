"""Reads corpora: those that a project can use, one by its name, its condition, and choices for forms."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from annotation.models import WritingCampaign
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import NotThere
from evalapp.common.hooks import Match
from evalapp.names import natural_key
from evalapp.translation import gettext as _

from ..models import Corpus, CorpusPart


def list_corpora(project: Project) -> QuerySet[Corpus]:
    """The corpora of the project and the shared ones, by name."""
    rows = Corpus.objects.filter(Q(project=project) | Q(project=None))
    return rows.select_related("run", "project", "home", "created_by").order_by("name", "pk")


def find_corpus(project: Project, name: str) -> Corpus:
    """The corpus of the project with this name, otherwise the shared one."""
    rows = sorted(list_corpora(project).filter(name=name), key=lambda row: row.is_shared)
    if not rows:
        raise NotThere(_("This project has no corpus “%(name)s”.", name=name))
    return rows[0]


def get_corpus(project: Project | None, name: str) -> Corpus:
    """A corpus by name, for commands; without a project, a shared one."""
    if project is not None:
        return find_corpus(project, name)
    corpus = Corpus.objects.filter(project=None, name=name).select_related("run", "home").first()
    if corpus is None:
        raise NotThere(_("There is no shared corpus “%(name)s”. See: evalapp corpus list", name=name))
    return corpus


def may_change(user: Any, corpus: Corpus) -> bool:
    """Whether the user is a researcher in its project. Shared corpora: an owner of the project in which it was created,
    or a superuser if that is gone."""
    if not corpus.is_shared:
        return corpus.project is not None and can(user=user, project=corpus.project, need="write")
    if corpus.home is not None:
        return can(user=user, project=corpus.home, need="manage")
    return bool(getattr(user, "is_superuser", False)) and getattr(user, "api_token", None) is None


def list_choices(*, project: Project) -> list[tuple[str, str]]:
    """(name, label) of the corpora, for forms. Registered as a hook of annotation."""
    names: dict[str, str] = {}
    for corpus in sorted(list_corpora(project), key=lambda row: row.is_shared):
        if corpus.name not in names:
            is_ready = corpus.state == Corpus.State.READY
            size = _("%(n)s pairs", n=f"{corpus.count:,}") if is_ready else describe_condition(corpus)
            label = _("%(name)s (%(size)s, shared)") if corpus.is_shared else _("%(name)s (%(size)s)")
            names[corpus.name] = label % {"name": corpus.name, "size": size}
    return sorted(names.items(), key=lambda pair: natural_key(pair[0]))


def describe_condition(corpus: Corpus) -> str:
    """One line about the condition, for pages and for the note above an empty list of candidates."""
    run = corpus.run
    if corpus.state == Corpus.State.READY:
        return _("a newer index is being built; the previous one answers") if corpus.is_waiting else _("ready")
    if corpus.state == Corpus.State.FAILED:
        return _("it has no index: %(error)s", error=corpus.error)
    if run is not None and run.is_active:
        if run.share is not None:
            return _("it is being built, %(share)s", share=f"{run.share:.0%}")
        return _("it is being built") if run.state == run.State.RUNNING else _("it waits for a worker")
    return _("it has no index yet; build it on the page of the corpus")


def count_open_writing(corpus: Corpus) -> int:
    """The number of open writing campaigns that use the corpus."""
    under_way = (WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED)
    rows = WritingCampaign.objects.filter(corpus=corpus.name, state__in=under_way)
    return (rows if corpus.is_shared else rows.filter(project=corpus.project_id)).count()


def list_parts(corpus: Corpus) -> QuerySet[CorpusPart]:
    return corpus.parts.select_related("created_by", "project").order_by("-pk")


def find_matches(*, project: Project, query: str, limit: int) -> Iterator[Match]:
    """Find corpora by name, for the search in a project."""
    for corpus in list_corpora(project).filter(name__icontains=query)[:limit]:
        yield Match(_("Corpora"), corpus.name, reverse("retrieval:corpus", args=[project.slug, corpus.name]))
