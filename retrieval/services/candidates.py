"""Candidates for references: corpus rows whose query is most similar to an item's context, or that contain search
words. Registered as a hook of annotation. If a backend is down, the result is empty with a note."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from annotation.models import Item, Output
from annotation.services.hooks import Candidate, Candidates
from evalapp.accounts.models import Project
from evalapp.common.errors import NotThere
from evalapp.translation import gettext as _

from ..index.errors import IndexUnavailable
from ..models import Corpus
from ..selectors.corpora import find_corpus
from .handles import ask

if TYPE_CHECKING:
    from ..index.hits import Hit

#: The maximum number of candidates per request.
MOST = 1000
#: The maximum number of rows that are read for a word search.
MOST_ROWS = 20_000


def find_candidates(
    *,
    project: Project,
    corpus: str,
    item: Item,
    k: int,
    turns: int | None = None,
    exclude: Collection[str] = (),
    text: str | None = None,
) -> Candidates:
    """The best `k` rows with different responses, by Jaccard similarity of `get_context_text(item, turns)` to the row's
    query, or rows with all words of `text`; without texts in `exclude` and outputs of the item."""
    left_out = [*exclude, *Output.objects.filter(item=item).values_list("text", flat=True)]
    return search_corpus(project=project, corpus=corpus, words=text, context=get_context_text(item, turns), k=k,
                         exclude=left_out)  # fmt: skip


def get_context_text(item: Item, turns: int | None) -> str:
    """The last `turns` turns (None: all) as one text; the source if the item has no turns."""
    recent: Sequence[str] = item.context if turns is None else item.context[-turns:] if turns > 0 else ()
    return "\n".join(recent) if item.context else item.source or ""


def search_corpus(
    *, project: Project, corpus: str, words: str | None, context: str, k: int, exclude: Collection[str] = ()
) -> Candidates:
    """Search for `words` or, if these are empty, for rows similar to `context`."""
    k = min(max(k, 0), MOST)
    if not corpus:
        return Candidates((), _("No corpus is selected, so there are no candidates."))
    try:
        row = find_corpus(project, corpus)
    except NotThere:
        return Candidates((), _("The corpus “%(corpus)s” no longer exists.", corpus=corpus))
    words = (words or "").strip()
    try:
        hits, note = find_words(row, words, k, exclude) if words else find_like(row, context, k, exclude)
    except IndexUnavailable as error:
        return Candidates(
            (), _("No candidates from “%(name)s”: %(reason)s.", name=row.name, reason=error.why.rstrip("."))
        )
    rows = tuple(_candidate(row, hit) for hit in hits)
    return Candidates(rows, note if rows else _why_none(row, words, context))


def find_like(corpus: Corpus, context: str, k: int, exclude: Collection[str] = ()) -> tuple[list[Hit], str]:
    """Rows by Jaccard similarity of their query to the context, with different responses; and a note, usually empty."""
    return ask(corpus, lambda index: index.search(context, k, distinct=True, exclude=exclude))


def find_words(corpus: Corpus, words: str, k: int, exclude: Collection[str] = ()) -> tuple[list[Hit], str]:
    """Rows that contain all words, with different responses; and a note. Fetches more rows than `k`, and again more
    while too many are duplicates."""
    from ..index.hits import take

    wanted = 3 * k + 20
    while True:
        hits, note = ask(corpus, lambda index, rows=wanted: index.find(words, rows))
        result = take(hits, k, distinct=True, exclude=exclude)
        if len(result) >= k or len(hits) < wanted or wanted >= MOST_ROWS:
            return result, note
        wanted = min(8 * wanted, MOST_ROWS)


def _candidate(corpus: Corpus, hit: Hit) -> Candidate:
    return Candidate(text=hit.response, query=hit.query, jaccard=hit.jaccard, source=describe_source(corpus, hit))


def describe_source(corpus: Corpus, hit: Hit) -> dict[str, Any]:
    """The origin of a candidate. Licence and source of a row take precedence over those of its corpus."""
    meta = hit.meta or {}
    return {
        "corpus": corpus.name,
        "row": hit.row,
        "licence": str(meta.get("licence") or corpus.licence),
        "origin": str(meta.get("source") or corpus.source),
    }


def _why_none(corpus: Corpus, words: str, context: str) -> str:
    if words:
        return _("No pair of “%(name)s” contains all these words.", name=corpus.name)
    if not corpus.count:
        return _("The corpus “%(name)s” is empty.", name=corpus.name)
    if not context.strip():
        return _("The item has no context to compare with. Search for other words.")
    return _("No query of “%(name)s” shares a word with the context. Search for other words.", name=corpus.name)
