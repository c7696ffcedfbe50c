"""Pages of corpora: list, create, a corpus with its parts and a search box, add, delete."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.services.uploads import Incoming
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.errors import EvalappError
from evalapp.common.pages import page, project_page
from evalapp.common.queue import queue_has_worker
from evalapp.names import natural_key

from ..forms import FILE, AddForm, CorpusForm, add_faults
from ..index.errors import IndexUnavailable
from ..index.tokens import tokens as tokens_of
from ..models import Corpus
from ..selectors.corpora import count_open_writing, describe_condition, list_corpora, list_parts, may_change
from ..services import elastic
from ..services.candidates import describe_source, find_like, find_words
from ..services.corpora import (
    add_file,
    add_rows,
    create_corpus,
    delete_corpus,
    get_visible,
    start_indexing,
)

SHOWN = 20
SHOWN_FAULTS = 50
BY = {"context": gettext_lazy("like this context"), "words": gettext_lazy("with these words")}
_WORDS = re.compile(r"\s+|\S+")


@project_page(GET="read")
def corpus_list(request: HttpRequest, project: Project) -> HttpResponse:
    rows = [
        (corpus, describe_condition(corpus))
        for corpus in sorted(list_corpora(project), key=lambda row: natural_key(row.name))
    ]
    context = {
        "project": project,
        "rows": rows,
        "active": any(corpus.is_waiting for corpus, _ in rows),
        "may_write": can(user=request.user, project=project, need="write"),
    }
    return page(request, "retrieval/corpora/list.html", context, fragment="table")


@project_page(GET="write", POST="write")
def corpus_new(request: HttpRequest, project: Project) -> HttpResponse:
    may_share = can(user=request.user, project=project, need="manage")
    posted = request.method == "POST"
    form = CorpusForm(
        request.POST if posted else None, request.FILES if posted else None, project=project, may_share=may_share
    )
    if posted and form.is_valid():
        given = form.cleaned_data
        try:
            corpus = create_corpus(
                project=project, user=request.user, name=given["name"], language=given["language"],
                tokenizer=given["tokenizer"], licence=given["licence"], source=given["source"],
                shared=given.get("shared", False),
            )  # fmt: skip
        except EvalappError as error:
            add_faults(form, error)
        else:
            if _add(request, form, project, corpus):
                return redirect("retrieval:corpus", project.slug, corpus.name)
            delete_corpus(corpus=corpus, user=request.user)
    context = {"project": project, "form": form}
    return page(request, "retrieval/corpora/new.html", context, status=422 if form.errors else 200)


def _add(request: HttpRequest, form: AddForm, project: Project, corpus: Corpus) -> bool:
    given = form.cleaned_data
    try:
        if given["source_kind"] == FILE:
            file = Incoming(given["file"].name, given["file"].chunks())
            add_file(corpus=corpus, user=request.user, file=file, through=project)
        else:
            add_rows(corpus=corpus, user=request.user, project=project, kind=given["source_kind"])
    except EvalappError as error:
        add_faults(form, error)
        return False
    return True


@require_safe
def corpus_show(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    project, corpus = get_visible(request.user, slug, name)
    parts = list(list_parts(corpus)[:100])
    run = corpus.run
    context = {
        "project": project,
        "corpus": corpus,
        "condition": describe_condition(corpus),
        "run": run,
        "run_here": run is not None and run.project_id == project.pk,
        "active": corpus.is_waiting,
        "unserved": [run.queue] if run is not None and run.is_active and not queue_has_worker(run.queue) else [],
        "parts": parts,
        "refused": next((part for part in parts[:1] if part.state == part.State.REFUSED), None),
        "shown_faults": SHOWN_FAULTS,
        "may_write": may_change(request.user, corpus),
        "by_choices": BY,
        "answers_by": "Elasticsearch" if elastic.is_used() and corpus.elastic_revision else _("the built-in index"),
        **_search(request, corpus),
    }
    return page(request, "retrieval/corpora/show.html", context, fragment="live")


@dataclass(frozen=True)
class HitView:
    """A hit on the page. `query`: pieces of the query, and whether they also occur in the search text."""

    jaccard: float
    query: list[tuple[str, bool]]
    response: str
    row: int
    source: dict[str, Any]


def _search(request: HttpRequest, corpus: Corpus) -> dict[str, Any]:
    """The results of the search box."""
    text = request.GET.get("q", "").strip()[:10_000]
    by = request.GET.get("by", "context")
    result: dict[str, Any] = {"q": text, "by": by if by in BY else "context", "hits": None, "unavailable": ""}
    if not text:
        return result
    began = time.monotonic()
    try:
        hits, note = (find_words if by == "words" else find_like)(corpus, text, SHOWN)
    except IndexUnavailable as error:
        return {**result, "unavailable": error.why}
    tokens = partial(tokens_of, tokenizer=corpus.tokenizer)
    wanted = tokens(text)
    rows = [
        HitView(
            hit.jaccard, list(_marked(hit.query, wanted, tokens)), hit.response, hit.row, describe_source(corpus, hit)
        )
        for hit in hits
    ]
    return {
        **result,
        "hits": rows,
        "note": note,
        "n_tokens": len(wanted),
        "milliseconds": 1000 * (time.monotonic() - began),
    }


def _marked(text: str, wanted: frozenset[str], tokens: Any) -> Iterator[tuple[str, bool]]:
    """Pieces of the text: words between spaces; in scripts without spaces, characters."""
    for word in _WORDS.findall(text[:2000]):
        word_tokens = tokens(word)
        if (
            len(word_tokens) > 1
            and not word_tokens <= wanted
            and any(len(token) == 1 and not token.isascii() for token in word_tokens)
        ):
            yield from ((character, bool(tokens(character) & wanted)) for character in word)
        else:
            yield word, bool(word_tokens & wanted)


@require_http_methods(["GET", "HEAD", "POST"])
def corpus_add(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    project, corpus = get_visible(request.user, slug, name, change=True)
    posted = request.method == "POST"
    form = AddForm(request.POST if posted else None, request.FILES if posted else None, project=project)
    if posted and form.is_valid() and _add(request, form, project, corpus):
        return redirect("retrieval:corpus", slug, name)
    context = {"project": project, "corpus": corpus, "form": form}
    return page(request, "retrieval/corpora/add.html", context, status=422 if form.errors else 200)


@require_POST
def corpus_index(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Rebuild the index."""
    project, corpus = get_visible(request.user, slug, name, change=True)
    start_indexing(corpus=corpus, user=request.user, through=project)
    return redirect("retrieval:corpus", slug, name)


@require_http_methods(["GET", "HEAD", "POST"])
def corpus_delete(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    project, corpus = get_visible(request.user, slug, name, change=True)
    if request.method == "POST":
        delete_corpus(corpus=corpus, user=request.user)
        messages.success(request, _("The corpus %(name)s has been deleted.") % {"name": name})
        return redirect("retrieval:corpus-list", slug)
    context = {"project": project, "corpus": corpus, "writing": count_open_writing(corpus)}
    return page(request, "retrieval/corpora/delete.html", context)
