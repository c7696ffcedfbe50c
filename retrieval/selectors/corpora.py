"""Reading corpora: those a project may use, one by its name, how each stands, and the names for a form."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from annotation.models import WritingCampaign
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import NotThere

from ..models import Corpus, CorpusPart


def corpora_of(project: Project) -> QuerySet[Corpus]:
    """Its own and the shared ones, by name."""
    found = Corpus.objects.filter(Q(project=project) | Q(project=None))
    return found.select_related("run", "project", "home", "created_by").order_by("name", "pk")


def find_corpus(project: Project, name: str) -> Corpus:
    """Its own of that name, else the shared one."""
    found = corpora_of(project).filter(name=name).order_by("project_id").all()
    own = [corpus for corpus in found if corpus.project_id == project.pk]
    if not found:
        raise NotThere(_("This project has no corpus “%(name)s”.") % {"name": name})
    return own[0] if own else found[0]


def get_corpus(project: Project | None, name: str) -> Corpus:
    """For commands: the project's own (or a shared one) by name; without a project the shared one."""
    if project is not None:
        return find_corpus(project, name)
    found = Corpus.objects.filter(project=None, name=name).select_related("run", "home").first()
    if found is None:
        raise NotThere(_("There is no shared corpus “%(name)s”. See: manage.py corpus list") % {"name": name})
    return found


def may_change(user: Any, corpus: Corpus) -> bool:
    """Its project's researchers; of a shared one the owners of the project in which it was made, and superusers."""
    if not corpus.is_shared:
        return corpus.project is not None and can(user=user, project=corpus.project, need="write")
    if corpus.home is not None:
        return can(user=user, project=corpus.home, need="manage")
    return bool(getattr(user, "is_superuser", False)) and getattr(user, "api_token", None) is None


def choices_for(*, project: Project) -> list[tuple[str, str]]:
    """(name, label) for a form that lets people choose; fills a port of the annotation room."""
    names: dict[str, str] = {}
    for corpus in sorted(corpora_of(project), key=lambda found: found.is_shared):
        if corpus.name not in names:
            size = f"{corpus.count:,} pairs" if corpus.state == Corpus.State.READY else condition_of(corpus)
            names[corpus.name] = f"{corpus.name} ({size}{', shared' if corpus.is_shared else ''})"
    return sorted(names.items())


def condition_of(corpus: Corpus) -> str:
    """One line about how it stands, for pages and for the note above an empty list of candidates."""
    run = corpus.run
    if corpus.state == Corpus.State.READY:
        return "a newer index is being built; the one before answers" if corpus.is_waiting else "ready"
    if corpus.state == Corpus.State.FAILED:
        return f"it has no index: {corpus.error}"
    if run is not None and run.is_active:
        if run.share is not None:
            return f"it is being built, {run.share:.0%}"
        return "it is being built" if run.state == run.State.RUNNING else "it waits for a worker to build it"
    return "it has no index yet; build it on its page"


def writing_with(corpus: Corpus) -> int:
    """How many campaigns of reference writing that are under way offer its candidates."""
    under_way = (WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED)
    rows = WritingCampaign.objects.filter(corpus=corpus.name, state__in=under_way)
    return (rows if corpus.is_shared else rows.filter(project=corpus.project_id)).count()


def parts_of(corpus: Corpus) -> QuerySet[CorpusPart]:
    return corpus.parts.select_related("created_by", "project").order_by("-pk")
