"""Creates corpora, adds files or rows of a project to them, requests indexing, and deletes them. Checking and indexing
are a pipeline."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.parsers import shorten_name
from annotation.services.uploads import Incoming, save_file
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import get_project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotAllowed
from evalapp.common.models import Run
from evalapp.common.naming import find_name_faults
from evalapp.common.params import param
from evalapp.common.queue import cancel_run, enqueue_run
from evalapp.common.room import check_room

from ..models import Corpus, CorpusPart
from ..selectors.corpora import find_corpus, list_corpora, may_change
from ..selectors.derived import count_rows
from . import outbox
from .places import get_folder, get_raw_path, remove_files

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
LANGUAGE = re.compile(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*")
#: Words used in addresses in the position of a corpus name.
RESERVED = frozenset({"new"})
#: Rows of a project that can be added, by kind.
DERIVED = {
    CorpusPart.Kind.DIALOGUES.value: gettext_noop("dialogues"),
    CorpusPart.Kind.CORPUS.value: gettext_noop("rows of corpus.jsonl"),
    CorpusPart.Kind.ITEMS.value: gettext_noop("references of items"),
}


def check_may_change(user: Any, corpus: Corpus) -> None:
    if not may_change(user, corpus):
        raise NotAllowed(
            _("This corpus is shared. Only owners of the project that created it can change it.")
            if corpus.is_shared
            else _("Your role does not allow this. Ask one of the project's owners.")
        )


def create_corpus(
    *,
    project: Project | None,
    user: Any,
    name: str,
    language: str = "",
    tokenizer: str = "",
    licence: str = "",
    source: str = "",
    shared: bool = False,
) -> Corpus:
    """Create an empty corpus of `project`, or one that the whole installation shares."""
    from ..index.tokens import choose_tokenizer

    language = language.strip() or (project.lang if project is not None else "en")
    faults = _faults(project, name, language, tokenizer, shared) + find_name_faults(licence=licence, source=source)
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    with transaction.atomic():
        corpus = Corpus.objects.create(
            project=None if shared else project,
            home=project if shared else None,
            name=name,
            language=language,
            tokenizer=tokenizer or choose_tokenizer(language),
            licence=licence.strip()[:500],
            source=source.strip()[:500],
            created_by=user if getattr(user, "pk", None) else None,
        )
        audit.record(verb="corpus.created", project=project, actor=user, object=name, shared=shared)
    return corpus


def _faults(project: Project | None, name: str, language: str, tokenizer: str, shared: bool) -> list[Fault]:
    faults = []
    if not NAME.fullmatch(name) or name in RESERVED:
        faults.append(Fault(_("Use up to 63 characters a-z, 0-9 and hyphens; “new” is reserved."), field="name"))
    elif _is_taken(project, name, shared):
        text = _("There is already a corpus “%(name)s”. Add to it, or choose another name.") % {"name": name}
        faults.append(Fault(text, field="name"))
    if not LANGUAGE.fullmatch(language):
        faults.append(Fault(_("Write the language as a code such as en, de, zh or pt-BR."), field="language"))
    if tokenizer and tokenizer not in Corpus.Tokenizer.values:
        text = _("Unknown tokenizer “%(name)s”. Use one of: %(known)s.") % {
            "name": tokenizer,
            "known": ", ".join(Corpus.Tokenizer.values),
        }
        faults.append(Fault(text, field="tokenizer"))
    if not shared and project is None:
        faults.append(Fault(_("Name the project, or create a shared corpus."), field="project"))
    return faults


def _is_taken(project: Project | None, name: str, shared: bool) -> bool:
    if shared or project is None:
        return Corpus.objects.filter(project=None, name=name).exists()
    return list_corpora(project).filter(name=name).exists()


def give_up_index(run: Run) -> None:
    """Clean up after a run that ended without reporting: a corpus without an index gets the reason as its error."""
    why = run.error or _("the run was cancelled. Try it again, or add another file")
    failing = [Corpus.State.BUILDING.value, Corpus.State.FAILED.value]
    others = Run.objects.filter(state__in=Run.ACTIVE).exclude(pk=run.pk)
    rows = Corpus.objects.filter(pk=run.params["corpus"], state__in=failing).exclude(run__in=others)
    rows.update(state=Corpus.State.FAILED.value, error=why)


# ---- adding -------------------------------------------------------------------------------------------------


def add_file(
    *, corpus: Corpus, user: Any, file: Incoming, through: Project | None = None, send: bool = True
) -> CorpusPart:
    """Store the file and queue its check. `through` is the project of the run if the corpus is shared."""
    check_room()
    title = Path(file.name).name or "corpus.jsonl"
    # Create the row last, with its run, so that a failure leaves no part waiting forever.
    draft = get_folder(corpus.pk) / f"incoming-{uuid4().hex}"
    place = None
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        save_file(file, draft, settings.MAX_UPLOAD_BYTES)
        with transaction.atomic():
            part = _new_part(corpus, user, CorpusPart.Kind.FILE.value, title)
            place = draft.rename(get_raw_path(part))
            _queue(corpus, part, user, through, send)
    except BaseException:
        (place or draft).unlink(missing_ok=True)
        raise
    return part


def add_rows(
    *, corpus: Corpus, user: Any, project: Project, kind: str, through: Project | None = None, send: bool = True
) -> CorpusPart:
    """Queue the import of rows of `project`. The run reads the rows at its start; a repetition adds rows that are new
    since then. A new corpus without a licence gets that of the project. In a corpus with rows of other origin, each row
    has its own licence and source."""
    if kind not in DERIVED:
        text = _("A corpus can be made from: %(kinds)s.") % {"kinds": ", ".join(DERIVED)}
        raise BadInput(text, faults=[Fault(_("Choose one."), field="derive")])
    if not count_rows(project, kind):
        text = _("The project %(project)s has no %(kind)s. Upload some first, or choose a file.") % {
            "project": project.slug,
            "kind": _(DERIVED[kind]),
        }
        raise BadInput.for_field("derive", text)
    if not corpus.licence and not corpus.parts.exists():
        corpus.licence = project.licence[:500]
        corpus.save(update_fields=["licence"])
    with transaction.atomic():
        title = gettext_noop("%(kind)s of %(project)s") % {"kind": DERIVED[kind], "project": project.slug}
        part = _new_part(corpus, user, kind, title, project)
        _queue(corpus, part, user, through or project, send)
    return part


def _new_part(corpus: Corpus, user: Any, kind: str, title: str, project: Project | None = None) -> CorpusPart:
    by = user if getattr(user, "pk", None) else None
    return CorpusPart.objects.create(
        corpus=corpus, kind=kind, title=shorten_name(title), project=project, created_by=by
    )


def _queue(
    corpus: Corpus, part: CorpusPart | None, user: Any, through: Project | None, send: bool, again: bool = False
) -> Run | None:
    """Queue the run of a change in the project of the corpus. None if there is no project for it."""
    place = corpus.project or through or corpus.home
    if place is None:
        return None
    params: dict[str, Any] = {"corpus": corpus.pk}
    params |= {"part": part.pk} if part is not None else {"again": again}
    with transaction.atomic():
        title = f"Index {corpus.name}" if part is None else f"Add {part.title} to {corpus.name}"
        run = enqueue_run(kind="index", project=place, user=user, params=params, title=title, send=send)
        Corpus.objects.filter(pk=corpus.pk).update(run=run)
        Corpus.objects.filter(pk=corpus.pk, state=Corpus.State.FAILED).update(state=Corpus.State.BUILDING, error="")
        corpus.refresh_from_db()
        if part is not None:
            audit.record(
                verb="corpus.added", project=place, actor=user, object=corpus, kind=part.kind, title=part.title
            )
    return run


def start_indexing(
    *, corpus: Corpus, user: Any, through: Project | None = None, send: bool = True, whole: bool = True
) -> Run | None:
    """Rebuild the indexes from the stored parts (without `whole`, add only missing parts). The previous index answers
    until then. None if there is no project for a run."""
    with transaction.atomic():
        if whole:
            outbox.note_change(corpus)
        return _queue(corpus, None, user, through, send, again=whole)


@dataclass(frozen=True)
class IndexOptions:
    """Parameters of indexing."""

    corpus: str = param(help="Name of the corpus.", needed="Name the corpus to be indexed.")


def request_index(*, project: Project, user: Any, options: IndexOptions) -> Run:
    """Queue the indexing of a corpus, requested through the API."""
    corpus = find_corpus(project, options.corpus)
    check_may_change(user, corpus)
    run = start_indexing(corpus=corpus, user=user, through=project)
    assert run is not None  # there is a project
    return run


# ---- deleting -----------------------------------------------------------------------------------------------


def delete_corpus(*, corpus: Corpus, user: Any) -> None:
    """Delete the corpus with all its files, and cancel its runs."""
    pk, place = corpus.pk, corpus.project or corpus.home
    with transaction.atomic():
        for run in Run.objects.filter(kind="index", params__corpus=pk, state__in=Run.ACTIVE).select_related("project"):
            try:
                cancel_run(run=run, user=user)
            except Conflict:
                continue  # it has just ended
        outbox.note_deletion(corpus)
        audit.record(verb="corpus.deleted", project=place, actor=user, object=corpus, pairs=corpus.count)
        corpus.delete()
        transaction.on_commit(lambda: remove_files(pk))


def clear_project(*, project: Project) -> None:
    """Prepare the deletion of a project: delete the files of its corpora. Shared corpora created in it stay."""
    for corpus in Corpus.objects.filter(project=project):
        if get_folder(corpus.pk).exists() or corpus.elastic_revision:
            outbox.note_deletion(corpus)
            remove_files(corpus.pk)
    Corpus.objects.filter(home=project).update(home=None)
    Corpus.objects.filter(project=None, run__project=project).update(run=None)
    CorpusPart.objects.filter(project=project).update(project=None)


def get_visible(user: Any, slug: str, name: str, *, change: bool = False) -> tuple[Project, Corpus]:
    """The project and the corpus, if the user's role covers the request."""
    project = get_project(user=user, slug=slug, need="write" if change else "read")
    corpus = find_corpus(project, name)
    if change:
        check_may_change(user, corpus)
    return project, corpus
