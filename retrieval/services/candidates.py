"""Candidates for a reference: the corpus rows whose query is most like an item's context, or those that hold the words
somebody searches for. Fills the port `candidates` of the annotation room; it never raises because a backend is down."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from annotation.models import Item, Output
from annotation.services.hooks import Candidate, Candidates
from evalapp.accounts.models import Project
from evalapp.common.errors import NotThere

from ..index.errors import IndexUnavailable
from ..models import Corpus
from ..selectors.corpora import find_corpus
from .handles import ask

if TYPE_CHECKING:
    from ..index.hits import Hit

#: More are never asked for at once.
MOST = 1000
#: Rows that are looked through for words.
MOST_ROWS = 20_000


def candidates_for(
    *,
    project: Project,
    corpus: str,
    item: Item,
    k: int,
    turns: int | None = None,
    exclude: Collection[str] = (),
    text: str | None = None,
) -> Candidates:
    """The best `k` with different responses, by Jaccard of `context_text(item, turns)` and the row's query, or with all
    words of `text`. What equals one of `exclude` or an output of the item is left out."""
    left_out = [*exclude, *Output.objects.filter(item=item).values_list("text", flat=True)]
    return search_corpus(project=project, corpus=corpus, words=text, context=context_text(item, turns), k=k,
                         exclude=left_out)  # fmt: skip


def context_text(item: Item, turns: int | None) -> str:
    """The last `turns` turns (None: all) as one text; the source of an item without turns."""
    said: Sequence[str] = item.context if turns is None else item.context[-turns:] if turns > 0 else ()
    return "\n".join(said) if item.context else item.source or ""


def search_corpus(
    *, project: Project, corpus: str, words: str | None, context: str, k: int, exclude: Collection[str] = ()
) -> Candidates:
    """Free text where there are `words`, else what is like `context`."""
    k = min(max(k, 0), MOST)
    if not corpus:
        return Candidates((), "No corpus was chosen: write the references yourself.")
    try:
        row = find_corpus(project, corpus)
    except NotThere:
        return Candidates((), f"The corpus “{corpus}” is not there any more.")
    words = (words or "").strip()
    try:
        hits, note = find_words(row, words, k, exclude) if words else find_like(row, context, k, exclude)
    except IndexUnavailable as error:
        return Candidates((), f"No candidates from “{row.name}”: {error.why}.".replace("..", "."))
    rows = tuple(_candidate(row, hit) for hit in hits)
    return Candidates(rows, note if rows else _why_none(row, words, context))


def find_like(corpus: Corpus, context: str, k: int, exclude: Collection[str] = ()) -> tuple[list[Hit], str]:
    """Rows by Jaccard of their query with the context, different responses only; and a note, mostly empty."""
    return ask(corpus, lambda index: index.search(context, k, distinct=True, exclude=exclude))


def find_words(corpus: Corpus, words: str, k: int, exclude: Collection[str] = ()) -> tuple[list[Hit], str]:
    """Rows that hold all words, different responses only; and a note. More are fetched, because some are left out, and
    again more while these repeat the same few."""
    from ..index.hits import take

    wanted = 3 * k + 20
    while True:
        hits, note = ask(corpus, lambda index, rows=wanted: index.find(words, rows))
        found = take(hits, k, distinct=True, exclude=exclude)
        if len(found) >= k or len(hits) < wanted or wanted >= MOST_ROWS:
            return found, note
        wanted = min(8 * wanted, MOST_ROWS)


def _candidate(corpus: Corpus, hit: Hit) -> Candidate:
    return Candidate(text=hit.response, query=hit.query, jaccard=hit.jaccard, source=source_of(corpus, hit))


def source_of(corpus: Corpus, hit: Hit) -> dict[str, Any]:
    """Where a candidate comes from; a row's own licence and source come before those of its corpus."""
    meta = hit.meta or {}
    return {
        "corpus": corpus.name,
        "row": hit.row,
        "licence": str(meta.get("licence") or corpus.licence),
        "origin": str(meta.get("source") or corpus.source),
    }


def _why_none(corpus: Corpus, words: str, context: str) -> str:
    if words:
        return f"No pair of “{corpus.name}” holds all of these words."
    if not corpus.count:
        return f"The corpus “{corpus.name}” is empty."
    if not context.strip():
        return "The item has no context to compare with. Search for words of your own."
    return f"No query of “{corpus.name}” shares a word with the context. Search for words of your own."
