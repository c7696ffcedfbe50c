"""Lines of `manage.py doctor` about corpora: which have no index, and whether Elasticsearch holds what it should."""

from __future__ import annotations

from evalapp.ops.checks import MISSING, OK, OPTIONAL, Check

from ..index.errors import RetrievalError
from ..models import Corpus, OutboxRow
from ..selectors.corpora import condition_of
from . import elastic
from .handles import open_embedded
from .places import index_path

OUTBOX = "corpora outbox"


def server_checks() -> list[Check]:
    """Elasticsearch itself: whether it answers these credentials, its version, its health."""
    if not elastic.is_used():
        return [Check("elasticsearch", OPTIONAL, "ELASTICSEARCH_URL is not set; the built-in index is used")]
    found = elastic.health()
    if found.ok:
        return [Check("elasticsearch", OK, found.message)]
    way_out = "Start it or mend its settings, or unset ELASTICSEARCH_URL to use the built-in index."
    return [Check("elasticsearch", MISSING, found.message, way_out)]


def checks() -> list[Check]:
    """One line for all that is well, one for each corpus that is not."""
    rows = list(Corpus.objects.select_related("project", "home", "run").order_by("name", "pk"))
    if not rows:
        return [Check("corpora", OPTIONAL, "none; candidates for references need one")]
    # Asked once: a server that is silent would be waited for at every corpus.
    away = "" if not elastic.is_used() or (health := elastic.health()).ok else health.message
    faults = [found for corpus in rows if (found := _check(corpus, away)) is not None]
    behind = OutboxRow.objects.count()
    if behind:
        oldest = OutboxRow.objects.order_by("created_at")[0]
        why = f": {oldest.error}" if oldest.error else ""
        way_out = "A worker tells it as soon as it answers; or run `python manage.py reindex SLUG`."
        faults.append(Check(OUTBOX, MISSING, f"{behind} changes Elasticsearch was not told{why}", way_out))
    well = len(rows) - sum(found.name != OUTBOX for found in faults)
    pairs = sum(corpus.count for corpus in rows)
    return [Check("corpora", OK, f"{well} of {len(rows)} ready, {pairs:,} pairs"), *faults]


def _check(corpus: Corpus, away: str) -> Check | None:
    place = corpus.project or corpus.home
    name = f"corpus {place.slug if place else '-'}/{corpus.name}"
    way_out = f"Run `python manage.py reindex {place.slug if place else '-'} --corpus {corpus.name}`."
    if corpus.is_waiting:
        return Check(name, OPTIONAL, condition_of(corpus))
    if corpus.state != Corpus.State.READY:
        return Check(name, MISSING, condition_of(corpus), way_out)
    try:
        index = open_embedded(corpus)
    except RetrievalError as error:
        return Check(name, MISSING, str(error), way_out)
    count = index.count
    index.close()
    if count != corpus.count:
        return Check(name, MISSING, f"{count:,} pairs in the index, {corpus.count:,} expected", way_out)
    return _check_elastic(corpus, name, way_out, away) or _check_unicode(corpus, name, way_out)


def _check_unicode(corpus: Corpus, name: str, way_out: str) -> Check | None:
    """After an update of Python: characters that are new since are no letters in what was indexed before."""
    from ..index.embedded import read_manifest
    from ..index.tokens import unicode_note

    note = unicode_note(read_manifest(index_path(corpus.pk)).get("unicode", ""))
    return Check(name, OPTIONAL, note, way_out) if note else None


def _check_elastic(corpus: Corpus, name: str, way_out: str, away: str) -> Check | None:
    """`away`: what is wrong with the server itself."""
    from ..index.tokens import unicode_note

    if not elastic.is_used():
        return None
    if corpus.elastic_revision < corpus.embedded_revision:
        return Check(name, MISSING, "Elasticsearch does not hold the newest pairs yet", way_out)
    if away:
        return Check(name, MISSING, away, "Start Elasticsearch; the built-in index answers meanwhile.")
    try:
        state = elastic.state_of(corpus)
    except RetrievalError as error:
        return Check(name, MISSING, str(error), f"{way_out} The built-in index answers meanwhile.")
    if state.count != corpus.count:
        return Check(name, MISSING, f"{state.count:,} pairs in Elasticsearch, {corpus.count:,} expected", way_out)
    note = unicode_note(state.unicode)
    return Check(name, OPTIONAL, f"Elasticsearch: {note}", way_out) if note else None
